"""What no code at hand does: events that are waited for and never recorded, or of which nobody asks the time.

Absence is asked of the text, not of a path: every place that names the event is looked at. One that hands it on, gives it another name or
does anything else that is not understood ends the question.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Literal

from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter.index import File, accepts, dotted_name
from streamlint.interpreter.notes import remembered
from streamlint.interpreter.questions import question
from streamlint.record import field, record

Role = Literal["wait", "silent", "other"]

_METHODS: dict[str, Role] = {"wait": "wait", "synchronize": "wait", "query": "silent", "sync": "wait", "destroy": "silent"}
_TAKERS: dict[str, Role] = {"wait_event": "wait", "cudaEventDestroy": "silent"}
_EFFECTS: dict[str, Role] = {"wait": "wait", "synchronize": "wait", "query": "silent", "destroy": "silent", "event": "silent"}
_HEADERS = (".h", ".hpp", ".cuh", ".hh", ".hxx")


@record(slots=True)
class Unrecorded:
    """An event that no code at hand records. ``local``: a variable of a body; ``internal``: a member that no other code can name."""

    name: str
    created: Span
    local: bool
    internal: bool
    function: str = ""  # the one that waits first
    waits: list[Span] = field(default_factory=list)
    may_record: bool = False  # it is asked for something else than records


@remembered(512)
def ordering_events(file: File) -> frozenset[Span]:
    """Where events are made that the code at hand records and waits for, and neither hands on, renames nor asks for a time.

    In C++ those of a body and of classes that no header shows.
    """
    return frozenset(_ordering(file))


@question
def _ordering(file: File) -> list[Span]:
    """The same, in order: what a question is answered has to be told alike in each run."""
    found = {event.created for event in _waited_for(file, may_record=True) if not file.is_cuda or event.local or event.internal}
    return sorted(found, key=lambda span: span.at)


def _waited_for(file: File, may_record: bool) -> list[Unrecorded]:
    found = []
    for function, owner in p.functions_of(file.module):
        for name, created, local in _made_in(file, function):
            event = Unrecorded(name, Span(file.path, *created), local, not local and _internal(file), may_record=may_record)
            if local:
                scopes = [(file, function)]
            elif owner is None:
                continue
            else:
                scopes = list(_scopes(file, owner))
            if all(_passive(event, *scope, local) for scope in scopes) and event.waits:
                found.append(event)
    return found


def _scopes(file: File, owner: p.Class) -> Iterator[tuple[File, p.Function]]:
    """The bodies that could name a member of the class: its own, those of its family, and all free code that knows its file."""
    stem = file.path.rpartition("/")[2].removesuffix(".py")
    others = file.program.cpp() if file.is_cuda else [file, *file.program.mentioning(file, owner.name, stem)]
    for other in dict.fromkeys(others):
        if other is not file and not _knows(other, file, owner):
            continue
        for function, holder in p.functions_of(other.module):
            if holder is None or holder.qualname == owner.qualname or _mentions(holder, owner) or _mentions(owner, holder):
                yield other, function
            elif file.is_cuda and any(owner.name in other.relevance.text(part) for part in (holder, function)):
                yield other, function  # it holds such objects, maybe, by a type or the argument of a template


def _knows(other: File, file: File, owner: p.Class) -> bool:
    if other.is_cuda or file.is_cuda:
        return other.is_cuda and (file in other.neighbours() or other in file.neighbours())
    stem = file.path.rpartition("/")[2].removesuffix(".py")
    words = {part for name in other.module.imports.values() for part in name.split(".")}
    return owner.name in words or stem in words


def _mentions(one: p.Class, other: p.Class) -> bool:
    """Whether a class has the other among its bases, or speaks of it in a method."""
    return other.name in _said(one)


@functools.lru_cache(maxsize=4096)
def _said(node: p.Class | p.Function) -> frozenset[object]:
    """The names that a class or a body speaks of, and the constants."""
    found: set[object] = set()
    for part in p.walk(node):
        if isinstance(part, p.Name):
            found.add(part.id)
        elif isinstance(part, p.Attr):
            found.add(part.name)
        elif isinstance(part, p.Const) and isinstance(part.value, str):
            found.add(part.value)
    return frozenset(found)


def _internal(file: File) -> bool:
    return file.is_cuda and not file.path.endswith(_HEADERS)


def _made_in(file: File, function: p.Function) -> Iterator[tuple[str, p.Position, bool]]:
    """Names that are given a new event in a body: the name, where, and whether it is a local variable."""
    locals_ = {param.name for param in function.params}
    nodes = [node for node in p.walk(function) if not isinstance(node, p.Function) or node is function]
    locals_ |= {name for node in nodes if isinstance(node, p.Declare) for name in (node.name, *node.names)}
    for node in nodes:
        if isinstance(node, p.Assign) and node.value is not None and len(node.targets) == 1 and (at := _creation(file, node.value)):
            target = node.targets[0]
            if isinstance(target, p.Attr):
                yield target.name, at, False
            elif isinstance(target, p.Name):
                yield target.id, at, True
        elif isinstance(node, p.Call) and file.is_cuda and _effect(file, node) == "event" and node.args:
            name = _denoted(node.args[0].value)
            if name:
                yield name, p.called_at(node), name in locals_


def _creation(file: File, value: p.Expression) -> p.Position | None:
    """Where the expression makes events and nothing else: one, a list of them, a comprehension."""
    if isinstance(value, p.Call):
        shared = any(arg.keyword == "interprocess" for arg in value.args)
        return p.called_at(value) if _effect(file, value) == "event" and not shared and not file.is_cuda else None
    if isinstance(value, p.Comprehension) and value.kind == "list":
        return _creation(file, value.element)
    if isinstance(value, p.Collection) and value.items:
        places = [_creation(file, item) for item in value.items]
        return places[0] if all(places) else None
    return None


def _effect(file: File, call: p.Call) -> str:
    name = (call.function.id if isinstance(call.function, p.Name) else "") if file.is_cuda else dotted_name(file, call.function)
    row = file.models.call(name) if name else None
    return row.effect if row is not None else ""


def _denoted(node: object) -> str:
    """The name that an expression stands for: ``x``, ``self.x``, ``x[i]``, ``&x``."""
    while isinstance(node, p.Index | p.AddressOf):
        node = node.value
    if isinstance(node, p.Name):
        return node.id
    return node.name if isinstance(node, p.Attr) else ""


def _passive(event: Unrecorded, file: File, function: p.Function, local: bool) -> bool:
    """Whether nothing in a body can record the event. Notes the waits."""
    return event.name not in _said(function) or all(_reads_only(event, file, function, statement, local) for statement in function.body)


def _reads_only(event: Unrecorded, file: File, function: p.Function, node: object, local: bool) -> bool:
    """Whether no part can record the event. The parts wait in a list: chains of calls are deep."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, p.Call):
            rest = _behind_call(event, file, function, node, local)
            if rest is None:
                return False
            waiting += reversed(rest)
        elif isinstance(node, p.Loop) and _goes_round(event, node, local):
            alias = Unrecorded(_denoted(node.target), event.created, local=True, internal=False, may_record=event.may_record)
            if not all(_reads_only(alias, file, function, part, True) for part in node.body):
                return False
            event.waits += alias.waits
            waiting += reversed(node.body)
        elif isinstance(node, p.Assign) and node.value is not None and all(_is(event, t, local) for t in node.targets):
            if _creation(file, node.value) is None and not _nothing(node.value):
                return False
        elif isinstance(node, p.Compare) and (_nothing(node.left) or _nothing(node.right)):
            continue
        elif _is(event, node, local) or (isinstance(node, p.Const) and node.value == event.name):
            return False
        else:
            waiting += reversed(p.children(node))
    return True


