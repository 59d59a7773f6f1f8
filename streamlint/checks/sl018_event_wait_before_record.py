"""SL018 event-wait-before-record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeGuard

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.interpreter.facts import FileFacts
from streamlint.interpreter.trace import Trace, call_trail
from streamlint.operations import Conflict, Context, Create, Destroy, Operation, Record, Synchronize, Wait, Work


class EventWaitBeforeRecord(Check):
    """A wait for an event that has not been recorded yet, which orders nothing.

    ## What it does
    Reports ``wait_event``, ``cudaStreamWaitEvent`` and ``synchronize`` of an event that is recorded only later, on every visit of the
    call: the event is created in the same function, and no loop returns to the wait after the record. Also reports a wait for an event
    that no known code records, and a lost record: the event is recorded again on another stream before any code has waited for it.

    ## Why is this bad
    Before its first record an event represents no work, and a wait captures the state of the event when the wait is called, not when
    the stream reaches it. The call returns without an error and orders nothing: the work that it should protect races.

    ## Example
    ```python
    side, ready = torch.cuda.Stream(), torch.cuda.Event()
    side.wait_event(ready)
    grown = torch.zeros(1024, device="cuda").exp()
    ready.record()
    ```

    ## Use instead
    ```python
    side, ready = torch.cuda.Stream(), torch.cuda.Event()
    grown = torch.zeros(1024, device="cuda").exp()
    ready.record()
    side.wait_event(ready)
    ```

    ## When it is fine
    In a loop whose first iteration has nothing to wait for: each iteration waits for the event that the previous one recorded.

    ## Verify
    A gate blocks the recording stream; work after the early wait runs anyway.

    ## References
    - ``cuda_runtime_api.h``: before the first call to cudaEventRecord(), an event represents an empty set of work
    """

    code = "SL018"
    name = "event-wait-before-record"
    category = Category.RACE
    default = "on"
    rests_on = ("event-order", "event-covers-later-work")
    signs = ("event", "Event", "record(")
    looks_at = (Record, Wait, Synchronize)

    def begins_with(self, operation: Operation) -> bool:
        return (
            isinstance(operation, Record | Wait)
            or (isinstance(operation, Create) and operation.what == "event")
            or (isinstance(operation, Synchronize) and operation.of is not None)
        )

    def on_map(self, facts: FileFacts) -> Iterator[Finding]:
        """An event that no other code can name, and that no code at hand records."""
        yield from self._unrecorded(facts)

    def _unrecorded(self, facts: FileFacts, made: Span | None = None, wait: Span | None = None) -> Iterator[Finding]:
        """Of all such events, or of the one that is made and waited for at these places."""
        for event in facts.unrecorded:
            if event.internal and (made is None or (event.created == made and wait in event.waits)):
                trail = (Step("event created here", event.created), *(Step("also waited for here", at) for at in event.waits[1:]))
                yield self.finding_at(event.waits[0], _NEVER, trail=trail, help=_RECORD, qualname=event.function)

    def on_operation(self, operation: Operation, path: Trace, missed: bool = False) -> Iterator[Finding]:
        """``missed``: a race follows that the wait should have ordered."""
        if isinstance(operation, Record):
            yield from self._lost(operation, path)
        if not isinstance(operation, Wait | Synchronize) or not operation.empty:
            return
        event = operation.on if isinstance(operation, Wait) else operation.of
        record = self._record(operation, path)
        if record is None and event is not None:
            yield from self._never(operation, path)
        if record is None or record.stream is None or not self._once(operation, record, path, missed):
            return
        trail = tuple(Step("event created here", step.span) for step in event.trail[:1]) if event is not None else ()
        place = _too_early(operation, record, path)
        within = (Step("the wait is here", operation.span),) if place != operation.span else ()
        calls = (step for step in call_trail(operation) if step.span != place)
        yield self.finding(
            operation,
            "wait for an event that has not been recorded yet; it orders nothing",
            span=place,
            trail=(*trail, Step("recorded only here", record.span), *within, *calls),
            help=_RECORD,
            facts={"api": operation.api},
        )

    def on_conflict(self, conflict: Conflict, path: Trace) -> Iterator[Finding]:
        """A race that the wait would have ordered, had it not come too early: the wait is its cause."""
        first, second = conflict.first, conflict.second
        if not isinstance(first, Work) or first.stream is None:
            return
        for wait in path.before(second):
            if (
                isinstance(wait, Record)
                and wait.loses is not None
                and wait.loses.index > first.index
                and _same(wait.loses.stream, first.stream)
            ):
                yield from (replace(finding, pairs=((first.span, second.span),)) for finding in self._lost(wait, path))
            if not isinstance(wait, Wait | Synchronize) or not wait.empty:
                continue
            if isinstance(wait, Wait) and not (isinstance(second, Work) and _same(wait.stream, second.stream)):
                continue
            told = (*self.on_operation(wait, path, missed=True), *self._never_here(wait, path), *self._never_anywhere(wait, path))
            for finding in told:
                record = self._record(wait, path)
                # A stream that waits for what it records itself later on has the wrong event: the other stream's was meant.
                own = record is not None and isinstance(wait, Wait) and _same(record.stream, wait.stream)
                if record is None or own or (record.index > first.index and _same(record.stream, first.stream)):
                    yield replace(finding, pairs=((first.span, second.span),))

    def told(
        self, wait: Wait, made: Span, made_calls: tuple[Span, ...], record: Span | None, also: tuple[Span, ...], place: Span
    ) -> Finding:
        """A wait for an event that is recorded only behind it, or nowhere, as a finding."""
        created = (Step("event created here", made), *(Step("created by this call", call) for call in made_calls))
        if record is None:
            trail = (*created, *(Step("also waited for here", at) for at in also), *call_trail(wait))
            return self.finding(wait, _NEVER, trail=trail, help=_RECORD, facts={"api": wait.api})
        within = (Step("the wait is here", wait.span),) if place != wait.span else ()
        calls = (step for step in call_trail(wait) if step.span != place)
        return self.finding(
            wait,
            "wait for an event that has not been recorded yet; it orders nothing",
            span=place,
            trail=(*created, Step("recorded only here", record), *within, *calls),
            help=_RECORD,
            facts={"api": wait.api},
        )

    def _never(self, wait: Wait | Synchronize, path: Trace) -> Iterator[Finding]:
        """The path makes the object, drives it, and waits; no code at hand records."""
        made = _made(wait, path)
        if made is None:
            return
        if not made.before and _made_for(made.context, wait.context) and self._ends(made, wait, path):
            steps = (Step("event created here", made.span), *call_trail(made, "created by this call"), *call_trail(wait))
            yield self.finding(wait, _NEVER, trail=steps, help=_RECORD, facts={"api": wait.api})
            return
        known = next((e for e in path.facts.unrecorded_in(made.span.file) if e.created == made.span and not e.internal), None)
        driven = len(made.context.functions) > 1 and made.context.functions[:1] == wait.context.functions[:1]
        if known is not None and (known.local or driven):
            trail = (Step("event created here", made.span), *call_trail(wait))
            yield self.finding(wait, _NEVER, trail=trail, help=_RECORD, facts={"api": wait.api})

    def _ends(self, made: Create, wait: Wait | Synchronize, path: Trace) -> bool:
        """Whether the function that waits sees the event's end as well: nobody can record it later, nor does any path."""
        ended = any(isinstance(o, Destroy) and o.value is made.value for o in path.after(wait))
        return ended and (made.span, made.context.calls) not in path.recorded_elsewhere

    def _never_here(self, wait: Wait | Synchronize, path: Trace) -> Iterator[Finding]:
        """A variable's event, whose wait orders nothing that follows, for nothing was recorded."""
        event = wait.on if isinstance(wait, Wait) else wait.of
        made = _made(wait, path)
        if (
            made is None
            or made.before
            or not _made_for(made.context, wait.context)
            or any(isinstance(o, Record) and o.event is event for o in path.operations)
        ):
            return
        trail = (Step("event created here", made.span), *call_trail(wait))
        yield self.finding(wait, _NEVER, trail=trail, help=_RECORD, facts={"api": wait.api})

    def _never_anywhere(self, wait: Wait | Synchronize, path: Trace) -> Iterator[Finding]:
        """What the map tells of the event: here it is the cause of a race."""
        made = _made(wait, path)
        if made is not None:
            yield from self._unrecorded(path.facts, made.span, wait.span)

    def _lost(self, record: Record, path: Trace) -> Iterator[Finding]:
        """A record that is overwritten on another stream before anyone has waited for it."""
        over = record.replaces
        lost = record.loses or (over if over is not None and over.span == record.span else None)
        wait = next((o for o in path.after(record) if _awaits(o, record)), None) if lost is not None else None
        if lost is None or wait is None or (lost.span == record.span and not _ends_before(record, wait)):
            return
        again = lost.span == record.span  # in the next round of a loop
        yield self.told_lost(lost, None if again else record.span, wait.span)

    def told_lost(self, lost: Record, again: Span | None, wait: Span) -> Finding:
        """A record that another one replaces, or its own in the next round of a loop, before anybody waits for it, as a finding."""
        steps = [Step("recorded again here", again)] if again is not None else []
        steps.append(Step(f"this wait covers only the {'last' if again is None else 'second'} record", wait))
        return self.finding(
            lost,
            "event record is lost; another stream records the event again before any wait",
            trail=tuple(steps),
            help="use an event for each stream",
            facts={"api": lost.api},
        )

    def _record(self, wait: Wait | Synchronize, path: Trace) -> Record | None:
        event = wait.on if isinstance(wait, Wait) else wait.of
        return next((o for o in path.after(wait) if isinstance(o, Record) and o.event is event), None)

    def _once(self, wait: Wait | Synchronize, record: Record, path: Trace, missed: bool) -> bool:
        """Whether the event is new at each visit of the wait: a function in progress makes it, and no loop comes back behind the record."""
        made = _made(wait, path)
        if made is None or made.before or not _made_for(made.context, wait.context, missed):
            return False
        loops = {loop.key for loop in wait.context.loops} - {loop.key for loop in made.context.loops}
        return not loops & {loop.key for loop in record.context.loops}


