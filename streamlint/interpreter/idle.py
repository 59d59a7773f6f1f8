"""Waits that find nothing to wait for: right behind another wait of the host, with nothing queued in between.

A run counts up wherever work may go to a stream (``Run.may_queue``): at each call that is not known to leave the streams alone, at work on
what may be a tensor, at each value of a loop, and at a ``yield``. So a forgotten case is a finding too many, never one too few.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter.at_hand import contains
from streamlint.interpreter.origins import key
from streamlint.interpreter.standing import Stand, Test, conditions, is_of_nothing, unnegated
from streamlint.interpreter.values import Buffer, Storage, Value

if TYPE_CHECKING:
    from streamlint.interpreter.peeks import Peek
    from streamlint.interpreter.run import Run


def converted(run: Run, source: Value, result: Value, before: int) -> None:
    """``x.short()``: if this value is what is fetched next, the copy takes as long. ``before`` is what the run had counted to."""
    storage = _storage(result)
    if storage is not None and run.queued == before + 1:
        run.converted[id(storage)] = storage, _before(run, source, before), run.queued


def computes(run: Run, result: Value | None, operands: tuple[Value, ...]) -> None:
    """A value is computed that may be a tensor."""
    latest, before, now = run.latest_work
    if now != run.queued or not any(latest is operand for operand in operands):
        before = run.queued
    run.may_queue()
    run.latest_work = result, before, run.queued


def fetched(run: Run, value: Value | None) -> None:
    """The host takes a value as a number. If it was the last work, that has ended, and if it was none, nothing was queued."""
    latest, before, now = run.latest_work
    if value is not None and latest is value and now == run.queued:
        run.queued = before


def computed_after(run: Run, value: Value | None, since: int) -> int:
    """What the run had counted to before a value that is fetched was computed, if that is the last work; else ``since``."""
    latest, before, now = run.latest_work
    return before if value is not None and latest is value and now == run.queued else since


def queued_before(run: Run, value: Value | None) -> int:
    """What the run had counted to before the value that is fetched was converted."""
    return _before(run, value, run.queued)


def _before(run: Run, value: Value | None, now: int) -> int:
    held = run.converted.get(key(value)) if value is not None else None
    return held[1] if held is not None and held[2] == now else now


def _storage(value: Value) -> Storage | None:
    return value.storage if isinstance(value, Buffer) else None


def covers(run: Run, first: Peek, found: Peek) -> bool:
    """Whether the host, having waited at ``first``, has waited for what it waits for at ``found``, if nothing was queued in between.

    What fetches a size or uploads works itself before it waits, and an allocator's cache is emptied at a cost of its own.
    """
    if found.what not in ("read", "cast", "number", "device") or first.what == "cache" or not (first.api == found.api == "torch"):
        return False
    if (first.span, first.context.calls) == (found.span, found.context.calls) or any(one.frames[-1].file.is_cuda for one in (first, found)):
        return False
    loops = first.context.loops
    if loops != found.context.loops[: len(loops)]:
        return False
    if isinstance(first.value, Buffer) and first.what == "upload" and first.value.storage.on_device:
        return False
    if first.what == "device":
        return found.what != "device" or first.device == found.device
    if first.stream != found.stream:
        return False
    return found.what != "device" or all(key == first.stream for key in run.machine.streams)


def hangs_on(run: Run, first: Peek, way: tuple[Stand, ...], other: tuple[Stand, ...]) -> tuple[str, ...] | None:
    """The undecided conditions that a wait is met under, and those of another place are not; None where that cannot be said."""
    shared = {(id(test.test), test.holds) for stand in other for test in conditions(stand)}
    atoms: set[str] = set()
    for above, stand in enumerate(reversed(way)):
        calls = first.context.calls[: len(first.context.calls) - above]
        for test in conditions(stand):
            if test.test is None:
                return None
            if is_of_nothing(stand, test) or _is_empty(stand, test) or (id(test.test), test.holds) in shared:
                continue  # (a round without data is none)
            asked = set(_asked(run, Span(stand.file.path, *test.test.at), calls, first.queued))
            if asked - run.decisions.keys() or (not asked and _counts(test.test)):
                return None  # another condition answers it, or a few rounds say nothing of all
            atoms |= asked
    return tuple(sorted(atoms))


def _counts(test: p.Expression) -> bool:
    """Whether a condition compares, which may come out otherwise in another round: ``step < 5``."""
    parts = list(p.walk(test))
    compared = any(isinstance(part, p.Compare) and part.op not in ("is", "is not", "in", "not in") for part in parts)
    return compared or any(isinstance(part, p.Binary) for part in parts)


def _is_empty(stand: Stand, test: Test) -> bool:
    """``if not totals: return {}`` of a parameter that is declared as a container."""
    asked, straight = unnegated(test.test) if test.test is not None else (None, True)
    if not test.skips or test.holds != straight or not isinstance(asked, p.Name) or stand.function is None:
        return False
    return any(param.name == asked.id and _is_container(param.annotation) for param in stand.function.params)


def _is_container(annotation: p.Expression | None) -> bool:
    head = annotation.value if isinstance(annotation, p.Index) else annotation
    return isinstance(head, p.Name) and head.id.lower() in ("dict", "list", "tuple", "set", "mapping", "sequence")


def _asked(run: Run, test: Span, calls: tuple[Span, ...], before: int) -> Iterator[str]:
    """The atoms that a condition, and its parts, asked for last."""
    for (span, way), asked in run.answered.items():
        if way == calls and span.file == test.file and contains(test.at, span.at):
            yield from [atom for queued, atom in asked if queued <= before][-1:]
