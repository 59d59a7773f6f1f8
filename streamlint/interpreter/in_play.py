"""Which classes' methods a root may come by: those of its own object, and of the classes that something on its way names.

`x.to(y)` calls every method of that name as far as words tell. But an object of a class at hand is only known where a constructor, an
annotation or a base names the class, in a function on the way, in the class of an object there, or in a module's own statements, where one
of these names what they give a value. A parameter that may as well be ``None`` is no object (`roots.typed_by_annotation`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Set
from typing import TYPE_CHECKING

from streamlint import program as p
from streamlint.interpreter.at_hand import is_optional
from streamlint.interpreter.letters import names_in_text
from streamlint.interpreter.makers import classes_given
from streamlint.interpreter.notes import Kept, kept
from streamlint.interpreter.outside import names_given
from streamlint.record import field, record

if TYPE_CHECKING:
    from streamlint.interpreter.relevance import Relevance

Named = tuple[dict[str, frozenset[str]], frozenset[str]]  # by classes, and by what is always run


@record(eq=False, slots=True)
class Names:
    """What one file's functions name, themselves or by names that the file's own statements give a value.

    In C++ a declaration elsewhere may bring an object, so nothing is left out there.
    """

    relevance: Relevance
    # Of the files that it reaches: what their heads and fields name, and what their own statements do. The same of this file alone.
    _classes: dict[str, Kept[Named]] = field(default_factory=dict)
    _own: dict[str, Kept[Named]] = field(default_factory=dict)
    _foreign: dict[str, Kept[frozenset[str]]] = field(default_factory=dict)
    _of: dict[int, Kept[frozenset[str]]] = field(default_factory=dict)
    _sets: dict[frozenset[str], frozenset[str]] = field(default_factory=dict)  # many functions say the same

    def of(self, function: p.Function) -> frozenset[str]:
        """The names of classes that a function says, and of those that it leads to."""
        return kept(self._of, id(function), self._find_of, function)

    def _find_of(self, function: p.Function) -> frozenset[str]:
        text = self.relevance.text(function)
        for param in function.params:
            if param.annotation is not None and is_optional(param.annotation):
                text = text.replace(self.relevance.text(param.annotation), "", 1)  # no object is made of it
        names = names_in_text(text)
        if self.relevance.file.is_cuda:
            found = self._of_classes(names)
        else:
            names = names.union(function.class_name.split("."), names_in_text(self.relevance.said.of_object(function)))
            found = self._with_classes(self._said(names))
        return self._sets.setdefault(found, found)

    def _said(self, names: Set[str]) -> set[str]:
        """Names as they are called at home; without those of libraries out of view."""
        imports = self.relevance.file.module.imports
        imported = names & imports.keys()
        foreign = kept(self._foreign, "", self._find_foreign)
        return {*(names - foreign), *(imports[name].rpartition(".")[2] for name in imported - foreign)}

    def _find_foreign(self) -> frozenset[str]:
        """The names that the file has from libraries alone."""
        file = self.relevance.file
        return frozenset(
            name
            for name, dotted in file.module.imports.items()
            if all(isinstance(given, p.Import) for given in file.globals.get(name, ()))
            and not any(self.relevance.python.is_at_hand(module) for module in (dotted, dotted.rpartition(".")[0]) if module)
        )

    def _of_classes(self, said: Iterable[str]) -> frozenset[str]:
        """Those that may be names of classes. Nothing else is asked for, and all names would be a third of what a long run holds."""
        return frozenset(map(sys.intern, self.relevance.file.program.class_names.intersection(said)))

    def _with_classes(self, said: set[str]) -> frozenset[str]:
        known, always = kept(self._classes, "", self._all_classes)
        said |= always
        waiting = list(said & known.keys())
        while waiting:
            fresh = known[waiting.pop()] - said
            said |= fresh
            waiting += fresh & known.keys()
        return self._of_classes(said)

    def own(self) -> Named:
        """What the heads and fields of the file's classes name, and what the file's own statements do."""
        return kept(self._own, "", self._find_own)

    def _find_own(self) -> Named:
        file, text = self.relevance.file, self.relevance.text
        classes, always = self._of_statements()
        led = frozenset(classes)
        for definition in dict.fromkeys(file.module.classes.values()):
            parts: list[p.Node] = [*definition.bases, *definition.body]
            for held in definition.fields:
                parts += [part for part in (held.annotation, held.value) if part is not None and not is_optional(part)]
            names = {*self._said(names_in_text("\n".join(map(text, parts)))), *classes_given(definition, file)}
            _join(classes, definition.name.rpartition(".")[2], self._of_classes(names) | (led & names))
        return classes, always

    def _of_statements(self) -> tuple[dict[str, frozenset[str]], frozenset[str]]:
        """The classes that the file's own statements name: by the names that they give a value, and those of statements that give none."""
        file, text = self.relevance.file, self.relevance.text
        known: dict[str, frozenset[str]] = {}
        always: set[str] = set()
        parts: list[tuple[set[str], set[str]]] = []
        for statement in file.module.body:
            if not isinstance(statement, p.FunctionDef | p.ClassDef | p.Import):
                said = self._said(names_in_text(text(statement)))
                names = names_given(statement, file)
                parts.append((names, said))
                for name, found in ((name, self._of_classes(said)) for name in names):
                    if found:
                        _join(known, name, found)
                if not names:
                    always |= said
        grown = True
        while grown:  # a name may be given what another one leads to
            grown = False
            for names, said in parts:
                for name in names:
                    if fresh := (said & known.keys()) - known.get(name, frozenset()) - {name}:
                        _join(known, name, frozenset(fresh))
                        grown = True
        return known, self._of_classes(always) | (always & known.keys())

    def _all_classes(self) -> Named:
        classes: dict[str, frozenset[str]] = {}
        always: set[str] = set()
        for file in self.relevance.reach():
            own, named = file.relevance.names.own()
            always |= named
            for name, said in own.items():
                _join(classes, name, said)
        return classes, frozenset(always)


def _join(classes: dict[str, frozenset[str]], name: str, said: frozenset[str]) -> None:
    """Two classes may have one name."""
    classes[name] = classes[name] | said if name in classes else said


class InPlay:
    """The classes that are named on the way of one root, as it is followed."""

    def __init__(self) -> None:
        self._said: set[str] = set()
        self._waiting: dict[str, list[tuple[p.Function, int]]] = {}

    def waits(self, function: p.Function, depth: int, relevance: Relevance) -> bool:
        """Whether nothing has named the method's class so far; it is kept for when something does."""
        name = function.class_name.rpartition(".")[2] if function.class_name and not relevance.file.is_cuda else ""
        if not name or name in self._said:
            return False
        self._waiting.setdefault(name, []).append((function, depth))
        return True

    def enter(self, function: p.Function, relevance: Relevance) -> Iterable[tuple[p.Function, int]]:
        """A function is on the way: the methods that waited for a class that it names."""
        self._said |= relevance.names.of(function)
        for name in self._waiting.keys() & self._said:
            yield from self._waiting.pop(name)
