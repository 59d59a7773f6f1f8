"""SL035: kernels of an extension on PyTorch's current stream of the current device, where Python hands over a tensor of another device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind_copies
from streamlint.facts.code.objects import LibraryObject, Memory, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.ordering.threads.chosen_devices import ChosenDevices
from streamlint.ordering.threads.guarded_siblings import GuardedSiblings
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import argument_registers

_HIGHEST = 3
_STREAM = 9
"""Where the stream of a launch stands among the operands of its instruction."""


class UnguardedLaunch(NamedTuple):
    """A launch, where a tensor of another device was made, and the calls from Python to the launch, the outermost first.

    Where Python is out of view, ``guard`` is one of another function of the module.
    """

    launch: Site
    name: str
    made: Site | None
    calls: tuple[Site, ...]
    guard: Site | None


class ForeignStream(NamedTuple):
    """A current stream that Python hands to a kernel of unknown code, that call, and where its tensor of another device was made."""

    obtained: ModelledCall
    launch: Site
    made: Site


class UnguardedLaunches:
    """Finds such launches."""

    def __init__(self, transfer: Transfer, devices: ChosenDevices) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.devices = devices
        self.siblings = GuardedSiblings(transfer, devices)

    def find(self) -> Iterator[UnguardedLaunch]:
        """The first such launch of each function."""
        reported: set[Function] = set()
        for call in self.transfer.sites({"stream_of"}, where=_means_current):
            function = call.function
            if not function.is_cpp or function in reported or call.all("names_device") or self.devices.calls(function):
                continue
            launch = self._launch(call)
            if launch is None:
                continue
            found = next(self._tensors_passed(function, (), 0), None)
            guard = self.siblings.guard(function, launch) if found is None else None
            if found is not None or guard is not None:
                reported.add(function)
                name = function.dotted(launch[3]).rpartition("::")[2] or "kernel"
                made, calls = found if found is not None else (None, ())
                yield UnguardedLaunch(Site(function, launch), name, made, calls, guard)

    def streams(self) -> Iterator[ForeignStream]:
        """Python: current streams of the current device that are passed with a tensor of another one."""
        for call in self.transfer.sites({"stream_of"}, where=_means_current):
            function = call.function
            if function.is_cpp or call.all("names_device"):
                continue
            handles = self._handles(function, call.result)
            for one in (*function.by_opcode[op.CALL], *function.by_opcode[op.INVOKE]):
                given = {register for _, register in argument_registers(function, one)}
                if (
                    handles.isdisjoint(given)
                    or self.transfer.edges(function, one)
                    or any(True for _ in self.transfer.modelled(function, one))
                ):
                    continue
                graph = self._made(function, one)
                if graph is not None and not self.devices.is_chosen(function, one):
                    yield ForeignStream(call, Site(function, one), graph)
                    break

    def _is_unknown_call(self, function: Function, one: Instruction) -> bool:
        return not self.transfer.edges(function, one) and not any(True for _ in self.transfer.modelled(function, one))

    def _handles(self, function: Function, stream: int) -> set[int]:
        """The registers that hold a stream, its handle, or an object that was made of the handle alone."""
        found = {stream}
        for one in function.code.instructions():
            if one[0] in (op.COPY, op.ATTR) and one[3] in found:
                found.add(one[2])
            elif one[0] in (op.CALL, op.INVOKE):
                given = {register for _, register in argument_registers(function, one)}
                found |= {one[2]} if given and given <= found else set()
        return found

    def _launch(self, call: ModelledCall) -> Instruction | None:
        """A launch of the function on the stream that a call gives."""
        for one in call.function.by_opcode[op.LAUNCH]:
            if one[5] < 4:
                continue
            register = behind_copies(call.function, one[_STREAM])
            node = self.facts.values(call.function, register)
            streams = [value for value in node.values if isinstance(value, LibraryObject) and value.kind == "stream"]
            sites = [site for value in streams for site in node.trace(value)]
            if register == call.result or Site(call.function, call.instruction) in sites:
                return one
        return None

    def _tensors_passed(self, function: Function, calls: tuple[Site, ...], depth: int) -> Iterator[tuple[Site, tuple[Site, ...]]]:
        """Where Python makes a tensor on a device that is not the current one, and hands it to a function; with the calls from there."""
        for caller, call in self._callers(function) if depth < _HIGHEST else ():
            way = (Site(caller, call), *calls)
            if caller.is_cpp:
                if not self.devices.calls(caller):
                    yield from self._tensors_passed(caller, way, depth + 1)
                continue
            graph = self._made(caller, call)
            if graph is not None and not self.devices.is_chosen(caller, call):
                yield graph, way

    def _callers(self, function: Function) -> Iterator[tuple[Function, Instruction]]:
        """The calls of a function, those in Python included of a function in a string that is compiled by its name (``load_inline``)."""
        yield from self.transfer.callers(function)
        for call in self.transfer.sites({"extension"}) if function.unit.path.endswith((".py", ".ipynb")) else ():
            register, unit = call.one("functions"), call.function.unit
            definition = call.function.definitions[register] if register is not None and register >= 0 else None
            named = definition[4:] if definition is not None and definition[0] == op.BUILD else (register,) if register is not None else ()
            if unit.path == function.unit.path and function.code.name in {call.function.constant(each) for each in named}:
                for caller, one in unit.attribute_uses.get(function.code.name, ()):
                    if one[0] == op.INVOKE and self._is_result(caller, one[3], call):
                        yield caller, one

    def _is_result(self, function: Function, register: int, call: ModelledCall) -> bool:
        """Whether a register holds the module that a call has made, by the global name that it was stored under."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or one[0] != op.NAME:
            return one == call.instruction and function is call.function
        stored = function.unit.globals.get(function.text(one[3]), ())
        return any(holder is call.function and holder.definitions[each] == call.instruction for holder, each in stored)

    def _made(self, caller: Function, call: Instruction) -> Site | None:
        """Where an argument of a call was made on a device that is named, and is not the first."""
        for _, register in argument_registers(caller, call):
            node = self.facts.values(caller, register)
            sites = [site for value in node.values if isinstance(value, Memory) for site in node.trace(value)]
            one = caller.definitions[behind_copies(caller, register)] if register >= 0 else None
            for site in sites or ([Site(caller, one)] if one is not None else []):
                if self._is_made_elsewhere(site):
                    return site
        return None

    def _is_made_elsewhere(self, site: Site) -> bool:
        if site.instruction[0] not in (op.CALL, op.INVOKE):
            return False
        for call in self.transfer.modelled(site.function, site.instruction):
            for register in call.all("device") if call.row.effect in ("transfer", "factory") else ():
                named = set(self.devices.named(site.function, register))
                if ... not in named and self.devices.is_other(site.function, register):
                    return True
        return False


def _means_current(row: Row) -> bool:
    return row.get("names_device") is not None and row.get("which") == "current"
