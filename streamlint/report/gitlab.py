"""The code quality report of GitLab: a JSON list whose fingerprints are unique."""

from __future__ import annotations

import json
from typing import Any

from streamlint.report import View
from streamlint.report.entries import entries, place_of
from streamlint.report.places import repository_path

SEVERITIES = {"error": "critical", "warning": "major", "note": "minor"}


def render(view: View) -> str:
    """A JSON array, also when it is empty."""
    return json.dumps([_issue(row, view) for row in entries(view)], indent=2) + "\n"


def _issue(row: dict[str, Any], view: View) -> dict[str, Any]:
    first, last = (view.cells.file_row(row["filename"], row["cell"], row[place]["row"]) for place in ("location", "end_location"))
    where = f" ({place_of(row)})" if row["cell"] is not None else ""
    return {
        "description": f"{row['name']} [{row['code']}] {row['message']}{where}",
        "check_name": row["name"],
        "fingerprint": row["fingerprint"],
        "severity": SEVERITIES[row["severity"]],
        "location": {
            "path": repository_path(row["filename"]),
            "lines": {"begin": first, "end": last},
        },
    }
