"""Results that are on the host since a tensor that was made there went into them: functions of PyTorch take tensors of one device."""

from __future__ import annotations

from streamlint.facts.call_graph import CallGraph
from streamlint.facts.functions import Function
from streamlint.facts.objects import Memory
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.waits.operands import argument_registers

_TOGETHER = "torch.nn.functional."
"""Functions of this module refuse tensors of different devices; operators take one number of the host beside a tensor of the GPU."""
_DEFAULTS = frozenset({"set_default_device", "set_default_tensor_type"})
"""Functions that have factories make memory elsewhere than on the host."""
_VIEWS = frozenset({"view", "same"})


def makes_elsewhere(graph: CallGraph) -> bool:
    """Whether the program may have factories that name no device make memory elsewhere than on the host."""
    return not _DEFAULTS.isdisjoint(graph.facts.program.identifiers)


def is_beside_host(graph: CallGraph, function: Function, register: int) -> bool:
    """Whether a register holds what a function of tensors gives that is called with one which is made on the host in the same function."""
    if function.is_cpp or makes_elsewhere(graph):
        return False
    one = _behind_views(graph, function, register, _VIEWS)
    if one is None or one[0] not in (op.CALL, op.INVOKE):
        return False
    calls = graph.of_call(function, one).libraries
    if not calls or not all(call.name.startswith(_TOGETHER) and call.row is not None and call.row.effect == "compute" for call in calls):
        return False
    return any(_is_made_on_host(graph, function, given) for _, given in argument_registers(function, one))


def _is_made_on_host(graph: CallGraph, function: Function, register: int) -> bool:
    one = _behind_views(graph, function, register, _VIEWS | {"compute"})
    if one is None or not any(row.effect == "factory" and row.library == "torch" for row in _rows(graph, function, one)):
        return False
    values = list(graph.facts.values(function, one[2]).values)
    return bool(values) and all(isinstance(value, Memory) and value.space == "host" for value in values)


def _behind_views(graph: CallGraph, function: Function, register: int, effects: frozenset[str]) -> Instruction | None:
    """The instruction that defines a register, methods with some effects aside: they give what is where their object is."""
    while (one := function.definitions[register] if register >= 0 else None) is not None:
        rows = _rows(graph, function, one) if one[0] == op.INVOKE else []
        if one[0] != op.COPY and not (rows and all(row.effect in effects and row.names[0].startswith("torch.Tensor.") for row in rows)):
            break
        register = one[3]
    return one


def _rows(graph: CallGraph, function: Function, one: Instruction) -> list[Row]:
    if one[0] not in (op.CALL, op.INVOKE):
        return []
    return [call.row for call in graph.of_call(function, one).libraries if call.row is not None]
