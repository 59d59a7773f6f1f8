"""SL016 ptds-macro-ineffective."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Step
from streamlint.interpreter.facts import FileFacts


class PtdsMacroIneffective(Check):
    """The macro that asks for per-thread default streams stands where no header reads it.

    ## What it does
    Reports ``#define CUDA_API_PER_THREAD_DEFAULT_STREAM`` in a source that nvcc compiles as CUDA, and in a C++ source below a header that
    has read ``cuda_runtime_api.h`` already.

    ## Why is this bad
    The macro chooses between two sets of functions while ``cuda_runtime_api.h`` is read, and a header is read once. nvcc reads it before
    the first line of a ``.cu`` file, so a definition in the file comes too late wherever it stands. Nothing warns: the program goes on with
    the legacy default stream, all threads share it, and it is a barrier for their streams.

    ## Example
    ```cuda
    #define CUDA_API_PER_THREAD_DEFAULT_STREAM 1

    __global__ void grow(float* values);

    void worker(float* values) {
      grow<<<1, 256>>>(values);
    }
    ```

    ## Use instead
    ```cuda
    __global__ void grow(float* values);

    void worker(float* values) {
      grow<<<1, 256, 0, cudaStreamPerThread>>>(values);
    }
    ```

    ## When it is fine
    In a C++ source, above every CUDA header. Where the build gives the macro too, or ``--default-stream per-thread``: the definition is
    then idle and harmless, and is not reported.

    ## Verify
    A ``.cu`` file with the macro is compiled. A launch without a stream waits for work on a blocking stream that is held shut, and
    holds up a second stream behind it; with ``cudaStreamPerThread`` neither happens.

    ## References
    - CUDA Programming Guide, default stream: nvcc implicitly includes ``cuda_runtime.h`` at the top of the translation unit
    - ``cuda_runtime_api.h``, ``__CUDART_API_PER_THREAD_DEFAULT_STREAM``
    """

    code = "SL016"
    name = "ptds-macro-ineffective"
    category = Category.PORTABILITY
    default = "on"
    rests_on = ("per-thread-stream-is-blocking", "null-waits-for-blocking")
    needs = ((("CUDA_API_PER_THREAD",),),)

    def on_map(self, facts: FileFacts) -> Iterator[Finding]:
        if facts.per_thread:
            return
        for macro in facts.idle_macros:
            compiled = macro.why == "compiled"
            why = "nvcc reads cuda_runtime.h before the first line" if compiled else f"'{macro.header}' above it has read it already"
            step = "compiled as CUDA: the header was read before the first line" if compiled else "this header looks for the macro"
            yield self.finding_at(
                macro.at,
                f"this definition has no effect: {why}, and unless the build sets the macro, the default stream is the legacy one",
                trail=() if macro.because is None else (Step(step, macro.because),),
                help="compile with --default-stream per-thread, or launch on cudaStreamPerThread"
                if compiled
                else "define it above the first CUDA header, or compile with -DCUDA_API_PER_THREAD_DEFAULT_STREAM",
            )
