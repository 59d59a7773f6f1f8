"""What functions call the places of those from which calls lead to them: by the parameters that these are given for, also in a member of a
record, and by what closures share with the function around them."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.kept_members import KeptMembers
from streamlint.ordering.places.places import Place, Places, rest_behind
from streamlint.support.memo import memoized
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import operand_of

_DEEPEST = 10
"""Calls between two functions."""
_CALLS = (op.CALL, op.INVOKE)


class PassedNames:
    """Follows places down calls."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.places = places
        self.members = transfer.one_of(KeptMembers, transfer, places)

    @memoized
    def inside(self, home: Function, place: Place, function: Function) -> tuple[Place, ...]:
        """The names that a function has for what stands at a place of another one, from which calls lead to it."""
        return tuple(dict.fromkeys(self._inside(home, place, function, _DEEPEST)))

    def _inside(self, home: Function, place: Place, function: Function, depth: int) -> Iterator[Place]:
        if function in home.below and place.root[0] == "cell":
            yield place
        for caller, call in self.transfer.callers(function) if depth and function.by_opcode[op.PARAM] else ():
            if call[0] in _CALLS and caller is not function:
                names = (place,) if caller is home else self._inside(home, place, caller, depth - 1)
                for name in names:
                    for held in dict.fromkeys((name, *self.members.of_place(caller, name, call))):
                        yield from self._as_parameters(caller, call, function, held)

    def _as_parameters(self, caller: Function, call: Instruction, function: Function, place: Place) -> Iterator[Place]:
        for one in function.by_opcode[op.PARAM]:
            is_captured = function.code.parameters[one[3]].kind == "captured" and function.parent is caller
            given = function.default(one[3]) if is_captured else operand_of(caller, call, function, one[3])
            for name in self.places.names(caller, given) if given is not None and given >= 0 else ():
                rest = rest_behind(name, place)
                if rest is not None:
                    yield Place(("parameter", one[3]), tuple(rest))
