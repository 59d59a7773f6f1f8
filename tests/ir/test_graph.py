"""Dominance, control dependence and loops: in small graphs by hand, and in random ones against their definitions."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from streamlint.frontends import python
from streamlint.ir import Code
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Graph, Loop, failing
from streamlint.ir.modules import lower

DIAMOND = [[1, 2], [3], [3], []]
ROUND = [[1], [2, 3], [1], []]  # 1 is the head of a loop
NESTED = [[1], [2, 6], [3], [4, 5], [3], [1], []]
TWO_ENTRIES = [[1, 2], [2], [1, 3], []]


def function(text: str) -> tuple[Code, dict[str, int]]:
    """The first function of a text, and the block in which it reads each global name."""
    module = lower(python.lower("test.py", text))
    code = next(code for code in module.codes() if code.kind == "function")
    reads = ((block, one) for block, instructions in enumerate(code.blocks) for one in instructions if one[0] == op.NAME)
    return code, {module.constants[one[3]]: block for block, one in reads}


# By hand ----------------------------------------------------------------------------------------------------------------------


def test_no_block() -> None:
    graph = Graph([])
    assert (graph.order, graph.loops) == ([], [])


def test_a_diamond() -> None:
    graph = Graph(DIAMOND)
    assert graph.order == [0, 1, 2, 3]
    assert graph.predecessors == [[], [0], [0], [1, 2]]
    assert graph.dominators == [NOBODY, 0, 0, 0]
    assert graph.post_dominators == [3, 3, 3, NOBODY]
    assert graph.controlled_by == [[], [(0, 1)], [(0, 2)], []]
    assert graph.loops == []


def test_a_loop() -> None:
    graph = Graph(ROUND)
    assert graph.loops == [Loop(1, frozenset({1, 2}), (2,), ((1, 3),), NOBODY, 1, True)]
    assert graph.innermost == [NOBODY, 0, 0, NOBODY]
    assert graph.controlled_by == [[], [(1, 2)], [(1, 2)], []], "a loop's head decides whether it runs again"
    assert graph.every_round(graph.loops[0]) == {1, 2}


def test_nested_loops() -> None:
    graph = Graph(NESTED)
    outer, inner = graph.loops
    assert (outer.header, outer.body, outer.depth) == (1, frozenset({1, 2, 3, 4, 5}), 1)
    assert (inner.header, inner.body, inner.depth, inner.parent) == (3, frozenset({3, 4}), 2, 0)
    assert graph.innermost == [NOBODY, 0, 0, 1, 1, 0, NOBODY]
    assert graph.every_round(outer) == {1, 2, 3, 5}, "the inner loop may have no round"


def test_a_loop_with_two_entries_is_irreducible() -> None:
    (loop,) = Graph(TWO_ENTRIES).loops
    assert (loop.header, loop.body, loop.is_natural) == (2, frozenset({1, 2}), False)
    assert Graph(TWO_ENTRIES).every_round(loop) == frozenset()


def test_a_loop_that_never_ends() -> None:
    graph = Graph([[1], [2], [1]])
    assert graph.post_dominators == [1, 2, NOBODY]
    assert graph.loops[0].exits == ()


def test_what_is_not_reachable_takes_part_in_nothing() -> None:
    graph = Graph([[2], [2], []])
    assert graph.order == [0, 2]
    assert graph.predecessors == [[], [], [0]]
    assert graph.dominators == [NOBODY, NOBODY, 0]
    assert not graph.dominates(1, 2)
    assert not graph.dominates(0, 1)


def test_a_part_of_a_round_that_a_condition_leaves_out() -> None:
    code, reads = function("def f(a):\n    for i in a:\n        g()\n        if i:\n            continue\n        h()\n")
    graph = Graph.of(code)
    (loop,) = graph.loops
    assert reads["g"] in graph.every_round(loop)
    assert reads["h"] in loop.body - graph.every_round(loop)


def test_edges_of_exceptions_can_be_left_out() -> None:
    text = "def f(a):\n    for i in a:\n        try:\n            g()\n            h()\n        except E:\n            pass\n"
    code, reads = function(text)
    for exceptions, always in ((True, False), (False, True)):
        graph = Graph.of(code, exceptions)
        (loop,) = graph.loops
        assert (reads["h"] in graph.every_round(loop)) is always


def test_blocks_that_only_lead_to_an_exception() -> None:
    code, reads = function("def f(a):\n    if a:\n        g()\n        raise E\n    return h()\n")
    assert reads["g"] in failing(code)
    assert not {0, reads["h"]} & failing(code)


# Against the definitions --------------------------------------------------------------------------------------------------------

GRAPHS = st.integers(1, 9).flatmap(lambda size: st.lists(st.lists(st.integers(0, size - 1), max_size=2), min_size=size, max_size=size))


def reached(successors: list[list[int]], start: int, without: int = -1) -> set[int]:
    """The blocks that paths from one reach, itself included, where one block is taken away."""
    seen: set[int] = set()
    stack = [start]
    while stack:
        block = stack.pop()
        if block not in seen and block != without:
            seen.add(block)
            stack += successors[block]
    return seen


@settings(max_examples=400, deadline=None)
@given(GRAPHS)
def test_dominance_is_that_of_removed_blocks(successors: list[list[int]]) -> None:
    graph = Graph(successors)
    alive = reached(successors, 0)
    assert set(graph.order) == alive
    for block in range(len(successors)):
        left = reached(successors, 0, block)
        for other in range(len(successors)):
            both = {block, other} <= alive
            assert graph.dominates(block, other) == (both and (block == other or other not in left))


@settings(max_examples=400, deadline=None)
@given(GRAPHS)
def test_post_dominance_and_control_dependence(successors: list[list[int]]) -> None:
    graph = Graph(successors)
    alive = reached(successors, 0)
    ends = {block for block in alive if not successors[block]}
    if not all(reached(successors, block) & ends for block in alive):
        assert sum(above == NOBODY for above in graph.post_dominators) >= len(successors) - len(alive) + 1
        return

    def always(block: int, other: int) -> bool:
        return block == other or not reached(successors, other, block) & (ends - {block})

    for block in alive:
        assert {other for other in alive if graph.post_dominates(block, other)} == {other for other in alive if always(block, other)}
        decides = {
            (one, after) for one in alive for after in successors[one] if always(block, after) and not (block != one and always(block, one))
        }
        assert set(graph.controlled_by[block]) == {edge for edge in decides if len(set(successors[edge[0]])) > 1 or edge[0] == block}


@settings(max_examples=400, deadline=None)
@given(GRAPHS)
def test_loops(successors: list[list[int]]) -> None:
    graph = Graph(successors)
    natural: dict[int, set[int]] = {}
    for last in graph.order:
        for head in successors[last]:
            if graph.dominates(head, last):
                inside = {block for block in graph.order if last in reached(successors, block, head) or block == head}
                natural.setdefault(head, set()).update(inside)
    found = {loop.header: set(loop.body) for loop in graph.loops if loop.is_natural}
    assert found.items() <= natural.items()
    if all(loop.is_natural for loop in graph.loops):
        assert found == natural
    for loop in graph.loops:
        assert all(block in loop.body and after not in loop.body for block, after in loop.exits)
        if loop.parent != NOBODY:
            assert loop.body < graph.loops[loop.parent].body
        if loop.is_natural:
            assert graph.every_round(loop) == {block for block in loop.body if is_in_each_round(successors, loop, block)}


def is_in_each_round(successors: list[list[int]], loop: Loop, block: int) -> bool:
    """Whether no way from the header back to it avoids a block."""
    inside = [[after for after in blocks if after in loop.body and after != loop.header] for blocks in successors]
    return block == loop.header or not reached(inside, loop.header, block) & set(loop.latches)
