"""The files in which methods of a library's objects can matter: those that make such objects, or that use what makes them.

Methods such as ``start``, ``get`` and ``put`` have names that most files mention; what makes threads and queues is rare.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.files.program import Unit
from streamlint.ir import opcodes as op
from streamlint.models import Models
from streamlint.transfer.transfer import Transfer

_COMMON = frozenset({"main", "run", "__init__", "__call__", "forward", "start", "<module>"})


def units_near(transfer: Transfer, effects: Collection[str]) -> set[Unit]:
    """The files that mention what makes the objects whose methods have some effects, or the functions and classes that do so."""
    tables: tuple[Models, ...] = (transfer.facts.models, transfer.facts.cpp_models)
    makers = frozenset[str]().union(*(models.gathered(_makers, frozenset(effects)) for models in tables))
    program = transfer.facts.program
    near = {unit for name in makers & program.identifiers for unit in program.mentioning(name)}
    users = {name for unit in near for name in _users(unit, makers)}
    return near | {unit for name in users - _COMMON for unit in program.mentioning(name)}


def _makers(models: Models, effects: Collection[str]) -> frozenset[str]:
    """The last parts of the names of functions and types that give objects with methods of some effects, and of plain functions."""
    owners: set[str] = set()
    found: set[str] = set()
    for name, row in models.calls.items():
        if row.effect in effects:
            owner = name.replace("::", ".").rpartition(".")[0]
            if models.type_named(owner) is not None:
                owners.add(owner)
            else:
                found.add(_last(name))
    for name in models.types:
        if not owners.isdisjoint(models.lineage(name)):
            owners.add(name)
            found.add(_last(name))
    return frozenset(found.union(_last(name) for name, row in models.calls.items() if row.get("type") in owners))


def _users(unit: Unit, makers: Collection[str]) -> Iterator[str]:
    """The functions and classes of a file that make such objects, and the classes that derive from theirs."""
    yield from (one.name for one in unit.ir.classes if any(_last(base) in makers for base in one.bases))
    for function in unit.functions:
        for opcode in (op.CALL, op.INVOKE, op.CONSTRUCT):
            if any(last_name(function, one) in makers for one in function.by_opcode[opcode]):
                yield _user(function)
                break


def _user(function: Function) -> str:
    method = function.method
    return method.owner.ir.name if method is not None and method.owner is not None else function.code.name


def _last(name: str) -> str:
    return name.replace("::", ".").rpartition(".")[2]
