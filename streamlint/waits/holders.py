"""Where a value comes back out of an attribute, a container, a cell or a global: by objects, not by what they are called."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property, partial
from typing import NamedTuple

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import Instance
from streamlint.facts.repetition.hot import HotRegions, Region
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.operands import operand_of

MOST_KEYS = 4
"""How many containers around a value are distinguished."""


class Member(NamedTuple):
    """The attribute of an object of which nothing is known, as a key."""

    name: str


Key = str | int | Member | None
"""An element of a container; None for any."""
ANY_TEXT = "*"
"""A key that is computed as text."""
Path = tuple[Key, ...]


class Frame:
    """A function as it runs in a round: the blocks that do, and the call that enters it; without one, all calls of it count."""

    __slots__ = ("blocks", "call", "caller", "depth", "function", "inner", "region")

    def __init__(
        self, function: Function, blocks: frozenset[int], caller: Frame | None, call: Instruction | None, region: Region | None = None
    ) -> None:
        self.function = function
        self.blocks = blocks
        self.caller = caller
        self.call = call
        self.region = region
        self.depth: int = 0 if caller is None else caller.depth + 1
        self.inner: dict[tuple[Instruction, Function], Frame] = {}

    def enter(self, call: Instruction, function: Function, blocks: frozenset[int]) -> Frame:
        """A function that a call of this one enters."""
        key = (call, function)
        if key not in self.inner:
            self.inner[key] = Frame(function, blocks, self, call)
        return self.inner[key]

    def runs(self, function: Function) -> bool:
        """Whether a function is this one, or one of those that it is called from."""
        frame: Frame | None = self
        while frame is not None:
            if frame.function is function:
                return True
            frame = frame.caller
        return False


class State(NamedTuple):
    """A register that holds the value, or a container of it: ``path`` leads in. ``kept``: it was kept from round to round by an object;
    ``real``: it cannot be a size."""

    frame: Frame
    register: int
    path: Path
    kept: bool
    real: bool

    def at(self, register: int, path: Path) -> State:
        """Another register of the same frame."""
        return self._replace(register=register, path=path[:MOST_KEYS])


class Places:
    """What hot code reads: attributes by their objects' classes, globals; and who calls a function there."""

    def __init__(self, hot: HotRegions) -> None:
        self.hot = hot
        self.facts = hot.facts
        self._free: dict[Function, Frame] = {}

    def blocks(self, function: Function) -> frozenset[int]:
        """The blocks of a function that are hot; of one that is in no hot region, all."""
        regions = self.hot.regions.get(function)
        return frozenset().union(*(one.blocks for one in regions)) if regions else frozenset(range(len(function.code.blocks)))

    def free(self, function: Function) -> Frame:
        """A function as all of its hot calls enter it."""
        if function not in self._free:
            self._free[function] = Frame(function, self.blocks(function), None, None)
        return self._free[function]

    def is_hot(self, function: Function, one: Instruction) -> bool:
        """Whether a round runs an instruction."""
        return function in self.hot.regions and self.hot.body(function).home[one] in self.blocks(function)

    @cached_property
    def _attributes(self) -> dict[str, list[tuple[Function, Instruction]]]:
        found: dict[str, list[tuple[Function, Instruction]]] = defaultdict(list)
        for function in self.hot.regions:
            for one in function.by_opcode[op.ATTR]:
                if self.is_hot(function, one):
                    found[function.text(one[4])].append((function, one))
        return found

    @cached_property
    def _globals(self) -> dict[tuple[int, str], list[tuple[Function, Instruction]]]:
        found: dict[tuple[int, str], list[tuple[Function, Instruction]]] = defaultdict(list)
        for function in self.hot.regions:
            for one in function.by_opcode[op.NAME]:
                if self.is_hot(function, one):
                    found[function.unit.number, function.text(one[3])].append((function, one))
        return found

    @cached_property
    def _calls(self) -> dict[Function, list[tuple[Function, Instruction]]]:
        found: dict[Function, list[tuple[Function, Instruction]]] = defaultdict(list)
        for function in self.hot.regions:
            for edge in self.hot.graph.calls(function).edges:
                if self.is_hot(function, edge.instruction):
                    found[edge.callee].append((function, edge.instruction))
        return found

    def calls(self, function: Function) -> list[tuple[Function, Instruction]]:
        """The calls in hot code that enter a function."""
        return self._calls.get(function, [])

    def classes(self, function: Function, register: int) -> list[ClassInfo]:
        """The classes of the program whose objects a register may hold."""
        values = self.facts.values(function, register).values
        return list(dict.fromkeys(value.definition for value in values if isinstance(value, Instance)))

    def reads(self, classes: list[ClassInfo], name: str) -> Iterator[tuple[Function, Instruction]]:
        """Where hot code reads an attribute of objects that may be of one of some classes."""
        order = self.facts.hierarchy.order
        for function, one in self._attributes.get(name, ()):
            others = self.classes(function, one[3])
            if any(a in order(b) or b in order(a) for a in classes for b in others):
                yield function, one

    def global_reads(self, function: Function, name: str) -> list[tuple[Function, Instruction]]:
        """Where hot code of a file reads a global."""
        return self._globals.get((function.unit.number, name), [])


