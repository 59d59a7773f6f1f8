"""Calls: bodies at hand run in place in the caller's surroundings, models are applied, the rest is opaque."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from streamlint import operations as ops
from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter import pointers
from streamlint.interpreter.attributes import get_attribute
from streamlint.interpreter.index import File, is_declaration
from streamlint.interpreter.run import Frame, RaiseSignal, ReturnSignal, Run
from streamlint.interpreter.values import (
    Buffer,
    ClassValue,
    Const,
    Device,
    Environment,
    Event,
    FunctionValue,
    GeneratorCall,
    Handle,
    Instance,
    KernelConfig,
    LibraryName,
    Loader,
    Method,
    Opaque,
    Reference,
    Series,
    Storage,
    Stream,
    Table,
    Value,
    reachable,
)
from streamlint.operations import Evidence, Memory


@dataclass(slots=True)
class Arguments:
    """Evaluated arguments. ``open`` says that there may be more than are seen (``*args`` of unknown length)."""

    positional: list[Value] = field(default_factory=list)
    keywords: dict[str, Value] = field(default_factory=dict)
    open: bool = False
    nodes: tuple[p.Arg, ...] = ()

    def all(self) -> list[Value]:
        return [*self.positional, *self.keywords.values()]


@dataclass(slots=True)
class CallSite:
    """Where a call stands: its node, the span of the API's name, and the whole expression's span."""

    node: p.Node
    span: Span
    name: str = ""
    template: tuple[str, ...] = ()


def call(run: Run, node: p.Call) -> Value:
    """Evaluate a call: callee, arguments from left to right, then what it does."""
    callee = _callee(run, node.function)
    arguments = evaluate_arguments(run, node.args)
    at = node.name_at if node.name_at != p.NOWHERE else node.at
    return invoke(run, callee, arguments, CallSite(node, run.span(at), _spelled(node.function), node.template))


def _callee(run: Run, function: p.Expression) -> Value:
    if isinstance(function, p.Attr):
        receiver = run.evaluate(function.value)
        if isinstance(receiver, Reference):
            receiver = run.evaluate(receiver.target)
        if isinstance(receiver, Opaque) and isinstance(receiver.attrs.get(function.name), Opaque):
            return Method(receiver, function.name)
        return get_attribute(run, receiver, function.name, function)
    return run.evaluate(function)


def _spelled(function: p.Expression) -> str:
    if isinstance(function, p.Attr):
        return function.name
    return function.id if isinstance(function, p.Name) else ""


def evaluate_arguments(run: Run, args: tuple[p.Arg, ...]) -> Arguments:
    found = Arguments(nodes=args)
    for arg in args:
        value = run.evaluate(arg.value)
        if arg.stars == 1:
            if isinstance(value, Series) and value.items is not None:
                found.positional.extend(value.items)
            else:
                found.open = True
        elif arg.stars == 2:
            if isinstance(value, Table):
                found.keywords.update(
                    {str(k.value): value.items[t] for t, k in value.keys.items() if isinstance(k, Const) and t in value.items}
                )
                found.open = found.open or not value.complete
            else:
                found.open = True
        elif arg.keyword is not None:
            found.keywords[arg.keyword] = value
        else:
            found.positional.append(value)
    return found


def invoke(run: Run, callee: Value, arguments: Arguments, site: CallSite) -> Value:
    """Call a value."""
    run.step()
    if isinstance(callee, FunctionValue):
        return call_function(run, callee, arguments, site)
    if isinstance(callee, ClassValue):
        from streamlint.interpreter.objects import instantiate

        return instantiate(run, callee, arguments, site)
    if isinstance(callee, LibraryName):
        return _call_library(run, callee, arguments, site)
    if isinstance(callee, Method):
        return _call_method_value(run, callee, arguments, site)
    if isinstance(callee, KernelConfig):
        from streamlint.interpreter.effects.work import numba_launch

        return numba_launch(run, callee, arguments, site)
    if isinstance(callee, Instance):
        return _call_instance(run, callee, arguments, site)
    if isinstance(callee, Handle):
        return _call_handle(run, callee, arguments, site)
    return opaque_call(run, callee.term, callee, arguments, site)


def _call_library(run: Run, callee: LibraryName, arguments: Arguments, site: CallSite) -> Value:
    from streamlint.interpreter.builtins import BUILTINS
    from streamlint.interpreter.effects import apply

    name = library_name(run, callee.name)
    if run.file.is_cuda and name.rpartition("::")[2] in ("make_unique", "make_shared"):
        return _make_smart(run, name, arguments, site)
    if not run.file.is_cuda and (builtin := BUILTINS.get(name)) is not None:
        found = builtin(run, arguments, site)
        if found is not None:
            return found
    models = run.file.models
    row = models.call(name)
    if row is None and run.file.is_cuda:
        resolved = run.file.resolve_type(p.Type(name))
        if resolved.name != name:
            from streamlint.interpreter.declarations import construct

            return construct(run, resolved, [(None, v) for v in arguments.positional], site.span, name, site.node)
    if row is None and run.file.is_cuda:
        row = next((r for prefix in run.file.module.using if (r := models.call(f"{prefix}::{name}")) is not None), None)
    if row is not None:
        return apply(run, row, name, None, arguments, site)
    known = models.types.get(name)
    if known is not None:
        from streamlint.interpreter.declarations import library_object

        return library_object(run, known, name, arguments, site)
    return opaque_call(run, name, None, arguments, site)


def _make_smart(run: Run, name: str, arguments: Arguments, site: CallSite) -> Value:
    """``std::make_unique<T>(args)``."""
    from streamlint.interpreter import pointers
    from streamlint.interpreter.declarations import construct
    from streamlint.program import Type

    text = site.template[0] if site.template else ""
    kind = Type(text.removesuffix("[]").strip())
    if text.endswith("[]"):
        from streamlint.interpreter.effects import apply

        row = run.file.models.call("malloc")
        assert row is not None
        return apply(run, row, "malloc", None, Arguments(), site)
    value = construct(run, kind, [(None, v) for v in arguments.positional], site.span, f"{name}{run.visit_key(site.node)}")
    return pointers.make(run, Type("std::unique_ptr" if "unique" in name else "std::shared_ptr", (kind,)), [value])


def library_name(run: Run, name: str) -> str:
    """The public name: HIP's aliases are CUDA's, a leading ``::`` is dropped."""
    if run.file.is_cuda:
        name = name.lstrip(":")
        if name.startswith("hip") and len(name) > 3 and name[3].isupper():
            return f"cuda{name[3:]}"
    return name


def _call_method_value(run: Run, callee: Method, arguments: Arguments, site: CallSite) -> Value:
    from streamlint.interpreter.builtins import call_container_method
    from streamlint.interpreter.effects import apply
    from streamlint.interpreter.guesses import assumed_method

    receiver = callee.receiver
    if isinstance(receiver, FunctionValue):
        return _call_on_function(run, receiver, callee, arguments, site)
    if isinstance(receiver, Series | Table | Const) or (
        isinstance(receiver, Buffer) and receiver.leaves is not None and callee.row is None
    ):
        found = call_container_method(run, receiver, callee.name, arguments, site)
        if found is not None:
            return found
    if pointers.is_smart(receiver) and callee.name in ("get", "release", "reset"):
        return _smart_method(run, receiver, callee.name, arguments, site)
    row = callee.row
    if row is not None:
        return apply(run, row, row_name(row, callee.name), receiver, arguments, site)
    assumed = assumed_method(run, receiver, callee.name, arguments, site)
    if assumed is not None:
        return assumed
    return opaque_call(
        run, f"{receiver.term if isinstance(receiver, Opaque) else type(receiver).__name__}.{callee.name}", receiver, arguments, site
    )


def _smart_method(run: Run, receiver: Value, name: str, arguments: Arguments, site: CallSite) -> Value:
    target = pointers.pointee(receiver) or Const(None)
    assert isinstance(receiver, Handle)
    if name == "reset":
        pointers.end(run, receiver, site.span)
        if arguments.positional:
            receiver.attrs["(pointee)"] = arguments.positional[0]
        return Const(None)
    if name == "release":
        receiver.attrs.pop("(pointee)", None)
    return target


def row_name(row: object, method: str) -> str:
    names = getattr(row, "names", ())
    return next((n for n in names if n.endswith((f".{method}", f"::{method}"))), names[0] if names else method)


def _call_on_function(run: Run, receiver: FunctionValue, callee: Method, arguments: Arguments, site: CallSite) -> Value:
    # torch.autograd.Function.apply, numba's kernel.forall(n, stream=s), functools wrappers.
    return opaque_call(run, f"{receiver.function.name}.{callee.name}", receiver, arguments, site)


def _call_instance(run: Run, callee: Instance, arguments: Arguments, site: CallSite) -> Value:
    for name in ("operator()",) if run.file.is_cuda else ("__call__", "forward"):
        found = call_method(run, callee, name, arguments.positional, site.span, arguments, site)
        if found is not None:
            return found
    return opaque_call(run, callee.definition.name, callee, arguments, site)


def _call_handle(run: Run, callee: Handle, arguments: Arguments, site: CallSite) -> Value:
    from streamlint.interpreter.effects import apply

    row = run.file.models.method(callee.type, "__call__")
    if row is not None:
        return apply(run, row, f"{callee.type}.__call__", callee, arguments, site)
    return opaque_call(run, callee.type, callee, arguments, site)


def is_kernel(run: Run, value: Value) -> bool:
    """Whether a value is a numba kernel: a function under ``cuda.jit``."""
    if not isinstance(value, FunctionValue):
        return False
    for decorator in value.function.decorators:
        node = decorator.function if isinstance(decorator, p.Call) else decorator
        if (isinstance(node, p.Attr) and node.name == "jit") or (isinstance(node, p.Name) and node.id == "jit"):
            base = node.value if isinstance(node, p.Attr) else node
            dotted = value.file.module.imports.get(base.id, "") if isinstance(base, p.Name) else ""
            if dotted.startswith("numba"):
                return True
    return False


# --- bodies at hand -------------------------------------------------------------------------------------------------------------


def call_function(run: Run, callee: FunctionValue, arguments: Arguments, site: CallSite) -> Value:
    """Run a body at hand in place, or make the call opaque where that is not possible."""
    function = callee.function
    if is_declaration(function) and callee.file.is_cuda:
        return _declared_only(run, callee, arguments, site)
    if function.space != "host" or is_kernel(run, callee):
        return opaque_call(run, function.name, callee.receiver, arguments, site)
    if _passes_over(run, callee, arguments):
        return run.opaque(f"result{run.visit_key(site.node)}", *arguments.all())
    if not run.can_enter(function):
        run.coverage.opaque["(recursion or depth)"] += 1
        return opaque_call(run, function.name, callee.receiver, arguments, site)
    environment = bind(run, callee, arguments, site)
    if function.is_generator:
        return GeneratorCall(callee, environment)
    result = run_body(run, callee, environment, site.span, setup=function.kind == "constructor" or function.name == "__init__")
    if callee.file.is_cuda:
        _copy_out(run, function, environment, arguments, site)
    return result


_OWN_VALUES = (Buffer, Stream, Event, Handle, Loader, GeneratorCall, KernelConfig)


def _passes_over(run: Run, callee: FunctionValue, arguments: Arguments) -> bool:
    """Whether a body can be left out: no word of CUDA in it or in what it calls, and nothing of CUDA given to it."""
    if callee.file.is_cuda or callee.file.relevance.matters(callee.function):
        return False
    given = [*arguments.all(), *callee.bound]
    if callee.receiver is not None and callee.function.name != "__init__":
        given.append(callee.receiver)
    if callee.closure is not None:
        given.append(FunctionValue(callee.function, callee.file, callee.closure))
    return not any(isinstance(v, _OWN_VALUES) or (isinstance(v, Opaque) and v.buffer is not None) for v in reachable(given, limit=80))


def _declared_only(run: Run, callee: FunctionValue, arguments: Arguments, site: CallSite) -> Value:
    """A function whose body is out of view but that takes a stream: it works there."""
    from streamlint.interpreter.effects.work import work_of_declared

    environment = bind(run, callee, arguments, site)
    work_of_declared(run, callee.function, environment, site)
    return opaque_call(run, callee.function.name, callee.receiver, arguments, site)


def run_body(
    run: Run,
    callee: FunctionValue,
    environment: Environment,
    span: Span | None,
    on_yield: Callable[[Value], Value] | None = None,
    setup: bool = False,
    teardown: bool = False,
) -> Value:
    """Run a function's statements with its parameters bound."""
    from streamlint.interpreter.objects import drop_locals, leave_scope
    from streamlint.interpreter.statements import execute

    function = callee.function
    this = callee.receiver if callee.file.is_cuda and isinstance(callee.receiver, Instance) else None
    frame = Frame(function, callee.file, environment, this, on_yield, function.qualname)
    result: Value = Const(None)
    context = run.context
    with (
        run.entered(frame, span),
        run.within(setup=context.setup or setup, teardown=context.teardown or teardown),
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


def run_generator(run: Run, made: GeneratorCall, consumer: Callable[[Value], Value]) -> None:
    """Run a generator's body; every ``yield`` runs the consumer."""
    if not run.can_enter(made.function.function):
        consumer(run.opaque("yielded"))
        return
    run_body(run, made.function, made.environment, None, consumer)


def bind(run: Run, callee: FunctionValue, arguments: Arguments, site: CallSite) -> Environment:
    """Parameters to arguments. A default is chosen at the call; so is a literal."""
    function = callee.function
    environment = Environment(parent=callee.closure)
    given = [*callee.bound, *arguments.positional]
    keywords = {**callee.keywords, **arguments.keywords}
    params = list(function.params)
    if callee.receiver is not None and not callee.file.is_cuda and params:
        environment.names[params.pop(0).name] = callee.receiver
    for param in params:
        environment.names[param.name] = _argument(run, callee, param, given, keywords, arguments.open, site)
        if param.type is not None:
            environment.types[param.name] = param.type
    return environment


def _argument(
    run: Run, callee: FunctionValue, param: p.Param, given: list[Value], keywords: dict[str, Value], more: bool, site: CallSite
) -> Value:
    if param.kind == "star":
        rest, given[:] = list(given), []
        return Series(rest, kind="tuple") if not more else Series(None, kind="tuple")
    if param.kind == "double":
        return Table({repr(k): v for k, v in keywords.items()}, {repr(k): Const(k) for k in keywords}, not more)
    if param.kind == "plain" and given:
        return _chosen(given.pop(0), site.span)
    if param.name in keywords:
        return _chosen(keywords.pop(param.name), site.span)
    if more:
        return run.opaque(f"{callee.function.qualname}:{param.name}")
    if param.default is not None:
        with run.entered(Frame(None, callee.file, callee.closure or Environment(), qualname=callee.function.qualname), None):
            return _chosen(run.evaluate(param.default), site.span)
    return run.opaque(f"{callee.function.qualname}:{param.name}")


def _chosen(value: Value, span: Span) -> Value:
    if isinstance(value, Const) and value.origin is None:
        return Const(value.value, span)
    if isinstance(value, Stream) and value.kind == "null" and value.chosen is None:
        return replace(value, chosen=span)
    return value


def _copy_out(run: Run, function: p.Function, environment: Environment, arguments: Arguments, site: CallSite) -> None:
    """C++ references: what the body gave a parameter goes back to the argument."""
    from streamlint.interpreter.assignment import assign

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
    from streamlint.interpreter.objects import find_method

    found = find_method(run, receiver.definition, receiver.file, name, len(positional))
    if found is None:
        return None
    function, owner, file = found
    bound = FunctionValue(function, file, None, receiver, owner=owner)
    return call_function(run, bound, arguments or Arguments(list(positional)), site or CallSite(function, span, name))


# --- bodies that are not at hand --------------------------------------------------------------------------------------------------


def opaque_call(run: Run, name: str, receiver: Value | None, arguments: Arguments, site: CallSite) -> Value:
    """A call of unknown effect: one launch on its GPU arguments; it may wait for all that it can reach."""
    values = arguments.all()
    if receiver is not None:
        values = [receiver, *values]
    run.coverage.opaque[name] += 1
    on_device = _device_argument(values)
    tensors = any(isinstance(v, Buffer) and not v.storage.on_host for v in reachable(values, limit=40))
    run.machine.opaque(ops.Opaque(site.span, callee=name, on_device=tensors), values)
    for value in arguments.positional:
        _written_through(run, value, site)
    if receiver is not None and not run.file.is_cuda:
        made = _result_of_module(run, receiver, site)
        if made is not None:
            return made
    if on_device is not None and not run.file.is_cuda:
        return derived(run, on_device, f"result{run.visit_key(site.node)}")
    return run.opaque(f"result{run.visit_key(site.node)}", *values)


def _result_of_module(run: Run, receiver: Value, site: CallSite) -> Value | None:
    """What a module makes is where its parameters are, as far as it was moved in view."""
    name = f"result{run.visit_key(site.node)}"
    home = receiver.attrs.get("(device)") if isinstance(receiver, Handle | Instance) else None
    if isinstance(home, Device) and home.space == "device":
        return Buffer(run.storage(Memory.DEVICE, name, evidence=max(home.evidence, Evidence.DERIVED), library="torch"), type="torch.Tensor")
    if (isinstance(home, Device) and home.space == "host") or (isinstance(receiver, Buffer) and receiver.storage.on_host):
        result = run.unknown_buffer(name)
        result.storage.host = True
        return result
    return None


def derived(run: Run, source: Buffer, name: str) -> Buffer:
    """A device value computed from another."""
    storage = Storage(
        Memory.DEVICE, name, evidence=Evidence(max(source.storage.evidence, Evidence.DERIVED)), library=source.storage.library
    )
    storage.trail = source.storage.trail
    return Buffer(storage, type=source.type)


def _written_through(run: Run, value: Value, site: CallSite) -> None:
    from streamlint.interpreter.assignment import assign

    if isinstance(value, Reference) and isinstance(value.target, p.Name):
        held = value.environment.find(value.target.id)
        if held is not None and isinstance(held.names[value.target.id], Const | Opaque):
            held.names[value.target.id] = run.opaque(f"{value.target.id}{run.visit_key(site.node)}", type=_type_name(held, value.target.id))
    del assign


def _type_name(scope: Environment, name: str) -> str:
    kind = scope.type_of(name)
    return kind.name if kind is not None else ""


def _device_argument(values: list[Value]) -> Buffer | None:
    for value in reachable(values, limit=60):
        if isinstance(value, Buffer) and value.storage.on_device:
            return value
        if isinstance(value, FunctionValue):
            continue
    return None


def file_of(value: FunctionValue | ClassValue) -> File:
    return value.file


__all__ = ["Arguments", "CallSite", "RaiseSignal", "call", "call_function", "invoke", "opaque_call"]
