"""Which device factories of PyTorch use that name none: what ``torch.set_default_device`` has set before them, there or in a caller."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

if TYPE_CHECKING:
    from streamlint.facts.files.program import Program, Unit

_HOST, _DEVICE, _UNKNOWN = "host", "device", "unknown"
_HOST_NAMES = re.compile(r"cpu|meta|torch\.\w+$")
_OF_OBJECTS = frozenset({"__init__", "__getitem__", "__getitems__", "__iter__", "__next__"})
"""Methods that no call names: they run when their object is made, or behind that."""
_DEEPEST = 10
_MOST_CALLERS = 20


class DefaultDevices:
    """Answers for the places of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._at_entry: dict[Function, str] = {}

    def at(self, site: Site | None) -> str:
        """Where a factory makes memory that names no device: on the host, on a device, or unknown."""
        if site is None or site.function.is_cpp or not self._setters:
            return _HOST
        return self._before(site.function, site.instruction, 0)

    @cached_property
    def _setting(self) -> frozenset[str]:
        """The last parts of the names of functions that set a default."""
        units = (unit for unit in self.program.units.values() if not unit.is_cpp)
        return next((unit.models.known("default-device") for unit in units), frozenset())

    @cached_property
    def _setters(self) -> dict[str, list[Function]]:
        """By their names the functions that set a default."""
        found: dict[str, list[Function]] = {}
        for unit in self._mentioning(*sorted(self._setting)):
            for function in unit.functions:
                if not self._setting.isdisjoint(function.called_names):
                    found.setdefault(function.code.name, []).append(function)
        return found

    def _mentioning(self, *names: str) -> list[Unit]:
        units = dict.fromkeys(unit for name in names for unit in self.program.mentioning(name))
        return [unit for unit in units if not unit.is_cpp]

    def _before(self, function: Function, one: Instruction, depth: int) -> str:
        """The default at an instruction: by the last call on all ways to it that sets one, or by the callers."""
        for each in function.ahead(one):
            if each[0] in (op.CALL, op.INVOKE) and (said := self._set_by(function, each)) is not None:
                return said
        others = (
            each for opcode in (op.CALL, op.INVOKE) for each in function.by_opcode[opcode] if last_name(function, each) in self._setting
        )
        if any(function.runs_before(each, one) for each in others):
            return _UNKNOWN
        return self._entering(function, depth)

    def _set_by(self, function: Function, call: Instruction) -> str | None:
        """The default that a call sets, or the function of the program that it names at its end."""
        name = last_name(function, call)
        if name in self._setting:
            given = call[6 if call[0] == op.INVOKE else 5 :]
            return _space(function, given[0]) if given else _DEVICE
        if name == function.code.name:
            return None
        for setter in self._setters.get(name, ()):
            for end in setter.by_opcode[op.RETURN]:
                calls = (each for each in setter.ahead(end) if each[0] in (op.CALL, op.INVOKE) and last_name(setter, each) in self._setting)
                said = next((self._set_by(setter, each) for each in calls), None)
                if said is not None:
                    return said
        return None

    def _entering(self, function: Function, depth: int) -> str:
        """The default where a function is entered, if all calls of its name agree; without any, where it is handed on; else the one
        that its file leaves."""
        known = self._at_entry.get(function)
        if known is not None or depth > _DEEPEST or function.code.kind == "module":
            return known or _HOST
        self._at_entry[function] = _HOST  # of a function that calls itself, others decide
        callers = [each for each in self._callers(function) or self._handing(function) if each[0] is not function]
        ends = [(function.unit.body, end) for end in function.unit.body.by_opcode[op.RETURN]]
        found = {self._before(caller, call, depth + 1) for caller, call in callers or ends}
        self._at_entry[function] = said = found.pop() if len(found) == 1 else _UNKNOWN if found - {_HOST} else _HOST
        return said

    def _callers(self, function: Function) -> list[tuple[Function, Instruction]]:
        """The calls of a function's name, or of its class's for a constructor and for what gives items; none where there are many."""
        name = function.code.name
        if name in _OF_OBJECTS and (owner := function.owner) is not None:
            home, name = owner.body.parent, owner.name
            if home is not None and "." in name:  # a class of a function
                return [(home, one) for one in home.by_opcode[op.CALL] if _is_class(home, one[3], owner)]
        elif name in ("forward", "__call__", "<lambda>"):
            return []
        found = [each for each in self._naming(name) if not _is_of_other(*each, function)]
        return found if len(found) <= _MOST_CALLERS else []

    def _handing(self, function: Function) -> list[tuple[Function, Instruction]]:
        """Where a function that nothing calls by its name is handed on, or made: it runs behind that."""
        if function.parent is not None and function.parent.code.kind != "module":
            return [(function.parent, one) for one in function.parent.by_opcode[op.FUNCTION] if one[3] == function.code.number]
        name = function.code.name
        found = [
            (each, one)
            for unit in (self._mentioning(name) if function.owner is None else ())
            for each in unit.functions
            for one in (each.by_opcode[op.NAME] if each.code.kind != "module" else ())
            if each.text(one[3]) == name
        ]
        return found if len(found) <= _MOST_CALLERS else []

    def _naming(self, name: str) -> Iterator[tuple[Function, Instruction]]:
        for function in (each for unit in self._mentioning(name) for each in unit.functions if name in each.called_names):
            for opcode in (op.CALL, op.INVOKE):
                yield from ((function, one) for one in function.by_opcode[opcode] if last_name(function, one) == name)


def _is_class(function: Function, register: int, owner: ClassInfo) -> bool:
    """Whether a register holds a class that the function defines."""
    one = function.definitions[register] if register >= 0 else None
    return one is not None and one[0] == op.CLASS and one[3] == owner.ir.number


def _is_of_other(caller: Function, call: Instruction, function: Function) -> bool:
    """Whether a method calls one of its own object that its class defines, and that is another one."""
    owner = caller.method.owner if caller.method is not None else None
    made = caller.definitions[call[3]] if call[0] == op.INVOKE and call[3] >= 0 else None
    is_own = owner is not None and made is not None and made[0] == op.PARAM and made[3] == 0
    return is_own and owner is not None and function not in owner.methods.get(function.code.name, [function])


def _parts(function: Function, one: Instruction) -> tuple[int, ...] | None:
    """The registers that name a device for an instruction: several ways to it, or the argument of ``torch.device``; None for others."""
    if one[0] in (op.CALL, op.INVOKE) and last_name(function, one) == "device":
        return one[6 if one[0] == op.INVOKE else 5 :][:1]
    return one[3:] if one[0] == op.PHI else None


def _space(function: Function, register: int) -> str:
    """The space of a device by what it is called: on the host only where nothing else can be meant."""
    words: list[object] = []
    waiting = [register]
    for each in waiting:
        one = function.definitions[each] if each >= 0 else None
        parts = _parts(function, one) if one is not None else None
        waiting += [part for part in parts or () if part not in waiting]
        if parts is None:
            words.append(function.unit.ir.constants[one[3]] if one is not None and one[0] == op.CONST else function.dotted(each) or _DEVICE)
    return _HOST if all(word is None or (isinstance(word, str) and _HOST_NAMES.match(word)) for word in words) else _DEVICE
