"""How processes are started: fork, spawn, forkserver, as far as the code at hand says (trap 21: a setting in sight decides)."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint import program as p
from streamlint.interpreter.index import File, walk_module
from streamlint.interpreter.notes import remembered
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Const, Handle, Value

METHODS = frozenset({"fork", "spawn", "forkserver"})


def start_method(run: Run, context: Value | None) -> str:
    """The start method of a process: fork, spawn, forkserver; ``default`` where nothing sets it, empty where it is not known."""
    if context is None or (isinstance(context, Const) and context.value is None):
        return set_anywhere(run.file)
    if isinstance(context, Handle):
        context = context.args.get("0") or context.args.get("method") or Const(None)
        if isinstance(context, Const) and context.value is None:
            return set_anywhere(run.file)
    return str(context.value) if isinstance(context, Const) and context.value in METHODS else ""


@remembered(4096)
def set_anywhere(file: File) -> str:
    """What ``set_start_method`` says in this file and in those that imports tie to it, in either direction."""
    speaking = file.program.mentioning(file, "set_start_method")
    if any(other is not file for other in speaking):
        speaking = file.program.tied(file, speaking)
    methods = {method for other in speaking for method in _settings(other)}
    if not methods:
        return "default"
    return methods.pop() if len(methods) == 1 else ""


def _settings(file: File) -> Iterator[str]:
    for node in walk_module(file.module):
        if isinstance(node, p.Call) and _name(node) == "set_start_method":
            given = next((a.value for a in node.args if a.keyword in (None, "method")), None)
            yield str(given.value) if isinstance(given, p.Const) else ""


def _name(node: p.Call) -> str:
    return node.function.name if isinstance(node.function, p.Attr) else node.function.id if isinstance(node.function, p.Name) else ""
