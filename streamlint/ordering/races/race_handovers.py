"""Memory that unknown callers get while work on a stream may still write it, for which they have no way to wait."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.files.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.states import MOST_GUESSES, State
from streamlint.ordering.places.flow import BUFFER, EVENT, STREAM
from streamlint.ordering.places.places import rest_behind
from streamlint.ordering.races.race_judge import AMBIENT_LANE, RaceJudge
from streamlint.ordering.races.race_orders import LEFT, RESULT
from streamlint.ordering.streams.lanes import Lane
from streamlint.transfer.actions import CURRENT, NAMED, Stream
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.work import Worked


class RaceHandovers(RaceJudge):
    """Meets work with the unknown callers of the functions that return its memory."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self._hands_over: dict[Unit, bool] = {}

    def feeds_callers(self, function: Function, one: Instruction, work: Worked) -> bool:
        """Whether unknown callers may get memory of work without a way to wait: from the queue of a thread, or from a private stream."""
        if function.is_cpp or self._feeds_queue(function.unit):
            return not function.is_cpp
        return (
            self.is_wide
            and work.fills
            and self.apart.map.is_own(self.lanes.of(Frame(function, None, None, 0), one, self._stream(function, work)))
        )

    def _feeds_queue(self, unit: Unit) -> bool:
        """Whether a thread of a file puts into a queue."""
        known = self._hands_over.get(unit)
        if known is None:
            putting = (each for each in unit.functions if not each.known("queue-put").isdisjoint(each.called_names))
            known = self._hands_over[unit] = any(map(self.is_thread, putting))
        return known

    def is_elsewhere(self, state: State) -> bool:
        """Whether a path has gone to another thread, with what that has taken from a queue."""
        return not state.path and state.frame.root.function is not self._site.function

    def redone(self, state: State, one: Instruction) -> bool:
        """Not where the memory of the call before has been read from an attribute that is set anew."""
        if not super().redone(state, one):
            return False
        registers = (int(str(held.place.root[1])) for held in state.tracked if held.kind == BUFFER and held.place.root[0] == "register")
        return not any(register != one[2] and self.places.is_old(state.frame.function, register) for register in registers)

    def left(self, state: State, register: int) -> None:
        """Written memory is passed out to unknown callers: without an event, and the stream, they cannot wait for the work."""
        function, lane = state.frame.function, self._mine(state)
        if self._unknown_work or not self._writes or lane.kind != NAMED or register < 0 or state.doubts > MOST_GUESSES:
            return
        behind = [
            each for each in state.tracked for name in self.places.names(function, register) if rest_behind(name, each.place) is not None
        ]
        given = {each.kind for each in behind}
        end = next((one for one in function.by_opcode[op.RETURN] if one[2] == register), None)
        if end is None or BUFFER not in given or not given.isdisjoint((EVENT, STREAM)):
            return
        if self.lanes.is_same(state.tracked, self.lanes.of(state.frame, end, Stream(CURRENT))):
            return
        self._unknown_work = LEFT if self.is_elsewhere(state) else RESULT if self.is_wide and self._is_private(state, lane) else ""
        if self._unknown_work:
            use = Worked(Stream(CURRENT, library="torch"), (), (), "return", "torch")
            self._report(state, end, use, AMBIENT_LANE)
        self._unknown_work = ""

    def _is_private(self, state: State, lane: Lane) -> bool:
        """Whether callers cannot name a stream, no code but the functions that a path has left waits for it, and no event is kept."""
        is_named = any(place.root[0] == "global" for place in lane.places)
        if is_named or any(each.kind == EVENT and each.place.root[0] != "register" for each in state.tracked):
            return False
        if not self.apart.map.is_own(lane):
            return False
        between = self._left.get((self._site.function, state.path), ())
        return self.hooks.waits_inside(lane, self._site.function, state.frame.function, *between)
