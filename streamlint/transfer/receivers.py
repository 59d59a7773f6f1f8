"""Whose method runs: a call that entered a method of a class was made on an object of that class, whoever passed the object over."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant, Instance, Object, Scalar, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.contexts import Contexts, Known
from streamlint.transfer.device import stores_of
from streamlint.transfer.guards import Guards
from streamlint.waits.entered import Context, entered_by
from streamlint.waits.operands import operand_of

_DEEPEST = 3


class Receivers:
    """Asks for the classes of objects that methods were entered on."""

    def __init__(self, contexts: Contexts, guards: Guards) -> None:
        self.contexts = contexts
        self.guards = guards
        self.transfer = contexts.transfer

    def may_give(self, context: Context, function: Function, call: Site) -> bool:
        """Whether a call of a function may give the objects whose methods the function has entered in a context."""
        if function.is_cpp or call.instruction[0] not in (op.CALL, op.INVOKE):
            return True
        entered: dict[int, list[Function]] = {}
        for callee, site in context:
            index = self._parameter(context, site, function) if callee.method is not None else op.NONE
            if index != op.NONE:
                entered.setdefault(index, []).append(callee)
        for index, callees in entered.items():
            register = operand_of(call.function, call.instruction, function, index)
            held = list(self._held(Known(call.function, register, ()), 0)) if register is not None else []
            if held and not any(all(self._has(value, callee) for callee in callees) for value in held):
                return False
        return True

    def _parameter(self, context: Context, site: Site, function: Function) -> int:
        """The parameter of a function that a method is called on: in the function, in one that it holds, or in one that it has called."""
        one, holder = site.instruction, site.function
        register = one[3] if one[0] == op.INVOKE else op.NONE
        for _ in range(len(context)):
            holder, register = self._stored(holder, register)
            made = holder.definitions[register] if register >= 0 else None
            if made is None or made[0] != op.PARAM:
                return op.NONE
            if holder is function:
                return made[3]
            called = next((each for callee, each in context if callee is holder), None)
            given = operand_of(called.function, called.instruction, holder, made[3]) if called is not None else None
            if called is None or given is None or called.instruction[0] not in (op.CALL, op.INVOKE):
                return op.NONE
            holder, register = called.function, given
        return op.NONE

    def _stored(self, holder: Function, register: int) -> tuple[Function, int]:
        """A register, or the one that a variable of a function around was set to."""
        made = holder.definitions[register] if register >= 0 else None
        stored = list(stores_of(holder, made[3])) if made is not None and made[0] == op.LOAD else []
        return stored[0] if len(stored) == 1 else (holder, register)

    def _held(self, known: Known, depth: int) -> Iterator[Object]:
        """What a register may hold: of a function that was given constants, what it returns for these."""
        function, context = known.function, known.context
        one = self.contexts.definition(known)
        if one is not None and one[0] == op.PHI and depth < _DEEPEST * 3:
            yield from self._joined(known, one, depth)
            return
        is_call = one is not None and one[0] in (op.CALL, op.INVOKE) and len(context) < _DEEPEST
        edges = [each for each in self.transfer.edges(function, one) if each.is_followed] if is_call and one is not None else []
        callee = edges[0].callee if len(edges) == 1 and not edges[0].is_higher_order else None
        if callee is None or one is None or callee.code.name == "__init__" or callee.by_opcode[op.YIELD] or entered_by(context, callee):
            yield from self.contexts.values(known)
            return
        entered = (*context, (callee, Site(function, one)))
        for end in callee.by_opcode[op.RETURN]:
            if end[2] >= 0 and not self.guards.excluded(callee, callee.blocks[end], entered):
                yield from self._held(Known(callee, end[2], entered), depth + 1)

    def _joined(self, known: Known, one: Instruction, depth: int) -> Iterator[Object]:
        """What comes by the branches that are taken for what a function was given."""
        function = known.function
        for register, block in zip(one[3:], function.phi_order[function.blocks[one]], strict=False):
            if not self.guards.excluded(function, block, known.context):
                yield from self._held(known._replace(register=register), depth + 1)

    def _has(self, value: Object, callee: Function) -> bool:
        """Whether a call by the name of a method may enter it on an object."""
        if not isinstance(value, Instance):
            return not isinstance(value, (Constant, Scalar))
        hierarchy, name = self.transfer.facts.hierarchy, callee.code.name
        classes = [value.definition] if value.exact else hierarchy.cone(value.definition)
        found = (hierarchy.lookup(each, name) for each in classes or ())
        return classes is None or any(each is None or callee in each[1] for each in found)
