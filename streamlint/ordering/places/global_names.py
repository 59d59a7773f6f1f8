"""Which global names a function may touch, by itself or through what it calls: a path that follows others passes it by."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import Places, Root
from streamlint.support.memo import memoized
from streamlint.transfer.transfer import CALLING, Transfer

_NAMING = (op.NAME, op.ADDRESS_NAME, op.SET_NAME)
_MOST = 60
"""Functions below one that are looked at; one that reaches more may name anything."""


class GlobalNames:
    """The global names of a program's functions."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.places = transfer.one_of(Places, transfer.facts)
        self._reached: dict[Function, frozenset[Root] | None] = {}

    def may_touch(self, function: Function, root: Root) -> bool:
        """Whether a function may touch what stands at a global name. C++ names members and globals alike."""
        if function not in self._reached:
            self._reached[function] = self._found(function)
        reached = self._reached[function]
        return reached is None or root in reached

    def _found(self, function: Function) -> frozenset[Root] | None:
        found: set[Root] = set()
        below = [function]
        for each in below:
            if each.is_cpp or len(below) > _MOST:
                return None
            found |= self._names(each)
            calls = (one for opcode in CALLING for one in each.by_opcode[opcode])
            callees = (edge.callee for one in calls for edge in self.transfer.edges(each, one) if edge.is_followed)
            below += [callee for callee in dict.fromkeys(callees) if callee not in below]
        return frozenset(found)

    @memoized
    def _names(self, function: Function) -> frozenset[Root]:
        names = (function.text(one[3 if op.DEFINES[opcode] else 2]) for opcode in _NAMING for one in function.by_opcode[opcode])
        named = {self.places.of_name(function, name).root for name in names}
        return frozenset(named.union(self._led_to(function) if not function.is_cpp else ()))

    def _led_to(self, function: Function) -> Iterator[Root]:
        """Global names to which a function gets by other names: attributes of modules, and what functions give back."""
        led = [self.places.of(function, one[2]) for opcode in (op.ATTR, op.CALL, op.INVOKE) for one in function.by_opcode[opcode]]
        led += [self.places.member(function, one[2], function.text(one[3])) for one in function.by_opcode[op.SET_ATTR]]
        yield from (place.root for place in led if place.root[0] == "global")
