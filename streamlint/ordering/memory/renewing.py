"""What gives parts of objects other memory: the weights and gradients of modules, the state of optimizers."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.on_path import as_passed
from streamlint.ordering.paths.states import State
from streamlint.ordering.paths.walk_names import aside
from streamlint.ordering.places.flow import Tracked
from streamlint.ordering.places.gradients import GRADIENT, Training, are_joined
from streamlint.ordering.places.places import Place, Places
from streamlint.ordering.places.weights import GRADIENTS as GRADIENTS_KEY
from streamlint.ordering.places.weights import WEIGHTS as WEIGHTS_KEY
from streamlint.ordering.places.weights import ModuleMemory
from streamlint.transfer.renewals import GRADIENTS, STATE, WEIGHTS, Renewed, may_renew, renewed
from streamlint.transfer.transfer import CALLING, Transfer

_EFFECTS = frozenset({"none", "unknown", "module_to", "transfer"})
KEYS = {WEIGHTS: WEIGHTS_KEY, GRADIENTS: GRADIENTS_KEY, STATE: "state()"}
"""By part: the key of its places."""


class Renewing:
    """Tells what gives a part of a module or an optimizer other memory."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.places = places
        self.modules = ModuleMemory(transfer, places)
        self.training = Training(transfer, places, self.modules)
        self._renewing: dict[Function, bool] = {}

    def renews_any(self) -> bool:
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
                any(True for _ in self._renewals(function, one))
                or any(edge.is_direct and self.renewed_in(edge.callee) for edge in self.transfer.edges(function, one))
                for one in (*function.by_opcode[op.CALL], *function.by_opcode[op.INVOKE])
            )
        return known

    def _renewals(self, function: Function, one: Instruction) -> Iterator[Renewed]:
        """The parts that a call renews."""
        return renewed(self.transfer.modelled(function, one)) if one[0] in CALLING and not function.is_cpp else iter(())

    def is_renewed(self, state: State, one: Instruction, part: str) -> bool:
        """Whether an instruction renews a part that is tracked: of an object that callers have passed, also by the names that they have
        for it."""
        frame, tracked = state.frame, state.tracked
        if one[0] not in CALLING:
            return one[0] == op.SET_ATTR and self._is_assigned(frame.function, one, part, tracked)
        for each in self._renewals(frame.function, one):
            if each.part != part:
                continue
            holder, register = as_passed(self.transfer, frame, each.register)
            places = [*self._objects(frame.function, each.register, part)]
            if holder is not frame:
                places += [aside(place, holder.depth) for place in self._objects(holder.function, register, part)]
            if any(self.meets(place, part, tracked) for place in places):
                return True
        return False

    def _objects(self, function: Function, register: int, part: str) -> Iterator[Place]:
        """The objects whose part a renewal means: the one in a register, or the modules whose parameters an optimizer has."""
        yield from self.places.names(function, register)
        yield from self.training.stepped(function, register) if part == GRADIENTS else ()

    def _is_assigned(self, function: Function, one: Instruction, part: str, tracked: frozenset[Tracked]) -> bool:
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
        key = KEYS[part]
        wholes = [Place(held.place.root, held.place.path[: held.place.path.index(key)]) for held in tracked if key in held.place.path]
        return any(are_joined(whole, place) for whole in wholes)
