"""What hangs on a branch: numbers and messages, or more."""

from __future__ import annotations

import pytest
from facts.programs import facts_of, function

from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.repetition.effects import Effects
from streamlint.ir import opcodes as op
from streamlint.waits.arms import chosen
from streamlint.waits.origins import ModelFacts
from streamlint.waits.regions import WaitRegions

HARMLESS = {
    "a number": ("kept = 1 if given > 3 else 2\n    return kept", 1),
    "a count": ("count = 0\n    for one in rows:\n        if one > given:\n            count += 1\n    return count", 1),
    "a message": ("if given > 3:\n        print(rows)\n    return rows", 0),
}
MORE = {
    "a call": "if given > 3:\n        rows.sort()\n    return rows",
    "one of two objects": "kept = rows if given > 3 else [rows]\n    return kept",
    "the way out of a loop": "for one in rows:\n        if one > given:\n            break\n    return rows",
    "the rest of a round": "for one in rows:\n        if one > given:\n            continue\n        rows.sort()\n    return rows",
}


def registers(body: str) -> tuple[int, ...] | None:
    """What hangs on the comparison of a function."""
    facts = ModelFacts(facts_of(a=f"def f(given, rows):\n    {body}\n").program)
    found = function(facts, "a", "f")
    compared = found.by_opcode[op.COMPARE][0]
    branch = next(one for one in found.by_opcode[op.BRANCH] if one[2] == compared[2])
    return chosen(facts, WaitRegions(Effects(CallGraph(facts)), True).body(found), branch)


@pytest.mark.parametrize("name", HARMLESS)
def test_numbers_and_messages(name: str) -> None:
    body, count = HARMLESS[name]
    found = registers(body)
    assert found is not None
    assert len(found) == count


@pytest.mark.parametrize("name", MORE)
def test_more_than_that(name: str) -> None:
    assert registers(MORE[name]) is None
