"""numba: the stream that an array was made with, which is that of its copies where these name none."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Memory
from streamlint.models.vocabulary import Selector
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer


def array_of(call: ModelledCall) -> int | None:
    """The array whose own stream a call works on; None where it names a stream, or where its row knows no such stream."""
    held = call.row.get("stream")
    if not isinstance(held, Selector) or held.default != "own" or call.given(held) is not None:
        return None
    return call.one("of", call.one("dst", call.receiver))


def streams_of(transfer: Transfer, function: Function, array: int) -> Iterator[tuple[Function, int]]:
    """The registers of the streams that the array in a register was made with; none where no stream was named."""
    node = transfer.facts.values(function, array)
    for value in list(node.values):
        for made in node.trace(value) if isinstance(value, Memory) else ():
            for call in transfer.modelled(made.function, made.instruction):
                held = call.row.get("stream")
                given = call.given(held) if isinstance(held, Selector) and call.row.effect in ("transfer", "factory") else None
                if given is not None:
                    yield made.function, given


def is_made_without(transfer: Transfer, function: Function, array: int) -> bool:
    """Whether known calls made the arrays that a register may hold, and none of them names a stream."""
    node = transfer.facts.values(function, array)
    sites = [made for value in node.values if isinstance(value, Memory) for made in node.trace(value)]
    calls = [call for made in sites for call in transfer.modelled(made.function, made.instruction)]
    is_made = any(call.row.effect in ("transfer", "factory") for call in calls)
    return is_made and not any(streams_of(transfer, function, array))
