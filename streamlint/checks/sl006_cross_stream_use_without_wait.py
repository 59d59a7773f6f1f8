"""SL006 cross-stream-use-without-wait."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import Conflict, Launch, Operation, call_trail

_OUT_OF_VIEW = {
    "given": (
        "access to an argument that the caller's stream may still be writing; nothing orders them",
        "the caller's stream may still be writing the arguments of this function",
    ),
    "recycled": (
        "access to memory just allocated on another stream; its earlier users may still run",
        "allocated on another stream here; earlier work there may still use the block",
    ),
    "left": (
        "handover of memory another thread's stream may still be writing; no event goes along",
        "written on the stream of another thread here",
    ),
    "result": (
        "return of memory another stream may still be writing; the caller cannot wait for it",
        "written on another stream here; no stream that the caller knows waits for it",
    ),
}
"""By whose work is not in view: the message, and the words for the first place."""


class CrossStreamUseWithoutWait(Check):
    """Two streams access one buffer, at least one writes it, and neither waits for the other.

    ## What it does
    Reports device work that reads or writes a buffer on one stream while work on another stream may still be writing or reading it: no
    event, ``wait_stream`` or synchronization orders the two accesses.

    With ``evidence = "possible"``, accesses that no caller in the program connects are reported too: of two methods of an object, of
    memory on a stream that the program never makes wait, and of callers that get a result of a stream for which they cannot wait.

    ## Why is this bad
    Streams run concurrently. The reader may see old or partly written data; the writer may overwrite data that is still being read. No
    error is raised, and the outcome depends on the load of the GPU.

    ## Example
    ```python
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        weights = torch.rand(4096, 4096, device="cuda").softmax(dim=-1)
    total = weights.sum()
    ```

    ## Use instead
    ```python
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        weights = torch.rand(4096, 4096, device="cuda").softmax(dim=-1)
    torch.cuda.current_stream().wait_stream(side)
    total = weights.sum()
    ```

    ## When it is fine
    Both accesses use the same stream, the null stream orders the two (blocking streams), or the second stream waits for an event
    recorded after the first access, also in another method. Disjoint parts of a buffer may be accessed concurrently.

    ## Verify
    A gate blocks the first stream before its write; the second access runs anyway and sees the old value.

    ## References
    - CUDA Programming Guide, Asynchronous Execution, events
    - PyTorch, CUDA semantics, "CUDA streams"
    """

    code = "SL006"
    name = "cross-stream-use-without-wait"
    category = Category.RACE
    default = "on"
    fixes = ("safe", "unsafe")
    rests_on = ("stream-order", "event-order", "null-barrier-holds-nonblocking")

    def report(self, first: Launch, second: Launch, writes: bool, streams: tuple[Step, ...], others: tuple[Span, ...] = ()) -> Finding:
        """Two pieces of work that nothing orders, as a finding; ``streams`` are where their streams were made, ``others`` further calls
        from which the second one meets work that nothing orders."""
        conflict = Conflict(first, second, writes)
        words = "written" if writes else "read"
        calls = self._calls(first, second, others)
        return self.finding(
            second,
            self._message(conflict),
            trail=(Step(f"{words} on another stream here", first.span), *streams, *calls),
            help=self._help(first, second),
            conflict=conflict,
            facts={"api": second.api},
        )

    def report_unknown(
        self, first: Launch, second: Launch, streams: tuple[Step, ...], whose: str, others: tuple[Span, ...] = ()
    ) -> Finding:
        """Work that is not in view: on what callers give, of the users before of new memory, or on what is left to callers. A finding."""
        message, words = _OUT_OF_VIEW[whose]
        step = Step(words, first.span)
        calls = self._calls(first, second, others)
        return self.finding(
            second,
            message,
            trail=(step, *streams, *calls),
            help=self._help(first, second),
            conflict=Conflict(first, second),
            facts={"api": second.api},
        )

    def _calls(self, first: Launch, second: Launch, others: tuple[Span, ...]) -> Iterator[Step]:
        """The calls that lead to the second piece of work, and those from which another path does."""
        yield from (step for step in call_trail(second, "the use is reached from here") if step.span not in first.context.calls)
        yield from (Step("from here as well, where nothing orders it either", span) for span in others)

    def _message(self, conflict: Conflict) -> str:
        if conflict.first_writes:
            return "access to a buffer that another stream may still be writing; nothing orders them"
        if isinstance(conflict.second, Launch) and conflict.second.kind == "upload":  # nothing is written over: it gets other memory
            return "move of a module whose weights another stream may still be reading; nothing orders them"
        return "overwrite of a buffer that another stream may still be reading; nothing orders them"

    def _help(self, first: Operation, second: Operation) -> str:
        if isinstance(first, Launch) and first.kind == "collective":
            return "wait for the handle of the collective before the use"
        if second.api == "torch":
            return "make this stream wait first: wait_stream(other), or wait_event() on an event recorded on the other stream"
        if second.api == "cupy":
            return "record an event on the other stream after its work, and call wait_event() on this stream before the use"
        return "record an event on the other stream after its work, and make this stream wait for it with cudaStreamWaitEvent"
