"""Loops around optimizers that search: one step of such an optimizer is a loop of its own, which calls for the loss again and again."""

from __future__ import annotations

from streamlint.facts.functions import Function
from streamlint.facts.hot import HotRegions, Region
from streamlint.ir import Instruction
from streamlint.models.vocabulary import Selector


def is_around_search(hot: HotRegions, region: Region) -> bool:
    """Whether a region is what a loop runs beside steps that search, and nothing else in the loop makes progress."""
    chain = region.chain()
    first = chain[0]
    if first.loop is None or first.row is not None or first.function.is_cpp:
        return False
    body = hot.body(first.function)
    steps = [one.instruction for one in hot.steps(first.function, first.flags) if body.home[one.instruction] in first.loop.body]
    searches = [one for one in dict.fromkeys(steps) if _searches(hot, first.function, one)]
    if not searches or any(one not in searches for one in steps):
        return False
    return len(chain) == 1 or chain[1].call not in searches


def _searches(hot: HotRegions, function: Function, one: Instruction) -> bool:
    """Whether all that is known of a step reads what the function that it is given gives back."""
    rows = [call.row for call in hot.graph.of_call(function, one).libraries]
    read = [_reads(row.get("reads")) if row is not None else () for row in rows]
    return bool(read) and all(any(isinstance(each, Selector) and each.kind == "argument" for each in one) for one in read)


def _reads(held: object) -> tuple[object, ...]:
    return held if isinstance(held, tuple) else ()
