"""SL043 stream-in-compiled-region."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.support.records import replace


class StreamInCompiledRegion(Check):
    """A compiled function waits for a stream or synchronizes it, and the compiler leaves that out.

    ## What it does
    Reports calls in functions of ``torch.compile``, and in those that they call, that order their work with work outside: waits for streams
    that the compiled code never makes current, waits for events that it does not record, ``synchronize()`` of streams and events. It also
    reports ``record_stream()`` and ``Event.record()`` there, which the compiler cannot compile, and work in the scope of a stream on which
    work of others writes its inputs.

    ## Why is this bad
    PyTorch 2.11 traces these calls without a graph break and then leaves them out: the code that it generates runs on the caller's
    stream, and waits for nothing. Memory that another stream still writes is read early, and the host goes on.

    ## Example
    ```python
    @torch.compile
    def grow(values, side):
        torch.cuda.current_stream().wait_stream(side)
        return values + 1.0
    ```

    ## Use instead
    ```python
    @torch.compile
    def grow(values):
        return values + 1.0

    side = torch.cuda.Stream()
    torch.cuda.current_stream().wait_stream(side)
    grow(rows)
    ```

    ## When it is fine
    Work that the compiled code forks and joins by itself runs in order, on one stream. Functions that ``torch.compiler.disable`` leaves
    out, and the backend ``eager``, run as they are written; ``torch.cuda.synchronize()`` breaks the graph, and waits. Later releases keep
    more of the order.

    ## Verify
    A gate blocks the side stream. The compiled function waits for it, and reads the old value.

    ## References
    - PyTorch #109848, stream operations in the graph are ignored by the remaining compiler
    - PyTorch #185546, #182971, #197416, streams in compiled code of later releases
    """

    code = "SL043"
    name = "stream-in-compiled-region"
    category = Category.RACE
    languages = ("Python",)
    rests_on = ("stream-order", "event-order")

    def report(self, call: Span, name: str, why: str, compiled: Span, calls: Iterable[Span], first: Span | None = None) -> Finding:
        """A call in compiled code, as a finding: what becomes of it, what compiles the code, and the calls from there; ``first`` is work of
        others that it does not wait for."""
        message, help = _WORDS[why]
        trail = [Step("compiled here", compiled), *(Step("called from here", each) for each in calls)]
        trail += [Step("work on another stream here", first)] if first is not None else []
        found = self.finding_at(call, message.format(name=name), trail=dict.fromkeys(trail), help=help)
        return replace(found, facts={"why": why})


_OUTSIDE = "outside of the compiled function, or leave the function around it out with torch.compiler.disable"
_WORDS = {
    "wait": ("wait for other work in compiled code; PyTorch 2.11 leaves it out", f"wait {_OUTSIDE}"),
    "synchronize": ("synchronization in compiled code; PyTorch 2.11 leaves it out", f"synchronize {_OUTSIDE}"),
    "work": (
        "work on a stream in compiled code; PyTorch 2.11 runs it on the caller's stream",
        f"make the stream current {_OUTSIDE}",
    ),
    "fails": ("{name}() in compiled code; PyTorch 2.11 cannot compile it", f"call it {_OUTSIDE}"),
}
