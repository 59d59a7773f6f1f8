"""One line a finding as pylint writes it, for tools that read that: Jenkins' warnings, editors, `diff-quality`."""

from __future__ import annotations

from typing import Any

from streamlint.report import View
from streamlint.report.entries import entries, place_of
from streamlint.report.terminal import line


def render(view: View) -> str:
    """``path:row: [CODE] message``, also of files that cannot be read. Of a notebook the row in the file, and behind it the cell."""
    return "".join(_line(row, view) for row in entries(view))


def _line(row: dict[str, Any], view: View) -> str:
    at = view.cells.file_row(row["filename"], row["cell"], row["location"]["row"])
    cell = f" ({place_of(row)})" if row["cell"] is not None else ""
    return f"{line(row['filename'])}:{at}: [{row['code']}] {line(row['message'])}{cell}\n"
