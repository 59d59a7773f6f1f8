"""One JSON list of findings."""

from __future__ import annotations

import json

from streamlint.report import View
from streamlint.report.entries import entries


def render(view: View) -> str:
    """A JSON array, also when it is empty."""
    return json.dumps(entries(view), indent=2, default=str) + "\n"
