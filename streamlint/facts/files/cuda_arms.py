"""Arms of Python's branches that are taken where there is no CUDA device: what they choose is nothing that work with CUDA meets."""

from __future__ import annotations

from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import unnegated
from streamlint.facts.files.program import Program, Register, Unit
from streamlint.facts.files.scopes import Definition, ExternalName, Scopes
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY
from streamlint.models import Models
from streamlint.support.memo import memoized

Edge = tuple[int, int]
_DEEPEST = 4
"""Names and functions behind one another that hand on whether there is a CUDA device."""


class CudaArms:
    """Which values are chosen where there is a CUDA device, by tests that ask for one (rows with `asks_for_cuda`)."""

    def __init__(self, models: Models, scopes: Scopes) -> None:
        self.models = models
        self.scopes = scopes
        self._units: frozenset[Unit] | None = None

    @cached_property
    def _asking(self) -> frozenset[str]:
        """The last parts of the names of functions that say whether there is a CUDA device."""
        return frozenset(name for name, rows in self.models.with_effect("none").items() if any(row.get("asks_for_cuda") for row in rows))

    def _asking_units(self, program: Program) -> frozenset[Unit]:
        """The files that may name one of them."""
        if self._units is None:
            self._units = frozenset(unit for name in self._asking for unit in program.mentioning(name))
        return self._units

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

    @memoized
    def edges_without(self, function: Function) -> frozenset[Edge]:
        """The edges that are taken where there is no CUDA device."""
        is_asked = not function.is_cpp and bool(self._asking_units(function.unit.program))
        ends = [(number, block[-1]) for number, block in enumerate(function.code.blocks) if block] if is_asked else []
        edges = ((number, self._without(function, end)) for number, end in ends if end[0] == op.BRANCH and end[3] != end[4])
        return frozenset((number, after) for number, after in edges if after is not None)

    def _without(self, function: Function, end: Instruction) -> int | None:
        """Where a branch goes if there is no CUDA device; None where it asks for something else."""
        register, turned = unnegated(function, end[2])
        return end[3 if turned else 4] if self._asks(function, register) else None

    def _asks(self, function: Function, register: int, depth: int = _DEEPEST) -> bool:
        """Whether a register says whether there is a CUDA device: by what is called, by a global name, also one of another file."""
        one = function.definitions[register] if register >= 0 and depth else None
        if one is None or one[0] not in (op.NAME, op.IMPORT, op.CALL, op.INVOKE):
            return False
        if one[0] in (op.CALL, op.INVOKE):
            dotted = function.dotted(register)
            found = self.scopes.find(function.unit, dotted) if dotted else ()
            return bool(found) and all(self._is_question(meant, depth) for meant in found)
        unit = function.unit.program.imported(function.text(one[3]), function.unit) if one[0] == op.IMPORT else function.unit
        name = one[4] if one[0] == op.IMPORT else one[3]
        stores = unit.globals.get(function.text(name), ()) if unit is not None and name != op.NONE else ()
        return len(stores) == 1 and stores[0] != (function, register) and self._asks(*stores[0], depth - 1)

    def _is_question(self, meant: Definition, depth: int) -> bool:
        """Whether what is called says whether there is a CUDA device: by its row, or by all that it returns."""
        if isinstance(meant, Function):
            ends = [end[2] for end in meant.by_opcode[op.RETURN]] if meant.unit in self._asking_units(meant.unit.program) else []
            return bool(ends) and all(self._asks(meant, end, depth - 1) for end in ends)
        row = self.models.named(meant.name) if isinstance(meant, ExternalName) else None
        return row is not None and bool(row.get("asks_for_cuda"))

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
