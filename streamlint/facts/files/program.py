"""The program: its files, the functions and classes in them, and the index of identifiers by which uses are found.

A file's text is split into identifiers once; its functions are lowered when somebody asks for them. Whether a name that two files have
in common means the same thing is decided by value flow, never by the name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, KeysView
from functools import cached_property, partial
from os.path import dirname

from streamlint.facts.code.broken import Failure, Imports
from streamlint.facts.code.default_devices import DefaultDevices
from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.handing import Handing
from streamlint.facts.code.instructions import arguments_of, last_name
from streamlint.facts.code.modules import Resolver, late_imports
from streamlint.facts.code.overwritten import overwritten
from streamlint.facts.code.stores import Store, inner_stores
from streamlint.facts.files.cpp_scopes import CppScopes, Meaning, Variable, last_part
from streamlint.ir import Code, DeclarationIR, Instruction, ModuleIR
from streamlint.ir import opcodes as op
from streamlint.models import Models, builtin
from streamlint.program.definitions import HOLDS_CPP
from streamlint.support import declared_words
from streamlint.support.memo import memoized
from streamlint.support.records import field, record

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n\\]+|\\\n|\\.)*)", re.MULTILINE)
_DEEPEST_MACRO = 4
_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+c?import[ \t]+(\([^)]*\)|[^\n;]*)|c?import[ \t]+([\w.][\w., \t]*))", re.MULTILINE)
Register = tuple[Function, int]


@record(frozen=True, slots=True)
class SourceFile:
    """A file of the program: ``read`` gives its text, ``lower`` its intermediate representation (None if it cannot be read)."""

    path: str
    language: str
    text: str
    lower: Callable[[], ModuleIR | None]


def _given(module: ModuleIR) -> ModuleIR:
    return module


class Unit:
    """One file."""

    __slots__ = ("__dict__", "number", "program", "source")

    def __init__(self, program: Program, source: SourceFile, number: int) -> None:
        self.program = program
        self.source = source
        self.number = number

    def __repr__(self) -> str:
        return f"<file {self.path}>"

    @cached_property
    def models(self) -> Models:
        """The rows about what its language calls."""
        return self.program.rows_of("cuda" if self.is_cpp else "python")

    @cached_property
    def exchanging(self) -> frozenset[int]:
        """C++: the constants that name functions which exchange two variables."""
        names = self.models.marked("exchanges")
        return frozenset(number for number, each in enumerate(self.ir.constants) if isinstance(each, str) and each in names)

    @property
    def path(self) -> str:
        return self.source.path

    @cached_property
    def folder(self) -> str:
        """The folder that the file lies in."""
        return dirname(self.source.path)

    @cached_property
    def ir(self) -> ModuleIR:
        """The file lowered; empty if it cannot be read, or is nested too deeply."""
        self.program.lowered += 1
        try:
            found = self.source.lower()
        except RecursionError:
            found = None
        return found if found is not None else self.empty()

    def empty(self) -> ModuleIR:
        """The file without anything that runs."""
        return ModuleIR(self.path, self.source.language, (), [Code(0, "<module>", "<module>", "module")], [])

    @cached_property
    def _functions(self) -> dict[int, Function]:
        return {}

    def function(self, number: int) -> Function:
        """A function of the file by the number of its code."""
        found = self._functions.get(number)
        if found is None:
            found = self._functions[number] = Function(self, self.ir.code(number))
        return found

    @cached_property
    def functions(self) -> list[Function]:
        """All functions of the file, class bodies and the module's body included."""
        return [self.function(number) for number in range(len(self.ir))]

    @property
    def body(self) -> Function:
        """The statements of the file."""
        return self.function(0)

    @cached_property
    def classes(self) -> list[ClassInfo]:
        return [ClassInfo(self, one) for one in self.ir.classes]

    @cached_property
    def methods(self) -> dict[str, list[Function]]:
        """By name: the methods of the file's classes."""
        found: dict[str, list[Function]] = defaultdict(list)
        for one in self.classes:
            for name, methods in one.methods.items():
                found[name] += methods
        return dict(found)

    @cached_property
    def annotations(self) -> dict[int, dict[str, str]]:
        """By the number of a function's code: the annotations of what it assigns."""
        found: dict[int, dict[str, str]] = defaultdict(dict)
        for (number, target), said in self.ir.annotations.items():
            found[number][target] = said
        return dict(found)

    @cached_property
    def members(self) -> frozenset[str]:
        """The names that bodies of the file's classes define."""
        return frozenset(name for one in self.classes for name in (*one.methods, *one.assigned))

    @cached_property
    def class_of_body(self) -> dict[int, ClassInfo]:
        """By the number of a class body's code: the class."""
        return {one.ir.body: one for one in self.classes}

    @cached_property
    def stored(self) -> dict[str, list[Register]]:
        """What the file assigns to its global names: the functions and registers of the values."""
        return self._stores(frozenset())

    @cached_property
    def globals(self) -> dict[str, list[Register]]:
        """The same, but for what its body overwrites before anything reads it."""
        lost = overwritten(self)
        return self._stores(lost) if lost else self.stored

    def _stores(self, lost: frozenset[Instruction]) -> dict[str, list[Register]]:
        found: dict[str, list[Register]] = defaultdict(list)
        for function in self.functions:
            for one in function.by_opcode[op.SET_NAME] if function.code.kind != "class" else ():
                if function is not self.body or one not in lost:
                    found[function.text(one[2])].append((function, one[3]))
        return dict(found)

    @cached_property
    def defined(self) -> list[str]:
        """The names of the functions and classes that stand in the file's body."""
        made = (op.FUNCTION, op.CLASS)
        return [
            self.body.text(one[2])
            for one in self.body.by_opcode[op.SET_NAME]
            if (value := self.body.definitions[one[3]]) is not None and value[0] in made
        ]

    @cached_property
    def imports(self) -> list[tuple[str, str | None]]:
        """The modules that the file imports, as written, each with the name that is taken from it (None for the module itself)."""
        written = [
            (function.text(one[3]), function.text(one[4]) if one[4] != op.NONE else None)
            for function in self.functions
            for one in function.by_opcode[op.IMPORT]
        ]
        return written + [(module, None) for module in self.named_modules]

    @cached_property
    def named_modules(self) -> list[str]:
        """The modules that calls import by their names: ``importlib.import_module("package.module")``."""
        importing = self.models.known("imports-by-name")
        if self.is_cpp or not any(word in self.source.text for word in importing):
            return []
        calls = ((function, one) for function in self.functions for opcode in (op.CALL, op.INVOKE) for one in function.by_opcode[opcode])
        given = ((function, next(arguments_of(function, one), None)) for function, one in calls if last_name(function, one) in importing)
        named = (function.constant(first[0]) for function, first in given if first is not None)
        return [name for name in named if isinstance(name, str)]

    @cached_property
    def taken(self) -> dict[str, list[tuple[Function, Instruction]]]:
        """By name: the instructions that import it from a module."""
        found: dict[str, list[tuple[Function, Instruction]]] = defaultdict(list)
        for function in self.functions:
            for one in function.by_opcode[op.IMPORT]:
                if one[4] != op.NONE:
                    found[function.text(one[4])].append((function, one))
        return dict(found)

    @cached_property
    def annotated(self) -> list[tuple[str, Function, int]]:
        """The parameters that are annotated, each with what says so, its function and its register."""
        params = ((function, one) for function in self.functions for one in function.by_opcode[op.PARAM])
        found = ((function.code.parameters[one[3]].annotation, function, one[2]) for function, one in params)
        return [each for each in found if each[0]]

    @cached_property
    def stars(self) -> list[str]:
        """The modules of which the file imports everything."""
        return [module for module, taken in self.imports if taken == "*"]

    def starred(self) -> Iterator[Unit]:
        """The files of the program from which it takes all names: ``from x import *``."""
        targets = (self.program.imported(module, self) for module in self.stars)
        return (one for one in targets if one is not None and one is not self)

    @cached_property
    def attribute_uses(self) -> dict[str, list[tuple[Function, Instruction]]]:
        """By name: the instructions that read an attribute or call a method of that name."""
        found: dict[str, list[tuple[Function, Instruction]]] = defaultdict(list)
        for function in self.functions:
            for opcode in (op.ATTR, op.INVOKE, op.ADDRESS_ATTR):
                for one in function.by_opcode[opcode]:
                    found[function.text(one[4])].append((function, one))
        return dict(found)

    @cached_property
    def computed_uses(self) -> list[tuple[Function, Instruction, str | None]]:
        """The calls of ``getattr``, each with the name of the attribute; None for one that is computed."""
        found: list[tuple[Function, Instruction, str | None]] = []
        for function in self.functions:
            for one in function.by_opcode[op.CALL]:
                if len(one) > 6 and function.dotted(one[3]) == "getattr":
                    name = function.constant(one[6])
                    found.append((function, one, name if isinstance(name, str) else None))
        return found

    @cached_property
    def texts(self) -> frozenset[str]:
        """The texts that stand in the file."""
        found = (function.constant(one[2]) for function in self.functions for one in function.by_opcode[op.CONST])
        return frozenset(text for text in found if isinstance(text, str))

    @cached_property
    def name_uses(self) -> dict[str, list[tuple[Function, Instruction]]]:
        """By name: the instructions that read a global name."""
        found: dict[str, list[tuple[Function, Instruction]]] = defaultdict(list)
        for function in self.functions:
            for one in function.by_opcode[op.NAME]:
                found[function.text(one[3])].append((function, one))
        return dict(found)

    # --- C++

    @cached_property
    def is_cpp(self) -> bool:
        return self.source.language == "cuda"

    @cached_property
    def named(self) -> dict[str, list[Meaning]]:
        """C++: the functions, classes and variables that the file defines, by qualified name."""
        found: dict[str, list[Meaning]] = defaultdict(list)
        for number, (_, qualname, kind, _, _, _) in enumerate(self.ir.outline):
            if kind == "function":
                found[qualname].append(self.function(number))
        for one in self.classes:
            found[one.name].append(one)
        for instruction in self.body.by_opcode[op.SET_NAME]:
            value = self.body.definitions[instruction[3]]
            is_closure = value is not None and value[0] == op.FUNCTION and self.ir.outline[value[3]][2] == "lambda"
            if value is None or value[0] not in (op.FUNCTION, op.CLASS) or is_closure:
                name = self.body.text(instruction[2])
                found[name].append(Variable(self, name))
        return dict(found)

    @cached_property
    def declared(self) -> dict[str, list[DeclarationIR]]:
        """C++: functions that are declared and not defined in the file, by qualified name."""
        found: dict[str, list[DeclarationIR]] = defaultdict(list)
        for one in self.ir.declared:
            found[one.qualname].append(one)
        return dict(found)

    @cached_property
    def cpp_uses(self) -> dict[str, list[tuple[Function, Instruction]]]:
        """C++: the instructions that read a name or take its address, by the last part of the name."""
        found: dict[str, list[tuple[Function, Instruction]]] = defaultdict(list)
        for function in self.functions:
            for opcode in (op.NAME, op.ADDRESS_NAME):
                for one in function.by_opcode[opcode]:
                    found[last_part(function.text(one[3]))].append((function, one))
        return dict(found)

    @cached_property
    def cpp_stores(self) -> dict[str, list[Store]]:
        """C++: what functions assign to names that are none of their own, and to members, by the last part of the name."""
        found: dict[str, list[Store]] = defaultdict(list)
        for function in self.functions:
            if function.code.kind not in ("module", "class"):
                for one in function.by_opcode[op.SET_NAME]:
                    found[last_part(function.text(one[2]))].append(Store(function, one, op.NONE, function.text(one[2]), one[3]))
                for store in inner_stores(function):
                    found[store.name].append(store)
        return dict(found)

    @cached_property
    def attribute_stores(self) -> dict[str, list[Store]]:
        """By name: the places that set an attribute of that name on anything but a method's own receiver."""
        found: dict[str, list[Store]] = defaultdict(list)
        for function in self.functions:
            for store in inner_stores(function):
                method = function.method
                if method is None or not method.has_receiver or not function.is_parameter(store.receiver):
                    found[store.name].append(store)
        return dict(found)


