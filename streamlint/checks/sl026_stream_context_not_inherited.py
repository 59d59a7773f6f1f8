"""SL026 stream-context-not-inherited."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import Operation, call_trail


class StreamContextNotInherited(Check):
    """A thread is started under a stream, but its work runs on the default stream.

    ## What it does
    Reports the start of a thread (``threading.Thread``, ``submit`` and ``map`` of a pool, ``asyncio.to_thread``, ``run_in_executor``)
    while a stream other than the default one is current, if the thread's function works on the thread's default stream.

    ## Why is this bad
    The current stream of PyTorch and CuPy is thread-local. A new thread starts on the default stream, whichever stream is current at
    the start: its work is not ordered with the work of that stream, reads data before it is written, and its own results are read too
    early.

    ## Example
    ```python
    stream = torch.cuda.Stream()

    def score(tokens):
        sums.append(tokens.sum())

    with torch.cuda.stream(stream):
        tokens = ids.to("cuda", non_blocking=True).float()
        worker = threading.Thread(target=score, args=(tokens,))
        worker.start()
    ```

    ## Use instead
    ```python
    stream = torch.cuda.Stream()

    def score(tokens):
        with torch.cuda.stream(stream):
            sums.append(tokens.sum())

    with torch.cuda.stream(stream):
        tokens = ids.to("cuda", non_blocking=True).float()
        worker = threading.Thread(target=score, args=(tokens,))
        worker.start()
    ```

    ## When it is fine
    The function enters a stream itself, waits for the stream first, or only computes on the CPU; or the stream has been synchronized
    and the function waits for its own work before it returns.

    ## Verify
    A gate blocks the stream before the input is written; the thread reads the input. It reads the old values.

    ## References
    - PyTorch, ``c10/cuda/CUDAStream.cpp``: the current streams are thread-local
    - CuPy, "Current stream": per thread and per device
    """

    code = "SL026"
    name = "stream-context-not-inherited"
    category = Category.RACE
    default = "on"
    rests_on = ("stream-order", "event-order", "null-barrier-holds-nonblocking")

    def report(self, start: Operation, made: Span | None, work: Span, kind: str, library: str = "") -> Finding:
        """The start of a thread whose work runs on its default stream, as a finding."""
        return self.finding(
            start,
            "thread started under a stream does not inherit it; it works on the default stream",
            trail=(
                *((Step("stream that is current at the start", made),) if made is not None else ()),
                Step("runs on the new thread's default stream", work),
                *call_trail(start, "the start is reached from here"),
            ),
            help="enter the stream in the function that the thread runs",
            facts={"api": library or start.api, "stream": kind},
        )
