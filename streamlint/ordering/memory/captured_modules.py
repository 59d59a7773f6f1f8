"""SL034: the memory that captures reach through modules and optimizers: weights, gradients, and the state of optimizers."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.ir import opcodes as op
from streamlint.ordering.memory.captured import Capture, Captured, Input
from streamlint.ordering.memory.captured_calls import Run, named
from streamlint.ordering.memory.renewing import KEYS, Renewing
from streamlint.ordering.places.flow import BUFFER, Tracked
from streamlint.ordering.places.gradients import are_joined
from streamlint.ordering.places.places import Place, Places, register_place
from streamlint.transfer.renewals import GRADIENTS, STATE, WEIGHTS
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.work import Weights, Worked

_SELF = ("parameter", 0)


class CapturedModules(Renewing):
    """Names the memory of modules and optimizers that a capture uses."""

    def __init__(self, transfer: Transfer, places: Places, captured: Captured) -> None:
        super().__init__(transfer, places)
        self.captured = captured

    def find(self) -> Iterator[Input]:
        """The memory of modules and optimizers that captures of Python use, where the program renews such memory."""
        captures = [capture for capture in self.captured.captures() if not capture.begin.function.is_cpp]
        for capture in captures if captures and self.renews_any() else ():
            yield from self._inputs(capture)

    def _inputs(self, capture: Capture) -> Iterator[Input]:
        function = capture.begin.function
        runs = list(self.captured.calls.run(function, list(self.captured.region(capture))))
        steps = any(work.steps for other, one, _ in runs for work in self.transfer.works(other, one))
        for part in (WEIGHTS, GRADIENTS, STATE):
            if part == GRADIENTS and steps:
                continue  # the graph has gradients of its own
            used = dict.fromkeys(place for run in runs for place in self._used(run, part))
            places = {place for each in used for place in self._with_stored(function, each)}
            if part == GRADIENTS:
                places.update(self._optimizers(function, places))
            if tracked := frozenset(Tracked(BUFFER, place.behind(KEYS[part])) for place in places):
                yield Input(capture, capture.begin.instruction, tracked, capture.begin, False, part=part)

    def _used(self, run: Run, part: str) -> Iterator[Place]:
        """The objects of which an instruction uses a part, by the names of the function of its capture."""
        function, one, given = run
        for work in self.transfer.works(function, one):
            for place in self._used_objects(function, work, part):
                if (mine := named(place, given)) is not None:
                    yield mine

    def _used_objects(self, function: Function, work: Worked, part: str) -> Iterator[Place]:
        """The objects of which work uses a part."""
        if part == STATE:
            yield from (place for register in work.steps for place in self.places.names(function, register))
        modules: tuple[Weights, ...] = {WEIGHTS: work.runs, GRADIENTS: work.leaves}.get(part, ())
        for module in modules:
            yield from self.modules.names(function, module)

    def _with_stored(self, function: Function, place: Place) -> Iterator[Place]:
        """A place, and where its function puts what is there."""
        yield place
        register = int(str(place.root[1])) if place.root[0] == "register" else op.NONE
        for use in function.uses.get(register, ()):
            yield from (target.behind(*place.path) for target, given in self.places.assigned(function, use) if given == register)

    def _optimizers(self, function: Function, modules: set[Place]) -> Iterator[Place]:
        """The objects that were made with the parameters of modules, by the names that a function has for them."""
        owner = function.method.owner if function.method is function else None
        for maker in function.unit.functions:
            is_mine = maker is function or (owner is not None and maker.method is maker and maker.method.owner is owner)
            if not is_mine or self.modules.parameters.listing.isdisjoint(maker.called_names):
                continue
            for one in (*maker.by_opcode[op.CALL], *maker.by_opcode[op.INVOKE]):
                if any(are_joined(place, each) for place in self.training.stepped(maker, one[2]) for each in modules):
                    names = self._with_stored(maker, register_place(one[2]))
                    yield from (place for place in names if maker is function or place.root == _SELF)

    def uses(self, function: Function, works: tuple[Worked, ...], part: str, tracked: frozenset[Tracked]) -> bool:
        """Whether work uses a part that is tracked."""
        return any(self.meets(place, part, tracked) for work in works for place in self._used_objects(function, work, part))
