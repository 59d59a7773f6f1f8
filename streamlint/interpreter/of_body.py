"""Which literals a root's own body may come by, without what makes its object first.

A root is entered with nothing in flight (`roots`), so what a check begins with is done by the body: by its own text, by what it calls by
name, and by what the attributes hold that it reads. Of these their values' text counts, and that of what makes them; where the body may
call one, enter it or go through it, all that the functions say which its values name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamlint import program as p
from streamlint.interpreter.index import assigned_attributes
from streamlint.interpreter.notes import Kept, kept
from streamlint.record import field, record

if TYPE_CHECKING:
    from streamlint.interpreter.in_play import InPlay
    from streamlint.interpreter.relevance import Relevance

_MOST_CALLEES = 200
_DEEPEST = 2
# Methods that run without their name being written: where an object is made, called, entered, iterated, left.
UNSAID = frozenset("__init__ __call__ forward operator() __enter__ __exit__ __iter__ __next__ __del__ __getitem__".split())
Literals = frozenset[str]
Values = tuple[tuple["Relevance", p.Expression], ...]


@record(eq=False, slots=True)
class OfBody:
    """The answers for the functions of one file, each found once."""

    relevance: Relevance
    _given: dict[str, list[p.Expression]] | None = None  # what objects of the file's classes hold, by attributes
    _read: dict[int, Kept[Values]] = field(default_factory=dict)
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
            if len(seen) >= _MOST_CALLEES:
                return words
            seen.add(id(callee))
            found |= holder.of_body.said(callee, words)
            if depth <= _DEEPEST:
                waiting.extend((inner, depth + 1) for inner in (*holder.callees(callee), *holder.of_body.used(callee)))
        return frozenset(found)

    def said(self, function: p.Function, words: Literals) -> Literals:
        """The literals in a function's text and in what the attributes were given that it reads."""
        return kept(self._said, (id(function), words), self._find_said, function, words)

    def _find_said(self, function: p.Function, words: Literals) -> Literals:
        said = self.relevance.said
        found = said.by(function, words) | said.outside(function, words)
        for holder, value in self._values(function):
            found |= holder.said.within(value, words)
            for maker in holder.called_in(value):
                if maker.name not in UNSAID:
                    found |= holder.holder(maker).said.by(maker, words)
        return found

    def used(self, function: p.Function) -> list[p.Function]:
        """The functions that the values of attributes name which a function may call, enter or go through."""
        return kept(self._used, id(function), self._find_used, function)

    def _find_used(self, function: p.Function) -> list[p.Function]:
        used = _used_attributes(function)
        found = [
            callee
            for name in sorted(_read_attributes(function))
            for holder, value in self._held(name)
            if name in used or not any(isinstance(node, p.Call) for node in p.walk(value))  # a function itself may be handed on
            for callee in holder.called_in(value)
            if callee.name != "__init__"
        ]
        return list({id(callee): callee for callee in found}.values())

    def _values(self, function: p.Function) -> Values:
        return kept(self._read, id(function), self._find_values, function)

    def _find_values(self, function: p.Function) -> Values:
        return tuple(held for name in sorted(_read_attributes(function)) for held in self._held(name))

    def _held(self, attribute: str) -> Iterator[tuple[Relevance, p.Expression]]:
        """What classes of this file, and of those that it names, give their objects under a name."""
        for file in self.relevance.reach():
            holder = file.relevance
            yield from ((holder, value) for value in holder.of_body.given().get(attribute, ()))

    def given(self) -> dict[str, list[p.Expression]]:
        """What objects of this file's classes are given, by the attributes' names."""
        if self._given is None:
            self._given = {}
            for definition in dict.fromkeys(self.relevance.file.module.classes.values()):
                for method in (method for overloads in definition.methods.values() for method in overloads):
                    for name, values in assigned_attributes(method).items():
                        self._given.setdefault(name, []).extend(values)
                for held in definition.fields:
                    if held.value is not None:
                        self._given.setdefault(held.name, []).append(held.value)
        return self._given


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
