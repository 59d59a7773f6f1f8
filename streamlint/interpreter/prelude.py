"""What runs before a root's body: the constructors of its receiver and of its parameters. Which of their decisions can the body notice?

A decision of a constructor is worth a path of its own only if something that depends on it is read later: an attribute that is set
under it, or computed from what is, or the same question asked again. Static, by names; what cannot be followed may touch anything.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator

from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter.at_hand import contains
from streamlint.interpreter.index import File, Program
from streamlint.interpreter.notes import Kept, kept, kept_in_rounds
from streamlint.interpreter.run import Place
from streamlint.record import field, record

ANYTHING = frozenset({"*"})
_MOVES = frozenset({"to", "cuda", "cpu", "to_empty"})  # of a module: where its parameters are


@record(slots=True)
class _Entry:
    """A statement without those inside it: what decides about it or goes into it, and what it may change. Attributes begin with a dot."""

    at: p.Position
    uses: set[str]
    changes: set[str]
    leaves: bool = False  # what follows may be left out
    returns: bool = False


@record(slots=True)
class Preludes:
    """The answers for the functions of a program, each found once."""

    _entries: dict[int, Kept[list[_Entry]]] = field(default_factory=dict)
    _changes: dict[int, Kept[frozenset[str]]] = field(default_factory=dict)
    _touched: dict[tuple[tuple[tuple[int, Span | None], ...], Span], Kept[frozenset[str]]] = field(default_factory=dict)
    _bases: dict[int, list[str]] = field(default_factory=dict)

    def touched(self, way: tuple[Place, ...], span: Span) -> frozenset[str]:
        """What may differ after a decision at ``span``, made in the last of the bodies on the way."""
        key = (tuple((id(place.function), place.call) for place in way), span)
        return kept(self._touched, key, self._follow, way, span)

    def _follow(self, way: tuple[Place, ...], span: Span) -> frozenset[str]:
        found: set[str] = set()
        for place in reversed(way):
            if place.function is None or span.file != place.file.path:
                return ANYTHING
            changed, returned = self._within(place.function, place.file, span)
            found |= changed
            if not returned or place.function.name == "__init__" or "*" in found:
                break
            if place.call is None:
                return ANYTHING
            span = place.call
        return frozenset(found)

    def _within(self, function: p.Function, file: File, span: Span) -> tuple[set[str], bool]:
        """What a body changes in the wake of the statement that holds ``span``, and whether that goes into what it returns."""
        entries = self._of(function, file)
        wanted = span.at
        around = [at for at in _statements(function.body) if contains(at, wanted)]
        if not around:
            return set(ANYTHING), True
        statement = min(around, key=lambda at: (at[2] - at[0], at[3] - at[1] if at[0] == at[2] else 0))
        first = [entry for entry in entries if contains(statement, entry.at)]
        tainted = {name for entry in first for name in entry.changes | (entry.uses if contains(entry.at, wanted) else set())}
        returned = any(entry.returns for entry in first)
        if any(entry.leaves for entry in first):
            return {name for entry in entries for name in entry.changes}, True
        grown = True
        while grown:
            grown = False
            for entry in entries:
                if not tainted.isdisjoint(entry.uses):
                    if entry.leaves:
                        return {name for other in entries for name in other.changes}, True
                    returned = returned or entry.returns
                    if not entry.changes <= tainted:
                        tainted |= entry.changes
                        grown = True
        return tainted, returned

    # --- what statements use and change ------------------------------------------------------------------------------------------------

    def _of(self, function: p.Function, file: File) -> list[_Entry]:
        found: list[_Entry] = []  # for a body that calls itself: what its other statements change
        return kept_in_rounds(self._entries, id(function), found, self._find_entries, found, function, file)

    def _find_entries(self, found: list[_Entry], function: p.Function, file: File) -> list[_Entry]:
        receiver = function.params[0].name if function.class_name and function.params and not file.is_cuda else "this"
        found.extend(self._listed(function.body, set(), receiver, file, function))
        return found

    def _listed(self, body: Iterable[object], under: set[str], receiver: str, file: File, holder: p.Function) -> Iterator[_Entry]:
        for statement in body:
            assert isinstance(statement, p.Statement)
            inner = list(_inner(statement))
            own = [child for child in p.children(statement) if not isinstance(child, p.Statement | p.Handler)] if inner else [statement]
            uses = {name for node in own for name in _mentioned(node, receiver)} | under
            changes = {name for node in own for name in self._changed_by(node, receiver, file, holder)}
            changes |= {name for target in _targets(statement) for name in _mentioned(target, receiver)}
            yield _Entry(
                statement.at,
                uses,
                changes,
                isinstance(statement, p.Return | p.Break | p.Continue),
                isinstance(statement, p.Return) and statement.value is not None,
            )
            yield from self._listed(inner, uses, receiver, file, holder)

    def _changed_by(self, node: object, receiver: str, file: File, holder: p.Function) -> Iterator[str]:
        for inner in p.walk(node):
            if isinstance(inner, p.Assign):
                for target in inner.targets:
                    yield from _mentioned(target, receiver)
            elif isinstance(inner, p.AssignExpr):
                yield from _mentioned(inner.target, receiver)
            elif isinstance(inner, p.Declare):
                yield inner.name
            elif isinstance(inner, p.Delete):
                yield from _mentioned(inner, receiver)
            elif isinstance(inner, p.FunctionDef):
                yield inner.function.name
            elif isinstance(inner, p.Call):
                yield from self._changed_by_call(inner, receiver, file, holder)

    def _changed_by_call(self, call: p.Call, receiver: str, file: File, holder: p.Function) -> Iterator[str]:
        """A call changes what its body does, and may change its object and its arguments."""
        function = call.function
        name = function.name if isinstance(function, p.Attr) else function.id if isinstance(function, p.Name) else ""
        if isinstance(function, p.Attr):
            yield from _place(function.value, receiver, file)
            if name in _MOVES:
                yield ".(device)"
        for called in self._bases_of(holder, file) if name == "__init__" else (name,):
            for body in file.relevance.named(called):
                yield from self._changed_in(body, file.program.owner(body, file))
        for arg in call.args:
            yield from _place(arg.value.value if isinstance(arg.value, p.AddressOf) else arg.value, receiver, file)

    def _bases_of(self, function: p.Function, file: File) -> list[str]:
        """The classes whose constructors ``super().__init__`` may mean, by the last parts of their names."""
        if id(function) not in self._bases:
            definition = file.class_named(function.class_name) if function.class_name else None
            named = definition.bases if definition is not None else ()
            self._bases[id(function)] = [b.name if isinstance(b, p.Attr) else b.id for b in named if isinstance(b, p.Attr | p.Name)]
        return self._bases[id(function)]

    def _changed_in(self, function: p.Function, file: File) -> frozenset[str]:
        """What a body may change that outlives it."""
        return kept_in_rounds(self._changes, id(function), frozenset[str](), self._find_changes, function, file)

    def _find_changes(self, function: p.Function, file: File) -> frozenset[str]:
        names = {name for entry in self._of(function, file) for name in entry.changes}
        return frozenset(name for name in names if file.is_cuda or not name.isidentifier())


def _statements(body: Iterable[object]) -> Iterator[p.Position]:
    """The places of all statements of a body, inner ones too."""
    for statement in body:
        if isinstance(statement, p.Statement):
            yield statement.at
            yield from _statements(_inner(statement))


def _inner(statement: p.Statement) -> Iterator[p.Statement]:
    """The statements directly in one; a function or a class that is defined in it is a part of it."""
    if isinstance(statement, p.FunctionDef | p.ClassDef):
        return
    for child in p.children(statement):
        if isinstance(child, p.Statement):
            yield child
        elif isinstance(child, p.Handler):
            yield from child.body


def _targets(statement: p.Statement) -> Iterator[p.Expression]:
    """The places that the head of a compound statement gives values."""
    if isinstance(statement, p.Loop) and statement.target is not None:
        yield statement.target
    elif isinstance(statement, p.With):
        yield from (target for _, target in statement.items if target is not None)


def _place(node: p.Expression, receiver: str, file: File) -> Iterator[str]:
    """The names of a place (``self.plan.buffers[i]``) whose value a call may change; libraries stay what they are."""
    head = node
    while isinstance(head, p.Attr | p.Index | p.Deref):
        head = head.value
    if isinstance(head, p.Name) and head.id not in file.imports:
        yield from _mentioned(node, receiver)


def _mentioned(node: object, receiver: str) -> Iterator[str]:
    for inner in p.walk(node):
        if isinstance(inner, p.Attr):
            yield f".{inner.name}"
        elif isinstance(inner, p.Name) and inner.id != receiver:
            yield inner.id


def can_notice(touched: frozenset[str], read: set[str], in_cuda: bool) -> bool:
    """Whether a body that read these attributes can tell."""
    return "*" in touched or any(f".{name}" in touched or (in_cuda and name in touched) for name in read)


@functools.lru_cache(maxsize=1)
def preludes_of(program: Program) -> Preludes:
    """The answers for a program."""
    return Preludes()
