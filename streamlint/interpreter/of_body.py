"""Which literals a root's own body may come by, without what makes its object first.

A root is entered with nothing in flight (`roots`), so what a check begins with is done by the body: by its own text, by what it calls by
name, and by what the attributes hold that it reads. Of these their values' text counts, and that of what makes them; where the body may
call one, enter it or go through it, all that the functions say which its values name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamlint import program as p
from streamlint.interpreter.index import File, assigned_attributes
from streamlint.interpreter.notes import Kept, kept
from streamlint.record import field, record

if TYPE_CHECKING:
    from streamlint.interpreter.in_play import InPlay
    from streamlint.interpreter.relevance import Relevance

MOST_CALLEES = 200
DEEPEST = 2
# Methods that run without their name being written: where an object is made, called, entered, iterated, left.
UNSAID = frozenset(
    "__init__ __call__ forward operator() __enter__ __exit__ __aenter__ __aexit__ __iter__ __next__ __del__ __getitem__".split()
)
Literals = frozenset[str]
Given = dict[str, list[tuple[File, p.Expression]]]  # what objects hold, by their attributes' names, and where that stands


@record(eq=False, slots=True)
class OfBody:
    """The answers for the functions of one file, each found once."""

    relevance: Relevance
    _own: Given | None = None  # of the file's classes
    _given: dict[str, Kept[Given]] = field(default_factory=dict)  # and of those of the files that it names
    _used: dict[int, Kept[list[p.Function]]] = field(default_factory=dict)
    _said: dict[tuple[int, Literals], Kept[Literals]] = field(default_factory=dict)

    def found(self, function: p.Function, words: Literals, play: InPlay | None) -> Literals:
        """The literals that a body may come by; all of them where it calls too much. ``play`` knows the classes on the root's way."""
        found, seen = set[str](), set[int]()
        waiting = [(function, 0)]
        while waiting:
            callee, depth = waiting.pop()
            holder = self.relevance.holder(callee)
            if id(callee) in seen or (seen and play is not None and play.waits(callee, depth, holder)):
                continue
            if len(seen) >= MOST_CALLEES:
                return words
            seen.add(id(callee))
            found |= holder.of_body.said(callee, words)
            if depth <= DEEPEST:
                waiting.extend((inner, depth + 1) for inner in (*holder.callees(callee), *holder.of_body.used(callee)))
        return frozenset(found)

    def said(self, function: p.Function, words: Literals) -> Literals:
        """The literals in a function's text and in what the attributes were given that it reads."""
        return kept(self._said, (id(function), words), self._find_said, function, words)

    def _find_said(self, function: p.Function, words: Literals) -> Literals:
        said = self.relevance.said
        found = said.by(function, words) | said.outside(function, words)
        for file, value in self._values(_read_attributes(function)):
            found |= file.relevance.said.within(value, words)
            for maker in file.relevance.called_in(value):
                if maker.name not in UNSAID:
                    found |= file.relevance.holder(maker).said.by(maker, words)
        return found

    def used(self, function: p.Function) -> list[p.Function]:
        """The functions that the values of attributes name which a function may call, enter or go through."""
        return kept(self._used, id(function), self._find_used, function)

    def _find_used(self, function: p.Function) -> list[p.Function]:
        used, read = _used_attributes(function), _read_attributes(function)
        handed_on = (held for held in self._values(read - used) if not any(isinstance(node, p.Call) for node in p.walk(held[1])))
        found = [f for file, value in (*self._values(used), *handed_on) for f in file.relevance.called_in(value) if f.name != "__init__"]
        return list({id(callee): callee for callee in found}.values())

    def _values(self, attributes: set[str]) -> Iterator[tuple[File, p.Expression]]:
        """What classes of this file, and of those that it names, give their objects under these names."""
        given = kept(self._given, "", self._find_given)
        for name in sorted(attributes & given.keys()):
            yield from given[name]

    def _find_given(self) -> Given:
        found: Given = {}
        for file in self.relevance.reach():
            for name, values in file.relevance.of_body.own().items():
                found.setdefault(name, []).extend(values)
        return found

    def own(self) -> Given:
        """What objects of this file's classes are given."""
        if self._own is None:
            self._own, file = {}, self.relevance.file
            for definition in dict.fromkeys(file.module.classes.values()):
                given = [(held.name, [held.value]) for held in definition.fields if held.value is not None]
                for method in (method for overloads in definition.methods.values() for method in overloads):
                    given += assigned_attributes(method).items()
                for name, values in given:
                    self._own.setdefault(name, []).extend((file, value) for value in values)
        return self._own


def _read_attributes(function: p.Function) -> set[str]:
    return {node.name for node in p.walk(function) if isinstance(node, p.Attr)}


def _used_attributes(function: p.Function) -> set[str]:
    """The attributes that are more than looked at, or asked for an attribute of their own."""
    looked_at: set[int] = set()
    for node in p.walk(function):
        if isinstance(node, p.Attr):
            looked_at.add(id(node.value))
        elif isinstance(node, p.Compare):
            looked_at |= {id(node.left), id(node.right)}
        elif isinstance(node, p.Assign):
            looked_at.update(map(id, node.targets))
    return {node.name for node in p.walk(function) if isinstance(node, p.Attr) and id(node) not in looked_at}
