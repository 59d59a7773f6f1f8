"""SL034: the memory from outside that the captures of a program read, and where each is followed from."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import uncast
from streamlint.facts.code.objects import Container, Memory, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import until
from streamlint.models import Row
from streamlint.models.vocabulary import Selector
from streamlint.ordering.memory.captured_calls import CapturedCalls, named
from streamlint.ordering.memory.on_device import OnDevice
from streamlint.ordering.places.flow import BUFFER, Tracked
from streamlint.ordering.places.places import Place, Places
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.transfer.work import Worked

_MOST_INSIDE = 30
"""Functions that a capture calls which are looked at for memory that they allocate."""
_SHARED = ("cell", "global")


Given = dict[int, Place]
_CALLS = (op.CALL, op.INVOKE)
_NAMED = frozenset({op.ATTR, op.LOAD, op.NAME})


class Capture(NamedTuple):
    """Where a capture begins: the call, or the entry of its scope, whose context manager is in ``scope`` (NONE where a call ends it).
    ``graph`` is the register of the graph, NONE where the end of the capture gives it."""

    begin: Site
    call: ModelledCall
    scope: int
    graph: int


class Input(NamedTuple):
    """Memory that a capture may read. It is followed from behind an instruction; ``origin`` is where it was allocated, else where the
    place that holds it is known from. ``is_allocated``: here, so that its references are known. ``is_inside``: in the capture, from a
    pool that does not belong to the graph; ``calls``: those of the capture that lead to the function which has made it. ``part``: it is
    what modules or optimizers lead to, of which a capture uses such a part."""

    capture: Capture
    start: Instruction
    tracked: frozenset[Tracked]
    origin: Site
    is_allocated: bool
    is_inside: bool = False
    calls: frozenset[Site] = frozenset()
    part: str = ""


class Captured:
    """Looks for captures, and for what they read."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.places = places
        self.memory = transfer.one_of(OnDevice, transfer)
        self.calls = CapturedCalls(transfer)
        self._capturing: dict[Function, bool] = {}
        self._changed: dict[str, list[Instruction]] = {}

    def find(self) -> Iterator[Input]:
        """The inputs of the captures of the program."""
        for capture in self.captures():
            yield from self._inputs(capture)

    def captures(self) -> Iterator[Capture]:
        """The captures of the program."""
        for call in self.transfer.sites({"capture"}):
            if call.row.get("part") in ("scope", "begin"):
                yield from self._captures(call)

    def _captures(self, call: ModelledCall) -> Iterator[Capture]:
        function, one = call.function, call.instruction
        held = call.row.get("graph")
        given = call.given(held) if isinstance(held, Selector) and held.kind not in ("result", "pointee") else None
        graph = op.NONE if given is None else given
        if call.row.get("part") == "begin":
            own = Capture(Site(function, one), call, op.NONE, graph)
            if held is None and not any(
                self.is_end(own, function, each) for each in function.code.instructions()
            ):  # a helper that only begins it
                yield from (Capture(Site(*place), call, op.NONE, op.NONE) for place in self.transfer.callers(function))
            yield own
            return
        for use in function.uses[one[2]]:
            if use[0] == op.ENTER:
                yield Capture(Site(function, use), call, one[2], graph)

    def _inputs(self, capture: Capture) -> Iterator[Input]:
        function = capture.begin.function
        region = list(self.region(capture))
        inside = {one[2] for one in region if op.DEFINES[one[0]]}
        found: dict[tuple[Instruction, frozenset[Tracked]], Input] = {}
        for one in region:
            for register in op.reads(one):
                if register < 0:
                    continue
                each = self._of_register(capture, register) if register not in inside else None
                definition = function.definitions[register]
                is_named = definition is not None and (definition[0] in _NAMED or self._is_pointer_given(capture, register))
                if each is None and definition is not None and (is_named or self._is_element(function, definition)):
                    each = self._of_place(capture, self.places.of(function, register), register)
                if each is not None:
                    found.setdefault((each.start, each.tracked), each)
        for place, is_memory in self._read_inside(function, region):
            each = self._of_place(capture, place, op.NONE, is_memory)
            if each is not None:
                found.setdefault((each.start, each.tracked), each)
        yield from found.values()
        yield from self._made_inside(capture, region)

    def _made_inside(self, capture: Capture, region: list[Instruction]) -> Iterator[Input]:
        """What a capture allocates from a pool that goes on after it: other memory may get the block once the last reference is gone."""
        function = capture.begin.function
        if capture.call.row.get("owns") or function.is_cpp or self._has_own_pool:
            return
        for one in region:
            producing = [work for work in self.transfer.works(function, one) if work.made >= 0 and not work.assumed]
            register = next((work.made for work in producing if self.memory.is_on_device(function, work.made, work, False)), op.NONE)
            if register < 0 and self._is_made_by_call(function, one):
                register = one[2]
            if register >= 0:
                tracked = frozenset(Tracked(BUFFER, place) for place in self.places.names(function, register))
                yield Input(capture, one, tracked, Site(function, one), True, True)
            elif capture.graph < 0:
                yield from self._made_below(capture, Site(function, one))

    def _made_below(self, capture: Capture, call: Site) -> Iterator[Input]:
        """What a function allocates that a capture calls, and functions that this calls."""
        waiting, seen = [(call, frozenset({call}))], {call.function}
        for (caller, one), calls in waiting:
            edges = self.transfer.edges(caller, one) if one[0] in (op.CALL, op.INVOKE) and len(seen) <= _MOST_INSIDE else ()
            for callee in (edge.callee for edge in edges if edge.is_direct and edge.callee not in seen):
                seen.add(callee)
                for inner in callee.code.instructions() if not callee.is_cpp else ():
                    at = Site(callee, inner)
                    waiting.append((at, calls | {at}))
                    producing = [work for work in self.transfer.works(callee, inner) if work.made >= 0 and not work.assumed]
                    if any(self.memory.is_on_device(callee, work.made, work, False) for work in producing):
                        tracked = frozenset(Tracked(BUFFER, place) for work in producing for place in self.places.names(callee, work.made))
                        yield Input(capture, inner, tracked, at, True, True, calls)

    @cached_property
    def _has_own_pool(self) -> bool:
        """Whether the program chooses allocators: whose blocks others get is not known then."""
        return any(True for _ in self.transfer.sites({"setting"}, where=lambda row: row.get("what") == "allocator"))

    def region(self, capture: Capture) -> Iterator[Instruction]:
        """The instructions between the begin and the end of a capture, as far as they stand in its function."""
        function, begin = capture.begin.function, capture.begin.instruction
        block, index = function.homes[begin]
        return until(function.code, (block, index + 1), lambda one: self.is_end(capture, function, one), function.control.successors)

    def is_end(self, capture: Capture, function: Function, one: Instruction) -> bool:
        """Whether an instruction ends a capture."""
        if capture.scope != op.NONE:
            return one[0] == op.EXIT and one[3] == capture.scope and function is capture.begin.function
        if one[0] not in (op.CALL, op.INVOKE):
            return False
        return any(call.row.effect == "capture" and call.row.get("part") == "end" for call in self.transfer.modelled(function, one))

    # --- where memory comes from

    def _of_register(self, capture: Capture, register: int) -> Input | None:
        """Memory that the function of a capture allocates itself; C++: memory that a variable points to."""
        function = capture.begin.function
        for each in self.transfer.shared(function, register) if register >= 0 and not function.is_cpp else ():
            one = function.definitions[each]
            works = self.transfer.works(function, one) if one is not None else ()
            is_made = any(work.made == each and not work.assumed and self._may_be_there(function, each, work) for work in works)
            if one is not None and (is_made or self._is_made_by_call(function, one)):
                tracked = frozenset(Tracked(BUFFER, place) for place in self.places.names(function, each))
                return Input(capture, one, tracked, Site(function, one), True)
            if one is not None and one[0] == op.UNPACK and self._is_by_hand(function, one[3]):
                tracked = frozenset(Tracked(BUFFER, place) for place in self.places.names(function, each))
                return Input(capture, one, tracked, Site(function, one), False)
        return None

    def _is_by_hand(self, function: Function, register: int) -> bool:
        """Whether a register holds the result of a call that allocates memory which lives until it is freed."""
        one = function.definitions[register] if register >= 0 else None
        calls = self.transfer.modelled(function, one) if one is not None and one[0] in CALLING else ()
        return any(call.row.effect == "alloc" for call in calls)

    def _is_made_by_call(self, function: Function, one: Instruction) -> bool:
        """Whether a call gives new memory that its function keeps nowhere."""
        edges = [edge for edge in self.transfer.edges(function, one) if edge.is_followed] if one[0] in (op.CALL, op.INVOKE) else []
        return bool(edges) and all(self._is_factory(edge.callee) for edge in edges)

    def _is_factory(self, function: Function) -> bool:
        ends = [one[2] for one in function.by_opcode[op.RETURN]]
        return bool(ends) and not function.is_cpp and all(each >= 0 and self._is_new(function, each) for each in ends)

    def _is_new(self, function: Function, register: int) -> bool:
        """Whether a register holds new memory of a device that nothing but names refers to."""
        one = function.definitions[register]
        works = self.transfer.works(function, one) if one is not None else ()
        if not any(
            work.made == register and self.memory.is_on_device(function, register, work, False) for work in works if not work.assumed
        ):
            return False
        return all(use[0] in (op.BIND, op.RETURN) for use in function.uses[register])

    def _of_place(self, capture: Capture, place: Place, register: int, is_memory: bool = True) -> Input | None:
        """Memory that an attribute, a variable that closures share, or a global name holds: from where it is assigned, or from the
        beginning of the function."""
        function = capture.begin.function
        if function.is_cpp:
            return self._of_pointer(capture, place, register)
        if not place.path and place.root[0] not in _SHARED:
            return None
        start, held = self._stored_before(capture.begin, place) or (None, register)
        if start is not None and (own := self._of_register(capture, held)) is not None:
            return own
        if (start is None and not is_memory) or not self._may_change(function, place, start):
            return None
        if held >= 0 and not self._is_memory(function, held):
            return None
        names = self.places.names(function, held) if start is not None else ()
        start, names = (start, names) if start is not None else self._base_stored(capture.begin, place)
        tracked = frozenset(Tracked(BUFFER, each) for each in (place, *names))
        return Input(capture, start, tracked, Site(function, start), False)

    def _stored_before(self, begin: Site, place: Place) -> tuple[Instruction, int] | None:
        """The last assignment to a place that its function runs before an instruction, with the register that it assigns."""
        stored: tuple[Instruction, int] | None = None
        for opcode in (op.SET_ATTR, op.STORE, op.SET_NAME, op.SET_ITEM):
            for one in begin.function.by_opcode[opcode]:
                for target, given in self.places.assigned(begin.function, one):
                    if target == place and begin.function.runs_before(one, begin.instruction):
                        stored = (one, given)
        return stored

    def _base_stored(self, begin: Site, place: Place) -> tuple[Instruction, tuple[Place, ...]]:
        """The last assignment to what a place is a part of, else from where that has its name; with the names that the part has by it."""
        for length in reversed(range(len(place.path))) if place.root[0] in _SHARED else ():
            stored = self._stored_before(begin, Place(place.root, place.path[:length]))
            if stored is not None:
                return stored[0], tuple(name.behind(*place.path[length:]) for name in self.places.names(begin.function, stored[1]))
        return _beginning(begin.function, place), ()

    def _may_change(self, function: Function, place: Place, stored: Instruction | None) -> bool:
        """Whether the program assigns an attribute but where objects are made, or lets go of storage near: most inputs never change."""
        name = place.path[-1] if place.path else None
        if not isinstance(name, str):
            return True
        found = self._changed.get(name)
        if found is None:
            units = [unit for unit in self.transfer.facts.program.mentioning(name) if not unit.is_cpp]
            others = (each for unit in units for each in unit.functions if each.code.name != "__init__")
            stores = (one for each in others for one in each.by_opcode[op.SET_ATTR] if each.text(one[3]) == name)
            found = self._changed[name] = list(stores)
        return any(one is not stored for one in found) or self._lets_go(function)

    def _lets_go(self, function: Function) -> bool:
        """Whether the file of a function gives tensors other storage."""
        names = self.transfer.replacing
        stores = ((each, one) for each in function.unit.functions for one in each.by_opcode[op.SET_ATTR])
        return any(each.text(one[3]) in names for each, one in stores) or any(
            call.function.unit is function.unit for call in self.transfer.sites({"release", "same"}, where=_lets_go)
        )

    def _of_pointer(self, capture: Capture, place: Place, register: int) -> Input | None:
        """C++: what a pointer points to, from the begin of the capture on."""
        function = capture.begin.function
        if place.root[0] == "register" and not self._is_pointer_given(capture, register):
            return None
        if not any(isinstance(value, Memory) for value in self.transfer.values(function, register)):
            return None
        begin = capture.begin.instruction
        return Input(capture, begin, frozenset({Tracked(BUFFER, place)}), capture.begin, False)

    def _is_pointer_given(self, capture: Capture, register: int) -> bool:
        """C++: whether a function of the program gives a pointer before a capture begins."""
        function = capture.begin.function
        held = uncast(function, register) if function.is_cpp else op.NONE
        one = function.definitions[held] if held >= 0 else None
        is_before = one is not None and one[0] in _CALLS and function.runs_before(one, capture.begin.instruction)
        return is_before and one is not None and any(edge.is_followed for edge in self.transfer.edges(function, one))

    def _is_element(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction reads an element of a container of the language: that of a tensor is a part of it."""
        held = list(self.transfer.values(function, one[3])) if one[0] == op.ITEM else []
        return any(isinstance(value, Container) for value in held) and not any(isinstance(value, Memory) for value in held)

    def _is_memory(self, function: Function, register: int) -> bool:
        """Whether a register is shown to hold memory that may be on a device."""
        held = [value for value in self.transfer.values(function, register) if isinstance(value, Memory)]
        one = function.definitions[register]
        works = self.transfer.works(function, one) if one is not None and not held else ()
        return any(value.space != "host" for value in held) or any(
            work.made == register and not work.assumed and self._may_be_there(function, register, work) for work in works
        )

    def _may_be_there(self, function: Function, register: int, work: Worked) -> bool:
        """Whether what work makes is on a device: so is what a method of tensors makes of an unknown one, where a capture reads it."""
        if self.memory.is_on_device(function, register, work, False):
            return True
        return bool(work.library) and not self.memory.is_on_host(function, register) and self.memory.may_be_memory(function, register)

    def _read_inside(self, function: Function, region: list[Instruction]) -> Iterator[tuple[Place, bool]]:
        """The attributes and elements of what it is given that a function reads which a capture calls, by the names of the capture's
        function; and whether they are shown to hold memory."""
        for callee, one, given in self.calls.run(function, region):
            if given is not None and (one[0] == op.ATTR or self._is_element(callee, one)):
                place = named(self.places.of(callee, one[2]), given)
                if place is not None and place.path and place.root[0] not in _SHARED:
                    yield place, self._is_memory(callee, one[2])

    # --- whether code captures

    def captures_before(self, function: Function, block: int, join: int) -> bool:
        """Whether a way begins a capture before it comes to a block."""
        passed = function.control.reach([block], [join])
        return any(self._begins(function, one) for number in passed for one in function.code.blocks[number])

    def _begins(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction begins a capture, by itself or through what it calls."""
        if one[0] not in CALLING:
            return False
        if any(
            call.row.effect == "capture" and call.row.get("part") in ("begin", "scope") for call in self.transfer.modelled(function, one)
        ):
            return True
        return any(edge.is_followed and self._begins_inside(edge.callee) for edge in self.transfer.edges(function, one))

    def _begins_inside(self, function: Function) -> bool:
        found = self._capturing.get(function)
        if found is None:
            self._capturing[function] = False  # in a cycle, the others say
            found = self._capturing[function] = any(self._begins(function, one) for one in function.code.instructions())
        return found


def _lets_go(row: Row) -> bool:
    """Whether calls with a row may give a buffer other storage."""
    return row.effect == "release" or bool(row.get("new_shape"))


def _beginning(function: Function, place: Place) -> Instruction:
    """From where a place has its name: the instruction that makes what it begins with, or the function's first."""
    base = function.definitions[int(str(place.root[1]))] if place.root[0] == "register" else None
    return base or next(function.code.instructions())
