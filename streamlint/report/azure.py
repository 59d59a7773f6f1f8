"""Issues of Azure Pipelines: logging commands, which the agent shows in the summary of a run and beside the changed lines."""

from __future__ import annotations

from typing import Any

from streamlint.report import View
from streamlint.report.entries import entries, place_of
from streamlint.report.terminal import CONTROL

TYPES = {"error": "error", "warning": "warning", "note": "warning"}  # there are no others
# As Microsoft's azure-pipelines-task-lib writes them, the percent sign first.
DATA = {"%": "%AZP25", "\r": "%0D", "\n": "%0A"}
PROPERTY = {**DATA, "]": "%5D", ";": "%3B"}


def render(view: View) -> str:
    """One logging command a finding."""
    return "".join(_command(row, view) + "\n" for row in entries(view))


def _command(row: dict[str, Any], view: View) -> str:
    at, in_cell = row["location"], row["cell"] is not None
    properties = {
        "type": TYPES[row["severity"]],
        "sourcepath": row["filename"],
        "linenumber": view.cells.file_row(row["filename"], row["cell"], at["row"]),
        "columnnumber": at["column"],
        "code": row["code"],
    }
    if in_cell:  # the columns of the JSON are nobody's
        del properties["columnnumber"]
    text = row["message"] + (f" ({place_of(row)})" if in_cell else "")
    shown = "".join(f"{key}={_escaped(str(value), PROPERTY)};" for key, value in properties.items())
    return f"##vso[task.logissue {shown}]{_escaped(text, DATA)}"


def _escaped(text: str, signs: dict[str, str]) -> str:
    text = CONTROL.sub(lambda found: found[0] if found[0] == "\r" else "\N{REPLACEMENT CHARACTER}", text)
    for sign, code in signs.items():
        text = text.replace(sign, code)
    return text
