"""What is kept in an object of which the maker is in view: a branch on a flag that it was made with decides what its methods keep."""

from __future__ import annotations

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.contexts import Contexts, Known
from streamlint.waits.questions import conditions

_SAME = {op.ENTER: 3, op.AWAIT: 3, op.COPY: 3}
"""By opcode: the register of the object that an instruction gives, as scopes give themselves."""
_DEEPEST = 3


class Makers:
    """Asks the calls that make objects for the flags of these."""

    def __init__(self, contexts: Contexts) -> None:
        self.contexts = contexts
        self.transfer = contexts.transfer

    def excludes(self, known: Known, object_: int, kept: Site) -> bool:
        """Whether an instruction of a method is not reached for an object: its branch asks for a flag that says otherwise."""
        owner = kept.function.method.owner if kept.function.method is not None else None
        made = self._made(known, object_, owner) if owner is not None else None
        return owner is not None and made is not None and self._is_barred(known, made, owner, kept, 0)

    def _is_barred(self, known: Known, made: tuple[Instruction, Function], owner: ClassInfo, kept: Site, depth: int) -> bool:
        """Whether the flags of an object decide against a place in its methods, or against all calls of the method on the object itself."""
        method = kept.function
        for condition, holds in conditions(method, method.blocks[kept.instruction]):
            one = method.definitions[condition] if condition >= 0 else None
            if one is None or one[0] != op.ATTR or not _is_self(method, one[3]):
                continue
            truth = self._flag(known, made, owner, method.text(one[4]))
            if truth is not None and truth != holds:
                return True
        places = [Site(*place) for place in self.transfer.callers(method)] if depth < _DEEPEST else []
        return bool(places) and all(
            place.instruction[0] == op.INVOKE
            and _is_self(place.function, place.instruction[3])
            and self._is_barred(known, made, owner, place, depth + 1)
            for place in places
        )

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


def _is_self(function: Function, register: int) -> bool:
    """Whether a register holds the object whose method runs."""
    one = function.definitions[register] if register >= 0 else None
    return one is not None and one[0] == op.PARAM and one[3] == 0 and function.method is not None
