"""The memory that a module leads to by its members, as a path follows it: moved as a whole, given to its parameters, read by its calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.flow import BUFFER, Tracked
from streamlint.ordering.places import Place, Places, rest_behind
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.work import Weights

WEIGHTS = "weights()"
"""The key of all memory that an object leads to."""
_PARTS = frozenset({"members", "named", "mapping"})
_PASSED_ON = frozenset({op.NEXT, op.ITER, op.UNPACK, op.ITEM, op.COPY})
_THROUGH = frozenset({"items", "values", "enumerate", "list", "tuple", "reversed", "zip"})
_DEEPEST = 12


class ModuleMemory:
    """Names the memory of modules."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.places = places

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
        return any(self._meets(place, held, assumed) for place in mine for held in tracked if held.kind == BUFFER)

    def is_moved(self, function: Function, registers: Iterable[int], tracked: Iterable[Tracked]) -> bool:
        """Whether the weights of modules that are tracked are moved."""
        mine = [place for register in registers for place in self.places.names(function, register)]
        return any(self._meets(place, held, False) for place in mine for held in tracked if held.kind == BUFFER)

    def given(self, function: Function, one: Instruction, tracked: frozenset[Tracked]) -> frozenset[Tracked]:
        """The modules whose parameters are given memory that is tracked: ``for p in module.parameters(): p.data = …``."""
        if one[0] != op.SET_ATTR or function.is_cpp or function.text(one[3]) not in self.transfer.view_names:
            return frozenset()
        names = self.places.names(function, one[4])
        if not any(held.kind == BUFFER and rest_behind(name, held.place) == () for name in names for held in tracked):
            return frozenset()
        return frozenset(self.moved(function, self.owners(function, one[2])))

    def owners(self, function: Function, register: int, depth: int = _DEEPEST) -> Iterator[int]:
        """The modules of which a value is a parameter."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or depth == 0:
            return
        if one[0] in _PASSED_ON:
            yield from self.owners(function, one[3], depth - 1)
        elif one[0] == op.CALL and function.dotted(one[3]) in _THROUGH:
            for given in one[5:]:
                yield from self.owners(function, given, depth - 1)
        elif one[0] == op.INVOKE:
            part_of = [call.one("of", call.receiver) for call in self.transfer.modelled(function, one) if call.row.get("part") in _PARTS]
            yield from (each for each in part_of if each is not None)
            if not part_of and function.text(one[4]) in _THROUGH:
                yield from self.owners(function, one[3], depth - 1)

    def names(self, function: Function, module: Weights) -> Iterator[Place]:
        """The places of a module."""
        for place in self.places.names(function, module.register):
            yield place.behind(module.name) if module.name else place

    def _meets(self, module: Place, held: Tracked, assumed: bool) -> bool:
        if WEIGHTS not in held.place.path:
            return not assumed and bool(rest_behind(module, held.place)) and held.place.root[0] != "aside"
        whole = Place(held.place.root, held.place.path[: held.place.path.index(WEIGHTS)])
        return rest_behind(whole, module) is not None or rest_behind(module, whole) is not None
