"""The weights, gradients and states of optimizers that a graph has captured: whether they are given other memory before a replay."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ordering.captures.captured_names import CAPTURED, MARK, OPEN, STALE, CapturedNames, is_noted
from streamlint.ordering.memory.captured_modules import CapturedModules
from streamlint.ordering.paths.states import State
from streamlint.ordering.places.flow import Tracked
from streamlint.transfer.transfer import Transfer


class RenewedParts(CapturedNames):
    """Follows what modules and optimizers lead to."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.parts = CapturedModules(transfer, self.places, self.captured)

    def may_meet(self, tracked: frozenset[Tracked], callee: Function) -> bool:
        """A function that is given an optimizer has no name for the modules whose gradients that frees."""
        return (bool(self._input.part) and self.parts.renewed_in(callee)) or super().may_meet(tracked, callee)

    def _of_parts(self, state: State, one: Instruction) -> frozenset[Tracked]:
        """What an instruction means for the part of modules or optimizers that is followed: the capture uses it; it gets other memory."""
        function, part, tracked = state.frame.function, self._input.part, state.tracked
        if not part:
            return frozenset()
        if is_noted(state, OPEN):
            is_used = not is_noted(state, CAPTURED) and self.parts.uses(function, self.transfer.works(function, one), part, tracked)
            return frozenset({Tracked(CAPTURED, MARK, "", Site(function, one))}) if is_used else frozenset()
        is_stale = is_noted(state, CAPTURED) and self.parts.is_renewed(state, one, part)
        return frozenset({Tracked(STALE, MARK, part, Site(function, one))}) if is_stale else frozenset()
