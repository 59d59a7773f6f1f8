"""SL001: pin the loader, or the allocation; in C++ `malloc` and `free`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from streamlint.findings import Finding, Fix
from streamlint.fix.base import UNSAFE, NotThere, fix
from streamlint.fix.code import Code
from streamlint.fix.pinned_cpp import pinned_pair
from streamlint.fix.python_code import PythonCode

# Functions of torch that take `pin_memory`.
FACTORIES = frozenset("empty zeros ones full rand randn randint randperm arange linspace eye tensor empty_strided".split())
METHODS = frozenset("new_empty new_zeros new_ones new_full new_tensor".split())


def fixes(finding: Finding, code: Code) -> Iterator[Fix]:
    """``pin_memory=True`` where the memory comes from, the nearest place last in the trail first."""
    if not isinstance(code, PythonCode):
        yield from pinned_pair(finding, code)
        return
    for step in reversed(finding.trail):
        if step.span.file != code.file:
            continue
        try:
            call = code.call_at(step.span)
        except NotThere:
            continue
        if what := _pinnable(call, code):
            yield fix(f"pin the {what}", UNSAFE, code.with_keyword(call, "pin_memory", "True"))


def _pinnable(call: ast.Call, code: PythonCode) -> str:
    name = code.source(call.func)
    head, _, last = name.rpartition(".")
    if last.endswith("DataLoader"):
        return "loader's batches"
    try:
        torch = code.called("torch", "torch")
    except NotThere:
        return ""
    return "allocation" if (head == torch and last in FACTORIES) or last in METHODS else ""
