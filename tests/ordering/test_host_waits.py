"""What the host waits for at an instruction, calls included."""

from __future__ import annotations

import pytest
from facts.programs import facts_of, function

from streamlint.facts.graph.call_graph import CallGraph
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import Places
from streamlint.ordering.streams.host_waits import HostWaits
from streamlint.transfer.transfer import Transfer

HELPERS = """
import torch

def wait(lane):
    lane.synchronize()

def inner(lane):
    wait(lane)

def maybe(lane, sure):
    if sure:
        lane.synchronize()

def device(lane):
    torch.cuda.synchronize()
"""
STREAM, DEVICE = ["stream"], [None]


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("stream.synchronize()", STREAM),
        ("wait(stream)", STREAM),
        ("inner(lane=stream)", STREAM),
        ("maybe(stream, x)", []),
        ("device(stream)", DEVICE),
    ],
)
def test_waits_are_seen_through_calls(call: str, found: list[str | None]) -> None:
    facts = facts_of(a=f"{HELPERS}\ndef f(x):\n    stream = torch.cuda.Stream()\n    {call}\n")
    used = function(facts, "a", "f")
    transfer = Transfer(CallGraph(facts))
    places = Places(facts)
    made = places.of(used, next(one[2] for one in used.by_opcode[op.INVOKE] if used.text(one[4]) == "Stream"))
    last = [one for one in used.code.instructions() if one[0] in (op.CALL, op.INVOKE)][-1]
    awaited = HostWaits(transfer, places).at(used, last)
    assert ["stream" if place == made else place for place in dict.fromkeys(awaited)] == found
