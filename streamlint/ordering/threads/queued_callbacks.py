"""SL033: the host waits, with the GIL held, for a stream that has a callback queued which needs the GIL.

A callback is followed from where it is queued. A wait of a library ends it, for libraries release the GIL. A wait of a function that keeps
the GIL, by its binding or because ctypes holds it, never returns.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Container, LibraryObject, Memory, Site
from streamlint.facts.graph.call_graph import Edge
from streamlint.facts.values.library_effects import SYMBOLS
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.models.vocabulary import Selector
from streamlint.ordering.memory.on_device import may_be_anything
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.states import Answer, State
from streamlint.ordering.places.flow import EVENT, STREAM, Tracked, is_at
from streamlint.ordering.places.places import Place
from streamlint.ordering.streams.streams import sites_of
from streamlint.ordering.threads.gil import FOR_GPU, Gil
from streamlint.ordering.walk.copy_streams import Where
from streamlint.ordering.walk.pending import Pending
from streamlint.ordering.walk.walk import ORDERED
from streamlint.transfer.actions import CURRENT, NAMED, UNKNOWN, Action, Copied, Read, Stream, Synchronized
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.transfer.waiting import Waited
from streamlint.waits.operands import argument_registers, operand_of

_QUEUED = Tracked("queued", Place(("aside", -1, "callback")))
"""Keeps a path alive whose stream has no name where it stands."""

_BLOCKING = frozenset({"block", "get"})
_CAPTURED = ("capture", "end")


class GilWait(NamedTuple):
    """A callback that is queued, the call of Python's that waits for it with the GIL held, and where that waits. ``binding`` is the call
    that binds the function to Python; None where ctypes keeps the GIL, or the function has to release it itself."""

    registration: Site
    call: Site
    wait: Site
    name: str
    library: str
    binding: Site | None


class QueuedCallbacks(Pending):
    """Finds the waits of a program that keep the GIL from a callback."""

    meets_memory = False

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.gil = Gil(transfer)
        self._found: dict[tuple[Site, Site], GilWait] = {}
        self._registration: Site
        self._blocking: dict[Function, bool] = {}

    def find(self) -> Iterator[GilWait]:
        """The waits of the program, each with a callback."""
        for call in self.transfer.sites({"callback"}):
            stream = call.stream()
            if stream.kind != UNKNOWN and self._needs_gil(call):
                self._follow(call, stream)
        yield from self._found.values()

    def _needs_gil(self, call: ModelledCall) -> bool:
        """Whether each function that a call queues takes the GIL: all of Python's do."""
        if call.row.get("takes_gil"):
            return True
        bodies = list(self.gil.callbacks.bodies(call))
        return bool(bodies) and all(self.gil.takes(body) if is_compiled(body) else True for body in bodies)

    def _follow(self, call: ModelledCall, stream: Stream) -> None:
        self._registration = Site(call.function, call.instruction)
        state = self.start(call.function, call.instruction, frozenset({_QUEUED}), ())
        self.run(self._on(state, self._where(state.frame, call.instruction, stream)))

    # --- what actions mean

    def meets(self, state: State, one: Instruction, action: Action) -> bool:
        return False

    def judge(self, state: State, one: Instruction, action: Action) -> Answer:
        if isinstance(action, Waited) and self._is_behind(state, action):
            where = self._where(state.frame, one, action.stream)
            names = self._names(state.frame, where.frame, where.stream.register) if where.stream.register >= 0 else ()
            return state.tracked | {Tracked(STREAM, place) for place in names}
        if not self.orders(state, one, action):
            return super().judge(state, one, action)
        if isinstance(action, Read):
            self._read(state, one, action)
        elif isinstance(action, (Synchronized, Copied)) and self._is_sure(state, one, action):
            self._waited(state, one, action.name if isinstance(action, Synchronized) else action.call.name)
        return ORDERED

    def _is_behind(self, state: State, action: Waited) -> bool:
        """Whether another stream waits for the callback's, or for an event that was recorded behind the callback."""
        return self.has(state, EVENT, action.of) or self.has(state, STREAM, action.of)

    def orders(self, state: State, one: Instruction, action: Action) -> bool:
        """Also a call that reads what may be anything: if that is on a device, the library waits without the GIL."""
        if isinstance(action, Read) and action.waits and one[0] in CALLING and not is_compiled(state.frame.function):
            values = list(self.transfer.values(state.frame.function, action.register))
            if may_be_anything(values) and not any(isinstance(value, LibraryObject) for value in values):
                return True
        is_shown = isinstance(action, Synchronized) and self._is_sure(state, one, action)
        return is_shown or super().orders(state, one, action)

    def _is_sure(self, state: State, one: Instruction, action: Synchronized | Copied) -> bool:
        """Whether a wait is shown to be one for the callback's stream."""
        of = action.stream if isinstance(action, Copied) else action.of
        if isinstance(of, int):
            return self.has(state, EVENT, of)
        return of is None or self._is_mine(state, self._where(state.frame, one, of))

    def _is_mine(self, state: State, where: Where) -> bool:
        """Whether a stream is shown to be that of the callback."""
        mine, stream = state.stream, where.stream
        if stream.kind != NAMED or mine.kind != NAMED:
            return stream.kind == mine.kind != UNKNOWN and stream.library == mine.library
        for frame, register in self._given_by(where.frame, stream.register):
            if is_at(state.tracked, self._names(state.frame, frame, register), STREAM):
                return True
        made, _ = sites_of(list(self.transfer.values(where.frame.function, stream.register)))
        return len(made) == 1 and made == state.sites

    def _given_by(self, frame: Frame, register: int) -> Iterator[tuple[Frame, int]]:
        """The registers that hold a stream, in the functions of a path that hand it on, its handle or itself."""
        while register >= 0:
            register = self._unconverted(frame.function, register)
            yield from ((frame, each) for each in dict.fromkeys((register, *self.transfer.shared(frame.function, register))))
            place = self.places.of(frame.function, register)
            if place.root[0] != "parameter" or place.path or frame.caller is None or frame.call is None:
                return
            given = operand_of(frame.caller.function, frame.call, frame.function, int(str(place.root[1])))
            register, frame = op.NONE if given is None else given, frame.caller

    def _read(self, state: State, one: Instruction, action: Read) -> None:
        """Note a call of a library that waits for memory of a device, and keeps the GIL."""
        function, site = state.frame.function, Site(state.frame.function, one)
        held = self.transfer.values(function, action.register)
        is_shown = any(isinstance(value, Memory) and value.space == "device" for value in held)
        calls = self.transfer.modelled(function, one) if is_shown and one[0] in CALLING and not is_compiled(function) else ()
        for call in calls:
            current = Stream(CURRENT, library=call.row.library)
            if call.row.get("keeps_gil") and self._is_mine(state, self._where(state.frame, one, current)):
                self._found.setdefault((site, site), GilWait(self._registration, site, site, call.name, call.row.library, None))

    def _unconverted(self, function: Function, register: int) -> int:
        """What a number of the language is made of: ``int(stream)``."""
        one = function.definitions[register]
        is_made = one is not None and one[0] == op.CALL and len(one) == 6
        is_number = is_made and one is not None and any(call.row.effect == "read" for call in self.transfer.modelled(function, one))
        return one[5] if is_number and one is not None else register

    def _waited(self, state: State, one: Instruction, name: str) -> None:
        """Note a wait of compiled code that Python has called with the GIL held."""
        frame: Frame = state.frame
        if not is_compiled(frame.function):
            return
        inner: list[Site] = []
        while frame.caller is not None and frame.call is not None and is_compiled(frame.caller.function):
            inner.insert(0, Site(frame.caller.function, frame.call))
            frame = frame.caller
        if frame.caller is None or frame.call is None or frame.function not in self._holding:
            return
        site = Site(state.frame.function, one)
        waits, _ = self.gil.within(frame.function, True, False)
        if any(held.site == site and held.why == FOR_GPU and held.calls == tuple(inner) for held in waits):
            call = Site(frame.caller.function, frame.call)
            library = next((row.row.library for row in self.transfer.modelled(*site[:2])), "")
            wait = GilWait(self._registration, call, site, name, library, self._holding[frame.function])
            self._found.setdefault((call, site), wait)

    @cached_property
    def _holding(self) -> dict[Function, Site | None]:
        """The functions that Python calls with the GIL held, however it calls them, each with its binding."""
        released = self.gil.released()
        return {entry.function: entry.binding for entry in self.gil.entries if entry.function not in released}

    # --- paths

    def is_quiet(self, function: Function, one: Instruction) -> bool:
        is_other = self._of_library(function, one)[0] is None and not self._blocks(function, one)
        return is_other and super().is_quiet(function, one)

    def may_meet(self, tracked: frozenset[Tracked], callee: Function) -> bool:
        return super().may_meet(tracked, callee) or self._blocks_inside(callee)

    def _blocks_inside(self, function: Function) -> bool:
        found = self._blocking.get(function)
        if found is None:
            self._blocking[function] = False  # in a cycle, the others tell
            found = self._blocking[function] = any(
                self._blocks(function, one)
                or any(edge.is_followed and self._blocks_inside(edge.callee) for edge in self._edges(function, one))
                for one in function.code.instructions()
            )
        return found

    def _edges(self, function: Function, one: Instruction) -> tuple[Edge, ...]:
        return self.transfer.edges(function, one) if one[0] in CALLING else ()

    def _blocks(self, function: Function, one: Instruction) -> bool:
        """Whether the host waits for another thread, which the callback may notify, or ends a capture, with which nothing has run."""
        if one[0] == op.INVOKE and function.text(one[4]) in function.known("queue-get"):
            # A queue is known as a list, which has no such method.
            held = self.transfer.values(function, one[3])
            return any(isinstance(value, Container) and value.kind == "list" for value in held)
        calls = self.transfer.modelled(function, one) if one[0] in CALLING else ()
        return any((call.row.effect, call.row.get("part")) == _CAPTURED or call.row.effect in _BLOCKING for call in calls)

    def _up(self, state: State, register: int) -> Iterator[State]:
        yield from (up._replace(tracked=up.tracked | {_QUEUED}) for up in super()._up(state, register))

    # --- ctypes

    def arrive(self, state: State, one: Instruction) -> Answer:
        function = state.frame.function
        row, part = self._of_library(function, one)
        if row is None:
            return ORDERED if self._blocks(function, one) else None
        of = row.get("of")
        stream = Stream(NAMED, self._argument(function, one, of)) if isinstance(of, Selector) else None
        where = self._where(state.frame, one, stream) if stream is not None and stream.register >= 0 else None
        if str(of) != "device" and (where is None or not self._is_mine(state, where)):
            return None
        if part == "held":
            site = Site(function, one)
            self._found.setdefault((site, site), GilWait(self._registration, site, site, row.names[0], row.library, None))
        return ORDERED

    def _of_library(self, function: Function, one: Instruction) -> tuple[Row | None, str]:
        """The row of a wait of the runtime or driver that Python calls by its symbol, and how the library was opened."""
        if one[0] != op.INVOKE or is_compiled(function):
            return None, ""
        row = self.facts.cpp_models.call(function.text(one[4]))
        if row is None or row.effect != "synchronize":
            return None, ""
        for value in self.transfer.values(function, one[3]):
            opened = self.facts.models.call(value.type) if isinstance(value, LibraryObject) and value.kind == SYMBOLS else None
            if opened is not None:
                return row, str(opened.get("part"))
        return None, ""

    def _argument(self, function: Function, one: Instruction, selector: Selector) -> int:
        """The register of the argument that a row of C means, as a call of Python's gives it."""
        given = [register for kind, register in argument_registers(function, one) if kind is None]
        return given[selector.position] if selector.position is not None and selector.position < len(given) else op.NONE


def is_compiled(function: Function) -> bool:
    """Whether a function keeps the GIL until it lets it go by itself: one of C++ or Cython."""
    return function.is_cpp or function.unit.path.endswith((".pyx", ".pxd", ".pxi"))
