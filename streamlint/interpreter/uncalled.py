"""Functions that nothing at hand can call: methods of private classes, and functions of Python extensions, whose name stands nowhere else.

This is asked of the text: any other place that holds the name ends the question; in C++ a comment does, too.
"""

from __future__ import annotations

import re

from streamlint import program as p
from streamlint.interpreter.extension import BINDS, is_torch_extension
from streamlint.interpreter.index import File, is_declaration
from streamlint.interpreter.notes import remembered
from streamlint.interpreter.questions import question

_SHORTEST = 6  # a piece of a name that a macro may be given to make it of


@question
@remembered(1024)
def is_uncalled(file: File, qualname: str) -> bool:
    """Whether nothing at hand calls a function of ``file``, and nobody else can."""
    found = next((pair for pair in p.functions_of(file.module) if pair[0].qualname == qualname), None)
    if found is None:
        return False
    return _unbound(file, found[0]) if file.is_cuda else _of_private_class(file, *found)


def _of_private_class(file: File, function: p.Function, owner: p.Class | None) -> bool:
    """A plain method of a class with one underscore before its name and no bases, in which others could name it."""
    if owner is None or owner.bases or function.decorators or not owner.name.startswith("_") or owner.name.startswith("__"):
        return False
    if function.name.startswith("__") or _times(function.name, file.module.text) != 1:
        return False
    return not _is_named_in_others(file, function.name)


def _unbound(file: File, function: p.Function) -> bool:
    """C++: a function of PyTorch's extensions, which bind others and neither bind nor call it: only declarations name it."""
    if function.class_name or function.template or function.kind != "function" or file.path.endswith((".h", ".hpp", ".cuh", ".hh")):
        return False
    files = file.program.cpp(file)
    if not is_torch_extension(file) or not any(word in other.module.text for other in files for word in BINDS):
        return False
    if not _has_company(file):
        return False
    if any(_times(function.name, other.module.text) != _declared(other, function.name) for other in files):
        return False
    return not any(_may_be_pasted(function.name, other) for other in files) and not _is_named_in_others(file, function.name)


def _is_named_in_others(file: File, name: str) -> bool:
    """Whether the name is a word of another file of Python or Cython."""
    return any(other is not file and _times(name, other.module.text) for other in file.program.saying(file, name))


@remembered(256)
def _has_company(file: File) -> bool:
    """Whether a file binds, includes a file at hand, or is named by another one: of one by itself, who calls it is out of view."""
    if file.neighbours() or any(word in file.module.text for word in BINDS):
        return True
    names = {f.name for f, _ in p.functions_of(file.module) if not f.static and not is_declaration(f)}
    others = [other for other in file.program.cpp() if other is not file]
    return any(_times(name, other.module.text) and not _defines(other, name) for other in others for name in names)


def _defines(file: File, name: str) -> bool:
    return any(f.name == name and not is_declaration(f) for f, _ in p.functions_of(file.module))


def _declared(file: File, name: str) -> int:
    return sum(1 for f, _ in p.functions_of(file.module) if f.name == name)


def _may_be_pasted(name: str, file: File) -> bool:
    """Whether a macro may make the name: the file pastes tokens, and one of its words is the beginning of the name."""
    if "##" not in file.module.text:
        return False
    return any(len(word) >= _SHORTEST and name.startswith(word) for word in set(re.findall(r"\w+", file.module.text)))


def _times(name: str, text: str) -> int:
    return len(re.findall(rf"\b{re.escape(name)}\b", text)) if name in text else 0
