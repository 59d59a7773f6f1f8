"""SL012: memory of a device that is sent to another process while work on another stream may still write it.

A put reads what it sends on the stream that is current where it pickles: so it is the second piece of work of a race. A queue with a
thread of its own pickles there, on the default stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.states import MOST_GUESSES, Answer, State
from streamlint.ordering.places.flow import BUFFER
from streamlint.ordering.races.beginnings import Beginnings, Begun
from streamlint.ordering.races.races import Races
from streamlint.ordering.streams.lanes import Lane
from streamlint.ordering.walk.walk import ORDERED
from streamlint.transfer.actions import CURRENT, NAMED, NULL, Action, Stream
from streamlint.transfer.channels import End
from streamlint.transfer.lifting import lifted
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.transfer.uses import WORK, Uses
from streamlint.transfer.work import Worked

_MOST_FUNCTIONS = 150


class Unordered(NamedTuple):
    """A put of memory whose stream may not have finished: where that was written, and the stream's making."""

    put: End
    written: Site
    stream: Site | None


class Nearby(Beginnings):
    """Looks for work on streams that were chosen in some functions alone."""

    def __init__(self, beginnings: Beginnings, functions: list[Function]) -> None:
        super().__init__(beginnings.transfer, beginnings.places, beginnings.currents)
        self.functions = functions

    def begun(self) -> Iterator[Begun]:
        """The work, by functions."""
        for function, instructions in self.chosen.items():
            for one in instructions:
                yield from ((function, one, work) for work in self.transfer.works(function, one))
            for one in (each for opcode in (op.CALL, op.INVOKE) for each in function.by_opcode[opcode]):
                if self.currents.at(function, one) is not None:
                    yield from ((function, one, work) for work in self._given_back(function, one))

    def _given_back(self, function: Function, one: Instruction) -> Iterator[Worked]:
        """What a function of the program computes and gives back that is called under a stream: the call is that work."""
        for edge in self.transfer.edges(function, one):
            ends = edge.callee.by_opcode[op.RETURN] if edge.is_followed and not edge.callee.is_cpp else []
            for register in (each for end in ends if end[2] >= 0 for each in self.transfer.shared(edge.callee, end[2])):
                definition = edge.callee.definitions[register]
                for work in self.transfer.works(edge.callee, definition) if definition is not None else ():
                    if work.made == register and work.stream.kind == CURRENT:
                        yield Worked(work.stream, (), (), work.name, work.library or "torch", one[2], False, work.evident)

    @cached_property
    def _scoped(self) -> list[Function]:
        return [function for function in self.functions if self._is_scoped(function)]

    def _explicit(self) -> dict[Function, list[Instruction]]:
        return {}


class UnorderedPuts(Races):
    """Finds puts whose event does not cover the work on what they send."""

    hooked = Races.hooked | CALLING
    reads_too = False

    def __init__(self, transfer: Transfer, uses: Uses, puts: list[End]) -> None:
        super().__init__(transfer)
        self.uses = uses
        self._puts = {put.site: put for put in puts}

    def _near(self) -> list[Function]:
        """The functions that lead to puts, and those that they call."""
        found = {place.function: None for site in self._puts for place in lifted(self.transfer, site)}
        waiting = list(found)
        for function in waiting:
            for opcode in (op.CALL, op.INVOKE):
                for one in function.by_opcode[opcode]:
                    for edge in self.transfer.edges(function, one) if len(found) < _MOST_FUNCTIONS else ():
                        if edge.is_direct and edge.callee not in found and not edge.callee.is_cpp:
                            found[edge.callee] = None
                            waiting.append(edge.callee)
        return list(found)

    def missed(self) -> Iterator[Unordered]:
        """The puts of the program behind which work is not ordered, each with the first such work."""
        for begun in Nearby(self.beginnings, self._near()).begun():
            self._follow_work(*begun)
        for race in self._found.values():
            creation = min(race.lane.made, key=lambda site: (site.function.unit.path, site.row), default=None)
            yield Unordered(self._puts[race.second], race.first, creation)

    def _follow_work(self, function: Function, one: Instruction, work: Worked) -> None:
        if work.assumed and any(use.kind == WORK for use in self.uses.at(function, one)):
            work = work._replace(made=one[2], library="torch", assumed=False)  # a module on a device
        super()._follow_work(function, one, work)

    def arrive(self, state: State, one: Instruction) -> Answer:
        function = state.frame.function
        put = self._puts.get(Site(function, one))
        sent = [register for register in put.call.all("of") if self.leads(state, BUFFER, register)] if put is not None else []
        if put is None or not sent:
            return None
        feeds = bool(put.call.row.get("feeder"))
        stream = Stream(NULL if feeds else CURRENT, library="torch")
        lane = self.lanes.of(state.frame, one, stream)
        mine: Lane | None = self._lane
        if feeds and self._lane.kind == CURRENT:  # what is current here is not what is current in the thread that pickles
            mine = self._above(state.frame.root.function)
        elif self.lanes.is_same(state.tracked, lane):
            mine = None
        if mine is None or self._may_be_one(lane) or state.doubts > MOST_GUESSES:
            return None
        if self._is_evident or any(self.uses.on_device(function, register) for register in sent):
            self._report(state, one, Worked(stream, tuple(sent), (), put.call.name, "torch"), lane)
            self._found[Site(function, one)] = self._found[Site(function, one)]._replace(lane=mine)
        return ORDERED

    def _above(self, function: Function) -> Lane | None:
        """The stream that is current where a function is called, if callers have chosen one."""
        for place in lifted(self.transfer, Site(function, next(function.code.instructions()))):
            lane = self.lanes.of(Frame(place.function, None, None, 0), place.instruction, Stream(CURRENT))
            if place.function is not function and lane.kind == NAMED:
                return lane
        return None

    def _worked(self, state: State, one: Instruction, work: Worked) -> str | None:
        """Other work is no put; what an unknown call does with the stream is not known."""
        return ORDERED if work.assumed and any(self._leads_to_order(state, register, one) for register in work.reads) else None

    def judge(self, state: State, one: Instruction, action: Action) -> Answer:
        return None if Site(state.frame.function, one) in self._puts else super().judge(state, one, action)
