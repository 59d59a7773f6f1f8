"""Annotations of GitHub Actions: workflow commands, errors first, because GitHub shows ten a step."""

from __future__ import annotations

from typing import Any

from streamlint.report import View
from streamlint.report.entries import entries, place_of
from streamlint.report.terminal import CONTROL

COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def render(view: View) -> str:
    """One workflow command a finding, the trail in its message."""
    rank = list(COMMANDS)
    rows = sorted(entries(view), key=lambda entry: rank.index(entry["severity"]))
    return "".join(_command(entry, view) + "\n" for entry in rows)


def _command(entry: dict[str, Any], view: View) -> str:
    start, end = entry["location"], entry["end_location"]
    first, last = (view.cells.file_row(entry["filename"], entry["cell"], place["row"]) for place in (start, end))
    properties = {"title": f"streamlint: {entry['name']} ({entry['code']})", "file": entry["filename"], "line": first}
    if entry["cell"] is not None:  # the columns of the JSON are nobody's
        properties |= {"endLine": last}
    elif last == first:  # GitHub takes columns on one line only
        properties |= {"col": start["column"], "endLine": last, "endColumn": end["column"]}
    else:
        properties |= {"endLine": last}
    lines = [f"{entry['filename']}:{place_of(entry)}: {entry['name']} [{entry['code']}] {entry['message']}"]
    lines += [f"  {step['filename']}:{place_of(step, column=False)}: {step['message']}" for step in entry["trail"]]
    lines += [f"help: {entry['help']}"] if entry["help"] else []
    shown = ",".join(f"{key}={_escape(str(value), ':,')}" for key, value in properties.items())
    return f"::{COMMANDS[entry['severity']]} {shown}::{_escape(chr(10).join(lines))}"


def _escape(text: str, more: str = "") -> str:
    text = CONTROL.sub(lambda found: found[0] if found[0] == "\r" else "\N{REPLACEMENT CHARACTER}", text)
    for sign in "%\r\n" + more:
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text
