"""SL041 dependent-launch-without-wait."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import Operation, call_trail


class DependentLaunchWithoutWait(Check):
    """A kernel that may begin before its predecessor has ended reads the predecessor's output, and does not wait for it.

    ## What it does
    Reports a launch with programmatic stream serialization (``cudaLaunchKernelEx`` or ``cuLaunchKernelEx`` with
    ``cudaLaunchAttributeProgrammaticStreamSerialization``), if the kernel reads memory that the kernel before it on the stream writes,
    and no ``cudaGridDependencySynchronize()`` or ``griddepcontrol.wait`` comes before the read. Both kernels and both launches are in
    the program. The device functions that the kernel calls are followed.

    With ``evidence = "possible"``, a launch is reported too whose predecessor does not trigger it before its last write: it never calls
    ``cudaTriggerProgrammaticLaunchCompletion()``, or only at its end. Then the kernel begins before the predecessor's writes are sure
    to be visible; in 960 runs on an H100 they were.

    ## Why is this bad
    The attribute takes away the order of the stream: the kernel begins as soon as all blocks of its predecessor have triggered the launch
    or ended, and it reads memory that the predecessor has not written yet. Without the early trigger the time is short, and the race
    is rare and hard to reproduce.

    ## Example
    ```cuda
    __global__ void scale(const float* in, float* mid, int n) {
      cudaTriggerProgrammaticLaunchCompletion();
      const int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) mid[i] = 2.0f * in[i];
    }

    __global__ void shift(const float* mid, float* out, int n) {
      const int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) out[i] = mid[i] + 1.0f;
    }

    void run(const float* in, float* mid, float* out, int n, cudaStream_t stream) {
      scale<<<n / 256, 256, 0, stream>>>(in, mid, n);
      cudaLaunchAttribute early = {};
      early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      early.val.programmaticStreamSerializationAllowed = 1;
      cudaLaunchConfig_t config = {n / 256, 256, 0, stream, &early, 1};
      cudaLaunchKernelEx(&config, shift, mid, out, n);
    }
    ```

    ## Use instead
    ```cuda
    __global__ void scale(const float* in, float* mid, int n) {
      cudaTriggerProgrammaticLaunchCompletion();
      const int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) mid[i] = 2.0f * in[i];
    }

    __global__ void shift(const float* mid, float* out, int n) {
      const int i = blockIdx.x * blockDim.x + threadIdx.x;
      cudaGridDependencySynchronize();
      if (i < n) out[i] = mid[i] + 1.0f;
    }

    void run(const float* in, float* mid, float* out, int n, cudaStream_t stream) {
      scale<<<n / 256, 256, 0, stream>>>(in, mid, n);
      cudaLaunchAttribute early = {};
      early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      early.val.programmaticStreamSerializationAllowed = 1;
      cudaLaunchConfig_t config = {n / 256, 256, 0, stream, &early, 1};
      cudaLaunchKernelEx(&config, shift, mid, out, n);
    }
    ```

    ## When it is fine
    The predecessor does not write the memory that the kernel reads before it waits (weights, tables), or the program never runs on a device
    of compute capability 9.0 or newer: older ones start the kernel after its predecessor has ended.

    ## Verify
    The first kernel triggers the launch, waits a millisecond, and writes; the second one reads. Without the wait it reads the old values.

    ## References
    - CUDA Programming Guide, "Programmatic Dependent Launch and Synchronization"
    - PTX ISA, "griddepcontrol"
    """

    code = "SL041"
    name = "dependent-launch-without-wait"
    category = Category.RACE
    languages = ("C++",)
    rests_on = ("stream-order",)

    def report(self, launch: Operation, steps: tuple[Step, ...], late: Span | None) -> Finding:
        """A dependent launch that nothing orders behind its predecessor, as a finding; ``late`` is a wait behind the read."""
        return self.finding(
            launch,
            "kernel launched early reads its predecessor's output without a wait; it may read old values",
            trail=(*steps, *((Step("waits only here", late),) if late is not None else ()), *call_trail(launch)),
            help="call cudaGridDependencySynchronize() in the kernel before it reads the output of an earlier kernel",
            facts={"api": launch.api},
        )
