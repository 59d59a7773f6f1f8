"""Steps of optimizers, as a path comes to them: the modules whose weights they write."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.ordering.paths.on_path import as_passed
from streamlint.ordering.paths.states import State
from streamlint.ordering.paths.walk_names import aside
from streamlint.ordering.places.flow import Tracked
from streamlint.ordering.places.gradients import Training
from streamlint.ordering.places.places import Place
from streamlint.ordering.places.weights import GRADIENTS, WEIGHTS, ModuleMemory
from streamlint.ordering.walk.walk import Walk
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.work import Worked


class Stepping(Walk):
    """Follows memory of modules to the optimizers that were made with their parameters."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.modules = ModuleMemory(transfer, self.places)
        self.training = Training(transfer, self.places, self.modules)

    def may_meet(self, tracked: frozenset[Tracked], callee: Function) -> bool:
        """A function that steps with an optimizer may read gradients, and write weights, for which it has no name."""
        is_of_module = any(GRADIENTS in held.place.path or WEIGHTS in held.place.path for held in tracked)
        return super().may_meet(tracked, callee) or (is_of_module and self.training.steps_in(callee))

    def stepped(self, state: State, work: Worked) -> Iterator[Place]:
        """The modules whose weights work writes as a step: of an optimizer that a path passes on, as who made it names them."""
        frame = state.frame
        for holder, optimizer in (as_passed(self.transfer, frame, register) for register in work.steps):
            named = self.training.stepped(holder.function, optimizer)
            yield from named if holder is frame else (aside(place, holder.depth) for place in named)
