"""What is on a device for sure, over any number of steps, each asked once."""

from __future__ import annotations

import pytest

from streamlint.facts.graph.call_graph import CallGraph
from streamlint.ir import opcodes as op
from streamlint.support.truths import Ask, Truths
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.uses import Uses
from tests.facts.programs import facts_of, function

DEEP = 60


def test_each_question_is_answered_once_and_a_cycle_alone_shows_nothing() -> None:
    leading = {0: (1, 2), 1: (0, 3), 2: (), 3: (4, 1), 4: (5,), 5: (), 6: (7,), 7: (6,)}
    asked: list[int] = []

    def rule(one: int, asks: Ask[int]) -> bool:
        asked.append(one)
        return one == 5 or any(asks(each) for each in leading[one])

    truths = Truths(rule)
    assert [truths.holds(one) for one in (6, 0, 2, 1, 7)] == [False, True, False, True, False]
    assert len(asked) <= len(leading) + sum(map(len, leading.values()))
    before = len(asked)
    assert truths.holds(3)
    assert len(asked) == before


@pytest.mark.parametrize(("begin", "there"), [("x.cuda()", True), ("x.cpu()", False), ("x", False)])
def test_work_out_of_view_on_what_was_brought_there_is_followed_over_any_number_of_ways(begin: str, there: bool) -> None:
    steps = "".join(f"    x = other.mix{number}(x, other.turn{number}(x))\n" for number in range(DEEP))
    facts = facts_of(main=f"import torch\nimport other\n\ndef run(x: torch.Tensor):\n    x = {begin}\n{steps}    return x\n")
    run = function(facts, "main", "run")
    assert Uses(Transfer(CallGraph(facts))).on_device(run, run.by_opcode[op.RETURN][0][2]) is there


def test_what_a_thread_is_given_is_no_answer_for_another_one() -> None:
    facts = facts_of(main="import torch\ndef work(x):\n    return x * 2\ndef run(y: torch.Tensor):\n    return y.cuda(), y.cpu()\n")
    run, work = function(facts, "main", "run"), function(facts, "main", "work")
    there, here = run.by_opcode[op.INVOKE]
    uses, times = Uses(Transfer(CallGraph(facts))), work.by_opcode[op.BINARY][0]
    found = []
    for each in (there, here, there):
        uses.under({(work, 0): (run, each[2])})
        found.append(bool(uses.at(work, times)))
    assert found == [True, False, True]
