"""Values of one context: what a register holds where the functions on the way to it were entered by certain calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant, LibraryObject, Object, Site
from streamlint.facts.values.selectors import space_of
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import Selector
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer
from streamlint.waits.entered import Context, entered_by
from streamlint.waits.operands import operand_of

_DEEPEST = 12


def _unknown(_: Known) -> None:
    """Nothing is taken for a number that is not known."""


_OPERATORS: dict[str, Callable[[int, int], int | None]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b if b else None,
    "<<": lambda a, b: a << b if 0 <= b < 64 else None,
    ">>": lambda a, b: a >> b if 0 <= b < 64 else None,
    "**": lambda a, b: a**b if 0 <= b < 64 and abs(a) < 1 << 16 else None,
}


class Known(NamedTuple):
    """A register of a function in a context."""

    function: Function
    register: int
    context: Context


class Contexts:
    """Questions about registers in a context."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.number_of: Callable[[Known, int], int | None] | None = None  # C++: what else is known of numbers
        self.facts = transfer.facts

    def calls(self, function: Function, one: Instruction) -> Iterable[ModelledCall]:
        """The calls of libraries that an instruction makes."""
        return self.transfer.modelled(function, one)

    def traced(self, known: Known) -> Known:
        """Where a register that passes a parameter on has its value from: the argument of the call, or the default."""
        for _ in range(_DEEPEST):
            one = self.definition(known)
            if one is not None and one[0] in (op.COPY, op.CAST):
                known = known._replace(register=one[-1])
                continue
            if one is not None and one[0] == op.REBIND and self.is_by_value(known.function, one):
                known = known._replace(register=one[5])
                continue
            if one is not None and one[0] == op.LOAD and (stored := self._stored_once(known.function, one)) is not None:
                known = Known(*stored, known.context)
                continue
            site = entered_by(known.context, known.function) if one is not None and one[0] == op.PARAM else None
            given = self.given(known.function, one, site) if one is not None and site is not None else None
            if given is None:
                return known
            known = Known(given[0], given[1], known.context)
        return known

    def _stored_once(self, function: Function, one: Instruction) -> tuple[Function, int] | None:
        """C++: the value of a variable that a lambda shares, where it gets no other one and nothing has its address."""
        if not function.is_cpp or any(True for _ in function.on_variable(op.ADDRESS, one[3])):
            return None
        stores = [(each, store[3]) for each, store in function.on_variable(op.STORE, one[3]) if not self._is_kept(each, store[3])]
        return stores[0] if len(stores) == 1 and stores[0][1] >= 0 else None

    def _is_kept(self, function: Function, register: int) -> bool:
        """Whether a value is that of the variable before, which a call has taken a copy of."""
        one = function.definitions[register] if register >= 0 else None
        return one is not None and one[0] == op.REBIND and self.is_by_value(function, one)

    def is_by_value(self, function: Function, one: Instruction) -> bool:
        """C++: whether a call leaves a variable as it is: functions at hand say so, those of libraries that have rows are of C's kind, and
        containers take copies."""
        call = function.definitions[one[3]]
        if call is None or call[0] not in (op.CALL, op.INVOKE):
            return False
        edges = [edge for edge in self.transfer.edges(function, call) if edge.is_followed]
        given = {one[4], one[4] + 1}  # behind a receiver
        if edges:
            return not any(each[2] in given for edge in edges for each in edge.callee.by_opcode[op.OUT])
        return self.transfer.is_of_language(function, call) or any(True for _ in self.transfer.modelled(function, call))

    def given(self, function: Function, parameter: Instruction, site: Site) -> tuple[Function, int] | None:
        """The register that a call gives for a parameter."""
        if site.instruction[0] not in (op.CALL, op.INVOKE, op.CONSTRUCT):
            return None
        edges = [edge for edge in self.transfer.edges(site.function, site.instruction) if edge.callee is function]
        if edges and all(edge.is_higher_order and not edge.is_elsewhere for edge in edges):
            return None  # what it is called with is the affair of the library that is given it
        register = operand_of(site.function, site.instruction, function, parameter[3])
        if register is not None:
            return site.function, register
        return function.default_place(parameter[3])

    def definition(self, known: Known) -> Instruction | None:
        """The instruction that defines a register."""
        return known.function.definitions[known.register] if known.register >= 0 else None

    def values(self, known: Known) -> Iterable[Object]:
        """What a register may hold."""
        known = self.traced(known)
        return self.facts.values(known.function, known.register).values if known.register >= 0 else ()

    def number(self, known: Known, depth: int = 0, otherwise: Callable[[Known], int | None] = _unknown) -> int | None:
        """The whole number that a register holds, if it is known. ``otherwise``: what to take for one of which nothing else is known."""
        known = self.traced(known)
        one = self.definition(known)
        if one is None or depth > _DEEPEST:
            return None
        if one[0] == op.BINARY:
            operator = _OPERATORS.get(known.function.text(one[3]))
            left, right = (self.number(known._replace(register=each), depth + 1, otherwise) for each in one[4:6])
            return operator(left, right) if operator is not None and left is not None and right is not None else None
        held = list(self.facts.values(known.function, known.register).values)
        if len(held) == 1 and isinstance(held[0], Constant) and type(held[0].value) is int:
            return held[0].value
        found = self.number_of(known, depth) if self.number_of is not None and known.function.is_cpp else None
        return found if found is not None else otherwise(known)

    def truth(self, call: ModelledCall, key: str, context: Context) -> bool | None:
        """What a switch of a row says in a context; None where it is not known."""
        held = call.row.get(key)
        if not isinstance(held, (Selector, tuple)):
            return bool(held)
        selectors = held if isinstance(held, tuple) else (held,)
        for selector in selectors:
            register = call.given(selector)
            if register is None:
                continue
            known = self.truth_of(Known(call.function, register, context))
            is_flag = any(
                isinstance(value, Constant) and isinstance(value.value, bool)
                for value in self.values(Known(call.function, register, context))
            )
            if known is None and self._is_of_stream(call, selector) and self._may_be_stream(Known(call.function, register, context)):
                return True
            if known is not None or is_flag or selector is selectors[-1]:
                return None if known is None else bool(known != selector.negated)
        last = selectors[-1]
        return bool((last.default == "true") != last.negated)

    def _is_of_stream(self, call: ModelledCall, selector: Selector) -> bool:
        """Whether a switch is the argument for the stream itself."""
        held = call.row.get("stream")
        return isinstance(held, Selector) and (held.kind, held.position, held.keyword) == (
            selector.kind,
            selector.position,
            selector.keyword,
        )

    def _may_be_stream(self, known: Known) -> bool:
        """Whether nothing says that what is given for a stream is none: no number, no ``None``."""
        return not any(isinstance(value, Constant) for value in self.values(known))

    def truth_of(self, known: Known, depth: int = 0) -> bool | None:
        """The truth of what a register holds; a stream in the place of a flag is true."""
        known = self.traced(known)
        one = self.definition(known)
        if one is not None and one[0] == op.UNARY and known.function.text(one[3]) in ("not", "!") and depth < _DEEPEST:
            inner = self.truth_of(known._replace(register=one[4]), depth + 1)
            return None if inner is None else not inner
        values = list(self.facts.values(known.function, known.register).values)
        truths = {_truth(value) for value in values}
        return truths.pop() if len(truths) == 1 else None

    def spaces(self, call: ModelledCall, context: Context) -> dict[str, str] | None:
        """Where the device arguments of a row lead, each with its evidence; None where none is given."""
        registers = call.all("device")
        if not registers:
            return None
        found: dict[str, str] = {}
        for register in registers:
            for value in self.values(Known(call.function, register, context)):
                space_of(value, partial(add, found))
            if found:
                break
        return found


def add(found: dict[str, str], space: str, evidence: str) -> None:
    """Keep the first evidence of a space."""
    found.setdefault(space, evidence)


def _truth(value: Object) -> bool | None:
    if isinstance(value, LibraryObject) and value.kind == "stream":
        return True
    return bool(value.value) if isinstance(value, Constant) else None
