"""The code quality report of GitLab: a JSON list whose fingerprints are unique."""

from __future__ import annotations

import json
from typing import Any

from streamlint.report import View
from streamlint.report.entries import entries
from streamlint.report.places import repository_path

SEVERITIES = {"error": "critical", "warning": "major", "note": "minor"}


def render(view: View) -> str:
    """A JSON array, also when it is empty."""
    return json.dumps([_issue(row) for row in entries(view)], indent=2) + "\n"


def _issue(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "description": f"{row['name']} [{row['code']}] {row['message']}",
        "check_name": row["name"],
        "fingerprint": row["fingerprint"],
        "severity": SEVERITIES[row["severity"]],
        "location": {
            "path": repository_path(row["filename"]),
            "lines": {"begin": row["location"]["row"], "end": row["end_location"]["row"]},
        },
    }