def _goes_round(event: Unrecorded, node: p.Loop, local: bool) -> bool:
    """Whether a loop has the event under a name of its own: it runs over a few that are written out."""
    if not isinstance(node.iterable, p.Collection) or not _denoted(node.target):
        return False
    return any(_is(event, item, local) for item in node.iterable.items)


def _behind_call(event: Unrecorded, file: File, function: p.Function, node: p.Call, local: bool) -> list[object] | None:
    """The other parts of a call that cannot record the event itself; None for one that can. Notes the waits."""
    target = node.function
    effect = _EFFECTS.get(_effect(file, node))
    if isinstance(target, p.Attr) and _is(event, target.value, local):
        role = "silent" if event.may_record and target.name == "record" else _METHODS.get(target.name, "other")
        rest: list[object] = [arg.value for arg in node.args]
    else:
        called = target.name if isinstance(target, p.Attr) else target.id if isinstance(target, p.Name) else ""
        given = [arg.value for arg in node.args if _is(event, arg.value, local)]
        records = event.may_record and (called in ("record_event", "record") or _effect(file, node) == "record")
        role = "silent" if not given or records else effect or _TAKERS.get(called, "other")
        rest = [target.value if isinstance(target, p.Attr) else target, *(arg.value for arg in node.args if arg.value not in given)]
    if role == "other":
        return None
    if role == "wait":
        event.function = event.function or function.qualname
        event.waits.append(Span(file.path, *p.called_at(node)))
    return rest


