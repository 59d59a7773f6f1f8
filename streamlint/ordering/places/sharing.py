"""Registers that may hold the memory of another one: over assignments, parts, containers, attributes, arguments and results.

A wide answer that costs little: it asks no values. Who follows an operation from there finds out whether it is the same memory. Two
registers share memory if it came to both from one place: so the search goes back to where the memory came from, and from there forward
to where it went. It turns back only where memory is put into what others hold as well: a container. What else is put into that is
asked for only where an element was taken out of it, and where both keys are written down, only under the same one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.keyword_stores import sets_keywords
from streamlint.facts.code.passing import attribute_asked, attributes_given, is_put, put_by_function
from streamlint.facts.files.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import Places
from streamlint.ordering.places.spread import brought
from streamlint.transfer.actions import Viewed
from streamlint.transfer.modelled import operands_of
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.waits.operands import argument_registers, deferred_target, kept_by

MOST = 600
"""Registers that are looked at for one question."""
_MOST_FILES = 8
"""Files that mention an attribute, beyond which only those of the file itself count."""
_FROM = {
    **dict.fromkeys((op.COPY, op.AWAIT, op.ITER, op.ENTER, op.ITEM, op.NEXT, op.UNPACK, op.DEREF, op.ADDRESS_ITEM), 3),
    op.CAST: 4,
    op.INPLACE: 4,
    op.REBIND: 5,
}
"""By opcode: where the register stands of which the result is the same, a part, or an element."""
_TAKING = frozenset({op.ITEM, op.NEXT, op.UNPACK, op.DEREF, op.ADDRESS_ITEM})
"""Those of them that give an element."""
_WITHIN = frozenset({op.BUILD, op.DICT, op.SET_ITEM, op.APPEND, op.PUT, op.PHI, *_FROM})
"""What passes memory on within a function."""
_CONSTRUCTING = (op.CONSTRUCT, op.NEW)
_FIRST = 5
"""Where the arguments of what makes an object of C++ begin."""
_GIVING = (op.RETURN, op.YIELD, op.YIELD_FROM)
Held = tuple[Function, int]
Key = str | int | None
"""Under which key of a register's container the memory is; None if it is that itself, or any element."""
Ways = int
"""How the search goes on from a register: forward, and as these say."""
_BACK, _ELEMENTS = 1, 2
"""Back to where its memory came from; to what is put into it."""
_Shared = tuple[Function, int, Key, Ways]


class _Search:
    """The registers that were found, and the names that were looked for."""

    def __init__(self, held: Iterable[Held]) -> None:
        self.found: dict[tuple[Function, int, Key], Ways] = {(*each, None): _BACK | _ELEMENTS for each in held}
        self.waiting = list(self.found)
        self._names: set[tuple[int, str, Key, Ways]] = set()

    def add(self, shared: _Shared) -> None:
        """Go on from a register, unless the search has done so in all these ways, for this element or any."""
        function, register, key, ways = shared
        place = function, register, key
        known = [found for each in (place, (function, register, None)) if (found := self.found.get(each)) is not None]
        if register >= 0 and not any(found | ways == found for found in known):
            self.found[place] = ways | self.found.get(place, 0)
            self.waiting.append(place)

    def is_new(self, owner: int, name: str, key: Key, ways: Ways) -> bool:
        """Whether a name has not been looked for yet in these ways."""
        asked = owner, name, key, ways
        is_new = asked not in self._names
        self._names.add(asked)
        return is_new


