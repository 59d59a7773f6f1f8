"""Markdown: for a job's summary, or a comment in a review."""

from __future__ import annotations

from typing import Any

from streamlint.report import View
from streamlint.report.entries import entries


def render(view: View) -> str:
    """A heading, and a row a finding; what it was found from stands below its message."""
    rows = entries(view)
    noun = "finding" if len(rows) == 1 else "findings"
    head = f"## streamlint: {len(rows)} {noun}\n"
    if not rows:
        return head
    table = ["", "| place | rule | finding |", "|---|---|---|", *map(_row, rows)]
    return head + "\n".join(table) + "\n"


def _row(row: dict[str, Any]) -> str:
    place = f"`{row['filename']}:{row['location']['row']}`"
    rule = f"[{row['name']}]({row['url']}) {row['code']}"
    parts = [f"**{row['severity']}**: {_cell(row['message'])}"]
    parts += [f"`{step['filename']}:{step['location']['row']}` {_cell(step['message'])}" for step in row["trail"]]
    parts += [f"*help:* {_cell(row['help'])}"] if row["help"] else []
    return f"| {place} | {rule} | {'<br>'.join(parts)} |"


def _cell(text: str) -> str:
    for sign, shown in (("\\", "\\\\"), ("|", "\\|"), ("<", "&lt;"), ("\n", " ")):
        text = text.replace(sign, shown)
    return text
