"""SL037: collectives of two communicators that nothing orders on a rank.

Two ranks that enter two collectives the other way round wait for each other for ever. With one of the two behind a gate on one rank, on a
stream of its own, what its host issued second runs first there: the order in which a rank issues them is not the order in which they run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import torch_module
from streamlint.verify.templates._ranks import Ranks, load, path_of

RULE, NAME = "SL037", "collectives-unordered"
_HANG = "deadlock: two ranks enter the collectives of two groups the other way round"
_CROSSED = "a rank runs the second collective while the first one has not begun"
_FACTS = {"count": 1024}
_IN_ORDER, _CROSSWISE = "in the order of their issue", "the second one first"


def _reduce_once(torch: Any, orders: Any, path: str, count: int) -> None:
    totals, (first, second) = load(path).prepare(), _pair(torch, count)
    orders.send("ready")
    while orders.recv():
        totals.reduce(first, second)
        torch.cuda.synchronize()


def _pair(torch: Any, count: int) -> list[Any]:
    return [torch.ones(count, device="cuda") for _ in range(2)]


def _branches(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    ranks, torch = Ranks.at(_reduce_once, lab, path_of(snippet), parameters["count"]), torch_module()
    totals, (first, second) = lab.keep(snippet.prepare()), lab.keep(_pair(torch, parameters["count"]))
    torch.cuda.synchronize()
    ranks.answer()

    def call() -> None:
        ranks.order("reduce")
        totals.reduce(first, second)
        torch.cuda.synchronize()

    return Trial(call)


def _reduce_in_turns(torch: Any, orders: Any, count: int) -> None:
    made: dict[str, tuple[Any, list[Any]]] = {}
    while path := orders.recv():
        if path not in made:
            made[path] = load(path).prepare(), _pair(torch, count)
            continue
        totals, (first, second) = made[path]
        totals.reduce(first, second)


def _streams(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    count = parameters["count"]
    ranks, torch = Ranks.at(_reduce_in_turns, lab, count), torch_module()
    path = path_of(snippet)
    ranks.order(path)
    totals = lab.keep(snippet.prepare())
    first, second = lab.keep(_pair(torch, count))
    done = lab.keep(torch.cuda.Event())

    def call() -> str:
        ranks.order(path)
        totals.reduce(first, second)
        done.record()
        while not lab.is_open():
            if done.query() and not lab.is_open():  # it may have opened in between
                return _CROSSWISE
        return _IN_ORDER

    return Trial(call, gate=handle_of(totals.side), reset=lambda _round: _IN_ORDER)


CASES = (
    Case(RULE, "crosswise_in_branches", "torch", Experiment.DEADLOCK, _HANG, "sl037_torch_branches", _branches, _FACTS, devices=2),
    Case(RULE, "second_runs_first", "torch", Experiment.DATA_RACE, _CROSSED, "sl037_torch_streams", _streams, _FACTS, devices=2),
)
