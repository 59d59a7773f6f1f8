"""Kernels that write memory which the host reads as it is: managed, or page-locked. They fill it as a copy to the host would."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Memory, Site
from streamlint.facts.files.program import Unit
from streamlint.facts.graph.call_graph import LibraryCall
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.ordering.memory.storage import Storages
from streamlint.ordering.places.places import Places
from streamlint.transfer.actions import NULL, Copied, Stream
from streamlint.transfer.launches import Launches
from streamlint.transfer.modelled import stream_held
from streamlint.transfer.transfer import Transfer

KERNEL = "kernel"
"""The direction of what a kernel writes."""
_DEEPEST = 4
_SHARED = frozenset({"managed", "pinned"})


def is_shared(value: Memory) -> bool:
    """Whether a kernel and the host have the same memory."""
    return value.space == "managed" or value.pinning == "managed" or (value.pinning == "pinned" and value.space != "device")


class KernelWrites:
    """Finds the launches of a program in C++ whose kernels write such memory, of their bodies and the types of their parameters."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.launches = transfer.one_of(Launches, transfer)
        self.storages = Storages(transfer, places, self.launches)

    def find(self) -> Iterator[tuple[Site, Copied]]:
        """The launches, each as a copy that fills the memory."""
        making = {call.function.unit for call in self.transfer.sites({"alloc"}, where=_makes_shared) if call.function.is_cpp}
        near: dict[Unit, None] = {}
        for unit in making:
            near.update(dict.fromkeys(self.transfer.facts.program.cpp.visible(unit)))
        for unit in sorted(near, key=lambda one: one.number):
            if self.transfer.asked is None or unit in self.transfer.asked:
                for function in unit.functions:
                    for one in function.by_opcode[op.LAUNCH]:
                        yield from self._of(function, one)

    def _of(self, function: Function, one: Instruction) -> Iterator[tuple[Site, Copied]]:
        for queued in self.launches.at(function, one):
            for register in map(partial(self._host_pointer, function), queued.writes if queued.is_known else ()):
                values = [value for value in self.transfer.values(function, register) if isinstance(value, Memory)]
                if values and all(map(is_shared, values)):
                    stream = Stream(NULL, library=queued.library)
                    if queued.operand >= 0:
                        held = list(self.transfer.values(function, queued.operand))
                        stream = stream_held(function, queued.operand, held, queued.library)
                    row = self.transfer.facts.cpp_models.calls["cudaMemcpyAsync"]
                    call = LibraryCall(one, row, queued.name, None)
                    yield Site(function, one), Copied(register, op.NONE, stream, True, op.NONE, KERNEL, call)

    def _host_pointer(self, function: Function, register: int) -> int:
        """The host's pointer to memory of which a register holds the device's."""
        for _ in range(_DEEPEST):
            inner = self.storages.inside(function, register)
            if inner is None:
                break
            register = inner
        return register


def _makes_shared(row: Row) -> bool:
    return row.get("memory") in _SHARED
