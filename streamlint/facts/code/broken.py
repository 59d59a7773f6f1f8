"""Modules of Python that cannot be imported: nothing in them ever runs.

``from .parts import name`` raises ImportError where the file of ``parts`` is at hand and nothing in it can make a name so called: no word
of it is the name, no other file gives it one, and it hands itself to nobody. That holds for a statement that stands in no other one, and
for imports which mean one file for sure: within a package, and of ``parts.inner`` where no other file can be called so, and the importing
file takes something else from the same folder that is there. Of ``parts`` alone, which may be a library out of view, another file has to
take something that is there, too. A file that so imports a module that cannot be imported cannot be imported either. Where an
``__init__.py`` would be such a file, nothing of this is believed: its whole package would be of no use, so that something out of view
must make the name.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from streamlint.ir import opcodes as op

if TYPE_CHECKING:
    from streamlint.facts.files.program import Unit

_FROM = re.compile(r"^from[ \t]+(\.?[\w.]*)[ \t]+import[ \t]*(\([^)]*\)|[^\n(]*)", re.MULTILINE)
_NAME = re.compile(r"([^\W\d]\w*)(?:[ \t]+as[ \t]+\w+)?")
_COMMENT = re.compile(r"#[^\n]*")
_COMPUTED = re.compile(r"import[ \t]*\(?\*|\b(?:__getattr__|__dict__|globals|locals|vars|exec|eval|setattr|modules)\b")
"""Words of files that may make names which do not stand in them."""
_HARMLESS = re.compile(r"\bgetLogger\([ \t]*__name__[ \t]*\)|\bif[ \t]+__name__[ \t]*==")


class Failure(NamedTuple):
    """Why a file cannot be imported: in a row it imports a name, or "" for the module itself, from a file."""

    row: int
    name: str
    path: str

    def __str__(self) -> str:
        if self.name:
            return f"line {self.row} imports '{self.name}' from {self.path}, which defines no such name"
        return f"line {self.row} imports {self.path}, which cannot be imported"


class Written(NamedTuple):
    """A name that a file takes from a module by its text: ``row`` begins the statement, ``part`` is the name where it is one of the file
    ``target``, and "" where ``target`` is the file of a module of that name."""

    unit: Unit
    row: int
    module: str
    name: str
    part: str
    target: Unit

    @property
    def is_run(self) -> bool:
        """Whether it is a statement at the top of its file that is run, and no text of a docstring."""
        body, at = self.unit.body, (self.row, 1)
        found = (one for one in body.by_opcode[op.IMPORT] if one[4] != op.NONE and body.text(one[4]) == self.name)
        return any(body.text(one[3]) == self.module and body.code.at(one[1])[:2] == at for one in found)


class Imports:
    """The imports within packages that stand at the top of files."""

    def __init__(self, units: Mapping[str, Unit]) -> None:
        self._units = [unit for unit in units.values() if unit.source.language == "python" and unit.path.endswith(".py")]
        self._taken: set[tuple[str, Unit]] = set()  # modules from which a file takes what they have

    def failing(self) -> dict[Unit, Failure]:
        """The files that cannot be imported."""
        written = [each for unit in self._units for each in self._written(unit)]
        self._taken = {(each.module, each.target) for each in written if each.part and _has_word(each.target.source.text, each.part)}
        found: dict[Unit, Failure] = {}
        for each in written:
            if each.unit not in found and self._is_missing(each):
                reached = self._with_importers(each.unit, Failure(each.row, each.part, each.target.path), written)
                if not any(each.path.endswith("__init__.py") for each in reached):
                    found = {**reached, **found}
        return found

    def _with_importers(self, first: Unit, failure: Failure, written: Iterable[Written]) -> dict[Unit, Failure]:
        """A file that cannot be imported, and those that therefore cannot."""
        found, waiting = {first: failure}, [first]
        while waiting:
            broken = waiting.pop()
            for each in written:
                if each.target is broken and each.unit not in found and each.is_run:
                    found[each.unit] = Failure(each.row, "", broken.path)
                    waiting.append(each.unit)
        return found

    def _written(self, unit: Unit) -> Iterator[Written]:
        """The names that a file takes from other files by its text."""
        modules, units = unit.program.modules, unit.program.units
        statements = list(_FROM.finditer(unit.source.text))
        sure = self._sure(unit, [(statement[1], statement[2]) for statement in statements if not statement[1].startswith(".")])
        for statement in statements:
            module, row = statement[1], unit.source.text.count("\n", 0, statement.start()) + 1
            if not module.startswith(".") and module not in sure:
                continue
            path = modules.find(module, unit.path)
            for name in _NAME.findall(_COMMENT.sub("", statement[2])):
                if path is not None and not path.endswith("__init__.py"):
                    yield Written(unit, row, module, name, name, units[path])
                elif (inner := modules.find(_below(module, name), unit.path)) is not None:
                    yield Written(unit, row, module, name, "", units[inner])

    def _sure(self, unit: Unit, taken: Iterable[tuple[str, str]]) -> frozenset[str]:
        """The modules of packages, named from the top, that mean one file for sure: another import of the file from the same folder finds
        what it asks for."""
        found: dict[str, str] = {}
        for module, _ in taken:
            path = unit.program.modules.find(module, unit.path) if module not in sys.stdlib_module_names else None
            if path is not None and not path.endswith("__init__.py") and self._lying[_place(module)] == 1:
                found[module] = path
        kept = {
            PurePosixPath(path).parent
            for module, names in taken
            if (path := found.get(module)) is not None
            and all(_has_word(unit.program.units[path].source.text, name) for name in _NAME.findall(_COMMENT.sub("", names)))
        }
        return frozenset(module for module, path in found.items() if PurePosixPath(path).parent in kept)

    @cached_property
    def _lying(self) -> Counter[str]:
        """How many files lie at the end of a path."""
        found: Counter[str] = Counter()
        for unit in self._units:
            parts = PurePosixPath(unit.path).parts
            found.update("/".join(parts[at:]) for at in range(len(parts)))
        return found

    def _is_missing(self, written: Written) -> bool:
        """Whether an import raises: no word of the file is the name, and no other file gives it one."""
        name, target = written.part, written.target
        text = target.source.text
        if not name or target is written.unit or _has_word(text, name) or _may_make(target):
            return False
        if "." not in written.module and (written.module, target) not in self._taken:
            return False
        given = re.compile(rf"\.[ \t]*{name}[ \t]*=[^=]|[\"']{name}[\"']")
        if any(name in other.source.text and given.search(other.source.text) for other in self._units):
            return False
        return written.is_run


def _has_word(text: str, name: str) -> bool:
    """Whether a text has a name as a word of its own. A pattern would be compiled for each name that a program imports."""
    at = text.find(name)
    while at >= 0:
        sides = text[at - 1 : at] + text[at + len(name) : at + len(name) + 1]
        if not any(side == "_" or side.isalnum() for side in sides):
            return True
        at = text.find(name, at + 1)
    return False


def _place(module: str) -> str:
    """Where the file of a module lies, seen from a folder that Python searches."""
    return f"{module.replace('.', '/')}.py"


def _below(module: str, name: str) -> str:
    return module + name if module.endswith(".") else f"{module}.{name}"


def _may_make(target: Unit) -> bool:
    """Whether a file may make names which do not stand in it, or hands itself, by its name, to a function that does."""
    text, stem = target.source.text, PurePosixPath(target.path).stem
    itself = re.compile(rf"[\"'](?:\w+\.)+{stem}[\"']|(?<![\w.])__name__\b")
    return not target.path.endswith(".py") or _COMPUTED.search(text) is not None or itself.search(_HARMLESS.sub("", text)) is not None
