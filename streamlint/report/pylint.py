"""One line a finding as pylint writes it, for tools that read that: Jenkins' warnings, editors, `diff-quality`."""

from __future__ import annotations

from streamlint.report import View
from streamlint.report.entries import entries, place_of
from streamlint.report.terminal import line


def render(view: View) -> str:
    """``path:row: [CODE] message``, also of files that cannot be read; of a notebook the row in its file."""
    lines = []
    for row in entries(view):
        at = view.cells.file_row(row["filename"], row["cell"], row["location"]["row"])
        inside = f" ({place_of(row)})" if row["cell"] is not None else ""
        lines.append(f"{line(row['filename'])}:{at}: [{row['code']}] {line(row['message'])}{inside}\n")
    return "".join(lines)
