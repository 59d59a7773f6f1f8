"""Ways on which a round ends before it has trained: ``if not loss.requires_grad: continue``. Who takes one makes no step.

And those taken for what does not train, or lacks what it is asked for: ``if parameter.grad is not None``, ``if hasattr(layer, "refine")``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from streamlint.facts.code.counters import leaves_rounds
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind, unnegated
from streamlint.facts.graph.facts import Facts
from streamlint.facts.repetition.hot import HotRegions, Region
from streamlint.ir import opcodes as op
from streamlint.ir.graph import led_to
from streamlint.waits.options import is_off
from streamlint.waits.questions import EQUAL, compares, is_new

_OF_LOOPS = frozenset({op.UNARY, op.MORE, op.ITER, op.CALL, op.COMPARE})
"""What stands between the head of a loop and what it goes over."""


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


def has_rounds(facts: Facts, function: Function, header: int, after: int) -> bool:
    """Whether an edge leads out of a loop over elements, at its head, of which there are some: no option leaves them out."""
    if not leaves_rounds(function, header, after):
        return False
    steps = behind(function, [function.code.blocks[header][-1][2]], lambda one: op.reads(one) if one[0] in _OF_LOOPS else ())
    given = [one[2] for one in steps if one[0] in (op.PARAM, op.ATTR, op.NAME, op.BUILD)]
    return not any(is_new(function, register) or is_off(facts, function, register, True) for register in given)


def edges_of_nothing(function: Function) -> Iterator[tuple[int, int]]:
    """The edges of a function that are taken for what does not train, or lacks what it is asked for."""
    for number, block in enumerate(function.code.blocks if not function.is_cpp else ()):
        end = block[-1] if block else None
        if end is not None and end[0] == op.BRANCH and end[3] != end[4]:
            register, turned = unnegated(function, end[2])
            if (is_there := _says_there(function, register)) is not None:
                yield number, end[4] if is_there != turned else end[3]


def _says_there(function: Function, register: int) -> bool | None:
    """Whether a condition that holds says that there is what it asks for; None if it asks for nothing of that kind."""
    one = function.definitions[register] if register >= 0 else None
    if one is None:
        return None
    if one[0] == op.CALL:
        return True if function.dotted(one[3]) == "hasattr" else None
    if one[0] == op.ATTR:
        return True if function.text(one[4]) in function.known("of-training") else None
    compared = compares(function, register)
    if compared is None or compared[2] is not None or compared[0] not in EQUAL or _says_there(function, compared[1]) is None:
        return None
    return not EQUAL[compared[0]]
