"""SL017 ptds-legacy-mix."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step


class PtdsLegacyMix(Check):
    """One part of a program uses per-thread default streams, and another the legacy default stream.

    ## What it does
    Reports the option for per-thread default streams in the build of a PyTorch extension, and the macro in a C++ source of a target
    whose CUDA sources launch on the legacy default stream. The rule reads the build files of the run, and is silent without them.

    ## Why is this bad
    Stream 0 means a different stream in each part. PyTorch's default stream is the legacy one, and ``getCurrentCUDAStream()`` returns 0
    for it: in an extension built with the option, 0 is the per-thread stream. The two streams synchronize with each other, but only the
    legacy stream waits for other blocking streams, so that their work is ordered in one part and not in the other.

    ## Example
    ```python
    ops = torch.utils.cpp_extension.load(
        name="ops", sources=["ops.cu"], extra_cuda_cflags=["--default-stream=per-thread"]
    )
    ```

    ## Use instead
    ```python
    ops = torch.utils.cpp_extension.load(name="ops", sources=["ops.cu"])
    ```

    ## When it is fine
    No code passes stream 0 from one part to the other, and no code relies on the null stream's synchronization.

    ## Verify
    A gate blocks a blocking stream that writes a tensor, and a PyTorch extension reads the tensor on the default stream. Built with the
    option, it reads the old values; built without, it waits.

    ## References
    - CUDA Runtime API, stream synchronization behavior
    - ``c10/cuda/CUDAStream.cpp``: the default stream is ``nullptr``
    """

    code = "SL017"
    name = "ptds-legacy-mix"
    category = Category.PORTABILITY
    default = "preview"
    rests_on = ("per-thread-stream-is-blocking", "null-waits-for-blocking")

    def report(self, at: Span, other: str, because: Span) -> Finding:
        """A part that is built otherwise than another one, as a finding. ``other`` is torch, or a source's name."""
        torch = other == "torch"
        return self.finding_at(
            at,
            "per-thread default stream in this extension; PyTorch passes stream 0 as the legacy one"
            if torch
            else f"per-thread default stream in this source; '{other}' of the same target uses the legacy one",
            trail=(Step("PyTorch extension" if torch else "launch on the legacy default stream", because),),
            help="build the extension without this option, so that stream 0 means the same stream in both"
            if torch
            else "compile all sources of the target with --default-stream per-thread, or none",
        )
