"""Loops that decode: what a module gives in one round goes back into it in the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Instance, LibraryObject, Memory, Unknown
from streamlint.facts.files.scopes import ExternalName
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.graph.facts import Facts
from streamlint.facts.repetition.loops import Body, Feeding
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op


def may_feed_back(function: Function) -> bool:
    """Whether a function has a loop with a variable that is computed in it, and a call, so that it is worth to look further."""
    return bool(function.by_opcode[op.PHI] or function.by_opcode[op.SET_ITEM]) and bool(
        function.by_opcode[op.CALL] or function.by_opcode[op.INVOKE]
    )


Runs = Callable[[Function, Instruction], bool]
"""Whether a call of a function runs a model."""


def feeds_back(graph: CallGraph, body: Body, runs: Runs | None = None) -> Iterator[Feeding]:
    """The loops in which the result of a module, or of a value that is called and of which nothing is known, reaches its own arguments
    through a variable of the loop; what comes round holds tensors, or the function keeps no gradients. ``runs``: other calls as well."""
    function = body.function
    for found in body.feeding:
        if not (is_module(graph, function, found.call) or (runs is not None and runs(function, found.call))):
            continue
        back = body.slice_of([found.carried], body.graph.loops[found.place].body)
        if keeps_no_gradients(graph.facts, function) or any(_is_tensor(graph, function, held) for held in back):
            yield found


def is_module(graph: CallGraph, function: Function, one: Instruction) -> bool:
    """Whether a call may be that of a module: of one, or of a value of which nothing is known."""
    if one[0] == op.INVOKE and f"torch.Tensor.{function.text(one[4])}" in graph.facts.models.calls:
        return False
    values = graph.facts.callees(function, one)
    return any(
        isinstance(value, Unknown)
        or (isinstance(value, LibraryObject) and value.kind == "module")
        or (isinstance(value, Instance) and any(map(graph.facts.forwarded, graph.facts.hierarchy.libraries(value.definition))))
        for value in values
    )


def keeps_no_gradients(facts: Facts, function: Function) -> bool:
    """Whether a decorator of a library says that a function keeps no gradients."""
    meant = (one for name in function.decorators if name for one in facts.scopes.find(function.unit, name))
    rows = (facts.models.named(one.name) for one in meant if isinstance(one, ExternalName))
    return any(row is not None and row.get("without_gradients") for row in rows)


def _is_tensor(graph: CallGraph, function: Function, register: int) -> bool:
    """Whether a register holds a tensor, or the result of a library's work on some."""
    one = function.definitions[register]
    if any(isinstance(value, Memory) for value in graph.facts.values(function, register).values):
        return True
    rows = [call.row for call in graph.calls(function).libraries if call.instruction == one and call.row is not None]
    return any(row.effect == "compute" and not row.get("host") for row in rows)
