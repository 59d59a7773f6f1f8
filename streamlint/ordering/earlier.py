"""What happened before an operation, the nearest first: whether the host has waited for the device already."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from streamlint.facts.counters import counts_rounds
from streamlint.facts.effects import Effect, Effects
from streamlint.facts.functions import Function
from streamlint.facts.instructions import unnegated
from streamlint.facts.objects import LibraryObject, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Loop
from streamlint.transfer.actions import Copied, Read, Synchronized
from streamlint.transfer.modelled import operands_of
from streamlint.transfer.origins import Origins

Judge = Callable[[Site, Site], "bool | None"]
"""Whether an instruction is what is looked for; None where the search goes on behind it. The second place is the instruction itself, or the
call in whose course it runs."""
_WORK = frozenset({"launch", "memset", "collective", "callback"})
_COPIES = frozenset({"copy", "transfer", "module_to"})
_MOST = 200
_DEEPEST = 3
_FEW = 4
"""Callers of a function that are asked for what was before its calls."""


class _Seen(NamedTuple):
    """What a search back has come to: what is looked for, something else, and the beginning of the function."""

    found: bool = False
    other: bool = False
    beginning: bool = False


class _Place(NamedTuple):
    """A block that a search comes to: whether in the round before, and whether by leaving the loop of which it is the head."""

    block: int
    is_before: bool
    is_left: bool = False


class Life(NamedTuple):
    """An object of a device: where it is made, and the registers of that function that hold it."""

    made: Site
    registers: frozenset[int] = frozenset()


Crosses = Callable[[Function, Loop | None], bool]
"""Whether a search that has come to the head of a loop, or of a function (None), goes on in the round or the call before."""


class _Search(NamedTuple):
    """What is looked for, and on which paths; what the functions have come to that were entered by calls in the course of a call."""

    judge: Judge
    life: Life | None
    crosses: Crosses | None
    as_run: bool
    entered: dict[tuple[Function, Site | None], _Seen]


class Earlier:
    """Looks back from operations: in their functions, in those that are called, and in callers."""

    def __init__(self, origins: Origins) -> None:
        self.origins = origins
        self.transfer = origins.transfer
        self.guards = origins.guards
        self._raising: dict[Function, frozenset[tuple[int, int]]] = {}

    def all_paths(
        self,
        site: Site,
        judge: Judge,
        passed: tuple[Site, ...] = (),
        life: Life | None = None,
        crosses: Crosses | None = None,
        as_run: bool = False,
    ) -> bool:
        """Whether the nearest of the instructions that count is what is looked for, on all paths to an instruction.

        The search goes through the functions that are called, and before the beginning of a function through the calls of ``passed``.
        ``life``: only the paths that begin where an object is made, and that it can take, count. ``as_run``: a loop over elements is
        looked at as it runs.
        """
        search = _Search(judge, life, crosses, as_run, {})
        for place in (site, *reversed(passed)):
            home, index = place.function.homes[place.instruction]
            seen = self._back(place.function, [(home, index)], search, None, 0)
            if seen.other or not seen.beginning:
                return seen.found and not seen.other
        outermost = passed[0].function if passed else site.function
        if crosses is None or not crosses(outermost, None):
            return False
        seen = self._inside(outermost, search, None, 0)
        return seen.found and not (seen.other or seen.beginning)

    def _back(self, function: Function, starts: list[tuple[int, int]], search: _Search, at: Site | None, depth: int) -> _Seen:
        """Go back over a function from some places: blocks, and the number of their instructions that count."""
        graph = function.control
        ways = self._ways_of(function, search.life)
        seen, found, beginning = set[_Place](), False, False
        headers = _around(function, starts)
        waiting = [(_Place(block, False), end) for block, end in starts]
        while waiting and len(seen) < _MOST:
            place, end = waiting.pop()
            block, is_before, _ = place
            verdict = self._last(function, function.code.blocks[block][:end], search, at, depth)
            if verdict is False:
                return _Seen(other=True)
            if verdict:
                found = True
                continue
            before = [each for each in self._steps_back(function, place) if ways is None or (each, block) in ways]
            if (loop := headers.get(block)) is not None:
                if is_before or search.crosses is None or not search.crosses(function, loop):
                    return _Seen(other=True)  # the round before
                is_before, before = True, [each for each in before if each in loop.body]
            beginning = beginning or not graph.predecessors[block]
            fresh = [_Place(each, is_before, search.as_run and _leaves(function, each, block)) for each in before]
            waiting += [(each, len(function.code.blocks[each.block])) for each in fresh if each not in seen]
            seen.update(fresh)
        return _Seen(found, bool(waiting), beginning)

    def _steps_back(self, function: Function, place: _Place) -> Iterator[int]:
        """The blocks before one: of a loop that was left, its rounds; not those that leave unbound what the function gives back."""
        loop = function.loop_heads.get(place.block)
        for each in function.control.predecessors[place.block]:
            is_round = loop is None or not place.is_left or each in loop.body
            if is_round and (each, place.block) not in self._unbound(function):
                yield each

    def _unbound(self, function: Function) -> frozenset[tuple[int, int]]:
        """Python: the steps behind which a variable is not bound that every return of a function gives back: that would raise."""
        known = self._raising.get(function)
        if known is None:
            waiting = [] if function.is_cpp or len(function.by_opcode[op.RETURN]) != 1 else [function.by_opcode[op.RETURN][0][2]]
            found: set[tuple[int, int]] = set()
            for register in waiting:
                phi = function.definitions[register] if register >= 0 else None
                ways = zip(function.phi_order[function.blocks[phi]], phi[3:], strict=False) if phi is not None and phi[0] == op.PHI else ()
                for block, value in ways:
                    made = function.definitions[value] if value >= 0 else None
                    if made is not None and made[0] == op.UNDEF and phi is not None:
                        found.add((block, function.blocks[phi]))
                    elif value not in waiting:
                        waiting.append(value)
            known = self._raising[function] = frozenset(found)
        return known

    def _last(self, function: Function, block: Sequence[Instruction], search: _Search, at: Site | None, depth: int) -> bool | None:
        """What the last of some instructions says that says anything."""
        for one in reversed(block):
            is_made = search.life is not None and search.life.made == (function, one)
            verdict = False if is_made else self._verdict(Site(function, one), search, at, depth)
            if verdict is not None:
                return verdict
        return None

    def _ways_of(self, function: Function, life: Life | None) -> set[tuple[int, int]] | None:
        """The steps that an object takes in a function; None of one that is made elsewhere."""
        return self.ways(function, life) if life is not None and life.made.function is function else None

    def ways(self, function: Function, life: Life) -> set[tuple[int, int]]:
        """The steps from block to block that an object takes from where it is made, in the same round of its loop."""
        against: set[tuple[int, int]] = set()
        while True:
            found = self._ways(function, life, against)
            more = set(self._flagged(function, life, found)) - against
            if not more:
                return found
            against |= more

    def _ways(self, function: Function, life: Life, against: set[tuple[int, int]]) -> set[tuple[int, int]]:
        graph, found = function.control, set[tuple[int, int]]()
        start = function.blocks[life.made.instruction]
        index = graph.innermost[start]
        header = graph.loops[index].header if index >= 0 else None
        waiting = [start]
        while waiting:
            block = waiting.pop()
            for after in graph.successors[block]:
                if (block, after) in found or (block, after) in against or after == header:
                    continue
                if not self.is_against(function, block, after, life.registers):
                    found.add((block, after))
                    waiting.append(after)
        return found

    def _flagged(self, function: Function, life: Life, found: set[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """The steps that are not taken, since a flag says otherwise that was set to a constant on all ways which the object has come."""
        graph, start = function.control, function.blocks[life.made.instruction]
        for block in {after for _, after in found}:
            end = function.code.blocks[block][-1]
            register, turned = unnegated(function, end[2]) if end[0] == op.BRANCH else (op.NONE, False)
            phi = function.definitions[register] if register >= 0 else None
            if phi is None or phi[0] != op.PHI or graph.dominates(function.blocks[phi], start):
                continue
            home = function.blocks[phi]
            come = [value for number, value in zip(function.phi_order[home], phi[3:], strict=False) if (number, home) in found]
            truths = set(map(function.truth, come))
            if len(truths) == 1 and (truth := truths.pop()) is not None:
                yield block, end[4] if truth != turned else end[3]

    def is_against(self, function: Function, block: int, after: int, registers: frozenset[int]) -> bool:
        """Whether a branch asks where an object is, and leads there only for one that is not on a device."""
        end = function.code.blocks[block][-1]
        if end[0] != op.BRANCH or end[3] == end[4]:
            return False
        condition, turned = unnegated(function, end[2])
        holds = (after == end[3]) != turned
        return self.guards.says(function, condition, holds, registers) == "host"

    def _verdict(self, site: Site, search: _Search, at: Site | None, depth: int) -> bool | None:
        """What is seen in the functions that an instruction enters, or else what it says itself."""
        if site.instruction[0] in (op.CALL, op.INVOKE) and depth < _DEEPEST:
            edges = [edge for edge in self.transfer.edges(site.function, site.instruction) if edge.is_followed and not edge.is_handed]
            inside = [self._inside(edge.callee, search, at or site, depth + 1) for edge in edges]
            if any(each.other for each in inside):
                return False
            if inside and all(each.found and not each.beginning for each in inside):
                return True
        return search.judge(site, at or site)

    def _inside(self, function: Function, search: _Search, at: Site | None, depth: int) -> _Seen:
        """What a call of a function comes to last. A function that calls itself comes to nothing there."""
        found = search.entered.get((function, at))
        if found is None:
            search.entered[function, at] = _Seen()
            ends = [function.homes[one] for one in function.by_opcode[op.RETURN]]
            found = search.entered[function, at] = self._back(function, ends, search._replace(life=None), at, depth)
        return found

    def has_work(self, site: Site, passed: tuple[Site, ...] = ()) -> bool:
        """Whether work is shown to be on a device on some path to an operation, and the host has not waited for a device since."""
        shown = False

        def judge(other: Site, _: Site) -> bool | None:
            nonlocal shown
            if any(isinstance(action, Synchronized) for action in self.transfer.of(other.function, other.instruction)):
                return True
            shown = shown or self.queues(other.function, other.instruction) or self._fills(other.function, other.instruction)
            return False if shown else None

        self.all_paths(site, judge, passed)
        return shown

    def _fills(self, function: Function, one: Instruction) -> bool:
        """Python: whether elements of memory of a device are set."""
        return one[0] == op.SET_ITEM and not function.is_cpp and self.is_on_device(function, one[2])

    def _fetches(self, site: Site, is_condition: bool) -> bool | None:
        """Whether an instruction surely waits for the current stream; None of one that fetches nothing from a device."""
        for action in self.transfer.of(site.function, site.instruction):
            if isinstance(action, Copied) and action.direction == "d2h" and action.asynchronous is False:
                is_cuda = action.call.row is not None and action.call.row.library != "torch"
                return is_condition or is_cuda or self.is_on_device(site.function, action.source)
            if isinstance(action, Read) and action.waits and self._is_read_there(site.function, action.register):
                return True
        return True if self._fetches_size(site.function, site.instruction) else None

    def _given_to(self, call: Site) -> set[int]:
        """What a call is given, and what that is made from."""
        return {each for register in operands_of(call.function, call.instruction) for each in self._behind(call.function, register)}

    def is_idle(self, site: Site, source: int, is_condition: bool, passed: tuple[Site, ...] = ()) -> bool:
        """Whether the host has waited for the current stream before an upload, and nothing may have been put there since.

        An unknown call may have put work there, unless it fills what is uploaded. ``is_condition``: the upload itself is reported under the
        condition that its device is CUDA, so that a fetch of what may be on one counts. Rounds that do not train, and calls of a function
        that no known code calls, follow one another: the host may have waited at the end of the one before.
        """
        called = filled = False
        function = site.function
        mine = set(self.transfer.shared(function, source))
        places = {place.function: place for place in (*passed, site)}

        def judge(other: Site, at: Site) -> bool | None:
            nonlocal called, filled
            fetches = self._fetches(other, is_condition)
            if fetches is not None:
                return fetches and self._is_near(at, places) and (filled or not called)
            if self.queues(other.function, other.instruction):
                return False
            if self.is_unknown_call(other.function, other.instruction):
                called = True
                filled = filled or (other.function is function and not mine.isdisjoint(self._given_to(other)))
            return None

        if self.all_paths(site, judge, passed, crosses=self._follow, as_run=True):
            return True
        callers = list(self.transfer.callers((*passed, site)[0].function)) if len(passed) < _DEEPEST else []
        return 0 < len(callers) <= _FEW and all(
            self.is_idle(site, source, is_condition, (Site(caller, one), *passed)) for caller, one in callers if caller is not function
        )

    def _is_read_there(self, function: Function, register: int) -> bool:
        """Whether a register holds memory of a device, and is not the answer to whether there is any."""
        one = function.definitions[register] if register >= 0 else None
        is_identity = one is not None and one[0] == op.COMPARE and function.text(one[3]) in ("is", "is not")
        return not is_identity and self.is_on_device(function, register)

    def _follow(self, function: Function, loop: Loop | None) -> bool:
        """Whether the rounds of a loop, or the calls of a function, follow one another with nothing in between, and train nothing: reads
        in training are there for logs, and may go."""
        if function.is_cpp or (loop is None and any(True for _ in self.transfer.callers(function))):
            return False
        training = self.transfer.one_of(Effects, self.transfer.graph).leading(Effect.BACKWARD | Effect.OPTIMIZER)
        if loop is None or function not in training:
            return function not in training
        entered = (edge for block in loop.body for one in function.code.blocks[block] for edge in self.transfer.edges(function, one))
        own = self.transfer.one_of(Effects, self.transfer.graph).rounds.of(function)
        return not any(function.blocks[one.instruction] in loop.body for one in own) and training.isdisjoint(
            edge.callee for edge in entered
        )

    def _is_near(self, at: Site, places: dict[Function, Site]) -> bool:
        """Whether a place stands in the loop of the one of its function that the search began at, or entered from; outside of loops in
        none, too."""
        function, graph = at.function, at.function.control
        around, own = (graph.innermost[function.blocks[one]] for one in (places[function].instruction, at.instruction))
        return around == own or (around != NOBODY and function.blocks[at.instruction] in graph.loops[around].body)

    def _fetches_size(self, function: Function, one: Instruction) -> bool:
        """Whether the host waits for how many elements a call on the device gives: ``nonzero``."""
        rows = [call.row for call in self.transfer.modelled(function, one)] if one[0] in (op.CALL, op.INVOKE) else []
        waits = any(row.effect == "compute" and row.get("waits") for row in rows)
        return waits and any(self.is_on_device(function, each) for each in operands_of(function, one))

    def _behind(self, function: Function, register: int) -> Iterator[int]:
        """A register and, of an attribute, its object."""
        yield from self.transfer.shared(function, register)
        one = function.definitions[register] if register >= 0 else None
        if one is not None and one[0] == op.ATTR:
            yield one[3]

    def is_work(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction puts work on a device, or may, as an unknown call."""
        return self.queues(function, one) or self.is_unknown_call(function, one)

    def is_on_device(self, function: Function, register: int) -> bool:
        """Whether a register may hold memory of a device."""
        return any(origin.space == "device" for origin in self.origins.of(function, register))

    def queues(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction puts work on a device."""
        if one[0] == op.LAUNCH:
            return True
        if one[0] in (op.BINARY, op.INPLACE, op.UNARY):
            return any(self.is_on_device(function, register) for register in op.reads(one))
        return one[0] in (op.CALL, op.INVOKE) and self._call_queues(function, one)

    def _call_queues(self, function: Function, one: Instruction) -> bool:
        """Whether a call puts work on a device: by its row, as a module that runs, or on operands that are there."""
        effects = {call.row.effect for call in self.transfer.modelled(function, one)}
        if not effects.isdisjoint(_WORK):
            return True
        if not effects.isdisjoint(_COPIES):
            return False
        callee = self.transfer.values(function, one[3]) if one[0] == op.CALL else ()
        if any(isinstance(value, LibraryObject) and value.kind == "module" for value in callee):
            return True
        if effects and "compute" not in effects:
            return False
        return any(self.is_on_device(function, register) for register in operands_of(function, one))

    def is_unknown_call(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction calls what rows do not know: a function of the program, or an unknown one."""
        if one[0] not in (op.CALL, op.INVOKE) or list(self.transfer.modelled(function, one)):
            return False
        if any(edge.is_followed for edge in self.transfer.edges(function, one)):
            return True
        libraries = self.transfer.libraries(function, one)
        return not libraries or (any(call.row is None for call in libraries) and not self.transfer.is_of_language(function, one))


def _around(function: Function, starts: list[tuple[int, int]]) -> dict[int, Loop]:
    """The loops around some places, by their first blocks."""
    return {loop.header: loop for block, _ in starts for loop in function.control.loops if block in loop.body}


def _leaves(function: Function, header: int, after: int) -> bool:
    """Whether a step leads out of a loop over elements."""
    loop = function.loop_heads.get(header)
    end = function.code.blocks[header][-1]
    is_left = loop is not None and after not in loop.body and end[0] == op.BRANCH
    return is_left and counts_rounds(function, unnegated(function, end[2])[0])
