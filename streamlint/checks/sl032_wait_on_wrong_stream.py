"""SL032 wait-on-wrong-stream."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.support.records import replace


class WaitOnWrongStream(Check):
    """A stream waits for itself or for the default stream, while the work that it needs is on another one.

    ## What it does
    Reports waits of a stream for itself (``current_stream()`` inside the scope of a stream is that stream), waits for the default stream
    where work on another stream is used next, events that the waiting stream itself has recorded, and ``record_stream`` with the stream on
    which the memory was made.

    ## Why is this bad
    The wait is there, and it orders nothing. Work on one stream is in order anyway. PyTorch's streams are non-blocking: the default stream
    does not wait for them, so an event that is recorded there covers none of their work. The race shows only under load.

    ## Example
    ```python
    side = torch.cuda.Stream()
    doubled = rows.cuda() * 2.0
    with torch.cuda.stream(side):
        side.wait_stream(torch.cuda.current_stream())
        total = doubled.sum()
    torch.cuda.current_stream().wait_stream(side)
    ```

    ## Use instead
    ```python
    side = torch.cuda.Stream()
    doubled = rows.cuda() * 2.0
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        total = doubled.sum()
    torch.cuda.current_stream().wait_stream(side)
    ```

    ## When it is fine
    The default stream may be waited for where all earlier work is there. A helper may wait for the stream that it is given, whichever that
    is, as long as some caller gives it another one.

    ## Verify
    A gate blocks the stream that writes. The reader waits for itself, or for the default stream, and reads the old value.

    ## References
    - CUDA Programming Guide, Asynchronous Execution, streams and events
    - PyTorch, CUDA semantics, "CUDA streams"; ``torch.Tensor.record_stream``
    - DeepSpeed #7898, diffusers #12721
    """

    code = "SL032"
    name = "wait-on-wrong-stream"
    category = Category.RACE
    default = "preview"
    fixes = ("safe", "unsafe")
    rests_on = ("stream-order", "event-order", "null-barrier-holds-nonblocking")

    def report(
        self,
        wait: Span,
        why: str,
        switched: Span | None,
        taken: Span | None,
        pairs: Iterable[tuple[Span, Span]],
        calls: Iterable[Span],
    ) -> Finding:
        """A wait or mark that orders nothing, as a finding; ``pairs`` are the accesses that it leaves unordered."""
        pairs = tuple(pairs)
        message, taking, help = _WORDS[why]
        steps = [Step("stream made current here", switched)] if switched is not None else []
        steps += [Step(taking, taken)] if taken is not None else []
        steps += [Step("called from here", call) for call in calls]
        for first, second in pairs[:1]:
            steps += [Step("work on another stream here", first), Step("used here, possibly incomplete", second)]
        found = self.finding_at(wait, message, trail=dict.fromkeys(step for step in steps if step.span != wait), help=help)
        return replace(found, pairs=pairs, shown=bool(pairs), facts={"why": why})


_WORDS = {
    "itself": (
        "wait of a stream for itself; it orders nothing",
        "the awaited stream is taken here",
        "take current_stream() before the scope of the side stream, or wait outside of that scope",
    ),
    "event": (
        "wait for an event of the same stream; it orders nothing",
        "the waiting stream itself records the event here",
        "record the event on the stream whose work is needed, after that work",
    ),
    "default": (
        "wait for the default stream; the work that is used next is on another one",
        "the default stream is taken here",
        "wait for the stream of the work: for current_stream() where the work is done, or for an event recorded there",
    ),
    "mark": (
        "memory is marked as used on its own stream; the mark has no effect",
        "the memory is made here",
        "call record_stream() with the stream that uses the memory; take current_stream() outside of the scope",
    ),
}