class Holders:
    """Follows a value that was put into something to where the rounds of a region take it out."""

    def __init__(self, places: Places, region: Region) -> None:
        self.places = places
        self.round = region.chain()[0]

    def put(self, state: State, register: int, path: Path) -> Iterator[State | None]:
        """A container or object holds the value from here on: so do all of its names, and what it was taken from. None: that is unclear."""
        waiting: list[State] = [state.at(register, path)]
        seen: set[tuple[Frame, int, Path]] = set()
        while waiting:
            held = waiting.pop()
            if held[:3] in seen or held.register < 0:
                continue
            seen.add(held[:3])
            yield held
            function, one = held.frame.function, held.frame.function.definitions[held.register]
            if one is None:
                continue
            if one[0] == op.ATTR:
                classes = self.places.classes(function, one[3])
                name = function.text(one[4])
                if classes:
                    yield from self._read(held, self.places.reads(classes, name))
                else:
                    waiting.append(held.at(one[3], (Member(name), *held.path)))
            elif one[0] in (op.LOAD, op.NAME):
                yield from self.named(held, one[3], one[0] == op.LOAD, None)
            elif one[0] == op.PARAM:
                waiting += self._given(held, one[3])
            else:
                waiting += [held.at(source, around) for source, around in _sources(function, one, held.path)]

    def attribute(self, state: State, receiver: int, name: str) -> Iterator[State | None]:
        """An attribute of an object holds the value from here on."""
        classes = self.places.classes(state.frame.function, receiver)
        if classes:
            yield from self._read(state, self.places.reads(classes, name))
        else:
            yield from self.put(state, receiver, (Member(name), *state.path))

    def named(self, state: State, constant: int, is_cell: bool, store: Instruction | None) -> Iterator[State | None]:
        """A cell or a global holds the value from here on."""
        frame, function = state.frame, state.frame.function
        opcode = op.LOAD if is_cell else op.NAME
        constants = function.unit.ir.constants
        for one in function.by_opcode[opcode]:
            if constants[one[3]] == constants[constant] and not self._is_older(function, one, store):
                yield state.at(one[2], state.path)
        if is_cell:
            for other in function.unit.functions:
                loads = (
                    [one for one in other.by_opcode[op.LOAD] if constants[one[3]] == constants[constant]] if other is not function else []
                )
                if loads:
                    yield from self._captured(state, other, loads)
        else:
            others = self.places.global_reads(function, function.text(constant))
            yield from self._read(state, ((other, one) for other, one in others if other is not frame.function))

    def _captured(self, state: State, other: Function, loads: list[Instruction]) -> Iterator[State | None]:
        frame, function = state.frame, state.frame.function
        made = other.definition if other.parent is function else None
        mapped = next((use for use in function.uses.get(made[2], ()) if _maps(function, use, made[2])), None) if made is not None else None
        if mapped is not None:
            inner = frame.enter(mapped, other, self.places.blocks(other))
            yield from (State(inner, one[2], state.path, state.kept, state.real) for one in loads)
        elif other in self.places.hot.regions:
            yield from self._read(state, ((other, one) for one in loads))
        elif made is not None and self.places.hot.body(function).home[made] in frame.blocks:
            yield None  # it is passed to somebody who calls it

    def _read(self, state: State, reads: Iterator[tuple[Function, Instruction]]) -> Iterator[State]:
        for function, one in reads:
            if not self._is_behind(function, one):
                yield State(self.places.free(function), one[2], state.path, True, state.real)

    def _is_behind(self, function: Function, one: Instruction) -> bool:
        """Whether only the rounds of a loop around this one run an instruction: it can wait until the inner rounds have ended."""
        home = self.places.hot.body(function).home[one]
        rounds = [region.chain()[0] for region in self.places.hot.regions.get(function, ()) if home in region.blocks]
        return bool(rounds) and all(outer.function is self.round.function and outer.blocks > self.round.blocks for outer in rounds)

    def _given(self, held: State, index: int) -> list[State]:
        """What callers hand over for a parameter."""
        frame = held.frame
        calls = [(frame.caller, frame.call)] if frame.caller is not None else []
        calls = calls or [(self.places.free(function), one) for function, one in self.places.calls(frame.function)]
        found = []
        for caller, call in calls:
            if call is not None and call[0] in (op.CALL, op.INVOKE):
                operand = operand_of(caller.function, call, frame.function, index)
                found += [held._replace(frame=caller, register=operand)] if operand is not None else []
        return found

    def _is_older(self, function: Function, load: Instruction, store: Instruction | None) -> bool:
        """Whether what is read is what another store has put there since, in this round or at its begin."""
        if store is None:
            return False
        before = partial(self._is_before, function)
        same = [one for one in function.by_opcode[store[0]] if one[2] == store[2] and one != store]
        return any(before(one, load) and (before(store, one) or before(load, store)) for one in same)

    def is_replaced(self, function: Function, read: Instruction) -> bool:
        """Whether an element of a constant key is read that the function itself has set before, with no key that is unknown behind it:
        not what callers, or keys that are computed, had put there."""
        key, before = key_of(function, read[4]), partial(self._is_before, function)
        puts = [one for one in function.by_opcode[op.SET_ITEM] if one[2] == read[3]]
        puts += [
            one for one in function.by_opcode[op.INVOKE] if one[3] == read[3] and function.text(one[4]) in function.known("extends", "puts")
        ]
        same = [one for one in puts if one[0] == op.SET_ITEM and key_of(function, one[3]) == key and before(one, read)]
        others = [one for one in puts if one[0] != op.SET_ITEM or key_of(function, one[3]) in (None, ANY_TEXT)]
        return isinstance(key, str) and any(all(before(one, last) or before(read, one) for one in others) for last in same)

    def _is_before(self, function: Function, first: Instruction, then: Instruction) -> bool:
        body = self.places.hot.body(function)
        a, b = body.home[first], body.home[then]
        block = function.code.blocks[a]
        return block.index(first) < block.index(then) if a == b else body.graph.dominates(a, b)


