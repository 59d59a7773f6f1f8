"""SL019 peer-copy-unprepared."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Step
from streamlint.interpreter.facts import FileFacts
from streamlint.interpreter.trace import Trace, call_trail
from streamlint.operations import Copy, Operation


class PeerCopyUnprepared(Check):
    """A copy from one GPU to another in a program that never enables peer access.

    ## What it does
    Reports ``cudaMemcpyPeer``, ``cudaMemcpyPeerAsync`` and copies between memory of two devices in C++, where the whole program is at
    hand, from its ``main`` on, and nothing in it enables peer access, or asks for it.

    ## Why is this bad
    Without peer access the driver stages the copy through host memory, in pieces that the CPU drives. On two H200s a copy of 256 MB then
    takes ten times as long and its call a millisecond of the host, and a copy on another stream does not start before the first is done.

    ## Example
    ```cuda
    int main() {
      char *here, *there;
      cudaSetDevice(1);
      cudaMalloc(&there, 1 << 28);
      cudaSetDevice(0);
      cudaMalloc(&here, 1 << 28);
      cudaStream_t stream;
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      cudaMemcpyPeerAsync(there, 1, here, 0, 1 << 28, stream);
      cudaStreamSynchronize(stream);
    }
    ```

    ## Use instead
    ```cuda
    int main() {
      char *here, *there;
      cudaSetDevice(1);
      cudaMalloc(&there, 1 << 28);
      cudaSetDevice(0);
      cudaMalloc(&here, 1 << 28);
      int possible = 0;
      cudaDeviceCanAccessPeer(&possible, 0, 1);
      if (possible) cudaDeviceEnablePeerAccess(1, 0);
      cudaStream_t stream;
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      cudaMemcpyPeerAsync(there, 1, here, 0, 1 << 28, stream);
      cudaStreamSynchronize(stream);
    }
    ```

    ## When it is fine
    Where the devices cannot reach each other anyway, for small copies, and for a copy that is made once. PyTorch and CuPy enable peer
    access themselves.

    ## Verify
    A copy from one device to another is timed, with and without ``cudaDeviceEnablePeerAccess``. It needs two GPUs that can reach each
    other.

    ## References
    - CUDA Programming Guide, peer-to-peer memory copies
    """

    code = "SL019"
    name = "peer-copy-unprepared"
    category = Category.STALL
    default = "preview"
    rests_on = ("peer-copies-without-access-serialise", "peer-async-waits")
    needs = ((("emcpy",), ("Peer", "cudaSetDevice", "cuCtx")),)
    signs = needs[0][0]
    looks_at = (Copy,)

    def begins_with(self, operation: Operation) -> bool:
        return isinstance(operation, Copy) and operation.between_devices

    def on_operation(self, operation: Operation, path: Trace) -> Iterator[Finding]:
        if not isinstance(operation, Copy) or not operation.between_devices or operation.known_small or not path.facts.file.is_cuda:
            return
        context = operation.context
        if context.teardown or context.handles_error or context.setup:
            return
        facts: FileFacts = path.facts
        start = facts.program_without_peers
        if start is None:
            return
        yield self.finding(
            operation,
            "copies from one device to another, and nothing in the program enables peer access: the copy is staged through the host",
            trail=(Step("the program begins here, and enables peer access nowhere", start), *call_trail(operation)),
            help="call cudaDeviceEnablePeerAccess for each pair where cudaDeviceCanAccessPeer says yes"
            " (cudaMemPoolSetAccess for memory of a pool)",
            facts={"api": operation.api, "direction": "peer"},
        )
