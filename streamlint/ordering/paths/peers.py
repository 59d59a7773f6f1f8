"""Whether a path may come by no wait for another process or thread."""

from __future__ import annotations

from collections.abc import Callable

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import until
from streamlint.transfer.actions import Lost
from streamlint.transfer.transfer import CALLING, Transfer

_WAITING = frozenset({"get", "block", "collective", "exit"})
_PAUSING = frozenset({op.YIELD, op.YIELD_FROM, op.AWAIT})
_LEFT = frozenset({op.RETURN})


class Peers:
    """The waits of a program for anybody else, and the unknown calls, which may be one."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self._inside: dict[Function, bool] = {}

    def may_end_alone(self, site: Site, again: Instruction | None) -> bool:
        """Whether a path leads from behind an instruction to an end of its function, or to an instruction, past no such wait."""
        return self._comes(site, lambda one: one[0] in _LEFT or one == again)

    def comes_alone(self, site: Site, end: Instruction) -> bool:
        """Whether a path leads from behind an instruction to another one past no such wait."""
        return self._comes(site, lambda one: one == end)

    def _comes(self, site: Site, is_end: Callable[[Instruction], bool]) -> bool:
        function = site.function
        block, index = function.homes[site.instruction]
        return any(map(is_end, until(function.code, (block, index + 1), lambda one: not is_end(one) and self.may_wait(function, one))))

    def may_wait(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction may wait for anybody else, by itself or in what it enters."""
        if one[0] in _PAUSING:
            return True
        if one[0] not in CALLING:
            return False
        modelled = list(self.transfer.modelled(function, one))
        if any(call.row.effect in _WAITING or call.row.get("awaits") is not None for call in modelled):
            return True
        if modelled:
            return False
        if any(isinstance(action, Lost) for action in self.transfer.of(function, one)):
            return True
        return any(self._waits_inside(edge.callee) for edge in self.transfer.edges(function, one) if edge.is_followed)

    def _waits_inside(self, function: Function) -> bool:
        found = self._inside.get(function)
        if found is None:
            self._inside[function] = False  # in a cycle, the others tell
            found = self._inside[function] = any(self.may_wait(function, one) for one in function.code.instructions())
        return found
