"""C++: rounds of models that a function or a class makes itself, and that nobody moves elsewhere than to the host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import Constant, DeviceValue, External, Instance, Object, Scalar
from streamlint.facts.repetition.hot import HotRegions, Region
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.operands import argument_registers

_MADE = (op.CALL, op.CONSTRUCT, op.NEW)


class CppHostRounds:
    """Answers for the loops of a program."""

    def __init__(self, hot: HotRegions) -> None:
        self.hot = hot
        self.facts = hot.facts
        self._moving = hot.facts.models.known("places")

    def trains(self, regions: list[Region]) -> bool:
        """Whether what the regions of a loop train is made there, and stays on the host as all that they move."""
        uses = [(region.function, one) for region in regions for one in self._stepped(region)]
        trained = {each for function, one in uses for each in self._classes(function, one[3])}
        first = regions[0].chain()[0].function
        helpers = (use for use in uses if use[0] is first or not _is_parameter(use[0], use[1][3]))  # helpers are passed what the loop has
        if not trained or not all(self._is_own(function, one[3]) for function, one in helpers):
            return False
        functions = dict.fromkeys(region.function for region in regions)
        return not any(map(self._names_device, functions)) and trained.isdisjoint(self._moved)

    def _stepped(self, region: Region) -> Iterator[Instruction]:
        """The calls of a region's modules; those that a module makes of its own parts aside."""
        function, home = region.function, self.hot.body(region.function).home
        if function.owner is None or not self._is_module(function.owner):
            calls = (one for one in function.by_opcode[op.INVOKE] if home[one] in region.blocks and one[3] >= 0)
            yield from (one for one in calls if self._classes(function, one[3]))

    def _classes(self, function: Function, register: int) -> list[ClassInfo]:
        """The classes of modules of which a register may hold an object, and their bases."""
        held = (value.definition for value in self.facts.values(function, register).values if isinstance(value, Instance))
        return [each for one in held if self._is_module(one) for each in self.facts.hierarchy.order(one)]

    def _is_module(self, definition: ClassInfo) -> bool:
        return any(self.facts.models.method(one, "forward", "::") for one in self.facts.hierarchy.libraries(definition))

    def _is_own(self, function: Function, register: int) -> bool:
        """Whether a module is made by the function that uses it, or is a member that nobody hands in."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or one[0] not in (op.NAME, op.ATTR):
            return (
                one is not None
                and one[0] in _MADE
                and not self._is_given(function, [each for _, each in argument_registers(function, one)])
            )
        owner, name = function.owner, function.text(one[4 if one[0] == op.ATTR else 3])
        if owner is None or (one[0] == op.ATTR and not function.is_parameter(one[3], 0)) or not owner.declares(name):
            return False
        stores = (store for each in self.facts.hierarchy.order(owner) for store in each.own_stores.get(name, ()))
        return not any(self._is_given(store.function, op.reads(store.instruction)[1:]) for store in stores)

    def _is_given(self, function: Function, registers: Iterable[int]) -> bool:
        """Whether one of some registers holds a module."""
        return any(self._classes(function, each) for each in registers if each >= 0)

    def _names_device(self, function: Function) -> bool:
        """Whether a call of a function is given a device that may be another one than the host."""
        calls = (one for opcode in (op.CALL, op.INVOKE, op.CONSTRUCT) for one in function.by_opcode[opcode])
        return any(self._goes_elsewhere(function, one) for one in calls)

    def _goes_elsewhere(self, function: Function, one: Instruction) -> bool:
        values = [value for _, each in argument_registers(function, one) if each >= 0 for value in self.facts.values(function, each).values]
        if one[0] == op.INVOKE and function.text(one[4]) in self._moving:
            return not values or not all(isinstance(value, (External, Constant, Scalar)) or _is_host(value) for value in values)
        return any(isinstance(value, DeviceValue) and not _is_host(value) for value in values)

    @cached_property
    def _moved(self) -> frozenset[ClassInfo]:
        """The classes of the modules that some code may put on another device."""
        uses = (
            use
            for unit in dict.fromkeys(each for name in sorted(self._moving) for each in self.facts.program.mentioning(name))
            for name in (self._moving & unit.attribute_uses.keys() if unit.is_cpp else ())
            for use in unit.attribute_uses[name]
        )
        return frozenset(each for function, one in uses if self._goes_elsewhere(function, one) for each in self._classes(function, one[3]))


def _is_host(value: Object) -> bool:
    return isinstance(value, DeviceValue) and value.space == "host"


def _is_parameter(function: Function, register: int) -> bool:
    one = function.definitions[register] if register >= 0 else None
    return one is not None and one[0] == op.PARAM
