"""SL007: tell the allocator which stream uses the tensor."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.findings import Finding, Fix
from streamlint.fix.code import Code
from streamlint.fix.python_code import PythonCode
from streamlint.fix.recorded_uses import recorded


def fixes(finding: Finding, code: Code) -> Iterator[Fix]:
    """``record_stream`` of the other stream, behind the use there."""
    if isinstance(code, PythonCode):
        yield from recorded(finding, code, finding.span)
