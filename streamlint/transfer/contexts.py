"""Values of one context: what a register holds where the functions on the way to it were entered by certain calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from streamlint.facts.functions import Function
from streamlint.facts.objects import Constant, DeviceValue, External, Memory, Object, Site
from streamlint.facts.selectors import UNMOVED, space_of
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import operand_of

Context = tuple[tuple[Function, Site], ...]
"""The functions that were entered, each with the call that did it. A function that is not in it was entered by any of its calls."""
_DEEPEST = 12
_OPERATORS = {
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


def entered_by(context: Context, function: Function) -> Site | None:
    """The call that has entered a function."""
    return next((site for entered, site in context if entered is function), None)


class Contexts:
    """Questions about registers in a context."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
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
            site = entered_by(known.context, known.function) if one is not None and one[0] == op.PARAM else None
            given = self.given(known.function, one, site) if one is not None and site is not None else None
            if given is None:
                return known
            known = Known(given[0], given[1], known.context)
        return known

    def given(self, function: Function, parameter: Instruction, site: Site) -> tuple[Function, int] | None:
        """The register that a call gives for a parameter."""
        if site.instruction[0] not in (op.CALL, op.INVOKE, op.CONSTRUCT):
            return None
        register = operand_of(site.function, site.instruction, function, parameter[3])
        if register is not None:
            return site.function, register
        default = function.default_register(parameter[3])
        return (function.parent, default) if default is not None and function.parent is not None else None

    def definition(self, known: Known) -> Instruction | None:
        """The instruction that defines a register."""
        return known.function.definitions[known.register] if known.register >= 0 else None

    def values(self, known: Known) -> Iterable[Object]:
        """What a register may hold."""
        known = self.traced(known)
        return self.facts.values(known.function, known.register).values if known.register >= 0 else ()

    def number(self, known: Known, depth: int = 0) -> int | None:
        """The whole number that a register holds, if it is known."""
        known = self.traced(known)
        one = self.definition(known)
        if one is None or depth > _DEEPEST:
            return None
        if one[0] == op.BINARY:
            operator = _OPERATORS.get(known.function.text(one[3]))
            left, right = (self.number(known._replace(register=each), depth + 1) for each in one[4:6])
            return operator(left, right) if operator is not None and left is not None and right is not None else None
        held = list(self.facts.values(known.function, known.register).values)
        if len(held) == 1 and isinstance(held[0], Constant) and type(held[0].value) is int:
            return held[0].value
        return self._behind(known, depth) if held and known.function.is_cpp else None

    def _behind(self, known: Known, depth: int) -> int | None:
        """C++: the number that a constant of a namespace or class is computed from."""
        one = self.definition(known)
        assert one is not None
        if one[0] == op.CALL and known.function.dotted(one[3]) == "size_t" and len(one) == 6:
            return self.number(known._replace(register=one[5]), depth + 1)
        return None

    def truth(self, call: ModelledCall, key: str, context: Context) -> bool | None:
        """What a switch of a row says in a context; None where it is not known."""
        register, said = call.switch(key)
        if register < 0:
            return said if said is not None or call.row.get(key) is None else None
        if said is not None and call.function.definitions[register][0] == op.CONST:  # type: ignore[index]
            return said
        values = list(self.values(Known(call.function, register, context)))
        known = {bool(value.value) for value in values if isinstance(value, Constant)}
        if len(known) != 1 or any(not isinstance(value, Constant) for value in values):
            return said if not values else None
        return known.pop() != is_negated(call, key)

    def spaces(self, call: ModelledCall, context: Context) -> dict[str, str] | None:
        """Where the device arguments of a row lead, each with its evidence; None where none is given."""
        registers = call.all("device")
        if not registers:
            return None
        found: dict[str, str] = {}
        for value in self.values(Known(call.function, registers[0], context)):
            space_of(value, lambda space, evidence: found.setdefault(space, evidence) and None)
        return found

    def is_device(self, call: ModelledCall, context: Context) -> bool:
        """Whether the argument that may name a device is one, as far as it is known."""
        for register in call.all("device")[:1]:
            for value in self.values(Known(call.function, register, context)):
                if isinstance(value, (DeviceValue, Memory)) or (isinstance(value, Constant) and isinstance(value.value, (str, int))):
                    return True
        return False


def is_negated(call: ModelledCall, key: str) -> bool:
    """Whether a switch is the opposite of its flag."""
    held = call.row.get(key)
    return bool(getattr(held, "negated", False))


__all__ = ["UNMOVED", "Context", "Contexts", "External", "Known", "entered_by"]
