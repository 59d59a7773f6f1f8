"""The files that may say something about a file: those that imports tie to it, and in C++ those that name each other's functions.

Which files these are costs no value flow. So they may be too few or too many: who asks them instead of the whole program has to see
that they show what the whole program has shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

from streamlint.facts.files.cpp_scopes import last_part
from streamlint.facts.files.program import Program, Unit
from streamlint.support.memo import memoized


class Neighbours:
    """The ties between the files of a program."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def near(self, path: str, most: int) -> list[str]:
        """The paths of a file and of up to ``most`` others that ties lead to, the fewest ties first."""
        found = {self._program.units[path]: None}
        waiting = list(found)
        for current in waiting:
            for other in self._of(current):
                if other not in found and len(found) <= most:
                    found[other] = None
                    waiting.append(other)
        return sorted({unit.path for unit in found})

    @memoized
    def _of(self, unit: Unit) -> tuple[Unit, ...]:
        tied = dict.fromkeys((*self._imports[unit], *self._calling(unit), *self._called(unit)))
        return tuple(tied)

    @cached_property
    def _imports(self) -> dict[Unit, list[Unit]]:
        """By file: those that it imports and those that import it, the C++ in its strings included."""
        units, found = self._program.units.values(), defaultdict[Unit, list[Unit]](list)
        pairs = [(unit, target) for unit in units for target in self._program.written_imports(unit)]
        pairs += [(self._program.units[unit.path], unit) for unit in units if unit is not self._program.units[unit.path]]
        for one, other in pairs:
            found[one].append(other)
            found[other].append(one)
        return defaultdict(list, found)

    @cached_property
    def _defining(self) -> dict[str, list[Unit]]:
        """By the last part of a name: the files of C++ and Cython that define a function of that name."""
        found = defaultdict[str, list[Unit]](list)
        for unit in self._program.units.values():
            for name in _functions(unit) if unit.source.language != "python" else ():
                found[name].append(unit)
        return found

    def _calling(self, unit: Unit) -> Iterator[Unit]:
        """The files that name a function which a file of C++ or Cython defines."""
        for name in sorted(_functions(unit)) if unit.source.language != "python" else ():
            yield from (other for other in self._program.mentioning(name) if other is not unit and _takes(other, name))

    def _called(self, unit: Unit) -> Iterator[Unit]:
        """The files of C++ and Cython whose functions a file names."""
        for name in sorted(_named(unit) & self._defining.keys()) if self._defining else ():
            yield from (other for other in self._defining[name] if other is not unit and _takes(unit, name))


def _functions(unit: Unit) -> set[str]:
    return {last_part(qualname) for _, qualname, kind, *_ in unit.ir.outline if kind == "function"}


def _named(unit: Unit) -> set[str]:
    names: Iterable[str] = (*unit.cpp_uses, *unit.attribute_uses) if unit.is_cpp else (*unit.attribute_uses, *unit.taken)
    return set(names)


def _takes(unit: Unit, name: str) -> bool:
    """Whether a file names a function of another one: it has none of that name, or takes it from a module."""
    if unit.source.language == "python":
        return name in unit.attribute_uses or name in unit.taken
    return name not in _functions(unit)
