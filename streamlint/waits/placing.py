"""Which files of a program choose a device, and which only go by where a tensor is already: ``torch.zeros(n, device=x.device)``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import Memory, Site
from streamlint.facts.code.overwritten import overwritten
from streamlint.facts.files.program import Unit
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.constants import constants_of
from streamlint.waits.entered import Context, Held
from streamlint.waits.operands import ahead, argument_registers, is_element_type, operand_of
from streamlint.waits.questions import conditions

_DEVICE, _TO = "device", "to"
_OF_LOCALS = frozenset({op.BIND, op.UNBIND, op.UNDEF, op.LOAD, op.STORE, op.SET_NAME, op.DEL_NAME, op.CLASS, op.FUNCTION})
_ADDING = (op.BINARY, op.UNARY)
_MOST = 200
"""Registers that are looked at for one."""
_COMPUTING = (op.BINARY, op.UNARY, op.COMPARE, op.ITEM)


class Placing:
    """Answers for the files of a program. ``run``: those that are run together, where not all of them are; what others call does not
    count, nor what nobody calls."""

    def __init__(self, facts: Facts, run: frozenset[Unit] | None = None) -> None:
        self.facts = facts
        self.run = run
        self._moving = facts.models.known("places")
        self._words = sorted(facts.models.known("device-word"))
        self._constants = constants_of(facts)
        self._known: dict[Unit, bool] = {}
        self._is_nowhere: bool | None = None

    def is_nowhere(self) -> bool:
        """Whether no file of the program chooses a device."""
        if self._is_nowhere is None:
            words = [
                name for name in sorted(self.facts.program.identifiers) if name in self._moving or any(word in name for word in self._words)
            ]
            words.sort(key=lambda word: word in (_DEVICE, _TO))  # these two are also in prose
            units = dict.fromkeys(unit for name in words for unit in self.facts.program.mentioning(name) if self._is_run(unit))
            self._is_nowhere = not any(map(self.chooses, units))
        return self._is_nowhere

    def chooses(self, unit: Unit, makers: Context = ()) -> bool:
        """Whether a file names a device, moves something to one that it is told, or imports what does so."""
        if makers:
            return self._chooses(unit, makers)
        if unit not in self._known:
            self._known[unit] = True  # of files that import one another
            self._known[unit] = self._chooses(unit, ())
        return self._known[unit]

    def _chooses(self, unit: Unit, makers: Context) -> bool:
        if self.takes_from_placing(unit):
            return True
        is_named = any(map(self._is_of_device, _names(unit.ir.constants)))
        if not is_named or unit.is_cpp:
            return is_named
        return any(self.chooses_in(function, makers) for function in unit.functions)

    def takes_from_placing(self, unit: Unit) -> bool:
        """Whether a file imports a library that puts modules where it wants them."""
        return any(module.partition(".")[0] in self.facts.models.marked("places-modules") for module, _ in unit.imports)

    def chooses_in(self, function: Function, makers: Context = ()) -> bool:
        """Whether a function names a device, or moves something to one that it is told."""
        if any(self._is_of_device(name) and name not in (_DEVICE, _TO) for name in _names(self._asked_for(function))):
            return True
        return any(self.places(function, one, makers) and not self._is_dead(function, one) for one in function.code.instructions())

    def _asked_for(self, function: Function) -> Iterator[object]:
        """The names, keywords and texts in a function's instructions, but for those of the file's own variables, functions and classes,
        what it imports from files that choose no device, and what only asks whether there is a GPU, or is overwritten before it is read."""
        constants, own = function.unit.ir.constants, function.unit.stored
        for one in function.code.instructions():
            if one[0] in _OF_LOCALS or self._is_idle(function, one):
                continue
            for place, letter in enumerate(op.FIXED[one[0]], 2):
                name = constants[one[place]] if letter in "kK" and one[place] != op.NONE else None
                if one[0] != op.NAME or name not in own:
                    yield name

    def _is_idle(self, function: Function, one: Instruction) -> bool:
        """Whether a name only asks whether there is a GPU, or is imported from a file that chooses no device, or a text only names one that
        is overwritten before it is read, stands in an arm that no call takes, or as a default that no call leaves."""
        if one[0] == op.IMPORT:
            target = function.unit.program.imported(function.text(one[3]), function.unit)
            return target is not None and not self.chooses(target)
        if one[0] == op.ATTR:
            asking = (use for use in function.uses[one[2]] if use[0] != op.INVOKE or not self._asks(function, use))
            return bool(function.uses[one[2]]) and next(asking, None) is None
        if one[0] != op.CONST or not self._is_of_device(str(function.constant(one[2]))):
            return False
        return _is_overwritten(function, one) or self._is_dead(function, one) or self._is_never_left(function, one)

    def _is_dead(self, function: Function, one: Instruction) -> bool:
        """Whether no call in view takes the arm of a branch in which an instruction stands."""
        asked = conditions(function, function.blocks[one]) if not function.is_cpp else ()
        return any(self._constants.truth(function, register) is (not holds) for register, holds in asked)

    def _is_never_left(self, function: Function, one: Instruction) -> bool:
        """Whether a constant is a default of parameters alone, for which all calls in view give something else."""
        uses = function.uses[one[2]]
        made = {function.unit.function(use[3]): use for use in uses if use[0] == op.FUNCTION}
        taken = ((callee, index) for callee, use in made.items() for index in _defaulting(callee, use, one[2]))
        return len(made) == len(uses) > 0 and all(self._is_always_given(*each) for each in taken)

    def _is_always_given(self, callee: Function, index: int) -> bool:
        calls = self._constants.given.entries(Held(callee, op.NONE))
        return bool(calls) and all(_gives(each, callee, index) for each in calls or ())

    def _asks(self, function: Function, call: Instruction) -> bool:
        row = self.facts.models.call(f"{function.dotted(call[3])}.{function.text(call[4])}")
        return row is not None and bool(row.get("asks_for_cuda"))

    def _is_of_device(self, name: str) -> bool:
        """Whether a name or a text is one that puts something on a device; prose is none."""
        if name in self._moving or name.startswith("cuda"):
            return True
        return name.isidentifier() and any(_has_word(name, word) for word in self._words)

    def moves(self, function: Function, one: Instruction, makers: Context = ()) -> bool:
        """Whether the use of a method that moves something may put it elsewhere than on the host, where it is run."""
        if not self._is_run(function.unit):
            return False
        given = argument_registers(function, one) if one[0] == op.INVOKE and function.text(one[4]) == _TO else []
        return not given or not all(self._is_host(function, each, makers) for kind, each in given if kind in (None, _DEVICE))

    def places(self, function: Function, one: Instruction, makers: Context = ()) -> bool:
        """Whether an instruction puts something elsewhere than where a tensor is, or names a device."""
        if one[0] == op.ATTR and function.text(one[4]) == _DEVICE:
            return not self._is_beside(function, one[2], makers)
        if one[0] == op.SET_ATTR:
            return function.text(one[3]) == _DEVICE and not self._is_beside(function, one[4], makers)
        if one[0] not in (op.CALL, op.INVOKE):
            return False
        name, given = last_name(function, one), argument_registers(function, one)
        if name == _TO and one[0] == op.INVOKE:
            return not all(kind not in (None, _DEVICE) or self._is_beside(function, register, makers) for kind, register in given)
        if _is_device(function, one):
            return not self._is_beside(function, one[2], makers) and not _is_overwritten(function, one)
        return any(kind == _DEVICE and not self._is_beside(function, register, makers) for kind, register in given)

    def _is_beside(self, function: Function, register: int, makers: Context = ()) -> bool:
        """Whether a register holds the device of a tensor, nothing or the host, or what names no device: the type of elements."""
        return self._comes_from(Held(function, register, makers=makers), self._is_one_beside)

    def _is_host(self, function: Function, register: int, makers: Context) -> bool:
        """Whether a register holds a device that is the host's wherever it may come from."""
        return self._comes_from(Held(function, register, makers=makers), lambda home, held: home.constant(held) == "cpu")

    def _comes_from(self, place: Held, counts: Callable[[Function, int], bool]) -> bool:
        """Whether a register comes from such alone as counts, the devices that are made of it included."""
        waiting, seen = [place], set[Held]()
        while waiting:
            held = waiting.pop()
            if held in seen or counts(held.function, held.register):
                continue
            seen.add(held)
            one = held.instruction
            behind: list[Held | None]
            if one is not None and _is_device(held.function, one):
                behind = [held._replace(register=each) for _, each in argument_registers(held.function, one)[:1]]
            else:
                behind = [each for each in self._constants.given.before(held) or [held] if each != held]
            if self.run is not None and self._is_left_out(held):
                continue
            if not behind or None in behind or len(seen) > _MOST:
                return False
            waiting += [each for each in behind if each is not None and self._is_run(each.function.unit)]
        return True

    def _is_run(self, unit: Unit) -> bool:
        return self.run is None or unit in self.run

    def _is_left_out(self, held: Held) -> bool:
        """Whether a register holds a parameter of a function that nothing calls of what is run."""
        one, function = held.instruction, held.function
        if one is None or one[0] != op.PARAM or self._constants.given.entries(held):
            return False
        return not any(self._is_run(caller.unit) for caller, _ in self.facts.call_places(function))

    def _is_one_beside(self, function: Function, register: int) -> bool:
        one = function.definitions[register] if register >= 0 else None
        if one is None or _is_device(function, one):
            return False
        if one[0] == op.CONST:
            return function.unit.ir.constants[one[3]] in (None, "cpu", True, False)
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


