"""Work on a stream of the program's own that uses tensors which unknown callers give: they were allocated on the stream current there.

Where such a tensor's storage is released, the allocator may hand it out on that stream while the work still runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Memory
from streamlint.facts.files.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.places.parameters import Parameters
from streamlint.ordering.streams.lanes import Lane, Lanes
from streamlint.transfer.actions import NAMED, Released
from streamlint.transfer.origins import Origins
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.work import Worked

_HANDED_ON = frozenset({op.NEXT, op.ITER, op.ITEM, op.UNPACK, op.COPY, op.CAST, op.PHI})


class GivenUse(NamedTuple):
    """Work on a stream of the program's own, and the register of the tensor that it was given."""

    function: Function
    instruction: Instruction
    work: Worked
    lane: Lane
    register: int


class GivenStorage:
    """Finds the uses of given tensors in files that release storage."""

    def __init__(self, transfer: Transfer, lanes: Lanes) -> None:
        self.transfer = transfer
        self.lanes = lanes
        self.parameters = Parameters(transfer, lanes.places)

    def uses(self, works: Iterable[tuple[Function, Instruction, Worked]]) -> Iterator[GivenUse]:
        """The uses among some work."""
        units = self._releasing()
        for function, one, work in works:
            if function.unit not in units or function.is_cpp or work.assumed or work.library != "torch":
                continue
            lane = self.lanes.of(Frame(function, None, None, 0), one, work.stream)
            for register in work.reads if lane.kind == NAMED else ():
                is_given = self._is_given(function, register, set()) and not self._is_seen(function, register)
                if is_given or self._is_of_module(function, register):
                    yield GivenUse(function, one, work, lane, register)

    def _releasing(self) -> set[Unit]:
        """The files that release the storage of tensors, which all of their views share."""
        calls = self.transfer.sites({"release"})
        return {
            call.function.unit
            for call in calls
            if any(isinstance(action, Released) and action.is_shared for action in self.transfer.of(call.function, call.instruction))
        }

    def _is_seen(self, function: Function, register: int) -> bool:
        """Whether known code allocates the tensor: it is followed from there."""
        return any(isinstance(value, Memory) and value.space != "unknown" for value in self.transfer.values(function, register))

    def _is_of_module(self, function: Function, register: int) -> bool:
        """Whether a tensor is a parameter of modules: these were moved to the device on the stream that was current, unless the code in
        view says that it was another one, or that the parameters have got other memory since."""
        shared = self.transfer.shared(function, register) if register >= 0 else []
        modules = [module for each in shared for module in self.parameters.modules(function, each)]
        return bool(modules) and not self._gives_memory and all(self._is_moved_as_current(*module) for module in modules)

    def _is_moved_as_current(self, function: Function, module: int) -> bool:
        """Whether nothing in view says that a module is on the host, or was moved on a stream that was chosen."""
        for origin in self.transfer.one_of(Origins, self.transfer).of_parts(function, module):
            holder, made = origin.known.function, origin.known.function.definitions[origin.known.register]
            is_chosen = made is not None and made in holder.homes and self.lanes.currents.at(holder, made) is not None
            if origin.space == "host" or is_chosen:
                return False
        return True

    @cached_property
    def _gives_memory(self) -> bool:
        """Whether the program gives tensors other memory under a stream that it has chosen."""
        names = self.transfer.replacing
        units = dict.fromkeys(unit for name in sorted(names) for unit in self.transfer.facts.program.mentioning(name) if not unit.is_cpp)
        stores = ((function, one) for unit in units for function in unit.functions for one in function.by_opcode[op.SET_ATTR])
        given = [(function, one) for function, one in stores if function.text(one[3]) in names]
        given += [(call.function, call.instruction) for call in self.transfer.sites({"release"})]
        return any(self.lanes.currents.at(function, one) is not None and not self._lets_go(function, one) for function, one in given)

    def _lets_go(self, function: Function, one: Instruction) -> bool:
        """Whether a call resizes a storage to nothing."""
        return any(isinstance(action, Released) and action.is_shared for action in self.transfer.of(function, one))

    def _is_given(self, function: Function, register: int, seen: set[tuple[Function, int]]) -> bool:
        """Whether a tensor, or what holds it, is a parameter; of an object's own tensors nobody knows where they were allocated."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or (function, register) in seen:
            return False
        seen.add((function, register))
        if one[0] == op.PARAM:
            return one[3] > 0 or not function.has_receiver
        if one[0] in _HANDED_ON:
            return any(self._is_given(function, each, seen) for each in op.reads(one))
        if one[0] != op.LOAD:
            return False
        _, owner = cell = function.unit.ir.constants[one[3]]
        around = function.unit.function(owner)
        stores = [each for each in around.by_opcode[op.STORE] if around.unit.ir.constants[each[2]] == cell]
        return bool(stores) and all(self._is_given(around, each[3], seen) for each in stores)
