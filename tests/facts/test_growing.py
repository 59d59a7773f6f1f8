"""Questions whose answers bring further values to what is being looked at: a loop over its values does not see them, and does not fail."""

from __future__ import annotations

from streamlint.facts.code.objects import Unknown
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.ir import opcodes as op
from streamlint.transfer.processes import Processes
from streamlint.transfer.transfer import Transfer
from tests.facts.programs import facts_of, function

TEXT = "def first(): pass\ndef second(): pass\ndef run(x):\n    act = first if x else second\n    return act\n"


def test_values_that_arrive_in_a_loop_over_values_do_not_end_it() -> None:
    facts = facts_of(main=TEXT)
    run = function(facts, "main", "run")
    register = run.by_opcode[op.RETURN][0][2]
    transfer = Transfer(CallGraph(facts))
    for value in transfer.values(run, register):
        facts.solver.add(facts.values(run, register), facts.objects(Unknown, f"behind {id(value)}"))
    found = []
    for callee in Processes(transfer).callables(run, register):
        facts.solver.add(facts.values(run, register), facts.objects(Unknown, callee.name))
        found.append(callee.name)
    assert found == ["first", "second"]
