"""The values of a variable or an attribute that a round can see: those that are set in branches which it never takes are left out."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import unnegated
from streamlint.facts.code.stores import Store
from streamlint.facts.graph.conditions import Rare
from streamlint.facts.repetition.hot import HotRegions, Region
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.options import is_off
from streamlint.waits.wait import Wait

Place = tuple[Function, int]


class RoundValues:
    """Answers for the waits of a program."""

    def __init__(self, hot: HotRegions) -> None:
        self.hot = hot
        self._off: dict[Function, list[Rare]] = {}

    def of(self, region: Region, wait: Wait) -> list[Place]:
        """The registers that a wait may read in a region: of a variable that branches set, those of the branches that it takes."""
        function = wait.function
        if region.function is not function or wait.value < 0:
            return [(function, wait.value)]
        home = self.hot.body(function).home
        decided = [one for one in region.rare if one.is_decided]
        found: dict[Place, None] = {}
        seen: set[int] = set()
        waiting = [wait.value]
        while waiting:
            register = waiting.pop()
            one = function.definitions[register] if register >= 0 else None
            if register in seen:
                continue
            seen.add(register)
            if one is not None and one[0] == op.PHI:
                lost = self._without(function, decided)
                ways = zip(function.phi_order[home[one]], one[3:], strict=True)
                waiting += [operand for before, operand in ways if before not in lost]
            else:
                found.update(dict.fromkeys(self._stored(function, one, register)))
        return list(found)

    def _stored(self, function: Function, one: Instruction | None, register: int) -> list[Place]:
        """What is stored in an attribute of the receiver, but where only options lead that are off; else the register itself."""
        owner = function.owner
        if one is None or one[0] != op.ATTR or owner is None or not function.is_parameter(one[3], 0):
            return [(function, register)]
        hierarchy, name = self.hot.facts.hierarchy, function.text(one[4])
        classes = dict.fromkeys(each for below in hierarchy.cone(owner) or () for each in hierarchy.order(below))
        stores = [store for each in classes for store in each.own_stores.get(name, ())]
        if any(unit.attribute_stores.get(name) for unit in self.hot.facts.program.mentioning(name)):
            return [(function, register)]  # others set it, too
        left = [store for store in stores if not self._is_lost(store)]
        is_less = 0 < len(left) < len(stores) and all(store.value >= 0 for store in left)
        return [(store.function, store.value) for store in left] if is_less else [(function, register)]

    def _is_lost(self, store: Store) -> bool:
        function = store.function
        if function.is_cpp or store.instruction not in function.blocks:
            return False
        return function.blocks[store.instruction] in self._without(function, [])

    def _without(self, function: Function, decided: list[Rare]) -> frozenset[int]:
        """The blocks to which only edges lead that are never taken, or where an option is on that is off."""
        if function not in self._off:
            self._off[function] = list(self._of_options(function))
        edges = [*decided, *self._off[function]]
        body = self.hot.body(function)
        return frozenset(body.graph.order) - body.runs([0], edges) if edges else frozenset()

    def _of_options(self, function: Function) -> Iterator[Rare]:
        """The edges that are taken where an option is on that is off by default, and that nobody in view turns on."""
        for number, block in enumerate(function.code.blocks):
            end = block[-1]
            if end[0] != op.BRANCH or end[3] == end[4]:
                continue
            register, turned = unnegated(function, end[2])
            for after, holds in ((end[3], not turned), (end[4], turned)):
                if is_off(self.hot.facts, function, register, holds):
                    yield Rare(number, after, "an option is off", True)
