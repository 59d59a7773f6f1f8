"""Memory that is on the host because a branch has asked so of the device that it is made on: ``if device == "cpu"``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import opcodes as op
from streamlint.transfer.carried import Carriers
from streamlint.transfer.transfer import Transfer
from streamlint.waits.questions import conditions


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
            one = function.definitions[condition] if condition >= 0 else None
            if one is not None and one[0] == op.COMPARE and function.text(one[3]) == ("==" if holds else "!="):
                yield from (a for a, b in (one[4:6], one[5:3:-1]) if str(function.constant(b)).partition(":")[0] == "cpu")

    def _devices(self, function: Function, register: int) -> Iterator[int]:
        """The devices that calls are told to make memory on, or the memory whose device they take."""
        made = function.definitions[register] if register >= 0 else None
        for call in self.transfer.modelled(function, made) if made is not None and made[0] in (op.CALL, op.INVOKE) else ():
            if call.row.effect == "factory":
                yield from call.all("device") or call.all("like")
