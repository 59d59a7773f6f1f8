"""SL034: the memory that captures reach through modules and optimizers: weights, gradients, and the state of optimizers."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.memory.captured import Capture, Captured, Input
from streamlint.ordering.memory.captured_calls import Run, named
from streamlint.ordering.places.flow import BUFFER, Tracked
from streamlint.ordering.places.gradients import GRADIENT, Training, are_joined
from streamlint.ordering.places.places import Place, Places, register_place
from streamlint.ordering.places.weights import GRADIENTS as GRADIENTS_KEY
from streamlint.ordering.places.weights import WEIGHTS as WEIGHTS_KEY
from streamlint.ordering.places.weights import ModuleMemory
from streamlint.transfer.renewals import GRADIENTS, STATE, WEIGHTS, Renewed, may_renew, renewed
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.transfer.work import Weights, Worked

_SELF = ("parameter", 0)
_EFFECTS = frozenset({"none", "unknown", "module_to", "transfer"})
_KEYS = {WEIGHTS: WEIGHTS_KEY, GRADIENTS: GRADIENTS_KEY, STATE: "state()"}


class CapturedModules:
    """Names the memory of modules and optimizers that a capture uses, and tells what gives it another place."""

    def __init__(self, transfer: Transfer, places: Places, captured: Captured) -> None:
        self.transfer = transfer
        self.places = places
        self.captured = captured
        self.modules = ModuleMemory(transfer, places)
        self.training = Training(transfer, places, self.modules)
        self._renewing: dict[Function, bool] = {}

    # --- what captures use

    def find(self) -> Iterator[Input]:
        """The memory of modules and optimizers that captures of Python use, where the program renews such memory."""
        captures = [capture for capture in self.captured.captures() if not capture.begin.function.is_cpp]
        for capture in captures if captures and self._renews_any() else ():
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
            if tracked := frozenset(Tracked(BUFFER, place.behind(_KEYS[part])) for place in places):
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

    # --- what renews it

    def _renews_any(self) -> bool:
        """Whether the program renews parts of modules or optimizers."""
        if any(True for call in self.transfer.sites(_EFFECTS, where=may_renew) for _ in renewed([call])):
            return True
        names = (GRADIENT, *self.transfer.replacing)
        units = {unit for name in names for unit in self.transfer.facts.program.mentioning(name) if not unit.is_cpp}
        return any(self._assigns(each, one) for unit in units for each in unit.functions for one in each.by_opcode[op.SET_ATTR])

    def _assigns(self, function: Function, one: Instruction) -> bool:
        return function.text(one[3]) == GRADIENT or self.modules.gives(function, one)

    def renewed_in(self, function: Function) -> bool:
        """Whether a function, or one that it calls, renews parts of objects."""
        known = self._renewing.get(function)
        if known is None:
            self._renewing[function] = False  # in a cycle, the others tell
            known = self._renewing[function] = any(
                any(True for _ in self.renewals(function, one))
                or any(edge.is_direct and self.renewed_in(edge.callee) for edge in self.transfer.edges(function, one))
                for one in (*function.by_opcode[op.CALL], *function.by_opcode[op.INVOKE])
            )
        return known

    def renewals(self, function: Function, one: Instruction) -> Iterator[Renewed]:
        """The parts that a call renews."""
        return renewed(self.transfer.modelled(function, one)) if one[0] in CALLING and not function.is_cpp else iter(())

    def objects(self, function: Function, register: int, part: str) -> Iterator[Place]:
        """The objects whose part a renewal means: the one in a register, or the modules whose parameters an optimizer has."""
        yield from self.places.names(function, register)
        yield from self.training.stepped(function, register) if part == GRADIENTS else ()

    def is_assigned(self, function: Function, one: Instruction, part: str, tracked: frozenset[Tracked]) -> bool:
        """Whether an assignment to an attribute gives parameters other memory, or other gradients."""
        name = function.text(one[3])
        if part == GRADIENTS and name == GRADIENT:
            is_same = any(True for _ in self.training.held(function, [one[4]]))
        elif part == WEIGHTS and self.modules.gives(function, one):
            is_same = self.modules.is_parameter(function, [one[4]], tracked)
        else:
            return False
        return not is_same and any(self.meets(place, part, tracked) for place in self.modules.parameters.owners(function, one[2]))

    def meets(self, place: Place, part: str, tracked: frozenset[Tracked]) -> bool:
        """Whether a part of an object, of what is in it, or of what it is in, is tracked."""
        key = _KEYS[part]
        wholes = [Place(held.place.root, held.place.path[: held.place.path.index(key)]) for held in tracked if key in held.place.path]
        return any(are_joined(whole, place) for whole in wholes)
