"""How processes are started: fork, spawn, forkserver, as far as the code at hand says (trap 21: a setting in sight decides)."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from streamlint import program as p
from streamlint.interpreter.index import File, walk_module
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Const, Handle, Value

METHODS = frozenset({"fork", "spawn", "forkserver"})
_MOST_FILES = 200


def start_method(run: Run, context: Value | None) -> str:
    """The start method of a process: fork, spawn, forkserver; ``default`` where nothing sets it, empty where it is not known."""
    if context is None or (isinstance(context, Const) and context.value is None):
        return set_anywhere(run.file)
    if isinstance(context, Handle):
        context = context.args.get("0") or context.args.get("method") or Const(None)
        if isinstance(context, Const) and context.value is None:
            return set_anywhere(run.file)
    return str(context.value) if isinstance(context, Const) and context.value in METHODS else ""


@functools.lru_cache(maxsize=4096)
def set_anywhere(file: File) -> str:
    """What ``set_start_method`` says in this file and in those that imports tie to it, in either direction."""
    speaking = file.program.mentioning(file, "set_start_method")
    # Imports are asked for only where another file sets one: all files have to be read for that, and findings rest on all of them.
    tied = _tied(file) if any(other is not file for other in speaking) else [file]
    methods = {method for other in speaking if other in tied for method in _settings(other)}
    if not methods:
        return "default"
    return methods.pop() if len(methods) == 1 else ""


def _tied(file: File) -> list[File]:
    files = file.program.mentioning(file)
    imports = {id(other): _imported(other) for other in files[:_MOST_FILES]}
    found = [file]
    for current in found:
        for other in files[:_MOST_FILES]:
            if other not in found and (id(other) in imports.get(id(current), ()) or id(current) in imports[id(other)]):
                found.append(other)
    return found


def _imported(file: File) -> set[int]:
    """The files at hand that a file imports, by identity."""
    found = set()
    for dotted in file.module.imports.values():
        for candidate in (dotted, dotted.rpartition(".")[0]):
            target = file.program.python_module(candidate, file) if candidate else None
            if target is not None:
                found.add(id(target))
    return found


def _settings(file: File) -> Iterator[str]:
    for node in walk_module(file.module):
        if isinstance(node, p.Call) and _name(node) == "set_start_method":
            given = next((a.value for a in node.args if a.keyword in (None, "method")), None)
            yield str(given.value) if isinstance(given, p.Const) else ""


def _name(node: p.Call) -> str:
    return node.function.name if isinstance(node.function, p.Attr) else node.function.id if isinstance(node.function, p.Name) else ""
