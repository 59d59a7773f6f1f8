"""Bodies at hand: functions run in place, in the caller's surroundings."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from itertools import zip_longest

from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter.alternatives import built
from streamlint.interpreter.arguments import Arguments, CallSite, bind
from streamlint.interpreter.assignment import assign
from streamlint.interpreter.classes import find_method
from streamlint.interpreter.effects.launches import numba_call, work_of_declared
from streamlint.interpreter.gil import held_by_function
from streamlint.interpreter.index import is_declaration
from streamlint.interpreter.lifetimes import drop_locals, leave_scope
from streamlint.interpreter.opaque import opaque_call
from streamlint.interpreter.run import Frame, ReturnSignal, Run, Signal
from streamlint.interpreter.statements import execute
from streamlint.interpreter.values import (
    Const,
    Environment,
    FunctionValue,
    GeneratorCall,
    Instance,
    Opaque,
    Series,
    Value,
)
from streamlint.operations import Guard, LoopFrame
from streamlint.record import replace


def call_function(run: Run, callee: FunctionValue, arguments: Arguments, site: CallSite) -> Value:
    """Run a body at hand in place, or make the call opaque where that is not possible."""
    callee = built(run, run.program.with_body(callee), site.span)
    function = callee.function
    wrapped = None if callee.bare or not function.decorators or callee.file.is_cuda else _decorated(run, callee)
    if wrapped is not None:
        given = arguments if callee.receiver is None else replace(arguments, positional=[callee.receiver, *arguments.positional])
        return call_function(run, wrapped, given, site)
    if is_declaration(function) and callee.file.is_cuda:
        return _declared_only(run, callee, arguments, site)
    if is_kernel(callee, ("reduce", "Reduce", "vectorize", "guvectorize")):
        return numba_call(run, callee, arguments, site)
    if function.space != "host" or is_kernel(callee):
        return opaque_call(run, function.name, callee.receiver, arguments, site)
    if _is_abstract(function):
        return opaque_call(run, function.name, callee.receiver, arguments, site)
    if run.file.is_cython and callee.file.is_cuda:
        arguments = replace(arguments, positional=as_cpp(run, callee, arguments.positional))
    if not run.can_enter(function):
        run.coverage.opaque["(recursion or depth)"] += 1
        return opaque_call(run, function.name, callee.receiver, arguments, site)
    if _is_cached(function):
        key = f"cached:{id(function)}({', '.join(v.term for v in arguments.all())})"
        with run.within_guard(Guard("first")):
            return run.remembered(key, lambda: _run(run, callee, arguments, site))
    return _run(run, callee, arguments, site)


def as_cpp(run: Run, callee: FunctionValue, given: list[Value]) -> list[Value]:
    """Cython: what an address is known to point to by the type of the C++ parameter that takes it."""
    from streamlint.interpreter.crossing import to_cpp

    kinds = [param.type for param in callee.function.params]
    return [to_cpp(run, v, kind, callee.file) if isinstance(v, Opaque) else v for v, kind in zip_longest(given, kinds[: len(given)])]


def _decorated(run: Run, callee: FunctionValue) -> FunctionValue | None:
    """What a project's own decorators make of a function; None where there are none that could matter."""
    from streamlint.interpreter.calls import invoke

    value: Value = FunctionValue(callee.function, callee.file, callee.closure, owner=callee.owner, bare=True)
    for node in reversed(callee.function.decorators):
        name = node.function if isinstance(node, p.Call) else node
        if not isinstance(name, p.Name):
            continue
        with run.entered(Frame(None, callee.file, callee.closure or Environment(), qualname="<module>"), None):
            maker = run.evaluate(name)
            if (
                not isinstance(maker, FunctionValue)
                or not maker.file.relevance.matters(maker.function)
                or not run.can_enter(maker.function)
            ):
                continue
            made = run.evaluate(node) if isinstance(node, p.Call) else maker
        value = invoke(run, made, Arguments([value]), CallSite(node, Span(callee.file.path, *node.at), name.id))
        if not isinstance(value, FunctionValue):
            return None
    return value if isinstance(value, FunctionValue) and value.function is not callee.function else None


def _is_cached(function: p.Function) -> bool:
    """Under ``functools.cache`` or ``lru_cache``: called again with the same arguments, it gives the same value."""
    if not function.decorators:
        return False
    nodes = [d.function if isinstance(d, p.Call) else d for d in function.decorators]
    return any((d.id if isinstance(d, p.Name) else d.name if isinstance(d, p.Attr) else "") in ("cache", "lru_cache") for d in nodes)


def _run(run: Run, callee: FunctionValue, arguments: Arguments, site: CallSite) -> Value:
    function = callee.function
    environment = bind(run, callee, arguments, site)
    if function.is_generator:
        return GeneratorCall(callee, environment, call=site.span)
    result = run_body(run, callee, environment, site.span, setup=function.kind == "constructor" or function.name == "__init__")
    if callee.file.is_cuda:
        _copy_out(run, function, environment, arguments, site)
    return result


def _is_abstract(function: p.Function) -> bool:
    """``raise NotImplementedError`` alone: what is called is an override out of view."""
    return len(function.body) == 1 and isinstance(function.body[0], p.Raise) and "NotImplemented" in _raised(function.body[0].value)


def _raised(value: p.Expression | None) -> str:
    value = value.function if isinstance(value, p.Call) else value
    return value.id if isinstance(value, p.Name) else ""


