"""Threads and processes: who is started, with what, and who waits for whom."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from streamlint import operations as ops
from streamlint.findings import Span, Step
from streamlint.interpreter import items
from streamlint.interpreter.arguments import Arguments, CallSite
from streamlint.interpreter.beside import begun, joined, run_beside, under_way
from streamlint.interpreter.calls import invoke
from streamlint.interpreter.classes import find_method
from streamlint.interpreter.effects import Call
from streamlint.interpreter.opaque import opaque_call
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import (
    Buffer,
    ClassValue,
    Const,
    FunctionValue,
    Handle,
    Instance,
    KernelConfig,
    LibraryName,
    Method,
    Opaque,
    Prepared,
    Series,
    Table,
    Value,
)
from streamlint.record import record, replace

_CALLABLE = (FunctionValue, Method, Prepared, ClassValue, LibraryName, Instance, Handle, KernelConfig)


def _thread(call: Call) -> Value:
    """A function that another thread or process runs: now, or once the object that is made here is started."""
    if call.text("style", "call") == "object":
        return _made(call)
    kind = _kind(call)
    function = call.value("function")
    if kind is None or function is None or not isinstance(function, _CALLABLE):
        return _out_of_view(call)
    given = _given(call)
    several = call.text("style") == "each"
    pool = call.receiver if isinstance(call.receiver, Handle) else None
    result = _run(call, kind, function, given, pool)
    if several and kind == "thread":
        joined(call.run, call.span, call.name, "result")  # whoever looks at the results waits for them
    return _result(call, result)


def _made(call: Call) -> Value:
    handle = Handle(call.text("type", call.name), call.run.machine.fresh("object"))
    handle.args = {"kind": Const(call.text("kind", "thread"))}
    function = call.value("function")
    if function is not None:
        handle.args["function"] = function
    for name, value in zip(("args", "kwargs"), call.values("arguments"), strict=False):
        handle.args["kwargs" if isinstance(value, Table) else name] = value
    return handle


def _start(call: Call) -> Value:
    """``thread.start()``: what it was made with, or its own ``run``."""
    made = call.receiver
    kind = call.text("kind", "thread")
    if isinstance(made, Instance):
        found = find_method(call.run, made.definition, made.file, "run")
        if found is not None:
            body = FunctionValue(found[0], found[2], None, made, owner=found[1])
            _run(call, kind, body, Arguments(), reach=[made])
            return Const(None)
    function = made.args.get("function") if isinstance(made, Handle) else None
    if not isinstance(made, Handle) or not isinstance(function, _CALLABLE):
        return _out_of_view(call)
    _run(call, kind, function, _packed(made.args.get("args"), made.args.get("kwargs")), maker=made)
    return Const(None)


def _kind(call: Call) -> str | None:
    """Thread or process; None where it is not known."""
    if call.row.get("pool") is None:
        return call.text("kind", "thread")
    pool = call.value("pool")
    if isinstance(pool, Const) and pool.value is None:
        return "thread"
    kind = pool.type if isinstance(pool, Handle | Opaque) else ""
    if kind.endswith(("ProcessPoolExecutor", "pool.Pool")):
        return "process"
    known = kind.endswith(("futures.Executor", "ThreadPoolExecutor", "pool.ThreadPool"))
    return "thread" if known and not (isinstance(pool, Handle) and pool.unknown and kind.endswith("futures.Executor")) else None


def _given(call: Call) -> Arguments:
    """The arguments of the function, as the style of the call hands them over."""
    style, given = call.text("style", "call"), call.arguments
    selector = call.row.get("function")
    position = getattr(selector, "position", None) or 0
    behind = given.positional[position + 1 :]
    if style == "each":
        return Arguments([items.element_of(call.run, value, "0") if _holds(value) else _first(call.run, value) for value in behind[:4]])
    if style in ("packed", "rank"):
        held = call.values("arguments")
        packed = _packed(*held[:2])
        if style == "rank":
            packed.positional.insert(0, call.run.opaque(f"rank{call.run.visit_key(call.site.node)}"))
        return packed
    own = getattr(selector, "keyword", None)
    return Arguments(behind, {name: value for name, value in given.keywords.items() if name != own}, given.open)


def _holds(value: Value) -> bool:
    return not (isinstance(value, Series) and value.items)


def _first(run: Run, value: Value) -> Value:
    return value.items[0] if isinstance(value, Series) and value.items else items.element_of(run, value, "0")


def _packed(args: Value | None = None, keywords: Value | None = None) -> Arguments:
    """``args=(…), kwargs={…}``."""
    found = Arguments()
    if isinstance(args, Table) and keywords is None:
        args, keywords = None, args
    if isinstance(args, Series) and args.items is not None:
        found.positional.extend(args.items)
    elif args is not None and not (isinstance(args, Const) and args.value is None):
        found.open = True
    if isinstance(keywords, Table):
        for term, key in keywords.keys.items():
            if isinstance(key, Const) and term in keywords.items:
                found.keywords[str(key.value)] = keywords.items[term]
        found.open = found.open or not keywords.complete
    return found


def _run(
    call: Call,
    kind: str,
    function: Value,
    given: Arguments,
    maker: Handle | None = None,
    *,
    reach: list[Value] | None = None,
) -> Value | None:
    """Its body runs beside the path, and copies into what a thread is given are under way there too; what it can reach may be awaited."""
    run = call.run
    values = [function, *given.all(), *(reach or [])]
    handed = under_way(run, values[1:]) if kind == "thread" else []
    beside = begun(run, kind, call.span)
    awaits = ops.Opaque(call.span, callee=call.name)
    if not handed:
        run.machine.opaque(awaits, values)
    spawn = ops.Spawn(call.span, call.library, call.name, beside=beside, body_known=True)
    place = _made_at(call, maker)
    if place != call.span:
        spawn.beside = replace(beside, started=replace(beside.started, span=place))
        spawn.span = place
    site = CallSite(call.site.node, call.span, "target")
    result = run_beside(run, spawn, _Target(run, function, given, site, maker), handed)
    if handed:
        run.machine.opaque(awaits, values)
    return result


@record(slots=True)
class _Target:
    """What a thread or a process runs: its pool's initialiser, then what it was given."""

    run: Run
    function: Value
    given: Arguments
    site: CallSite
    maker: Handle | None

    def __call__(self) -> Value:
        first = self.maker.args.get("initializer") if self.maker is not None else None
        if self.maker is not None and isinstance(first, _CALLABLE):
            invoke(self.run, first, _packed(self.maker.args.get("initargs")), self.site)
        return invoke(self.run, self.function, self.given, self.site)


