"""C++: members that no constructor fills, but a method or a C function of the files at hand: what memory all of these give them."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint import program as p
from streamlint.findings import Span, Step
from streamlint.interpreter.index import File
from streamlint.interpreter.notes import remembered
from streamlint.interpreter.questions import question
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Buffer, Instance
from streamlint.models.vocabulary import Selector
from streamlint.operations import Memory

_KINDS = {"pinned": Memory.PINNED, "pageable": Memory.PAGEABLE}
Fill = tuple[str, Span]


def filled_elsewhere(run: Run, value: Instance, name: str) -> Buffer | None:
    """The host memory of a member of an object from out of view, where every place that gives it any gives it the same kind."""
    if not value.foreign or not value.file.is_cuda:
        return None
    fills = fills_of(value.file, name)
    kinds = {kind for kind, _ in fills}
    if len(kinds) != 1 or (memory := _KINDS.get(kinds.pop())) is None:
        return None
    trail = (Step(f"allocated in {memory.value} host memory here", fills[0][1]),)
    return Buffer(run.storage(memory, f"{value.term}.{name}", trail=trail), type="pointer")


@question
def fills_of(file: File, name: str) -> list[Fill]:
    """What a member is given in a file and in those that include it."""
    files = (file, *(other for other in file.program.cpp(file) if file in other.neighbours()))
    return [fill for other in files for fill in _fills(other).get(name, ())]


@remembered(1024)
def _fills(file: File) -> dict[str, list[Fill]]:
    """By the last part of its name: what each place that is written or allocated into is given. Other sources are no kind of memory."""
    found: dict[str, list[Fill]] = {}
    for function, _ in p.functions_of(file.module):
        local = {param.name for param in function.params} | {n.name for n in p.walk(function) if isinstance(n, p.Declare)}
        for node in p.walk(function):
            for target, kind, at in _given(node, file):
                name = _member(target, local)
                if name:
                    found.setdefault(name, []).append((kind, Span(file.path, *at)))
    return found


def _given(node: object, file: File) -> Iterator[tuple[p.Expression, str, p.Position]]:
    if isinstance(node, p.Call) and isinstance(node.function, p.Name):
        row = file.models.call(node.function.id.lstrip(":"))
        into = row.get("into") if row is not None and row.effect == "alloc" else None
        if row is not None and isinstance(into, Selector) and into.kind == "pointee" and into.position is not None:
            if into.position < len(node.args):
                yield _plain(node.args[into.position].value), str(row.get("memory", "device")), node.at
            return
        for arg in node.args:
            if isinstance(_uncast(arg.value), p.AddressOf):
                yield _plain(arg.value), "other", node.at  # whatever it is called with may fill it
    elif isinstance(node, p.Assign | p.AssignExpr) and node.op is None:
        targets = node.targets if isinstance(node, p.Assign) else [node.target]
        value = _uncast(node.value) if node.value is not None else None
        if isinstance(value, p.Const) and value.value in (None, 0):
            return
        if isinstance(value, p.Name) and value.id in ("nullptr", "NULL"):
            return
        for target in targets:
            yield target, _kind_of(value, file), node.at


def _kind_of(value: p.Expression | None, file: File) -> str:
    if isinstance(value, p.New) and value.count is not None:
        return "pageable"
    if isinstance(value, p.Call) and isinstance(value.function, p.Name):
        row = file.models.call(value.function.id.lstrip(":"))
        if row is not None and row.effect == "alloc" and not isinstance(row.get("into"), Selector):
            return str(row.get("memory", "device"))
        if row is not None and row.effect == "alloc" and getattr(row.get("into"), "kind", "") == "result":
            return str(row.get("memory", "device"))
    return "other"


def _uncast(node: p.Expression) -> p.Expression:
    while isinstance(node, p.Cast):
        node = node.value
    return node


def _plain(node: p.Expression) -> p.Expression:
    node = _uncast(node)
    return node.value if isinstance(node, p.AddressOf) else node


def _member(node: p.Expression, local: set[str]) -> str:
    """``p->x``, ``this->x``, and ``x`` where it is no variable of the function."""
    if isinstance(node, p.Attr):
        return node.name
    return node.id if isinstance(node, p.Name) and node.id not in local else ""
