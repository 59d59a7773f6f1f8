"""What a value is called that the host waits for."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind
from streamlint.facts.code.objects import Memory, Site
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.origins import GRADIENTS, LOSS, OUTPUT, PARAMETERS, TERM, UNSURE, Place
from streamlint.waits.wait import Wait

ON_DEVICE = "a device value"
_RANK = (LOSS, OUTPUT, GRADIENTS, PARAMETERS, TERM)
_MOVED = "a moved batch"
_TEXTS = {"literal": ON_DEVICE, "asked": _MOVED, "none": ON_DEVICE}
_OPERATORS = frozenset({op.PHI, op.COPY, op.BINARY, op.INPLACE, op.UNARY, op.COMPARE, op.ITEM, op.UNPACK})
_OF_TENSORS = frozenset({"compute", "view", "same", "transfer"})


def name_of(graph: CallGraph, seeds: dict[Place, str], wait: Wait, reasons: Iterable[str]) -> str:
    """The name of the most specific one of the reasons for which a value is on the device. ``seeds`` are the registers that hold one for
    a reason of their own."""
    found = [_TEXTS.get(one, one) for one in reasons]
    name = min(found, key=lambda text: _RANK.index(text) if text in _RANK else len(_RANK))
    if name == LOSS and _is_of_others(graph, seeds, wait.function, wait.value):
        return OUTPUT if OUTPUT in found else ON_DEVICE
    return ON_DEVICE if name == _MOVED and _is_computed(graph, wait) else name


def _is_computed(graph: CallGraph, wait: Wait) -> bool:
    """Whether all that is on a device by request was computed there, or comes from unknown code: no batch that was moved."""
    node = graph.facts.values(wait.function, wait.value)
    asked = [one for one in node.values if isinstance(one, Memory) and one.evidence.removeprefix(UNSURE) == "asked"]
    ends = [tuple(node.trace(one))[-1:] for one in asked]
    return bool(ends) and all(end and not _moves(graph, *end) for end in ends)


def _moves(graph: CallGraph, site: Site) -> bool:
    """Whether memory comes from a call that moves, or from no call at all."""
    function, one = site.function, site.instruction
    if one[0] in (op.CALL, op.INVOKE):
        rows = [call.row for call in graph.of_call(function, one).libraries]
        return any(row is not None and row.effect == "transfer" for row in rows) or (function.invokes(one, "moves"))
    return one[0] not in _OPERATORS


def _is_of_others(graph: CallGraph, seeds: dict[Place, str], function: Function, register: int) -> bool:
    """Whether a function computes a value of what is not the loss there: predictions, hits. What went into these may have been a loss."""
    calls = {call.instruction for call in graph.calls(function).libraries if call.row is not None and call.row.effect in _OF_TENSORS}

    def onward(one: Instruction) -> Iterable[int]:
        return op.reads(one) if one[0] in _OPERATORS or one in calls else ()

    made = list(behind(function, [register], onward))
    own = {seeds.get((function, one[2])) for one in made}
    if LOSS in own:
        return False
    is_term = not own.isdisjoint({TERM, f"{UNSURE}{TERM}"})
    return any(one in calls for one in made) or (not is_term and any(_gives_output(graph, function, one) for one in made))


def _gives_output(graph: CallGraph, function: Function, one: Instruction) -> bool:
    """Whether a call gives what a model computes."""
    if one[0] not in (op.CALL, op.INVOKE):
        return False
    if any(edge.callee.owner is not None and edge.callee.code.name == "forward" for edge in graph.of_call(function, one).edges):
        return True
    return any(isinstance(value, Memory) and value.evidence == OUTPUT for value in graph.facts.values(function, one[2]).values)
