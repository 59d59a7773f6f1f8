"""A module in two: some of its definitions move to a second one, from which the first imports them."""

from __future__ import annotations

import libcst as cst
from rename import File
from rewrites import extraction
from rewrites.labels import Label
from rewrites.trees import is_docstring, is_import, loaded, parsed, stored, walk

SECOND = "moved_parts"


def rewrite(files: list[File], wanted: list[Label]) -> list[File] | None:
    """Split the first file that can be; where one has a single definition, a statement of it moves."""
    for number, file in enumerate(files):
        if file.language != "python":
            continue
        here = {label for label in wanted if label[0] == number}
        found = _split(file) or _split(file, extraction.extracted(file.text, here))
        if found is not None:
            return [*(found[0] if f is file else f for f in files), found[1]]
    return None


def _split(file: File, text: str | None = None) -> tuple[File, File] | None:
    module = parsed(file.text if text is None else text)
    body = [s for s in module.body if not is_import(s) and not is_docstring(s)]
    moved = _closed(body)
    if not moved:
        return None
    folder = file.name.rpartition("/")[0]
    home = f"{folder}/{SECOND}.py" if folder else f"{SECOND}.py"
    names = [name for statement in moved for name in _binds(statement)]
    dots = any(isinstance(n, cst.ImportFrom) and n.relative for n in walk(module))
    dotted = f".{SECOND}" if dots else f"{folder.replace('/', '.')}.{SECOND}" if folder else SECOND
    head = [s for s in module.body if is_import(s) or is_docstring(s)]
    line = cst.parse_statement(f"from {dotted} import {', '.join(names)}\n")
    stays = [s for s in body if not any(s is other for other in moved)]
    first = module.with_changes(body=[*head, line, *stays])
    second = cst.Module([s for s in head if is_import(s)] + list(moved))
    return File(file.name, file.language, first.code), File(home, "python", second.code)


def _closed(body: list[cst.BaseStatement]) -> list[cst.BaseStatement]:
    """The first definition that others use, with all that it needs: what can stand in a module of its own."""
    by_name = {name: statement for statement in body for name in _binds(statement)}
    for start in body:
        if not isinstance(start, cst.FunctionDef | cst.ClassDef):
            continue
        used = any(start.name.value in loaded(other) for other in body if other is not start)
        taken, waiting = [start], [start]
        while waiting:
            for name in loaded(waiting.pop()):
                needed = by_name.get(name)
                if needed is not None and not any(needed is other for other in taken):
                    taken.append(needed)
                    waiting.append(needed)
        plain = all(isinstance(s, cst.FunctionDef | cst.ClassDef) or _is_constant(s, body) for s in taken)
        if used and plain and len(taken) < len(body):
            return [s for s in body if any(s is other for other in taken)]
    return []


def _binds(statement: cst.CSTNode) -> list[str]:
    if isinstance(statement, cst.FunctionDef | cst.ClassDef):
        return [statement.name.value]
    return stored(statement)


def _is_constant(statement: cst.CSTNode, body: list[cst.BaseStatement]) -> bool:
    """A name of the module that is assigned once, at its top."""
    names = _binds(statement)
    writers = [other for other in body if set(names) & set(stored(other))]
    return isinstance(statement, cst.SimpleStatementLine) and len(writers) == 1
