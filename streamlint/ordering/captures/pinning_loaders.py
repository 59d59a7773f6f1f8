"""Loaders whose thread pins memory beside what a program does: it runs where there are workers, as long as an iterator over the loader."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant, LibraryObject, Site
from streamlint.facts.values.nodes import Node
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import argument_registers

_HIGHEST = 3
_PASSING = frozenset({"enumerate", "zip", "iter"})


class PinningLoaders:
    """Finds the loaders that are gone through while an instruction runs."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer

    def around(self, function: Function, one: Instruction, depth: int = 0) -> Iterator[Site]:
        """Where the pinning loaders are made whose loops or iterators an instruction stands in, in its function or those that call it."""
        block = function.homes[one][0]
        bodies = [loop.body for loop in function.control.loops if block in loop.body]
        for taken in function.by_opcode[op.NEXT]:
            if any(function.homes[taken][0] in body for body in bodies):
                yield from (Site(each.function, each.instruction) for each in self._loaders(function, taken[3]) if _pins(each))
        for kept in self._kept(function, one):
            yield from (Site(each.function, each.instruction) for each in self._loaders(function, kept) if _pins(each))
        for caller, call in self.transfer.callers(function) if depth < _HIGHEST else ():
            yield from self.around(caller, call, depth + 1)

    def _kept(self, function: Function, one: Instruction) -> Iterator[int]:
        """The registers of iterators that were made before an instruction, and are asked for more behind it."""
        for made in function.by_opcode[op.CALL]:
            is_before = function.dotted(made[3]) == "iter" and function.runs_before(made, one)
            if is_before and any(function.runs_before(one, use) for use in function.uses[made[2]]):
                yield made[2]

    def _loaders(self, function: Function, register: int) -> Iterator[ModelledCall]:
        """The calls that make the loaders that a register goes through, by itself or in a builtin that counts or pairs."""
        one = function.definitions[register] if register >= 0 else None
        while one is not None and one[0] in (op.ITER, op.COPY):
            register = one[3]
            one = function.definitions[register] if register >= 0 else None
        if one is not None and one[0] == op.CALL and function.dotted(one[3]) in _PASSING:
            for _, given in argument_registers(function, one):
                yield from self._loaders(function, given)
        if register >= 0:
            yield from self._made(self.transfer.facts.values(function, register))

    def _made(self, node: Node) -> Iterator[ModelledCall]:
        """The calls that make the loaders that a value may be."""
        for value in list(node.values):
            for site in node.trace(value) if isinstance(value, LibraryObject) and value.kind == "loader" else ():
                if site.instruction[0] in (op.CALL, op.INVOKE):
                    yield from (each for each in self.transfer.modelled(site.function, site.instruction) if each.row.effect == "loader")


def _pins(loader: ModelledCall) -> bool:
    """Whether a loader has a thread that pins: it pins, and has workers, for all that its call shows."""
    workers = loader.one("workers")
    counts = [value.value for value in loader.values(workers) if isinstance(value, Constant)] if workers is not None else []
    return loader.switch("pin")[1] is True and bool(counts) and all(isinstance(count, int) and count > 0 for count in counts)
