"""Whether callers out of view may use a program: nobody does who is not shown, where it has entry points and is not packaged."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from streamlint.build_files import is_packaged
from streamlint.facts.program import Program, Unit
from streamlint.ir import opcodes as op

_MAIN, _NOTEBOOK = "__main__", ".ipynb"


def is_closed(unit: Unit) -> bool:
    """Whether a file belongs to an application: what it defines is called by the program in view alone."""
    return not unit.is_cpp and _has_entry(unit.program) and not is_packaged(unit.path)


def _has_entry(program: Program) -> bool:
    """Whether a file of the program is a notebook, or asks whether it is the one that is run."""
    if program not in _KNOWN:
        _KNOWN[program] = any(unit.path.endswith(_NOTEBOOK) or _asks(unit) for unit in program.units.values())
    return _KNOWN[program]


def _asks(unit: Unit) -> bool:
    body = unit.body
    return not unit.is_cpp and any(_MAIN in (body.constant(one[4]), body.constant(one[5])) for one in body.by_opcode[op.COMPARE])


_KNOWN: WeakKeyDictionary[Program, bool] = WeakKeyDictionary()
