"""What a function has put into the members of an object: by assignments, by the list that it is made of, or by who gives it back."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind_copies
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import Selector
from streamlint.ordering.paths.kept_members import KeptMembers
from streamlint.ordering.places.places import Place, Places
from streamlint.support.memo import memoized
from streamlint.transfer.modelled import ModelledCall, operands_of
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import given_to

_DEEPEST = 4
_NUMBERS = {"stream": 3, "hStream": 7}
"""Of the launch configurations of the runtime and driver, whose classes are unknown."""


class Fields:
    """The values of members."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.places = places
        self.members = transfer.one_of(KeptMembers, transfer, places)

    def behind(self, function: Function, register: int) -> int:
        """The register that an object is a copy of; of a list of values, that of the list."""
        one = function.definitions[register] if register >= 0 else None
        return register if one is not None and one[0] == op.CAST else behind_copies(function, register)

    def given(self, function: Function, register: int, field: str) -> tuple[list[int], Instruction | None]:
        """The registers that a function puts into a member of an object, none where it puts nothing there, and what made the object."""
        base, register = self.places.of(function, register), self.behind(function, register)
        stored = self._stored(function, base.behind("*") if base.path and base.path[-1] == "&" else base, register, field)
        whole = _whole(function, register)
        made = _made_at(function, register if whole is None else whole[3])
        if whole is not None and made is not None:
            return stored or self._set_inside(function, made, whole, field), made
        source = made if made is None or made[0] != op.CAST else function.definitions[behind_copies(function, made[4])]
        if not stored and source is not None and source[0] == op.CALL and function.is_cpp:
            stored = self._given_back(function, source, field)
        if not stored and made is not None and made[0] == op.CONSTRUCT:
            stored = self._set_by(function, made, field)
        if not stored and made is not None and (listed := self._listed(function, made, field)) is not None:
            stored = [listed]
        return stored, made

    def _stored(self, function: Function, base: Place, register: int, field: str) -> list[int]:
        """The registers that a function's assignments and method calls put into a member of an object at a place."""
        stores = (one for one in function.by_opcode[op.SET_ATTR] if function.text(one[3]) == field)
        stored = [one[4] for one in stores if self.places.of(function, one[2]) == base]
        return stored + (self._set_by_methods(function, base, field) or self._chained(function, register, field))

    def is_default_made(self, function: Function, register: int, made: Instruction) -> bool:
        """Whether an object is made of nothing, and no call gets it but the launches that it is for."""
        is_whole = _whole(function, register) is None
        if made[0] != op.DECLARE and (made[0] != op.CONSTRUCT or (is_whole and len(made) > 5)):
            return False
        root = self.places.of(function, register).root
        calls = (one for opcode in (op.CALL, op.INVOKE, op.CONSTRUCT) for one in function.by_opcode[opcode] if one is not made)
        others = (one for one in calls if not any(call.row.effect == "launch" for call in self.transfer.modelled(function, one)))
        return not any(self.places.of(function, each).root == root for one in others for each in op.reads(one) if each >= 0)

    def is_filled(self, function: Function, register: int, field: str) -> bool:
        """Whether a call that is given an object, or a pointer to it, may fill a member of it: one of a library, or of a function that does
        so itself or is out of view."""
        return self._fills(function, self.places.of(function, register).root, field)

    @memoized
    def _fills(self, function: Function, root: tuple[object, ...], field: str, depth: int = _DEEPEST) -> bool:
        calls = [one for opcode in (op.CALL, op.INVOKE) for one in function.by_opcode[opcode]]
        given = ((one, each) for one in calls for each in operands_of(function, one, receiver=False) if each >= 0)
        passed = dict.fromkeys(one for one, each in given if self.places.of(function, each).root == root)
        return any(self._is_filled_by(function, one, root, field, depth) for one in passed)

    def _is_filled_by(self, function: Function, one: Instruction, root: tuple[object, ...], field: str, depth: int) -> bool:
        calls, edges = list(self.transfer.modelled(function, one)), self.transfer.edges(function, one)
        if calls or not edges or not depth:
            return not calls or any(self._is_into(call, root) for call in calls)
        places = ((edge.callee, index) for edge in edges for index in range(len(edge.callee.code.parameters)))
        given = [(callee, index) for callee, index in places if self._is_given(function, one, callee, index, root)]
        return any(self._sets(callee, index, field, depth) for callee, index in given)

    def _is_given(self, function: Function, one: Instruction, callee: Function, index: int, root: tuple[object, ...]) -> bool:
        """Whether a call gives an object for a parameter."""
        register = given_to(function, one, callee, index)
        return register is not None and register >= 0 and self.places.of(function, register).root == root

    def _is_into(self, call: ModelledCall, root: tuple[object, ...]) -> bool:
        """Whether a function of a library fills what it is given a pointer to."""
        into = call.row.get("into") if call.row.effect == "object" else None
        register = call.given(Selector("argument", into.position)) if isinstance(into, Selector) else None
        return register is not None and self.places.of(call.function, register).root == root

    def _sets(self, callee: Function, index: int, field: str, depth: int) -> bool:
        """Whether a function may put something into a member of what it is given for a parameter."""
        inner = ("parameter", index)
        stores = (one for one in callee.by_opcode[op.SET_ATTR] if callee.text(one[3]) == field)
        return any(self.places.of(callee, one[2]).root == inner for one in stores) or self._fills(callee, inner, field, depth - 1)

    def _set_inside(self, function: Function, made: Instruction, whole: Instruction, field: str) -> list[int]:
        """The arguments that an object's constructor, and methods that are called on it, put into a field of one of its members; NONE for
        what they put there otherwise."""
        place, found = Place(("parameter", 0), (function.text(whole[4]),)), list[int]()
        base = self.places.of(function, whole[3])
        calls = [made, *(one for one in function.by_opcode[op.INVOKE] if self.places.of(function, one[3]) == base)]
        for call, callee in ((one, edge.callee) for one in calls for edge in self.transfer.edges(function, one)):
            for one in callee.by_opcode[op.SET_ATTR]:
                if callee.text(one[3]) == field and self.places.of(callee, one[2]) == place:
                    given = _argument(function, call, callee, one[4])
                    found.append(op.NONE if given is None else given)
        return found

    def _set_by_methods(self, function: Function, base: Place, field: str) -> list[int]:
        """The arguments that methods of the object put into a member of it (``config.on(stream)``)."""
        calls = [one for one in function.by_opcode[op.INVOKE] if self.places.of(function, one[3]) == base] if function.is_cpp else []
        return [register for one in calls for register in self._set_by(function, one, field)]

    def _set_by(self, function: Function, one: Instruction, field: str) -> list[int]:
        """The arguments that a method call puts into a member of its object."""
        callees = [edge.callee for edge in self.transfer.edges(function, one)]
        given = (given_to(function, one, callee, index) for callee in callees for index in self.members.taken(callee, field))
        return [register for register in given if register is not None and register >= 0]

    def _chained(self, function: Function, register: int, field: str) -> list[int]:
        """The same of calls that follow one another on what the ones before give back (``Config().on(stream).of(blocks)``)."""
        one = function.definitions[behind_copies(function, register)] if register >= 0 else None
        while one is not None and one[0] == op.INVOKE and function.is_cpp:
            if found := self._set_by(function, one, field):
                return found
            one = function.definitions[behind_copies(function, one[3])]
        return []

    def _listed(self, function: Function, made: Instruction, field: str) -> int | None:
        """The value of a field in the list that an object is made of."""
        while made[0] in (op.CAST, op.COPY):
            inner = function.definitions[made[4 if made[0] == op.CAST else 3]]
            if inner is None:
                return None
            made = inner
        if made[0] == op.CONSTRUCT:
            shape = function.unit.ir.constants[made[4]] if made[4] >= 0 else None
            given = made[5:]
        elif made[0] == op.DICT:
            keys = {str(function.constant(key)): value for key, value in zip(made[3::2], made[4::2], strict=False)}
            return keys.get(field, keys.get(f".{field}"))
        elif made[0] == op.BUILD:
            shape, given = None, made[4:]
        else:
            return None
        if shape:
            return next((value for kind, value in zip(shape, given, strict=False) if kind == field), None)
        members = list(self.places.members(function, made)) if made[0] == op.CONSTRUCT else []
        number = members.index(field) if field in members else _NUMBERS.get(field)
        return given[number] if number is not None and number < len(given) else None

    def _given_back(self, caller: Function, call: Instruction, field: str) -> list[int]:
        """The arguments of a call that the functions which it enters store in a member of what they return (``with_stream(config, s)``)."""
        transfer, places = self.transfer, self.places
        found: list[int] = []
        for edge in transfer.edges(caller, call):
            callee = edge.callee
            ends = {places.of(callee, end[2]) for end in callee.by_opcode[op.RETURN] if end[2] >= 0} - {None}
            stores = [one for one in callee.by_opcode[op.SET_ATTR] if callee.text(one[3]) == field and places.of(callee, one[2]) in ends]
            for one in stores:
                given = _argument(caller, call, callee, one[4])
                if given is not None and given >= 0:
                    found.append(given)
        return found


def _argument(caller: Function, call: Instruction, callee: Function, register: int) -> int | None:
    """The register that a call gives for the parameter which one of a function holds; None where it holds something else."""
    one = callee.definitions[behind_copies(callee, register)]
    return given_to(caller, call, callee, one[3]) if one is not None and one[0] == op.PARAM else None


def _whole(function: Function, register: int) -> Instruction | None:
    """C++: what takes a member of an object, if a register holds one, or its address."""
    one = function.definitions[register] if register >= 0 and function.is_cpp else None
    return one if one is not None and one[0] in (op.ADDRESS_ATTR, op.ATTR) else None


def _made_at(function: Function, register: int) -> Instruction | None:
    """The declaration, list or constructor that made an object of this function."""
    one = function.definitions[register] if register >= 0 else None
    if one is not None and one[0] in (op.ADDRESS, op.LOAD):
        stores = [each for each in function.by_opcode[op.STORE] if each[2] == one[3]]
        made = [function.definitions[each[3]] for each in stores]
        own = [each for each in made if each is not None and each[0] != op.REBIND]
        return own[0] if len(own) == 1 else None
    return one if one is not None and one[0] in (op.DECLARE, op.CAST, op.CONSTRUCT, op.BUILD, op.CALL, op.DICT) else None
