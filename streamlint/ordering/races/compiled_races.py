"""Races of compiled code with what others have queued on a stream that it enters: it runs on its caller's stream, and waits for none."""

from __future__ import annotations

from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ordering.captures.compiled import Compiled, Region
from streamlint.ordering.paths.states import Answer, State
from streamlint.ordering.races.races import Races
from streamlint.ordering.streams.lanes import Lane, Lanes
from streamlint.ordering.streams.streams import Currents
from streamlint.transfer.actions import Action, Stream, Synchronized
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.waiting import Waited
from streamlint.transfer.work import Worked


class CompiledRace(NamedTuple):
    """Work of others, the compiled work that does not wait for it, and why that is compiled."""

    first: Site
    second: Site
    entered: Stream
    region: Region


class _CurrentsOfOthers(Currents):
    """The current streams as they are where compiled code makes none current."""

    compiled: dict[Function, Region]

    def at(self, function: Function, one: Instruction) -> Stream | None:
        return None if function in self.compiled else super().at(function, one)

    def of_library(self, function: Function, one: Instruction, library: str) -> Stream | None:
        return None if function in self.compiled else super().of_library(function, one, library)


class CompiledRaces(Races):
    """Finds such races."""

    def __init__(self, transfer: Transfer, compiled: Compiled) -> None:
        super().__init__(transfer)
        self.compiled = compiled.regions
        self.written = self.currents  # the streams that are current as the code is written
        currents = _CurrentsOfOthers(transfer)
        currents.compiled = self.compiled
        self.currents, self.lanes = currents, Lanes(transfer, self.places, currents)
        self.races: dict[Site, CompiledRace] = {}

    def _follow_work(self, function: Function, one: Instruction, work: Worked) -> None:
        if function not in self.compiled:
            super()._follow_work(function, one, work)

    def judge(self, state: State, one: Instruction, action: Action) -> Answer:
        is_left_out = isinstance(action, Waited) or (isinstance(action, Synchronized) and action.of is not None)
        return None if is_left_out and state.frame.function in self.compiled else super().judge(state, one, action)

    def _report(self, state: State, one: Instruction, use: Worked, other: Lane) -> bool:
        function = state.frame.function
        region, entered = self.compiled.get(function), self.written.at(function, one)
        if region is None or entered is None or self._unknown_work:
            return False
        second = Site(function, one)
        self.races.setdefault(second, CompiledRace(self._site, second, entered, region))
        return True
