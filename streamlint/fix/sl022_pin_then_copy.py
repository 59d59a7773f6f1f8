"""SL022: copy the pageable tensor."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from streamlint.findings import Finding, Fix
from streamlint.fix.code import UNSAFE, Code, NotThere, fix
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
        if not isinstance(pinned.func, cst.Attribute) or pinned.func.attr.value != "pin_memory" or pinned.args:
            raise NotThere
        if code.range(pinned).start.line != code.range(pinned).end.line:
            raise NotThere  # a chain over several lines
        kept = code.replaced(pinned, code.source(pinned.func.value))
        yield fix("copy the pageable tensor", UNSAFE, kept)
        yield fix("copy the pageable tensor, and wait for it", UNSAFE, kept, code.without_keyword(copy, "non_blocking"))
