"""Memory that is on the host because a branch has asked so of the device that it is made on: ``if device == "cpu"``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import opcodes as op
from streamlint.transfer.carried import Carriers
from streamlint.transfer.transfer import Transfer
from streamlint.waits.questions import EQUAL, conditions


class Asked(NamedTuple):
    """A condition that compares a device with a word: ``cpu`` or ``cuda``."""

    device: int
    word: str
    is_equal: bool

    @property
    def on_host(self) -> bool:
        """Its truth where the device is the host."""
        return (self.word == "cpu") == self.is_equal


class AskedDevices:
    """Asks what branches say of devices."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.carriers = transfer.one_of(Carriers, transfer)

    def is_on_host(self, site: Site, register: int) -> bool:
        """Whether all that made the memory in a register made it on a device of which the branches around an instruction of the same
        function say that it is the host."""
        hosts = set(self._hosts(site)) if register >= 0 and not site.function.is_cpp else set()
        return bool(hosts) and self.is_made_on(site.function, register, hosts.__contains__)

    def asks(self, function: Function, condition: int) -> Asked | None:
        """The device of which a condition asks whether it is the host, or a GPU; None of one that asks something else."""
        one = function.definitions[condition] if condition >= 0 else None
        if one is None or one[0] != op.COMPARE or function.text(one[3]) not in EQUAL:
            return None
        for device, word in (one[4:6], one[5:3:-1]):
            kind = str(function.constant(word)).partition(":")[0]
            if kind in ("cpu", "cuda"):
                made = function.definitions[device] if device >= 0 else None
                is_type = made is not None and made[0] == op.ATTR and function.text(made[4]) == "type"
                return Asked(made[3] if made is not None and is_type else device, kind, EQUAL[function.text(one[3])])
        return None

    def is_made_on(self, function: Function, register: int, is_meant: Callable[[int], bool]) -> bool:
        """Whether all that made the memory in a register made it in the same function, on a device that is meant by its register."""
        sources = self.carriers.sources(function, register)
        return bool(sources) and all(
            source.function is function and any(map(is_meant, self._devices(function, source.register))) for source in sources
        )

    def _hosts(self, site: Site) -> Iterator[int]:
        """The registers of devices that are the host where an instruction stands."""
        function = site.function
        for condition, holds in conditions(function, function.blocks[site.instruction]):
            asked = self.asks(function, condition)
            if asked is not None and asked.word == "cpu" and asked.is_equal == holds:
                yield asked.device

    def _devices(self, function: Function, register: int) -> Iterator[int]:
        """The devices that calls are told to make memory on, or the memory whose device they take."""
        made = function.definitions[register] if register >= 0 else None
        for call in self.transfer.modelled(function, made) if made is not None and made[0] in (op.CALL, op.INVOKE) else ():
            if call.row.effect == "factory":
                yield from call.all("device") or call.all("like")
