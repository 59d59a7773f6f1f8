"""SL012 mp-cuda-tensor."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import (
    Operation,
    call_trail,
)
from streamlint.support.records import replace

# Words of unknown calls that wait for another process: they may be the answer that a tensor is no longer needed.


class MpCudaTensor(Check):
    """A CUDA tensor is sent to another process in a way that CUDA IPC does not support.

    ## What it does
    Follows CUDA tensors through ``torch.multiprocessing`` queues and pipes. The ``kind`` in a finding's facts names the error:

    - ``a``: a forked process uses CUDA after its parent has used it
    - ``b``: a process puts a tensor and exits, which ends the lifetime of the tensor's memory
    - ``c``: a tensor received from another process is forwarded
    - ``d``: a tensor is written in place after it was put, without an answer from the receiver
    - ``e``: the tensor's work is on a stream for which the receiver does not wait
    - ``f``: as ``d``, and the same buffer is put again
    - ``g``: one process puts a tensor and takes it again

    ## Why is this bad
    ``put`` copies nothing: it sends a handle of the memory, and an event recorded on the current stream of the thread that pickles.
    That is the default stream of the feeder thread for ``Queue``, and the current stream of the putting thread for ``SimpleQueue`` and
    ``Pipe``. The receiver does not wait for work on another stream or for later writes, and a second event does not reach a process
    that still holds the buffer.

    ## Example
    ```python
    weights = torch.zeros(1024, device="cuda")
    outbox = torch.multiprocessing.SimpleQueue()
    for step in range(100):
        outbox.put(weights)
        weights.add_(gradients)
    ```

    ## Use instead
    ```python
    weights = torch.zeros(1024, device="cuda")
    outbox = torch.multiprocessing.SimpleQueue()
    for step in range(100):
        outbox.put(weights.clone())
        weights.add_(gradients)
    ```

    ## When it is fine
    CPU tensors; tensors that are never accessed again; a put on the stream that wrote the tensor; an answer (an event, a barrier, a
    queue) before the next write; spawned processes that are joined.

    ## Verify
    A gate blocks the writer's stream; the child reads the old values. ``c`` and ``a`` raise an error.

    ## References
    - PyTorch, ``torch.multiprocessing``: sharing CUDA tensors
    - PyTorch, ``torch/multiprocessing/reductions.py``
    """

    code = "SL012"
    name = "mp-cuda-tensor"
    category = Category.RACE
    default = "on"
    languages = ("Python",)
    rests_on = ("event-order", "event-covers-later-work")
    # --- on the way out ---------------------------------------------------------------------------------------------------------------

    def report_unordered(self, put: Operation, written: Span, made: Span | None, feeder: bool) -> Finding:
        """A put of memory whose stream has not finished, as a finding."""
        pickling = "the feeder thread uses another stream" if feeder else "the current stream is another one"
        return self.finding(
            put,
            f"put of a CUDA tensor before its stream finishes; {pickling}",
            trail=(
                *((Step("stream created here", made),) if made is not None else ()),
                Step("tensor written on its stream here", written),
                *call_trail(put, "the put is reached from here"),
            ),
            help="synchronize the stream before the put, or put into a SimpleQueue while the stream is current"
            if feeder
            else "put the tensor while its stream is current, or synchronize that stream first",
            facts={"kind": "e", "api": "torch", "stream": "created"},
        )

    def report_relayed(self, put: Operation, source: Span, started: Span | None) -> Finding:
        """A put of what another process has sent, as a finding."""
        found = self.finding(
            put,
            "forwarding of a received CUDA tensor to another process; PyTorch raises an error",
            trail=(
                Step("tensor received here", source),
                *((Step("process started here", started),) if started is not None else ()),
            ),
            help="send a clone() of the tensor",
            facts={"kind": "c", "api": "torch"},
        )
        return replace(found, category=Category.ERROR)

    def report_outlived(self, put: Operation, started: Span) -> Finding:
        """A put by a process that ends behind it, as a finding."""
        found = self.finding(
            put,
            "put of a CUDA tensor before process exit; the receiver may lose the memory",
            trail=(Step("process started here", started),),
            help="wait for the receiver's answer (an event, a barrier) before the process exits",
            facts={"kind": "b", "api": "torch"},
        )
        return replace(found, category=Category.RACE)

    def report_own(self, taken: Operation, put: Span) -> Finding:
        """A get of what the same process has put, as a finding."""
        found = self.finding(
            taken,
            "get of a CUDA tensor by the process that put it; CUDA rejects the handle",
            trail=(Step("put here", put),),
            help="use queue.Queue within one process",
            facts={"kind": "g", "api": "torch"},
        )
        return replace(found, category=Category.ERROR)

    # --- afterwards -------------------------------------------------------------------------------------------------------------------

    def report_written(self, write: Operation, put: Span, is_repeated: bool) -> Finding:
        """A write to what was sent, as a finding. ``is_repeated``: the same memory is put once more behind it."""
        return self.finding(
            write,
            "in-place write to a CUDA tensor after sending it; the receiver may read mixed data",
            trail=(Step("sent here; the receiver has not confirmed the end of its work", put), *call_trail(write)),
            help="send a clone(), or wait for the receiver's answer before writing",
            facts={"kind": "f" if is_repeated else "d", "api": "torch"},
        )

    # --- processes ----------------------------------------------------------------------------------------------------------------------

    def report_fork(self, start: Operation, before: Span, inside: Span, method: str) -> Finding:
        """The start of a forked process between two uses of CUDA, as a finding."""
        how, when = ("", "") if method == "fork" else (" (Linux default)", "; fork is the default on Linux before Python 3.14")
        found = self.finding(
            start,
            f"fork{how} after CUDA initialization; CUDA work in the child raises an error",
            trail=(Step("CUDA used before the fork here", before), Step("CUDA used in the forked process here", inside)),
            help=f'start the process with the context of multiprocessing.get_context("spawn"){when}',
            facts={"kind": "a", "api": "torch", "method": method},
        )
        return replace(found, category=Category.ERROR)
