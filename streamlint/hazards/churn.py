"""What each round of a loop makes and ends: where an object is made, what ends it, and the innermost loop whose rounds do both."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import uncast
from streamlint.facts.code.objects import Container, Instance, Site
from streamlint.hazards.every_round import EveryRound
from streamlint.hazards.owners import Owners
from streamlint.hazards.repetition import DEEPEST, Round
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Loop
from streamlint.ordering.null_stream.measuring import Measuring
from streamlint.ordering.places.leading import leads_to
from streamlint.ordering.places.places import Place, Places
from streamlint.ordering.walk.lifetimes import End, Ends, Held, Lifetimes
from streamlint.transfer.device import DeviceOperations
from streamlint.transfer.guards import Guards
from streamlint.transfer.transfer import Transfer
from streamlint.waits.entered import Context as Calling

_LOOKING_UP = frozenset({op.NEXT, op.ITEM, op.UNPACK, op.ATTR})
_WORK = frozenset({"launch", "copy", "memset", "transfer"})


class Churn(NamedTuple):
    """An object that each round of a loop makes and ends. ``made`` are the instruction of the loop's function and those that the calls
    lead on to, ``ended`` likewise; it is empty where the last reference goes. ``held`` is the object where its end was found."""

    held: Held
    function: Function
    loop: Loop
    made: tuple[Site, ...]
    ended: tuple[Site, ...]

    @property
    def head(self) -> Site:
        """The head of the loop."""
        return Round(self.function, self.loop, ()).head


class Churning:
    """Finds objects that are made and ended repeatedly. ``few`` rounds, if their number is known, are none."""

    def __init__(self, transfer: Transfer, ends: Ends, few: int) -> None:
        self.transfer = transfer
        self.places = transfer.one_of(Places, transfer.facts)
        self.lifetimes = Lifetimes(transfer, self.places, ends)
        self.rounds = transfer.one_of(EveryRound, transfer, self.places)
        self.owners = Owners(self.rounds, self.places)
        self.guards = transfer.one_of(Guards, transfer)
        self.measuring = Measuring(transfer.one_of(DeviceOperations, transfer))
        self._few = few
        self.kept: set[tuple[Function, Loop]] = set()
        """The loops whose rounds make what outlives them, of what was followed with ``keeps``."""

    def follow(self, first: Held, keeps: bool = False) -> Iterator[Churn]:
        """The loops that make and end an object in their rounds."""
        waiting, seen = [(first, keeps)], set[tuple[Function, Instruction]]()
        for held, is_kept in waiting:
            if (held.function, held.instruction) in seen:
                continue
            seen.add((held.function, held.instruction))
            held = self.lifetimes.spread(held)
            origin = (Site(first.function, first.instruction),) if held.calls else ()
            made = (Site(held.function, held.instruction), *held.calls[1:], *origin)
            loops = list(self.rounds.loops(held.function, held.instruction))
            if ends := list(self._ends(held)):
                yield from self._paired(held, made, loops, ends)
                if not any(self._may_end(held, end) for end in ends):
                    waiting += ((each, False) for each in self.lifetimes.outside(held))  # they end what was there before
            elif held.is_owned and loops and not self.lifetimes.is_yielded(held):
                yield from self._dropped(held, made, loops, is_kept)
            elif held.is_owned and not (loops or self._leaves(held)):
                yield from self._repeated(held, made, ())
            else:
                waiting += self._outside(held, loops, is_kept)

    def _ends(self, held: Held) -> Iterator[End]:
        """Where an object ends, but for ways on which its function refuses to give it."""
        for end in self.lifetimes.ends(held):
            if (end.instruction != held.instruction or not held.is_owned) and not self._is_refused(held, end):
                yield end

    def _is_refused(self, held: Held, end: End) -> bool:
        """Whether all ways on from an end give back nothing, where the function else gives the object back: whoever asks for it ends it."""
        function, graph = held.function, self.rounds.body(held.function).graph
        behind = set(graph.reach([function.blocks[end.instruction]]))
        given = [one for one in function.by_opcode[op.RETURN] if any(place.root == ("register", one[2]) for place in held.places)]
        others = [one for one in function.by_opcode[op.RETURN] if function.blocks[one] in behind]
        return bool(given and others) and all(_is_nothing(function, one[2]) for one in others)

    def _outside(self, held: Held, loops: list[Loop], is_kept: bool) -> list[tuple[Held, bool]]:
        """An object by the names that it has outside of its function, and whether it is kept there."""
        is_kept = is_kept and not self.lifetimes.is_yielded(held)  # that ends with the rounds of whoever asks for it
        self.kept.update((held.function, loop) for loop in loops if is_kept)
        return [(each, is_kept) for each in self.lifetimes.outside(held)]

    def _may_end(self, held: Held, end: End) -> bool:
        """Whether an end may be one of the object itself, apart from errors."""
        is_behind = leads_to(held.function, held.instruction, end.instruction)
        return is_behind and self.rounds.runs(Site(held.function, end.instruction), None, keeps=False)

    def _paired(self, held: Held, made: tuple[Site, ...], loops: list[Loop], ends: list[End]) -> Iterator[Churn]:
        home = self.rounds.body(held.function).home
        others: list[End] = []
        for loop in loops:
            within = [end for end in ends if home[end.instruction] in loop.body]
            others = [end for end in within if self.owners.is_of_another_round(held, loop, end, end in others)]
            inside = [end for end in within if end not in others]
            for end in inside:
                ended = (Site(held.function, end.instruction), *end.calls)
                if not self._is_retry(held, loop, end) and self._is_churn(held, held.function, loop, made, ended):
                    yield Churn(held, held.function, loop, made, ended)
                    return
            if inside:
                return
        end = next((end for end in ends if self._may_end(held, end)), ends[0])
        if not loops or others:
            yield from self._repeated(held, made, (Site(held.function, end.instruction), *end.calls))

    def _is_retry(self, held: Held, loop: Loop, end: End) -> bool:
        """Whether a round ends what did not do, and the last one keeps it: the loop is only left between the two, or gives up."""
        body = self.rounds.body(held.function)
        given_up = loop.header if self._is_returned(held) else NOBODY
        exits = [block for block, after in loop.exits if after not in body.lost and block != given_up]
        made, ended = body.home[held.instruction], body.home[end.instruction]
        return bool(exits) and all(body.graph.dominates(made, one) and not body.graph.dominates(ended, one) for one in exits)

    def _dropped(self, held: Held, made: tuple[Site, ...], loops: list[Loop], keeps: bool) -> Iterator[Churn]:
        """What no round keeps ends with the round: of the innermost loop, or of one around it, for which that only fills a list, or of a
        loop that calls the function, whose end lets the list go."""
        for loop in loops:
            if not self._outlives(held, loop):
                if self._is_churn(held, held.function, loop, made, ()):
                    yield Churn(held, held.function, loop, made, ())
                return
            if keeps:
                self.kept.add((held.function, loop))
        if not self._leaves(held):
            yield from self._repeated(held, made, ())

    def _outlives(self, held: Held, loop: Loop) -> bool:
        """Whether a place that is not made in the round holds the object."""
        function, home = held.function, self.rounds.body(held.function).home
        for place in held.places:
            if place.root[0] == "register":
                one = function.definitions[int(str(place.root[1]))]
                if one is None or home[one] not in loop.body:
                    return True
                if (one[0] == op.PHI and home[one] == loop.header) or self._is_of_other(held, place, one):
                    return True
            elif place.root[0] != "cell" or place.path:
                return True
        return self._is_returned(held)

    def _is_of_other(self, held: Held, place: Place, one: Instruction) -> bool:
        """Whether a place is behind an object that the round has only looked up: an element of a container, what a call has given."""
        if not place.path or one == held.instruction:
            return False
        sources = {("register", register) for register in op.reads(one)}
        if any(other.root in sources for other in held.places):
            return False
        is_given = one[0] in (op.CALL, op.INVOKE)
        made = self.transfer.values(held.function, one[2]) if is_given else ()
        return one[0] in _LOOKING_UP or (is_given and not any(isinstance(value, Instance | Container) for value in made))

    def _is_returned(self, held: Held) -> bool:
        """Whether a function gives an object back, alone or in a tuple."""
        returned = {("register", end[2]) for end in held.function.by_opcode[op.RETURN]}
        return any(place.root in returned for place in held.places)

    def _leaves(self, held: Held) -> bool:
        """Whether an object leaves the function that made it."""
        return self._is_returned(held) or any(self._is_outside(place) for place in held.places)

    def _is_outside(self, place: Place) -> bool:
        return place.root[0] in ("global", "this") or (place.root[0] == "parameter" and bool(place.path))

    def _repeated(self, held: Held, made: tuple[Site, ...], ended: tuple[Site, ...]) -> Iterator[Churn]:
        """The loops around the calls of a function that makes and ends an object."""
        waiting = [(held.function, made, ended)] if all(map(self._may_run, made)) else []
        seen: set[Site] = set()
        for where, first, last in waiting:
            for start in self.lifetimes.starts(where) if len(first) <= DEEPEST else ():
                site = Site(*start)
                before = (site, *first), (site, *last)
                loop = next((each for each in self.rounds.loops(*start) if self._ends_within(site, each)), None)
                if loop is not None and self._is_churn(held, site.function, loop, *before):
                    yield Churn(held, site.function, loop, *before)
                elif loop is None and (tasks := self._tasks(site)) is not None and all(map(self._may_run, first)):
                    yield Churn(held, site.function, tasks, *before)
                elif loop is None and site not in seen and self._may_run(site) and not self._is_left_out(before[0]):
                    seen.add(site)
                    waiting.append((site.function, *before))

    def _ends_within(self, site: Site, loop: Loop) -> bool:
        """Whether a call ends in its round of a loop: threads that are waited for behind the loop run at once, each with its own object."""
        ends = self.transfer.graph.joining.ends(site.function, site.instruction)
        home = self.rounds.body(site.function).home
        return not ends or any(home[end] in loop.body for end in ends)

    def _tasks(self, site: Site) -> Loop | None:
        """The rounds that a call makes by itself, as a loop of its block alone, where it calls a function again and again."""
        return None

    def _may_run(self, site: Site) -> bool:
        """Whether each call of its function may run an instruction."""
        return self.rounds.runs(site, None) or self.rounds.runs(site, None, is_new=True)

    def _is_left_out(self, made: tuple[Site, ...]) -> bool:
        """Whether what one of the calls gives keeps the function that it enters from going on to the next."""
        entered = entering(made)
        ways = ((site, entered[: number + 1]) for number, site in enumerate(made[1:]))
        return any(self.guards.excluded(site.function, site.function.blocks[site.instruction], context) for site, context in ways)

    def _is_churn(self, held: Held, function: Function, loop: Loop, made: tuple[Site, ...], ended: tuple[Site, ...]) -> bool:
        if self.rounds.is_special(function, loop, self._few) or self.measuring.times_repeated_work(function):
            return False
        if self.owners.are_new(held, function, loop, made, ended):
            return False
        is_new, keeps = False, not self._is_given_up(loop, ended)
        for number, site in enumerate(made):
            if number and made[number - 1].instruction[0] in (op.CONSTRUCT, op.NEW, op.DECLARE):
                is_new = True
            if not self.rounds.runs(site, loop if number == 0 else None, is_new, keeps):
                return False
        if ended and not self.rounds.runs(ended[0], loop):
            return False
        return not (self._in_some_rounds(function, loop, made[0]) or self._is_left_out(made))

    def _is_given_up(self, loop: Loop, ended: tuple[Site, ...]) -> bool:
        """Whether each round ends what it finds, so that no buffer that grows is left for the next one."""
        places = [(site, loop if site.function is ended[0].function else None) for site in ended]
        return bool(ended) and all(self.rounds.always_runs(*each) and self.rounds.runs(*each) for each in places)

    def _in_some_rounds(self, function: Function, loop: Loop, site: Site) -> bool:
        """Whether a condition on what differs from round to round guards it, and the loop's own work goes on without it."""
        guards = self.rounds.guards(site, loop)
        changing = {guard for guard in guards if self.rounds.changes(function, guard, loop)}
        if not changing:
            return False
        return any(not changing.intersection(self.rounds.guards(work, loop)) for work in self.work(function, loop))

    def work(self, function: Function, loop: Loop) -> Iterator[Site]:
        """Launches and copies of a loop."""
        for block in sorted(loop.body):
            for one in function.code.blocks[block]:
                if one[0] == op.LAUNCH or self._works(function, one):
                    yield Site(function, one)

    def _works(self, function: Function, one: Instruction) -> bool:
        calls = self.transfer.modelled(function, one) if one[0] in (op.CALL, op.INVOKE) else ()
        return any(call.row.effect in _WORK for call in calls)


def entering(made: tuple[Site, ...]) -> Calling:
    """The context of the last of some instructions that calls lead to one after another."""
    return tuple((site.function, call) for call, site in pairwise(made))


def _is_nothing(function: Function, register: int) -> bool:
    """Whether a register holds a null pointer, or nothing."""
    one = function.definitions[uncast(function, register)] if register >= 0 else None
    return one is not None and one[0] == op.CONST and function.unit.ir.constants[one[3]] is None
