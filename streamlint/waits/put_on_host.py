"""Rounds whose loss comes from a module that the program itself has put on the host: ``build().cpu()``, ``model.to("cpu")``.

What such a module gives is there too, and what meets it has to be: PyTorch computes with tensors of one device only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind, last_name
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.elsewhere import HOST, Elsewhere
from streamlint.waits.entered import Held
from streamlint.waits.given import Given
from streamlint.waits.read_as_host import called_by

_MOST = 60
"""Registers that are looked at for one."""


class PutOnHost:
    """Answers for the losses of rounds."""

    def __init__(self, given: Given, elsewhere: Elsewhere) -> None:
        self._given = given
        self._elsewhere = elsewhere

    def gives(self, function: Function, losses: Iterable[int]) -> bool:
        """Whether each of some losses is computed from what such a module has given."""
        return all(any(self._is_of_host(function, one) for one in _computed(function, loss)) for loss in losses)

    def _is_of_host(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction calls a module whose ways all come from where it was put on the host."""
        waiting, seen, is_put = called_by(self._given, function, one), set[Held](), False
        for held in waiting:
            made = held.instruction
            if held in seen:
                continue
            seen.add(held)
            if made is None or len(seen) > _MOST or self._is_moved(held):
                return False
            if held.function is function and self._is_put_before(held, one):
                is_put = True
                continue
            kinds = self._elsewhere.named_by(held.function, made) if self._places(held.function, made) else None
            if kinds == {HOST}:
                is_put = True
                continue
            before = self._before(held) if kinds is None else [held._replace(register=made[3])] if not kinds else []
            if not before:
                return False
            waiting += before
        return is_put

    def _before(self, held: Held) -> list[Held]:
        """Where all that a register holds was before; none where that is not known."""
        before = [each for each in self._given.before(held) or () if each != held]
        return [] if None in before else [each for each in before if each is not None]

    def _places(self, function: Function, one: Instruction) -> bool:
        name = last_name(function, one)
        return one[0] == op.INVOKE and (name in function.known("places") or name in function.unit.models.marked("host-device"))

    def _is_moved(self, held: Held) -> bool:
        """Whether a statement moves what a register holds to where the host may not be."""
        return any(self._elsewhere.named_by(held.function, use) - {HOST} for use in self._moves(held))

    def _is_put_before(self, held: Held, one: Instruction) -> bool:
        """Whether a statement has put what a register holds on the host before an instruction of the same function runs."""
        put = (use for use in self._moves(held) if self._elsewhere.named_by(held.function, use) == {HOST})
        return any(held.function.runs_before(use, one) for use in put)

    def _moves(self, held: Held) -> Iterator[Instruction]:
        """The statements that move what a register holds, in place: ``model.to(device)``."""
        uses = (use for use in held.function.uses[held.register] if self._places(held.function, use) and use[3] == held.register)
        return (use for use in uses if not held.function.uses[use[2]])


def _computed(function: Function, loss: int) -> Iterator[Instruction]:
    """What a loss is computed from, as far as nothing moves it or makes a number of it."""
    moving, reading = function.known("places"), function.unit.models.with_effect("read")

    def onward(one: Instruction) -> Iterable[int]:
        name = last_name(function, one) if one[0] == op.INVOKE else ""
        return () if name in moving or name in reading else op.reads(one)

    return behind(function, [loss], onward)
