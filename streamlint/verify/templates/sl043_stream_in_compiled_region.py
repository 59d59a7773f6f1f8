"""SL043: a function that ``torch.compile`` compiles waits for a stream, synchronizes one, or marks memory for one.

PyTorch 2.11 on an H100 (one program, run as it is, compiled, with ``fullgraph=True`` and with ``mode="reduce-overhead"``): stream
switches and waits for streams are traced without a graph break and left out, and all kernels run on the caller's stream.
``Stream.synchronize`` and ``Event.synchronize`` return at once (0.4 ms where the program as written takes 46 ms). ``record_stream`` and
``Event.record()`` make the call fail, and ``Event.wait()`` ended the process. ``torch.cuda.synchronize`` breaks the graph, and waits.

So what forks and joins within the function is right, and does not overlap. What was queued on the stream outside of it is not awaited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import torch_module
from streamlint.verify.templates._trials import BYTES, COUNT, Turn

RULE, NAME = "SL043", "stream-in-compiled-region"
_STALE = "data race: the compiled function leaves the wait out, and the old value is read"
_LEFT = "data race: the compiled function runs on the caller's stream, and reads the old value"
_FAILS = "the compiled function raises (1)"
_PARAMETERS: dict[str, Any] = {"bytes": BYTES, "stream": "non-blocking"}
_NEEDS = ("python-headers",)  # Triton compiles the calls of its kernels


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    """The side stream writes; the compiled function waits for it, and reads."""
    torch = torch_module()
    side, values, turn = lab.keep(torch.cuda.Stream()), lab.keep(torch.zeros(COUNT, device="cuda")), Turn(1, 1.0)
    return Trial(lambda: snippet.last(turn.value, values, side), gate=handle_of(side), reset=turn.reset)


def _torch_fork(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    """The compiled function lets another stream wait for its own work, and that stream reads."""
    torch = torch_module()
    first, second, turn = lab.keep(torch.cuda.Stream()), lab.keep(torch.cuda.Stream()), Turn(1, 1.0)
    return Trial(lambda: snippet.last(turn.value, first, second), gate=handle_of(first), reset=turn.reset)


def _torch_synchronize(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    """The side stream copies to the host; the compiled function synchronizes it, and the host reads."""
    torch = torch_module()
    side, turn = lab.keep(torch.cuda.Stream()), Turn(1)
    values, others = lab.keep(torch.zeros(COUNT, device="cuda")), lab.keep(torch.zeros(COUNT, device="cuda"))
    host = lab.keep(torch.zeros(COUNT, pin_memory=True))
    return Trial(lambda: snippet.last(turn.value, values, others, host, side), gate=handle_of(side), reset=turn.reset)


def _fails(work: Callable[[], object]) -> int:
    try:
        work()
    except Exception:
        return 1
    return 0


def _torch_fails(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch = torch_module()
    values, side = lab.keep(torch.ones(COUNT, device="cuda")), lab.keep(torch.cuda.Stream())
    return Trial(lambda: _fails(lambda: snippet.run(values, side)), expected=1)


CASES = (
    Case(RULE, "waits_for_other_work", "torch", Experiment.DATA_RACE, _STALE, "sl043_torch_wait", _torch, _PARAMETERS, _NEEDS),
    Case(RULE, "works_on_other_stream", "torch", Experiment.DATA_RACE, _LEFT, "sl043_torch_scope", _torch, _PARAMETERS, _NEEDS),
    Case(RULE, "lets_another_wait", "torch", Experiment.DATA_RACE, _STALE, "sl043_torch_fork", _torch_fork, _PARAMETERS, _NEEDS),
    Case(RULE, "waits_for_event", "torch", Experiment.DATA_RACE, _STALE, "sl043_torch_event_wait", _torch, _PARAMETERS, _NEEDS),
    Case(RULE, "synchronizes", "torch", Experiment.DATA_RACE, _STALE, "sl043_torch_synchronize", _torch_synchronize, _PARAMETERS, _NEEDS),
    Case(RULE, "marks_memory", "torch", Experiment.ERROR, _FAILS, "sl043_torch_mark", _torch_fails, _PARAMETERS, _NEEDS),
    Case(RULE, "records_event", "torch", Experiment.ERROR, _FAILS, "sl043_torch_event", _torch_fails, _PARAMETERS, _NEEDS),
)