class Sharing:
    """Looks for registers that may share memory."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self._named_in: dict[Unit, dict[str, list[tuple[Function, Instruction, int]]]] = {}
        self.records = transfer.one_of(Places, transfer.facts).records

    def with_any(self, held: Iterable[Held]) -> list[Held]:
        """All registers that may share memory with one of some."""
        return list(self.origins_of(held))

    def origins_of(self, held: Iterable[Held]) -> dict[Held, bool]:
        """All registers that may share memory with one of some; each with whether the memory may have come from there."""
        search = _Search(held)
        while search.waiting and len(search.found) < MOST:
            function, register, key = search.waiting.pop()
            for shared in self._related(function, register, key, search):
                search.add(shared)
        found: dict[Held, bool] = {}
        for (function, register, _), ways in search.found.items():
            found[function, register] = bool(ways & _BACK) or found.get((function, register), False)
        return found

    def _related(self, function: Function, register: int, key: Key, search: _Search) -> Iterator[_Shared]:
        ways = search.found[function, register, key]
        one = function.definitions[register] if register >= 0 else None
        if one is not None and ways & _BACK:
            yield from self._before(function, one, key, ways, search)
        for use in function.uses.get(register, ()):
            yield from self._after(function, register, use, key, ways & _ELEMENTS, search)

    # --- where it comes from

    def _before(self, function: Function, one: Instruction, key: Key, ways: Ways, search: _Search) -> Iterator[_Shared]:
        opcode = one[0]
        if opcode == op.PHI:
            yield from ((function, each, key, ways) for each in one[3:])
        elif opcode in (op.BUILD, op.DICT):
            parts = _parts_with_keys(function, one) if ways & _ELEMENTS else ()
            yield from ((function, each, None, ways) for put, each in parts if _may_be(put, key))
        elif opcode == op.PARAM:
            yield from _each(self._arguments(function, one[3]), key, ways)
        elif opcode in (op.ATTR, op.ADDRESS_ATTR):
            yield from self._attribute(function, function.text(one[4]), key, ways, search)
            yield from _each(self._viewed(function, one), None, ways)
        elif opcode in (op.LOAD, op.ADDRESS):
            yield from self._cell(function, one[3], key, ways)
        elif opcode in (op.NAME, op.ADDRESS_NAME):
            yield from self._global(function, function.text(one[3]), key, ways, search)
        elif opcode in _TAKING:
            yield function, one[_FROM[opcode]], _key_taken(function, one), ways | _ELEMENTS
        elif opcode in _FROM:
            yield function, one[_FROM[opcode]], key, ways
        elif (asked := attribute_asked(function, one)) is not None:
            yield from self._attribute(function, asked, key, ways, search)
        if opcode in CALLING:
            yield from _each(self._given_back(function, one), None, ways | _ELEMENTS)
            yield from _each(self._returned(function, one), key, ways)

    def _given_back(self, function: Function, one: Instruction) -> Iterator[Held]:
        """What the result of a call of a library may be: a view or a part of an operand."""
        if one[0] in (op.CALL, op.INVOKE):
            yield from self._viewed(function, one)
            yield from ((function, each) for each in self._taken(function, one))
            yield from ((function, each) for _, each in self.records.given(function, one))

    def _returned(self, function: Function, one: Instruction) -> Iterator[Held]:
        """What the functions of the program return that a call runs."""
        for edge in self.transfer.edges(function, one):
            ends = _GIVING if edge.is_followed else ()
            yield from ((edge.callee, end[-1]) for opcode in ends for end in edge.callee.by_opcode[opcode])

    def _viewed(self, function: Function, one: Instruction) -> Iterator[Held]:
        yield from ((function, each.register) for each in self.transfer.of(function, one) if isinstance(each, Viewed))

    def _taken(self, function: Function, one: Instruction) -> Iterator[int]:
        """What a call without a row may give back: its receiver's elements, or an argument of a function of the language."""
        if one[0] == op.INVOKE and not any(True for _ in self.transfer.modelled(function, one)):
            yield one[3]
        elif one[0] == op.CALL and self._gives_part(function, one):
            yield from operands_of(function, one)

    def _gives_part(self, function: Function, one: Instruction) -> bool:
        known = function.known("gives-part")
        return any(call.name.rpartition(".")[2] in known for call in self.transfer.libraries(function, one))

    def _arguments(self, function: Function, index: int) -> Iterator[Held]:
        for caller, call in self.facts.call_places(function):
            if call[0] in (op.CALL, op.INVOKE) or call[0] in _CONSTRUCTING:
                registers = _given_for(caller, call, function, index)
                if registers and self._enters(caller, call, function):
                    yield from ((caller, register) for register in registers)
        default = function.default_register(index)
        if default is not None and function.parent is not None:
            yield function.parent, default

    def _enters(self, caller: Function, call: Instruction, function: Function) -> bool:
        is_run = any(edge.callee is function and edge.is_followed for edge in self.transfer.edges(caller, call))
        return is_run or (caller, call) in self.transfer.registered(function)

    def _attribute(self, function: Function, name: str, key: Key, ways: Ways, search: _Search) -> Iterator[_Shared]:
        """All that is read under the name of an attribute, near by, and what is stored there, if the search goes back."""
        if not search.is_new(-1, name, key, ways):
            return
        units = self.facts.program.mentioning(name)
        for unit in units if len(units) <= _MOST_FILES else [function.unit]:
            if unit.is_cpp == function.is_cpp:
                yield from _each(self._read(unit, name), key, ways & _ELEMENTS)
                if ways & _BACK:
                    yield from _each(self._stored(unit, name), key, ways)

    @staticmethod
    def _read(unit: Unit, name: str) -> Iterator[Held]:
        yield from ((user, one[2]) for user, one in unit.attribute_uses.get(name, ()) if one[0] != op.INVOKE)
        if unit.is_cpp:
            yield from ((user, one[2]) for user, one in unit.cpp_uses.get(name, ()))

    def _stored(self, unit: Unit, name: str) -> Iterator[Held]:
        yield from ((store.function, store.value) for store in unit.attribute_stores.get(name, ()))
        yield from self._by_keyword(unit, name)
        for owner in unit.classes:
            yield from ((store.function, store.value) for store in owner.own_stores.get(name, ()))
            yield from self._field(owner, name)
        if unit.is_cpp:
            yield from ((store.function, store.value) for store in unit.cpp_stores.get(name, ()))

    def _by_keyword(self, unit: Unit, name: str) -> Iterator[Held]:
        """What calls of a file give by keyword for an attribute of a name."""
        known = self._named_in.get(unit)
        if known is None:
            known = self._named_in[unit] = defaultdict(list)
            calls = ((each, one) for each in unit.functions for opcode in (op.CALL, op.INVOKE) for one in each.by_opcode[opcode])
            for function, one in calls if not unit.is_cpp else ():
                for key, register in (*attributes_given(function, one), *self._keywords(function, one)):
                    known[key].append((function, one, register))
                if (asked := attribute_asked(function, one)) is not None:
                    known[asked].append((function, one, one[2]))
        for function, one, register in known.get(name, ()):
            if register == one[2] or any(key == name for key, _ in self._attributes_given(function, one)):
                yield function, register

    def _attributes_given(self, function: Function, one: Instruction) -> Iterator[tuple[str, int]]:
        """The attributes that a call sets by their names, each with the register of the value."""
        yield from attributes_given(function, one)
        named = self._keywords(function, one)
        if named and any(map(sets_keywords, self.facts.callee_functions(function, one))):
            yield from named

    def _keywords(self, function: Function, one: Instruction) -> list[tuple[str, int]]:
        """The keywords of a call, where a function of the program sets attributes of such names."""
        given = argument_registers(function, one) if self._sets_keywords and one[0] in (op.CALL, op.INVOKE) else []
        return [(kind, register) for kind, register in given if isinstance(kind, str)]

    @cached_property
    def _sets_keywords(self) -> bool:
        methods = (
            each for unit in self.facts.program.storing if not unit.is_cpp for owner in unit.classes for each in owner.methods.values()
        )
        return any(sets_keywords(method) for each in methods for method in each)

    def _field(self, owner: ClassInfo, name: str) -> Iterator[Held]:
        """What the calls of a class give for a field, where no constructor takes it."""
        if not any(member.name == name for member in owner.ir.fields) or owner.methods.get("__init__"):
            return
        for function, call in self.facts.construction_places(owner):
            if owner.unit.is_cpp:
                yield from ((function, each) for member, each in self.facts.members_given(function, call) if member.name == name)
            else:
                yield from ((function, register) for field, register in self.records.given(function, call) if field == name)

    def _global(self, function: Function, name: str, key: Key, ways: Ways, search: _Search) -> Iterator[_Shared]:
        unit = function.unit
        if function.is_cpp:
            yield from self._attribute(function, name.rpartition("::")[2], key, ways, search)
        elif search.is_new(unit.number, name, key, ways):
            if ways & _BACK:
                yield from _each(unit.globals.get(name, ()), key, ways)
            yield from ((user, one[2], key, ways & _ELEMENTS) for user, one in unit.name_uses.get(name, ()))

    def _cell(self, function: Function, constant: int, key: Key, ways: Ways) -> Iterator[_Shared]:
        unit = function.unit
        name, owner = unit.ir.constants[constant]
        for each in unit.function(owner).below:
            if ways & _BACK:
                yield from ((each, one[3], key, ways) for one in each.by_opcode[op.STORE] if unit.ir.constants[one[2]] == (name, owner))
            loads = (one for one in each.by_opcode[op.LOAD] if unit.ir.constants[one[3]] == (name, owner))
            yield from ((each, one[2], key, ways & _ELEMENTS) for one in loads)

    # --- where it goes

    def _after(self, function: Function, register: int, use: Instruction, key: Key, ways: Ways, search: _Search) -> Iterator[_Shared]:
        opcode = use[0]
        if opcode in _WITHIN:
            yield from self._within(function, register, use, key, ways)
        elif opcode == op.STORE:
            yield from self._cell(function, use[2], key, ways)
        elif opcode == op.SET_ATTR:
            yield from self._assigned(function, register, use, key, ways, search)
        elif opcode == op.SET_NAME:
            yield from self._global(function, function.text(use[2]), key, ways, search)
        elif opcode in _GIVING:
            yield from _each(self._passed_back(function), key, ways)
        elif opcode == op.FUNCTION:
            yield from _each(self._as_default(function, register, use), key, ways)
        elif opcode in _CONSTRUCTING:
            yield from self._constructed(function, register, use, key, ways, search)
        elif opcode in (op.CALL, op.INVOKE, op.ATTR):
            yield from self._passed_on(function, register, use, key, ways, search)

    def _within(self, function: Function, register: int, use: Instruction, key: Key, ways: Ways) -> Iterator[_Shared]:
        """Where a function itself joins values, puts them into containers and takes them out."""
        opcode = use[0]
        if opcode in (op.BUILD, op.DICT):
            yield from ((function, use[2], put, ways) for put, each in _parts_with_keys(function, use) if each == register)
        elif opcode in (op.SET_ITEM, op.APPEND, op.PUT):
            put = _written(function, use[3]) if opcode == op.SET_ITEM else None
            yield from self._put(function, register, (use[2], put), use[-1:], key, ways)
        elif opcode == op.PHI:
            yield function, use[2], key, ways
        elif use[_FROM[opcode]] == register and (opcode not in _TAKING or _may_be(_key_taken(function, use), key)):
            yield function, use[2], None if opcode in _TAKING else key, ways

    @staticmethod
    def _put(function: Function, register: int, holder: tuple[int, Key], values: Iterable[int], key: Key, ways: Ways) -> Iterator[_Shared]:
        """What others hold of a container into which a register is put; what is put into a register."""
        if register == holder[0]:
            is_asked = ways & _ELEMENTS and _may_be(holder[1], key)
            yield from ((function, each, None, _BACK | _ELEMENTS) for each in values if is_asked)
        elif register in values:
            yield function, *holder, _BACK

    def _constructed(self, function: Function, register: int, use: Instruction, key: Key, ways: Ways, search: _Search) -> Iterator[_Shared]:
        """C++: the members of a new object that are given a register, and the parameters of its constructors."""
        members = (member.name for member, given in self.facts.members_given(function, use) if given == register)
        yield from (each for name in members for each in self._attribute(function, name, key, ways, search))
        yield from _each(self._inside(function, register, use), key, ways)

    def _assigned(self, function: Function, register: int, use: Instruction, key: Key, ways: Ways, search: _Search) -> Iterator[_Shared]:
        """What has the memory of a register that is assigned to an attribute, or the other way round: ``x.data = y`` makes it that of x."""
        if function.text(use[3]) in self.transfer.view_names:
            yield from ((function, each, None, _BACK) for each in (use[2], use[4]) if each != register)
        if use[4] == register:
            yield from self._attribute(function, function.text(use[3]), key, ways, search)

    def _as_default(self, function: Function, register: int, use: Instruction) -> Iterator[Held]:
        """The parameters of a function whose default a register is."""
        inner = function.unit.function(use[3])
        yield from ((inner, one[2]) for one in inner.by_opcode[op.PARAM] if inner.default_register(one[3]) == register)

    def _passed_on(self, function: Function, register: int, use: Instruction, key: Key, ways: Ways, search: _Search) -> Iterator[_Shared]:
        """What a call or property makes of a register, keeps it in, or gives it to."""
        if any(isinstance(each, Viewed) and each.register == register for each in self.transfer.of(function, use)):
            yield function, use[2], None, ways
        yield from self._named(function, register, use, ways, search)
        if op.DEFINES[use[0]] and kept_by(function, use) is not None:  # by a partial object, a thread
            yield function, use[2], None, ways
        if is_put(function, use) or (use[0] == op.INVOKE and put_by_function(function, use) is not None):
            operands = operands_of(function, use)
            yield from self._put(function, register, (next(iter(operands), op.NONE), None), operands, key, ways)
        if (use[0] == op.CALL or function.invokes(use, "takes", "ends", "whole")) and register in self._taken(function, use):
            yield function, use[2], None, ways
        yield from _each(self._inside(function, register, use), key, ways) if use[0] != op.ATTR else ()

    def _named(self, function: Function, register: int, use: Instruction, ways: Ways, search: _Search) -> Iterator[_Shared]:
        """The fields and attributes that a call gives a register for."""
        for field, given in self.records.given(function, use):
            if given == register:
                yield function, use[2], None, ways
                yield from self._attribute(function, field, None, ways, search)
        for name, given in self._attributes_given(function, use) if use[0] != op.ATTR else ():
            if given == register:
                yield from self._attribute(function, name, None, ways, search)

    def _inside(self, function: Function, register: int, call: Instruction) -> Iterator[Held]:
        """The parameters of the functions that a call enters which it gives a register."""
        for edge in self.transfer.edges(function, call):
            if edge.is_followed:
                yield from self._given(function, call, edge.callee, register)

    def _passed_back(self, function: Function) -> Iterator[Held]:
        """What calls of a function hold that it gives a value back to."""
        for caller, call in self.facts.call_places(function):
            if op.DEFINES[call[0]] and self._enters(caller, call, function):
                yield caller, call[2]

    def _given(self, function: Function, call: Instruction, callee: Function, register: int) -> Iterator[Held]:
        holds = call[0] not in _CONSTRUCTING and call[3] == register and deferred_target(function, call) is not None
        for one in callee.by_opcode[op.PARAM]:
            if holds or register in _given_for(function, call, callee, one[3]):
                yield callee, one[2]


