"""Whether unknown callers may use a file: none do where entry points of the program lead to its folder and it is not packaged."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from streamlint.build_files import is_packaged
from streamlint.facts.program import Program, Unit
from streamlint.ir import opcodes as op

_MAIN, _NOTEBOOK = "__main__", ".ipynb"


class Applications:
    """Answers for the files of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def is_closed(self, unit: Unit) -> bool:
        """Whether a file belongs to an application: what it defines is called by the program in view alone."""
        return not unit.is_cpp and unit.folder in self._folders and not is_packaged(unit.path)

    @cached_property
    def _folders(self) -> frozenset[str]:
        """The folders of notebooks, of files that ask whether they are the one that is run, and of all that these import, over any
        number of files."""
        waiting = [unit for unit in self.program.units.values() if unit.path.endswith(_NOTEBOOK) or _asks(unit)]
        reached = dict.fromkeys(waiting)
        while waiting:
            found = [each for each in _imported(waiting.pop()) if each not in reached]
            reached.update(dict.fromkeys(found))
            waiting += found
        return frozenset(unit.folder for unit in reached)


def _imported(unit: Unit) -> Iterator[Unit]:
    """The files that one imports: modules, and what is taken from a package."""
    for module, name in unit.imports:
        for named in (module, f"{module}{'' if module.endswith('.') else '.'}{name}" if name else module):
            if (found := unit.program.imported(named, unit)) is not None and not found.is_cpp:
                yield found


def _asks(unit: Unit) -> bool:
    body = unit.body
    return not unit.is_cpp and any(_MAIN in (body.constant(one[4]), body.constant(one[5])) for one in body.by_opcode[op.COMPARE])