def _declared_only(run: Run, callee: FunctionValue, arguments: Arguments, site: CallSite) -> Value:
    """A function whose body is out of view but that takes a stream: it works there."""
    environment = bind(run, callee, arguments, site)
    work_of_declared(run, callee.function, environment, site)
    return opaque_call(run, callee.function.name, callee.receiver, arguments, site)


def is_kernel(value: Value, names: tuple[str, ...] = ("jit",)) -> bool:
    """Whether a value is a numba kernel: a function under ``cuda.jit``, or under another decorator of numba's."""
    if not isinstance(value, FunctionValue):
        return False
    for decorator in value.function.decorators:
        node = decorator.function if isinstance(decorator, p.Call) else decorator
        if (isinstance(node, p.Attr) and node.name in names) or (isinstance(node, p.Name) and node.id in names):
            base = node.value if isinstance(node, p.Attr) else node
            dotted = value.file.imports.get(base.id, "") if isinstance(base, p.Name) else ""
            if dotted.startswith("numba"):
                return True
    return False


def run_body(
    run: Run,
    callee: FunctionValue,
    environment: Environment,
    span: Span | None,
    on_yield: Callable[[Value], Value] | None = None,
    setup: bool = False,
    teardown: bool = False,
    taken_in: LoopFrame | None = None,
) -> Value:
    """Run a function's statements with its parameters bound."""
    function = callee.function
    this = callee.receiver if callee.file.is_cuda and isinstance(callee.receiver, Instance) else None
    frame = Frame(function, callee.file, environment, this, on_yield, function.qualname, taken_in=taken_in)
    result: Value = Const(None)
    context = run.context
    with (
        run.entered(frame, span),
        run.within(setup=context.setup or setup, teardown=context.teardown or teardown),
        _called_from_python(run, callee, span),
    ):
        try:
            execute(run, function.body)
        except ReturnSignal as signal:
            result = signal.value
        if callee.file.is_cuda:
            leave_scope(run, environment, keep=result)
    if not callee.file.is_cuda:
        drop_locals(run, environment, result, callee.receiver)
    return result


def _called_from_python(run: Run, callee: FunctionValue, span: Span | None) -> contextlib.AbstractContextManager[object]:
    """Cython: what Python sees (``def``, ``cpdef``) runs with the GIL, and is where the GIL would have to be released."""
    function = callee.function
    if not callee.file.is_cython or function.is_lambda or any(isinstance(d, p.Name) and d.id == "cfunc" for d in function.decorators):
        return contextlib.nullcontext()
    place = Span(callee.file.path, *function.at)
    stack = contextlib.ExitStack()
    stack.enter_context(run.machine.gil.entered(held_by_function(place, len(run.context.calls))))
    if span is not None and not run.frames[-2].file.is_cuda and not run.frames[-2].file.is_cython:
        stack.enter_context(run.within(crossing=span))
    return stack


def generator_of(run: Run, value: Value, span: Span) -> GeneratorCall | None:
    """The generator that somebody takes values from: a call of one, or what an object at hand has as ``__iter__``."""
    if isinstance(value, GeneratorCall):
        return value
    if isinstance(value, Instance) and not run.file.is_cuda:
        found = find_method(run, value.definition, value.file, "__iter__")
        if found is not None and found[0].is_generator:
            made = call_method(run, value, "__iter__", [], span)
            return made if isinstance(made, GeneratorCall) else None
    return None


def run_generator(run: Run, made: GeneratorCall, consumer: Callable[[Value], Value], taken_in: LoopFrame | None = None) -> None:
    """Run a generator's body; every ``yield`` runs the consumer, which is the body of the loop ``taken_in`` if it is one."""
    numbers = itertools.count(made.counted or 0)

    def counting(value: Value) -> Value:
        return consumer(Series([Const(next(numbers)), value], kind="tuple"))

    taker = consumer if made.counted is None else counting
    if not run.can_enter(made.function.function):
        taker(run.opaque("yielded"))
        return
    run_body(run, made.function, made.environment, made.call, taker, taken_in=taken_in)


class _TakenSignal(Signal):
    """Somebody has taken one value from a generator, which waits."""


def first_of(run: Run, made: GeneratorCall) -> Value | None:
    """What the first ``yield`` of a generator gives, up to which its body runs; what comes later is not followed."""
    if made.begun:
        return run.opaque("yielded")
    made.begun = True
    found: list[Value] = []

    def take(value: Value) -> Value:
        found.append(value)
        raise _TakenSignal

    with contextlib.suppress(_TakenSignal):
        run_generator(run, made, take)
    return found[0] if found else None


def _copy_out(run: Run, function: p.Function, environment: Environment, arguments: Arguments, site: CallSite) -> None:
    """C++ references: what the body gave a parameter goes back to the argument."""
    for param, arg, before in zip(function.params, arguments.nodes, arguments.positional, strict=False):
        if param.type is None or not param.type.reference or not isinstance(arg.value, p.Name | p.Attr | p.Index):
            continue
        after = environment.names.get(param.name)
        if after is not None and after is not before and not (isinstance(after, Const) and after.origin is not None):
            assign(run, arg.value, after, site.node)


def call_method(
    run: Run,
    receiver: Instance,
    name: str,
    positional: list[Value],
    span: Span,
    arguments: Arguments | None = None,
    site: CallSite | None = None,
) -> Value | None:
    """Call a method of an object at hand; None if its class has none of that name."""
    found = find_method(run, receiver.definition, receiver.file, name, len(positional))
    if found is None:
        return None
    function, owner, file = found
    bound = FunctionValue(function, file, None, receiver, owner=owner)
    return call_function(run, bound, arguments or Arguments(list(positional)), site or CallSite(function, span, name))
