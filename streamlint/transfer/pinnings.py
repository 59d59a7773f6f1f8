"""Memory that a flag decides to pin: one branch pins it, the other leaves it as it is. Whether it is pinned is known where the flag is."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant, Memory, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.contexts import Contexts, Known
from streamlint.transfer.transfer import CALLING
from streamlint.waits.entered import Context
from streamlint.waits.questions import conditions


class Pinnings:
    """Asks for the other branch of memory that is not pinned."""

    def __init__(self, contexts: Contexts) -> None:
        self.contexts = contexts
        self.transfer = contexts.transfer

    def may_pin(self, site: Site, context: Context = ()) -> bool:
        """Whether memory that passes an instruction would be pinned by another branch: at a join, or where a function returns it."""
        function, one = site.function, site.instruction
        if function.is_cpp:
            return False
        if one[0] == op.PHI:
            return self._joins(function, one[2], context)
        if one[0] not in (op.CALL, op.INVOKE):
            return False
        edges = [edge for edge in self.transfer.edges(function, one) if edge.is_direct]
        callee = edges[0].callee if len(edges) == 1 else None
        entered = (*context, (callee, site)) if callee is not None else ()
        return callee is not None and any(
            self.is_left_by(callee, end, entered) or self._joins(callee, end[2], entered) for end in callee.by_opcode[op.RETURN]
        )

    def _joins(self, function: Function, register: int, context: Context) -> bool:
        """Whether a register joins memory with itself, pinned."""
        one = function.definitions[register] if register >= 0 else None
        return one is not None and one[0] == op.PHI and any(self.is_left(function, one, place, context) for place in range(len(one) - 3))

    def is_left(self, function: Function, join: Instruction, place: int, context: Context) -> bool:
        """Whether a value that is joined is left as it is where a flag that nothing decides would pin it."""
        predecessors = function.phi_order[function.blocks[join]]
        ways = list(zip(join[3:], predecessors, strict=False))
        if place >= len(ways):
            return False
        register, block = ways[place]
        others = (way for way in ways if way[0] != register)
        return any(self._is_open(function, register, block, each, end, context) for each, end in others)

    def is_left_by(self, function: Function, end: Instruction, context: Context) -> bool:
        """The same of what a function returns at one end, and pins at another."""
        ends = [(each[2], function.blocks[each]) for each in function.by_opcode[op.RETURN] if each[2] >= 0]
        block = function.blocks[end]
        return any(self._is_open(function, end[2], block, each, other, context) for each, other in ends if each != end[2])

    def _is_open(self, function: Function, register: int, block: int, other: int, end: int, context: Context) -> bool:
        """Whether another way pins what a register holds, behind conditions that nothing in view decides against it."""
        if not self._is_pinned_from(function, other, register):
            return False
        here = set(conditions(function, block))
        asked = [each for each in conditions(function, end) if each not in here]
        return bool(asked) and not any(self._is_against(Known(function, condition, context), holds) for condition, holds in asked)

    def _is_pinned_from(self, function: Function, register: int, source: int) -> bool:
        """Whether a call gives pinned memory of what another register holds."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or one[0] not in CALLING or source not in op.reads(one):
            return False
        if any(call.row.effect == "pin" for call in self.transfer.modelled(function, one)):
            return True
        held = self.transfer.values(function, register)
        return any(isinstance(value, Memory) and value.pinning == "pinned" for value in held)

    def _is_against(self, known: Known, holds: bool) -> bool:
        """Whether a condition is otherwise by a constant: by the only values that it has, or by one that a call gives."""
        known = self.contexts.traced(known)
        node = self.contexts.facts.values(known.function, known.register)
        values = list(node.values)
        other = [value for value in values if isinstance(value, Constant) and bool(value.value) != holds]
        if not other or all(isinstance(value, Constant) for value in values):
            return bool(other)
        return any(site.instruction[0] == op.PARAM for value in other for site in node.trace(value))
