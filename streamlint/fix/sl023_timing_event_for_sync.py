"""SL023: an event without a clock."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.findings import Finding, Fix
from streamlint.fix.base import SAFE, NotThere, fix
from streamlint.fix.code import Code
from streamlint.fix.cpp_code import CppCode
from streamlint.fix.python_tree import keyword

MESSAGE = "make the event without timing"


def fixes(finding: Finding, code: Code) -> Iterator[Fix]:
    """Python: leave ``enable_timing`` out, or disable timing (CuPy). C++: ``cudaEventCreateWithFlags``."""
    if isinstance(code, CppCode):
        call = code.call_at(finding.span, "cudaEventCreate")
        if len(code.arguments(call)) == 1:
            renamed = code.replaced(call.children[0], "cudaEventCreateWithFlags")
            yield fix(MESSAGE, SAFE, renamed, code.appended(call, "cudaEventDisableTiming"))
        return
    made = code.call_at(finding.span)
    if finding.facts.get("api") == "cupy":
        yield fix(MESSAGE, SAFE, code.with_keyword(made, "disable_timing", "True"))
    elif keyword(made, "enable_timing") is not None:
        yield fix(MESSAGE, SAFE, code.without_keyword(made, "enable_timing"))
    else:
        raise NotThere
