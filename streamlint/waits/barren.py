"""Ways on which a round ends before it has trained: ``if not loss.requires_grad: continue``. Who takes one makes no step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from streamlint.facts.repetition.hot import HotRegions, Region
from streamlint.ir.graph import led_to


def barren_edges(hot: HotRegions, region: Region) -> frozenset[tuple[int, int]]:
    """The edges of a loop's round behind which none of its steps is made any more, though none was made before."""
    loop, function = region.loop, region.function
    if loop is None:
        return frozenset()
    body = hot.body(function)
    inside = loop.body - {loop.header}
    steps = {body.home[step.instruction] for step in hot.steps(function, region.flags)} & inside
    leading = {*_reached(steps, body.graph.predecessors, inside), loop.header} if steps else set[int]()
    behind = set(_reached(steps, body.graph.successors, inside))
    return frozenset(
        (block, after)
        for block in leading - behind
        for after in body.graph.successors[block]
        if after in loop.body and (after not in leading or after == loop.header)
    )


def _reached(blocks: Iterable[int], neighbours: Sequence[Collection[int]], within: Collection[int]) -> Iterator[int]:
    """Some blocks, and those that are reached from them over others."""
    return led_to(blocks, lambda block: (each for each in neighbours[block] if each in within))
