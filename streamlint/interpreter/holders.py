"""Who can reach a stream that an object holds, and whether any code makes it wait: facts of absence, from text alone."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter.index import File, walk_module
from streamlint.interpreter.notes import remembered

# Calls that are given a stream and neither keep it nor make it wait.
_USES = frozenset({"stream", "StreamContext", "set_stream", "record_stream", "record", "wait_stream", "synchronize", "with_stream"})
# Methods of a stream that do not make it wait.
_METHODS = frozenset({"synchronize", "query", "record_event", "record", "use", "cuda_stream", "ptr", "done"})


@remembered(4096)
def is_private(file: File, made: Span) -> bool:
    """Whether the stream made at a place is held by attributes alone that are only worked on and waited for, in all files at hand."""
    names = {name for statement in walk_module(file.module) if isinstance(statement, p.Assign) for name in _held(statement, made)}
    if len(names) != 1 or None in names:
        return False
    (name,) = names
    others = file.program.mentioning(file, str(name))
    return all(_is_only_used(use, str(name)) for other in {id(o): o for o in (file, *others)}.values() for use in _uses(other, str(name)))


def _held(statement: p.Assign, made: Span) -> Iterator[str | None]:
    """The attributes and variables that a statement gives a stream made in it; None for any other place."""
    calls = (node for node in p.walk(statement.value) if isinstance(node, p.Call)) if statement.value is not None else ()
    if any((made.row, made.column) in (call.name_at[:2], call.at[:2]) for call in calls):
        for target in statement.targets:
            yield target.name if isinstance(target, p.Attr) else target.id if isinstance(target, p.Name) else None


def _uses(file: File, name: str) -> Iterator[tuple[object, p.Attr | p.Name]]:
    """Each place where an attribute or a variable of that name stands, with what is around it."""
    for node in walk_module(file.module):
        if isinstance(node, p.Arg):
            continue
        for child in p.children(node):
            inner = child.value if isinstance(child, p.Arg) else child
            if (isinstance(inner, p.Attr) and inner.name == name) or (isinstance(inner, p.Name) and inner.id == name):
                yield node, inner


def _is_only_used(use: tuple[object, p.Attr | p.Name], name: str) -> bool:
    around, place = use
    if isinstance(around, p.Attr):
        return around.name in _METHODS
    if isinstance(around, p.Call):
        called = around.function.name if isinstance(around.function, p.Attr) else getattr(around.function, "id", "")
        return called in _USES and not (called == "wait_stream" and around.function is place)
    if isinstance(around, p.Assign):
        return any(target is place for target in around.targets)
    return isinstance(around, p.Compare | p.With | p.If | p.Conditional)
