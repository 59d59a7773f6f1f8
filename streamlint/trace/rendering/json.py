"""One JSON object; `docs/schemas/trace.json` describes it."""

from __future__ import annotations

import json

from streamlint.trace.rendering.data import document
from streamlint.trace.rendering.view import View


def render(view: View) -> str:
    """Findings with standings and costs, and stalls."""
    return json.dumps(document(view), indent=2, ensure_ascii=False, default=str) + "\n"