@record(eq=False, slots=False)
class Program:
    """All files of a run."""

    sources: Iterable[SourceFile]
    units: dict[str, Unit] = field(init=False)
    failing: dict[Unit, Failure] = field(init=False)  # files that cannot be imported
    lowered: int = 0  # files that were asked for

    def __post_init__(self) -> None:
        self.units = {source.path: Unit(self, source, number) for number, source in enumerate(self.sources)}
        for unit in list(self.units.values()):
            self._add_inline(unit)
        self.modules = Resolver(self.units)
        self.failing = Imports(self.units).failing()
        self._leave_out({unit.path for unit in self.failing})
        self.cpp = CppScopes(self)
        self._near: dict[tuple[Unit, str], bool] = {}
        self._rows: dict[str, Models] = {}
        self.handing: Handing | None = None
        """What calls run where some of the arguments are not theirs; the facts of the program set it."""

    def tell(self, language: str, models: Models | None) -> None:
        """Have the files of a language go by these rows: by those of streamlint alone if nobody says so."""
        if models is not None:
            self._rows[language] = models

    def rows_of(self, language: str) -> Models:
        """The rows about what a language calls."""
        found = self._rows.get(language)
        return found if found is not None else builtin(language)

    def _leave_out(self, paths: Collection[str]) -> None:
        """Nothing runs of files that cannot be imported, nor of the C++ in their strings."""
        for unit in self.units.values() if paths else ():
            if unit.path in paths:
                unit.__dict__.clear()
                unit.ir = unit.empty()

    def _add_inline(self, unit: Unit) -> None:
        """The C++ that strings of a Python file hold, as files of their own that stand in its place."""
        if unit.source.language != "python" or not any(word in unit.source.text for word in HOLDS_CPP):
            return
        for number, inner in enumerate(unit.ir.inline):
            source = SourceFile(unit.path, "cuda", unit.source.text, partial(_given, inner))
            self.units[f"{unit.path}#{number}"] = Unit(self, source, len(self.units))

    @cached_property
    def default_devices(self) -> DefaultDevices:
        """What factories mean that name no device."""
        return DefaultDevices(self)

    @cached_property
    def declares(self) -> bool:
        """Whether a file declares what memory or a stream is, in a comment or a type."""
        return any(declared_words.declares(unit.source.text) for unit in self.units.values())

    @cached_property
    def _mentions(self) -> dict[str, list[Unit]]:
        found: dict[str, list[Unit]] = defaultdict(list)
        for unit in self.units.values():
            for name in set(_IDENTIFIER.findall(unit.source.text)):
                found[name].append(unit)
        through: dict[str, set[Unit]] = defaultdict(set)
        for macro, names in self._macros.items():
            users = [unit for unit in found.get(macro, ()) if unit.is_cpp]
            for name in names:
                through[name].update(users)
        for name, units in through.items():
            if not units <= (held := set(found[name])):
                found[name] = sorted(held | units, key=lambda unit: unit.number)
        return dict(found)

    @cached_property
    def _macros(self) -> dict[str, set[str]]:
        """C++: by the name of a macro the identifiers that stand in its place, those of other macros in it as well."""
        bodies: dict[str, set[str]] = defaultdict(set)
        for unit in self.units.values():
            for macro in _MACRO.finditer(unit.source.text) if unit.is_cpp else ():
                bodies[macro[1]].update(_IDENTIFIER.findall(macro[2]))
        for _ in range(_DEEPEST_MACRO):
            for names in bodies.values():
                names.update(*(bodies[name] for name in names & bodies.keys()))
        return bodies

    @property
    def identifiers(self) -> KeysView[str]:
        """All identifiers of all files."""
        return self._mentions.keys()

    def mentioning(self, name: str) -> list[Unit]:
        """The files whose text has an identifier, or a macro that stands for it, in their order."""
        return self._mentions.get(name, [])

    @memoized
    def defines(self, name: str) -> bool:
        """Whether a class of the program has a method of a name."""
        homes = self.mentioning("operator" if name.startswith("operator") else name)  # an operator's sign is no identifier
        return any(name in unit.methods for unit in homes)

    @cached_property
    def storing(self) -> frozenset[Unit]:
        """The files that may set attributes whose names they compute."""
        return frozenset(unit for name in ("setattr", "__dict__", "vars") for unit in self.mentioning(name))

    def modules_begun(self, prefix: str, asking: Unit) -> list[Unit]:
        """The modules of a package whose dotted names begin so, seen from a file."""
        package, _, begun = prefix.rpartition(".")
        home = self.imported(package, asking) if package else None
        if home is None or not home.path.endswith("__init__.py"):
            return []
        folder = home.path.removesuffix("__init__.py")
        names = ((unit, unit.path.removeprefix(folder).removesuffix("/__init__.py")) for unit in self.units.values() if unit is not home)
        return [unit for unit, name in names if unit.path.startswith(folder + begun) and "/" not in name]

    def is_used_near(self, unit: Unit, package: str) -> bool:
        """Whether a file of Python, or one that imports lead to or come from, imports a package."""
        key = (self._groups[unit], package)
        if key not in self._near:
            self._near[key] = any(
                module.partition(".")[0] == package
                for near in self.mentioning(package)
                if self._groups[near] is key[0]
                for module, _ in near.imports
            )
        return self._near[key]

    def group(self, unit: Unit) -> Unit:
        """One of the files that imports connect with a file, the same for all of them. Text that reads like an import counts as one."""
        return self._groups[unit]

    @cached_property
    def _groups(self) -> dict[Unit, Unit]:
        leaders = {unit: unit for unit in self.units.values()}

        def leader(unit: Unit) -> Unit:
            while leaders[unit] is not unit:
                leaders[unit] = leaders[leaders[unit]]
                unit = leaders[unit]
            return unit

        for unit in self.units.values():
            for target in self.written_imports(unit):
                leaders[leader(unit)] = leader(target)
        return {unit: leader(unit) for unit in leaders}

    def written_imports(self, unit: Unit) -> Iterator[Unit]:
        """The files that a file imports, by its text: what reads like an import counts as one."""
        for module, names, several in _IMPORT.findall(unit.source.text):
            for one in (module,) if module else (name.split()[0] for name in several.split(",") if name.strip()):
                if (target := self.imported(one, unit)) is not None:
                    yield target
            for name in _IDENTIFIER.findall(names):
                if (target := self.imported(f"{module}.{name}" if not module.endswith(".") else f"{module}{name}", unit)) is not None:
                    yield target
        for module in late_imports(unit.source.text):
            if (target := self.imported(module, unit)) is not None:
                yield target

    def imported(self, module: str, asking: Unit) -> Unit | None:
        """The file that an import means, seen from another one; None for a library."""
        path = self.modules.find(module, asking.path)
        return self.units[path] if path is not None else None
