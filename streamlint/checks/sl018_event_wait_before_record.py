"""SL018 event-wait-before-record."""

from __future__ import annotations

from typing import NamedTuple

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import Operation, call_trail


class _Words(NamedTuple):
    never: str
    early: str
    also: str
    here: str


_WAIT = _Words(
    never="wait for an event that nothing records; it orders nothing",
    early="wait for an event that has not been recorded yet; it orders nothing",
    also="also waited for here",
    here="the wait is here",
)
_QUERY = _Words(
    never="query of an event that nothing records; it always says that the work is done",
    early="query of an event that is not recorded yet; it says that all is done",
    also="also queried here",
    here="the query is here",
)


class EventWaitBeforeRecord(Check):
    """A wait for an event that has not been recorded yet, which orders nothing.

    ## What it does
    Reports ``wait_event``, ``cudaStreamWaitEvent``, ``synchronize`` and ``query`` of an event that is recorded only later, on every visit
    of the call: the event is created in the same function, and no loop returns to the wait after the record. Also reports a wait for an
    event that no known code records, and a lost record: the event is recorded again on another stream before any code has waited for it.

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

    def report(
        self, wait: Operation, made: Span, made_calls: tuple[Span, ...], record: Span | None, also: tuple[Span, ...], place: Span
    ) -> Finding:
        """A wait for an event that is recorded only behind it, or nowhere, as a finding."""
        return self._report(_WAIT, wait, made, made_calls, record, also, place)

    def report_query(
        self, query: Operation, made: Span, made_calls: tuple[Span, ...], record: Span | None, also: tuple[Span, ...], place: Span
    ) -> Finding:
        """A query of an event that is recorded only behind it, or nowhere, as a finding."""
        return self._report(_QUERY, query, made, made_calls, record, also, place)

    def _report(
        self,
        words: _Words,
        wait: Operation,
        made: Span,
        made_calls: tuple[Span, ...],
        record: Span | None,
        also: tuple[Span, ...],
        place: Span,
    ) -> Finding:
        created = (Step("event created here", made), *(Step("created by this call", call) for call in made_calls))
        if record is None:
            trail = (*created, *(Step(words.also, at) for at in also), *call_trail(wait))
            return self.finding(wait, words.never, trail=trail, help=_RECORD, facts={"api": wait.api})
        within = (Step(words.here, wait.span),) if place != wait.span else ()
        calls = (step for step in call_trail(wait) if step.span != place)
        return self.finding(
            wait,
            words.early,
            span=place,
            trail=(*created, Step("recorded only here", record), *within, *calls),
            help=_RECORD,
            facts={"api": wait.api},
        )

    def report_lost(self, lost: Operation, next_record: Span | None, wait: Span) -> Finding:
        """A record that another one replaces, or its own in the next round of a loop, before anybody waits for it, as a finding."""
        steps = [Step("recorded again here", next_record)] if next_record is not None else []
        steps.append(Step(f"this wait covers only the {'last' if next_record is None else 'second'} record", wait))
        return self.finding(
            lost,
            "event record is lost; another stream records the event again before any wait",
            trail=tuple(steps),
            help="use an event for each stream",
            facts={"api": lost.api},
        )


_RECORD = "record the event after the work that it represents, and before the wait"
