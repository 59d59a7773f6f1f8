"""Markdown: for a job's summary, or a comment in a review."""

from __future__ import annotations

from typing import Any

from streamlint.report import View
from streamlint.report.entries import entries, place_of
from streamlint.report.terminal import CONTROL


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
    place = _place(row)
    rule = f"[{row['name']}]({row['url']}) {row['code']}"
    parts = [f"**{row['severity']}**: {cell(row['message'])}"]
    parts += [f"{_place(step)} {cell(step['message'])}" for step in row["trail"]]
    parts += [f"*help:* {cell(row['help'])}"] if row["help"] else []
    return f"| {place} | {rule} | {'<br>'.join(parts)} |"


def _place(row: dict[str, Any]) -> str:
    return code(f"{row['filename']}:{place_of(row, column=False)}")


def code(text: str) -> str:
    """Text in a cell as code."""
    text = CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
    for sign, shown in (("\n", " "), ("`", "\N{MODIFIER LETTER GRAVE ACCENT}"), ("|", "\\|")):
        text = text.replace(sign, shown)
    return f"`{text}`"


def cell(text: str) -> str:
    """Text in a cell: nothing in it is markup, a link, or a call of somebody's name."""
    text = CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
    for sign, shown in (("\\", "\\\\"), ("|", "\\|"), ("<", "&lt;"), ("\n", " "), ("](", "]\\("), ("@", "&#64;")):
        text = text.replace(sign, shown)
    return text
