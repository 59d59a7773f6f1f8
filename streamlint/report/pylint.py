"""One line a finding as pylint writes it, for tools that read that: Jenkins' warnings, editors, `diff-quality`."""

from __future__ import annotations

from streamlint.report import View
from streamlint.report.entries import entries
from streamlint.report.terminal import line


def render(view: View) -> str:
    """``path:row: [CODE] message``, also of files that cannot be read."""
    return "".join(f"{line(row['filename'])}:{row['location']['row']}: [{row['code']}] {line(row['message'])}\n" for row in entries(view))