def _maps(function: Function, use: Instruction, register: int) -> bool:
    """``map(lambda x: x / count, parts)``: the function runs here, on each part."""
    return use[0] == op.CALL and function.dotted(use[3]) == "map" and use[5:6] == (register,)


def _sources(function: Function, one: Instruction, path: Path) -> Iterator[tuple[int, Path]]:
    """What a container was taken from, and the path to the value from there."""
    if one[0] == op.ITEM:
        yield one[3], (key_of(function, one[4]), *path)
    elif one[0] == op.UNPACK:
        yield one[3], (one[4] if one[6] == op.NONE else None, *path)
    elif one[0] == op.NEXT:
        yield one[3], (None, *path)
    elif one[0] in (op.ITER, op.COPY, op.CAST, op.AWAIT):
        yield one[3 if one[0] != op.CAST else 4], path
    elif one[0] == op.PHI:
        yield from ((register, path) for register in one[3:])
    elif one[0] == op.INVOKE:
        yield from _sources_of_method(function, one, path)
    elif one[0] == op.CALL and function.dotted(one[3]) == "enumerate" and len(one) > 5 and path[1:2] in ((1,), (None,)):
        yield one[5], (path[0], *path[2:])


def _sources_of_method(function: Function, one: Instruction, path: Path) -> Iterator[tuple[int, Path]]:
    name = function.text(one[4])
    if name in function.known("takes"):
        yield one[3], (key_of(function, one[6]) if len(one) > 6 else None, *path)
    elif name in function.known("gives-values"):
        yield one[3], path
    elif name in function.known("gives-entries") and path[1:2] == (1,):
        yield one[3], (path[0], *path[2:])


def key_of(function: Function, register: int) -> Key:
    """The key that a register holds."""
    found = function.constant(register)
    if found is not None:
        return found
    one = function.definitions[register] if register >= 0 else None
    return ANY_TEXT if one is not None and one[0] == op.FORMAT else None


def fits(key: Key, other: Key) -> bool:
    """Whether two keys may be the same."""
    if isinstance(key, Member) or isinstance(other, Member):
        return key == other
    if None in (key, other) or key == other:
        return True
    if isinstance(key, int) and isinstance(other, int):
        return min(key, other) < 0
    return ANY_TEXT in (key, other) and isinstance(key, str) and isinstance(other, str)


__all__ = ["Frame", "Holders", "Key", "Member", "Path", "Places", "State", "fits", "key_of"]
