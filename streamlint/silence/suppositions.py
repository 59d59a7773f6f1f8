"""What could be otherwise: orders that might not be there, and facts of operations that a rule may want.

Nothing here knows a rule. Each supposition is tried on the checks as they are; what makes one of them speak is its reason for silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from streamlint.interpreter.values import Buffer, Event, Stream, Value
from streamlint.operations import (
    Alloc,
    Block,
    Copy,
    Direction,
    Evidence,
    Free,
    Launch,
    Memory,
    Opaque,
    Operation,
    Query,
    Record,
    Synchronize,
    Touch,
    Wait,
)
from streamlint.silence import words
from streamlint.silence.runs import Key, Supposition, key_of

Quote = Callable[[Operation], str]  # the source of an operation, shortened
_NO_TRAIN_LOOPS = frozenset({"setup", "retry", "teardown", "tuning", "devices"})

BARRIER = Supposition("the default stream and the streams around it wait for each other", barrier=True)


def orders(operations: Iterable[Operation], given: dict[int, tuple[Value, ...]], quote: Quote) -> Iterator[Supposition]:
    """For each operation of a path that orders something: that it does not."""
    for operation in operations:
        knew = _order(operation, given.get(operation.index, ()), quote)
        if knew:
            yield Supposition(knew, without=key_of(operation), rows=(operation.span.row,))


def _order(operation: Operation, given: tuple[Value, ...], quote: Quote) -> str:
    at = f"`{quote(operation)}` in line {operation.span.row}"
    if isinstance(operation, Synchronize):
        return f"{at} makes the host wait for {words.target(operation.of)}"
    if isinstance(operation, Wait):
        return f"{at} makes {words.stream(operation.stream)} wait for {words.target(operation.on)}"
    if isinstance(operation, Record):
        return f"{at} records an event behind it"
    if isinstance(operation, Query):
        return f"{at} was asked, and came out as done"
    if isinstance(operation, Block):
        return f"{at} blocks until other code lets it go, which may have waited"
    if isinstance(operation, Launch) and operation.host_waits:
        return f"{at} returns only when its work has ended"
    if isinstance(operation, Opaque) and (held := _held(given)):
        return f"the opaque call {at} receives {held} and may wait for it"
    return ""


def _held(given: tuple[Value, ...]) -> str:
    if any(isinstance(value, Stream) for value in given):
        return "the stream"
    if any(isinstance(value, Event) for value in given):
        return "the event"
    return "the buffer" if any(isinstance(value, Buffer) for value in given) else ""


def facts(operation: Operation, which: str) -> Iterator[Supposition]:
    """For each fact of an operation that may keep a rule silent: that it is otherwise. ``which`` names the operation."""
    rows = (operation.span.row,)

    def suppose(knew: str, needs: str, **changes: Any) -> Supposition:
        return Supposition(knew, needs, change=_setter(key_of(operation), changes), rows=rows)

    if isinstance(operation, Copy):
        yield from _of_copy(operation, which, suppose)
    if isinstance(operation, Free | Alloc) and operation.cached:
        yield suppose(f"the memory of {which} comes from a pool", "memory that the driver allocates", cached=False)
    if isinstance(operation, Opaque) and operation.works > Evidence.DERIVED:
        yield suppose(f"nothing shows that {which} works on a device", "work on a device", works=Evidence.LITERAL)
    if isinstance(operation, Touch) and operation.evidence > Evidence.DERIVED:
        yield suppose(words.evidence(operation.evidence), "a CUDA device", evidence=Evidence.LITERAL)
    yield from _of_surroundings(operation, which)


def _of_copy(copy: Copy, which: str, suppose: Callable[..., Supposition]) -> Iterator[Supposition]:
    if not copy.asked_async:
        yield suppose(f"{which} is synchronous: the host waits for it", "an asynchronous copy", asked_async=True)
    if copy.evidence > Evidence.DERIVED:
        yield suppose(words.evidence(copy.evidence) + f" ({which})", "a tensor on a CUDA device", evidence=Evidence.LITERAL)
    if copy.known_small:
        yield suppose(f"{which} is small", "more than a few bytes", known_small=False)
    if copy.pinning_asked:
        yield suppose("the function asks whether the memory is pinned, and copies all the same", "no such question", pinning_asked=False)


def memories(operation: Operation, which: str) -> Iterator[Supposition]:
    """The kinds of host memory that a copy could have besides the one that is known, or taken."""
    if not isinstance(operation, Copy):
        return
    for direction in (Direction.H2D, Direction.D2H) if operation.direction is Direction.UNKNOWN else (operation.direction,):
        for kind in (Memory.PAGEABLE, Memory.PINNED):
            changes: dict[str, object] = {"direction": direction, "host_memory": kind}
            if operation.direction is Direction.UNKNOWN:
                knew = f"which side of {which} is the device is unknown"
            elif operation.host_memory is not kind:
                held = words.name_of(words.host_buffer(operation))
                knew = f"the host memory of {which} is {operation.host_memory.value}" + (f" ({held})" if held else "")
            else:
                continue
            needs = f"{kind.value} memory" if operation.direction is direction else f"a copy {_TOWARDS[direction]} {kind.value} memory"
            yield Supposition(knew, needs, change=_setter(key_of(operation), changes), rows=(operation.span.row,))


_TOWARDS = {Direction.H2D: "to the device from", Direction.D2H: "from the device to"}


def _of_surroundings(operation: Operation, which: str) -> Iterator[Supposition]:
    context = operation.context
    key, rows = key_of(operation), (operation.span.row,)

    def suppose(knew: str, needs: str, *more: int, **changes: Any) -> Supposition:
        def change(other: Operation) -> None:
            if key_of(other) == key:
                other.context = replace(other.context, **changes)

        return Supposition(knew, needs, change=change, rows=(*rows, *more))

    for guard in context.guards:
        if guard.span is not None:
            left = tuple(g for g in context.guards if g is not guard)
            knew = f"{which} stands under the condition of line {guard.span.row}" + (f" ({guard.kind})" if guard.kind != "plain" else "")
            yield suppose(knew, "no such condition", guard.span.row, guards=left)
    for number, loop in enumerate(context.loops):
        if loop.kind in _NO_TRAIN_LOOPS or loop.length is not None:
            length = f" of {loop.length} rounds" if loop.length is not None else ""
            loops = (*context.loops[:number], replace(loop, kind="data", length=None), *context.loops[number + 1 :])
            knew = f"the loop of line {loop.span.row} is a {loop.kind} loop{length}"
            yield suppose(knew, "a loop over data", loop.span.row, loops=loops)
    if context.setup:
        yield suppose(f"{which} stands in code that runs once, at the start", "code that runs again and again", setup=False)
    if context.teardown:
        yield suppose(f"{which} stands in code that runs once, at the end", "code that runs again and again", teardown=False)
    if context.handles_error:
        yield suppose(f"{which} stands where an error is handled", "the usual course", handles_error=False)
    if context.callback is not None:
        yield suppose(f"{which} stands in a host callback", "code of its own", context.callback.span.row, callback=None)


def _setter(key: Key, changes: dict[str, object]) -> Callable[[Operation], None]:
    def change(operation: Operation) -> None:
        if key_of(operation) == key:
            for name, value in changes.items():
                setattr(operation, name, value)

    return change
