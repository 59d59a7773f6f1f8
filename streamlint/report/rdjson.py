"""The diagnostic format of reviewdog; its columns are bytes of UTF-8."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from streamlint.report import View
from streamlint.report.entries import entries, place_of
from streamlint.report.places import byte_column, repository_path
from streamlint.support.addresses import SITE
from streamlint.support.lines import split_lines

SEVERITIES = {"error": "ERROR", "warning": "WARNING", "note": "INFO"}
Lines = Mapping[str, list[str]]


def render(view: View) -> str:
    """One JSON object, also when nothing was found."""
    lines = {file: split_lines(text) for file, text in view.report.texts.items()}
    data = {
        "source": {"name": "streamlint", "url": SITE},
        "severity": "WARNING",
        "diagnostics": [_diagnostic(row, lines, view) for row in entries(view)],
    }
    return json.dumps(data, indent=2) + "\n"


def _diagnostic(row: dict[str, Any], lines: Lines, view: View) -> dict[str, Any]:
    message = f"{row['message']}\nhelp: {row['help']}" if row["help"] else row["message"]
    message += f"\nat {place_of(row)}" if row["cell"] is not None else ""
    found = {
        "message": message,
        "location": _location(row, lines, view),
        "severity": SEVERITIES[row["severity"]],
        "code": {"value": f"{row['name']} [{row['code']}]", "url": row["url"]},
    }
    if row["trail"]:
        found["related_locations"] = [{"message": step["message"], "location": _location(step, lines, view)} for step in row["trail"]]
    if row["fix"] and row["cell"] is None:  # what is suggested is put into the file as it stands
        here = [edit for edit in row["fix"]["edits"] if edit["filename"] == row["filename"]]
        found["suggestions"] = [{"range": _range(edit, lines), "text": edit["content"]} for edit in here]
    return found


def _location(place: dict[str, Any], lines: Lines, view: View) -> dict[str, Any]:
    if place["cell"] is not None:
        rows = [view.cells.file_row(place["filename"], place["cell"], place[end]["row"]) for end in ("location", "end_location")]
        return {"path": repository_path(place["filename"]), "range": {"start": {"line": rows[0]}, "end": {"line": rows[1]}}}
    return {"path": repository_path(place["filename"]), "range": _range(place, lines)}


def _range(place: dict[str, Any], lines: Lines) -> dict[str, Any]:
    rows = lines.get(place["filename"], [])

    def position(point: dict[str, int]) -> dict[str, int]:
        line = rows[point["row"] - 1] if point["row"] <= len(rows) else ""
        return {"line": point["row"], "column": byte_column(line, point["column"]) if line else point["column"]}

    return {"start": position(place["location"]), "end": position(place["end_location"])}
