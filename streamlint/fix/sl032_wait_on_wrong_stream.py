"""SL032: write the wait of a stream for itself outside of the stream's scope."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.findings import Finding, Fix
from streamlint.fix.base import SAFE, NotThere, fix
from streamlint.fix.code import Code
from streamlint.fix.cpp_code import CppCode
from streamlint.fix.python_tree import WITHS


def fixes(finding: Finding, code: Code) -> Iterator[Fix]:
    """The first statement of a scope goes before it, the last one behind it."""
    if isinstance(code, CppCode) or finding.facts.get("why") != "itself":
        return
    wait = code.statement_at(finding.span)
    block, scope = code.block_of(wait), code.parent(wait)
    row, _, end_row, end_column = code.at(wait)
    line = code.lines[row - 1]
    is_alone = row == end_row and len(block) > 1 and len(code.on_line(wait)) == 1 and line[end_column - 1 :].lstrip()[:1] in ("", "#")
    if not isinstance(scope, WITHS) or not is_alone:
        raise NotThere
    first = code.at(scope)[0]
    moved = f"{code.indent(first)}{line.strip()}"
    if wait is block[0]:
        header = code.lines[first - 1 : row - 1]
        yield fix("wait before the scope", SAFE, code.edit(first, 1, row, len(line) + 1, code.newline.join([moved, *header])))
    elif wait is block[-1]:
        yield fix("wait behind the scope", SAFE, code.edit(row, 1, row, len(line) + 1, moved))
