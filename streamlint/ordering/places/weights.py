"""The memory that a module leads to by its members, as a path follows it: moved as a whole, given to its parameters, read by its calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.flow import BUFFER, Tracked, is_at
from streamlint.ordering.places.parameters import Parameters
from streamlint.ordering.places.places import ASIDE, Place, Places, register_place, rest_behind
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.work import Weights

WEIGHTS = "weights()"
"""The key of all memory that an object leads to."""
GRADIENTS = "gradients()"
"""The key of the gradients of all parameters that an object leads to."""
_TAKING = frozenset({op.ITER, op.NEXT, op.UNPACK, op.ITEM})


class ModuleMemory:
    """Names the memory of modules."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.places = places
        self.parameters = Parameters(transfer, places)

    def moved(self, function: Function, registers: Iterable[int]) -> Iterator[Tracked]:
        """The weights of the modules in some registers."""
        for register in registers:
            yield from (Tracked(BUFFER, place.behind(WEIGHTS)) for place in self.places.names(function, register))

    def run(self, function: Function, modules: Iterable[Weights]) -> Iterator[Tracked]:
        """The weights of the modules that a call runs."""
        yield from (Tracked(BUFFER, place.behind(WEIGHTS)) for module in modules for place in self.names(function, module))

    def is_run(self, function: Function, modules: Iterable[Weights], tracked: Iterable[Tracked], assumed: bool) -> bool:
        """Whether modules read memory that is tracked: their own, that of a part, or of a whole. ``assumed``: they may be none."""
        mine = [place for module in modules for place in self.names(function, module)]
        return any(self.meets(place, held, assumed) for place in mine for held in tracked if held.kind == BUFFER)

    def is_parameter(self, function: Function, registers: Iterable[int], tracked: Iterable[Tracked]) -> bool:
        """Whether a register holds a parameter of modules whose weights are tracked."""
        wholes = [_whole(held.place) for held in tracked if held.kind == BUFFER and WEIGHTS in held.place.path]
        owners = self._owners(function, registers) if wholes else []
        return any(rest_behind(whole, owner) is not None or rest_behind(owner, whole) is not None for whole in wholes for owner in owners)

    def listed(self, function: Function, registers: Iterable[int]) -> Iterator[Tracked]:
        """The weights of the modules of which registers hold parameters: ``for p in module.parameters(): p.data.mul_(2)``. One parameter
        that is asked for by its name is not the others."""
        those = [register for register in registers if not self._is_named(function, register)]
        yield from (Tracked(BUFFER, place.behind(WEIGHTS)) for place in self._owners(function, those))

    def _is_named(self, function: Function, register: int) -> bool:
        shared = (function.definitions[each] for each in (self.transfer.shared(function, register) if register >= 0 else ()))
        return any(one is not None and one[0] == op.ITEM and isinstance(function.constant(one[4]), str) for one in shared)

    def _owners(self, function: Function, registers: Iterable[int]) -> list[Place]:
        """The modules of which registers hold parameters, or memory of such."""
        held = [] if function.is_cpp else [register for register in registers if register >= 0]
        shared = dict.fromkeys(each for register in held for each in self.transfer.shared(function, register))
        return [place for each in shared for place in self.parameters.owners(function, each)]

    def is_moved(self, function: Function, registers: Iterable[int], tracked: Iterable[Tracked]) -> bool:
        """Whether the weights of modules that are tracked are moved."""
        mine = [place for register in registers for place in self.places.names(function, register)]
        return any(self.meets(place, held) for place in mine for held in tracked if held.kind == BUFFER)

    def given(self, function: Function, one: Instruction, tracked: frozenset[Tracked]) -> frozenset[Tracked]:
        """What is tracked once parameters are given memory: ``for p in module.parameters(): p.data = …``. Memory that is tracked makes it
        that of their modules; other memory is another one than what these had."""
        if not self.gives(function, one) or not any(held.kind == BUFFER for held in tracked):
            return tracked
        places = (place.behind(WEIGHTS) for place in self.parameters.owners(function, one[2]))
        weights = frozenset(Tracked(BUFFER, place) for place in places)
        return tracked | weights if is_at(tracked, self.places.names(function, one[4]), BUFFER) else tracked - weights

    def gives(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction may give a parameter other memory: ``p.data = …``."""
        return one[0] == op.SET_ATTR and not function.is_cpp and function.text(one[3]) in self.transfer.view_names

    def taken(self, function: Function, one: Instruction, tracked: frozenset[Tracked]) -> frozenset[Tracked]:
        """The weights of a part of modules that is taken out of them: ``for layer in self.layers``."""
        if one[0] not in _TAKING or function.is_cpp:
            return frozenset()
        wholes = self.places.names(function, one[3])
        weights = [_whole(held.place) for held in tracked if held.place.path[-1:] == (WEIGHTS,)]
        if not any(rest_behind(whole, name) is not None for whole in weights for name in wholes):
            return frozenset()
        return frozenset({Tracked(BUFFER, register_place(one[2]).behind(WEIGHTS))})

    def names(self, function: Function, module: Weights) -> Iterator[Place]:
        """The places of a module."""
        for place in self.places.names(function, module.register):
            yield place.behind(module.name) if module.name else place

    def meets(self, module: Place, held: Tracked, assumed: bool = False) -> bool:
        """Whether memory that is tracked is that of a module: all of it, that of a part, or of a whole. ``assumed``: it may be none."""
        if WEIGHTS not in held.place.path:
            is_inside = bool(rest_behind(module, held.place)) and GRADIENTS not in held.place.path
            return not assumed and is_inside and held.place.root[0] != ASIDE
        whole = _whole(held.place)
        return rest_behind(whole, module) is not None or rest_behind(module, whole) is not None


def _whole(weights: Place) -> Place:
    """The module whose weights are at a place."""
    return Place(weights.root, weights.path[: weights.path.index(WEIGHTS)])
