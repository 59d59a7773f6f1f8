"""Questions to a control-flow graph: order, dominance, control dependence, loops.

A graph is the successors of its blocks; block 0 is the entry. Blocks that the entry does not reach take part in nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

from streamlint.ir import opcodes as op
from streamlint.ir.code import Code, Instruction

Thing = TypeVar("Thing")

NOBODY = -1
"""The immediate dominator of the entry and of what is not reachable."""


class Loop(NamedTuple):
    """A loop. One that is entered at one block, its header, is a natural loop; others are irreducible, and ``header`` is the first entry.

    ``latches`` are the blocks whose edges lead back to the header, ``exits`` the edges that leave the body, ``parent`` is the place of
    the loop around, ``depth`` is 1 for the outermost.
    """

    header: int
    body: frozenset[int]
    latches: tuple[int, ...]
    exits: tuple[tuple[int, int], ...]
    parent: int
    depth: int
    is_natural: bool


class Graph:
    """The control-flow graph of a function."""

    def __init__(self, successors: Sequence[Sequence[int]]) -> None:
        self.successors = successors

    @classmethod
    def of(cls, code: Code, exceptions: bool = True) -> Graph:
        """The graph of a code, with the edges of exceptions or without."""
        after = [code.successors(block) for block in range(len(code.blocks))]
        if not exceptions:
            after = [edges[:-1] if block in code.handlers else edges for block, edges in enumerate(after)]
        return cls(after)

    def __len__(self) -> int:
        return len(self.successors)

    def reach(self, starts: Iterable[int], without: Iterable[int] = ()) -> Iterator[int]:
        """The blocks to which ways lead that begin at some blocks, these included, and do not pass others; each once."""
        return led_to(starts, self.successors.__getitem__, without)

    @cached_property
    def order(self) -> list[int]:
        """The reachable blocks in reverse post-order: each before those that it leads to, edges back aside."""
        return _reverse_post_order(self.successors, 0) if self.successors else []  # the body of a file that could not be read has no block

    @cached_property
    def predecessors(self) -> list[list[int]]:
        """For each block the reachable blocks that lead to it, each once."""
        found: list[list[int]] = [[] for _ in self.successors]
        for block in sorted(self.order):
            for after in dict.fromkeys(self.successors[block]):
                found[after].append(block)
        return found

    # --- dominance

    @cached_property
    def dominators(self) -> list[int]:
        """The immediate dominator of each block."""
        return _immediate(self.order, self.predecessors)

    @cached_property
    def post_dominators(self) -> list[int]:
        """The immediate post-dominator of each block; NOBODY where it is the end of the function.

        Of a region without a way to the end, such as a loop that never ends, the last block counts as one that leads there.
        """
        end = len(self)
        before = [*self.predecessors, self._ends()]  # the graph, turned round, with one entry
        after: list[list[int]] = [[] for _ in range(end + 1)]
        for block, blocks in enumerate(before):
            for one in blocks:
                after[one].append(block)
        found = _immediate(_reverse_post_order(before, end), after)
        return [NOBODY if one == end else one for one in found[:end]]

    def dominates(self, block: int, other: int) -> bool:
        """Whether each path from the entry to ``other`` goes through ``block``; a block dominates itself."""
        return _is_above(self._dominance, block, other)

    def post_dominates(self, block: int, other: int) -> bool:
        """Whether each path from ``other`` to the end of the function goes through ``block``; a block post-dominates itself."""
        return _is_above(self._post_dominance, block, other)

    @cached_property
    def controlled_by(self) -> list[list[tuple[int, int]]]:
        """For each block the edges that decide whether it runs: taken, it does; at the other edges of their block, it may not."""
        found: list[list[tuple[int, int]]] = [[] for _ in self.successors]
        above = self.post_dominators
        for block in self.order:
            for after in dict.fromkeys(self.successors[block]):
                runner = after
                while runner not in (NOBODY, above[block]):
                    found[runner].append((block, after))
                    runner = above[runner]
        return found

    # --- loops

    @cached_property
    def loops(self) -> list[Loop]:
        """All loops, each behind the one around it."""
        place = {block: index for index, block in enumerate(self.order)}
        found: list[Loop] = []
        waiting = [(frozenset(self.order), NOBODY)]
        while waiting:
            region, parent = waiting.pop()
            for body in _components(self.successors, region, place):
                entries = self._entries(body)
                header = min(entries, key=place.__getitem__)
                latches = tuple(block for block in self.predecessors[header] if block in body)
                exits = tuple((block, after) for block in sorted(body) for after in self.successors[block] if after not in body)
                depth = 1 if parent == NOBODY else found[parent].depth + 1
                waiting.append((body - {header}, len(found)))
                found.append(Loop(header, body, latches, exits, parent, depth, len(entries) == 1))
        return found

    @cached_property
    def innermost(self) -> list[int]:
        """For each block the index of the innermost loop around it, or NOBODY."""
        found = [NOBODY] * len(self)
        for index, loop in enumerate(self.loops):
            for block in loop.body:
                found[block] = index
        return found

    def around(self, block: int) -> Iterator[Loop]:
        """The loops around a block, the innermost first."""
        place = self.innermost[block]
        while place != NOBODY:
            yield self.loops[place]
            place = self.loops[place].parent

    def every_round(self, loop: Loop) -> frozenset[int]:
        """The blocks that each round runs which is followed by another one; of an irreducible loop, none is known."""
        if not loop.is_natural:
            return frozenset()
        return frozenset(block for block in loop.body if all(self.dominates(block, last) for last in loop.latches))

    # --- inside

    @cached_property
    def _dominance(self) -> list[tuple[int, int]]:
        return _intervals(self.dominators, [0])

    @cached_property
    def _post_dominance(self) -> list[tuple[int, int]]:
        return _intervals(self.post_dominators, [block for block in self.order if self.post_dominators[block] == NOBODY])

    def _ends(self) -> list[int]:
        """The blocks that lead to the end of the function."""
        ends = [block for block in self.order if not self.successors[block]]
        seen: set[int] = set()
        for block in ends:
            _mark_before(block, self.predecessors, seen)
        for block in reversed(self.order):
            if block not in seen:
                ends.append(block)
                _mark_before(block, self.predecessors, seen)
        return ends

    def _entries(self, body: frozenset[int]) -> list[int]:
        """The blocks at which a strongly connected region is entered."""
        return [block for block in body if block == 0 or any(before not in body for before in self.predecessors[block])]


def failing(code: Code) -> frozenset[int]:
    """The blocks from which all ways lead to an exception that leaves the function.

    A loop without a way out goes on: an exception that ends it is raised elsewhere.
    """
    graph = Graph.of(code)
    lasting: set[int] = set()
    ends = [block for block in graph.order if code.blocks[block][-1][0] == op.RETURN]
    ends += [loop.header for loop in Graph.of(code, exceptions=False).loops if not loop.exits]
    for block in ends:
        _mark_before(block, graph.predecessors, lasting)
    return frozenset(graph.order) - lasting


def raising(code: Code) -> frozenset[int]:
    """The blocks from which all ways lead to an exception that leaves the function, without a loop before it."""
    graph = Graph.of(code)
    found = failing(code)
    looping: set[int] = set()
    for loop in graph.loops:
        for block in loop.body & found:
            _mark_before(block, graph.predecessors, looping)
    return found - looping


def _reverse_post_order(successors: Sequence[Sequence[int]], entry: int) -> list[int]:
    seen, found, stack = {entry}, [], [(entry, iter(reversed(successors[entry])))]
    while stack:
        block, rest = stack[-1]
        for after in rest:
            if after not in seen:
                seen.add(after)
                stack.append((after, iter(reversed(successors[after]))))
                break
        else:
            stack.pop()
            found.append(block)
    found.reverse()
    return found


def _immediate(order: list[int], predecessors: Sequence[Sequence[int]]) -> list[int]:
    """Immediate dominators, by the algorithm of Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001)."""
    found = [NOBODY] * len(predecessors)
    place = {block: index for index, block in enumerate(order)}
    entry = order[0]
    found[entry] = entry
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            new = NOBODY
            for before in predecessors[block]:
                if found[before] == NOBODY:
                    continue
                other = before
                while new not in (NOBODY, other):
                    if place[new] > place[other]:
                        new = found[new]
                    else:
                        other = found[other]
                new = other
            if new != found[block]:
                found[block] = new
                changed = True
    found[entry] = NOBODY
    return found


def _intervals(above: list[int], roots: list[int]) -> list[tuple[int, int]]:
    """For each block of a tree when a walk enters and leaves it; (0, 0) for what is in none."""
    below: list[list[int]] = [[] for _ in above]
    for block, parent in enumerate(above):
        if parent != NOBODY:
            below[parent].append(block)
    entered, left, clock = [0] * len(above), [0] * len(above), 0
    stack = [(root, False) for root in roots]
    while stack:
        block, is_done = stack.pop()
        clock += 1
        if is_done:
            left[block] = clock
        else:
            entered[block] = clock
            stack.append((block, True))
            stack += [(one, False) for one in below[block]]
    return list(zip(entered, left, strict=True))


def _is_above(intervals: list[tuple[int, int]], block: int, other: int) -> bool:
    (entered, left), (inner_entered, inner_left) = intervals[block], intervals[other]
    return 0 < entered <= inner_entered and inner_left <= left


def _mark_before(block: int, predecessors: Sequence[Sequence[int]], seen: set[int]) -> None:
    """Add a block and all that lead to it."""
    stack = [block]
    while stack:
        one = stack.pop()
        if one not in seen:
            seen.add(one)
            stack += predecessors[one]


def _components(successors: Sequence[Sequence[int]], region: Collection[int], place: dict[int, int]) -> list[frozenset[int]]:
    """The strongly connected parts of a region that hold a cycle, by Tarjan's algorithm, in the order of their first blocks."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    open_: dict[int, None] = {}
    found: list[frozenset[int]] = []
    for root in sorted(region, key=place.__getitem__):
        if root in number:
            continue
        stack = [(root, iter(successors[root]))]
        number[root] = low[root] = len(number)
        open_[root] = None
        while stack:
            block, rest = stack[-1]
            for after in rest:
                if after not in region:
                    continue
                if after not in number:
                    number[after] = low[after] = len(number)
                    open_[after] = None
                    stack.append((after, iter(successors[after])))
                    break
                if after in open_:
                    low[block] = min(low[block], number[after])
            else:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[block])
                if low[block] == number[block]:
                    part = _closed(open_, block)
                    if len(part) > 1 or block in successors[block]:
                        found.append(part)
    return sorted(found, key=lambda part: min(place[block] for block in part))


def _closed(open_: dict[int, None], block: int) -> frozenset[int]:
    """Take a finished component from the blocks that are open."""
    part = set()
    while True:
        one, _ = open_.popitem()
        part.add(one)
        if one == block:
            return frozenset(part)


def led_to(begin: Iterable[Thing], onward: Callable[[Thing], Iterable[Thing]], without: Iterable[Thing] = ()) -> Iterator[Thing]:
    """Some things, and what they lead to, but for ways through others; each once."""
    waiting, seen = list(begin), set(without)
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            yield one
            waiting += onward(one)


def until(
    code: Code, start: tuple[int, int], is_end: Callable[[Instruction], bool], successors: Sequence[Sequence[int]] | None = None
) -> Iterator[Instruction]:
    """The instructions of the ways on from a place in a block, each way as far as an instruction that ends it."""
    waiting, seen = [start], set[int]()
    while waiting:
        block, index = waiting.pop()
        for one in code.blocks[block][index:]:
            if is_end(one):
                break
            yield one
        else:
            fresh = [after for after in (successors[block] if successors is not None else code.successors(block)) if after not in seen]
            seen.update(fresh)
            waiting += ((after, 0) for after in fresh)
