"""Two libraries that work on the same memory, each on a stream of its own, with nothing that orders the two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.functions import Function
from streamlint.facts.objects import Memory, Site
from streamlint.hazards.stream_files import libraries_of
from streamlint.hazards.streams import Streams
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.beside import Event
from streamlint.ordering.choice import Choice
from streamlint.ordering.choices import AMBIENT, MADE, NULL, PTDS
from streamlint.ordering.places import Place
from streamlint.ordering.storage import Storages
from streamlint.transfer.actions import Stream
from streamlint.transfer.launches import OPENED
from streamlint.waits.operands import behind

LIBRARIES = {"torch": "PyTorch", "cupy": "CuPy", "numba": "numba", "cuda_python": "cuda-python", OPENED: "the library"}
_OPENING = ("ctypes", "cffi")
"""What opens a library of the program's own C++."""
_IN_VIEW = frozenset({NULL, AMBIENT, MADE, PTDS})


class Pair(NamedTuple):
    """The work of the library that came to the memory, and that of the other one; ``is_behind``: it comes behind the other."""

    foreign: Event
    other: Event
    is_behind: bool
    function: Function


class ForeignWork:
    """Finds such pairs."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self.facts = streams.facts
        self.transfer = streams.transfer
        self.storages = Storages(streams.transfer, streams.choices.places)
        self._touched: dict[Event, tuple[set[Place], set[Place]]] = {}

    def find(self) -> Iterator[Pair]:
        """The pairs of the program, one for each piece of foreign work."""
        seen: set[Site] = set()
        program = self.facts.program
        opening = _OPENING if any(unit.is_cpp for unit in program.units.values()) else ()
        for unit in program.units.values():
            words = {word for word in ("torch", *opening) if unit in program.mentioning(word)}
            if unit.is_cpp or len(words | libraries_of(program, unit)) < 2:
                continue
            for function in unit.functions:
                for pair in self._of_function(function):
                    if pair.foreign.at not in seen:
                        seen.add(pair.foreign.at)
                        yield pair

    def _working(self, function: Function) -> list[Event]:
        """The work of libraries in a function, on streams that are in view."""
        events = [event for event in self.streams.beside.events(function) if event.work is not None and event.work.library in LIBRARIES]
        return [event for event in events if event.choice is not None and event.choice.kind in _IN_VIEW and self._does_work(event)]

    def _of_function(self, function: Function) -> Iterator[Pair]:
        events = self._working(function)
        for second in events:
            for first in reversed(events):
                assert first.work is not None
                assert second.work is not None
                if first.work.library == second.work.library or first.instruction == second.instruction:
                    continue
                places = self._shared(first, second)
                if places and self._is_unordered(function, first, second):
                    home = self._home(function, places, first, second)
                    is_first = first.work.library == OPENED or (second.work.library != OPENED and home == second.work.library)
                    yield Pair(first, second, False, function) if is_first else Pair(second, first, True, function)
                    break

    def partners(self, pair: Pair) -> Iterator[Event]:
        """All work of the other library that is as little ordered with the foreign work."""
        function, foreign = pair.function, pair.foreign
        for event in self._working(function):
            if event.work is not None and foreign.work is not None and event.work.library != foreign.work.library:
                for first, second in ((event, foreign), (foreign, event)):
                    if self._shared(first, second) and self._is_unordered(function, first, second):
                        yield event
                        break

    def _does_work(self, event: Event) -> bool:
        """Whether something is done with memory: it is not only allocated, or taken over as it is."""
        assert event.work is not None
        call = event.work.call
        if call is not None and call.row.effect == "factory" and "empty" in call.name:
            return False
        return event.work.kind not in ("copy", "compute") or not self.storages.is_taken_over(event.at.function, event.at.instruction)

    # --- memory

    def _shared(self, first: Event, second: Event) -> set[Place]:
        one, other = self.touched(first), self.touched(second)
        return (one[1] & (other[0] | other[1])) | (one[0] & other[1])

    def touched(self, event: Event) -> tuple[set[Place], set[Place]]:
        """The memory that a piece of work reads and writes."""
        found = self._touched.get(event)
        if found is None:
            found = self._touched[event] = self._find_touched(event)
        return found

    def _find_touched(self, event: Event) -> tuple[set[Place], set[Place]]:
        assert event.work is not None
        reads, writes = self.storages.touched(event)
        function, work = event.at.function, event.work
        if work.library == "numba" and work.kind == "kernel":
            reads = writes = {
                place
                for register in work.reads
                if self._is_viewed_by_numba(function, register) and (place := self.storages.named(event, register)) is not None
            }
        elif work.kind in ("kernel", "library"):
            for register in work.reads:
                parts = self.storages.parts(function, register)
                if event.via:  # names of the function that is called mean nothing in the one that calls
                    parts = {place for place in parts if place.root[0] in ("global", "parameter")}
                more = {place for part in parts if (place := self.storages.outward(event, part)) is not None}
                reads, writes = reads | more, writes | more
        return (reads, writes) if not self._is_handed_over(event) else (set(), set())

    def _is_viewed_by_numba(self, function: Function, register: int) -> bool:
        """A tensor as it is goes through DLPack, and numba names its own stream; a view of it does not."""
        return not any(isinstance(value, Memory) and value.type.startswith("torch") for value in self.transfer.values(function, register))

    def _is_handed_over(self, event: Event) -> bool:
        """Whether the memory was taken over by a protocol that orders the streams."""
        assert event.work is not None
        function = event.at.function
        for one in behind(function, [*event.work.reads, *event.work.writes], op.reads):
            if one[0] in (op.CALL, op.INVOKE):
                for call in self.transfer.modelled(function, one):
                    if call.row.get("shares") == "dlpack" and not self._is_bare(call.function, call.all("of")):
                        return True
                    of = call.one("of") if call.row.get("shares") == "interface" else None
                    if of is not None and any(value.type.startswith("cupy") for value in call.memory(of)):
                        return True  # CuPy's interface names its stream, and the consumer waits for it
        return False

    def _is_bare(self, function: Function, registers: list[int]) -> bool:
        """Whether what is taken over is a capsule, for which nobody was asked to wait."""
        return any(
            (made := function.definitions[register]) is not None
            and made[0] in (op.CALL, op.INVOKE)
            and "capsule" in self._types(function, register)
            for register in registers
        )

    def _types(self, function: Function, register: int) -> str:
        return " ".join(getattr(value, "type", "") for value in self.transfer.values(function, register)).lower()

    def _home(self, function: Function, places: set[Place], first: Event, second: Event) -> str:
        """The library whose memory it is."""
        assert first.work is not None
        assert second.work is not None
        for place in places:
            register = place.root[1] if place.root[0] == "register" else None
            values = self.transfer.values(function, register) if isinstance(register, int) else ()
            for value in values:
                if isinstance(value, Memory):
                    return value.type.partition(".")[0]
        return "torch" if "torch" in (first.work.library, second.work.library) else first.work.library

    # --- order

    def _is_unordered(self, function: Function, first: Event, second: Event) -> bool:
        assert first.choice is not None
        assert second.choice is not None
        if not self._is_apart(first.choice, second.choice):
            return False
        stops = {wait.instruction for wait in self.streams.beside.events(function) if wait.work is None and self._ends(wait, first.choice)}
        stops |= {one for one, on in self._stream_waits(function) if on is None or self._is_same(on, first.choice)}
        return self.streams.beside.leads_to(function, first.instruction, second.instruction, frozenset(stops))

    def _is_apart(self, first: Choice, second: Choice) -> bool:
        """Whether two streams are not ordered with one another by themselves: one at least is non-blocking."""
        made = [choice for choice in (first, second) if choice.kind == MADE]
        if not made or (len(made) == 2 and made[0].key == made[1].key):
            return False
        return any(self.streams.blocking(choice) is False for choice in made) or len(made) == 2

    def _ends(self, wait: Event, choice: Choice) -> bool:
        return wait.choice is None or self._is_same(wait.choice, choice)

    def _is_same(self, one: Choice, other: Choice) -> bool:
        if one.kind == other.kind == MADE:
            return bool(one.made & other.made)
        return one.kind == other.kind or (one.kind, other.kind) in ((NULL, AMBIENT), (AMBIENT, NULL)) or "held" in (one.kind, other.kind)

    def _stream_waits(self, function: Function) -> Iterator[tuple[Instruction, Choice | None]]:
        """The calls by which a stream waits, with the stream that it waits for; None where that is an event."""
        for one in (*function.by_opcode[op.CALL], *function.by_opcode[op.INVOKE]):
            for call in self.transfer.modelled(function, one):
                register = call.one("on") if call.row.effect == "wait" else None
                if register is None:
                    continue
                choices = list(self.streams.choices.of_register(function, register, Site(function, one)))
                stream: Stream = call.stream_in(register)
                yield one, choices[0] if choices and stream.register >= 0 and choices[0].kind in _IN_VIEW else None