def _each(held: Iterable[Held], key: Key, ways: Ways) -> Iterator[_Shared]:
    yield from ((function, register, key, ways) for function, register in held)


def _written(function: Function, register: int) -> Key:
    """A key that is written down, unless it counts from the end."""
    key = function.constant(register)
    return None if isinstance(key, int) and key < 0 else key


def _may_be(key: Key, other: Key) -> bool:
    """Whether two keys may be the same."""
    return key is None or other is None or key == other


def _key_taken(function: Function, one: Instruction) -> Key:
    """The key under which an instruction takes an element, if that is written down."""
    if one[0] == op.ITEM:
        return _written(function, one[4])
    return int(one[4]) if one[0] == op.UNPACK and (one[6] == op.NONE or one[4] < one[6]) else None


def _parts_with_keys(function: Function, one: Instruction) -> Iterator[tuple[Key, int]]:
    """The parts of a display, each with its key, if that is known."""
    if one[0] == op.DICT:
        yield from ((_written(function, key), value) for key, value in zip(one[3::2], one[4::2], strict=True))
        return
    kind = function.unit.ir.constants[one[3]]
    starred = kind[1] if isinstance(kind, tuple) else ()
    yield from ((place if place < min(starred, default=len(one)) else None, part) for place, part in enumerate(one[4:]))


def _given_for(function: Function, call: Instruction, callee: Function, index: int) -> list[int]:
    """The registers that may bring what a parameter holds."""
    if call[0] not in _CONSTRUCTING:
        return brought(function, call, callee, index)
    given = call[_FIRST:]
    return [given[index - 1]] if 0 < index <= len(given) else []
