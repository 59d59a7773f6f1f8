"""What is kept in an object of which the maker is in view: a branch on a flag that it was made with decides what its methods keep."""

from __future__ import annotations

from streamlint.facts.functions import ClassInfo, Function
from streamlint.facts.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.contexts import Contexts, Known
from streamlint.transfer.guards import Guards

_SAME = {op.ENTER: 3, op.AWAIT: 3, op.COPY: 3}
"""By opcode: the register of the object that an instruction gives, as scopes give themselves."""


class Makers:
    """Asks the calls that make objects for the flags of these."""

    def __init__(self, contexts: Contexts, guards: Guards) -> None:
        self.contexts = contexts
        self.guards = guards
        self.transfer = contexts.transfer

    def excludes(self, known: Known, object_: int, kept: Site) -> bool:
        """Whether an instruction of a method is not reached for an object: its branch asks for a flag that says otherwise."""
        owner = kept.function.method.owner if kept.function.method is not None else None
        conditions = list(self.guards.conditions(kept.function, self.guards.home(kept.function, kept.instruction))) if owner else []
        if owner is None or not conditions or (made := self._made(known, object_, owner)) is None:
            return False
        for condition, holds in conditions:
            one = kept.function.definitions[condition] if condition >= 0 else None
            base = kept.function.definitions[one[3]] if one is not None and one[0] == op.ATTR else None
            if one is None or base is None or base[0] != op.PARAM or base[3] != 0:
                continue
            truth = self._flag(known, made, owner, kept.function.text(one[4]))
            if truth is not None and truth != holds:
                return True
        return False

    def _made(self, known: Known, register: int, owner: ClassInfo) -> tuple[Instruction, Function] | None:
        """The call that makes an object of a class in the function at hand, and the constructor."""
        one = known.function.definitions[register] if register >= 0 else None
        while one is not None and one[0] in _SAME:
            one = known.function.definitions[one[_SAME[one[0]]]]
        for edge in self.transfer.edges(known.function, one) if one is not None and one[0] in (op.CALL, op.INVOKE) else ():
            if one is not None and edge.callee.owner is owner and edge.callee.code.name == "__init__":
                return one, edge.callee
        return None

    def _flag(self, known: Known, made: tuple[Instruction, Function], owner: ClassInfo, name: str) -> bool | None:
        """The truth of a member that the constructor alone sets, to a parameter that the call gives."""
        call, constructor = made
        methods = [each for methods in owner.methods.values() for method in methods for each in method.below]
        stores = [(each, one) for each in methods for one in each.by_opcode[op.SET_ATTR] if each.text(one[3]) == name]
        if len(stores) != 1 or stores[0][0] is not constructor:
            return None
        context = ((constructor, Site(known.function, call)), *known.context)
        return self.contexts.truth_of(Known(constructor, stores[0][1][4], context))
