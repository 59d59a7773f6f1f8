"""``--diff``: the changes of fixes as a patch."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator

from streamlint import TYPE_CHECKING
from streamlint.commands import fixing
from streamlint.report.terminal import Paint, line, plain
from streamlint.support.lazy import lazy
from streamlint.support.reading import is_notebook
from streamlint.support.unified import unified

if TYPE_CHECKING:
    from streamlint.support import notebooks
else:
    (notebooks,) = lazy("streamlint.support", "notebooks")


def print_diff(done: fixing.Fixed, paint: Paint) -> None:
    """What would change. A patch keeps each byte: in a job of GitHub, commands are stopped for as long."""
    if stop := _stops_commands(done):
        sys.stdout.write(f"::stop-commands::{stop}\n")
    _print_diff(done, paint)
    if stop:
        sys.stdout.write(f"::{stop}::\n")


def _stops_commands(done: fixing.Fixed) -> str:
    """The word that ends a stretch without commands, which none of its texts holds; empty where nobody listens to commands."""
    if os.environ.get("GITHUB_ACTIONS") != "true" or not done.texts:
        return ""
    return hashlib.sha256(repr(sorted(done.texts.items())).encode("utf-8", "backslashreplace")).hexdigest()


def _changes(done: fixing.Fixed) -> Iterator[tuple[str, str, str]]:
    """Files that change, of a notebook its cells: the name, and the text before and after."""
    for file, (old, new) in sorted(done.texts.items()):
        if not is_notebook(file):
            yield file, old, new
            continue
        for number, before, after in notebooks.changed_cells(done.read[file], new):
            yield f"{file}:cell {number}", before, after


def _print_diff(done: fixing.Fixed, paint: Paint) -> None:
    styles = {"+": "help", "-": "error", "@": "label"}
    for name, old, new in _changes(done):
        for row in unified(old.splitlines(keepends=True), new.splitlines(keepends=True), line(name), line(name)):
            body = plain(row.rstrip("\n")) if sys.stdout.isatty() else row.rstrip("\n")  # a patch keeps each byte
            mark = "" if row.endswith("\n") else "\n\\ No newline at end of file"
            sys.stdout.write((paint(body, styles[body[0]]) if body[:1] in styles else body) + mark + "\n")
        sys.stdout.write("\n")
