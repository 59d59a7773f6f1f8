"""What paths of a function lead to behind an instruction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction


def leads_to(function: Function, first: Instruction, second: Instruction, stops: frozenset[Instruction] = frozenset()) -> bool:
    """Whether a path leads from behind one instruction to another one, past none that stops it."""
    block, index = function.homes[second]
    return any(start <= index < end for start, end in _reached(function, first, stops).get(block, ()))


def _reached(function: Function, first: Instruction, stops: frozenset[Instruction]) -> Mapping[int, list[tuple[int, int]]]:
    """By block: the instructions that paths lead to from behind an instruction; those that stop them are the last ones."""
    known = function.reached.get((first, stops))
    if known is not None:
        return known
    ends: dict[int, list[int]] = defaultdict(list)
    for one in stops:
        block, index = function.homes[one]
        ends[block].append(index + 1)
    block, index = function.homes[first]
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    waiting, seen = [(block, index + 1)], set[int]()
    while waiting:
        block, start = waiting.pop()
        end = min((each for each in ends.get(block, ()) if each > start), default=0)
        found[block].append((start, end or len(function.code.blocks[block])))
        if not end:
            fresh = [after for after in function.control.successors[block] if after not in seen]
            seen.update(fresh)
            waiting += [(after, 0) for after in fresh]
    function.reached[first, stops] = found
    return found
