"""Kernels that write memory which the host reads as it is, managed or page-locked, and kernels that read page-locked memory.

Each is as good as a copy: to the host, or from it. A kernel that watches the memory is none, since the host means to reach it at work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Memory, Site
from streamlint.facts.files.device_code import DeviceCode
from streamlint.facts.files.program import Unit
from streamlint.facts.graph.call_graph import LibraryCall
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.ordering.memory.kernel_reads import KernelReads
from streamlint.ordering.memory.parts import Sum, begins, plus
from streamlint.ordering.memory.storage import Storages
from streamlint.ordering.places.places import Places
from streamlint.transfer.actions import NULL, Copied, Stream
from streamlint.transfer.launch_rows import Queued
from streamlint.transfer.launches import Launches
from streamlint.transfer.modelled import stream_held
from streamlint.transfer.transfer import Transfer

KERNEL = "kernel"
"""The direction of what a kernel reads or writes."""
_DEEPEST = 4
_SHARED = frozenset({"managed", "pinned"})


class Pointer(NamedTuple):
    """The host's pointer to memory, and how far behind it that begins which is meant; None where no offset is taken."""

    register: int
    offset: Sum | None


def is_shared(value: Memory) -> bool:
    """Whether a kernel and the host have the same memory."""
    return value.space == "managed" or value.pinning == "managed" or is_locked(value)


def is_locked(value: Memory) -> bool:
    """Whether memory is page-locked, and the host's."""
    return value.pinning == "pinned" and value.space != "device"


class KernelAccesses:
    """Finds the launches of a program in C++ whose kernels use such memory, of their bodies and the types of their parameters."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.launches = transfer.one_of(Launches, transfer)
        self.storages = Storages(transfer, places, self.launches)
        self._bodies = KernelReads(transfer.facts, transfer.one_of(DeviceCode, transfer.facts.program))

    def writes(self) -> Iterator[tuple[Site, Copied]]:
        """The launches whose kernels write the memory, each as a copy that fills it."""
        for site, queued in self._launched(_makes_shared):
            for register in queued.writes if queued.is_known else ():
                pointer = self._host_pointer(site.function, register)
                if self._is(site.function, pointer, is_shared):
                    yield site, self._copied(site, queued, pointer.register, op.NONE)

    def reads(self) -> Iterator[tuple[Site, Copied, Sum | None]]:
        """The launches whose kernels read the memory, each as a copy from it, with the offset of what it reads."""
        for site, queued in self._launched(_locks):
            for pointer in self._read(site.function, queued):
                yield site, self._copied(site, queued, op.NONE, pointer.register), pointer.offset

    def _read(self, function: Function, queued: Queued) -> list[Pointer]:
        """The page-locked memory that a kernel reads; none of one that watches some."""
        kernel = next(self.launches.kernels(function, queued.kernel), None)
        if kernel is None:
            return []
        found: list[Pointer] = []
        body = kernel.function
        for index, (register, parameter) in enumerate(zip(queued.given, kernel.parameters, strict=False)):
            pointer = self._host_pointer(function, register) if parameter.type is not None and parameter.type[2] else None
            if pointer is None or not self._is(function, pointer, is_locked):
                continue
            if body is not None and self._bodies.watches(body, index):
                return []
            if parameter.constant or (body is not None and self._bodies.reads(body, index)):
                found.append(pointer)
        return found

    def _launched(self, where: Callable[[Row], bool]) -> Iterator[tuple[Site, Queued]]:
        """The launches of kernels in and near the files that make such memory."""
        making = {call.function.unit for call in self.transfer.sites({"alloc"}, where=where) if call.function.is_cpp}
        near: dict[Unit, None] = {}
        for unit in making:
            near.update(dict.fromkeys(self.transfer.facts.program.cpp.visible(unit)))
        for unit in sorted(near, key=lambda one: one.number):
            if self.transfer.asked is None or unit in self.transfer.asked:
                for function in unit.functions:
                    for one in function.by_opcode[op.LAUNCH]:
                        yield from ((Site(function, one), queued) for queued in self.launches.at(function, one))

    def _is(self, function: Function, pointer: Pointer, kind: Callable[[Memory], bool]) -> bool:
        values = [value for value in self.transfer.values(function, pointer.register) if isinstance(value, Memory)]
        return bool(values) and all(map(kind, values))

    def _copied(self, site: Site, queued: Queued, target: int, source: int) -> Copied:
        function, one = site.function, site.instruction
        stream = Stream(NULL, library=queued.library)
        if queued.operand >= 0:
            stream = stream_held(function, queued.operand, list(self.transfer.values(function, queued.operand)), queued.library)
        call = LibraryCall(one, self.transfer.facts.cpp_models.calls["cudaMemcpyAsync"], queued.name, None)
        return Copied(target, source, stream, True, op.NONE, KERNEL, call)

    def _host_pointer(self, function: Function, register: int) -> Pointer:
        """The host's pointer to memory of which a register holds the device's."""
        offset: Sum | None = None
        for _ in range(_DEEPEST):
            inner = self.storages.inside(function, register)
            if inner is None:
                break
            one = function.definitions[register]
            if one is not None and one[0] in (op.BINARY, op.ADDRESS_ITEM):
                offset = plus(offset or (), begins(function, one))
            register = inner
        return Pointer(register, offset)


def _makes_shared(row: Row) -> bool:
    return row.get("memory") in _SHARED


def _locks(row: Row) -> bool:
    return row.get("memory") == "pinned"
