"""Threads that a function starts and waits for: what they run happens between the two, as if it were called where they are started."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from functools import cached_property

from streamlint import TYPE_CHECKING
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import COPIES, last_name
from streamlint.facts.code.objects import Constant, Instance, LibraryObject, Object
from streamlint.facts.code.passing import STORES
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY
from streamlint.models import Row
from streamlint.models.vocabulary import Selector
from streamlint.support.memo import memoized

if TYPE_CHECKING:
    from streamlint.facts.graph.call_graph import CallGraph, LibraryCall

_ENDS = ("join", "result")
_TAKING = {op.NEXT: 3, op.ITER: 3, op.ITEM: 3, op.REBIND: 5}


Ended = tuple[Instruction, int]
"""An instruction that waits for threads, and the register of what it waits for."""


class Joining:
    """Finds out which threads their starter waits for."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.facts = graph.facts

    def is_joined(self, function: Function, one: Instruction) -> bool:
        """Whether who starts a thread waits for its end in the same function, whichever way is taken there."""
        return bool(self.ends(function, one))

    def ends(self, function: Function, one: Instruction) -> tuple[Instruction, ...]:
        """The instructions of the same function that wait for the end of the thread which one starts."""
        return self._of(function).get(one, ())

    def starts(self, function: Function) -> Iterable[Instruction]:
        """The instructions that start threads."""
        return self._of(function)

    def is_end(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction waits for the end of threads that run as a part of its function."""
        return any(one in ends for ends in self._of(function).values())

    def ended(self, function: Function, one: Instruction) -> Iterator[Instruction]:
        """The instructions that start the threads for whose end an instruction waits."""
        yield from (start for start, ends in self._of(function).items() if one in ends)

    def started(self, function: Function, calls: Iterable[LibraryCall]) -> Iterator[Function]:
        """The functions that a thread runs which is started by calls of its method."""
        for call in calls:
            if call.row is None or call.row.effect != "start" or call.row.get("kind") == "process":
                continue
            if isinstance(call.receiver, Instance):
                for definition in self.facts.possible_classes(call.receiver):
                    found = self.facts.hierarchy.lookup(definition, "run")
                    yield from found[1] if found is not None else ()
            elif isinstance(call.receiver, LibraryObject) and (site := call.receiver.site) is not None:
                self.graph.of_call(site.function, site.instruction)
                yield from self.facts.enters(site.function, site.instruction)

    # --- pairs

    @memoized
    def _of(self, function: Function) -> dict[Instruction, tuple[Instruction, ...]]:
        starts = list(self._starts(function))
        ends = list(self._ends(function)) if starts else []
        return {one: tuple(self._fitting(function, one, on, ends)) for one, on in starts}

    def _fitting(self, function: Function, one: Instruction, on: tuple[int, ...], ends: list[Ended]) -> Iterator[Instruction]:
        """Of the instructions that wait for threads those that wait for one that an instruction starts."""
        yield from (end for end, held in ends if self._is_behind(function, one, end) and self._is_same(function, on, held))

    def _starts(self, function: Function) -> Iterator[tuple[Instruction, tuple[int, ...]]]:
        """The instructions that start threads, with the registers of what somebody may wait for: the thread, its result, its pool."""
        for one in self._named(function, self._starting):
            for row in self.facts.rows(function, one):
                if row.effect == "start" and row.get("kind") != "process":
                    yield one, (one[3],)
                elif row.effect == "thread" and row.get("style") != "object" and self._is_of_threads(function, one, row):
                    yield one, (one[2], one[3]) if one[0] == op.INVOKE else (one[2], *_containers(function, one[2]))

    def _ends(self, function: Function) -> Iterator[Ended]:
        """The instructions that wait for threads, each with the register of what it waits for."""
        for one in self._named(function, self._ending):
            if one[0] == op.INVOKE and any(row.effect == "block" and row.get("what") in _ENDS for row in self.facts.rows(function, one)):
                yield one, one[3]
        for one in function.by_opcode[op.EXIT]:
            if any(isinstance(value, LibraryObject) and self._is_pool(value) for value in self._values(function, one[3])):
                yield one, one[3]
        for one in function.by_opcode[op.AWAIT]:
            if self._is_made(function, _behind(function, one[3]), (op.CALL, op.INVOKE), "awaited"):
                yield one, one[3]
        for one in function.by_opcode[op.DESTROY] if self._joins_at_end else ():
            if self._is_made(function, one[2], (op.CONSTRUCT, op.CALL), "joins"):
                yield one, one[2]

    def _is_made(self, function: Function, register: int, opcodes: Container[int], word: str) -> bool:
        """Whether what made a value is a call in whose row a word is set."""
        made = function.definitions[register] if register >= 0 else None
        return made is not None and made[0] in opcodes and any(row.get(word) for row in self.facts.rows(function, made))

    def _is_behind(self, function: Function, one: Instruction, end: Instruction) -> bool:
        """Whether an end is reached from a start whichever way is taken; one in a loop of its own waits for all that others started."""
        graph = function.control
        (block, index), (other, place) = function.homes[one], function.homes[end]
        if block == other:
            return index < place
        inner = graph.innermost[other]
        if inner != NOBODY and block not in graph.loops[inner].body:
            other = graph.loops[inner].header
        return other == block or graph.post_dominates(other, block)

    def _is_same(self, function: Function, started: tuple[int, ...], ended: int) -> bool:
        """Whether an end is that of one of some threads, of its result, or of its pool."""
        mine = {_behind(function, register) for register in started}
        its = _behind(function, ended)
        if its in mine or (function.is_cpp and _taken_from(function, its) in mine):
            return True
        name = _path(function, its)
        if name and any(_path(function, each) == name for each in mine):
            return True
        held = {value for value in self._values(function, its) if isinstance(value, LibraryObject) and value.site is not None}
        return any(value in held for each in mine for value in self._values(function, each))

    # --- calls

    def _values(self, function: Function, register: int) -> Iterable[Object]:
        return self.facts.values(function, register).values if register >= 0 else ()

    def _is_of_threads(self, function: Function, one: Instruction, row: Row) -> bool:
        """Whether threads run what a call is given, no processes."""
        selector = row.get("pool")
        if row.get("kind") == "process" or not isinstance(selector, Selector):
            return row.get("kind") != "process"
        given = one[6:] if one[0] == op.INVOKE else one[5:]
        place = one[3] if selector.kind == "self" else given[selector.position or 0] if given else op.NONE
        held = list(self._values(function, place))
        return any(isinstance(value, LibraryObject) and self._is_pool(value) for value in held) or all(
            isinstance(value, Constant) and value.value is None for value in held
        )

    def _is_pool(self, value: LibraryObject) -> bool:
        """Whether an object is a pool of threads, which waits for them where its scope ends."""
        return any(
            row.get("type") == value.type and row.get("kind") != "process"
            for rows in self.facts.models.with_effect("pool").values()
            for row in rows
        )

    @cached_property
    def _joins_at_end(self) -> bool:
        return any(row.get("joins") for rows in self.facts.cpp_models.with_effect("thread").values() for row in rows)

    @cached_property
    def _starting(self) -> tuple[frozenset[str], frozenset[str]]:
        """The last parts of the names of what starts threads: of Python, and of C++."""
        return self._of_effects("thread", "start")

    @cached_property
    def _ending(self) -> tuple[frozenset[str], frozenset[str]]:
        return self._of_effects("block")

    def _of_effects(self, *effects: str) -> tuple[frozenset[str], frozenset[str]]:
        models = (self.facts.models, self.facts.cpp_models)
        python, cpp = (frozenset(name for effect in effects for name in each.with_effect(effect)) for each in models)
        return python, cpp

    def _named(self, function: Function, names: tuple[frozenset[str], frozenset[str]]) -> Iterator[Instruction]:
        """The calls of a function by whose name one of some functions may be called."""
        wanted = names[function.is_cpp]
        wanted = wanted | function.known("emplaces") if function.is_cpp and names is self._starting else wanted
        for opcode in (op.INVOKE, op.CALL, op.CONSTRUCT):
            yield from (one for one in function.by_opcode[opcode] if last_name(function, one) in wanted)


def _behind(function: Function, register: int) -> int:
    """The register of which another one is a copy, by the one store of a variable, or by the scope that it was entered by."""
    for _ in range(len(COPIES) * 2):
        one = function.definitions[register] if register >= 0 else None
        if one is None:
            break
        if one[0] in COPIES:
            register = one[COPIES[one[0]]]
        elif one[0] == op.ENTER:
            register = one[3]
        elif one[0] == op.LOAD:
            stored = [store[3] for store in function.by_opcode[op.STORE] if store[2] == one[3]]
            if len(stored) != 1:
                break
            register = stored[0]
        else:
            break
    return register


def _containers(function: Function, register: int) -> Iterator[int]:
    """C++: the containers that a thread is put into."""
    for use in function.uses[register] if function.is_cpp else ():
        if use[0] == op.CALL and len(use) == 6:  # `std::move(worker)`
            yield from _containers(function, use[2])
        elif function.invokes(use, *STORES) and register in use[6:]:
            yield _behind(function, use[3])


def _taken_from(function: Function, register: int) -> int:
    """C++: the container that an element was taken from, by a loop or an index."""
    for _ in range(len(_TAKING) * 2):
        one = function.definitions[register] if register >= 0 else None
        if one is None or one[0] not in _TAKING:
            break
        register = _behind(function, one[_TAKING[one[0]]])
    return register


def _path(function: Function, register: int) -> str:
    """The names by which a register was read; "" if it was not."""
    made = function.definitions[register] if register >= 0 else None
    return function.dotted(register) if made is not None and made[0] in (op.ATTR, op.NAME, op.LOAD) else ""
