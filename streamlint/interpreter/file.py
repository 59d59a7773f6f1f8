"""One file of the program: names to definitions, types behind aliases, and the text as words are looked for in."""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from streamlint.findings import Span
from streamlint.interpreter.by_place import marked
from streamlint.interpreter.no_stream import with_entered
from streamlint.interpreter.notes import Kept, kept_in_rounds
from streamlint.lines import split_lines
from streamlint.models import Models
from streamlint.program import (
    Assign,
    Attr,
    Call,
    Class,
    Collection,
    Const,
    Expression,
    Function,
    Import,
    Module,
    Name,
    Position,
    Statement,
    Type,
    walk,
)
from streamlint.record import field, record

if TYPE_CHECKING:
    from streamlint.interpreter.handles import Handles
    from streamlint.interpreter.index import Program
    from streamlint.interpreter.relevance import Relevance

_WORD, _CALLED = re.compile(r"\w+"), re.compile(r"(?<!\w)(\w+)\(")


def _allocator_settings(file: File) -> Iterator[tuple[str, bool]]:
    setters = [name for name, row in file.models.calls.items() if row.effect == "setting" and row.get("what") == "allocator"]
    if not any(name.rpartition(".")[2] in file.module.text for name in setters):
        return
    for node in walk_module(file.module):
        if isinstance(node, Call) and (dotted := dotted_name(file, node.function)):
            row = file.models.calls.get(dotted)
            if row is not None and row.effect == "setting" and row.get("what") == "allocator":
                first = node.args[0].value if node.args else None
                yield row.library, (isinstance(first, Const) and first.value is None) or dotted_name(file, first).endswith("malloc_managed")


def dotted_name(file: File, node: object) -> str:
    """The library's dotted name that an expression spells, through the file's imports; empty if it is none."""
    names: list[str] = []
    while isinstance(node, Attr):
        names.append(node.name)
        node = node.value
    head = file.imports.get(node.id, "") if isinstance(node, Name) else ""
    return ".".join((head, *reversed(names))) if head else ""


@functools.lru_cache(maxsize=32)
def walk_module(module: Module) -> tuple[object, ...]:
    """Every node of a module, in functions and classes too."""
    return tuple(node for held in (*module.body, *dict.fromkeys(module.classes.values())) for node in walk(held))


def is_called_again(name: str, module: Module) -> bool:
    """Whether a module's text has a name before a bracket more than once, at the end of a longer one too."""
    if _WORD.fullmatch(name) is None:
        return module.text.count(f"{name}(") > 1
    words, end = _before_brackets(module), name[::-1]
    second = bisect.bisect_left(words, end) + 1
    return second < len(words) and words[second].startswith(end)


@functools.lru_cache(maxsize=32)
def _before_brackets(module: Module) -> list[str]:
    """The words of a module's text that stand before a bracket, each from its end on, in order: much is asked of it."""
    return sorted(found[1][::-1] for found in _CALLED.finditer(module.text))


@functools.lru_cache(maxsize=4096)
def names_in(function: Function) -> frozenset[str]:
    """The plain names that a function's body mentions."""
    return frozenset(node.id for node in walk(function) if isinstance(node, Name))


@functools.lru_cache(maxsize=4096)
def assigned_attributes(function: Function) -> dict[str, list[Expression]]:
    """``self.x = e`` in a method: the expressions that each attribute is given."""
    found: dict[str, list[Expression]] = {}
    receiver = function.params[0].name if function.params else ""
    for node in walk(function):
        if isinstance(node, Assign) and node.value is not None and node.op is None:
            for target in node.targets:
                if isinstance(target, Attr) and isinstance(target.value, Name) and target.value.id == receiver:
                    found.setdefault(target.name, []).append(node.value)
    return found


_APART = re.compile(r"\s(?<=\w\s)\s*\(")
_LIBRARIES = frozenset(("torch", "at", "c10", "std", "thrust", "cub"))


