"""What a path may pass by: instructions, blocks and branches that touch nothing of what it follows.

An instruction is quiet if it can mean something only for what it touches. Heads say by what a place begins: its root, and the attribute
behind that. A branch is quiet if both its ways are, until they meet; then the path goes on from there, once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import unnegated
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Graph, failing
from streamlint.ordering.places.flow import Tracked
from streamlint.ordering.places.places import ADDRESS, Place, Root, register_place
from streamlint.ordering.places.weights import GRADIENTS, WEIGHTS
from streamlint.waits.questions import asked_by

if TYPE_CHECKING:
    from streamlint.ordering.walk.walk_branches import Branches

_ACCESSES = frozenset(
    {op.ATTR, op.NAME, op.LOAD, op.ITEM, op.DEREF, op.ADDRESS_ITEM, op.ADDRESS_ATTR}
    | {op.STORE, op.SET_NAME, op.SET_ATTR, op.SET_ITEM, op.SET_DEREF}
)
"""What reads or sets a place touches that, and not what holds it."""
_RENAMING = frozenset({op.PHI, op.NEXT, op.UNPACK})
INDEX = Place(("index",))
"""Stands for the indices on the way to what is tracked: some instructions rename them."""
OUTER = Place(("outer",))
"""Stands for global names and the variables of functions around others: what is called may name them."""
MODULES = Place(("modules",))
"""Stands for all memory that modules lead to, which is met by other names than their own."""
_INSIDE = frozenset({ADDRESS, WEIGHTS})
"""Keys that are no attributes: what touches the root touches what is behind them."""
_WHOLE = frozenset({WEIGHTS, GRADIENTS})


class Touch(NamedTuple):
    """The beginnings of places: ``roots`` as a whole, ``members`` of ``holders`` alone."""

    roots: frozenset[Root]
    members: frozenset[tuple[Root, object]]
    holders: frozenset[Root]

    def joined(self, other: Touch) -> Touch:
        """What one or the other touches."""
        return Touch(self.roots | other.roots, self.members | other.members, self.holders | other.holders)


class Heads(NamedTuple):
    """The beginnings of all places that are tracked; ``wholes`` are roots of which more than an attribute is."""

    roots: frozenset[Root]
    members: frozenset[tuple[Root, object]]
    wholes: frozenset[Root]

    def are_touched(self, touch: Touch) -> bool:
        """Whether something that is tracked may be touched."""
        return not (self.roots.isdisjoint(touch.roots) and self.members.isdisjoint(touch.members) and self.wholes.isdisjoint(touch.holders))


NOTHING = Touch(frozenset(), frozenset(), frozenset())


def touch(places: Iterable[Place]) -> Touch:
    """What places touch."""
    roots: set[Root] = set()
    members: set[tuple[Root, object]] = set()
    for root, path in places:
        if path and isinstance(path[0], str) and path[0] not in _INSIDE:
            members.add((root, path[0]))
        else:
            roots.add(root)
    return Touch(frozenset(roots), frozenset(members), frozenset(root for root, _ in members))


def heads(tracked: Collection[Tracked]) -> Heads:
    """By what the places begin of all that is tracked."""
    found = touch(held.place for held in tracked)
    is_indexed = any(held.type or any(not isinstance(key, str) for key in held.place.path) for held in tracked)
    marks = {INDEX.root} if is_indexed else set()
    if any(map(_is_outer, found.roots | found.holders)):
        marks.add(OUTER.root)
    if any(key in _WHOLE for held in tracked for key in held.place.path):
        marks.add(MODULES.root)
    return Heads(found.roots | found.holders | marks, found.members, found.roots)


def _is_outer(root: Root) -> bool:
    return root[0] in ("cell", "this") or (root[0] == "global" and isinstance(root[1], int))


class Region(NamedTuple):
    """The blocks behind a branch until its ways meet in ``join``, of which ``last`` is one that leads there, and all that they touch.

    Ways meet if those do that raise no exception. Where ``join`` is `NOBODY`, all that return give back nothing of what is tracked, and
    ``last`` is one that does.
    """

    blocks: frozenset[int]
    join: int
    last: int
    touch: Touch


def _returns(function: Function, block: int) -> bool:
    return function.code.blocks[block][-1][0] == op.RETURN


class Quiet:
    """What is quiet for the paths of a walk."""

    def __init__(self, walk: Branches) -> None:
        self.walk = walk
        self._blocks: dict[tuple[Function, int], tuple[Touch | None, ...]] = {}
        self._whole: dict[tuple[Function, int], Touch | None] = {}
        self._regions: dict[tuple[Function, int], Region | None] = {}
        self._joins: dict[Function, list[int]] = {}
        self._heads: dict[frozenset[Tracked], Heads] = {}

    def heads(self, tracked: frozenset[Tracked]) -> Heads:
        """By what the places begin of all that is tracked."""
        found = self._heads.get(tracked)
        if found is None:
            found = self._heads[tracked] = heads(tracked)
        return found

    def forget(self) -> None:
        """Another path begins, with other things that are tracked."""
        self._heads.clear()

    def steps(self, function: Function, block: int) -> tuple[Touch | None, ...]:
        """What each instruction of a block touches; None for one that may mean something else."""
        found = self._blocks.get((function, block))
        if found is None:
            code = function.code.blocks[block]
            found = self._blocks[function, block] = tuple(self._touched(function, one) for one in code)
        return found

    def region(self, function: Function, block: int) -> Region | None:
        """The quiet region behind a branch; None if something in it may mean more than what it touches, or decides a later branch."""
        key = function, block
        if key not in self._regions:
            self._regions[key] = self._find(function, block)
        return self._regions[key]

    def _find(self, function: Function, block: int) -> Region | None:
        graph = function.control
        join = self._join(function, block)
        if (join == NOBODY and not self.walk.ends_alike) or self._decides(function, block):
            return None
        blocks, last, touches = set[int](), block, list[Touch]()
        waiting = [each for each in graph.successors[block] if each != join]
        while waiting:
            number = waiting.pop()
            if number in blocks:
                continue
            whole = self.whole(function, number)
            if whole is None or self._decides(function, number):
                return None
            blocks.add(number)
            touches.append(whole)
            waiting += (each for each in graph.successors[number] if each != join)
            last = number if join in graph.successors[number] or (join == NOBODY and _returns(function, number)) else last
        if join == NOBODY and not _returns(function, last):
            return None
        touches += self._at_join(function, join)
        touches.append(touch(self._condition(function, function.code.blocks[block][-1])))
        return Region(frozenset(blocks), join, last, reduce(Touch.joined, touches))

    def _at_join(self, function: Function, join: int) -> Iterator[Touch]:
        """What is touched where ways meet."""
        for one in function.code.blocks[join] if join != NOBODY else ():
            if one[0] == op.PHI and (found := self._touched(function, one)) is not None:
                yield found

    def _join(self, function: Function, block: int) -> int:
        """The block where all ways from another one meet that raise no exception; NOBODY where that is the end of the function."""
        joins = self._joins.get(function)
        if joins is None:
            fails = failing(function.code)
            graph = Graph([[each for each in after if each not in fails] for after in function.control.successors])
            joins = self._joins[function] = graph.post_dominators if fails else function.control.post_dominators
        return joins[block]

    def _condition(self, function: Function, end: Instruction) -> Iterator[Place]:
        """The places of what a branch asks."""
        for register in {end[2], unnegated(function, end[2])[0]}:
            yield from self.walk.names_of(function, register)

    def _decides(self, function: Function, block: int) -> bool:
        """Whether the branch at the end of a block says how another one goes."""
        end = function.code.blocks[block][-1]
        return end[0] == op.BRANCH and self.walk.says_more(function, asked_by(function, end))

    def whole(self, function: Function, block: int) -> Touch | None:
        """All that the instructions of a block touch; None if one may mean something else."""
        key = function, block
        if key not in self._whole:
            found: Touch | None = NOTHING
            for step in self.steps(function, block):
                found = found.joined(step) if found is not None and step is not None else None
            self._whole[key] = found
        return self._whole[key]

    def _touched(self, function: Function, one: Instruction) -> Touch | None:
        walk = self.walk
        if not walk.is_quiet(function, one):
            return None
        opcode, names, found = one[0], walk.names_of, list[Place]()
        is_named = op.DEFINES[opcode] and walk.places.of(function, one[2]) != register_place(one[2])
        is_plain = not walk.actions(function, one) and (is_named or opcode != op.ITEM)  # a slice has no name of its own
        for target, register in walk.places.assigned(function, one):
            found += (target, *names(function, register))
        if opcode == op.BRANCH:
            found += self._condition(function, one)
        elif not (is_plain and opcode in _ACCESSES):
            for register in op.reads(one):
                found += names(function, register)
        found += walk.touches(function, one)
        if op.DEFINES[opcode]:
            found += (register_place(one[2]), walk.places.of(function, one[2]))
        touched = touch(found)
        return touched._replace(roots=touched.roots | {INDEX.root}) if walk.renames and opcode in _RENAMING else touched
