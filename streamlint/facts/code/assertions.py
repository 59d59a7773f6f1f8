"""C++: where a function shows memory to be before it goes on: by an assertion, or by a guard that takes devices of CUDA alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import COPIES
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY
from streamlint.models import Models
from streamlint.models.vocabulary import SPACES, Selector
from streamlint.support.memo import memoized

_MAKES = (op.CONSTRUCT, op.CALL)
_DEEPEST = 8


class _Names(NamedTuple):
    """What the rows say of names; of methods by the last parts. ``asking``: whether for a device."""

    asserting: frozenset[str]
    guarding: frozenset[str]
    asking: dict[str, bool]
    devices: frozenset[str]


class Assertions:
    """What functions assert of the memory that registers hold."""

    def __init__(self, models: Models) -> None:
        self.models = models
        self.names = models.gathered(_named)

    @memoized
    def of(self, function: Function) -> dict[int, str]:
        """By register: ``device`` or ``host``. Neither what one arm asserts, nor what is said to be both."""
        said = dict.fromkeys(self._said(function)) if function.is_cpp else {}
        registers = [register for register, _ in said]
        return {register: space for register, space in said if registers.count(register) == 1}

    def _said(self, function: Function) -> Iterator[tuple[int, str]]:
        for one in function.by_opcode[op.INVOKE]:  # a question that nobody hears is what a checking macro leaves of its argument
            if function.text(one[4]) in self.names.asking and not function.uses[one[2]] and _is_always(function, function.blocks[one]):
                yield from self._asked(function, one[2])
        for one in (each for opcode in _MAKES for each in function.by_opcode[opcode] if len(each) > 5):
            name = self._name(function, one)
            is_asserting = name in self.names.asserting
            if not (is_asserting or name in self.names.guarding) or not _is_always(function, function.blocks[one]):
                continue
            if is_asserting:
                yield from self._asked(function, one[5])
            elif (register := self._of_device(function, one[5])) >= 0:
                yield from ((each, "device") for each in _same(function, register))

    def _name(self, function: Function, one: Instruction) -> str:
        """The name of the type that is made, or of the function or macro that is called."""
        if one[0] == op.CONSTRUCT:
            return str(function.unit.ir.constants[one[3]][0])
        called = function.definitions[one[3]]
        return function.text(called[3]) if called is not None and called[0] == op.NAME else ""

    def _asked(self, function: Function, condition: int, depth: int = 0) -> Iterator[tuple[int, str]]:
        """What holds where a condition is true: all that ``&&`` joins."""
        one = function.definitions[condition] if condition >= 0 else None
        if one is None or depth > _DEEPEST:
            return
        if one[0] == op.PHI:
            for each in _joined(function, one):
                yield from self._asked(function, each, depth + 1)
        elif one[0] == op.INVOKE and (is_for_device := self.names.asking.get(function.text(one[4]))) is not None:
            inner = self._of_device(function, one[3])
            yield from ((each, "device" if is_for_device else "host") for each in _same(function, inner if inner >= 0 else one[3]))
        elif one[0] == op.COMPARE and function.text(one[3]) == "==":
            for constant, register in ((one[5], one[4]), (one[4], one[5])):
                inner, space = self._of_device(function, register), self._named_by(function, constant)
                yield from ((each, space) for each in _same(function, inner) if space)

    def _named_by(self, function: Function, register: int) -> str:
        one = function.definitions[register] if register >= 0 else None
        return SPACES.get(self.models.constants.get(function.text(one[3]), ""), "") if one is not None and one[0] == op.NAME else ""

    def _of_device(self, function: Function, register: int, depth: int = 0) -> int:
        """The memory whose device a register holds, or the type of its device; NONE if it holds nothing of the kind."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or depth > _DEEPEST:
            return op.NONE
        if one[0] in COPIES:
            return self._of_device(function, one[COPIES[one[0]]], depth + 1)
        if one[0] == op.INVOKE and len(one) == 6:
            inner = self._of_device(function, one[3], depth + 1)
            return one[3] if inner < 0 and function.text(one[4]) in self.names.devices else inner
        row = self.models.call(self._name(function, one)) if one[0] == op.CALL and len(one) == 6 else None
        return one[5] if row is not None and row.effect == "device" else op.NONE


def _same(function: Function, register: int) -> Iterator[int]:
    """A register, and those that it is a copy of, or that hold what the one variable holds which it was read from."""
    while register >= 0 and (one := function.definitions[register]) is not None:
        yield register
        stores = [each for each in function.by_opcode[op.STORE] if each[2] == one[3]] if one[0] == op.LOAD else []
        register = one[COPIES[one[0]]] if one[0] in COPIES else stores[0][3] if len(stores) == 1 else op.NONE


def _joined(function: Function, phi: Instruction) -> Iterator[int]:
    """The operands of ``&&``: the last one, and the conditions that lead to it; none of anything else that is joined."""
    home = function.blocks[phi]
    ways = list(zip(function.control.predecessors[home], phi[3:], strict=False))
    ends = [(function.code.blocks[before][-1], operand) for before, operand in ways]
    skipped = [operand for end, operand in ends if end[0] == op.BRANCH and end[2] == operand and end[4] == home != end[3]]
    if len(ends) == len(phi[3:]) and len(skipped) == len(ends) - 1:
        yield from phi[3:]


def _is_always(function: Function, block: int) -> bool:
    """Whether no branch decides if a block runs: each that leads to it leads to it on both ways."""
    graph = function.control
    while (above := graph.dominators[block]) not in (NOBODY, block):
        end = function.code.blocks[above][-1]
        decides = end[0] == op.BRANCH and block in end[3:5] and end[3] != end[4]
        if decides and all(before == above or graph.dominates(block, before) for before in graph.predecessors[block]):
            return False
        block = above
    return True


def _named(models: Models) -> _Names:
    rows = list(models.calls.items())
    asking = {name.rpartition("::")[2]: row.get("shows") == "device" for name, row in rows if row.get("shows")}
    devices = {
        name.rpartition("::")[2]
        for name, row in rows
        if row.effect == "device" and isinstance(source := row.get("from"), Selector) and source.kind == "self"
    }
    guarding = frozenset(name for name, row in rows if row.get("on_device") is not None)
    return _Names(frozenset(name for name, row in rows if row.get("asserts")), guarding, asking, frozenset(devices))
