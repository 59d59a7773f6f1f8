"""Which memory a register means: the variable behind pointers, offsets, views and accessors."""

from __future__ import annotations

from typing import TypeVar

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import assigned_at_once, behind, behind_copies
from streamlint.facts.code.objects import Constant, Instance, Memory, are_plain, is_unknown
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import Selector
from streamlint.ordering.paths.fields import Fields
from streamlint.ordering.places.places import ADDRESS, POINTEE, Key, Place, Places
from streamlint.ordering.streams.concurrent_work import Event
from streamlint.transfer.actions import Viewed
from streamlint.transfer.launches import Launches
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import argument_registers, given_to

Name = TypeVar("Name")
_IN_CPP = frozenset({op.LOAD, op.ITEM, op.BINARY, op.INPLACE})
_ELEMENTWISE = frozenset({"==", "!=", "<", ">", "<=", ">="})


class Storages:
    """Names memory by the variables that lead to it."""

    def __init__(self, transfer: Transfer, places: Places, launches: Launches | None = None) -> None:
        self.transfer = transfer
        self.launches = launches
        self.facts = transfer.facts
        self.places = places
        self.fields = transfer.one_of(Fields, transfer, places)

    def of(self, function: Function, register: int) -> Place | None:
        """The variable that holds the memory of a register, or a pointer to it; None of a number."""
        for _ in range(12):
            register = behind_copies(function, register)
            one = function.definitions[register] if register >= 0 else None
            if one is None:
                return None
            inner = self.inside(function, register)
            if inner is None:
                break
            register = inner
        if self.is_number(function, register):
            return None
        return plain(self.places.of(function, register))

    def touched(self, event: Event) -> tuple[set[Place], set[Place]]:
        """The memory that a piece of work reads and writes, by the names of the function whose event it is."""
        assert event.work is not None
        packed = self._packed(event)
        sides = packed[1:] if packed is not None else (event.work.reads, event.work.writes)
        event = packed[0] if packed is not None else event
        reads, writes = ({self.named(event, register) for register in side} for side in sides)
        return {place for place in reads if place is not None}, {place for place in writes if place is not None}

    def _packed(self, event: Event) -> tuple[Event, tuple[int, ...], tuple[int, ...]] | None:
        """The accesses of a kernel that a template launches with the rest of its arguments: those of the call of the template."""
        work, function = event.work, event.at.function
        if work is None or work.kernel < 0 or not event.via or self.launches is None:
            return None
        rest = next((index for register in work.given if (index := self._pack(function, register)) is not None), None)
        kernel = function.definitions[behind_copies(function, work.kernel)]
        if rest is None or kernel is None or kernel[0] != op.PARAM:
            return None
        site = event.via[-1]
        given = [register for _, register in argument_registers(site.function, site.instruction)]
        passed = given_to(site.function, site.instruction, function, kernel[3])
        if passed is None or passed < 0:
            return None
        reads, writes, _ = self.launches.accesses(site.function, passed, given[rest - function.has_receiver :])
        return event._replace(at=site, via=event.via[:-1]), reads, writes

    def _pack(self, function: Function, register: int) -> int | None:
        """The number of the parameter that takes the rest of the arguments, if a register holds it or its address."""
        register = behind_copies(function, register)
        one = function.definitions[register] if register >= 0 else None
        if one is not None and one[0] in (op.ADDRESS, op.LOAD):
            stored = [function.definitions[each[3]] for each in function.by_opcode[op.STORE] if each[2] == one[3]]
            one = stored[0] if stored else None
        is_rest = one is not None and one[0] == op.PARAM and function.code.parameters[one[3]].kind == "star"
        return one[3] if one is not None and is_rest else None

    def named(self, event: Event, register: int) -> Place | None:
        """The memory of a register, by the names of the function whose event it is."""
        return self.outward(event, self.of(event.at.function, register))

    def outward(self, event: Event, found: Place | None) -> Place | None:
        """A place of the function where work stands, by the names of the function whose event it is; None where it has none there."""
        function = event.at.function
        for site in reversed(event.via):
            found = self._as_parameter(function, found) if found is not None else None
            if found is None or found.root[0] != "parameter":
                return found if found is None or found.root[0] != "register" else None
            index = int(str(found.root[1]))
            if index == 0 and function.has_receiver and site.function.method is not None and site.function.method.owner is function.owner:
                function = site.function
                continue
            given = given_to(site.function, site.instruction, function, index)
            found = self._behind(site.function, given, found.path) if given is not None and given >= 0 else None
            function = site.function
        return found

    def _as_parameter(self, function: Function, found: Place) -> Place:
        """A variable that keeps a parameter whose address is taken, as the parameter."""
        if found.root[0] != "cell":
            return found
        for one in function.by_opcode[op.STORE]:
            definition = function.definitions[one[3]]
            if definition is not None and definition[0] == op.PARAM and function.unit.ir.constants[one[2]] == tuple(found.root[1:3]):
                return Place(("parameter", definition[3]), found.path)
        return found

    def _behind(self, function: Function, register: int, path: tuple[Key, ...]) -> Place | None:
        """What a path leads to from a register: what a function has put into a member of an object that it made."""
        if path and isinstance(path[0], str):
            given, _ = self.fields.given(function, register, path[0])
            if len(given) == 1:
                return self._behind(function, given[0], path[1:])
        base = self.of(function, register)
        return base.behind(*path) if base is not None else None

    def inside(self, function: Function, register: int) -> int | None:
        """The register of what an offset, a view or an accessor is of."""
        one = function.definitions[register]
        if one is None:
            return None
        if one[0] == op.ADDRESS_ITEM or (one[0] == op.INVOKE and self._is_accessor(function, one)):
            return one[3]
        if one[0] == op.CONSTRUCT and len(one) == 6:
            return None if self._is_sized(function, one) else one[5]
        if one[0] == op.UNPACK:
            return assigned_at_once(function, one)
        if function.is_cpp and one[0] in _IN_CPP:
            return self._inside_cpp(function, one)
        if one[0] in (op.CALL, op.INVOKE, op.ITEM, op.ATTR):
            viewed = (action.register for action in self.transfer.of(function, one) if isinstance(action, Viewed))
            return next(viewed, self._taken_over(function, one))
        return None

    def _is_sized(self, function: Function, one: Instruction) -> bool:
        """Whether an object of a class of the program is made of a number: it has memory of its own."""
        made = self.facts.values(function, one[2]).values
        return any(isinstance(value, Instance) for value in made) and self.is_number(function, one[5])

    def _is_accessor(self, function: Function, one: Instruction) -> bool:
        """Whether a method of a library gives the address of its object's memory; that of a program's own one has a place."""
        return function.text(one[4]) in function.known("address") and not self.facts.callee_functions(function, one)

    def _inside_cpp(self, function: Function, one: Instruction) -> int | None:
        """C++: the pointer of which an offset is, the memory whose element is taken, or that whose address a variable holds."""
        if one[0] == op.LOAD:
            return self._addressed(function, one)
        if one[0] == op.ITEM:
            return one[3] if self._is_flat(function, one[3]) else None
        is_offset = function.text(one[3])[:1] in ("+", "-")
        return next((each for each in one[4:6] if is_offset and not self.is_number(function, each)), None)

    def is_taken_over(self, function: Function, one: Instruction) -> bool:
        """Whether a call makes nothing but an array of memory that is there."""
        return self._taken_over(function, one) is not None

    def _taken_over(self, function: Function, one: Instruction) -> int | None:
        """What another library's function takes over as it is: memory that is on the device already (``cupy.asarray(tensor)``)."""
        for call in self.transfer.modelled(function, one) if one[0] in (op.CALL, op.INVOKE) and not function.is_cpp else ():
            source = call.one("of") if call.row.effect == "transfer" and call.row.get("to") == "device" else None
            held = call.memory(source) if source is not None else []
            if any(value.type.partition(".")[0] != call.row.library and value.space != "host" for value in held):
                return source
            definition = function.definitions[source] if source is not None and source >= 0 and not held else None
            if (
                definition is not None
                and definition[0] in (op.CALL, op.INVOKE)
                and is_unknown(self.facts.values(function, definition[2]).values)
            ):
                return source
        return None

    def parts(self, function: Function, register: int) -> set[int]:
        """The registers of memory among what a register is made of: the elements of tuples and arrays, the addresses in them."""
        found: set[int] = set()
        for one in behind(function, [register], lambda one: _made_of(function, one)):
            inner = self.inside(function, one[2]) if one[0] == op.INVOKE else None
            if inner is not None and function.text(one[4]) in function.known("address"):
                found.add(inner)
            elif any(isinstance(value, Memory) and value.space == "device" for value in self.facts.values(function, one[2]).values):
                found.add(one[2])
        return found

    def _addressed(self, function: Function, one: Instruction) -> int | None:
        """What a variable holds the address of, where a call of a library has stored it there (``cudaGetSymbolAddress``)."""
        for address in function.by_opcode[op.ADDRESS]:
            for use in function.uses[address[2]] if address[3] == one[3] else ():
                for call in self.transfer.modelled(function, use) if use[0] == op.CALL else ():
                    into = call.row.get("into")
                    if call.row.effect == "same" and isinstance(into, Selector) and call.given(into) == address[2]:
                        return call.one("of")
        return None

    def _is_flat(self, function: Function, register: int) -> bool:
        """Whether the elements of a register are numbers of one piece of memory."""
        values = list(self.facts.values(function, register).values)
        return bool(values) and all(isinstance(value, Memory) for value in values)

    def is_number(self, function: Function, register: int) -> bool:
        """Whether a register holds a number or text."""
        values = list(self.facts.values(function, register).values) if register >= 0 else []
        if any(isinstance(value, Constant) and value.value is None for value in values):
            return False
        one = function.definitions[register] if register >= 0 and not function.is_cpp else None
        if one is not None and one[0] == op.COMPARE and function.text(one[3]) in _ELEMENTWISE:  # of arrays it is an array
            return all(self.is_number(function, each) for each in one[4:6])
        return are_plain(values)


def _made_of(function: Function, one: Instruction) -> list[int]:
    """The registers that an instruction reads, and what is appended to the list that it makes."""
    added = [use[3] for use in function.uses[one[2]] if use[0] == op.APPEND and use[2] == one[2]] if one[0] == op.BUILD else []
    return [*op.reads(one), *added]


def in_conflict(one: tuple[set[Name], set[Name]], other: tuple[set[Name], set[Name]]) -> set[Name]:
    """The memory over which two pieces of work have to be in order, by what each reads and writes: one writes what the other touches."""
    return (one[1] & (other[0] | other[1])) | (one[0] & other[1])


def plain(place: Place) -> Place:
    """A place without the steps between a pointer and what it points to."""
    path: tuple[Key, ...] = tuple(key for key in place.path if key not in (ADDRESS, POINTEE))
    return Place(place.root, path)
