"""Work that the host may do itself: an optimizer on its parameters, an algorithm that is given a policy of the host."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.models.vocabulary import Selector
from streamlint.transfer.actions import Action, Read, Synchronized, Updated
from streamlint.transfer.modelled import ModelledCall


def updates(call: ModelledCall) -> Iterator[Action]:
    """``optimizer.step()``."""
    held = call.row.get("updates")
    if isinstance(held, Selector) and held.position is not None and call.receiver is not None:
        yield Updated(call.receiver, held.position, call.name)


def launched(call: ModelledCall) -> Iterator[Action]:
    """A call that queues work, or does it on the host."""
    yield from updates(call)
    if call.row.get("told") is not None and call.waits_for_result():
        yield Synchronized(None, call.name)  # for the stream of a handle: which one that is, is not asked here
    if call.row.get("policy") and call.operands:
        policy = call.function.dotted(call.operands[0])
        if call.facts.cpp_models.constants.get(policy) == "host-policy":
            yield from (Read(register, call.name, False) for register in call.operands[1:] if register >= 0)


EFFECTS = {"launch": launched}
