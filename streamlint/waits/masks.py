"""Tests whether a mask selects anything, behind which only what it selects changes: ``if gaps.any(): x = x.masked_fill(gaps, 0)``.

The change alone does nothing where nothing is selected, and the host need not ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import unnegated
from streamlint.facts.repetition.loops import Body
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.traits import Trait
from streamlint.waits.arms import straight_way
from streamlint.waits.questions import Key, alike, asked_of
from streamlint.waits.sinks import called_name
from streamlint.waits.wait import Wait

_DEEPEST = 8
_CALLS = frozenset({op.CALL, op.INVOKE})
_QUICK: tuple[Trait, ...] = ("one-pass", "same-numbers", "of-one", "steady-function")
_PLAIN = frozenset(
    {op.CONST, op.NAME, op.LOAD, op.ATTR, op.BINARY, op.UNARY, op.COMPARE, op.BUILD, op.SLICE, op.ITEM, op.JUMP, op.BIND, op.UNBIND}
)


class _Mask(NamedTuple):
    """A mask by what it is computed as; ``is_inverted``: what counts is selected where that is false (``not keep.all()``)."""

    key: Key
    is_inverted: bool

    def inverted(self) -> _Mask:
        """What selects all else."""
        return self._replace(is_inverted=not self.is_inverted)


def changes_selected_alone(body: Body, wait: Wait) -> bool:
    """Whether a wait is for such a test."""
    function = wait.function
    for branch in _branches(function, wait):
        register, turned = unnegated(function, branch[2])
        if (found := _asked(function, register)) is None:
            continue
        mask, is_all = found
        if _changes(body, body.home[branch], branch[3] if turned == is_all else branch[4], _Mask(alike(function, mask), is_all)):
            return True
    return False


def _branches(function: Function, wait: Wait) -> Iterator[Instruction]:
    """The branch that a wait stands at, or for which alone a value is fetched."""
    one = wait.instruction
    if one[0] == op.BRANCH:
        yield one
    elif op.DEFINES[one[0]]:
        uses = [use for use in function.uses[one[2]] if use[0] not in (op.BIND, op.UNBIND)]
        yield from uses if len(uses) == 1 and uses[0][0] == op.BRANCH else ()


def _asked(function: Function, register: int) -> tuple[int, bool] | None:
    """The mask of which a condition asks whether any of its elements is true, or all of them are (True)."""
    for _ in range(_DEEPEST):
        one = function.definitions[register] if register >= 0 else None
        given = asked_of(function, one) if one is not None and one[0] in _CALLS else []
        if one is None or len(given) != 1:
            return None
        name = called_name(function, one)
        if name in function.known("true-if-any", "true-if-all"):
            return given[0], name in function.known("true-if-all")
        if name not in function.known("same-question"):
            return None
        register = given[0]
    return None


def _changes(body: Body, block: int, edge: int, mask: _Mask) -> bool:
    """Whether all that the way from an edge to where both ways meet does is to change what a mask selects, and to compute with what."""
    function, join = body.function, body.graph.post_dominators[block]
    if (inside := straight_way(body, block, edge)) is None:
        return False
    before = _before(function, (one for number in inside for one in function.code.blocks[number]), mask)
    joining = (one for one in function.code.blocks[join] if one[0] == op.PHI)
    return before is not None and all(_is_same(function, one, inside, before, join) for one in joining)


def _before(function: Function, code: Iterable[Instruction], mask: _Mask) -> dict[int, int] | None:
    """By register that instructions change where a mask selects it: what held the rest before; None where they do other things, or
    change nothing."""
    before: dict[int, int] = {}
    is_changed = False
    for one in code:
        if (base := _changed(function, one, mask)) is not None:
            is_changed = True
            before |= {one[2]: base} if op.DEFINES[one[0]] else {}
        elif function.invokes(one, "same-elements") and function.invokes(one, "elementwise"):
            before[one[2]] = one[3]
        elif not _only_computes(function, one):
            return None
    return before if is_changed else None


def _only_computes(function: Function, one: Instruction) -> bool:
    """Whether an instruction computes something at once, and does nothing else."""
    if one[0] in _CALLS:
        return bool(function.uses[one[2]]) and called_name(function, one) in function.known(*_QUICK)
    return one[0] in _PLAIN


def _changed(function: Function, one: Instruction, mask: _Mask) -> int | None:
    """The tensor that an instruction changes, or of which it makes another one, where a mask selects it."""
    if one[0] == op.SET_ITEM:
        return one[2] if _selects(function, one[3], mask) else None
    name, given = (called_name(function, one), asked_of(function, one)) if one[0] in _CALLS else ("", [])
    if len(given) == 3 and name in function.known("fills-selected"):
        return given[0] if _selects(function, given[1], mask) else None
    if len(given) == 3 and name in function.known("chooses") and function.dotted(one[3]):
        condition, chosen, other = given
        if _selects(function, condition, mask):
            return other
        return chosen if _is_same_mask(function, condition, mask.inverted()) else None
    return None


def _selects(function: Function, register: int, mask: _Mask) -> bool:
    """Whether a register holds a mask that selects nothing where another one does not: it, or it and more that is asked."""
    one = function.definitions[register] if register >= 0 else None
    if one is not None and one[0] == op.BINARY and function.text(one[3]) == "&":
        return any(_selects(function, each, mask) for each in one[4:6])
    return _is_same_mask(function, register, mask)


def _is_same_mask(function: Function, register: int, mask: _Mask) -> bool:
    """Whether a register holds a mask, a view or a part of it."""
    one = function.definitions[register] if register >= 0 else None
    if not mask.is_inverted and alike(function, register) == mask.key:
        return True
    if one is not None and one[0] == op.UNARY:
        return function.text(one[3]) == "~" and _is_same_mask(function, one[4], mask.inverted())
    is_view = one is not None and (one[0] == op.ITEM or function.invokes(one, "same-numbers"))
    return is_view and one is not None and _is_same_mask(function, one[3], mask)


def _is_same(function: Function, phi: Instruction, inside: list[int], before: dict[int, int], join: int) -> bool:
    """Whether a variable holds behind both ways the same but for changes."""
    ways = [(block in inside, register) for block, register in zip(function.phi_order[join], phi[3:], strict=False)]
    theirs = {register for is_ours, register in ways if not is_ours}
    return all(_root(register, before) in theirs for is_ours, register in ways if is_ours)


def _root(register: int, before: dict[int, int]) -> int:
    while register in before:
        register = before[register]
    return register
