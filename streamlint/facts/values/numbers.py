"""How large and how small whole numbers may be, as far as the program shows: by constants, ``min`` and ``max``, and what callers give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from streamlint import TYPE_CHECKING
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant
from streamlint.facts.files.autograd import given_for
from streamlint.facts.files.cpp_scopes import last_part, scope_of
from streamlint.facts.files.cpp_templates import is_parameter
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

if TYPE_CHECKING:
    from streamlint.facts.graph.facts import Facts

_DEEPEST = 8


class Bounds(NamedTuple):
    """The least and the largest value of a number; None for a side that is open."""

    low: int | None = None
    high: int | None = None

    @property
    def exact(self) -> int | None:
        """The number itself, where it is known."""
        return self.low if self.low == self.high else None


OPEN = Bounds()


class Numbers:
    """Answers for the registers of a program."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def of(self, function: Function, register: int, depth: int = _DEEPEST) -> Bounds:
        """The bounds of what a register may hold."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or depth == 0:
            return OPEN
        if one[0] in (op.COPY, op.CAST):
            return self.of(function, one[-1], depth - 1)
        known = _BY_OPCODE.get(one[0])
        return known(self, function, one, depth - 1) if known is not None else OPEN

    def joined(self, function: Function, registers: Iterable[int], depth: int = _DEEPEST) -> Bounds:
        """The bounds of what one of some registers holds."""
        return _join(self.of(function, each, depth) for each in registers)

    def _constant(self, function: Function, one: Instruction, _: int) -> Bounds:
        value = function.constant(one[2])
        return Bounds(value, value) if isinstance(value, int) else OPEN

    def _phi(self, function: Function, one: Instruction, depth: int) -> Bounds:
        is_of_loop = any(loop.header == function.blocks[one] for loop in function.control.loops)
        return OPEN if is_of_loop else self.joined(function, one[3:], depth)

    def _binary(self, function: Function, one: Instruction, depth: int) -> Bounds:
        left, right = (self.of(function, each, depth) for each in one[4:6])
        worked = _OPERATORS.get(function.text(one[3]).rstrip("="))
        return worked(left, right) if worked is not None else OPEN

    def _call(self, function: Function, one: Instruction, depth: int) -> Bounds:
        """``min``, ``max`` and ``int``."""
        name, given = function.dotted(one[3]).removeprefix("std::"), one[5:]
        if name in ("min", "max") and len(given) > 1:
            every = [self.of(function, each, depth) for each in given]
            lows = [each.low for each in every if each.low is not None]
            highs = [each.high for each in every if each.high is not None]
            is_all = len(lows) == len(every), len(highs) == len(every)
            if name == "min":
                return Bounds(min(lows) if is_all[0] else None, min(highs, default=None))
            return Bounds(max(lows, default=None), max(highs) if is_all[1] else None)
        return self.of(function, given[0], depth) if name == "int" and len(given) == 1 else OPEN

    # --- names

    def _name(self, function: Function, one: Instruction, depth: int) -> Bounds:
        if not function.is_cpp:
            held = list(self.facts.values(function, one[2]).values)
            numbers = [each.value for each in held if isinstance(each, Constant) and type(each.value) is int]
            return Bounds(min(numbers), max(numbers)) if numbers and len(numbers) == len(held) else OPEN
        name = function.text(one[3])
        if is_parameter(function, name):
            return self._template(function, name)
        places = list(self._set_at(function, name))
        return self.of(*places[0], depth) if len(places) == 1 else OPEN

    def _set_at(self, function: Function, name: str) -> Iterator[tuple[Function, int]]:
        """C++: where a constant of a file, a namespace or a class is set; nothing where somebody takes its address."""
        last, (space, _, _) = last_part(name), name.rpartition("::")
        owner = self.facts.cpp.find_class(function.unit, scope_of(function), space) if space else function.owner
        for unit in self.facts.program.mentioning(last):
            for each in unit.functions if unit.is_cpp else ():
                if any(last_part(each.text(taken[3])) == last for taken in each.by_opcode[op.ADDRESS_NAME]):
                    return
                for store in each.by_opcode[op.SET_NAME]:
                    said = each.text(store[2])
                    is_meant = each.code.kind != "class" or (owner is not None and each is owner.body)
                    if is_meant and last_part(said) == last:
                        yield each, store[3]

    def _template(self, function: Function, name: str) -> Bounds:
        """A template parameter of a function, by all calls."""
        if name not in function.code.template:
            return OPEN
        index, found = list(function.code.template).index(name), list[Bounds]()
        for caller, call in self.calls(function):
            given = caller.code.templates.get(call[1], ())
            held = given[index] if index < len(given) else None
            found.append(Bounds(held, held) if type(held) is int else OPEN)
        return _join(found)

    def calls(self, function: Function) -> Iterator[tuple[Function, Instruction]]:
        """The calls in view that enter a function."""
        for caller, call in self.facts.call_places(function):
            if call[0] in (op.CALL, op.INVOKE, op.CONSTRUCT) and function in self.facts.callee_functions(caller, call):
                yield caller, call

    def _parameter(self, function: Function, one: Instruction, depth: int) -> Bounds:
        """What callers in view give for a parameter, or its default."""
        found, default = list[Bounds](), function.default_place(one[3])
        for caller, call in self.calls(function):
            given = given_for(caller, call, function, one[3])
            place = (caller, given) if given is not None else default
            found.append(self.of(*place, depth) if place is not None else OPEN)
        return _join(found) if found or default is None else self.of(*default, depth)

    def _captured(self, function: Function, one: Instruction, depth: int) -> Bounds:
        """A variable of a function around that is set once."""
        _, owner = cell = function.unit.ir.constants[one[3]]
        around = function.unit.function(owner)
        stores = [
            (each, store)
            for each in function.unit.functions
            for store in each.by_opcode[op.STORE]
            if function.unit.ir.constants[store[2]] == cell
        ]
        return self.of(around, stores[0][1][3], depth) if len(stores) == 1 and stores[0][0] is around else OPEN


def _join(every: Iterable[Bounds]) -> Bounds:
    found = list(every)
    lows, highs = [each.low for each in found], [each.high for each in found]
    low = min(each for each in lows if each is not None) if found and None not in lows else None
    return Bounds(low, max(each for each in highs if each is not None) if found and None not in highs else None)


def _sum(left: Bounds, right: Bounds) -> Bounds:
    return Bounds(*(one + other if one is not None and other is not None else None for one, other in zip(left, right, strict=True)))


def _difference(left: Bounds, right: Bounds) -> Bounds:
    return _sum(left, Bounds(*(-each if each is not None else None for each in (right.high, right.low))))


def _product(left: Bounds, right: Bounds) -> Bounds:
    ends = [one * other for one in left if one is not None for other in right if other is not None]
    return Bounds(min(ends), max(ends)) if len(ends) == 4 else OPEN


def _quotient(left: Bounds, right: Bounds) -> Bounds:
    by = right.exact
    return Bounds(*(each // by if each is not None else None for each in left)) if by is not None and by > 0 else OPEN


_OPERATORS: dict[str, Callable[[Bounds, Bounds], Bounds]] = {
    "+": _sum, "-": _difference, "*": _product, "/": _quotient, "//": _quotient,
}  # fmt: skip
_BY_OPCODE: dict[int, Callable[[Numbers, Function, Instruction, int], Bounds]] = {
    op.CONST: Numbers._constant,
    op.PHI: Numbers._phi,
    op.BINARY: Numbers._binary,
    op.CALL: Numbers._call,
    op.NAME: Numbers._name,
    op.LOAD: Numbers._captured,
    op.PARAM: Numbers._parameter,
}
