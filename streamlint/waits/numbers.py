"""Arithmetic on tensors of one element, and on lists of such, known from what becomes of them: who waits behind it waits for a kernel of no
length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind
from streamlint.facts.repetition.hot import HotRegions
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.operands import argument_registers
from streamlint.waits.sinks import called_name
from streamlint.waits.wait import CAST, Wait

_OPERATORS = frozenset({op.BINARY, op.INPLACE, op.UNARY, op.COMPARE})
_OF_ONE = frozenset({"float", "int", "bool", "complex"})
"""Functions of the language that take a tensor only if it has one element."""


def on_numbers(hot: HotRegions, function: Function, waits: Iterable[Wait]) -> frozenset[Instruction]:
    """The instructions of a function that compute, element by element, tensors of one element alone."""
    scales = {one.instruction for one in hot.rounds.of(function) if one.row.does == "scale"}

    def operands(one: Instruction) -> Iterable[int]:
        if one[0] in (op.PHI, op.COPY) or _is_element_by_element(function, one):
            return op.reads(one)
        if function.invokes(one, "same-elements", "to-host"):
            return one[3:4]
        return [given for _, given in argument_registers(function, one)] if one in scales else ()

    made = list(behind(function, [*_numbers(function, waits), *_losses(hot, function), *_norms(function)], operands))
    short = {one for one in made if one in scales or _is_element_by_element(function, one)}
    rounds = {one.instruction for one in hot.rounds.of(function)} - scales  # going backward from one number is no work on that alone
    return frozenset((short | _Few(hot, function, [one[2] for one in made]).find()) - rounds)


def _is_element_by_element(function: Function, one: Instruction) -> bool:
    """Whether an instruction gives a tensor of as many elements as its operands have."""
    if one[0] in _OPERATORS:
        return function.text(one[3]) not in ("@", "@=")
    return function.invokes(one, "elementwise")


def _numbers(function: Function, waits: Iterable[Wait]) -> Iterator[int]:
    """Values that are read as one number, maybe of a copy on the host."""
    yield from (wait.value for wait in waits if wait.what == CAST and wait.name in _OF_ONE)
    yield from (one[3] for one in function.by_opcode[op.INVOKE] if function.invokes(one, "number"))


def _losses(hot: HotRegions, function: Function) -> Iterator[int]:
    """Values that a backward pass starts from without a gradient: nothing but one number has one then."""
    for one in hot.rounds.of(function):
        call = one.instruction
        if one.row.does == "backward" and call[0] == op.INVOKE and not any(kind is None for kind, _ in argument_registers(function, call)):
            yield call[3]


def _norms(function: Function) -> Iterator[int]:
    """Norms of all gradients."""
    if any(name in function.called_names for name in function.known("gradients")):
        calls = (one for opcode in (op.CALL, op.INVOKE) for one in function.by_opcode[opcode])
        yield from (one[2] for one in calls if called_name(function, one) in function.known("gradients"))


class _Few:
    """What a function computes of single numbers: lists of them, what joins such a list, its summary, and collectives of that."""

    def __init__(self, hot: HotRegions, function: Function, numbers: Iterable[int]) -> None:
        self.facts = hot.facts
        self.function = function
        self.held = set(numbers)
        self.lists: set[int] = set()
        self.short: set[Instruction] = set()

    def find(self) -> set[Instruction]:
        """The instructions that compute with nothing else."""
        waiting = list(self.held)
        while waiting:
            for use in self.function.uses[waiting.pop()]:
                result = self._kept(use) if use not in self.short else None
                if result is not None and result not in self.held:
                    self.held.add(result)
                    waiting.append(result)
        return self.short

    def _kept(self, use: Instruction) -> int | None:
        """The register that holds few numbers because of an instruction that uses some."""
        if use[0] in (op.PHI, op.COPY):
            return use[2] if self.held.issuperset(op.reads(use)) else None
        if use[0] == op.BUILD or _puts_into(self.function, use) is not None:
            return self._list(use[2] if use[0] == op.BUILD else _puts_into(self.function, use))
        return self._computed(use) if use[0] in (op.CALL, op.INVOKE) or use[0] in _OPERATORS else None

    def _list(self, register: int | None) -> int | None:
        """A list that is made in the function, and into which nothing but single numbers is put."""
        made = self.function.definitions[register] if register is not None and register >= 0 else None
        if made is None or made[0] != op.BUILD:
            return None
        put = [use[-1] for use in self.function.uses[made[2]] if _puts_into(self.function, use) == made[2]]
        if not self.held.issuperset([*made[4:], *put]):
            return None
        self.lists.add(made[2])
        return made[2]

    def _computed(self, use: Instruction) -> int | None:
        """The register of what an operator or a call computes of few numbers alone."""
        function = self.function
        if use[0] in _OPERATORS:
            operands = list(op.reads(use))
        else:
            given = [register for _, register in argument_registers(function, use)]
            operands = [use[3], *given] if use[0] == op.INVOKE and use[3] in self.held else given
        if not self.held.issuperset(each for each in operands if not _is_setting(function, each)):
            return None
        is_call = use[0] in (op.CALL, op.INVOKE)
        return self._called(use, operands) if is_call else self._add(use, function.text(use[3]) not in ("@", "@="))

    def _called(self, use: Instruction, operands: list[int]) -> int | None:
        name = called_name(self.function, use)
        if name in self.function.known("joins"):
            return self._add(use, bool(operands) and operands[0] in self.lists)
        effects = {row.effect for row in self.facts.rows(self.function, use)}
        if effects == {"collective"}:
            self.short.add(use)
        is_view = bool(effects) and effects <= {"view", "same"}
        return use[2] if is_view else self._add(use, effects == {"compute"} and name not in self.function.known("enlarges"))

    def _add(self, use: Instruction, is_few: bool) -> int | None:
        if not is_few:
            return None
        self.short.add(use)
        return use[2]


def _puts_into(function: Function, use: Instruction) -> int | None:
    """The register of the list that an instruction puts an element into."""
    if use[0] == op.APPEND:
        return use[2]
    return use[3] if function.invokes(use, "puts") and len(use) == 7 else None


def _is_setting(function: Function, register: int) -> bool:
    """Whether an argument is a constant, or a name of a library: ``op=ReduceOp.AVG``."""
    one = function.definitions[register] if register >= 0 else None
    return one is not None and (one[0] in (op.CONST, op.NAME) or (one[0] == op.ATTR and bool(function.dotted(register))))
