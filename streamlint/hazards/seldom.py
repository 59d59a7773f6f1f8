"""What runs seldom, though a loop leads to it: behind a branch that is rare, or in one of the arms in which a loop does what it is told."""

from __future__ import annotations

from collections.abc import Callable

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.hazards.every_round import EveryRound
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop
from streamlint.ordering.places.places import Places
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.waits.questions import conditions

Works = Callable[[Function, Instruction], bool]
"""Whether an instruction, or what it calls, puts work on a device."""
_SHORT = 64
"""Rounds of a loop that are a part of what is around it: it goes through names that are written down."""
_MOST_PLACES = 60
_CONSTANT = frozenset({op.CONST, op.ATTR, op.NAME, op.BUILD})


class Seldom:
    """Answers for the instructions of a program."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.rounds = transfer.one_of(EveryRound, transfer, transfer.one_of(Places, transfer.facts))

    def is_seldom(self, site: Site, works: Works) -> bool:
        """Whether each way from a loop to an instruction is seldom taken; a way on which no loop is in view is not known."""
        waiting = [site]
        for each in waiting:
            loop = self._loop(each)
            if self._is_never(each):
                continue
            if loop is not None:
                if not (self._is_rare(each, loop) or self._is_decided_by_element(each, works)):
                    return False
            elif not self._is_rare(each, None):
                callers = self.transfer.callers(each.function)
                if not callers or len(waiting) > _MOST_PLACES or any(self._starts(*place) for place in callers):
                    return False
                waiting += [one for place in callers if (one := Site(*place)) not in waiting]
        return True

    def is_on_error(self, site: Site) -> bool:
        """Whether an instruction leads to an exception only, or an exception alone leads there."""
        body = self.rounds.body(site.function)
        return body.home[site.instruction] in body.lost

    def _is_never(self, site: Site) -> bool:
        """Whether an instruction runs under a condition that comes out otherwise, whoever calls."""
        function, constants = site.function, self.rounds.constants
        asked = conditions(function, function.blocks[site.instruction]) if not function.is_cpp else ()
        return any(constants.settled(function, register) is (not holds) for register, holds in asked)

    def _starts(self, function: Function, call: Instruction) -> bool:
        """Whether a call runs functions in another thread: that is there for them, however often it is started."""
        return any(edge.is_elsewhere for edge in self.transfer.edges(function, call))

    def _is_rare(self, site: Site, loop: Loop | None) -> bool:
        """Whether a rare branch alone leads to an instruction in each round, or call; what no call in view does is not rare for that."""
        body = self.rounds.body(site.function)
        rare = [each for each in body.conditions.rare({}) if not each.is_decided]
        starts, within = ([loop.header], loop.body) if loop is not None else ([0], None)
        home = body.home[site.instruction]
        return home not in body.lost and home not in body.runs(starts, rare, within)

    def _loop(self, site: Site) -> Loop | None:
        """The innermost loop around an instruction that may have many rounds."""
        trips = self.transfer.rounds.trips
        every = ((loop, trips.most(site.function, loop)) for loop in self.rounds.loops(site.function, site.instruction))
        return next((loop for loop, most in every if most is None or most > _SHORT), None)

    def _is_decided_by_element(self, site: Site, works: Works) -> bool:
        """Whether a loop runs an instruction where something that a round was given says so, and goes on with its work without it."""
        function = site.function
        for loop in self.rounds.loops(*site):
            asking = {guard for guard in self.rounds.guards(site, loop) if self._asks_anew(function, guard, loop)}
            if not asking:
                continue
            home = self.rounds.body(function).home
            for one in (each for block in sorted(loop.body) for each in function.code.blocks[block]):
                is_work = home[one] in loop.body and (one[0] == op.LAUNCH or one[0] in CALLING) and works(function, one)
                if is_work and asking.isdisjoint(self.rounds.guards(Site(function, one), loop)):
                    return True
        return False

    def _asks_anew(self, function: Function, guard: int, loop: Loop) -> bool:
        """Whether a branch compares what a round was given by a call with something that does not change."""
        one = function.definitions[function.code.blocks[guard][-1][2]] if function.code.blocks[guard][-1][0] == op.BRANCH else None
        if one is None or one[0] != op.COMPARE or function.text(one[3]) not in ("==", "!=", "in", "is"):
            return False
        body = self.rounds.body(function)
        fixed = function.definitions[one[5]] if one[5] >= 0 else None
        parts = (function.definitions[register] for register in body.slice_of([one[4]], loop.body))
        is_given = any(part is not None and part[0] in CALLING and body.home[part] in loop.body for part in parts)
        return fixed is not None and fixed[0] in _CONSTANT and is_given
