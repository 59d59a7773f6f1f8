"""What is made once and kept: a branch asks an attribute or a container for what it stores there."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind
from streamlint.ir import opcodes as op

Place = tuple[str, str]
_MOST = 30


def read_from(function: Function, register: int) -> Iterator[Place]:
    """The attributes and containers that a value is computed from."""
    for number, one in enumerate(behind(function, [register], op.reads)):
        if number > _MOST:
            return
        if one[0] == op.ATTR:
            yield "attribute", function.text(one[4])
        elif one[0] in (op.INVOKE, op.ITEM):
            yield from _named(function, one[3])
        elif one[0] == op.COMPARE and function.text(one[3]) in ("in", "not in"):
            yield from _named(function, one[5])


def _named(function: Function, register: int) -> Iterator[Place]:
    name = function.dotted(register)
    if name:
        yield "container", name


def stored_in(function: Function, register: int) -> Iterator[Place]:
    """The attributes and containers that a value, or what is computed from it by joins, is stored in."""
    waiting, seen = [register], set[int]()
    while waiting and len(seen) < _MOST:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        for use in function.uses[each]:
            if use[0] in (op.PHI, op.COPY):
                waiting.append(use[2])
            elif use[0] == op.SET_ATTR and use[4] == each:
                yield "attribute", function.text(use[3])
            elif use[0] == op.SET_ITEM and use[4] == each:
                yield from _named(function, use[2])
