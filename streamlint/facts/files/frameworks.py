"""Methods that frameworks call in each step, by the rows of `training_steps.toml`: which methods of the program they are about."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.files.hierarchy import Hierarchy
from streamlint.facts.files.program import Program
from streamlint.ir import opcodes as op
from streamlint.models import Models, StepRow
from streamlint.models.vocabulary import Selector

_PYTHON = sys.stdlib_module_names


class Frameworks:
    """Finds the rows of methods. A class counts by its bases, never by its own name; classes of a framework that is linted itself are known
    by their files."""

    def __init__(self, program: Program, hierarchy: Hierarchy, models: Models) -> None:
        self.program = program
        self.hierarchy = hierarchy
        self.models = models
        self.rows = [row for row in models.steps if not row.forward and row.of is None]
        self.forwards = [row for row in models.steps if row.forward]
        self.trainers = [row for row in models.steps if row.of is not None]

    def row(self, function: Function) -> StepRow | None:
        """The row of a method that a framework calls in each step; None for any other function."""
        return self._row(function, self.rows)

    def forward(self, function: Function) -> StepRow | None:
        """The row of a method that computes for whoever calls it in each step: the ``forward`` of a module, a loss."""
        return self._row(function, self.forwards)

    def _row(self, function: Function, rows: list[StepRow]) -> StepRow | None:
        owner = function.owner
        fitting = [row for row in rows if function.code.name in row.methods] if owner is not None else []
        if owner is None or not fitting:
            return None
        libraries = self.hierarchy.libraries(owner)
        known = _covering(fitting, libraries)
        if known is None and not self._leaves_out(function, owner, rows, libraries):
            known = _covering(fitting, self._own_names(owner))
        if known is not None or not self._has_foreign_base(owner):
            return known
        used = {function.text(one[4]) for one in function.by_opcode[op.ATTR] if function.is_parameter(one[3])}
        return next((row for row in fitting if row.members and used.issuperset(row.members)), None)

    def is_on_device(self, function: Function, parameter: str) -> bool:
        """Whether a framework calls a method with a tensor of the device, or several in a container, for a parameter."""
        row = self.row(function)
        return row is not None and _is_among(function, parameter, row.on_device)

    def is_number(self, function: Function, parameter: str) -> bool:
        """Whether a framework calls a method with the number of its round for a parameter."""
        row = self.row(function)
        return row is not None and _is_among(function, parameter, row.counts)

    def _has_foreign_base(self, definition: ClassInfo) -> bool:
        """Whether a class derives from one that no file of the program defines, of a library without rows."""
        heads = (name.partition(".")[0] for name in self.hierarchy.libraries(definition) if "." in name)
        return any(head not in _PYTHON and not self.models.is_known(head) for head in heads)

    def _leaves_out(self, function: Function, owner: ClassInfo, rows: list[StepRow], libraries: list[str]) -> bool:
        """Whether methods of the class that a framework out of view calls in each step are the whole step, and do not call this one."""
        steps = [row for row in rows if _covering([row], libraries) is not None]
        methods = [method for one in self.hierarchy.order(owner) for name in one.methods for method in one.methods[name]]
        entries = [method for method in methods if any(method.code.name in row.methods for row in steps)]
        return bool(entries) and not any(function.code.name in entry.called_names for entry in entries)

    def _own_names(self, definition: ClassInfo) -> Iterator[str]:
        for one in self.hierarchy.order(definition):
            yield f"{self._module(one.unit.path)}.{one.name}"

    def _module(self, path: str) -> str:
        """The dotted name of a file: folders count as far up as they are packages."""
        parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
        first = len(parts) - 1
        while first > 0 and "/".join((*parts[:first], "__init__.py")) in self.program.units:
            first -= 1
        return ".".join(parts[first:])


def _covering(rows: list[StepRow], names: Iterable[str]) -> StepRow | None:
    """The first row for a class of which one of these is the name or that of a base."""
    given = list(names)
    return next((row for row in rows if any(row.covers(name, True) for name in given)), None)


def _is_among(function: Function, parameter: str, places: tuple[Selector, ...]) -> bool:
    """Whether a parameter of a method stands at one of some places."""
    names = [one.name for one in function.code.parameters[1:]]
    return any(
        parameter == one.keyword or (one.position is not None and names[one.position : one.position + 1] == [parameter]) for one in places
    )
