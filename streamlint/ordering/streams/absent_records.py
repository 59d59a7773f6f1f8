"""Events of Python that no code records: where the places are known, by attribute and by key, to which an event goes from its maker.

An event that leaves these places, or that code takes out of a container by a key that is not known, may be recorded there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.counters import iterable_of, range_of
from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import Constant, Instance, Site, Unknown
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import ANY, Element, Key
from streamlint.ordering.streams.event_places import EventPlaces
from streamlint.ordering.streams.streams import sites_of
from streamlint.transfer.actions import Recorded, Synchronized
from streamlint.transfer.transfer import CALLING
from streamlint.transfer.waiting import Waited
from streamlint.waits.operands import argument_registers, operand_of

_MOST = 600
"""Places of one event that are looked at."""
_MOST_KEYS = 16
_SAME = frozenset({op.COPY, op.CAST, op.REBIND, op.PHI})
_SILENT = frozenset({op.BIND, op.COMPARE, op.UNARY, op.BRANCH, op.DESTROY, op.MORE, op.DEL_ATTR})
_LOOKS_AT = frozenset({"len", "isinstance", "id", "hash", "bool", "type", "hasattr", "keys"})
_WHOLE = frozenset({"list", "tuple", "iter", "reversed", "values"})
_TAKES = frozenset({"get", "pop"})
_PUTTING = {op.PUT: 4, op.SET_ITEM: 4, op.APPEND: 3}
_KEEPING = frozenset({*_PUTTING, op.BUILD, op.DICT, op.SET_ATTR, op.STORE})
_KEEPS = frozenset({"event", "wait", "synchronize", "query", "destroy", "elapsed"})


class Held(NamedTuple):
    """A register, and the keys that lead from what it holds to the event."""

    function: Function
    register: int
    path: tuple[Key, ...] = ()


class AbsentRecords:
    """Asks where events go."""

    def __init__(self, events: EventPlaces) -> None:
        self.events = events
        self.transfer, self.facts, self.places = events.transfer, events.facts, events.places

    def find(self, function: Function, one: Instruction) -> list[tuple[Site, str]]:
        """The waits for events that an instruction makes and nothing records: for all of them, or for one of the keys of a container."""
        if function.is_cpp or one[0] not in CALLING:
            return []
        creation = Site(function, one)
        for key in dict.fromkeys((None, *self._keys(function, one))):
            waits = _Trace(self, creation, key).run()
            if (
                waits
                and not any(self._may_record(creation, key, *record) for record in self.events.records)
                and not self._is_tested(creation)
            ):
                return sorted(set(waits), key=lambda wait: (wait[0].function.unit.path, wait[0].row))
        return []

    def _keys(self, function: Function, one: Instruction) -> list[object]:
        """The keys under which a loop puts the events that it makes; None where it is one event, or where it is put is not known."""
        for use in function.uses[one[2]]:
            if use[0] in (op.PUT, op.SET_ITEM) and use[4] == one[2] and function.constant(use[3]) is None:
                values = list(self.transfer.values(function, use[3]))
                constants = [value.value for value in values if isinstance(value, Constant)]
                return constants if len(constants) == len(values) <= _MOST_KEYS else []
            if use[0] == op.APPEND:
                return list(self._counted(function, use))
        return [None]

    def _counted(self, function: Function, use: Instruction) -> range:
        """How many elements a loop over as many numbers appends."""
        block = function.homes[use][0]
        inside = [loop for loop in function.control.loops if block in loop.body]
        for one in function.by_opcode[op.NEXT] if len(inside) == 1 else ():
            given = range_of(function, iterable_of(function, one)) if function.blocks[one] in inside[0].body else ()
            number = function.constant(given[0]) if len(given) == 1 else None
            if isinstance(number, int) and number <= _MOST_KEYS:
                return range(number)
        return range(0)

    def _may_record(self, made: Site, key: object, function: Function, register: int) -> bool:
        """Whether a record may be one of an event that was made at a place and is kept under a key."""
        if made not in sites_of(list(self.transfer.values(function, register)))[0]:
            return False
        one = function.definitions[register]
        if one is not None and one[0] == op.UNPACK and one[6] == op.NONE:
            return key is None or not is_other(one[4], key)
        path = [each.key for each in self.places.of(function, register).path if isinstance(each, Element)]
        return key is None or not path or not is_other(path[-1], key)

    def _is_tested(self, made: Site) -> bool:
        """Whether code asks the object that keeps the event for attributes by names that are not known."""
        owner = made.function.body_of or made.function.owner
        if owner is None:
            return False
        for function in (each for unit in self.facts.program.mentioning("getattr") if not unit.is_cpp for each in unit.functions):
            for one in (each for each in function.by_opcode[op.CALL] if len(each) > 6 and function.dotted(each[3]) == "getattr"):
                kept = (value.definition for value in self.transfer.values(function, one[5]) if isinstance(value, Instance))
                if function.constant(one[6]) is None and any(self.facts.hierarchy.derives(each, owner) for each in kept):
                    return True
        return False

    def is_only(self, function: Function, register: int, made: Site) -> bool:
        """Whether a register holds events of one maker alone."""
        values = list(self.transfer.values(function, register))
        return sites_of(values)[0] == {made} and not any(type(value).__name__ == "Unknown" for value in values)


def is_other(asked: object, key: object) -> bool:
    """Whether what code asks for is another element than the one under a key: numbers that count from the end may be any."""
    if isinstance(asked, tuple) or asked is None or (isinstance(asked, int) and asked < 0):
        return False
    return type(asked) is type(key) and asked != key


class _Escapes(Exception):
    """An event goes where nobody sees what is done with it."""


class _Trace:
    """Follows one event from its maker."""

    def __init__(self, records: AbsentRecords, made: Site, key: object) -> None:
        self.records, self.made, self.key = records, made, key
        self.transfer, self.facts, self.places = records.transfer, records.facts, records.places
        self.waits: list[tuple[Site, str]] = []
        self._waiting = [Held(made.function, made.instruction[2])]
        self._seen = set(self._waiting)

    def run(self) -> list[tuple[Site, str]]:
        """The waits for it; none if it may be recorded."""
        try:
            for held in self._waiting:
                if len(self._waiting) > _MOST:
                    return []
                for use in held.function.uses[held.register]:
                    self._add(self._used(held, use))
        except _Escapes:
            return []
        return self.waits

    def _add(self, found: Iterator[Held]) -> None:
        for held in found:
            if held not in self._seen and len(held.path) < 5:
                self._seen.add(held)
                self._waiting.append(held)

    def _used(self, held: Held, use: Instruction) -> Iterator[Held]:
        """What holds the event behind a use of what holds it."""
        opcode = use[0]
        if opcode in _SAME or opcode == op.ITER:
            yield held._replace(register=use[2])
        elif opcode in (op.CALL, op.INVOKE):
            yield from self._called(held, use)
        elif opcode in (op.ITEM, op.NEXT, op.UNPACK, op.ATTR):
            yield from self._taken(held, use)
        elif opcode in _KEEPING:
            yield from self._kept(held, use)
        elif opcode == op.RETURN:
            yield from self._returned(held)
        elif opcode == op.SET_NAME and (body_of := held.function.body_of) is not None and self._is_it(held):
            yield from self._read_as({body_of}, held.function.text(use[2]), held.path)
        elif opcode not in _SILENT:
            raise _Escapes

    def _kept(self, held: Held, use: Instruction) -> Iterator[Held]:
        """What holds the event where a container, an attribute or a shared variable is given it."""
        function, register, path = held
        opcode = use[0]
        if opcode in _PUTTING:
            yield from self._put(held, use) if use[_PUTTING[opcode]] == register else ()
        elif opcode == op.BUILD:
            yield from (Held(function, use[2], (Element(index), *path)) for index, each in enumerate(use[4:]) if each == register)
        elif opcode == op.DICT:
            keys = (key for key, value in zip(use[3::2], use[4::2], strict=False) if value == register)
            yield from (Held(function, use[2], (self.places.element(function, key), *path) if key != op.NONE else path) for key in keys)
        elif opcode == op.SET_ATTR:
            yield from self._read_as(self._classes(function, use[2]), function.text(use[3]), path) if use[4] == register else ()
        else:
            name = function.unit.ir.constants[use[2]]
            loads = ((each, one) for each in function.unit.functions for one in each.by_opcode[op.LOAD])
            yield from (Held(each, one[2], path) for each, one in loads if each.unit.ir.constants[one[3]] == name)

    def _taken(self, held: Held, use: Instruction) -> Iterator[Held]:
        """A part of what leads to the event."""
        if not held.path:
            if use[0] != op.ATTR:
                raise _Escapes
            return
        first, function = held.path[0], held.function
        if use[0] == op.ATTR:
            asked: Key = function.text(use[4])
        elif use[0] == op.ITEM:
            asked = self.places.element(function, use[4])
        else:
            asked = Element(use[4]) if use[0] == op.UNPACK and use[6] == op.NONE else ANY
        if asked == first or (isinstance(first, Element) and isinstance(asked, Element) and not is_other(asked.key, first.key)):
            yield Held(function, use[2], held.path[1:])

    def _put(self, held: Held, use: Instruction) -> Iterator[Held]:
        """What a container holds in which something is put: under its key, or the one that is asked about."""
        function, container = held.function, use[2]
        key = ANY if use[0] == op.APPEND else self.places.element(function, use[3])
        is_first = not held.path and self.key is not None
        path = (Element(self.key) if is_first else key, *held.path)
        definition = function.definitions[container]
        if definition is not None and definition[0] == op.ATTR:
            yield from self._read_as(self._classes(function, definition[3]), function.text(definition[4]), path)
        elif definition is not None and definition[0] in (op.BUILD, op.DICT, op.CALL):
            yield Held(function, container, path)
        else:
            raise _Escapes

    def _classes(self, function: Function, register: int) -> set[ClassInfo]:
        return {value.definition for value in self.transfer.values(function, register) if isinstance(value, Instance)}

    def _read_as(self, classes: set[ClassInfo], name: str, path: tuple[Key, ...]) -> Iterator[Held]:
        """Wherever an attribute is read, of one of some classes or of what is not known."""
        if not classes:
            raise _Escapes
        hierarchy = self.facts.hierarchy
        for unit in self.facts.program.mentioning(name):
            if unit.is_cpp:
                raise _Escapes
            for each in unit.functions:
                for one in (read for read in each.by_opcode[op.ATTR] if each.text(read[4]) == name):
                    others = [value.definition for value in self.transfer.values(each, one[3]) if isinstance(value, Instance)]
                    related = (hierarchy.derives(a, b) or hierarchy.derives(b, a) for a in others for b in classes)
                    if not others or any(related):
                        yield Held(each, one[2], path)

    def _returned(self, held: Held) -> Iterator[Held]:
        """What the callers of a function hold; nobody sees those of a function that others may call."""
        places = [place for place in self.facts.call_places(held.function) if self._may_give(held, *place)]
        if not places:
            raise _Escapes
        yield from (Held(caller, call[2], held.path) for caller, call in places if op.DEFINES[call[0]])

    def _is_it(self, held: Held) -> bool:
        """Whether a register may hold the event itself."""
        return self.made in sites_of(list(self.transfer.values(held.function, held.register)))[0]

    def _may_give(self, held: Held, caller: Function, call: Instruction) -> bool:
        """Whether a call may give what a function gives: of a function without a name, only what it holds says so."""
        if held.function.code.kind != "lambda":
            return True
        return self._is_it(Held(caller, call[2])) or any(isinstance(value, Unknown) for value in self.transfer.values(caller, call[2]))

    def _called(self, held: Held, use: Instruction) -> Iterator[Held]:
        function, register, path = held
        given = [each for _, each in argument_registers(function, use)]
        name = last_name(function, use)
        if use[0] == op.INVOKE and use[3] == register and path:
            yield from self._by_method(held, use, name)
        elif not path and any(self.transfer.modelled(function, use)):
            self._hear(held, use)
        elif path and name in ("enumerate", "zip"):
            index = 1 if name == "enumerate" else given.index(register)
            yield Held(function, use[2], (ANY, Element(index), *path[1:]))
        elif name in _WHOLE and path:
            yield Held(function, use[2], (ANY, *path[1:]))
        elif name not in _LOOKS_AT:
            yield from self._entered(held, use)

    def _by_method(self, held: Held, use: Instruction, name: str) -> Iterator[Held]:
        """A method of a container that holds the event."""
        function, _, path = held
        if isinstance(path[0], str):  # a method of the object that has it: it reads the attribute by itself
            return
        if name in function.known("gives-entries"):
            yield Held(function, use[2], (ANY, Element(1), *path[1:]))
        elif name in _WHOLE:
            yield Held(function, use[2], (ANY, *path[1:]))
        elif name in _TAKES:
            asked = self.places.element(function, use[6]) if len(use) > 6 else ANY
            if not is_other(asked.key, getattr(path[0], "key", None)):
                yield Held(function, use[2], path[1:])
        elif name not in _LOOKS_AT and name not in function.known("puts"):
            raise _Escapes

    def _hear(self, held: Held, use: Instruction) -> None:
        """What a call of a library does with the event."""
        calls = list(self.transfer.modelled(held.function, use))
        if any(call.row.effect not in _KEEPS for call in calls):
            raise _Escapes
        for action in self.transfer.of(held.function, use):
            if isinstance(action, Recorded):
                raise _Escapes
            is_wait = isinstance(action, (Waited, Synchronized)) and action.of == held.register
            if is_wait and self.records.is_only(held.function, held.register, self.made) and self._is_at_key(held):
                self.waits.append((Site(held.function, use), str(getattr(action, "name", ""))))

    def _is_at_key(self, held: Held) -> bool:
        """Whether a register holds the event under the key that is asked about, and no other."""
        keys = [each.key for each in self.places.of(held.function, held.register).path if isinstance(each, Element)]
        return self.key is None or (bool(keys) and keys[-1] == self.key)

    def _entered(self, held: Held, use: Instruction) -> Iterator[Held]:
        """The parameters of the functions that a call enters, all of which are known; the fields of the record that it makes."""
        function, register, path = held
        fields = [field for field, each in self.places.records.given(function, use) if each == register]
        if fields:
            for field in fields:
                yield Held(function, use[2], (field, *path))
            return
        edges = self.transfer.edges(function, use)
        if not edges or any(not edge.is_followed or edge.is_guess or edge.is_higher_order for edge in edges):
            raise _Escapes
        for edge in edges:
            for param in edge.callee.by_opcode[op.PARAM]:
                if operand_of(function, use, edge.callee, param[3]) == register:
                    yield Held(edge.callee, param[2], path)
