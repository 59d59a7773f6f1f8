"""SL015 blocking-stream."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step


class BlockingStream(Check):
    """A blocking stream that serializes with the default stream.

    ## What it does
    Reports streams that are created blocking (``cudaStreamCreate``, ``cupy.cuda.Stream()``, numba's ``cuda.stream()``) if a kernel on
    the stream is still in flight when the null stream works on other data.

    ## Why is this bad
    The null stream synchronizes with blocking streams: its work waits for their earlier work, and their later work waits for it. The
    stream was created for overlap, and does not overlap.

    ## Example
    ```cuda
    __global__ void refine(float* mesh);
    __global__ void draw(float* image);

    void frame(float* mesh, float* image) {
      cudaStream_t stream;
      cudaStreamCreate(&stream);
      refine<<<64, 256, 0, stream>>>(mesh);
      draw<<<64, 256>>>(image);
      cudaDeviceSynchronize();
    }
    ```

    ## Use instead
    ```cuda
    __global__ void refine(float* mesh);
    __global__ void draw(float* image);

    void frame(float* mesh, float* image) {
      cudaStream_t stream;
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      refine<<<64, 256, 0, stream>>>(mesh);
      draw<<<64, 256>>>(image);
      cudaDeviceSynchronize();
    }
    ```

    ## When it is fine
    The program relies on this order. A non-blocking stream is no longer ordered with the null stream: ``cudaMemcpy``,
    ``cudaStreamSynchronize(0)`` and launches without a stream then see old data (SL014, SL006). Check for them first.

    ## Verify
    A gate blocks a blocking stream: work on the null stream does not start. With a non-blocking stream it starts.

    ## References
    - CUDA Runtime API, stream synchronization behavior
    """

    code = "SL015"
    name = "blocking-stream"
    category = Category.STALL
    default = "off"
    rests_on = ("null-waits-for-blocking", "blocking-waits-for-null")

    def report(self, made: Span, kernel: Span, null: Span, calls: Iterable[Span], library: str, suffix: str, qualname: str) -> Finding:
        """A blocking stream whose kernel is in flight where the null stream works, as a finding."""
        steps = (
            Step("kernel on the blocking stream", kernel),
            Step("work on the default stream, which waits for the kernel", null),
            *(Step("called from here", call) for call in calls),
        )
        message = f"creation of a blocking stream; its kernels serialize with the default stream{suffix}"
        return self.finding_at(made, message, trail=steps, help=_HELP.get(library, _HELP[""]), qualname=qualname)


_FIRST = ", once nothing relies on its order with the default stream (SL014)"
_HELP = {
    "": f"create it with the flag cudaStreamNonBlocking{_FIRST}",
    "cuda-driver": f"create it with the flag CU_STREAM_NON_BLOCKING{_FIRST}",
    "cupy": f"create it with non_blocking=True{_FIRST}",
    "numba": "move the work from the default stream to another stream; cuda.stream() creates blocking streams only",
}
