"""SL019: copies between devices in whole programs that never enable peer access.

Absence is asked of everything known, and only of a program that is whole: its ``main`` is there, and it calls and includes no
unknown code that could prepare the devices.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.build_files import build_root, lies_beside
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.facts.files.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import POINTEE, Element, Key, Place, Places
from streamlint.support.memo import memoized
from streamlint.transfer.actions import Copied
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.origins import Origins
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import operand_of
from streamlint.waits.questions import alike

_PREPARING = ("torch/", "ATen/", "c10/", "rmm/", "cupy/", "nccl", "nvshmem", "ucp/", "ucs/", "cufftXt", "cublasXt", "raft/", "cuda/")
"""Headers of libraries that enable peer access, or copy between devices themselves."""
_OWN_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_SMALL = 65_536
_ARITHMETIC = {"<<": int.__lshift__, "*": int.__mul__, "+": int.__add__, "-": int.__sub__}


class PeerCopy(NamedTuple):
    """A copy between devices, and where its program begins."""

    copy: ModelledCall
    begin: Site


class PeerCopies:
    """Finds the unprepared copies between devices."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.places = transfer.one_of(Places, transfer.facts)
        self.origins = transfer.one_of(Origins, transfer)

    def find(self) -> Iterator[PeerCopy]:
        """The copies of the program."""
        files = {unit for unit in self.facts.program.units.values() if unit.is_cpp}
        for call in self.transfer.sites(frozenset({"copy"}), among=files):
            function = call.function
            if function.code.name in ("__init__", "__del__"):
                continue
            for action in self.transfer.of(function, call.instruction):
                if isinstance(action, Copied) and self._is_between(call, action) and not self._is_small(call):
                    begin = self._begin(function.unit)
                    if begin is not None:
                        yield PeerCopy(call, begin)

    # --- copies

    def _is_between(self, call: ModelledCall, copied: Copied) -> bool:
        """Whether a copy goes from one device to another: two are named, and they differ, or each side was allocated on another one."""
        function = call.function
        if copied.direction == "peer":
            to, source = call.one("to_device"), call.one("from_device")
            return to is not None and source is not None and self._term(function, to) != self._term(function, source)
        if copied.direction not in ("d2d", "device<unknown", "unknown<device", "unknown<unknown"):
            return False
        ends = {self._device(function, call.instruction, side) for side in (copied.target, copied.source)}
        return len(ends) == 2 and None not in ends

    def _term(self, function: Function, register: int) -> object:
        constant = function.constant(register)
        return constant if constant is not None else alike(function, register)

    def _device(self, function: Function, copy: Instruction, register: int, height: int = 4) -> object:
        """The device on which a pointer of a function was allocated: the one that was set before, by all that may have allocated it, and
        by all calls of the function that is given it."""
        if register < 0:
            return None
        place = self.places.of(function, register)
        if place.root[0] == "parameter" and not place.path and height:
            calls = [(caller, call) for caller, call in self.facts.call_places(function) if self.transfer.enters(caller, call, function)]
            given = [(caller, call, operand_of(caller, call, function, int(str(place.root[1])))) for caller, call in calls]
            found = {self._device(caller, call, -1 if each is None else each, height - 1) for caller, call, each in given}
            return found.pop() if len(found) == 1 else None
        allocations = [one for one in function.by_opcode[op.CALL] if one is not copy and self._allocates(function, one, place)]
        devices = {self._set_before(function, one) for one in allocations} or set(self._devices_behind(function, register))
        return devices.pop() if len(devices) == 1 else None

    def _devices_behind(self, function: Function, register: int) -> Iterator[object]:
        """The devices that were set by number where a pointer comes from, over members, elements and calls; None where one is not known."""
        for origin in self.origins.of(function, register):
            holder, one = origin.known.function, origin.known.function.definitions[origin.known.register]
            is_made = one is not None and any(call.row.effect == "alloc" for call in self.transfer.modelled(holder, one))
            device = self._set_before(holder, one) if one is not None and is_made else None
            yield device if isinstance(device, int) else None

    def _allocates(self, function: Function, one: Instruction, place: Place) -> bool:
        for call in self.transfer.modelled(function, one):
            into = call.one("into") if call.row.effect == "alloc" else None
            if into is not None and _may_be(self.places.of(function, into).behind(POINTEE), place):
                return True
        return False

    def _set_before(self, function: Function, allocation: Instruction) -> object:
        """The device that is current at an instruction, if its function has set one on each way there."""
        for one in function.ahead(allocation):
            for call in self.transfer.modelled(function, one) if one[0] == op.CALL else ():
                register = call.one("value") if call.row.get("what") == "device" else None
                if register is not None:
                    return self._term(function, register)
        return None

    def _is_small(self, call: ModelledCall) -> bool:
        register = call.one("bytes")
        size = self._number(call.function, register) if register is not None else None
        return size is not None and size <= _SMALL

    def _number(self, function: Function, register: int) -> int | None:
        """What an expression of constants is."""
        one = function.definitions[register] if register >= 0 else None
        if one is not None and one[0] == op.BINARY and function.text(one[3]) in _ARITHMETIC:
            first, second = (self._number(function, each) for each in one[4:6])
            return None if first is None or second is None else _ARITHMETIC[function.text(one[3])](first, second)
        constant = function.constant(register)
        return constant if isinstance(constant, int) else None

    # --- programs

    @memoized
    def _begin(self, unit: Unit) -> Site | None:
        """Where the program of a file begins, if it is whole and no code in it prepares copies between devices."""
        linked = self._linked(unit)
        begins = [site for one in linked if (site := _main(one)) is not None]
        is_whole = bool(begins) and all(self._is_closed(one) for one in linked) and self._preparing.isdisjoint(linked)
        return begins[0] if is_whole else None

    def _linked(self, unit: Unit) -> list[Unit]:
        """What may be in one program with a file, itself first: what is known under its build root, but for other programs."""
        files = [one for one in self.facts.program.units.values() if one.is_cpp and one is not unit and _built_together(one, unit)]
        if _main(unit) is not None:
            files = [one for one in files if _main(one) is None]
        return [unit, *files]

    @cached_property
    def _preparing(self) -> set[Unit]:
        """The files that enable peer access, ask for it, or open pools to other devices."""
        files = {unit for unit in self.facts.program.units.values() if unit.is_cpp}
        calls = self.transfer.sites(frozenset({"setting"}), among=files)
        return {call.function.unit for call in calls if call.row.get("what") == "peer-access"}

    def _is_closed(self, unit: Unit) -> bool:
        """Whether a file calls and includes nothing that could prepare the devices in unknown code."""
        if any(include.startswith(_PREPARING) for include in unit.ir.includes):
            return False
        if not all(self._is_known(unit, include) for include in _OWN_INCLUDE.findall(unit.source.text)):
            return False
        return not any(self._leads_away(function, one) for function in unit.functions for one in function.by_opcode[op.CALL])

    def _is_known(self, unit: Unit, include: str) -> bool:
        """Whether a header of the project is read, or is there to be read."""
        ending = "/" + include.lstrip("./")
        return any(path.endswith(ending) for path in self.facts.program.units) or lies_beside(unit.path, include)

    def _leads_away(self, function: Function, one: Instruction) -> bool:
        """Whether a function is called that the project declares and does not define."""
        name = function.dotted(one[3]).rpartition("::")[2]
        if not name or name not in self._declared:
            return False
        return not self.transfer.edges(function, one) and all(call.row is None for call in self.transfer.libraries(function, one))

    @cached_property
    def _declared(self) -> frozenset[str]:
        units = (unit for unit in self.facts.program.units.values() if unit.is_cpp)
        return frozenset(one.qualname.rpartition("::")[2] for unit in units for one in unit.ir.declared)


def _main(unit: Unit) -> Site | None:
    """Where a file defines ``main``."""
    for one in unit.body.by_opcode[op.FUNCTION] if unit.is_cpp else ():
        inner = unit.function(one[3])
        if inner.code.name == "main" and not inner.code.class_name:
            return Site(unit.body, one)
    return None


def _may_be(made: Place, used: Place) -> bool:
    """Whether memory that was stored at a place may be what is read at another: an element that a loop counts may be any."""
    if made.root != used.root or len(made.path) != len(used.path):
        return False
    return all(one == other or _is_counted(one, other) for one, other in zip(made.path, used.path, strict=True))


def _is_counted(one: Key, other: Key) -> bool:
    return isinstance(one, Element) and isinstance(other, Element) and not (isinstance(one.key, int) and isinstance(other.key, int))


def _built_together(one: Unit, other: Unit) -> bool:
    """Whether two files stand under one build root, or one's root is above the other's."""
    roots = sorted((build_root(one.path), build_root(other.path)), key=len)
    return roots[0] == roots[1] or roots[1].startswith(roots[0].rstrip(os.sep) + os.sep)
