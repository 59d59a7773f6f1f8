"""SL014 legacy-sync-misses-nonblocking."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.support.records import replace


class LegacySyncMissesNonblocking(Check):
    """A synchronization of the default stream does not wait for a non-blocking stream.

    ## What it does
    Reports synchronous copies, synchronizations and event records on the default (null) stream between work on a non-blocking stream
    and an access to its result, where nothing else orders the two.

    ## Why is this bad
    The null stream waits for blocking streams only. It does not wait for a stream created with ``cudaStreamNonBlocking`` (all of
    PyTorch's are): ``cudaMemcpy``, ``cudaStreamSynchronize(0)`` and ``cudaEventRecord(event)`` return or complete early, and the host
    reads old data. The bug often appears when a blocking stream is made non-blocking to remove stalls.

    ## Example
    ```cuda
    __global__ void square(float* values);

    void sum(float* values, float* host, size_t bytes) {
      cudaStream_t stream;
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      cudaMemsetAsync(values, 0, bytes, stream);
      cudaMemcpy(host, values, bytes, cudaMemcpyDeviceToHost);
    }
    ```

    ## Use instead
    ```cuda
    __global__ void square(float* values);

    void sum(float* values, float* host, size_t bytes) {
      cudaStream_t stream;
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      cudaMemsetAsync(values, 0, bytes, stream);
      cudaMemcpyAsync(host, values, bytes, cudaMemcpyDeviceToHost, stream);
      cudaStreamSynchronize(stream);
    }
    ```

    ## When it is fine
    With blocking streams (``cudaStreamCreate``, ``cupy.cuda.Stream()``), the null stream orders the work. The stream itself, the
    device, or an event recorded on the stream may be synchronized as well.

    ## Verify
    A gate blocks the non-blocking stream; the synchronization of the null stream returns anyway, and the old value is read.

    ## References
    - CUDA Runtime API, stream synchronization behavior
    """

    code = "SL014"
    name = "legacy-sync-misses-nonblocking"
    category = Category.RACE
    default = "on"
    languages = ("Python", "Cython", "C++")
    rests_on = ("null-synchronize-waits-for-blocking", "null-barrier-holds-nonblocking")

    def report(
        self,
        legacy: Span,
        kind: str,
        work: Span | None,
        made: Span | None,
        read: Span | None,
        passed: Span | None,
        calls: Iterable[Span],
    ) -> Finding:
        """A call on the default stream that misses work, as a finding; without ``made`` the stream is a caller's."""
        help = "synchronize the non-blocking stream, or an event recorded on it"
        whose = "the non-blocking stream"
        first = "work on the non-blocking stream"
        if made is None:
            help = "copy on the caller's stream, and synchronize it before the value is needed"
            whose, first = "the caller's non-blocking stream", "this function works on its stream parameter"
        steps = [Step(first, work)] if work is not None else []
        steps += [Step("non-blocking stream created here", made)] if made is not None else []
        steps += [Step("result accessed here, possibly incomplete", read)] if read is not None else []
        steps += [Step("call that passes the default stream", passed)] if passed is not None else []
        steps += [Step("called from here", call) for call in calls]
        message = f"{kind} default stream; it does not wait for {whose}"
        found = self.finding_at(legacy, message, trail=steps, help=help)
        return found if work is None else replace(found, pairs=((work, read or legacy),))