def _made_at(call: Call, maker: Handle | None) -> Span:
    """Where the process comes to be: a pool's are as old as the pool."""
    if maker is not None and maker.type.endswith("pool.Pool") and maker.trail:
        return maker.trail[0].span
    return call.span


def _pool(call: Call) -> Value:
    """A pool: where its processes come to be, and what they run first."""
    handle = Handle(call.text("type", call.name), call.run.machine.fresh("object"), trail=(Step("pool created here", call.span),))
    given = call.arguments.keywords
    handle.args.update({name: given[name] for name in ("initializer", "initargs") if name in given})
    return handle


def _out_of_view(call: Call) -> Value:
    run = call.run
    result = opaque_call(run, call.name, call.receiver, call.arguments, call.site)
    run.machine.note(ops.Spawn(call.span, call.library, call.name, beside=begun(run, _kind(call) or "process", call.span)))
    return Opaque(result.term, (result,), type=call.text("type")) if call.text("type") else result


def _result(call: Call, result: Value | None) -> Value:
    """What the caller holds: a future, a list of results, or what the function returned."""
    run = call.run
    term = f"result{run.visit_key(call.site.node)}"
    if call.text("type"):
        return Opaque(term, tuple(_bare(call, result)), type=call.text("type"))
    if call.text("style") == "each":
        return Series(None, element=next(_bare(call, result), None), name=term)
    return next(_bare(call, result), None) or run.opaque(term)


def _bare(call: Call, result: Value | None) -> Iterator[Value]:
    """A value like what the function returned: its accesses are the other thread's."""
    if isinstance(result, Buffer):
        old = result.storage
        name = f"result{call.run.visit_key(call.site.node)}"
        yield Buffer(call.run.storage(old.memory, name, evidence=old.evidence, library=old.library), type=result.type)


_LAST_NAME = re.compile(r"\w+$")


def _block(call: Call) -> Value:
    if call.text("what") == "lock":
        lock, function = call.value("of"), call.run.frame.function
        owner = f"{function.class_name}::" if function is not None and function.class_name else ""
        name = _LAST_NAME.search(lock.term.partition("@")[0]) if lock is not None else None
        call.run.machine.note(
            ops.Block(call.span, call.library, call.name, what="lock", on=f"{owner}{name[0]}" if name is not None else "")
        )
        return call.opaque()
    joined(call.run, call.span, call.name, call.text("what", "join"))
    return call.opaque(*([call.receiver] if call.receiver is not None else []))


def _touch(call: Call) -> Value:
    call.run.machine.note(ops.Touch(call.span, call.library, call.name, evidence=ops.Evidence.LITERAL))
    return call.opaque()


EFFECTS: dict[str, Callable[[Call], Value]] = {
    "thread": _thread,
    "start": _start,
    "pool": _pool,
    "block": _block,
    "touch": _touch,
}
