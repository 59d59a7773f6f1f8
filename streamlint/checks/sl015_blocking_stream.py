"""SL015 blocking-stream."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Step
from streamlint.interpreter.trace import Trace, call_trail
from streamlint.operations import Copy, Launch, Operation, Wait, on_other_stream


class BlockingStream(Check):
    """A stream that is made to run beside other work, and that the default stream holds up.

    ## What it does
    Reports streams that are created blocking (``cudaStreamCreate``, ``cupy.cuda.Stream()``, numba's ``cuda.stream()``), where a kernel
    on the stream is still in flight when other data is worked on in the null stream.

    ## Why is this bad
    The null stream is a barrier for blocking streams: its work waits until theirs is done, and theirs behind it waits for it. The stream
    was made so that work can overlap, and it does not.

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
    Where the program relies on the barrier. A stream that is made non-blocking is not ordered with the null stream any more:
    ``cudaMemcpy``, ``cudaStreamSynchronize(0)`` and launches without a stream see old data then (SL014, SL006). Look for them first.

    ## Verify
    With a blocking stream held shut, work on the null stream does not start. With a non-blocking one it does.

    ## References
    - CUDA Runtime API, stream synchronization behavior
    """

    code = "SL015"
    name = "blocking-stream"
    category = Category.STALL
    default = "off"
    rests_on = ("null-waits-for-blocking", "blocking-waits-for-null")
    needs = ((("tream",),),)
    signs = needs[0][0]
    looks_at = (Copy, Launch)

    def begins_with(self, operation: Operation) -> bool:
        return on_other_stream(operation)

    def on_operation(self, operation: Operation, path: Trace) -> Iterator[Finding]:
        if not isinstance(operation, Copy | Launch) or operation.stream is None or operation.stream.kind != "null":
            return
        context = operation.context
        if context.setup or context.teardown or context.handles_error or context.callback is not None:
            return
        if path.facts.file.is_cuda and path.facts.per_thread:
            return
        for stream in operation.beside:
            work = _work_on(stream, path) if stream.kind == "created" and stream.blocking and stream.trail else []
            launches = [w for w in work if isinstance(w, Launch) and w.index < operation.index]
            if not launches or _is_relied_upon(stream, work, path):
                continue
            yield self.finding(
                operation,
                "the stream is a blocking one: work on the default stream waits for its kernels, and it waits for that work"
                + path.facts.if_legacy,
                span=stream.trail[0].span,
                trail=(
                    Step("a kernel on the stream", launches[-1].span),
                    Step("on the default stream, and waits for it", operation.span),
                    *call_trail(operation),
                ),
                help=_HELP.get(stream.library, _HELP[""]),
                facts={"stream": "blocking", "api": operation.api},
            )


_FIRST = ", once nothing relies on its order with the default stream (SL014)"
_HELP = {
    "": f"create it with the flag cudaStreamNonBlocking{_FIRST}",
    "cuda-driver": f"create it with the flag CU_STREAM_NON_BLOCKING{_FIRST}",
    "cupy": f"create it with non_blocking=True{_FIRST}",
    "numba": "give the work on the default stream a stream of its own: cuda.stream() makes blocking ones only",
}


def _work_on(stream: object, path: Trace) -> list[Copy | Launch]:
    return [o for o in path.operations if isinstance(o, Copy | Launch) and o.stream is stream]


def _is_relied_upon(stream: object, work: list[Copy | Launch], path: Trace) -> bool:
    """Whether the barrier is an order that the path may need: the null stream, or another one behind it, meets the stream's data."""
    touched = {storage for each in work for storage in _storages(each)}
    for operation in path.operations:
        if isinstance(operation, Wait) and getattr(operation.stream, "kind", "") == "null":
            return True
        if isinstance(operation, Copy | Launch) and operation.stream is not stream and touched & _storages(operation):
            return True
    return False


def _storages(operation: Copy | Launch) -> set[int]:
    buffers = (operation.dst, operation.src) if isinstance(operation, Copy) else (*operation.reads, *operation.writes)
    return {id(buffer.storage) for buffer in buffers if buffer is not None}
