"""Where a tensor is, as the branches and assertions on the way to an instruction have shown."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import unnegated
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Graph, led_to
from streamlint.transfer.transfer import Transfer
from streamlint.waits.questions import Key, alike


def is_shown_on_host(transfer: Transfer, graph: Graph, function: Function, block: int, register: int) -> bool:
    """Whether a block runs only where a tensor is on the host: it was asked itself, or that whose device it was made on."""
    of = set(_placed_as(transfer, function, register))
    for number in led_to([block], lambda number: [by for by, _ in graph.controlled_by[number]]):
        for by, edge in graph.controlled_by[number]:
            end = function.code.blocks[by][-1]
            asked, is_turned = unnegated(function, end[2])
            one = function.definitions[asked] if asked >= 0 else None
            shows = transfer.shows.get(function.text(one[4])) if one is not None and one[0] == op.ATTR else None
            if one is not None and shows is not None and alike(function, one[3]) in of:
                holds = (edge == end[3]) != is_turned
                if holds == (shows == "host"):
                    return True
    return False


def _placed_as(transfer: Transfer, function: Function, register: int) -> Iterator[Key]:
    """A tensor, and those whose device it was made on."""
    for each in transfer.shared(function, register):
        yield alike(function, each)
        one = function.definitions[each] if each >= 0 else None
        for call in transfer.modelled(function, one) if one is not None else ():
            for given in call.all("device"):
                definition = function.definitions[given] if given >= 0 else None
                if definition is not None and definition[0] == op.ATTR and function.text(definition[4]) == "device":
                    yield alike(function, definition[3])
