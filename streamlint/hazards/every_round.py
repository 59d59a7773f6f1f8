"""What each round of a loop runs, and loops of few or special rounds: over devices, that time candidates, that halve."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from streamlint.facts.code.counters import gone_over, range_of
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind, unnegated
from streamlint.facts.code.objects import Constant, LibraryObject, Site
from streamlint.facts.code.trials import is_search
from streamlint.facts.graph.absent import truth_on_cuda
from streamlint.facts.graph.aliases import path_of
from streamlint.facts.repetition.loops import Body
from streamlint.facts.repetition.trips import FEW_IN_ALL
from streamlint.hazards.growth import Edge, Growth
from streamlint.hazards.kept_sizes import KeptSizes
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop
from streamlint.models import Row
from streamlint.ordering.paths.conditions import Conditions as Statuses
from streamlint.ordering.places.places import Places
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.waits.constants import constants_of
from streamlint.waits.questions import parts_of

_TIMING = frozenset({"elapsed", "clock"})
_READING = frozenset({op.NAME, op.LOAD, op.ATTR, op.DEREF, op.ITEM, op.PARAM, op.PHI})


class EveryRound:
    """Questions to the loops of a program."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.places = places
        self.sizes = KeptSizes(transfer, places)
        self.constants = constants_of(transfer.facts)
        self._statuses = Statuses(transfer)
        self._bodies: dict[Function, Body] = {}
        self._kept: dict[tuple[Function, Loop | None, bool, bool], frozenset[Edge]] = {}
        self._runs: dict[tuple[Site, Loop | None, bool, bool], bool] = {}

    def body(self, function: Function) -> Body:
        """A function's control flow."""
        if function not in self._bodies:
            self._bodies[function] = Body(self.transfer.graph, self.transfer.rounds, function)
        return self._bodies[function]

    def loops(self, function: Function, one: Instruction) -> Iterator[Loop]:
        """The loops of its function around an instruction, the innermost first."""
        body = self.body(function)
        return body.graph.around(body.home[one])

    # --- what a round runs

    def runs(self, site: Site, loop: Loop | None, is_new: bool = False, keeps: bool = True) -> bool:
        """Whether an instruction runs in each round of a loop, or in each call of its function: no rare branch leads there alone.

        ``is_new``: the function works for a constructor. Not ``keeps``: what a branch makes once and keeps is gone by the next round.
        """
        key = (site, loop, is_new, keeps)
        found = self._runs.get(key)
        if found is None:
            found = self._runs[key] = self._is_run(*key)
        return found

    def _is_run(self, site: Site, loop: Loop | None, is_new: bool, keeps: bool) -> bool:
        body = self.body(site.function)
        block, rare = body.home[site.instruction], self._rare(site.function, loop, is_new, keeps)
        if block not in self._reached(body, loop, rare):
            return False
        deciding = self._deciding(body, block, loop)
        never = {(one.block, one.after) for one in body.conditions.rare_at(deciding)}
        never |= {edge for guard in deciding for edge in self.constants.never_taken(site.function, guard)}
        return block in self._reached(body, loop, rare | never)

    def runs_for_first(self, site: Site) -> bool:
        """Whether a branch leads to an instruction that is not taken again for the same request: what it makes is kept."""
        return self.runs(site, None, keeps=False) and not self.runs(site, None)

    def always_runs(self, site: Site, loop: Loop | None) -> bool:
        """Whether each round of a loop, or call of a function, runs an instruction, or finds by a variable that there is nothing to do."""
        body = self.body(site.function)
        leaving = {block for block, _ in loop.exits} if loop is not None else set[int]()
        guards = [guard for guard in self._deciding(body, body.home[site.instruction], loop) if guard not in leaving]
        asked = [unnegated(site.function, site.function.code.blocks[guard][-1][2])[0] for guard in guards if not _is_end(guard, loop)]
        made = [site.function.definitions[register] if register >= 0 else None for register in asked]
        return all(one is not None and one[0] in _READING for one in made)

    def blocks(self, function: Function, loop: Loop | None, is_new: bool = False) -> frozenset[int]:
        """The blocks that each round of a loop, or each call of a function, may run without a branch that is rare by the code's form."""
        return self._reached(self.body(function), loop, self._rare(function, loop, is_new))

    def _rare(self, function: Function, loop: Loop | None, is_new: bool, keeps: bool = True) -> frozenset[Edge]:
        key = (function, loop, is_new, keeps)
        found = self._kept.get(key)
        if found is None:
            body = self.body(function)
            within = sorted(loop.body) if loop is not None else body.graph.order
            rare = {(one.block, one.after) for one in body.conditions.rare_at(within, by_values=False)}
            rare |= self._counted(function, within)
            if keeps:
                rare.update(Growth(self.sizes, function, is_new).edges(loop.body if loop is not None else None))
            found = self._kept[key] = frozenset(rare)
        return found

    def _deciding(self, body: Body, block: int, loop: Loop | None) -> list[int]:
        """The branches that decide whether a block runs, directly or through others."""
        found: list[int] = []
        waiting = [block]
        while waiting:
            for guard, _ in body.graph.controlled_by[waiting.pop()]:
                if guard not in found and (loop is None or guard in loop.body):
                    found.append(guard)
                    waiting.append(guard)
        return found

    def _reached(self, body: Body, loop: Loop | None, without: frozenset[Edge]) -> frozenset[int]:
        seen: set[int] = set()
        waiting = [loop.header if loop is not None else 0]
        while waiting:
            block = waiting.pop()
            if block in seen or block in body.lost or (loop is not None and block not in loop.body):
                continue
            seen.add(block)
            waiting += [after for after in body.graph.successors[block] if (block, after) not in without]
        return frozenset(seen)

    def _counted(self, function: Function, blocks: Iterable[int]) -> set[Edge]:
        """One round among many: what is asked anew each time (``steps() == 0``) is a given number. What is never on CUDA, or an error."""
        found: set[Edge] = set()
        for number in blocks:
            end = function.code.blocks[number][-1]
            if end[0] != op.BRANCH:
                continue
            register, turned = unnegated(function, end[2])
            truth = truth_on_cuda(self.transfer.facts, function, register) if self._may_ask else None
            truth = self._statuses.as_success(function, register) if truth is None else truth
            if truth is not None:
                found.add((number, end[4] if truth != turned else end[3]))
            one = function.definitions[register] if register >= 0 else None
            if one is None or one[0] != op.COMPARE or function.text(one[3]) not in ("==", "!="):
                continue
            asked = function.definitions[one[4]]
            is_asked = asked is not None and asked[0] in (op.CALL, op.INVOKE) and isinstance(function.constant(one[5]), int)
            if is_asked and not function.is_cpp:
                found.add((number, end[3] if (function.text(one[3]) == "==") != turned else end[4]))
        return found

    @cached_property
    def _may_ask(self) -> bool:
        """Whether the program names anything that is absent on CUDA."""
        facts = self.transfer.facts
        names = (name.rpartition(".")[2] for name, word in facts.models.constants.items() if word == "absent")
        return any(facts.program.mentioning(name) for name in names)

    def guards(self, site: Site, loop: Loop) -> list[int]:
        """The blocks whose branches decide in a loop whether an instruction runs, but for those that end the loop."""
        body = self.body(site.function)
        found = self._deciding(body, body.home[site.instruction], loop)
        return [guard for guard in found if not _is_end(guard, loop)]

    def changes(self, function: Function, guard: int, loop: Loop) -> bool:
        """Whether a condition asks for something that differs from round to round."""
        body = self.body(function)
        for one in parts_of(function, [function.code.blocks[guard][-1][2]]):
            if body.home[one] not in loop.body:
                continue
            if one[0] == op.NEXT or (one[0] == op.PHI and body.home[one] == loop.header and self._is_changed(function, one)):
                return True
        return False

    def _is_changed(self, function: Function, phi: Instruction) -> bool:
        """Whether a variable of a loop gets another value in it than what a call may have given it."""
        sources = behind(function, phi[3:], lambda one: one[3:] if one[0] == op.PHI else one[5:6] if one[0] == op.REBIND else ())
        return sum(one[0] not in (op.PHI, op.REBIND) for one in sources) > 1

    # --- loops of few or special rounds

    def is_special(self, function: Function, loop: Loop, few: int) -> bool:
        """Whether a loop has few rounds, or goes over devices, or times what it tries out, or halves, or puts an object together."""
        trips = self.transfer.rounds.trips
        rounds, in_all = trips.around(function, loop), trips.in_all(function, loop)
        if (rounds is not None and rounds <= few) or (in_all is not None and in_all <= FEW_IN_ALL):
            return True
        if is_search(function, loop) or self._shifts(function, loop):
            return True
        return self._asks(function, loop) or self._replaces(function, loop)

    def are_few(self, function: Function, iterables: list[int], few: int) -> bool:
        """Whether what goes over some iterables at once has few rounds, or goes over devices."""
        counts = (self.transfer.rounds.trips.elements(function, each) for each in iterables)
        return any(each is not None and each <= few for each in counts) or any(
            self._counts(function, one) for one in parts_of(function, iterables)
        )

    def rounds(self, function: Function, loop: Loop) -> int | None:
        """The most rounds that a loop has each time that it begins, where the program shows them."""
        return self.transfer.rounds.trips.most(function, loop)

    def least(self, function: Function, loop: Loop) -> int:
        """The least number of rounds that the program shows for a loop which counts them: a constant, a parameter's default, what callers
        give."""
        counts: list[object] = []
        given = range_of(function, gone_over(function, loop.header))
        if len(given) == 1:
            counts += [value.value for value in self.transfer.values(function, given[0]) if isinstance(value, Constant)]
            param = function.definitions[given[0]]
            default = function.default_place(param[3]) if param is not None and param[0] == op.PARAM else None
            counts.append(default[0].constant(default[1]) if default is not None else None)
        return min((each for each in counts if isinstance(each, int)), default=0)

    def _shifts(self, function: Function, loop: Loop) -> bool:
        """``1 << level < n``."""
        header = loop.header
        end = function.code.blocks[header][-1]
        if end[0] != op.BRANCH:
            return False
        return any(
            one[0] == op.BINARY and function.text(one[3]) in ("<<", ">>") and self.body(function).home[one] == header
            for one in parts_of(function, [end[2]])
        )

    def _replaces(self, function: Function, loop: Loop) -> bool:
        """``for name, part in whole.named_children(): setattr(whole, name, …)``: each part of an object is replaced once, to set it up."""
        parts = list(parts_of(function, [gone_over(function, loop.header)]))
        walked, paths = {part[2] for part in parts}, {path_of(function, part[2]) for part in parts} - {""}
        calls = (one for block in loop.body for one in function.code.blocks[block] if one[0] == op.CALL and len(one) == 8)
        return any(
            function.dotted(one[3]) == "setattr"
            and (one[5] in walked or path_of(function, one[5]) in paths)
            and any(part[0] == op.NEXT for part in parts_of(function, [one[6]]))
            for one in calls
        )

    def _asks(self, function: Function, loop: Loop) -> bool:
        """Whether a loop sets or counts devices, or times its rounds."""
        for block in sorted(loop.body):
            for one in function.code.blocks[block]:
                if one[0] in CALLING and any(self._is_special_call(call.row) for call in self.transfer.modelled(function, one)):
                    return True
        bounds = [one[2] for one in function.code.blocks[loop.header] if one[0] in (op.MORE, op.COMPARE)]
        behind = parts_of(function, bounds)
        return any(self._counts(function, one) or self._is_timed(function, one) for one in behind)

    def _is_timed(self, function: Function, one: Instruction) -> bool:
        """C++: whether a loop goes over an object that times its rounds."""
        values = self.transfer.values(function, one[3]) if one[0] == op.ITER and function.is_cpp else ()
        types = (value.type for value in values if isinstance(value, LibraryObject))
        rows = (function.unit.models.method(each, "begin", "::") for each in types)
        return any(row is not None and row.effect in _TIMING for row in rows)

    def _is_special_call(self, row: Row) -> bool:

        is_device = row.effect == "setting" and row.get("what") == "device"
        return row.effect in _TIMING or is_device or bool(row.get("devices"))

    def _counts(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction counts devices."""
        if one[0] in (op.CALL, op.INVOKE):
            return any(call.row.get("devices") for call in self.transfer.modelled(function, one))
        if one[0] == op.REBIND:
            call = next((use for use in function.code.instructions() if op.DEFINES[use[0]] and use[2] == one[3]), None)
            return call is not None and call[0] == op.CALL and self._counts(function, call)
        return False


def _is_end(guard: int, loop: Loop | None) -> bool:
    """Whether a branch ends a loop, or begins its next round."""
    return loop is not None and (guard == loop.header or guard in loop.latches)