@record(eq=False, slots=True)
class File:
    """One module with its names, and the way to its neighbours."""

    module: Module
    program: Program
    globals: dict[str, list[Statement]] = field(default_factory=dict)
    globals_by_last: dict[str, set[str]] = field(default_factory=dict)  # C++: full names by their last part
    functions: dict[str, list[Function]] = field(default_factory=dict)  # by last name (C++), by qualname (both)
    classes: dict[str, Class] = field(default_factory=dict)
    models: Models = field(default_factory=Models)
    key: str = ""  # of the program's files
    path: str = field(init=False)
    is_cuda: bool = field(init=False)
    spans: dict[Position, Span] = field(default_factory=dict)  # each place once
    asked: int = 0  # the program's turn when somebody last asked what can matter in it
    _settings: dict[str, bool] | None = None
    _lines: list[str] | None = None
    _code: list[str] | None = None
    _words: list[str] | None = None
    _relevance: Relevance | None = None
    _handles: Handles | None = None
    _called_by_python: frozenset[str] | None = None
    _mentions: dict[str, bool] = field(default_factory=dict)
    _aliases: dict[str, Type | None] = field(default_factory=dict)
    _classes: dict[str, tuple[Class, File] | None] = field(default_factory=dict)
    _imports: dict[str, Kept[dict[str, str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.path = self.module.path
        self.is_cuda = self.module.language == "cuda"

    @property
    def imports(self) -> dict[str, str]:
        """Python: what is imported, by local name, with the names that ``from m import *`` takes from files at hand."""
        if "*" not in self.globals:
            return self.module.imports
        return kept_in_rounds(self._imports, "", self.module.imports, self._with_all_names)

    def _with_all_names(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for module in (module for one in self.globals["*"] if isinstance(one, Import) for _, module, name in one.names if name == "*"):
            target = self.program.python_module(module, self)
            if target is None or target is self:
                continue
            for name in _public_names(target):
                there = target.imports.get(name, "")
                found[name] = there if there and not there.startswith(".") else f"{module}{'' if module.endswith('.') else '.'}{name}"
        return {name: dotted for name, dotted in found.items() if name not in self.globals} | self.module.imports

    @property
    def names_torch(self) -> bool:
        """Whether PyTorch is named anywhere in the text."""
        return self.mentions("torch")

    def mentions(self, word: str) -> bool:
        """Whether something stands anywhere in the text."""
        if word not in self._mentions:
            self._mentions[word] = word in self.module.text
        return self._mentions[word]

    @property
    def lines(self) -> list[str]:
        """The text, line by line."""
        if self._lines is None:
            self._lines = split_lines(self.module.text)
        return self._lines

    @property
    def code(self) -> list[str]:
        """The text, line by line, without what does not run: comments and docstrings."""
        if self._code is None:
            self._code = self._without_prose()
        return self._code

    def _without_prose(self) -> list[str]:
        from streamlint.interpreter.prose import without_prose

        return without_prose(self.module.text, self.module.language)

    @property
    def words(self) -> list[str]:
        """The same, with each name and its bracket together, also where a line ends between them, and with marks at flags and at
        what is entered: as words are looked for."""
        if self._words is None:
            text = marked(_APART.sub(lambda match: "(" + match[0][:-1], "\n".join(self._code or self._without_prose())))
            self._words = (text if self.is_cuda else with_entered(text)).split("\n")
        return self._words

    @property
    def called_by_python(self) -> frozenset[str]:
        """C++: the functions that stand in tables of Python's C API."""
        if self._called_by_python is None:
            from streamlint.interpreter.bindings import called_by_python

            self._called_by_python = called_by_python(self) | self.module.bound if self.is_cuda else frozenset()
        return self._called_by_python

    def leaves_unbound(self, handle: Expression | None, owner: str = "") -> bool:
        """Whether the code at hand makes this library handle (``plan_``, ``ctx->blas``) and gives it no stream anywhere."""
        return self.handles.leaves_unbound(handle, owner)

    @property
    def binds_handles(self) -> bool:
        """Whether the code at hand gives any library handle a stream."""
        return bool(self.handles.bound)

    @property
    def handles(self) -> Handles:
        """The library handles of this file and of those that it includes."""
        if self._handles is None:
            from streamlint.interpreter.handles import handles_of

            self._handles = handles_of((self, *self.neighbours()))
        return self._handles

    @property
    def relevance(self) -> Relevance:
        """What in this file can matter."""
        self.asked = self.program.turn
        if self._relevance is None:
            from streamlint.interpreter.relevance import Relevance

            self._relevance = Relevance(self)
        return self._relevance

    def forget(self) -> None:
        """Let go of what is found out again where somebody asks for it."""
        self._relevance = self._words = self._code = self._lines = None

    @property
    def settings(self) -> dict[str, bool]:
        """The allocators that this file sets, by library: True where each allocation then goes to the driver."""
        if self._settings is None:
            self._settings = dict(_allocator_settings(self))
        return self._settings

    @property
    def is_cython(self) -> bool:
        return self.module.dialect == "cython"

    @property
    def tensor_type(self) -> str:
        """What the file's language calls a tensor of PyTorch's."""
        return "at::Tensor" if self.is_cuda else "torch.Tensor"

    def function(self, name: str, arity: int | None = None) -> Function | None:
        """A function by name, its declaration only if no body is at hand; overloads are chosen by arity."""
        found = list(self.functions.get(name, ()))
        if not found and self.is_cuda:
            found = [f for f in self.functions.get(name.rpartition("::")[2], ()) if f.qualname.endswith(f"::{name}") or f.qualname == name]
        return choose_overload(found, arity)

    def class_named(self, name: str) -> Class | None:
        if found := self.classes.get(name):
            return found
        if self.is_cuda:
            last = name.rpartition("::")[2]
            found = self.classes.get(last)
            library = name.lstrip(":").partition("::")[0]
            if found is not None and library in _LIBRARIES and f"{library}::" not in found.qualname:
                return None  # a project's own class of the same name
            if found is not None and (found.qualname == name or found.qualname.endswith(f"::{name}") or name.endswith(f"::{found.name}")):
                return found
        return None

    def class_at_hand(self, name: str) -> tuple[Class, File] | None:
        """C++: the class of a name in this file or in those that it includes, and the file that it stands in."""
        if name not in self._classes:
            found = ((definition, f) for f in (self, *self.neighbours()) if (definition := f.class_named(name)) is not None)
            self._classes[name] = next(found, None)
        return self._classes[name]

    def global_named(self, name: str, within: str) -> str | None:
        """C++: the full name of a variable of file or namespace scope, as code in ``within`` (a qualified name) means it by ``name``."""
        scope = within
        while scope:
            if (full := f"{scope}::{name}") in self.globals:
                return full
            scope = scope.rpartition("::")[0]
        if name in self.globals:
            return name
        found = [full for full in self.globals_by_last.get(name.rpartition("::")[2], ()) if full.endswith(f"::{name}")]
        return found[0] if len(found) == 1 else None

    def neighbours(self) -> list[File]:
        """C++: the files at hand that this one includes, in order, transitively."""
        return self.program.included(self)

    def taken_in(self, name: str) -> str | None:
        """C++: what a name stands for that a using declaration of this file or its includes takes in."""
        return next((f.module.aliases[name].name for f in (self, *self.neighbours()) if name in f.module.aliases), None)

    def resolve_type(self, kind: Type) -> Type:
        """A C++ type with aliases of this file and its includes replaced."""
        for _ in range(8):
            alias = self._alias(kind.name)
            if alias is None or alias.name == kind.name:
                return kind
            kind = Type(alias.name, alias.args, alias.pointers + kind.pointers, kind.reference or alias.reference, kind.array, kind.extent)
        return kind

    def _alias(self, name: str) -> Type | None:
        if name not in self._aliases:
            names = _type_names(name)
            found = (f.module.aliases[one] for f in (self, *self.neighbours()) for one in names if one in f.module.aliases)
            self._aliases[name] = next(found, None)
        return self._aliases[name]


def _public_names(file: File) -> Iterable[str]:
    """What ``from m import *`` takes from a file: the names in its ``__all__`` where that is written out, else those without underscore."""
    told = file.globals.get("__all__", ())
    listed = told[0].value if len(told) == 1 and isinstance(told[0], Assign) and told[0].op is None else None
    if isinstance(listed, Collection) and all(isinstance(item, Const) for item in listed.items):
        return [str(item.value) for item in listed.items if isinstance(item, Const)]
    return [name for name in {**file.globals, **file.imports} if not name.startswith("_") and name != "*"]


def _type_names(name: str) -> tuple[str, str]:
    return name, name.rpartition("::")[2]


def is_declaration(function: Function) -> bool:
    return function.line_text.startswith("declaration:")


def choose_overload(found: list[Function], arity: int | None) -> Function | None:
    """The overload that takes ``arity`` arguments; a body is preferred to a declaration."""
    if not found:
        return None
    fitting = [f for f in found if arity is None or accepts(f, arity)]
    candidates = fitting or found
    return next((f for f in candidates if not is_declaration(f)), candidates[0])


def accepts(function: Function, arity: int) -> bool:
    plain = [p for p in function.params if p.kind == "plain"]
    required = sum(p.default is None for p in plain)
    return required <= arity and (arity <= len(plain) or any(p.kind == "star" for p in function.params))
