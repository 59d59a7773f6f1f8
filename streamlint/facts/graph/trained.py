"""Modules that a framework's trainer runs: ``Trainer(model=net).train()`` calls ``net.forward`` in each step, in unknown code."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import selected
from streamlint.facts.code.objects import ClassObject, External, Instance
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import StepRow, last_part

_ESCAPES = frozenset({op.SET_ATTR, op.RETURN, op.STORE, op.SET_NAME, op.CALL, op.BUILD, op.APPEND})
"""What takes an object to where it is not followed."""


def trained(facts: Facts) -> Iterator[tuple[Function, StepRow]]:
    """The methods of modules of the program that trainers call in each step, with the row that says so."""
    rows = facts.frameworks.trainers
    ends = {last_part(name) for row in rows for name in row.names}
    names = sorted(one for one in set(facts.program.identifiers) if any(fnmatch.fnmatchcase(one, end) for end in ends))
    units = {unit.number: unit for name in names for unit in facts.program.mentioning(name) if not unit.is_cpp}
    for _, unit in sorted(units.items()):
        for function in unit.functions:
            for one in function.by_opcode[op.CALL]:
                row = _row(facts, function, one, rows)
                if row is not None and _starts(function, one, row):
                    yield from ((method, row) for method in _methods(facts, function, one, row))


def _row(facts: Facts, function: Function, one: Instruction, rows: Iterable[StepRow]) -> StepRow | None:
    """The row of a call that makes a trainer."""
    named: list[str] = []
    for value in facts.values(function, one[3]).values:
        if isinstance(value, External):
            named.append(value.name)
        elif isinstance(value, ClassObject):
            named += facts.hierarchy.libraries(value.definition)
    return next((row for row in rows if any(row.covers(name, True) for name in named)), None)


def _starts(function: Function, made: Instruction, row: StepRow) -> bool:
    """Whether a trainer is started where it is made, or may be elsewhere."""
    seen: set[int] = set()
    waiting = [made[2]]
    while waiting:
        register = waiting.pop()
        if register in seen or register < 0:
            continue
        seen.add(register)
        for use in function.uses[register]:
            is_kept = use[0] in _ESCAPES and not (use[0] == op.SET_ATTR and use[4] != register)
            if is_kept or (use[0] == op.INVOKE and use[3] == register and function.text(use[4]) in row.started):
                return True
            waiting += [use[2]] if use[0] == op.PHI else []
    return False


def _methods(facts: Facts, function: Function, one: Instruction, row: StepRow) -> Iterator[Function]:
    """The methods of what a trainer is given that it calls in each step."""
    registers = selected(function, one, row.of) if row.of is not None else ()
    given = (value for register in registers for value in facts.values(function, register).values)
    for module in (value.definition for value in given if isinstance(value, Instance)):
        for name in row.methods:
            found = facts.hierarchy.lookup(module, name)
            yield from found[1] if found is not None else ()
