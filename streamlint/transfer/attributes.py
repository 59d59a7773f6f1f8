"""The attributes of the program whose rows have an effect."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from streamlint.facts.code.objects import LibraryObject, Site
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.transfer.transfer import Transfer


def attribute_sites(transfer: Transfer, effects: Collection[str]) -> Iterator[tuple[Site, Row, str]]:
    """The places where attributes of libraries' objects are read whose rows have one of some effects, with the rows and their names."""
    facts = transfer.facts
    names = facts.models.attributes_with(*sorted(effects))
    units = {unit.number: unit for name in names for unit in facts.program.mentioning(name) if not unit.is_cpp}
    for _, unit in sorted(units.items()):
        for function in unit.functions:
            for one in function.by_opcode[op.ATTR]:
                name = function.text(one[4])
                for value in transfer.values(function, one[3]) if name in names else ():
                    row = facts.models.member(value.type, name) if isinstance(value, LibraryObject) else None
                    if row is not None and row.effect in effects:
                        yield Site(function, one), row, row.names[0]
                        break
