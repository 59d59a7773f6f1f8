"""Arms of Python's branches that are taken where there is no CUDA device: what they choose is nothing that work with CUDA meets."""

from __future__ import annotations

from functools import cached_property

from streamlint.facts.functions import Function
from streamlint.facts.instructions import unnegated
from streamlint.facts.program import Register, Unit
from streamlint.facts.scopes import ExternalName, Scopes
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY
from streamlint.models import Models

Edge = tuple[int, int]


class CudaArms:
    """Which values are chosen where there is a CUDA device, by tests that ask for one (rows with `asks_for_cuda`)."""

    def __init__(self, models: Models, scopes: Scopes) -> None:
        self.models = models
        self.scopes = scopes
        self._edges: dict[Function, frozenset[Edge]] = {}

    @cached_property
    def _asking(self) -> frozenset[str]:
        """The last parts of the names of functions that say whether there is a CUDA device."""
        return frozenset(name for name, row in self.models.with_effect("none") if row.get("asks_for_cuda"))

    def chosen(self, function: Function, phi: Instruction) -> list[int]:
        """The registers of a choice, but for those that it takes where there is no CUDA device, if others are left."""
        registers, edges = list(phi[3:]), self.edges_without(function)
        if not edges:
            return registers
        home = function.blocks[phi]
        ways = zip(function.phi_order[home], registers, strict=False)
        return [register for block, register in ways if not self._is_without(function, block, home)] or registers

    def stored(self, unit: Unit, name: str) -> list[Register]:
        """What a file assigns to a global name, but for what it does where there is no CUDA device, or replaces where there is one."""
        stores = unit.globals.get(name, [])
        body = unit.body
        if len(stores) < 2 or not self.edges_without(body):
            return stores
        homes = [(one, body.blocks[one]) for one in body.by_opcode[op.SET_NAME] if body.text(one[2]) == name]
        replacing = [one for one, home in homes if self._is_with(body, home)]
        left = {
            one[3]
            for one, home in homes
            if self._is_without(body, home, NOBODY) or any(one is not other and body.runs_before(one, other) for other in replacing)
        }
        return [(function, register) for function, register in stores if function is not body or register not in left] or stores

    def edges_without(self, function: Function) -> frozenset[Edge]:
        """The edges that are taken where there is no CUDA device."""
        found = self._edges.get(function)
        if found is None:
            is_asked = not function.is_cpp and any(
                unit is function.unit for name in self._asking for unit in function.unit.program.mentioning(name)
            )
            ends = [(number, block[-1]) for number, block in enumerate(function.code.blocks) if block] if is_asked else []
            edges = ((number, self._without(function, end)) for number, end in ends if end[0] == op.BRANCH and end[3] != end[4])
            found = self._edges[function] = frozenset((number, after) for number, after in edges if after is not None)
        return found

    def _without(self, function: Function, end: Instruction) -> int | None:
        """Where a branch goes if there is no CUDA device; None where it asks for something else."""
        register, turned = unnegated(function, end[2])
        return end[3 if turned else 4] if self._asks(function, register) else None

    def _asks(self, function: Function, register: int) -> bool:
        one = function.definitions[register]
        if one is not None and one[0] == op.NAME:
            stores = function.unit.globals.get(function.text(one[3]), ())
            return len(stores) == 1 and stores[0] != (function, register) and self._is_question(*stores[0])
        return self._is_question(function, register)

    def _is_question(self, function: Function, register: int) -> bool:
        """Whether a register holds the answer of a function that says whether there is a CUDA device."""
        one = function.definitions[register]
        dotted = function.dotted(register) if one is not None and one[0] in (op.CALL, op.INVOKE) else ""
        if dotted.rpartition(".")[2] not in self._asking:
            return False
        rows = (self.models.named(meant.name) for meant in self.scopes.find(function.unit, dotted) if isinstance(meant, ExternalName))
        return any(row is not None and bool(row.get("asks_for_cuda")) for row in rows)

    def _is_without(self, function: Function, block: int, after: int) -> bool:
        """Whether a way out of a block is taken only where there is no CUDA device."""
        edges = self.edges_without(function)
        return (block, after) in edges or self._is_behind(function, block, edges)

    def _is_with(self, function: Function, block: int) -> bool:
        """Whether a block is run only where there is a CUDA device, and always there."""
        edges = self.edges_without(function)
        ends = [(number, function.code.blocks[number][-1]) for number, _ in edges]
        others = frozenset((number, end[3] if (number, end[4]) in edges else end[4]) for number, end in ends)
        return any(after == block for _, after in others) and self._is_behind(function, block, others)

    def _is_behind(self, function: Function, block: int, edges: frozenset[Edge]) -> bool:
        """Whether every way to a block goes over one of some edges."""
        graph, before = function.control, function.phi_order
        while block != NOBODY:
            if any((each, block) in edges and before[block] == [each] for each in before[block]):
                return True
            block = graph.dominators[block] if graph.dominators[block] != block else NOBODY
        return False
