"""What a value is called that the host waits for."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.facts.call_graph import CallGraph
from streamlint.facts.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.operands import behind
from streamlint.waits.origins import GRADIENTS, LOSS, OUTPUT, PARAMETERS, TERM, Place
from streamlint.waits.wait import Wait

ON_DEVICE = "a device value"
_RANK = (LOSS, OUTPUT, GRADIENTS, PARAMETERS, TERM)
_TEXTS = {"literal": ON_DEVICE, "asked": "a moved batch", "none": ON_DEVICE}
_OPERATORS = frozenset({op.PHI, op.COPY, op.BINARY, op.INPLACE, op.UNARY, op.COMPARE, op.ITEM, op.UNPACK})
_OF_TENSORS = frozenset({"compute", "view", "same", "transfer"})


def name_of(graph: CallGraph, seeds: dict[Place, str], wait: Wait, reasons: Iterable[str]) -> str:
    """The name of the most telling one of the reasons for which a value is on the device. ``seeds`` are the registers that hold one for
    a reason of their own."""
    found = [_TEXTS.get(one, one) for one in reasons]
    name = min(found, key=lambda text: _RANK.index(text) if text in _RANK else len(_RANK))
    if name == LOSS and _is_of_others(graph, seeds, wait.function, wait.value):
        return OUTPUT if OUTPUT in found else ON_DEVICE
    return name


def _is_of_others(graph: CallGraph, seeds: dict[Place, str], function: Function, register: int) -> bool:
    """Whether a function computes a value of what is not the loss there: predictions, hits. What went into these may have been a loss."""
    calls = {call.instruction for call in graph.calls(function).libraries if call.row is not None and call.row.effect in _OF_TENSORS}

    def onward(one: Instruction) -> Iterable[int]:
        return op.reads(one) if one[0] in _OPERATORS or one in calls else ()

    made = list(behind(function, [register], onward))
    return not any(seeds.get((function, one[2])) == LOSS for one in made) and any(one in calls for one in made)
