"""What repeats an operation: the loops around it, in its own function and in those that call it, and the steps of frameworks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop
from streamlint.transfer.transfer import Transfer

DEEPEST = 20
"""Calls up from an operation to the loop that repeats it."""


class Round(NamedTuple):
    """A loop that runs an operation in its rounds: where it stands, and the calls that lead from it there, the outermost first."""

    function: Function
    loop: Loop
    calls: tuple[Site, ...]

    @property
    def head(self) -> Site:
        """The first instruction of the loop's head that has a place."""
        block = self.function.code.blocks[self.loop.header]
        return Site(self.function, next((one for one in block if one[1] >= 0), block[0]))

    @property
    def begin(self) -> Site:
        """The instruction that leads into the loop from outside, if it has the loop's place; else `head`."""
        code = self.function.code
        for block in range(len(code.blocks)):
            end = code.blocks[block][-1]
            if block not in self.loop.body and end[0] == op.JUMP and end[2] == self.loop.header and end[1] >= 0:
                return Site(self.function, end)
        return self.head


class Repetition:
    """The loops around operations."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer

    def of(self, function: Function, one: Instruction) -> Iterator[Round]:
        """The loops that repeat an instruction, the innermost first; those of callers behind those of its own function."""
        seen = set[tuple[Function, Instruction]]()  # a function may call from outside of its loop, and from within
        waiting: list[tuple[Function, Instruction, tuple[Site, ...]]] = [(function, one, ())]
        for where, instruction, calls in waiting:
            yield from (Round(where, loop, calls) for loop in where.control.around(where.blocks[instruction]))
            if len(calls) < DEEPEST:
                for caller, call in self.transfer.callers(where):
                    if caller is not function and (caller, call) not in seen:
                        seen.add((caller, call))
                        waiting.append((caller, call, (Site(caller, call), *calls)))

    def is_of_step(self, function: Function) -> bool:
        """Whether a framework calls a function in each step, say the ``forward`` of a module, or a function that leads to it."""
        frameworks = self.transfer.facts.frameworks
        seen, waiting = {function}, [(function, 0)]
        for one, height in waiting:
            if frameworks.row(one) is not None or frameworks.forward(one) is not None:
                return True
            for caller, _ in self.transfer.callers(one) if height < DEEPEST else ():
                if caller not in seen:
                    seen.add(caller)
                    waiting.append((caller, height + 1))
        return False
