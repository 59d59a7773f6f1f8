"""What names mean in C++ files: namespaces, includes, and from a declaration in one file to the definition in another."""

from __future__ import annotations

import posixpath
from functools import cached_property
from os.path import commonpath
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.ir import Code, DeclarationIR
from streamlint.ir.code import TypeTuple
from streamlint.support.memo import memoized
from streamlint.support.records import record

if TYPE_CHECKING:
    from streamlint.facts.files.program import Program, Unit

DEEPEST = 8  # aliases behind one another
SOURCES = (".cu", ".cpp", ".cc", ".cxx", ".c", ".py", ".ipynb")  # what compilers read on its own; anything else is included


@record(frozen=True, slots=True)
class Variable:
    """A variable of a file or namespace, by the file that defines it and its qualified name."""

    unit: Unit
    name: str


@record(frozen=True, slots=True)
class Context:
    """What a file and those that it includes say: types by another name, namespaces by another name, namespaces that are used."""

    aliases: dict[str, TypeTuple]
    namespaces: dict[str, str]
    using: dict[str, None]


Meaning = ClassInfo | Function | Variable


def last_part(name: str) -> str:
    """A qualified name without its scope."""
    return name.rpartition("::")[2]


def joined(scope: str, name: str) -> str:
    """``scope::name``."""
    return f"{scope}::{name}" if scope else name


def scope_of(function: Function) -> str:
    """The class or namespace whose names a function's body sees first."""
    while function.code.kind in ("lambda", "default") and function.parent is not None:
        function = function.parent
    if function.code.kind == "class":
        return function.code.qualname
    return function.code.class_name or function.code.qualname.rpartition("::")[0]


