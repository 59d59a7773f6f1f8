"""C++: template arguments: what they stand for, whether two are the same, and which specialisations a call may mean by them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import uncast
from streamlint.facts.files.cpp_scopes import CppScopes, Variable, last_part, scope_of
from streamlint.facts.files.program import Unit
from streamlint.ir import opcodes as op
from streamlint.ir.code import TemplateArgument, TypeTuple

_FUNDAMENTAL = frozenset({"bool", "char", "double", "float", "int", "long", "long long", "short", "unsigned char", "void"})
_TRUTHS = {"true": True, "false": False}
_ALIASED = "other"
"""The word of constants of which several mean the same."""
_DEEPEST = 4


class Meant(NamedTuple):
    """What a template argument, or a value that is compared with one, stands for. ``kind``: ``value`` of a literal, a ``constant`` of a
    library, a ``class`` of the program, a ``fundamental`` type, or a ``name`` of which no more is known."""

    kind: str
    held: object

    def is_same(self, other: Meant) -> bool | None:
        """Whether both are the same; None where that is not known."""
        if self == other:
            return True
        if self.kind == other.kind == "value" and None in (self.held, other.held):
            return not (self.held or other.held)  # ``0`` is ``nullptr``
        if self.kind == other.kind == "name":
            head, _, _ = str(self.held).rpartition("::")
            return False if head and head == str(other.held).rpartition("::")[0] else None
        if "name" in (self.kind, other.kind):
            return None
        return False


class Templates:
    """Questions about template arguments. ``constants`` are those of libraries, by name, each with its word."""

    def __init__(self, cpp: CppScopes, constants: Callable[[], dict[str, str]]) -> None:
        self.cpp = cpp
        self._constants = constants
        self._set_inside: dict[Unit, set[str]] = {}  # by file the names that its functions set

    def meant(self, function: Function, argument: TemplateArgument, depth: int = 0) -> Meant | None:
        """What a template argument stands for where it is written; None for one that names a template parameter."""
        if not isinstance(argument, tuple):
            return Meant("value", argument)
        name = str(argument[0])
        if is_parameter(function, name):
            return None
        if argument[1] or argument[2] or argument[3] or argument[4] is not None:
            return Meant("name", argument) if not _mentions_parameter(function, argument) else None
        if name in _FUNDAMENTAL:
            return Meant("fundamental", name)
        if name in _TRUTHS or name.isdecimal():
            return Meant("value", _TRUTHS[name] if name in _TRUTHS else int(name))
        for one in self.cpp.find(function.unit, scope_of(function), name):
            if isinstance(one, ClassInfo):
                return Meant("class", one)
            if isinstance(one, Variable) and depth < _DEEPEST:
                return self._begun_with(one, depth)
        return self._of_library(function, name)

    def _of_library(self, function: Function, name: str) -> Meant:
        """The constant of a library that a name stands for, or the name."""
        spelled, prefixes = self.cpp.spellings(function.unit, scope_of(function), name)
        words = self._constants()
        for full in (f"{prefix}::{spelled}" if prefix else spelled for prefix in (*prefixes, "")):
            word = words.get(full)
            if word is not None:
                return Meant("name", last_part(full)) if word == _ALIASED else Meant("constant", (word, last_part(full).removeprefix("k")))
        return Meant("name", spelled)

    def _begun_with(self, variable: Variable, depth: int) -> Meant | None:
        """What a variable of a file is set to, if one instruction alone does that, and no function of the file."""
        body = variable.unit.body
        set_to = [one[3] for one in body.by_opcode[op.SET_NAME] if body.text(one[2]) == variable.name]
        if len(set_to) != 1 or self._is_set_inside(variable):
            return None
        one = body.definitions[uncast(body, set_to[0])]
        if one is not None and one[0] == op.CONST:
            return Meant("value", body.unit.ir.constants[one[3]])
        if one is not None and one[0] == op.NAME:
            return self.meant(body, (body.text(one[3]), (), 0, False, None), depth + 1)
        return None

    def _is_set_inside(self, variable: Variable) -> bool:
        """Whether a function of the file sets a variable, by the last part of its name."""
        unit = variable.unit
        if unit not in self._set_inside:
            others = (each for each in unit.functions if each is not unit.body)
            self._set_inside[unit] = {last_part(each.text(one[2])) for each in others for one in each.by_opcode[op.SET_NAME]}
        return last_part(variable.name) in self._set_inside[unit]

    def is_for(self, function: Function, specialised: Sequence[TemplateArgument], given: Sequence[Meant | None]) -> bool | None:
        """Whether a specialisation, whose arguments are written where ``function`` is, is meant by those that are given; None: maybe."""
        is_sure = len(given) >= len(specialised)
        for own, other in zip(specialised, given, strict=False):
            if isinstance(own, tuple) and is_parameter(function, str(own[0])):
                continue  # a partial specialisation takes any
            meant = self.meant(function, own)
            same = meant.is_same(other) if meant is not None and other is not None else None
            if same is False:
                return False
            is_sure &= same is True
        return True if is_sure else None

    def chosen(self, candidates: Iterable[Function], given: Sequence[Meant | None]) -> list[Function]:
        """Of functions of a name, those that a call with template arguments may mean."""
        found = list(candidates)
        verdicts = {one: self.is_for(one, one.code.specialised, given) for one in found if one.code.specialised}
        sure = [one for one, verdict in verdicts.items() if verdict]
        sizes = {len(one.code.parameters) for one in sure}
        return [
            one
            for one in found
            if one in sure or (verdicts.get(one, True) is not False and (not sure or len(one.code.parameters) not in sizes))
        ]

    def class_for(self, function: Function, kind: TypeTuple, definition: ClassInfo) -> ClassInfo:
        """The specialisation of a class that a type names, if it is known to be one that stands beside the class."""
        beside = definition.unit.named.get(definition.name, ())
        if len(beside) < 2 or not kind[1]:
            return definition
        given = [self.meant(function, one) for one in kind[1]]
        classes = [one for one in beside if isinstance(one, ClassInfo)]
        for one in classes:
            if one.ir.specialised and self.is_for(one.body, one.ir.specialised, given):
                return one
        return next((one for one in classes if not one.ir.specialised), definition)


def is_parameter(function: Function, name: str) -> bool:
    """Whether a name is one of the template parameters of a function, or of what it stands in."""
    current: Function | None = function
    while current is not None:
        owner = current.owner
        if name in current.code.template or (owner is not None and name in owner.ir.template):
            return True
        current = current.parent
    return False


def _mentions_parameter(function: Function, argument: TemplateArgument) -> bool:
    return isinstance(argument, tuple) and (
        is_parameter(function, str(argument[0])) or any(_mentions_parameter(function, one) for one in argument[1])
    )
