"""SL017 ptds-legacy-mix."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Step
from streamlint.interpreter.facts import FileFacts


class PtdsLegacyMix(Check):
    """One part of a program has per-thread default streams, the other the legacy one.

    ## What it does
    Reports the option for per-thread default streams where an extension of PyTorch is built with it, and the macro in a C++ source of a
    target whose CUDA sources launch on the legacy default stream. It says what the build files at hand say, and nothing without them.

    ## Why is this bad
    Stream 0 means another stream in each part. PyTorch's default stream is the legacy one, and ``getCurrentCUDAStream()`` gives 0 for it:
    in an extension that is built so, 0 is the thread's own stream. The two are ordered with each other by a barrier at each change, but
    what the null stream orders is not: work of other blocking streams is waited for in one part, and not in the other.

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
    Where nothing is ever handed over as stream 0, and nothing relies on what the null stream waits for.

    ## Verify
    A blocking stream that writes a tensor is held shut, and an extension of PyTorch reads it on the default stream. Built with the option,
    it reads the old values; built without, it waits.

    ## References
    - CUDA Runtime API, stream synchronization behavior
    - ``c10/cuda/CUDAStream.cpp``: the default stream is ``nullptr``
    """

    code = "SL017"
    name = "ptds-legacy-mix"
    category = Category.PORTABILITY
    default = "preview"
    rests_on = ("per-thread-stream-is-blocking", "null-waits-for-blocking")
    needs = ((("CUDA_API_PER_THREAD", "default-stream"),),)

    def on_map(self, facts: FileFacts) -> Iterator[Finding]:
        for mix in facts.mixed_streams:
            torch = mix.other == "torch"
            yield self.finding_at(
                mix.at,
                "stream 0 is the thread's own stream in this extension, and the legacy default stream in PyTorch, which hands it over"
                if torch
                else f"stream 0 is the thread's own stream in this source, and the legacy one in '{mix.other}' of the same target",
                trail=(Step("an extension of PyTorch" if torch else "a launch on the legacy default stream", mix.because),),
                help="build the extension without it: the current stream is handed over as it is"
                if torch
                else "compile all sources of the target with --default-stream per-thread, or none",
            )
