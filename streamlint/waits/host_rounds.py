"""Rounds that run on the host: the modules that they train are made in view, and nobody moves them.

A module is made on the host, and computes with what is there too. So a round has nothing to wait for if a module that it calls was made by
the program and is never moved, and if the files whose functions it runs choose no device. Unknown callers may pass a module that
is elsewhere, unless the file makes one for its own function, or the program makes some and nowhere chooses a device: then it is a program,
and no library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from streamlint.facts.functions import ClassInfo, Function
from streamlint.facts.hot import HotRegions, Region
from streamlint.facts.objects import Container, Instance, Object, Unknown
from streamlint.facts.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop
from streamlint.waits.elsewhere import Elsewhere
from streamlint.waits.placing import Placing
from streamlint.waits.together import makes_elsewhere


class HostRounds:
    """Answers for the loops of a program."""

    def __init__(self, hot: HotRegions) -> None:
        self.hot = hot
        self.facts = hot.facts
        self._placing = Placing(hot.facts)
        self._elsewhere = Elsewhere(hot.graph)
        self._known: dict[tuple[Function, Loop], bool] = {}

    def holds(self, region: Region) -> bool:
        """Whether what the loop behind a region trains is on the host."""
        first = region.chain()[0]
        if first.loop is None or first.row is not None or first.function.is_cpp:
            return False
        key = (first.function, first.loop)
        if key not in self._known:
            regions = [each for held in self.hot.regions.values() for each in held if each.chain()[0] is first]
            is_elsewhere = self._elsewhere.drives(dict.fromkeys(each.function for each in regions))
            self._known[key] = is_elsewhere or self._trains_on_host(regions)
        return self._known[key]

    def _trains_on_host(self, regions: list[Region]) -> bool:
        if makes_elsewhere(self.hot.graph):
            return False
        if any(map(self._placing.chooses, dict.fromkeys(region.function.unit for region in regions))):
            return False
        called: dict[Object, None] = {}
        for function, values in (each for region in regions for each in self._called(region)):
            modules = [value for value in values if self._is_module(value)]
            if modules and not all(map(self._is_known, values)) and not self._is_own(function.unit, modules):
                return False
            called.update(dict.fromkeys(modules))
        if not any(map(self._is_trained, called)) or any(map(self._is_moved, called)):
            return False
        classes = [each for value in called if isinstance(value, Instance) for each in self.facts.hierarchy.order(value.definition)]
        return not any(map(self._placing.chooses, dict.fromkeys(each.unit for each in classes)))

    def _called(self, region: Region) -> Iterator[tuple[Function, list[Object]]]:
        """What the calls of a region call."""
        function, home = region.function, self.hot.body(region.function).home
        for one in (each for opcode in (op.CALL, op.INVOKE) for each in function.by_opcode[opcode]):
            if home[one] in region.blocks:
                yield function, self.facts.callees(function, one)

    def _is_known(self, value: Object) -> bool:
        return not isinstance(value, Unknown)

    def _is_own(self, unit: Unit, modules: list[Object]) -> bool:
        """Whether a file makes one of the modules that it trains, or the program makes them and nowhere chooses a device."""
        return any(self._is_made_in(unit, one) for one in modules) or self._placing.is_nowhere()

    def _is_made_in(self, unit: Unit, value: Object) -> bool:
        """Whether a file makes a module."""
        if isinstance(value, Instance):
            return any(function.unit is unit for function, _ in self.facts.construction_places(value.definition))
        return isinstance(value, Container) and value.frame.function.unit is unit

    def _is_module(self, value: Object) -> bool:
        """Whether an object is a module that the program makes; those of a library are one for all."""
        if isinstance(value, Instance):
            is_module = any(map(self.facts.forwarded, self.facts.hierarchy.libraries(value.definition)))
            return is_module and (value.exact or bool(self.facts.construction_places(value.definition)))
        return isinstance(value, Container) and value.kind == "modules"

    # --- modules

    def _is_trained(self, value: Object) -> bool:
        """Whether the parameters of a module are asked for: it has some, as losses have none."""
        return _is_among(self.facts.hierarchy.order, value, self._trained)

    def _is_moved(self, value: Object) -> bool:
        return _is_among(self.facts.hierarchy.order, value, self._moved)

    @cached_property
    def _trained(self) -> list[Object]:
        return self._receivers(self.facts.models.known("parameters"))

    @cached_property
    def _moved(self) -> list[Object]:
        """The modules that the program moves or hands to what may move them, and those that they hold."""
        found = dict.fromkeys(self._receivers(self.facts.models.known("places"), self._placing.moves))
        for value in (waiting := list(found)):
            held = [each for each in (*self._held(value), *filter(self._is_module, self._elements(value))) if each not in found]
            found.update(dict.fromkeys(held))
            waiting += held
        return list(found)

    def _receivers(self, names: frozenset[str], counts: Callable[[Function, Instruction], bool] = lambda *_: True) -> list[Object]:
        """The modules of which methods of these names are called, or that such methods are given, where the use ``counts``."""
        found: dict[Object, None] = {}
        for unit in dict.fromkeys(unit for name in sorted(names) for unit in self.facts.program.mentioning(name)):
            for name in names & unit.attribute_uses.keys() if not unit.is_cpp else ():
                for function, one in (use for use in unit.attribute_uses[name] if counts(*use)):
                    registers = [one[3], *(one[6:] if one[0] == op.INVOKE else ())]
                    values = (value for each in registers if each >= 0 for value in self.facts.values(function, each).values)
                    found.update(dict.fromkeys(each for value in values for each in (value, *self._elements(value))))
        return [value for value in found if self._is_module(value)]

    def _elements(self, value: Object) -> list[Object]:
        return self.facts.elements(value) if isinstance(value, Container) else []

    def _held(self, value: Object) -> Iterator[Object]:
        """The modules in the attributes of an object."""
        classes = self.facts.hierarchy.order(value.definition) if isinstance(value, Instance) else ()
        for store in (store for one in classes for stores in one.own_stores.values() for store in stores if store.value >= 0):
            values = list(self.facts.values(store.function, store.value).values)
            yield from (each for held in values for each in (held, *self._elements(held)) if self._is_module(each))


def _is_among(order: Callable[[ClassInfo], list[ClassInfo]], value: Object, others: Iterable[Object]) -> bool:
    """Whether an object is one of others, or of a class of theirs, or of one above or below."""
    if not isinstance(value, Instance):
        return any(other is value for other in others)
    own = order(value.definition)
    classes = [other.definition for other in others if isinstance(other, Instance)]
    return any(one in own or value.definition in order(one) for one in classes)
