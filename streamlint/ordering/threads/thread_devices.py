"""SL035: threads that never choose a device, and work on the current one, where those that start them have chosen another one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import LibraryObject, Site
from streamlint.facts.files.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.ordering.threads.chosen_devices import STREAMS, ChosenDevices
from streamlint.transfer.modelled import ModelledCall, is_null
from streamlint.transfer.spawns import THREAD, Spawn, Spawns
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.uses import WORK, Uses

_OF_DEVICE = frozenset({"alloc", "stream", "event"})
_WORKING = frozenset({"transfer", "factory", "module_to", "alloc", "stream", "event"})
_MEANING = frozenset({"synchronize", "stream_of", "device"})
_SPACES = frozenset({"device", "managed"})
_CURRENT = frozenset({"current", "null", "default"})
_FIRST, _STREAM = 6, 3
"""Where the configuration of a launch begins among its operands, and where the stream stands in it."""


def _names_device(row: Row) -> bool:
    return row.get("names_device") is not None


class StrayWork(NamedTuple):
    """Work of a thread on its first current device, the calls that lead to it, its start, and where that thread's starter chose."""

    work: Site
    calls: tuple[Site, ...]
    library: str
    name: str
    start: Site
    chosen: Site


class ThreadDevices:
    """Finds such work."""

    def __init__(self, transfer: Transfer, devices: ChosenDevices) -> None:
        self.transfer = transfer
        self.spawns = Spawns(transfer)
        self.devices = devices
        self.uses = Uses(transfer)

    def find(self) -> Iterator[StrayWork]:
        """The first work of each such thread."""
        reported: set[Site] = set()
        for spawn in self.spawns.all() if self.devices.is_any else ():
            if spawn.kind != THREAD or not spawn.roots:
                continue
            reached = list(self.spawns.processes.reached(list(spawn.roots)))
            found = self._first(spawn, reached)
            if found is None or found[0] in reported or self._chooses(spawn, reached):
                continue
            chosen = self.devices.at(spawn.start.function, spawn.start.instruction)
            if chosen is not None:
                reported.add(found[0])
                yield StrayWork(*found, spawn.start, chosen)

    # --- the thread

    def _chooses(self, spawn: Spawn, reached: list[tuple[Function, tuple[tuple[Function, Instruction], ...]]]) -> bool:
        """Whether a thread chooses a device somewhere for good, or may: its pool runs unknown code first."""
        if any(self.devices.lasts(call) for function, _ in reached for call in self.devices.calls(function)):
            return True
        pool = spawn.pool
        for call in self.transfer.modelled(pool.function, pool.instruction) if pool is not None else ():
            register = call.one("initializer")
            if register is not None:
                roots = list(self.spawns.processes.callables(call.function, register))
                return not roots or any(self.devices.calls(function) for function, _ in self.spawns.processes.reached(roots))
        return False

    def _is_scoped(self, way: tuple[tuple[Function, Instruction], ...], inside: set[Function]) -> bool:
        """Whether work is done where a device, or a stream of one, was chosen on the way there."""
        return any(
            self.devices.is_in_force(call, one) and not self._is_own_stream(call, inside)
            for function, one in way
            for call in self.devices.calls(function)
        )

    def _is_own_stream(self, call: ModelledCall, inside: set[Function]) -> bool:
        """Whether a call makes a stream current that the thread itself has made: that is one of the device itself."""
        register = call.one("stream") if call.row.effect in STREAMS else None
        if register is None:
            return False
        node = self.transfer.facts.values(call.function, register)
        sites = [site for value in node.values for site in node.trace(value)]
        return bool(sites) and all(site.function in inside for site in sites)

    def _first(
        self, spawn: Spawn, reached: list[tuple[Function, tuple[tuple[Function, Instruction], ...]]]
    ) -> tuple[Site, tuple[Site, ...], str, str] | None:
        self.uses.under(spawn.given)
        inside = {function for function, _ in reached}
        for function, calls in reached:
            if {"kernel", "device"} & function.code.flags:
                continue
            for one in function.code.instructions():
                found = self._work(function, one)
                if found is not None and not self._is_scoped((*calls, (function, one)), inside):
                    return Site(function, one), tuple(Site(*call) for call in calls), *found
        return None

    def _work(self, function: Function, one: Instruction) -> tuple[str, str] | None:
        """The library and the name of work that an instruction does on the current device."""
        if one[0] == op.LAUNCH:
            if not self._is_on_current_stream(function, one):
                return None
            return "cuda-runtime", function.dotted(one[3]).rpartition("::")[2] or "kernel"
        if function.unit in self._current_only:
            for use in self.uses.at(function, one):
                if use.kind == WORK and use.library in function.unit.models.marked("device-alone") and not self._fetches(function, one):
                    return use.library, use.name
        if one[0] not in (op.CALL, op.INVOKE) or not self._may_work(function, one):
            return None
        for call in self.transfer.modelled(function, one):
            if self._is_on_current(call):
                return call.row.library, call.name
        return None

    def _fetches(self, function: Function, one: Instruction) -> bool:
        """Whether a call brings an array to the host: that is done on the device of the array."""
        calls = self.transfer.modelled(function, one) if one[0] in (op.CALL, op.INVOKE) else ()
        effects = {call.row.effect if call.row.get("to") != "device" else "" for call in calls}
        return not effects.isdisjoint({"transfer", "copy", "read"})

    @cached_property
    def _current_only(self) -> frozenset[Unit]:
        program = self.transfer.facts.program
        return frozenset(
            unit
            for name in sorted(program.rows_of("python").marked("device-alone"))
            for unit in program.mentioning(name)
            if not unit.is_cpp
        )

    def _may_work(self, function: Function, one: Instruction) -> bool:
        """Whether a call may be one that works on the current device, by the way it is written, or by another name."""
        name = last_name(function, one)
        return name in self._names or (one[0] == op.CALL and name in function.unit.taken)

    @cached_property
    def _names(self) -> frozenset[str]:
        """The names of functions that may work on the current device."""
        return self.transfer.names(_WORKING) | self.transfer.names(_OF_DEVICE | _MEANING, _names_device)

    def _is_on_current_stream(self, function: Function, launch: Instruction) -> bool:
        """Whether a kernel runs on a stream of the current device: on the null stream, or PyTorch's current one. Others bring their
        device with them."""
        if launch[5] <= _STREAM:
            return True
        register = launch[_FIRST + _STREAM]
        values = list(self.transfer.values(function, register))
        streams = [value for value in values if isinstance(value, LibraryObject) and value.kind == "stream"]
        return is_null(function, register, values) or (bool(streams) and all(value.detail in _CURRENT for value in streams))

    def _is_on_current(self, call: ModelledCall) -> bool:
        """Whether a call works on the current device: it names none, or CUDA without a number."""
        row, effect = call.row, call.row.effect
        if row.get("names_device") is not None:
            return all(self.devices.is_open(call.function, register) for register in call.all("names_device"))
        is_alloc = effect == "alloc" and row.get("memory") in _SPACES and row.get("stream") is None
        if call.function.is_cpp:
            return row.library == "cuda-runtime" and (is_alloc or effect in _OF_DEVICE - {"alloc"})
        if is_alloc:
            return True
        if effect not in ("transfer", "factory", "module_to"):
            return False
        named = call.all("device")
        if not named:
            return effect in ("transfer", "module_to") and row.get("to") == "device"
        return call.device_spaces() == {"device"} and all(self.devices.is_open(call.function, register) for register in named)
