"""Where a program makes events, and by which places code names them: also behind conversions, and in containers that a loop fills."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.code.counters import iterable_of
from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import Instance, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Models
from streamlint.models.vocabulary import Selector
from streamlint.ordering.places.places import ANY, POINTEE, Element, Place, Places, cell_of, register_place
from streamlint.ordering.streams.streams import sites_of
from streamlint.transfer.actions import Recorded, Synchronized
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.waiting import Waited

_MAKES = frozenset({"event"})
_KEEPS = frozenset({"event", "wait", "synchronize", "query", "destroy", "elapsed"})
"""Effects of calls that record no event and hand none on."""
_PASSED_ON = frozenset({op.COPY, op.CAST, op.REBIND, op.PHI})
_SOURCES = (".cu", ".cpp", ".cc", ".cxx", ".c")
_LOOKED_AT = frozenset({op.COMPARE, op.UNARY, op.BRANCH, op.DESTROY, op.STORE, op.SET_NAME, op.BIND})


class EventPlaces:
    """The events of a program."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.places = places

    # --- where events are made

    def made(self) -> Iterator[tuple[Function, Instruction, Place]]:
        """The instructions that make events, each with the place that holds one behind it."""
        for call in self.transfer.sites(_MAKES):
            place = self._into(call)
            if place is not None and call.row.effect == "event":
                yield call.function, call.instruction, place
        for name in sorted(self._types):
            for unit in self.facts.program.mentioning(name):
                for function in unit.functions if unit.is_cpp else ():
                    for one in (*function.by_opcode[op.DECLARE], *function.by_opcode[op.CONSTRUCT]):
                        if self._is_event(function, one, name) and not self.is_static(function, one):
                            yield function, one, register_place(one[2])

    def made_for_fields(self) -> Iterator[tuple[Function, Instruction]]:
        """The calls in bodies of Python's classes that say what makes an event for each object."""
        units = {
            unit.number: unit
            for name in sorted(self.facts.models.with_effect("event"))
            for unit in self.facts.program.mentioning(name)
            if not unit.is_cpp
        }
        for _, unit in sorted(units.items()):
            for function in (each for each in unit.functions if each.body_of is not None):
                for one in function.by_opcode[op.CALL]:
                    is_created_here = Site(function, one) in sites_of(list(self.transfer.values(function, one[2])))[0]
                    if is_created_here and not any(self.transfer.modelled(function, one)):
                        yield function, one

    @cached_property
    def _types(self) -> frozenset[str]:
        """The last parts of the names of C++ classes whose objects are events."""
        return self.facts.cpp_models.gathered(_event_types)

    def _is_event(self, function: Function, one: Instruction, name: str) -> bool:
        kind = str(function.unit.ir.constants[one[3]][0])
        if kind.rpartition("::")[2] != name:
            return False
        return any(getattr(value, "kind", "") == "event" for value in self.transfer.values(function, one[2]))

    def _into(self, call: ModelledCall) -> Place | None:
        selector = call.row.get("into")
        if not isinstance(selector, Selector):
            return register_place(call.result)
        if call.row.gives_pair:
            return register_place(call.result).behind(Element(1))
        register = call.given(selector)
        if register is None:
            return None
        if selector.kind != "pointee":
            return register_place(register)
        place = self.places.of(call.function, register).behind(POINTEE)
        return self._element(call.function, place) or place

    def _element(self, function: Function, place: Place) -> Place | None:
        """What a loop's variable refers to: an element of the container that the loop goes over."""
        if place.root[0] != "cell" or place.path:
            return None
        for one in function.by_opcode[op.STORE]:
            over = iterable_of(function, function.definitions[one[3]])
            if over >= 0 and cell_of(function, one[2]) == place:
                return self.places.of(function, over).behind(ANY)
        return None

    def is_static(self, function: Function, one: Instruction) -> bool:
        """C++: whether a variable of a class outlives its function: nothing destroys it where its scope ends."""
        if one[0] not in (op.DECLARE, op.CONSTRUCT) or function.code.kind == "module":
            return False
        follows, seen = [one[2]], set[int]()
        while follows:
            register = follows.pop()
            if register in seen:
                continue
            seen.add(register)
            for use in function.uses[register]:
                if use[0] in (op.DESTROY, op.RETURN):
                    return False
                if use[0] in _PASSED_ON:
                    follows.append(use[2])
                elif use[0] == op.STORE:
                    follows += (load[2] for load in function.by_opcode[op.LOAD] if load[3] == use[2])
        return True

    def is_kept_by_static(self, function: Function, place: Place) -> bool:
        """C++: whether a static variable of a function holds what is made: the calls of the function find it as the last one left it."""
        if place.root[0] != "cell" or place.path:
            return False
        name, number = place.root[1:3]
        home = function.unit.function(int(str(number)))
        stores = (one for one in home.by_opcode[op.STORE] if home.unit.ir.constants[one[2]] == (name, number))
        return any(one[3] in home.code.statics for one in stores)

    # --- by which names

    def names(self, function: Function, register: int) -> tuple[Place, ...]:
        """The places of what a register holds; of an object that converts to an event, those of the event."""
        if register < 0:
            return ()
        found = self.places.names(function, register)
        if not function.is_cpp:
            return found
        return (*found, *(each.behind(*path) for path in self._converted(function, register) for each in found))

    def _converted(self, function: Function, register: int) -> Iterator[tuple[str, ...]]:
        """The members that conversion operators of an object's class give."""
        for value in self.transfer.values(function, register):
            if isinstance(value, Instance):
                for name, methods in value.definition.methods.items():
                    for method in methods if name.startswith("operator ") else ():
                        yield from self._given_back(method)

    def _given_back(self, method: Function) -> Iterator[tuple[str, ...]]:
        for one in method.by_opcode[op.RETURN]:
            place = self.places.of(method, one[2]) if one[2] >= 0 else None
            if place is not None and place.root == ("parameter", 0) and place.path:
                yield tuple(key for key in place.path if isinstance(key, str))

    def same(self, function: Function, register: int, place: Place) -> bool:
        """Whether a register holds the stream that is named by a place."""
        return register >= 0 and self.stream_place(function, register) == place

    def stream_place(self, function: Function, register: int) -> Place:
        """The place of a stream: C++ passes handles by value, so that no call changes the variable."""
        one = function.definitions[register]
        while one is not None and one[0] in (op.REBIND, op.COPY):
            register = one[5] if one[0] == op.REBIND else one[3]
            one = function.definitions[register]
        return self.places.of(function, register)

    # --- absence

    @cached_property
    def records(self) -> list[tuple[Function, int]]:
        """The records of the program, each with the register of its event."""
        return [
            (call.function, action.event)
            for call in self.transfer.sites(frozenset({"record"}))
            for action in self.transfer.of(call.function, call.instruction)
            if isinstance(action, Recorded)
        ]

    def is_recorded(self, made: Site) -> bool:
        """Whether any code of the program may record the events that are made at a place."""
        return any(made in sites_of(list(self.transfer.values(function, register)))[0] for function, register in self.records)

    def waits_of_member(self, owner: ClassInfo, name: str) -> list[tuple[Site, str]]:
        """The waits for a member of a class, if no known code records it, hands it on, or could do so from a file out of view."""
        is_enclosed = owner.unit.path.endswith(_SOURCES) or self.facts.program.cpp.is_private(owner, name)
        if not is_enclosed:
            return []
        waits: list[tuple[Site, str]] = []
        for unit in self.facts.program.mentioning(name):
            for function in unit.functions if unit.is_cpp else ():
                for register in self._reads_of(function, owner, name):
                    if not self._is_only_awaited(function, register, waits):
                        return []
        return sorted(set(waits), key=lambda wait: (wait[0].function.unit.path, wait[0].row))

    def _reads_of(self, function: Function, owner: ClassInfo, name: str) -> Iterator[int]:
        """The registers of a function that hold a member of a class, or may do so."""
        within = function.method.owner if function.method is not None else None
        for one in (*function.by_opcode[op.NAME], *function.by_opcode[op.ADDRESS_NAME]):
            if function.text(one[3]) == name and (within is owner or within is None or not within.declares(name)):
                yield one[2]
        for one in (*function.by_opcode[op.ATTR], *function.by_opcode[op.ADDRESS_ATTR]):
            if function.text(one[4]) == name:
                held = [value for value in self.transfer.values(function, one[3]) if isinstance(value, Instance)]
                if not held or any(not value.definition.declares(name) or value.definition is owner for value in held):
                    yield one[2]

    def _is_only_awaited(self, function: Function, register: int, waits: list[tuple[Site, str]]) -> bool:
        for use in function.uses[register]:
            if use[0] in _PASSED_ON:
                if not self._is_only_awaited(function, use[2], waits):
                    return False
            elif use[0] in (op.CALL, op.INVOKE):
                calls = list(self.transfer.modelled(function, use))
                if not calls or any(call.row.effect not in _KEEPS for call in calls):
                    return False
                for action in self.transfer.of(function, use):
                    if isinstance(action, (Waited, Synchronized)):
                        waits.append((Site(function, use), action.name))
            elif use[0] not in _LOOKED_AT:
                return False
        return True


def _event_types(models: Models) -> frozenset[str]:
    rows = models.calls.items()
    return frozenset(name.rpartition("::")[2] for name, row in rows if row.effect == "event" and "::" in name and not row.get("into"))
