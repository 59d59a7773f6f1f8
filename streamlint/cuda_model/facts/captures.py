"""What a stream capture takes, refuses and loses."""

from __future__ import annotations

from streamlint.cuda_model.strength import Fact, Strength

NEVER, MAY, OBSERVED, GUARANTEED = Strength

CAPTURES: tuple[Fact, ...] = (
    Fact(
        "capture-refuses-unsafe-calls",
        "Beside a capture that is not relaxed, calls that allocate, synchronize or query are refused (status 900) and it is lost.",
        GUARANTEED,
        "cudaThreadExchangeStreamCaptureMode: potentially unsafe API calls are prohibited",
        "H200: cudaMalloc and its like, stream-ordered allocation on other streams, synchronize and query calls, cudaGraphInstantiate",
        shown_by="T0 launch @ptds <gate\nT0 beginCapture.global @n1\nT0 streamSynchronize @b1\nT0 endCapture @n1",
    ),
    Fact(
        "capture-refuses-the-null-stream",
        "While a blocking stream is captured, any use of the null stream is refused with status 906 and the capture is lost.",
        GUARANTEED,
        "Programming Guide, CUDA Graphs: use of the legacy stream while a blocking stream is being captured is invalid",
        "H200: beside a non-blocking stream's capture, null-stream work and synchronous copies run at once, outside of the graph",
        shown_by="T0 launch @ptds <gate\nT0 beginCapture.global @b1\nT0 launch @null\nT0 endCapture @b1",
    ),
    Fact(
        "capture-refuses-synchronization",
        "Synchronizing or querying a captured stream, a captured event (status 907) or the device is refused in every mode.",
        GUARANTEED,
        "Programming Guide, CUDA Graphs: prohibited operations",
        shown_by="T0 launch @ptds <gate\nT0 beginCapture.global @n1\nT0 streamSynchronize @n1\nT0 endCapture @n1",
    ),
    Fact(
        "capture-refuses-graph-launch",
        "cudaGraphLaunch on a captured stream is refused with status 900 and the capture is lost.",
        OBSERVED,
        "",
        "H200",
        shown_by="T0 launch @ptds <gate\nT0 beginCapture.global @n1\nT0 graphLaunch @n1\nT0 endCapture @n1",
    ),
    Fact(
        "capture-refuses-outside-waits",
        "A captured stream that waits for an event of uncaptured work is refused with status 905.",
        GUARANTEED,
        "Programming Guide, CUDA Graphs: cudaErrorStreamCaptureIsolation",
        shown_by="T0 launch @ptds <gate\nT0 eventRecord @n2 #0\nT0 beginCapture.global @n1\nT0 streamWaitEvent @n1 #0\nT0 endCapture @n1",
    ),
    Fact(
        "captured-event-dies-with-its-capture",
        "After a capture has ended, or is lost, waiting for or querying an event that was last recorded in it is refused (status 1).",
        OBSERVED,
        "",
        "H200",
        shown_by="T0 launch @ptds <gate\nT0 beginCapture.global @n1\nT0 eventRecord @n1 #0\nT0 endCapture @n1\nT0 streamWaitEvent @n1 #0",
    ),
    Fact(
        "capture-must-be-joined",
        "A capture ends with status 904 if a stream that joined it has work which the origin was not made to wait for.",
        GUARANTEED,
        "Programming Guide, CUDA Graphs: cross-stream dependencies",
        "H200: a stream that only waited, and issued nothing, need not be joined",
        shown_by="T0 launch @ptds <gate\nT0 beginCapture.global @n1\nT0 eventRecord @n1 #0\n"
        "T0 streamWaitEvent @n2 #0\nT0 launch @n2\nT0 endCapture @n1",
    ),
)
