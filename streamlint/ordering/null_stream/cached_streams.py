"""C++: the current stream, asked for once and kept: in a static variable, a global, or a member of an object that outlives the call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import Constant, Instance, LibraryObject, Site
from streamlint.facts.files.cpp_scopes import last_part
from streamlint.facts.files.program import Unit
from streamlint.facts.values.constructions import is_constructor, is_destructor
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.code import spelled
from streamlint.ordering.null_stream.streams_in_scope import StreamsInScope
from streamlint.ordering.places.places import Place, Places, cell_of, is_object
from streamlint.transfer.modelled import operands_of
from streamlint.transfer.transfer import Transfer
from streamlint.waits.questions import conditions

_KEEPING = (op.SET_NAME, op.SET_ATTR)
_ORDERING = frozenset({"wait", "record", "synchronize", "set_stream", "scope", "destroy", "query", "record_use"})


class CachedStream(NamedTuple):
    """A current stream that is read once, and the work of later calls that is put on it."""

    name: str
    read: Site
    uses: tuple[Site, ...]


class CachedStreams:
    """Finds the current streams that code keeps."""

    def __init__(self, transfer: Transfer, places: Places, in_scope: StreamsInScope) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.places = places
        self.in_scope = in_scope

    def of(self, unit: Unit) -> Iterator[CachedStream]:
        """The current streams that a file keeps."""
        for one in unit.body.by_opcode[op.SET_NAME]:
            if self._is_current(unit.body, one[3]):
                name = unit.body.text(one[2])
                yield from self._reported(name, Site(unit.body, one), unit.functions, self.places.of_name(unit.body, name), None)
        for function in unit.functions:
            yield from self._in_statics(function)
            yield from self._filled_statics(function)
            yield from self._filled(function)
            if is_constructor(function) and function.owner is not None:
                yield from self._in_members(function, function.owner)

    def _in_statics(self, function: Function) -> Iterator[CachedStream]:
        for register in function.code.statics if function.code.kind != "module" else ():
            if self._is_current(function, register):
                definition = function.definitions[register]
                assert definition is not None
                stored = [one for one in function.by_opcode[op.STORE] if one[3] == register]
                place = cell_of(function, stored[0][2]) if stored else self.places.of(function, _unwrapped(function, register))
                named = [function.text(one[2]) for one in function.by_opcode[op.BIND] if one[3] == register]
                name = str(place.root[1]) if stored else next(iter(named), "")
                yield from self._reported(name, Site(function, definition), function.below, place, definition)

    def _filled_statics(self, function: Function) -> Iterator[CachedStream]:
        """The static variables that a function gives the current stream where it finds them empty."""
        statics = function.code.statics if function.code.kind != "module" else ()
        for phi in function.by_opcode[op.PHI] if statics else ():
            empty = {self.places.of(function, each) for each in phi[3:] if each in statics}
            for each in (register for register in phi[3:] if empty and self._is_current(function, register)):
                definition = function.definitions[each]
                if definition is not None and self._is_found_empty(function, definition, empty):
                    name = next((function.text(one[2]) for one in function.by_opcode[op.BIND] if one[3] == each), "")
                    yield from self._reported(name, Site(function, definition), [function], self.places.of(function, phi[2]), definition)

    def _filled(self, function: Function) -> Iterator[CachedStream]:
        """The same of variables of the file, and of members of objects that are kept."""
        for one in (each for opcode in _KEEPING for each in function.by_opcode[opcode]):
            for place, register in self.places.assigned(function, one):
                home = self._home(function, place)
                if home is not None and self._is_current(function, register) and self._is_found_empty(function, one, {place}):
                    name = str(place.path[-1] if place.path else place.root[2])
                    yield from self._reported(name, Site(function, one), home, place, None)

    def _home(self, function: Function, place: Place) -> list[Function] | None:
        """The functions that work with a variable of the file, or with a member of an object that is kept; None of anything else."""
        if place.root[0] == "global" and not place.path:
            return function.unit.functions
        owner = function.owner if place.root == ("parameter", 0) and len(place.path) == 1 else None
        return _plain_methods(owner) if owner is not None and self._outlives(owner, 0) else None

    def _is_found_empty(self, function: Function, one: Instruction, places: set[Place]) -> bool:
        """Whether an instruction stands behind a test that one of some places holds nothing."""
        for condition, holds in conditions(function, function.blocks[one]):
            asked = function.definitions[condition]
            if asked is not None and asked[0] == op.COMPARE and function.text(asked[3]) in ("==", "!="):
                is_null = any(isinstance(value, Constant) and not value.value for value in self.facts.values(function, asked[5]).values)
                holds, condition = (function.text(asked[3]) == "!=") == holds, asked[4] if is_null else op.NONE
            if not holds and condition >= 0 and self.places.of(function, condition) in places:
                return True
        return False

    def _in_members(self, constructor: Function, owner: ClassInfo) -> Iterator[CachedStream]:
        for field in owner.ir.fields:
            if field.static or not self.in_scope.is_stream(owner.body, field.type):
                continue
            stores = [store for method in owner.methods.values() for each in method for store in self._stores(each, field.name)]
            units = self.facts.program.cpp.mentioning(field.name)
            outside = [store for unit in units for store in unit.attribute_stores.get(field.name, ())]
            own = [register for function, one, register in stores if function is constructor]
            if len(stores) != 1 or len(own) != 1 or outside or not self._is_current(constructor, own[0]):
                continue
            place = Place(("parameter", 0), (field.name,))
            if self._outlives(owner, 0):
                yield from self._reported(field.name, Site(constructor, stores[0][1]), _plain_methods(owner), place, None)

    def _stores(self, method: Function, field: str) -> Iterator[tuple[Function, Instruction, int]]:
        for function in method.below:
            for target, register in (pair for one in function.code.instructions() for pair in self.places.assigned(function, one)):
                if target.path and target.path[-1] == field and is_object(target.root):
                    one = next(each for each in function.code.instructions() if (target, register) in self.places.assigned(function, each))
                    yield function, one, register

    def _is_current(self, function: Function, register: int) -> bool:
        """Whether a register holds the current stream, as it is passed out where it stands."""
        register = _unwrapped(function, register)
        values = list(self.facts.values(function, register).values) if register >= 0 else []
        streams = [value for value in values if isinstance(value, LibraryObject) and value.kind == "stream"]
        return bool(streams) and all(value.detail == "current" for value in streams)

    def _reported(self, name: str, read: Site, functions: list[Function], place: Place, made: Instruction | None) -> Iterator[CachedStream]:
        uses: list[Site] = []
        for function in functions:
            if function.code.kind in ("module", "class"):
                continue
            for one in function.code.instructions():
                is_own = made is not None or one is read.instruction or is_constructor(function)
                if not is_own and self._is_assigned(function, one, place):
                    return
                if self._puts_work(function, one, place):
                    uses.append(Site(function, one))
        if uses:
            yield CachedStream(name.rpartition("::")[2], read, tuple(uses))

    def _is_assigned(self, function: Function, one: Instruction, place: Place) -> bool:
        return any(target == place for target, _ in self.places.assigned(function, one))

    def _puts_work(self, function: Function, one: Instruction, place: Place) -> bool:
        """Whether an instruction launches on a stream, is given it, or gives it back."""
        if one[0] == op.LAUNCH:
            return any(self._is(function, register, place) for register in one[9 : 6 + one[5]])
        if one[0] == op.RETURN:
            return self._is(function, one[2], place)
        if one[0] not in (op.CALL, op.INVOKE):
            return False
        given = operands_of(function, one, receiver=False)
        if not any(self._is(function, register, place) for register in given) or last_name(function, one) == "stream":
            return False
        return not any(call.row.effect in _ORDERING for call in self.transfer.modelled(function, one))

    def _is(self, function: Function, register: int, place: Place) -> bool:
        register = _unwrapped(function, register)
        if register < 0:
            return False
        found = self.places.of(function, register)
        if found.root[0] == "this" and place.root == ("parameter", 0):
            return found.path == place.path
        if found.root[0] == place.root[0] == "global" and not found.path:
            return last_part(str(found.root[2])) == last_part(str(place.root[2]))
        return found == place

    # --- how long an object lives

    def _outlives(self, definition: ClassInfo, depth: int) -> bool:
        """Whether objects of a class are kept beyond the call that makes them: bound to Python, static, global, stored, or members."""
        name = definition.ir.name
        for unit in self.facts.program.cpp.mentioning(name):
            for function in unit.functions:
                if self._is_bound(function, name) or any(self._holds(function, register, definition) for register in _kept_by(function)):
                    return True
        holders = (one for unit in self.facts.program.cpp.mentioning(name) for one in unit.classes if one is not definition)
        for holder in holders:
            fields = [field for field in holder.ir.fields if field.type is not None and _names(field.type, name)]
            if any(field.static for field in fields) or (fields and depth < 2 and self._outlives(holder, depth + 1)):
                return True
        return False

    def _is_bound(self, function: Function, name: str) -> bool:
        """Whether ``py::class_<C>(m, "C")`` exports a class."""
        for one in function.by_opcode[op.CALL]:
            given = function.code.templates.get(one[1])
            if given and last_name(function, one) == "class_" and spelled(given[0]).rpartition("::")[2] == name:
                return True
        return False

    def _holds(self, function: Function, register: int, definition: ClassInfo) -> bool:
        values = self.facts.values(function, register).values if register >= 0 else ()
        return any(isinstance(value, Instance) and value.definition is definition for value in values)


def _kept_by(function: Function) -> Iterator[int]:
    """The registers of what a function stores in globals, statics, members of other objects and elements."""
    if function.code.kind != "class":
        yield from (one[3] for one in function.by_opcode[op.SET_NAME])
    yield from function.code.statics
    yield from (one[4] for opcode in (op.SET_ATTR, op.SET_ITEM) for one in function.by_opcode[opcode])
    yield from (one[3] for one in function.by_opcode[op.SET_DEREF])


def _unwrapped(function: Function, register: int) -> int:
    """The register behind copies, casts and ``.stream()``."""
    while register >= 0 and (one := function.definitions[register]) is not None:
        if one[0] in (op.COPY, op.CAST, op.REBIND):
            register = one[{op.COPY: 3, op.CAST: 4, op.REBIND: 5}[one[0]]]
        elif one[0] == op.INVOKE and function.text(one[4]) == "stream":
            register = one[3]
        else:
            break
    return register


def _names(kind: tuple[object, ...], name: str) -> bool:
    args = kind[1] if isinstance(kind[1], tuple) else ()
    return str(kind[0]).rpartition("::")[2] == name or any(isinstance(arg, tuple) and _names(arg, name) for arg in args)


def _plain_methods(owner: ClassInfo) -> list[Function]:
    """The methods of a class, constructors and destructors aside."""
    return [each for method in owner.methods.values() for each in method if not is_constructor(each) and not is_destructor(each)]
