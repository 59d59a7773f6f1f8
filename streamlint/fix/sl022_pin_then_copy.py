"""SL022: copy the pageable tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from streamlint.findings import Finding, Fix
from streamlint.fix.base import UNSAFE, NotThere, fix
from streamlint.fix.code import Code
from streamlint.fix.python_code import PythonCode


def fixes(finding: Finding, code: Code) -> Iterator[Fix]:
    """``.pin_memory()`` left out, and ``non_blocking=True`` with it where that would then say what is not so."""
    if not isinstance(code, PythonCode):
        return
    copy = code.call_at(finding.span)
    for step in finding.trail:
        if step.message != "pinned here" or step.span.file != code.file:
            continue
        pinned = code.call_at(step.span)
        if not isinstance(pinned.func, ast.Attribute) or pinned.func.attr != "pin_memory" or pinned.args or pinned.keywords:
            raise NotThere
        if pinned.lineno != pinned.end_lineno:
            raise NotThere  # a chain over several lines
        kept = code.replaced(pinned, code.receiver(pinned.func))
        yield fix("copy the pageable tensor", UNSAFE, kept)
        yield fix("copy the pageable tensor, and wait for it", UNSAFE, kept, code.without_keyword(copy, "non_blocking"))
