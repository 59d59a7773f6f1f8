"""Parts of objects that get other memory while the objects stay: the weights and gradients of modules, the state of optimizers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.transfer.modelled import ModelledCall

WEIGHTS, GRADIENTS, STATE = "weights", "gradients", "state"
_MOVING = frozenset({"module_to", "transfer"})


class Renewed(NamedTuple):
    """Parts of the object in a register get other memory, or lose what they have."""

    part: str
    register: int


def renewed(calls: Iterable[ModelledCall]) -> Iterator[Renewed]:
    """What calls renew: by their rows, and by moving a module to the host, where its parameters have other memory."""
    for call in calls:
        of, part = call.one("of", call.receiver), call.text("renews")
        if part and (call.row.get("renews_if") is None or call.switch("renews_if")[1] is True):
            yield from (Renewed(part, of),) if of is not None else ()
        elif of is not None and _moves_to_host(call, of):
            yield Renewed(WEIGHTS, of)


def may_renew(row: Row) -> bool:
    """Whether calls with a row may renew something."""
    return bool(row.get("renews")) or (row.effect in _MOVING and row.get("to") in ("host", "argument"))


def _moves_to_host(call: ModelledCall, of: int) -> bool:
    """Whether a call moves a module to the host; of what nobody knows the result tells: a tensor is moved for its sake."""
    row = call.row
    is_to_host = row.get("to") == "host" or call.device_spaces() == {"host"}
    if row.effect not in _MOVING or call.instruction[0] != op.INVOKE or not is_to_host:
        return False
    return row.effect == "module_to" or not (call.function.uses.get(call.result) or call.memory(of))
