"""SL039: tell the allocator which stream uses the storage."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.findings import Finding, Fix
from streamlint.fix.code import Code
from streamlint.fix.python_code import PythonCode
from streamlint.fix.recorded_uses import recorded


def fixes(finding: Finding, code: Code) -> Iterator[Fix]:
    """``record_stream`` of the other stream, behind the use there."""
    allocated = [step.span for step in finding.trail if step.message == "allocated here" and step.span.file == finding.span.file]
    if isinstance(code, PythonCode) and allocated:
        yield from recorded(finding, code, allocated[0])
