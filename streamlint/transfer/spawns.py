"""The threads, processes and pools that a program starts: where, what they run, and with which arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import uncopied
from streamlint.facts.code.objects import Instance, LibraryObject, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.nearness import units_near
from streamlint.transfer.processes import Processes
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import argument_registers, kept_by, operand_of

_STARTS = frozenset({"thread", "start"})
THREAD, PROCESS = "thread", "process"
_POOL, _THREAD, _OBJECT = "pool", "thread", "object"
_HIGHEST = 3
Given = dict[tuple[Function, int], tuple[Function, int]]
"""By function and number of a parameter: the register, and its function, that is given for it."""


class Spawn(NamedTuple):
    """A start. ``made`` is where the thread, process or pool was made; ``pool`` is the pool's own making, if it runs what it is given."""

    start: Site
    kind: str
    made: ModelledCall | None
    roots: tuple[Function, ...]
    given: Given
    pool: Site | None = None
    runs: int = op.NONE  # the register of what is run, in the function of `made`


class Spawns:
    """The starts of threads and processes in a program."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.processes = Processes(transfer)

    def all(self) -> Iterator[Spawn]:
        """All starts, in the order of files and instructions."""
        seen: set[tuple[object, ...]] = set()
        for spawn in self._each():
            made = Site(spawn.made.function, spawn.made.instruction) if spawn.made is not None else None
            if (key := (spawn.start, made, spawn.kind, spawn.roots)) not in seen:
                seen.add(key)
                yield spawn

    def _each(self) -> Iterator[Spawn]:
        for call in self.transfer.sites(_STARTS, among=units_near(self.transfer, _STARTS)):
            if call.row.effect == "start":
                yield from self._started(call)
            elif call.row.get("style") != _OBJECT:
                pool = self.pool_of(call)
                kind = call.text("kind") or (PROCESS if pool is not None and self._is_of_processes(pool) else THREAD)
                yield self._spawn(Site(call.function, call.instruction), kind, call, pool)

    # --- objects that are started

    def _started(self, call: ModelledCall) -> Iterator[Spawn]:
        site = Site(call.function, call.instruction)
        node = self.facts.values(call.function, call.instruction[3])
        for value in list(node.values):
            if isinstance(value, LibraryObject):
                for made in dict.fromkeys(node.trace(value)):
                    for row in self._makers(made):
                        yield self._spawn(site, call.text("kind") or THREAD, row, None)
            elif isinstance(value, Instance):
                kind = call.text("kind") or THREAD
                found = self.facts.hierarchy.lookup(value.definition, "run")
                if found is not None:
                    yield Spawn(site, kind, None, tuple(found[1]), {})

    def _makers(self, site: Site) -> Iterator[ModelledCall]:
        if site.instruction[0] in (op.CALL, op.INVOKE):
            for call in self.transfer.modelled(site.function, site.instruction):
                if call.row.effect == _THREAD and call.row.get("style") == _OBJECT:
                    yield call

    # --- pools

    def pool_of(self, call: ModelledCall) -> Site | None:
        """Where the pool was made that a call gives a function to."""
        register = call.one("pool")
        if register is None:
            return None
        node = self.facts.values(call.function, register)
        for value in list(node.values):
            for site in node.trace(value):
                if self._is_pool(site):
                    return site
        return self._pool_in(call.function, register, 0)

    def _pool_in(self, function: Function, register: int, depth: int) -> Site | None:
        """Where the pool was made that a register holds, or that callers give for it."""
        one = function.definitions[register]
        while one is not None and one[0] in (op.ENTER, op.COPY):
            one = function.definitions[one[3]]
        if one is None:
            return None
        if one[0] != op.PARAM:
            return Site(function, one) if self._is_pool(Site(function, one)) else None
        for caller, call in self.facts.call_places(function) if depth < _HIGHEST else ():
            given = operand_of(caller, call, function, one[3]) if call[0] in (op.CALL, op.INVOKE) else None
            found = self._pool_in(caller, given, depth + 1) if given is not None and given >= 0 else None
            if found is not None:
                return found
        return None

    def _is_pool(self, site: Site) -> bool:
        if site.instruction[0] not in (op.CALL, op.INVOKE):
            return False
        return any(call.row.effect == _POOL for call in self.transfer.modelled(site.function, site.instruction))

    def _is_of_processes(self, pool: Site) -> bool:
        return any(call.row.get("kind") == PROCESS for call in self.transfer.modelled(pool.function, pool.instruction))

    # --- what runs, and with what

    def _spawn(self, start: Site, kind: str, made: ModelledCall, pool: Site | None) -> Spawn:
        register = made.one("function")
        if register is None:
            return Spawn(start, kind, made, (), {}, pool)
        roots = tuple(dict.fromkeys(self.processes.callables(made.function, register)))
        given: Given = {}
        for root in roots:
            for number, (keyword, each) in enumerate(self._arguments(made, register)):
                index = self._index(root, number, keyword)
                if index is not None:
                    given[root, index] = made.function, each
        return Spawn(start, kind, made, roots, given, pool, register)

    def _index(self, root: Function, number: int, keyword: object) -> int | None:
        bound = 1 if root.has_receiver else 0
        parameters = root.code.parameters
        if isinstance(keyword, str):
            return next((index for index, each in enumerate(parameters) if each.name == keyword), None)
        return number + bound if number + bound < len(parameters) else None

    def _arguments(self, made: ModelledCall, function: int) -> Iterator[tuple[object, int]]:
        """The arguments of what is run."""
        style = made.row.get("style") or "call"
        if style in ("call", "each"):
            given = argument_registers(made.function, made.instruction) if made.instruction[0] in (op.CALL, op.INVOKE) else []
            place = next((index for index, (_, register) in enumerate(given) if register == function), -1)
            kept = _kept(made.function, function)
            behind = [*(each for each in kept if each[0] is None), *(given[place + 1 :] if place >= 0 else ())]
            yield from (*behind, *(each for each in kept if each[0] is not None))
            return
        if style == "rank":
            yield None, op.NONE
        for register in made.all("arguments"):
            yield from _displayed(made.function, made.function.definitions[register])


def _kept(function: Function, register: int) -> list[tuple[object, int]]:
    """The arguments that a partial object keeps which a register holds."""
    made = uncopied(function, register) if register >= 0 else None
    kept = kept_by(function, made) if made is not None else None
    return kept.given if kept is not None else []


def _displayed(function: Function, built: Instruction | None) -> Iterator[tuple[object, int]]:
    """The arguments in a tuple, and by their names those in a mapping, that is written out."""
    if built is not None and built[0] == op.BUILD:
        yield from ((None, each) for each in built[4:])
    elif built is not None and built[0] == op.DICT:
        for key, value in zip(built[3::2], built[4::2], strict=False):
            name = function.constant(key) if key >= 0 else None
            yield from ((name, value),) if isinstance(name, str) else ()
