"""Which names in a Python file mean no C++, whatever C++ at hand makes known under them.

By name alone ``init`` may be what some extension binds. Where it is a module at hand, or Python defines it, it is not; nor is an attribute
that objects of the file are given there, and that Python or a library makes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlint import program as p
from streamlint.interpreter.index import File, assigned_attributes, dotted_name
from streamlint.interpreter.notes import Kept, kept
from streamlint.record import field, record

if TYPE_CHECKING:
    from streamlint.interpreter.relevance import Relevance


@record(eq=False, slots=True)
class PythonNames:
    """The answers for one file, each found once."""

    relevance: Relevance
    _known: dict[str, Kept[bool]] = field(default_factory=dict)  # by names as spelled
    _modules: dict[str, Kept[bool]] = field(default_factory=dict)
    _given: dict[str, list[p.Expression]] | None = None  # the values of attributes of the file's objects

    def means(self, node: p.Attr | p.Name) -> bool:
        """Whether a name stands for something of Python's own."""
        file = self.relevance.file
        if file.is_cuda or file.is_cython:
            return False
        dotted = dotted_name(file, node)
        if dotted:
            return kept(self._known, dotted, self._imported, dotted)
        if isinstance(node, p.Name):
            return _is_defined(file, node.id)
        if not isinstance(node.value, p.Name) or node.value.id != "self":
            return False
        return kept(self._known, f"self.{node.name}", self._is_made, node.name)

    def is_module(self, name: str) -> bool:
        """Whether a name of the file stands for a module at hand."""
        dotted = self.relevance.file.imports.get(name, "")
        return bool(dotted) and kept(self._modules, dotted, self.is_at_hand, dotted)

    def is_at_hand(self, dotted: str) -> bool:
        """Whether a dotted name is that of a module at hand."""
        file = self.relevance.file
        return file.program.python_module(dotted, file) is not None

    def _imported(self, dotted: str) -> bool:
        """A module, or a function or class that a module defines itself and has from nowhere else."""
        file = self.relevance.file
        if self.is_at_hand(dotted):
            return True
        parent, _, name = dotted.rpartition(".")
        home = file.program.python_module(parent, file) if parent else None
        return home is not None and _is_defined(home, name)

    def _is_made(self, attribute: str) -> bool:
        """Whether all that objects of the file are given under a name is a constant, or what Python or a library makes."""
        if self._given is None:
            self._given = {}
            for method in (f for f, definition in p.functions_of(self.relevance.file.module) if definition is not None):
                for name, values in assigned_attributes(method).items():
                    self._given.setdefault(name, []).extend(values)
        values = self._given.get(attribute, [])
        return bool(values) and all(isinstance(value, p.Const) or self._holds_no_cpp(value) for value in values)

    def _holds_no_cpp(self, value: p.Expression) -> bool:
        function = value.function if isinstance(value, p.Call) else None
        if not isinstance(function, p.Attr | p.Name):
            return False
        own = isinstance(function, p.Name) or dotted_name(self.relevance.file, function) != ""  # and no other attribute, maybe this one
        return (own and self.means(function)) or bool(self.relevance.of_library(function))


def _is_defined(file: File, name: str) -> bool:
    """Whether a module gives a name to functions and classes that it defines, and to nothing else."""
    given = file.globals.get(name, [])
    return bool(given) and all(isinstance(statement, p.FunctionDef | p.ClassDef) for statement in given)