_NEVER = "wait for an event that nothing records; it orders nothing"
_RECORD = "record the event after the work that it represents, and before the wait"


def _made(wait: Wait | Synchronize, path: Trace) -> Create | None:
    """Where the path has made what is waited for."""
    event = wait.on if isinstance(wait, Wait) else wait.of
    return next((o for o in path.before(wait) if isinstance(o, Create) and o.value is event), None)


def _too_early(wait: Wait | Synchronize, record: Record, path: Trace) -> Span:
    """What stands before the record: the wait, or the call of a function that does nothing but wait."""
    calls, depth = wait.context.calls, _common(wait.context, record.context)
    if depth == len(calls) or any(o.span != wait.span for o in path.operations if o.context.calls[: depth + 1] == calls[: depth + 1]):
        return wait.span
    return calls[depth]


def _made_for(made: Context, wait: Context, missed: bool = False) -> bool:
    """Whether each visit of the wait comes from a function that made the event, by itself or through what it called without a condition.

    ``missed``: that may be the constructor of an object which the wait is in a method of, called from without.
    """
    common = _common(made, wait)
    if _caller(made, common) != _caller(wait, common):
        return False
    if made.setup and common < len(wait.calls) and not (missed and common < len(made.calls) and not wait.setup):
        return False  # a method that the constructor is the first to call: behind it, there is a record
    return common == len(made.calls) or made.guards == wait.guards[: len(made.guards)]


def _common(one: Context, other: Context) -> int:
    """How many calls led to both."""
    common = 0
    while common < min(len(one.calls), len(other.calls)) and one.calls[common] == other.calls[common]:
        common += 1
    return common


def _caller(context: Context, depth: int) -> str:
    """The function in which the call of that depth stands."""
    index = len(context.functions) - len(context.calls) - 1 + depth
    return context.functions[index] if 0 <= index < len(context.functions) else ""


def _awaits(operation: Operation, record: Record) -> TypeGuard[Wait | Synchronize]:
    """A stream or the host waits for the event of a record."""
    if isinstance(operation, Wait):
        return operation.on is record.event
    return isinstance(operation, Synchronize) and operation.of is record.event


def _ends_before(record: Record, wait: Wait | Synchronize) -> bool:
    """Whether the loop around a record is over when somebody waits."""
    around = {loop.key for loop in wait.context.loops}
    return any(loop.key not in around for loop in record.context.loops)


def _same(one: object, other: object) -> bool:
    """Whether two streams are one."""
    return one is not None and getattr(one, "key", None) == getattr(other, "key", "")