def _defaulting(callee: Function, made: Instruction, register: int) -> Iterator[int]:
    """The parameters of a function of which a register is the default."""
    defaulted = [index for index, one in enumerate(callee.code.parameters) if one.default]
    yield from (index for index, held in zip(defaulted, made[4:], strict=False) if held == register)


def _gives(call: Site, callee: Function, index: int) -> bool:
    caller, one = call
    return one[0] in (op.CALL, op.INVOKE) and operand_of(caller, one, callee, index) is not None


def _is_device(function: Function, one: Instruction) -> bool:
    """Whether an instruction makes a device: ``torch.device("cpu")``."""
    return one[0] in (op.CALL, op.INVOKE) and last_name(function, one) == _DEVICE and len(argument_registers(function, one)) > 0


def _is_overwritten(function: Function, one: Instruction) -> bool:
    """Whether what an instruction of a file's body gives is a device or goes into one, and is overwritten before anything reads it."""
    lost = overwritten(function.unit) if function is function.unit.body else ()
    uses = [use for _, use in ahead(function, one[2], (op.PHI, op.CALL, op.INVOKE))] if lost else []
    return bool(uses) and all(use in lost or use[0] == op.PHI or _is_device(function, use) for use in uses)


def _names(constants: Iterable[object]) -> Iterator[str]:
    for value in constants:
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple):
            yield from (part for part in value if isinstance(part, str))


def _has_word(name: str, word: str) -> bool:
    return word in name if word != "mps" else word in name.split("_")
