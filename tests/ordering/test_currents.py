"""The current streams of functions."""

from __future__ import annotations

import pytest
from facts.programs import facts_of, function

from streamlint.facts.graph.call_graph import CallGraph
from streamlint.ir import opcodes as op
from streamlint.ordering.streams.streams import OF_THREAD, Currents
from streamlint.transfer.actions import NAMED
from streamlint.transfer.transfer import Transfer

SCOPE = "def f(scope, x):\n    with scope:\n        x.sum()\n"


@pytest.mark.parametrize(
    ("head", "kind"), [("import cupy\n", NAMED), ("import torch\n", None), ("import cupy, torch\n", None), ("import numpy\n", None)]
)
def test_what_cupy_enters_is_a_stream(head: str, kind: str | None) -> None:
    """Its streams are context managers; another library's context manager, of which nothing is known, is any."""
    facts = facts_of(a=head + SCOPE)
    used = function(facts, "a", "f")
    (call,) = used.by_opcode[op.INVOKE]
    current = Currents(Transfer(CallGraph(facts))).at(used, call)
    assert (current.kind if current is not None else None) == kind


def test_what_a_call_gives_is_made_to_be_entered() -> None:
    facts = facts_of(a="import cupy\n" + SCOPE.replace("with scope", "with scope.range()"))
    used = function(facts, "a", "f")
    currents = Currents(Transfer(CallGraph(facts)))
    assert all(currents.at(used, call) is None for call in used.by_opcode[op.INVOKE])


def test_a_lock_is_no_stream() -> None:
    facts = facts_of(a="import threading\nimport cupy\nLOCK = threading.Lock()\n\ndef f(x):\n    with LOCK:\n        x.sum()\n")
    used = function(facts, "a", "f")
    (call,) = used.by_opcode[op.INVOKE]
    assert Currents(Transfer(CallGraph(facts))).at(used, call) is None


def test_a_called_function_sets_the_stream() -> None:
    facts = facts_of(
        a="""
        import torch

        def choose(lane):
            torch.cuda.set_stream(lane)

        def f(lane, x):
            choose(lane)
            x.sum()
        """
    )
    used = function(facts, "a", "f")
    currents = Currents(Transfer(CallGraph(facts)))
    (chosen,), (work,) = used.by_opcode[op.CALL], used.by_opcode[op.INVOKE]
    assert currents.at(used, chosen) is None
    current = currents.at(used, work)
    assert current is not None
    assert (current.kind, current.register) == (NAMED, used.by_opcode[op.PARAM][0][2])


def test_a_thread_begins_on_the_default_stream() -> None:
    """Whatever is current for who starts it."""
    text = """
    import threading
    import torch

    def go(side, work):
        with torch.cuda.stream(side):
            worker = threading.Thread(target=work)
            worker.start()
    """
    facts = facts_of(a=text)
    used = function(facts, "a", "go")
    start = next(one for one in used.by_opcode[op.INVOKE] if used.text(one[4]) == "start")
    currents = Currents(Transfer(CallGraph(facts)))
    around = currents.around_start(used, start)
    assert currents.at(used, start) is OF_THREAD
    assert around is not None
    assert around.kind == NAMED
