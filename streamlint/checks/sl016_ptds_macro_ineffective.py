"""SL016 ptds-macro-ineffective."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step


class PtdsMacroIneffective(Check):
    """The macro for per-thread default streams is defined too late to have an effect.

    ## What it does
    Reports ``#define CUDA_API_PER_THREAD_DEFAULT_STREAM`` in a source that nvcc compiles as CUDA, and in a C++ source below a header
    that includes ``cuda_runtime_api.h``.

    ## Why is this bad
    The macro selects between two sets of functions when ``cuda_runtime_api.h`` is read, and a header is read once. nvcc reads it before
    the first line of a ``.cu`` file, so that any definition in the file comes too late. No warning appears: the program continues with
    the legacy default stream, which all threads share and which synchronizes with their streams.

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
    In a C++ source, above every CUDA header. If the build defines the macro too, or sets ``--default-stream per-thread``, the
    definition is redundant and is not reported.

    ## Verify
    A ``.cu`` file with the macro is compiled, and a gate blocks a blocking stream. A launch without a stream waits for it, and delays a
    second stream; with ``cudaStreamPerThread`` neither happens.

    ## References
    - CUDA Programming Guide, default stream: nvcc implicitly includes ``cuda_runtime.h`` at the top of the translation unit
    - ``cuda_runtime_api.h``, ``__CUDART_API_PER_THREAD_DEFAULT_STREAM``
    """

    code = "SL016"
    name = "ptds-macro-ineffective"
    category = Category.PORTABILITY
    default = "on"
    rests_on = ("per-thread-stream-is-blocking", "null-waits-for-blocking")

    def report(self, at: Span, is_compiled: bool, because: Span | None, header: str) -> Finding:
        """A definition that nothing reads, as a finding."""
        reader = "nvcc reads cuda_runtime.h" if is_compiled else f"'{header}' reads it"
        step = "compiled as CUDA; nvcc reads the header before the first line" if is_compiled else "this header reads the macro"
        return self.finding_at(
            at,
            f"macro defined after {reader}; the default stream stays legacy unless built otherwise",
            trail=() if because is None else (Step(step, because),),
            help="compile with --default-stream per-thread, or launch on cudaStreamPerThread"
            if is_compiled
            else "define it above the first CUDA header, or compile with -DCUDA_API_PER_THREAD_DEFAULT_STREAM",
        )
