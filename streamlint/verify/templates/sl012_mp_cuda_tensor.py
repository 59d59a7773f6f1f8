"""SL012: CUDA tensors in queues between processes.

``put`` sends a handle and an event of one stream; what another stream does, or what comes later, is not waited for. Measured on an H200:
docs/cuda-model.md, the runs of a Queue and a SimpleQueue.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import SNIPPETS, Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import raised, torch_module
from streamlint.verify.templates._trials import COUNT, refilled

RULE, NAME = "SL012", "mp-cuda-tensor"
_RAISES = "the forked process ends with an exception (1)"


def _ready_for_processes() -> None:
    """What snippets start can import them, and comes of a server that has imported torch once: seconds for each otherwise."""
    if str(SNIPPETS) not in sys.path:
        sys.path.insert(0, str(SNIPPETS))
    multiprocessing.set_forkserver_preload(["torch", "torch.multiprocessing"])


class Reader:
    """A process of its own that adds up what it is sent. It imports the snippet by its name."""

    def __init__(self, lab: Lab, snippet: Any) -> None:
        _ready_for_processes()
        context = snippet.mp.get_context("forkserver")
        self.inbox, self.outbox = context.SimpleQueue(), context.SimpleQueue()
        self.process = lab.keep(context.Process(target=snippet.answer, args=(self.inbox, self.outbox), daemon=True))
        self.process.start()


def _race(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch = torch_module()
    values = lab.keep(torch.zeros(COUNT, device="cuda"))
    reader = lab.keep(Reader(lab, snippet))
    reset = refilled(values.fill_, COUNT, more=COUNT)
    side = getattr(snippet, "side", None)
    gate = handle_of(side) if side is not None else 0
    return Trial(lambda: snippet.hand_over(values, reader.inbox, reader.outbox), gate=gate, reset=reset)


def _fork(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch_module()
    _ready_for_processes()
    return Trial(snippet.run, expected=1)


def _relay(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch_module()
    _ready_for_processes()
    return Trial(lambda: raised(snippet.run, "received from another process"), expected=1)


def _ends(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch_module()
    _ready_for_processes()

    def failed() -> int:
        try:
            snippet.run()
        except Exception:  # PyTorch's own error, or that of a file which went with the sender
            return 1
        return 0

    return Trial(failed, expected=1)


CASES = (
    Case(
        RULE,
        "put_outside_of_the_scope",
        "torch",
        Experiment.DATA_RACE,
        "data race: the receiver waits for the default stream, not for the stream that writes",
        "sl012_scope",
        _race,
        kinds=("e",),
    ),
    Case(
        RULE,
        "written_after_the_put",
        "torch",
        Experiment.DATA_RACE,
        "data race: the receiver reads what was written after the put",
        "sl012_reuse",
        _race,
        kinds=("d", "f"),
    ),
    Case(RULE, "fork_after_cuda", "torch", Experiment.ERROR, _RAISES, "sl012_fork", _fork, kinds=("a",)),
    Case(RULE, "relay", "torch", Experiment.ERROR, "the put raises (1)", "sl012_relay", _relay, kinds=("c",)),
    Case(RULE, "sender_ends_after_the_put", "torch", Experiment.ERROR, "the get raises (1)", "sl012_ends", _ends, kinds=("b",)),
)