class CppScopes:
    """Looks C++ names up in the files of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._included: dict[Unit, dict[Unit, None]] = {}
        self._contexts: dict[Unit, Context] = {}
        self._found: dict[tuple[Unit, str, str], tuple[Meaning, ...]] = {}
        self._around: dict[Unit, dict[Unit, None]] = {}
        self._files: dict[str, list[Unit]] = {}
        for unit in program.units.values():
            if unit.is_cpp:
                self._files.setdefault(PurePosixPath(unit.path).name, []).append(unit)

    @property
    def any(self) -> bool:
        """Whether there is C++ in the program."""
        return bool(self._files)

    # --- files

    def visible(self, unit: Unit) -> dict[Unit, None]:
        """The file and those that it includes, also through others."""
        found = self._included.get(unit)
        if found is None:
            found = self._included[unit] = {unit: None}
            waiting = [unit]
            while waiting:
                including = waiting.pop()
                for include in including.ir.includes:
                    target = self.included(include, including)
                    if target is not None and target not in found:
                        found[target] = None
                        waiting.append(target)
        return found

    def seeing(self, unit: Unit) -> list[Unit]:
        """The files that include a file, and itself."""
        return self._seen_by.get(unit, [])

    @cached_property
    def _seen_by(self) -> dict[Unit, list[Unit]]:
        """By file: those that include it, and itself."""
        found: dict[Unit, list[Unit]] = {}
        for one in (each for files in self._files.values() for each in files):
            for seen in self.visible(one):
                found.setdefault(seen, []).append(one)
        return found

    def included(self, include: str, unit: Unit) -> Unit | None:
        """The file that an include of a file names: by its path from there, or the nearest one of those whose paths end so."""
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(unit.path), include))
        tail = include.replace("\\", "/").lstrip("./")
        fitting = [one for one in self._files.get(tail.rpartition("/")[2], ()) if f"/{one.path}".endswith(f"/{tail}")]
        return max(fitting, key=lambda one: (one.path == beside, len(_common(one.path, unit.path))), default=None)

    @memoized
    def mentioning(self, name: str) -> list[Unit]:
        """The C++ files that mention an identifier."""
        return [unit for unit in self.program.mentioning(name) if unit.is_cpp]

    def context(self, unit: Unit) -> Context:
        """What a file and its includes say of names in general."""
        found = self._contexts.get(unit)
        if found is None:
            found = self._contexts[unit] = Context({}, {}, {})
            for one in self.visible(unit):
                for name, kind in one.ir.aliases.items():
                    found.aliases.setdefault(name, kind)
                for name, full in one.ir.namespaces.items():
                    found.namespaces.setdefault(name, full)
                found.using.update(dict.fromkeys(one.ir.using))
        return found

    # --- names

    def find(self, unit: Unit, scope: str, name: str) -> tuple[Meaning, ...]:
        """What a name means in a scope of a file: the nearest scope that knows it counts. Empty for names of libraries."""
        key = (unit, scope, name)
        if key not in self._found:
            self._found[key] = ()  # an alias of itself
            self._found[key] = tuple(self._find(unit, scope, name, 0) or self._find_around(unit, scope, name))
        return self._found[key]

    def _find_around(self, unit: Unit, scope: str, name: str) -> list[Meaning]:
        """What a name of a header, or of another file that is included, means that does not include what it uses: the one file that has
        it, of those that are read with it."""
        homes = self.mentioning(last_part(name))
        if not any(one is not unit for one in homes) or (unit.path.endswith(SOURCES) and not self._is_included(unit)):
            return []
        around = self._around.get(unit)
        if around is None:
            around = self._around[unit] = {other: None for one in self.seeing(unit) for other in self.visible(one)}
        _, prefixes = self.spellings(unit, scope, name)
        near = [one for one in homes if one in around and any(joined(prefix, name) in one.named for prefix in prefixes)]
        if not near and unit.path.endswith(SOURCES):
            return self._in_namespace(name, [one for one in homes if one in around])
        return self._find(unit, scope, name, 0, dict.fromkeys(near)) if len(near) == 1 else []

    def _is_included(self, unit: Unit) -> bool:
        """Whether other files include a file."""
        name = PurePosixPath(unit.path).name
        return any(one is not unit for one in self.mentioning(name.partition(".")[0])) and len(self.seeing(unit)) > 1

    def _in_namespace(self, name: str, homes: list[Unit]) -> list[Meaning]:
        """The class of a name where a file is included in a namespace that it does not name itself, if there is one."""
        found = [one for home in homes for one in home.classes if one.ir.name == name]
        return [found[0]] if len(found) == 1 else []

    def _find(self, unit: Unit, scope: str, name: str, depth: int, near: dict[Unit, None] | None = None) -> list[Meaning]:
        name, prefixes = self.spellings(unit, scope, name)
        near = self.visible(unit) if near is None else near
        homes = [one for one in self.mentioning(last_part(name)) if one in near]
        for prefix in prefixes:
            if (meanings := self._meanings(joined(prefix, name), homes)) is not None:
                return meanings
        aliased = self._aliased(unit, name)
        if aliased is not None and aliased[0] != name and depth < DEEPEST:
            return self._find(unit, scope, str(aliased[0]), depth + 1)
        return []

    def _meanings(self, wanted: str, homes: list[Unit]) -> list[Meaning] | None:
        """What files define or declare under a full name; None where they do neither."""
        found = [meant for home in homes for meant in home.named.get(wanted, ())]
        declared = [(home, one) for home in homes for one in home.declared.get(wanted, ())]
        is_extern = not found and any(wanted in home.ir.globals for home in homes)
        if not (found or declared or is_extern):
            return None
        bodies = [body for home, one in declared for body in self._definitions(home, one)]
        return list(dict.fromkeys([*found, *bodies, *(self._variable(wanted) if is_extern else ())]))

    @memoized
    def spellings(self, unit: Unit, scope: str, name: str) -> tuple[str, list[str]]:
        """A name with its namespace's alias replaced, and the scopes in which it is looked up, innermost first."""
        return self._spellings(unit, scope, name)

    def _spellings(self, unit: Unit, scope: str, name: str) -> tuple[str, list[str]]:
        if name.startswith("::"):
            return name[2:], [""]
        head, separator, rest = name.partition("::")
        context = self.context(unit)
        full = context.namespaces.get(head, "") if separator else ""
        alias = context.aliases.get(head) if separator and not full else None
        if alias is not None and "::" in str(alias[0]) and alias[0] != head:
            full = str(alias[0])  # `Clock::now()`, of a clock of the standard library
        prefixes = [scope]
        while scope:
            scope = scope.rpartition("::")[0]
            prefixes.append(scope)
        return (f"{full}::{rest}" if full else name), list(dict.fromkeys([*prefixes, *context.using]))

    def _aliased(self, unit: Unit, name: str) -> TypeTuple | None:
        aliases = self.context(unit).aliases
        return aliases.get(name) or aliases.get(last_part(name))

    def _variable(self, wanted: str) -> list[Variable]:
        """A variable that is declared here and defined in another file."""
        homes = self.mentioning(last_part(wanted))
        return [one for home in homes for one in home.named.get(wanted, ()) if isinstance(one, Variable)][:1]

    def _definitions(self, home: Unit, declared: DeclarationIR) -> list[Function]:
        """The functions that a declaration means; of several files those that see the declaration."""
        units = [home] if declared.static and not declared.class_name else self.mentioning(last_part(declared.qualname).lstrip("~"))
        fitting = [
            one
            for unit in units
            for one in unit.named.get(declared.qualname, ())
            if isinstance(one, Function) and takes_the_same(one.code, declared) and (unit is home or one.is_linked)
        ]
        return [one for one in fitting if home in self.visible(one.unit)] or fitting

    def declarations(self, function: Function) -> list[tuple[Unit, DeclarationIR]]:
        """The declarations of a function that other files, or its class, hold."""
        if not function.code.parameters:
            return []
        units = self.mentioning(last_part(function.name).lstrip("~"))
        return [
            (unit, one)
            for unit in units
            for one in unit.declared.get(function.name, ())
            if takes_the_same(function.code, one) and (unit is function.unit or function.is_linked)
        ]

    def is_declared_static(self, function: Function) -> bool:
        """Whether another file declares a method with a receiver, which is defined outside of its class, to be static."""
        written = function.written
        if not written.parameters or written.parameters[0].name != "this":
            return False
        units = self.mentioning(last_part(written.qualname).lstrip("~"))
        declared = (one for unit in units if unit is not function.unit for one in unit.declared.get(written.qualname, ()))
        return any(one.static and one.class_name and takes_the_same(written, one) for one in declared)

    # --- classes

    def is_private(self, definition: ClassInfo, member: str) -> bool:
        """Whether only functions in view may name a member: it is private, and the program defines what functions its class declares."""
        field, unit = definition.fields.get(member), definition.unit
        declared = (one for one in unit.ir.declared if one.class_name == definition.name)
        return field is not None and field.private and all(self._definitions(unit, one) for one in declared)

    def class_named(self, unit: Unit, scope: str, name: str) -> ClassInfo | None:
        """The class that a name means."""
        return next((one for one in self.find(unit, scope, name) if isinstance(one, ClassInfo)), None)

    @memoized
    def owner(self, function: Function) -> ClassInfo | None:
        """The class of a method that is defined outside of it."""
        return self.class_named(function.unit, "", function.code.class_name)

    def methods_elsewhere(self, definition: ClassInfo) -> list[Function]:
        """The methods of a class that other files define."""
        return [
            unit.function(number)
            for unit in self.mentioning(definition.ir.name)
            if unit is not definition.unit
            for number, (_, _, kind, parent, owner, _) in enumerate(unit.ir.outline)
            if kind == "function" and parent == 0 and last_part(owner) == definition.ir.name
            if self.owner(unit.function(number)) is definition
        ]

    # --- types

    @memoized
    def resolved(self, unit: Unit, scope: str, kind: TypeTuple) -> TypeTuple:
        """A type with its aliases replaced."""
        return self._resolved(unit, scope, kind)

    def _resolved(self, unit: Unit, scope: str, kind: TypeTuple) -> TypeTuple:
        for _ in range(DEEPEST):
            name, args, pointers, reference, array = kind
            found = None if self.find_class(unit, scope, name) is not None else self._aliased(unit, name)
            if found is None or found[0] == name:
                break
            kind = (found[0], found[1] or args, found[2] + pointers, found[3] or reference, array if array is not None else found[4])
        return kind

    @memoized
    def find_class(self, unit: Unit, scope: str, name: str) -> ClassInfo | None:
        """The class that a name means without any alias."""
        return self._find_class(unit, scope, name)

    def _find_class(self, unit: Unit, scope: str, name: str) -> ClassInfo | None:
        name, prefixes = self.spellings(unit, scope, name)
        near = self.visible(unit)
        homes = [one for one in self.mentioning(last_part(name)) if one in near]
        for prefix in prefixes:
            for home in homes:
                for one in home.named.get(joined(prefix, name), ()):
                    if isinstance(one, ClassInfo):
                        return one
        if self._aliased(unit, name) is not None:
            return None
        return next((one for one in self._find_around(unit, scope, name) if isinstance(one, ClassInfo)), None)


def takes_the_same(code: Code, declared: DeclarationIR) -> bool:
    """Whether a definition has the parameters of a declaration, as far as their types are spelled."""
    own = code.parameters[1 if code.parameters and code.parameters[0].name == "this" else 0 :]
    other = declared.parameters
    return len(own) == len(other) and all(
        a.type is None or b.type is None or last_part(a.type[0]) == last_part(b.type[0]) for a, b in zip(own, other, strict=True)
    )


def _common(one: str, other: str) -> str:
    try:
        return commonpath([one, other])
    except ValueError:
        return ""
