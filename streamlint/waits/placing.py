"""Which files of a program choose a device, and which only go by where a tensor is already: ``torch.zeros(n, device=x.device)``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.facts import Facts
from streamlint.facts.functions import Function
from streamlint.facts.instructions import last_name
from streamlint.facts.objects import Memory
from streamlint.facts.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.operands import argument_registers, is_element_type, operand_of

_DEVICE, _TO = "device", "to"
_OF_LOCALS = frozenset({op.BIND, op.UNBIND, op.UNDEF, op.LOAD, op.STORE, op.SET_NAME, op.DEL_NAME, op.CLASS, op.FUNCTION})
_ADDING = (op.BINARY, op.UNARY)
_COMPUTING = (op.BINARY, op.UNARY, op.COMPARE, op.ITEM)


class Placing:
    """Answers for the files of a program."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._moving = facts.models.known("places")
        self._words = sorted(facts.models.known("device-word"))
        self._known: dict[Unit, bool] = {}
        self._is_nowhere: bool | None = None

    def is_nowhere(self) -> bool:
        """Whether no file of the program chooses a device."""
        if self._is_nowhere is None:
            words = [
                name for name in sorted(self.facts.program.identifiers) if name in self._moving or any(word in name for word in self._words)
            ]
            words.sort(key=lambda word: word in (_DEVICE, _TO))  # these two are also in prose
            units = dict.fromkeys(unit for name in words for unit in self.facts.program.mentioning(name))
            self._is_nowhere = not any(map(self.chooses, units))
        return self._is_nowhere

    def chooses(self, unit: Unit) -> bool:
        """Whether a file names a device, moves something to one that it is told, or imports what does so."""
        if unit not in self._known:
            self._known[unit] = self._chooses(unit)
        return self._known[unit]

    def _chooses(self, unit: Unit) -> bool:
        if any(module.partition(".")[0] in self.facts.models.marked("places-modules") for module, _ in unit.imports):
            return True
        is_named = any(map(self._is_of_device, _names(unit.ir.constants)))
        if not is_named or unit.is_cpp:
            return is_named
        if any(self._is_of_device(name) and name not in (_DEVICE, _TO) for name in _names(_asked_for(unit))):
            return True
        return any(self.places(function, one) for function in unit.functions for one in function.code.instructions())

    def _is_of_device(self, name: str) -> bool:
        """Whether a name or a text is one that puts something on a device; prose is none."""
        if name in self._moving or name.startswith("cuda"):
            return True
        return name.isidentifier() and any(_has_word(name, word) for word in self._words)

    def moves(self, function: Function, one: Instruction) -> bool:
        """Whether the use of a method that moves something may put it elsewhere than on the host."""
        given = argument_registers(function, one) if one[0] == op.INVOKE and function.text(one[4]) == _TO else []
        return not given or not all(self._is_host(function, register) for kind, register in given if kind in (None, _DEVICE))

    def places(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction puts something elsewhere than where a tensor is, or names a device."""
        if one[0] == op.ATTR and function.text(one[4]) == _DEVICE:
            return not self._is_of_tensor(function, one)
        if one[0] == op.SET_ATTR:
            return function.text(one[3]) == _DEVICE
        if one[0] not in (op.CALL, op.INVOKE):
            return False
        name, given = last_name(function, one), argument_registers(function, one)
        if name == _TO and one[0] == op.INVOKE:
            return not all(kind not in (None, _DEVICE) or self._is_beside(function, register) for kind, register in given)
        if _is_device(function, one):
            return not self._is_one_beside(function, one[2])
        return any(kind == _DEVICE and not self._is_beside(function, register) for kind, register in given)

    def _values(self, function: Function, register: int) -> Iterator[tuple[Function, int]]:
        """The registers that a register stands for: over the ways to it, what functions put into the variable that a closure reads, what
        the calls in view give for a parameter, and the devices that functions give back."""
        waiting, seen = [(function, register)], set[tuple[Function, int]]()
        while waiting:
            place = home, held = waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            one = home.definitions[held] if held >= 0 else None
            behind = [*self._behind(home, one)] if one is not None else []
            waiting += behind
            if not behind:
                yield place

    def _given_by_all(self, function: Function, index: int) -> list[tuple[Function, int]]:
        """The arguments of all calls of a function for a parameter; none where one call does not show it."""
        calls = [each for each in self.facts.call_places(function) if function in self.facts.enters(*each)]
        given = [(caller, operand_of(caller, call, function, index)) for caller, call in calls if call[0] in (op.CALL, op.INVOKE)]
        known = [(caller, register) for caller, register in given if register is not None and register >= 0]
        return known if len(known) == len(calls) else []

    def _behind(self, function: Function, one: Instruction) -> Iterable[tuple[Function, int]]:
        if one[0] == op.PHI:
            return [(function, each) for each in one[3:]]
        if one[0] in (op.LOAD, op.NAME):
            return _stored(function, one)
        if one[0] == op.PARAM and not self._is_tensor(function, one[2], _ADDING):
            return self._given_by_all(function, one[3])
        callees = self.facts.enters(function, one) if one[0] == op.CALL else ()
        ends = [(callee, end[2]) for callee in callees for end in callee.by_opcode[op.RETURN]]
        return ends if all(_gives_device(*each) for each in ends) else []

    def _is_beside(self, function: Function, register: int) -> bool:
        """Whether a register holds the device of a tensor, nothing or the host, or what names no device: the type of elements."""
        return all(self._is_one_beside(*each) for each in self._values(function, register))

    def _is_host(self, function: Function, register: int) -> bool:
        """Whether a register holds a device that is the host's wherever it may come from."""
        for home, held in self._values(function, register):
            one = home.definitions[held] if held >= 0 else None
            if one is None or not (home.constant(held) == "cpu" or (_is_device(home, one) and self._is_one_beside(home, held))):
                return False
        return True

    def _is_one_beside(self, function: Function, register: int) -> bool:
        one = function.definitions[register] if register >= 0 else None
        if one is None:
            return False
        if one[0] == op.CONST:
            return function.unit.ir.constants[one[3]] in (None, "cpu", True, False)
        if _is_device(function, one):
            return all(self._is_beside(function, register) for _, register in argument_registers(function, one)[:1])
        if one[0] == op.ATTR and function.text(one[4]) == _DEVICE:
            return self._is_of_tensor(function, one)
        if (one[0] == op.ATTR and function.text(one[4]) == "dtype") or is_element_type(self.facts, function, register):
            return True
        return self._is_tensor(function, register, _ADDING)  # where another tensor is

    def _is_of_tensor(self, function: Function, one: Instruction) -> bool:
        """Whether the object of an attribute is a tensor: by what is known of it, or by how the function uses it."""
        return self._is_tensor(function, one[3], _COMPUTING)

    def _is_tensor(self, function: Function, register: int, computing: tuple[int, ...]) -> bool:
        if any(isinstance(value, Memory) for value in self.facts.values(function, register).values):
            return True
        if function.owner is not None and function.is_parameter(register, 0):
            return False
        held = function.definitions[register] if register >= 0 else None
        uses = function.uses[register] if held is not None and held[0] not in (op.NAME, op.IMPORT) else ()
        members = (function.text(use[4]) for use in uses if use[0] in (op.ATTR, op.INVOKE) and use[3] == register)
        return not function.known("shows-tensor").isdisjoint(members) or any(use[0] in computing for use in uses)


def _is_device(function: Function, one: Instruction) -> bool:
    """Whether an instruction makes a device: ``torch.device("cpu")``."""
    return one[0] in (op.CALL, op.INVOKE) and last_name(function, one) == _DEVICE and len(argument_registers(function, one)) > 0


def _gives_device(function: Function, register: int) -> bool:
    """Whether a function gives back a device that it makes, or the text that names one."""
    one = function.definitions[register] if register >= 0 else None
    return one is not None and (_is_device(function, one) or isinstance(function.constant(register), str))


def _stored(function: Function, one: Instruction) -> Iterator[tuple[Function, int]]:
    """What functions put into the variable that a closure reads, and what a file puts into its own."""
    if one[0] == op.NAME:
        yield from function.unit.globals.get(function.text(one[3]), ())
        return
    name, owner = function.unit.ir.constants[one[3]]
    home = function.unit.function(owner)
    for each in (home, *home.below):
        yield from ((each, store[3]) for store in each.by_opcode[op.STORE] if each.unit.ir.constants[store[2]] == (name, owner))


def _asked_for(unit: Unit) -> Iterator[object]:
    """The names, keywords and texts in a file's instructions, but for those of its own variables, functions and classes."""
    own = {function.text(one[2]) for function in unit.functions for one in function.by_opcode[op.SET_NAME]}
    for function in unit.functions:
        for one in function.code.instructions():
            for place, letter in enumerate(op.FIXED[one[0]], 2) if one[0] not in _OF_LOCALS else ():
                name = unit.ir.constants[one[place]] if letter in "kK" and one[place] != op.NONE else None
                if one[0] != op.NAME or name not in own:
                    yield name


def _names(constants: Iterable[object]) -> Iterator[str]:
    for value in constants:
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple):
            yield from (part for part in value if isinstance(part, str))


def _has_word(name: str, word: str) -> bool:
    return word in name if word != "mps" else word in name.split("_")
