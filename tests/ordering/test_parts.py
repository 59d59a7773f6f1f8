"""Parts of memory, and indices whose slots come again."""

from __future__ import annotations

from functools import partial
from textwrap import dedent

from streamlint.facts.code.functions import Function
from streamlint.facts.files.program import Program, SourceFile
from streamlint.facts.graph.facts import Facts
from streamlint.frontends import python
from streamlint.ir import ModuleIR
from streamlint.ir import opcodes as op
from streamlint.ir.modules import lower
from streamlint.ordering.memory.parts import begins, length, lies_in, plus, sum_of
from streamlint.ordering.paths.turns import Turns
from streamlint.ordering.places.places import Places


def _lowered(text: str) -> ModuleIR:
    return lower(python.lower("a.py", text))


def _function(text: str) -> tuple[Function, Facts]:
    text = dedent(text)
    facts = Facts(Program([SourceFile("a.py", "python", text, partial(_lowered, text))]))
    return next(one for one in facts.program.units["a.py"].functions if one.name == "f"), facts


def test_sums_are_compared_by_their_products() -> None:
    function, _ = _function("def f(n, m):\n    return (n + m) * 2 - n * 2 - 2 * m")
    returned = function.by_opcode[op.RETURN][0][2]
    assert sum_of(function, returned) == ()


def test_the_second_half_does_not_lie_in_the_first() -> None:
    function, _ = _function("def f(x, n):\n    return x[:n], x[n:], x[0], x[1:n]")
    first, second, begin, inner = function.by_opcode[op.ITEM]
    size = length(function, first)
    assert size == sum_of(function, 1)
    assert not lies_in(function, begins(function, second), size)
    assert lies_in(function, begins(function, begin), size)
    assert lies_in(function, begins(function, inner), None)
    assert plus(begins(function, second), begins(function, first), -1) == begins(function, second)


def test_slots_come_again_where_an_index_goes_round() -> None:
    function, facts = _function(
        """
        def f(slots, rows, own):
            for turn, row in enumerate(rows):
                slots[turn % 3]
                slots[turn & 1]
                slots[own]
                slots[0]
                slots[turn]
                slots[pick(turn)]
        """
    )
    places, turns = Places(facts), Turns()
    found = [turns.stays(function, places.of(function, one[2])) for one in function.by_opcode[op.ITEM]]
    assert found == [True, True, True, True, False, False]
