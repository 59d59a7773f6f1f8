"""Names of streams, from the trail of a finding."""

from __future__ import annotations

import ast

from streamlint.findings import Finding, Span
from streamlint.fix.base import NotThere
from streamlint.fix.python_code import PythonCode


def streams_of(finding: Finding, code: PythonCode, user: ast.AST, lead: str) -> list[str]:
    """The names by which a place knows the streams that the trail's steps with these first words made."""
    names = []
    for step in finding.trail:
        if not step.message.startswith(lead) or step.span.file != code.file:
            continue
        try:
            call = code.call_at(step.span)
            name = code.target_of(call)
        except NotThere:
            continue
        if code.sees(name, call, user):
            names.append(name)
    return names


def entered_at(span: Span, code: PythonCode, user: ast.AST) -> list[str]:
    """The stream of the ``with`` around a place, if the user of the name knows it by the same one."""
    try:
        statement = code.statement_at(span)
    except NotThere:
        return []
    entered = code.stream_entered(statement)
    if entered is None:
        return []
    name, block = entered
    same = code.function_of(block) is code.function_of(user)
    return [name] if same or (name.startswith("self.") and code.class_of(block) is code.class_of(user)) else []
