"""SL035: whether other functions of an extension's module take the device of a tensor for the current one: then any device may come."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind
from streamlint.facts.code.objects import Memory, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.threads.chosen_devices import ChosenDevices
from streamlint.support.memo import memoized
from streamlint.transfer.transfer import Transfer

_HIGHEST = 3


class GuardedSiblings:
    """Asks functions that Python may call."""

    def __init__(self, transfer: Transfer, devices: ChosenDevices) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.devices = devices

    def guard(self, function: Function, launch: Instruction) -> Site | None:
        """Where a sibling guards, of a bound function that leads to a launch on a caller's tensor without a guard on the way."""
        bound = self._unguarded(function, 0) if self._are_of_given(function, op.reads(launch)) else None
        for export in self.facts.exports.of(bound) if bound is not None else ():
            guard = self._guard_in(export.within)
            if guard is not None:
                return guard
        return None

    def _unguarded(self, function: Function, depth: int) -> Function | None:
        """The bound function on a way to a function that chooses no device."""
        if not function.is_cpp or self.devices.calls(function) or depth > _HIGHEST:
            return None
        callers = self.transfer.callers(function)
        if self.facts.exports.of(function):
            is_chosen = any(not caller.is_cpp and self.devices.is_chosen(caller, call) for caller, call in callers)
            return None if is_chosen else function
        above = (self._unguarded(caller, depth + 1) for caller, _ in callers)
        return next((each for each in above if each is not None), None)

    def _are_of_given(self, function: Function, registers: list[int]) -> bool:
        """Whether one of some values is computed of a tensor that a function of C++ is given."""
        for one in behind(function, registers, op.reads):
            node = self.facts.values(function, one[2])
            tensors = [value for value in node.values if isinstance(value, Memory) and value.type.endswith("Tensor")]
            if any(site.instruction[0] == op.PARAM for value in tensors for site in list(node.trace(value))[-1:]):
                return True
        return False

    @memoized
    def _guard_in(self, module: Function) -> Site | None:
        """Where a function that a module binds, or one that it calls, makes the device of a tensor that it is given the current one."""
        bound = [one for one, exports in self.facts.exports.bound.items() if any(export.within is module for export in exports)]
        called = [callee for one in bound for call in one.by_opcode[op.CALL] for callee in self.facts.callee_functions(one, call)]
        for function in dict.fromkeys((*bound, *called)):
            for call in self.devices.calls(function):
                device = self.devices.device(call)
                if device is not None and self._are_of_given(function, [device]):
                    return Site(function, call.instruction)
        return None