def _is(event: Unrecorded, node: object, local: bool) -> bool:
    while isinstance(node, p.Index | p.AddressOf):
        node = node.value
    if local:
        return isinstance(node, p.Name) and node.id == event.name
    return _denoted(node) == event.name and isinstance(node, p.Name | p.Attr)


# C++: an object that makes its event and gives it away: until a function hands the object on, nobody can have recorded the event


def _in_objects(file: File) -> Iterator[Unrecorded]:
    """The events of local objects that a body only waits for, or returns."""
    for function, _ in p.functions_of(file.module):
        declared = [node for node in p.walk(function) if isinstance(node, p.Declare) and node.name]
        for node in declared:
            plain = not (node.value or node.args or node.static or node.type.pointers or node.type.reference)
            held = _made_by(file, node.type.name) if plain and sum(d.name == node.name for d in declared) == 1 else None
            if held is not None:
                event = Unrecorded(node.name, held[1], local=False, internal=True)
                if all(_awaits_only(event, held[0], file, function, part) for part in function.body) and event.waits:
                    yield event


def _made_by(file: File, name: str) -> tuple[p.Class, Span] | None:
    """A class whose constructor without arguments makes an event and records none, and where the event is made."""
    for home in (file, *file.neighbours()):
        definition = home.class_named(name)
        if definition is None:
            continue
        for maker in definition.methods.get("__init__", ()):
            calls = [node for node in p.walk(maker) if isinstance(node, p.Call)] if accepts(maker, 0) else []
            made = [call for call in calls if _effect(home, call) == "event"]
            own = [c for c in calls if isinstance(c.function, p.Name) and c.function.id in definition.methods]
            if made and not own and not any(_effect(home, call) == "record" for call in calls):
                return definition, Span(home.path, *p.called_at(made[0]))
        return None
    return None


def _awaits_only(event: Unrecorded, held: p.Class, file: File, function: p.Function, node: object) -> bool:
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, p.Call):
            given = [arg.value for arg in node.args if _gives(held, event.name, arg.value)]
            role = _EFFECTS.get(_effect(file, node), "other") if given else "silent"
            if role == "other":
                return False
            if role == "wait":
                event.function = event.function or function.qualname
                event.waits.append(Span(file.path, *p.called_at(node)))
            waiting += [*(arg.value for arg in reversed(node.args) if arg.value not in given), node.function]
        elif isinstance(node, p.Return) and isinstance(node.value, p.Name):
            continue
        elif isinstance(node, p.Name) and node.id == event.name:
            return False
        else:
            waiting += reversed(p.children(node))
    return True


def _gives(held: p.Class, name: str, node: object) -> bool:
    """Whether an expression is an object, a member of it, or what a method of it does nothing but return."""
    while True:
        if isinstance(node, p.Call) and isinstance(node.function, p.Attr) and not node.args:
            methods = held.methods.get(node.function.name, ())
            if not methods or not all(map(_only_returns, methods)):
                return False
            node = node.function.value
        elif isinstance(node, p.Attr):
            node = node.value
        else:
            return isinstance(node, p.Name) and node.id == name


def _only_returns(method: p.Function) -> bool:
    """Whether a method does nothing but return. What never runs in it, and constants that it names before, are nothing."""
    for statement in method.body:
        if isinstance(statement, p.Return):
            return True
        dead = isinstance(statement, p.If) and isinstance(statement.test, p.Const) and not (statement.test.value or statement.otherwise)
        if not dead and not (isinstance(statement, p.Declare) and isinstance(statement.value, p.Const | p.Lambda)):
            return False
    return False


def _nothing(node: object) -> bool:
    return isinstance(node, p.Const) and node.value in (None, 0)
