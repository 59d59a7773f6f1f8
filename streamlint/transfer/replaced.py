"""Attributes of buffers that are assigned other memory: ``x.data = y``."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Memory
from streamlint.ir import Instruction
from streamlint.models import Models
from streamlint.transfer.actions import Released
from streamlint.transfer.language import Values


def replacing(models: Models) -> frozenset[str]:
    """The names of attributes of which an assignment gives a buffer other memory."""
    return frozenset(name.rpartition(".")[2] for name, row in models.attributes.items() if row.effect == "view" and row.get("replaces"))


def replaced(models: Models, function: Function, one: Instruction, values: Values) -> Iterator[Released]:
    """What an assignment to one of these attributes lets go of."""
    name = function.text(one[3])
    rows = (models.member(value.type, name) for value in values(function, one[2]) if isinstance(value, Memory))
    if any(row is not None and row.get("replaces") for row in rows):
        yield Released(one[2], name, False)
