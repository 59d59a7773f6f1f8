"""SL012: processes that are forked after their parent has used CUDA, and that use it themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import led_to
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.processes import DEFAULT, FORK, SPAWN
from streamlint.transfer.spawns import PROCESS, Spawn, Spawns
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.uses import OTHER, WORK, Uses

_DEEPEST = 4
_CONTEXT = "multiprocessing.context.BaseContext"


class Fork(NamedTuple):
    """A fork between two uses of CUDA: by the parent before it, and in the child."""

    start: Site
    method: str
    before: Site
    inside: Site


class Forks:
    """Finds the forks of a program that break CUDA."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.spawns = Spawns(transfer)
        self.uses = Uses(transfer)

    def find(self) -> Iterator[Fork]:
        """The forks after CUDA was used."""
        seen: set[Site] = set()
        for spawn in self.spawns.all():
            start = self._start(spawn)
            if spawn.kind != PROCESS or start in seen:
                continue
            method = self._method(spawn)
            if method not in (FORK, DEFAULT):
                continue
            self.uses.under({})
            inside = next(self._used_in(self._roots(spawn)), None)
            before = self._before(start.function, start.instruction, 0) if inside is not None else None
            if inside is not None and before is not None:
                seen.add(start)
                yield Fork(start, method, before, inside)

    def _pool(self, spawn: Spawn) -> Iterator[ModelledCall]:
        if spawn.pool is not None:
            yield from (call for call in self.transfer.modelled(spawn.pool.function, spawn.pool.instruction) if call.row.effect == "pool")

    def _start(self, spawn: Spawn) -> Site:
        """Where processes begin: a pool makes its own at once, or when it is first given work."""
        if spawn.pool is not None and not any(call.row.get("lazy") for call in self._pool(spawn)):
            return spawn.pool
        return spawn.start

    def _method(self, spawn: Spawn) -> str:
        """How the processes are started."""
        makers = [*self._pool(spawn)] if spawn.pool is not None else [spawn.made] if spawn.made is not None else []
        for call in makers:
            if call.row.get("method") is not None:
                return call.text("method")
            context = call.one("context") if call.row.get("context") is not None else None
            if context is None and call.receiver is not None and self._is_context(call.function, call.receiver):
                context = call.receiver
            return self.spawns.processes.method_of(call.function, context)
        return SPAWN

    def _is_context(self, function: Function, register: int) -> bool:
        values = self.transfer.values(function, register)
        return any(isinstance(value, LibraryObject) and value.type == _CONTEXT for value in values)

    # --- the child

    def _roots(self, spawn: Spawn) -> list[Function]:
        roots = list(spawn.roots)
        for call in self._pool(spawn):
            register = call.one("initializer")
            if register is not None:
                roots += self.spawns.processes.callables(call.function, register)
        return roots

    def _used_in(self, roots: list[Function]) -> Iterator[Site]:
        """The uses of CUDA in functions and in what they call."""
        for function, _ in self.spawns.processes.reached(roots):
            yield from self._own(function.code.instructions(), function)

    def _own(self, instructions: Iterator[Instruction] | list[Instruction], function: Function) -> Iterator[Site]:
        for one in instructions:
            if any(use.kind in (WORK, OTHER) for use in self.uses.at(function, one)):
                yield Site(function, one)

    # --- the parent

    def _before(self, function: Function, start: Instruction, depth: int) -> Site | None:
        """A use of CUDA before an instruction: in its function, in what that calls, or in its callers before they call it."""
        for one in self._earlier(function, start):
            found = next(self._own([one], function), None)
            if found is None and one[0] in (op.CALL, op.INVOKE):
                callees = [edge.callee for edge in self.transfer.edges(function, one) if edge.is_direct]
                found = next(self._used_in(callees), None) if callees else None
            if found is not None:
                return found
        if depth < _DEEPEST:
            for caller, call in self.transfer.callers(function):
                found = self._before(caller, call, depth + 1)
                if found is not None:
                    return found
        return None

    def _earlier(self, function: Function, start: Instruction) -> Iterator[Instruction]:
        """The instructions on the ways to an instruction, in order; of loops around it one round."""
        graph, (home, index) = function.control, function.homes[start]
        order = {block: index for index, block in enumerate(graph.order)}
        earlier = {block for block in range(len(graph)) if order.get(block, 0) < order.get(home, 0)}
        leading = set(led_to([home], lambda block: earlier.intersection(graph.predecessors[block])))
        for block in graph.order:
            if block in leading:
                code = function.code.blocks[block]
                yield from code[:index] if block == home else code
