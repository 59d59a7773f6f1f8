"""The program as the interpreter asks for it: from file to file, through imports and includes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from streamlint.interpreter.consulted import Consulted, Files
from streamlint.interpreter.file import File as File
from streamlint.interpreter.file import accepts as accepts
from streamlint.interpreter.file import assigned_attributes as assigned_attributes
from streamlint.interpreter.file import dotted_name as dotted_name
from streamlint.interpreter.file import is_called_again
from streamlint.interpreter.file import is_declaration as is_declaration
from streamlint.interpreter.file import names_in as names_in
from streamlint.interpreter.file import walk_module as walk_module
from streamlint.interpreter.questions import Answers, question
from streamlint.interpreter.words import MOST_TIED, Imports, Words, importers, imports_among, lasts_of, mentioning, module_path, tied
from streamlint.models import Models
from streamlint.program import (
    Assign,
    Attr,
    Class,
    ClassDef,
    Declare,
    Function,
    FunctionDef,
    If,
    Import,
    Module,
    Name,
    Statement,
    Try,
    With,
    functions_of,
    walk,
)
from streamlint.record import field, record, replace

if TYPE_CHECKING:
    from streamlint.interpreter.exports import Export, ExportedClass, Exports
    from streamlint.interpreter.interface import Interface
    from streamlint.interpreter.linking import Linker
    from streamlint.interpreter.values import FunctionValue

_BODIES = (".cc", ".cpp", ".cu", ".cxx", ".inl", ".ipp", ".tpp")
_MOST_INCLUDING = 8  # files that include a header: one that more include stands by itself
_TURNS = 32


@record(eq=False, slots=True)
class Program:
    """All files of a run."""

    files: Files = field(default_factory=Files)
    consulted: Consulted = field(default_factory=Consulted)
    texts: dict[str, str] = field(default_factory=dict)  # of the files that are not C++
    outlines: dict[str, frozenset[str]] = field(default_factory=dict)  # of files that wait: what they import, by dotted names
    turn: int = 0  # of the file that is looked at
    _cpp: list[File] | None = None
    _basenames: dict[str, list[File]] = field(default_factory=dict)
    strangers: set[tuple[int, str, str]] = field(default_factory=set)  # C++: names that no file has, by the file and function that say them
    _lasts: set[str] = field(default_factory=set)  # the last parts of the names that files can be imported by
    _included: dict[int, list[File]] = field(default_factory=dict)
    _owners: dict[int, File] = field(default_factory=dict)
    _includers: dict[int, list[File]] | None = None
    _including: dict[int, list[File]] | None = None
    _resolved: dict[tuple[str, str], File | None] = field(default_factory=dict)
    _linker: Linker | None = None
    _exports: Exports | None = None
    known_interface: Interface | None = None
    _importers: dict[str, set[str]] | None = None  # by what they import
    _imports: tuple[int, Imports] | None = None  # for so many texts
    _called: dict[tuple[str, int], bool] = field(default_factory=dict)
    _mentioned: dict[tuple[Words, int], list[str]] = field(default_factory=dict)
    answers: Answers = field(init=False)

    def __post_init__(self) -> None:
        self.answers = Answers(self)

    def bound(self, name: str, asking: File) -> list[Function]:
        """The C++ functions that a Python file may call by a name, or what binds them."""
        self.answers.lead("exports.named", (name,), asking)
        return self.all_exports().functions_named(name)

    def meant(self, name: str, asking: File) -> Sequence[Export] | ExportedClass | None:
        """The C++ that a dotted name of a Python file stands for."""
        known = asking.models.is_known(name.lstrip(".").partition(".")[0])
        self.answers.lead("exports.meant", (name, asking.path, "known" if known else ""), asking)
        return self.all_exports().find(name, asking.path, known)

    def known_class(self, definition: Class, file: File, asking: File) -> ExportedClass | None:
        """What a Python file knows of the objects of a C++ class, which another file defines."""
        words = (definition.qualname, definition.name, file.key)
        self.answers.lead("exports.known_class", words, asking)
        return self.all_exports().class_of(*words)

    def all_exports(self) -> Exports:
        """What the C++ at hand makes known to Python, for who notes what he asks of it."""
        if self._exports is None:
            from streamlint.interpreter.exports import Exports

            self._exports = Exports(self)
        return self._exports

    @property
    def interface(self) -> Interface:
        """The same by names alone. Findings rest on no more of the C++ until one of the names is asked for."""
        if self.known_interface is None:
            self.known_interface = self.all_exports().interface()
        return self.known_interface

    def adopt(self, function: Function, file: File) -> None:
        """A function that stands for a piece of a file belongs to it."""
        self._owners[id(function)] = file

    def with_body(self, value: FunctionValue) -> FunctionValue:
        """A function that is only declared where it was found: with its body, if one file at hand defines it."""
        if not value.file.is_cuda or not is_declaration(value.function):
            return value
        found = self.definition(value.function, value.file)
        return replace(value, function=found[0], file=found[1]) if found is not None else value

    def definition(self, declared: Function, file: File) -> tuple[Function, File] | None:
        """C++: the body of a function that ``file`` only declares."""
        return self.linker.definition(declared, file)

    @property
    def linker(self) -> Linker:
        """The bodies of all C++."""
        if self._linker is None:
            from streamlint.interpreter.linking import Linker

            self._linker = Linker(self)
        return self._linker

    def is_called(self, name: str, home: File) -> bool:
        """Whether code at hand calls a function of ``home``: in the file itself, or where its name is imported."""
        if self._importers is None:
            self._importers = importers((key, self.imported_by(key)) for key in self.file_keys())
        asked = (name, id(home))
        elsewhere = not self._importers.get(name, set()) <= {home.key}
        self.consulted.call(name, home, elsewhere)
        if asked not in self._called:
            self._called[asked] = elsewhere or is_called_again(name, home.module)
        return self._called[asked]

    def mentioning(self, asking: File, *words: str, every: tuple[str, ...] = ()) -> list[File]:
        """The Python and Cython files whose text holds one of the words and all of ``every``, asked on behalf of a file."""
        paths = self._mentioning((words, every))
        self.consulted.mention((words, every), asking.path, paths)
        return [file for path in paths if (file := self.files.get(path)) is not None]

    def holds_cpp(self, path: str) -> bool:
        """Whether a file is C++ or Cython, or holds some in a string."""
        return path in self.files.together

    def file_keys(self) -> list[str]:
        """Of all files, lowered or not."""
        return list(dict.fromkeys((*self.outlines, *dict.keys(self.files))))

    def saying(self, asking: File, *words: str) -> list[File]:
        """The same, for who looks at nothing but their text."""
        paths = self._mentioning((words, ()))
        self.consulted.text((words, ()), asking.path, paths)
        return [file for path in paths if (file := self.files.get(path)) is not None]

    def _mentioning(self, words: Words) -> list[str]:
        """Each file of a hundred thousand may ask the same."""
        asked = words, len(self.texts)
        if asked not in self._mentioned:
            self._mentioned[asked] = mentioning(self.texts, words)
        return self._mentioned[asked]

    def file_of(self, key: str) -> File | None:
        """A file by its key, for who notes what he asks of it."""
        return self.files.get(key)

    def cpp(self, asking: File | None = None) -> list[File]:
        """The C++ at hand, in files and in strings of Python, in order; asked on behalf of a file."""
        if asking is not None:
            self.consulted.native(asking)
        if self._cpp is None:
            self.files.load(self.files.together)
            self._cpp = [file for file in self.files.held() if file.is_cuda]
        return self._cpp

    def next_turn(self) -> None:
        """A file was looked at. Now and then those let go of what they found out about themselves that nobody has asked for since."""
        self.turn += 1
        if self.turn % _TURNS == 0:
            for file in dict.values(self.files):
                if self.turn - file.asked > _TURNS:
                    file.forget()

    def owner(self, function: Function, asking: File) -> File:
        """The file that a function stands in."""
        return self._owners.get(id(function), asking)

    def add(self, module: Module, models: Models, key: str | None = None) -> File:
        """Take a module into the program; ``key`` names one that has no path of its own (C++ in a Python string)."""
        file = File(module, self, models=models, key=key or module.path)
        expected = file.key in self.outlines and (file.is_cuda or self.texts.get(file.path) == module.text)
        self.files[file.key] = file
        if not file.is_cuda:
            self.texts[file.path] = module.text
        if not expected:  # what waited is known by its text and by what it imports
            self._importers = self._imports = None
            self._called.clear()
            self._mentioned.clear()
        if file.is_cuda or file.is_cython or not expected:
            self._cpp = None
            self.answers.clear()
            self.strangers.clear()
        _index(file)
        self._owners.update((id(function), file) for function, _ in functions_of(module))
        if key is not None:
            return file
        self._lasts.update(lasts_of(module.path))
        self._basenames.setdefault(PurePosixPath(module.path.replace("\\", "/")).name, []).append(file)
        return file

    def wait(self, path: str, load: Callable[[], None]) -> None:
        """Put a file off until it is asked for: ``load`` adds it."""
        self._lasts.update(lasts_of(path))
        self.files.wait(path, load)

    def outline(self) -> None:
        """Where nothing waits: tell what files import, and which are or hold C++ or Cython, for who takes them over one by one."""
        if not self.outlines:
            files = self.files.held()
            self.outlines = {file.key: imported_names(file.module) for file in files}
            self.files.together = tuple(dict.fromkeys(file.path for file in files if file.is_cuda or file.is_cython))

    def python_module(self, dotted: str, source: File) -> File | None:
        """The file at hand that a Python import names, seen from ``source``: relative to it, or from any folder above it."""
        key = (dotted, source.path)
        if key not in self._resolved:
            self._resolved[key] = self._find_module(dotted, source)
        found = self._resolved[key]
        self.consulted.module(dotted, source.path, found.path if found is not None else None)
        return found

    def _find_module(self, dotted: str, source: File) -> File | None:
        path = self.path_of_module(dotted, source.path)
        return self.files.get(path) if path is not None else None

    def path_of_module(self, dotted: str, asking: str) -> str | None:
        """The path of the file that `python_module` finds, which nobody rests on yet."""
        return module_path(dotted, asking, self.files.holds, self._lasts)

    def tied(self, file: File, others: Iterable[File]) -> list[File]:
        """Those of some Python files that imports tie to one, in either direction; asked on behalf of that one."""
        if self._imports is None or self._imports[0] != len(self.texts):
            among = list(self.texts)[:MOST_TIED]
            self._imports = len(self.texts), imports_among(among, self.imported_by, self.path_of_module)
        found = tied(file.path, self._imports[1])
        known = {other.path: other for other in others}
        self.consulted.tie(file.path, tuple(known), tuple(path for path in known if path in found))
        return [other for path, other in known.items() if path in found]

    def imported_by(self, key: str) -> frozenset[str]:
        """What a file imports, by dotted names; it need not be lowered."""
        return self.outlines[key] if key in self.outlines else imported_names(self.files[key].module)

    def declarations(self, file: File) -> list[File]:
        """Cython: the files whose names another one has without an import: its own ``.pxd``, and what it includes."""
        if not file.is_cython:
            return []
        own = self.files.get(f"{file.path.rpartition('.')[0]}.pxd")
        return [f for f in (own, *self.included(file)) if f is not None and f.is_cython and f is not file]

    def included(self, file: File) -> list[File]:
        """The files at hand that a C++ file includes, transitively; by the longest matching tail of the path."""
        if id(file) in self._included:
            return self._included[id(file)]
        self._included[id(file)] = found = []
        for include in file.module.includes:
            target = self._include(include, file)
            if target is not None and target is not file and target not in found:
                found.append(target)
                found.extend(other for other in self.included(target) if other not in found and other is not file)
        if file.module.path.endswith(_BODIES) and (home := self.includer(file)) is not None:
            found.extend(other for other in (home, *self.included(home)) if other not in found and other is not file)
        for key in before(file) if file.is_cuda else ():
            earlier = self.files[key]
            found.extend(other for other in (earlier, *self.included(earlier)) if other not in found and other is not file)
        self.consulted.link(file.path, (other.path for other in found))
        return found

    def header(self, include: str, file: File) -> File | None:
        """The file at hand that an include of ``file`` names."""
        target = self._include(include, file)
        self.consulted.link(file.path, () if target is None else (target.path,))
        header_named(file, include)
        return target

    def includer(self, file: File) -> File | None:
        """The one file that includes a file of bodies, as a part of itself; of a CUDA and a HIP build the former."""
        if self._includers is None:
            self._includers = {}
            for other in self.cpp():
                for include in other.module.includes:
                    if include.endswith(_BODIES) and (target := self._include(include, other)) is not None and target is not other:
                        self._includers.setdefault(id(target), []).append(other)
        found = [f for f in self._includers.get(id(file), ()) if not _is_hip(f)]
        return found[0] if len(found) == 1 else None

    def including(self, file: File) -> list[File]:
        """The C++ files that include one themselves, in order."""
        if self._including is None:
            self._including = {}
            for other in self.cpp():
                targets = {id(found): found for include in other.module.includes if (found := self._include(include, other)) is not None}
                for target in targets.values():
                    if target is not other:
                        self._including.setdefault(id(target), []).append(other)
        return self._including.get(id(file), [])

    def _include(self, include: str, file: File) -> File | None:
        tail = include.replace("\\", "/").lstrip("./")
        candidates = [f for f in self._basenames.get(tail.rpartition("/")[2], ()) if f"/{f.path}".endswith(f"/{tail}")]
        folder = str(PurePosixPath(file.path).parent)
        candidates.sort(key=lambda f: -len(_common(f.path, folder)))
        return candidates[0] if candidates else None


@question
def before(file: File) -> list[str]:
    """C++: the keys of the files that stand before one in those that include it, also through one another: their names hold in it."""
    program, found, seen = file.program, dict[str, None](), {file.key}
    waiting = [file]
    for current in waiting:  # grows by what includes it
        for outer in program.including(current)[:_MOST_INCLUDING]:
            if outer.key in seen:
                continue
            seen.add(outer.key)
            waiting.append(outer)
            for include in outer.module.includes:
                target = program._include(include, outer)
                if target is current:
                    break
                if target is not None and target is not file:
                    found[target.key] = None
    return list(found)


@question
def includes(file: File) -> list[str]:
    """The keys of the C++ files that one includes, transitively."""
    return [other.key for other in file.program.included(file)]


@question
def header_named(file: File, include: str) -> str:
    """The key of the file that an include of another one names."""
    target = file.program._include(include, file)
    return target.key if target is not None else ""


def imported_names(module: Module) -> frozenset[str]:
    """What a module imports, by dotted names; ``m.*`` where it takes all names of another one."""
    names = frozenset(module.imports.values())
    return names | frozenset(f"{name}.*" for name in _taken_whole(module)) if "import *" in module.text else names


def _taken_whole(module: Module) -> Iterable[str]:
    into: dict[str, list[Statement]] = {}
    _index_globals(module.body, into)
    return (name for one in into.get("*", ()) if isinstance(one, Import) for local, name, _ in one.names if local == "*")


def _is_hip(file: File) -> bool:
    text = file.module.text
    return "hipStream" in text and "cudaStream" not in text


def _common(one: str, two: str) -> str:
    size = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    return one[:size]


def _index(file: File) -> None:
    module = file.module
    for qualname, overloads in module.functions.items():
        for name in {qualname, overloads[0].name, qualname.rpartition("::")[2]} if file.is_cuda else {qualname}:
            file.functions.setdefault(name, []).extend(overloads)
    for qualname, definition in module.classes.items():
        file.classes[qualname] = definition
        file.classes.setdefault(definition.name, definition)
        if file.is_cuda:
            _index_nested(file, definition)
    _index_globals(module.body, file.globals)
    for declared in module.globals:
        file.globals.setdefault(declared.name, []).append(declared)
        file.globals_by_last.setdefault(declared.name.rpartition("::")[2], set()).add(declared.name)


def _index_nested(file: File, outer: Class) -> None:
    """C++: a class within a class, found by its last name where that stands for nothing else."""
    for definition in outer.classes.values():
        file.classes.setdefault(definition.qualname, definition)
        file.classes.setdefault(definition.name, definition)
        _index_nested(file, definition)


def _index_globals(body: list[Statement], into: dict[str, list[Statement]]) -> None:
    for statement in body:
        if isinstance(statement, Assign):
            for target in statement.targets:
                if isinstance(target, Attr):
                    continue  # ``lib.fill.argtypes = …``: the name stays what it is
                for node in walk(target):
                    if isinstance(node, Name):
                        into.setdefault(node.id, []).append(statement)
        elif isinstance(statement, FunctionDef):
            into.setdefault(statement.function.name, []).append(statement)
        elif isinstance(statement, ClassDef):
            into.setdefault(statement.definition.name, []).append(statement)
        elif isinstance(statement, Import):
            for local, _, _ in statement.names:
                into.setdefault(local, []).append(statement)
        elif isinstance(statement, Declare):
            into.setdefault(statement.name, []).append(statement)
        elif isinstance(statement, If):
            _index_globals(statement.then, into)
            _index_globals(statement.otherwise, into)
        elif isinstance(statement, Try):
            _index_globals(statement.body, into)
            for handler in statement.handlers:
                _index_globals(handler.body, into)
            _index_globals(statement.otherwise, into)
        elif isinstance(statement, With):
            _index_globals(statement.body, into)
