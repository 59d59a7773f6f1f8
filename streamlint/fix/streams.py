"""Names of streams, from the trail of a finding."""

from __future__ import annotations

import libcst as cst

from streamlint.findings import Finding
from streamlint.fix.code import NotThere
from streamlint.fix.python_code import PythonCode


def streams_of(finding: Finding, code: PythonCode, user: cst.CSTNode, lead: str) -> list[str]:
    """The names by which a place knows the streams that the trail's steps with these first words made."""
    names = []
    for step in finding.trail:
        if not step.message.startswith(lead) or step.span.file != code.file:
            continue
        try:
            made = code.call_at(step.span)
            name = code.target_of(made)
        except NotThere:
            continue
        if code.sees(name, made, user):
            names.append(name)
    return names
