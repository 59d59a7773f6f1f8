"""Which files unknown callers may use, and which one program may run: of what is run by itself alone, that which it imports.

No unknown caller uses a file where entry points of the program lead to its folder and it is not packaged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import PurePosixPath

from streamlint.build_files import is_packaged
from streamlint.facts.files.program import Program, Unit
from streamlint.facts.graph.importers import importers
from streamlint.ir import opcodes as op
from streamlint.ir.graph import led_to
from streamlint.models.traits import Trait
from streamlint.support.memo import memoized

_MAIN, _NOTEBOOK = "__main__", ".ipynb"
_PARTS = re.compile(r"[./\\]")


class Applications:
    """Answers for the files of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def is_closed(self, unit: Unit) -> bool:
        """Whether a file belongs to an application: what it defines is called by the program in view alone."""
        return not unit.is_cpp and unit.folder in self._folders and not is_packaged(unit.path)

    def imports(self, unit: Unit) -> bool:
        """Whether a file of an application is imported by what is run of it, over any number of files."""
        return unit in self._imported and not is_packaged(unit.path)

    def is_entry(self, unit: Unit) -> bool:
        """Whether a file is a notebook, or asks whether it is the one that is run."""
        return unit in self._entries

    @cached_property
    def _entries(self) -> frozenset[Unit]:
        return frozenset(unit for unit in self.program.units.values() if _is_notebook(unit) or _asks(unit))

    @cached_property
    def _reached(self) -> frozenset[Unit]:
        """The entries, and all that they import, over any number of files."""
        return frozenset(_reached(self._entries))

    @cached_property
    def _imported(self) -> frozenset[Unit]:
        return frozenset(found for unit in self._reached for found in (*_imported(unit), *packages(unit)) if found is not unit)

    @cached_property
    def _folders(self) -> frozenset[str]:
        return frozenset(unit.folder for unit in self._reached)


class Scripts:
    """Answers for the files that are run by themselves: no other file imports them."""

    def may_run(self, unit: Unit, other: Unit) -> bool:
        """Whether one program may run functions of both files."""
        if unit is other or unit.is_cpp or other.is_cpp:
            return True
        if self._is_alone(unit) and self._is_alone(other):
            return False
        return all(run is None or each in run for run, each in ((self.run_by(unit), other), (self.run_by(other), unit)))

    @memoized
    def run_by(self, unit: Unit) -> frozenset[Unit] | None:
        """The files that one runs which is run by itself: all that it imports, over any number of files. None where that is not known."""
        return _run([unit]) if self._is_alone(unit) else None

    @memoized
    def _is_alone(self, unit: Unit) -> bool:
        """Whether a file is run by itself alone."""
        return not unit.is_cpp and (_is_notebook(unit) or (_asks(unit) and not self._may_be_imported(unit)))

    @memoized
    def run_with(self, unit: Unit) -> frozenset[Unit] | None:
        """The files that are run with one, by whichever that imports it: all that these import. None where that is not known."""
        found = self.run_by(unit)
        if found is None and _asks(unit) and not any(packages(unit)):
            return _run(led_to([unit], importers))  # and those that import it, by themselves or by others
        return found

    def _may_be_imported(self, unit: Unit) -> bool:
        """Whether another file imports a file, or may do so by a name that it computes."""
        if any(True for _ in importers(unit)):
            return True
        if not any(unit.program.mentioning(word) for word in unit.models.known("imports-by-name")):
            return False
        stem = PurePosixPath(unit.path).stem
        others = (other for other in unit.program.mentioning(stem) if other is not unit and not other.is_cpp)
        return any(_PARTS.split(text.removesuffix(".py"))[-1] == stem for other in others for text in other.texts)


def _is_notebook(unit: Unit) -> bool:
    return unit.path.endswith(_NOTEBOOK)


def _run(entries: Iterable[Unit]) -> frozenset[Unit] | None:
    """Some files, and all that these import, over any number of files; None where one of them may import others."""
    run = frozenset(_reached(entries))
    return None if any(map(_is_open, run)) else run


def _reached(entries: Iterable[Unit]) -> Iterable[Unit]:
    """Some files, and all that these import, over any number of files."""
    return led_to(entries, lambda unit: (*_imported(unit), *packages(unit)))


def packages(unit: Unit) -> Iterator[Unit]:
    """The packages that a file is in: they are imported before it."""
    for folder in PurePosixPath(unit.path).parents:
        if (found := unit.program.units.get(f"{folder}/__init__.py".removeprefix("./"))) is None:
            return
        yield found


def _is_open(unit: Unit) -> bool:
    """Whether a file computes what it imports, or imports what may be another file of the program in a place that is not known."""
    lost = (module for module, _ in unit.imports if unit.program.imported(module, unit) is None)
    return uses_any(unit, "imports-by-name") or any(map(unit.program.modules.is_about, lost))


def uses_any(unit: Unit, *traits: Trait) -> bool:
    """Whether a file of Python names what has one of some traits."""
    uses = (unit.attribute_uses, unit.name_uses, unit.taken)
    return not unit.is_cpp and any(word in found for word in unit.models.known(*traits) for found in uses)


def _imported(unit: Unit) -> Iterator[Unit]:
    """The files that one imports: modules, and what is taken from a package."""
    for module, name in unit.imports:
        for named in (module, f"{module}{'' if module.endswith('.') else '.'}{name}" if name else module):
            if (found := unit.program.imported(named, unit)) is not None and not found.is_cpp:
                yield found


def _asks(unit: Unit) -> bool:
    body = unit.body
    return not unit.is_cpp and any(_MAIN in (body.constant(one[4]), body.constant(one[5])) for one in body.by_opcode[op.COMPARE])
