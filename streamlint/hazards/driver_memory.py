"""Libraries that keep no pool: each array of theirs is memory that the driver allocates, and frees with the last reference."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant, External
from streamlint.facts.files.program import Unit
from streamlint.facts.values.containers import put_by
from streamlint.ir import opcodes as op
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer


class DriverMemory:
    """Asks what a program sets about the memory of its libraries."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts

    def has_allocator(self, library: str) -> bool:
        """Whether the program gives a library another allocator."""
        return any(call.row.library == library for call in self._settings)

    def serves(self, library: str, unit: Unit) -> bool:
        """Whether a library has no pool in a file."""
        return (library, self.facts.program.group(unit)) in self._without_pool

    def units(self) -> Iterator[Unit]:
        """The files of Python in which a library may have no pool."""
        units = {unit.number: unit for library in self.libraries for unit in self.facts.program.mentioning(library)}
        yield from (unit for _, unit in sorted(units.items()) if not unit.is_cpp)

    @cached_property
    def libraries(self) -> frozenset[str]:
        """The libraries that have no pool in some file."""
        return frozenset(library for library, _ in self._without_pool)

    @cached_property
    def _settings(self) -> list[ModelledCall]:
        return [call for call in self.transfer.sites({"setting"}) if call.row.get("what") == "allocator"]

    @cached_property
    def _without_pool(self) -> frozenset[tuple[str, Unit]]:
        """Libraries, and groups of files that put none, or the driver, in the place of their pool, or stop it before it starts."""
        program, names = self.facts.program, self.facts.models.marked("stops-pool")
        units = {unit for name in names for unit in program.mentioning(name) if not unit.is_cpp}
        found = {("torch", program.group(unit)) for unit in units if any(self._stops(function, names) for function in unit.functions)}
        found |= {(call.row.library, program.group(call.function.unit)) for call in self._settings if self._asks_driver(call)}
        return frozenset(found)

    def _asks_driver(self, call: ModelledCall) -> bool:
        """Whether an allocator is set that is none, or a function of the driver's."""
        register = call.one("value")
        for value in call.values(register) if register is not None else ():
            row = self.facts.row_of(value) if isinstance(value, External) else None
            if (isinstance(value, Constant) and not value.value) or (row is not None and row.effect == "alloc"):
                return True
        return False

    def _stops(self, function: Function, names: frozenset[str]) -> bool:
        """Whether each call of a function sets a variable of the environment that has one of some names."""
        for one in (*function.by_opcode[op.SET_ITEM], *function.by_opcode[op.INVOKE]):
            of = next((container for container, key, _, _ in put_by(function, one) if key in names), op.NONE)
            held = self.transfer.values(function, of) if of != op.NONE else ()
            if any(isinstance(value, External) and value.name in self.facts.models.marked("environment") for value in held):
                return function.control.post_dominates(function.blocks[one], 0)
        return False
