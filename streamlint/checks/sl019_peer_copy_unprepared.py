"""SL019 peer-copy-unprepared."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import Copy, call_trail


class PeerCopyUnprepared(Check):
    """A copy from one GPU to another in a program that never enables peer access.

    ## What it does
    Reports ``cudaMemcpyPeer``, ``cudaMemcpyPeerAsync`` and copies between memory of two devices in C++, if the whole program from its
    ``main`` on is part of the run, and never enables or queries peer access.

    ## Why is this bad
    Without peer access the driver stages the copy through host memory, in pieces that the CPU drives. On two H200s a copy of 256 MB
    then takes ten times as long, its call occupies the host for a millisecond, and a copy on another stream starts only after the first
    completes.

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
    Devices without a peer connection, small copies, and copies that happen once. PyTorch and CuPy enable peer access themselves.

    ## Verify
    A copy between two devices is timed with and without ``cudaDeviceEnablePeerAccess``. The test needs two GPUs with a peer connection.

    ## References
    - CUDA Programming Guide, peer-to-peer memory copies
    """

    code = "SL019"
    name = "peer-copy-unprepared"
    category = Category.STALL
    default = "preview"
    languages = ("C++",)
    rests_on = ("peer-copies-without-access-serialise", "peer-async-waits")

    def report(self, copy: Copy, start: Span) -> Finding:
        """A copy between devices that its program does not prepare, as a finding."""
        return self.finding(
            copy,
            "copy between devices without enabled peer access; it is staged through the host",
            trail=(Step("the program starts here and never enables peer access", start), *call_trail(copy)),
            help="call cudaDeviceEnablePeerAccess for each pair that cudaDeviceCanAccessPeer allows"
            " (cudaMemPoolSetAccess for memory of a pool)",
            facts={"api": copy.api, "direction": "peer"},
        )
