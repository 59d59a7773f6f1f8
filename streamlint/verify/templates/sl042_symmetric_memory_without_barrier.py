"""SL042: symmetric memory of a peer, read or rewritten with no barrier between.

Both ranks run the same program. In the first case the peer begins once the gate is open: what is read without a barrier is what its buffer
held before. In the second one the read stands behind a gate, and the peer, which has none, refills its buffer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import OTHER_CLAIM, Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import torch_module
from streamlint.verify.templates._ranks import Ranks, load, path_of

RULE, NAME = "SL042", "symmetric-memory-without-barrier"
_STALE = "data race: the peer's buffer is read before the peer has filled it"
_NEWER = "data race: the peer fills its buffer again before it was read"
_FACTS: dict[str, Any] = {"count": 1 << 16}
_LATER = 1000.0  # what the buffer is refilled with, beside the number of the round


def _take_part(torch: Any, orders: Any, count: int) -> None:
    made: dict[str, Any] = {}
    while order := orders.recv():
        path, values = order
        if path not in made:
            given = (torch.cuda.Stream(),) if len(values) > 1 else ()
            made[path] = load(path).Exchange(count, *given)
        elif len(values) > 1:
            made[path].turn(*values)
        else:
            made[path].total(*values)


def _read(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    count = parameters["count"]
    ranks, path = Ranks.at(_take_part, lab, count), path_of(snippet)
    ranks.order((path, (0.0,)))
    exchange = lab.keep(snippet.Exchange(count))
    unused = lab.stream(blocking=False)  # the gate holds nothing of this GPU: the other rank takes it for its own
    values = [0.0]

    def reset(number: int) -> float:
        values[0] += 1.0
        return float(values[0] * count)

    def call() -> float:
        ranks.order_when_open((path, (values[0],)))
        return float(exchange.total(values[0]).item())

    return Trial(call, gate=unused.ptr, reset=reset)


def _refill(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    count = parameters["count"]
    ranks, path = Ranks.at(_take_part, lab, count), path_of(snippet)
    ranks.order((path, (0.0, 0.0)))
    side = lab.keep(torch_module().cuda.Stream())
    exchange = lab.keep(snippet.Exchange(count, side))
    values = [0.0]

    def reset(number: int) -> float:
        values[0] += 1.0
        return float(values[0] * count)

    def call() -> float:
        given = (values[0], values[0] + _LATER)
        ranks.order((path, given))
        return float(exchange.turn(*given).item())

    return Trial(call, gate=handle_of(side), reset=reset)


CASES = (
    Case(RULE, "read_before_the_peer_writes", "torch", Experiment.DATA_RACE, _STALE, "sl042_torch_read", _read, _FACTS, devices=2),
    Case(
        RULE,
        "refilled_before_the_peer_reads",
        "torch",
        Experiment.DATA_RACE,
        _NEWER,
        "sl042_torch_refill",
        _refill,
        _FACTS,
        devices=2,
        kinds=(OTHER_CLAIM,),
    ),
)
