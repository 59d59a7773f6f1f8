"""Whether an instruction is passed whichever way a path takes; exceptions aside."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir.graph import Graph


def is_before(function: Function, first: Instruction, second: Instruction) -> bool:
    """Whether each path to the second instruction goes through the first one."""
    (block, index), (home, at) = function.homes[first], function.homes[second]
    return index < at if block == home else Graph.of(function.code, exceptions=False).dominates(block, home)


def is_behind(function: Function, first: Instruction, second: Instruction) -> bool:
    """Whether each path from the first instruction goes through the second one."""
    (block, index), (home, at) = function.homes[first], function.homes[second]
    return index < at if block == home else Graph.of(function.code, exceptions=False).post_dominates(home, block)
