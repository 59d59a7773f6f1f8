"""What happened before an operation, the nearest first: whether the host has waited for the device already."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from streamlint.facts.functions import Function
from streamlint.facts.objects import LibraryObject, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.actions import Copied, Synchronized
from streamlint.transfer.modelled import operands_of
from streamlint.transfer.origins import Origins
from streamlint.waits.questions import unnegated

Judge = Callable[[Site, Site], "bool | None"]
"""Whether an instruction is what is looked for; None where the search goes on behind it. The second place is the instruction itself, or the
call in whose course it runs."""
_WORK = frozenset({"launch", "memset", "collective", "callback"})
_COPIES = frozenset({"copy", "transfer", "module_to"})
_MOST = 200
_DEEPEST = 3


class _Seen(NamedTuple):
    """What a search back has come to: what is looked for, something else, and the beginning of the function."""

    found: bool = False
    other: bool = False
    beginning: bool = False


class Life(NamedTuple):
    """An object of a device: where it is made, and the registers of that function that hold it."""

    made: Site
    registers: frozenset[int] = frozenset()


class Earlier:
    """Looks back from operations: in their functions, in those that are called, and in callers."""

    def __init__(self, origins: Origins) -> None:
        self.origins = origins
        self.transfer = origins.transfer
        self.guards = origins.guards

    def all_paths(self, site: Site, judge: Judge, passed: tuple[Site, ...] = (), life: Life | None = None) -> bool:
        """Whether the nearest of the instructions that count is what is looked for, on all paths to an instruction.

        The search goes through the functions that are called, and before the beginning of a function through the calls of ``passed``.
        ``life``: only the paths that begin where an object is made, and that it can take, count.
        """
        for place in (site, *reversed(passed)):
            home, index = place.function.homes[place.instruction]
            seen = self._back(place.function, [(home, index)], judge, None, 0, life)
            if seen.other or not seen.beginning:
                return seen.found and not seen.other
        return False

    def _back(
        self, function: Function, waiting: list[tuple[int, int]], judge: Judge, at: Site | None, depth: int, life: Life | None = None
    ) -> _Seen:
        """Go back over a function from some places: blocks, and the number of their instructions that count."""
        graph, blocks = function.control, function.code.blocks
        ways = self.ways(function, life) if life is not None and life.made.function is function else None
        seen, found, beginning = set[int](), False, False
        headers = {loop.header for block, _ in waiting for loop in graph.loops if block in loop.body}
        while waiting and len(seen) < _MOST:
            block, end = waiting.pop()
            verdicts = (
                False if life is not None and life.made == (function, each) else self._verdict(Site(function, each), judge, at, depth)
                for each in reversed(blocks[block][:end])
            )
            verdict = next((each for each in verdicts if each is not None), None)
            if verdict is False:
                return _Seen(other=True)
            if verdict:
                found = True
                continue
            if block in headers:
                return _Seen(other=True)  # the round before
            before = [each for each in graph.predecessors[block] if ways is None or (each, block) in ways]
            beginning = beginning or not graph.predecessors[block]
            waiting += [(each, len(blocks[each])) for each in before if each not in seen]
            seen.update(before)
        return _Seen(found, bool(waiting), beginning)

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

    def _verdict(self, site: Site, judge: Judge, at: Site | None, depth: int) -> bool | None:
        """What is seen in the functions that an instruction enters, or else what it says itself."""
        if site.instruction[0] in (op.CALL, op.INVOKE) and depth < _DEEPEST:
            edges = [edge for edge in self.transfer.edges(site.function, site.instruction) if edge.is_followed and not edge.is_handed]
            inside = [self._inside(edge.callee, judge, at or site, depth + 1) for edge in edges]
            if any(each.other for each in inside):
                return False
            if inside and all(each.found and not each.beginning for each in inside):
                return True
        return judge(site, at or site)

    def _inside(self, function: Function, judge: Judge, at: Site, depth: int) -> _Seen:
        ends = [function.homes[one] for one in function.by_opcode[op.RETURN]]
        return self._back(function, ends, judge, at, depth)

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

    def is_same_loop(self, function: Function, one: Instruction, other: Instruction) -> bool:
        """Whether two instructions stand in the same innermost loop."""
        innermost = function.control.innermost
        return innermost[function.blocks[one]] == innermost[function.blocks[other]]

    def is_idle(self, site: Site, source: int, is_condition: bool, passed: tuple[Site, ...] = ()) -> bool:
        """Whether the host has waited for the current stream before an upload, and nothing may have been put there since.

        A call out of view may have put work there, unless it fills what is uploaded. ``is_condition``: the upload itself is told under the
        condition that its device is CUDA, so that a fetch of what may be on one counts.
        """
        called = filled = False
        function = site.function
        mine = set(self.transfer.shared(function, source))
        places = {place.function: place for place in (*passed, site)}

        def judge(other: Site, at: Site) -> bool | None:
            nonlocal called, filled
            for action in self.transfer.of(other.function, other.instruction):
                if isinstance(action, Copied) and action.direction == "d2h" and action.asynchronous is False:
                    is_cuda = action.call.row is not None and action.call.row.library != "torch"
                    is_known = is_condition or is_cuda or self.is_on_device(other.function, action.source)
                    return is_known and self._is_near(at, places) and (filled or not called)
            if self._fetches_size(other.function, other.instruction):
                return self._is_near(at, places) and (filled or not called)
            if self.queues(other.function, other.instruction):
                return False
            if self.is_out_of_view(other.function, other.instruction):
                called = True
                given = {
                    each for register in operands_of(other.function, other.instruction) for each in self._behind(other.function, register)
                }
                filled = filled or (other.function is function and not mine.isdisjoint(given))
            return None

        return self.all_paths(site, judge, passed)

    def _is_near(self, at: Site, places: dict[Function, Site]) -> bool:
        """Whether no loop stands between a place and the one of its function that the search began at, or entered from."""
        return self.is_same_loop(at.function, places[at.function].instruction, at.instruction)

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
        """Whether an instruction puts work on a device, or may, out of view."""
        return self.queues(function, one) or self.is_out_of_view(function, one)

    def is_on_device(self, function: Function, register: int) -> bool:
        """Whether a register may hold memory of a device."""
        return any(origin.space == "device" for origin in self.origins.of(function, register))

    def queues(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction puts work on a device."""
        if one[0] == op.LAUNCH:
            return True
        if one[0] in (op.BINARY, op.INPLACE, op.UNARY):
            return any(self.is_on_device(function, register) for register in op.reads(one))
        if one[0] not in (op.CALL, op.INVOKE):
            return False
        rows = [call.row for call in self.transfer.modelled(function, one)]
        if any(row.effect in _WORK for row in rows):
            return True
        if any(row.effect in _COPIES for row in rows):
            return False
        callee = self.transfer.values(function, one[3]) if one[0] == op.CALL else ()
        if any(isinstance(value, LibraryObject) and value.kind == "module" for value in callee):
            return True
        if rows and all(row.effect != "compute" for row in rows):
            return False
        return any(self.is_on_device(function, register) for register in operands_of(function, one))

    def is_out_of_view(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction calls what rows do not know: a function of the program, or one out of view."""
        if one[0] not in (op.CALL, op.INVOKE) or list(self.transfer.modelled(function, one)):
            return False
        if any(edge.is_followed for edge in self.transfer.edges(function, one)):
            return True
        libraries = self.transfer.libraries(function, one)
        return not libraries or (any(call.row is None for call in libraries) and not self.transfer.is_of_language(function, one))
