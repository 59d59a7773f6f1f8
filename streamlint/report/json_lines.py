"""One JSON object a line, a line a finding."""

from __future__ import annotations

import json

from streamlint.report import View
from streamlint.report.entries import entries


def render(view: View) -> str:
    """Lines of JSON; nothing if there is no finding."""
    return "".join(json.dumps(entry, default=str) + "\n" for entry in entries(view))
