"""SL043 stream-in-compiled-region."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step


class StreamInCompiledRegion(Check):
    """A compiled function changes its input in place on a side stream, and waits for that stream inside.

    ## What it does
    Reports in-place changes of what a function of ``torch.compile`` is given, on a stream that the function makes current, where the
    function itself then waits for that stream. Functions that it calls are compiled with it.

    ## Why is this bad
    The compiler computes the new values into a buffer of its own and copies them back at the end, on the side stream: behind the wait that
    the function has written. So nothing orders the copy with what the caller does next, and the caller may read the old values.

    ## Example
    ```python
    @torch.compile
    def grow(values, side):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            values.mul_(2.0)
        torch.cuda.current_stream().wait_stream(side)
    ```

    ## Use instead
    ```python
    @torch.compile
    def grow(values):
        values.mul_(2.0)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        grow(values)
    torch.cuda.current_stream().wait_stream(side)
    ```

    ## When it is fine
    New tensors are returned in order. Functions that ``torch.compiler.disable`` leaves out, and the backend ``eager``, run as they are
    written. A caller that waits for the side stream itself waits for the copy, too.

    ## Verify
    A gate blocks the side stream. The compiled function joins it, and the caller reads the old value behind that.

    ## References
    - PyTorch #197416, input mutation and user-written stream joins
    - PyTorch #185546, #182971, user streams in compiled code
    """

    code = "SL043"
    name = "stream-in-compiled-region"
    category = Category.RACE
    default = "preview"
    rests_on = ("stream-order", "event-order", "event-covers-later-work")

    def told(self, change: Span, switched: Span, wait: Span, compiled: Span, calls: Iterable[Span]) -> Finding:
        """A change in place, as a finding: where the stream was made current, the wait behind it, what compiles the function."""
        steps = [Step("compiled here", compiled), *(Step("called from here", call) for call in calls)]
        steps += [Step("stream made current here", switched), Step("this wait does not cover the copy back", wait)]
        return self.finding_at(
            change,
            "in-place change on a side stream in compiled code; the written wait misses it",
            trail=steps,
            help="enter the stream, and wait for it, outside of the compiled function; or return a new tensor",
        )
