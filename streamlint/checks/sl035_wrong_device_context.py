"""SL035 wrong-device-context."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import Operation, call_trail


class WrongDeviceContext(Check):
    """Work in a new thread, or in an extension, is done on another device than that of its data.

    ## What it does
    Reports work that runs on the current device of a thread (``torch.cuda.synchronize()``, ``torch.cuda.Stream()``, ``device="cuda"``, a
    kernel of CuPy or numba, a CUDA launch) in a thread that never chooses a device, where the code that starts it has chosen one with
    ``torch.cuda.set_device``, ``cupy.cuda.Device`` or ``cudaSetDevice``. Also reports a kernel of an extension that is launched on
    ``getCurrentCUDAStream()`` without a device guard, where Python calls it with a tensor of a device that is not the current one, or
    where another function of the module guards the device of its tensor, and
    ``torch.cuda.current_stream()`` that Python passes to an unknown kernel together with such a tensor.

    ## Why is this bad
    The current device belongs to the thread, and a new thread begins on device 0. It waits for device 0, allocates there, and launches
    there: the work of the other device is still in flight, memory is taken on the wrong device, and a kernel reads memory of another
    device before it is written, or fails.

    ## Example
    ```python
    torch.cuda.set_device(rank)
    copied = []

    def load():
        copied.append(torch.ones(1024).cuda())

    loader = threading.Thread(target=load)
    loader.start()
    ```

    ## Use instead
    ```python
    torch.cuda.set_device(rank)
    copied = []

    def load():
        torch.cuda.set_device(rank)
        copied.append(torch.ones(1024).cuda())

    loader = threading.Thread(target=load)
    loader.start()
    ```

    ## When it is fine
    Each process sees one device (``CUDA_VISIBLE_DEVICES``), or the device that is set is always the first one. PyTorch's own operations
    on a tensor run on the tensor's device, whichever device is current, and so do copies and launches on a stream of another device.
    They are not reported.

    ## Verify
    With two GPUs: device 1 works, and a thread calls ``torch.cuda.synchronize()``. It returns at once, and the old value is read. An
    event that a thread creates cannot be recorded on a stream of device 1 (``cudaErrorInvalidResourceHandle``).

    ## References
    - CUDA Runtime API, ``cudaSetDevice``: the device is current for the calling host thread
    - CUDA Programming Guide, "Programming Systems with Multiple GPUs": device 0 is current by default; an event is recorded on streams
      of its own device only
    - PyTorch, "CUDA semantics": the selected device
    """

    code = "SL035"
    name = "wrong-device-context"
    category = Category.RACE
    default = "preview"
    rests_on = ("stream-order",)

    def report(self, work: Operation, start: Span, chosen: Span) -> Finding:
        """Work of a thread on its first current device, as a finding."""
        return self.finding(
            work,
            "thread never sets its device; its work runs on device 0",
            trail=(Step("thread started here", start), Step("device chosen here, for this thread only", chosen), *call_trail(work)),
            help="set the device in the function that the thread runs, or name the device in the call",
            facts={"api": work.api},
        )

    def report_extension(self, launch: Operation, made: Span, calls: tuple[Span, ...]) -> Finding:
        """A kernel of an extension that runs on the current device, whatever its tensors are on, as a finding."""
        steps = tuple(Step("called from here with a tensor of another device", call) for call in calls)
        return self.finding(
            launch,
            "kernel launched without a device guard; its tensor is not on the current device",
            trail=(Step("tensor made on that device here", made), *steps),
            help="construct a c10::cuda::CUDAGuard of the tensor's device first",
            facts={"api": launch.api},
        )

    def report_sibling(self, launch: Operation, guard: Span) -> Finding:
        """A kernel of a bound function that lacks the device guard that another function of its module has, as a finding."""
        return self.finding(
            launch,
            "kernel launched without a device guard; its tensor may be on another device",
            trail=(Step("another function of the module guards here", guard),),
            help="construct a c10::cuda::CUDAGuard of the tensor's device first",
            facts={"api": launch.api},
        )

    def report_stream(self, asked: Operation, made: Span, launch: Span) -> Finding:
        """A stream of the current device that a kernel gets with a tensor of another one, as a finding."""
        return self.finding(
            asked,
            "stream of the current device is passed with a tensor of another device",
            trail=(Step("tensor made on that device here", made), Step("stream and tensor are passed here", launch), *call_trail(asked)),
            help="enter torch.cuda.device(tensor.device) around both, and pass tensor.device to current_stream",
            facts={"api": asked.api},
        )
