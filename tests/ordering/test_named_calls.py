"""Which libraries a call is of is known from what is called alone."""

from __future__ import annotations

import pytest

from streamlint.facts.graph.call_graph import CallGraph
from streamlint.ir import opcodes as op
from streamlint.transfer.transfer import Transfer
from tests.facts.programs import facts_of, function

TEXT = """
import torch

class Kept:
    def __init__(self, x):
        self.x = x

def keep(x):
    return x.cuda()

def run(x, other):
    made = {call}(work(x))
    return made

def work(x):
    return x + 1
"""


@pytest.mark.parametrize(
    ("call", "named", "entered"),
    [("Kept", [], ["Kept.__init__"]), ("keep", [], ["keep"]), ("torch.sum", ["torch.*"], []), ("other.item", ["torch.Tensor.item"], [])],
)
def test_what_a_call_is_given_is_solved_only_for_what_it_enters(call: str, named: list[str], entered: list[str]) -> None:
    facts = facts_of(main=TEXT.format(call=call))
    run, transfer = function(facts, "main", "run"), Transfer(CallGraph(facts))
    one = next(one for one in (*run.by_opcode[op.CALL], *run.by_opcode[op.INVOKE]) if one[2] == run.by_opcode[op.RETURN][0][2])
    given = facts.register(facts.base(run), one[-1])
    known = transfer.libraries(run, one)
    assert not given.values
    assert [each.row.names[0] for each in known if each.row is not None] == [name for name in named if "other" not in call]
    assert [each.row.names[0] for each in transfer.modelled(run, one)] == named
    assert [edge.callee.name for edge in transfer.edges(run, one)] == entered
