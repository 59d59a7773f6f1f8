"""``--since``: the lines that changed since a revision, by git."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from streamlint.checks.catalog import UNREADABLE
from streamlint.findings import Finding, Span
from streamlint.support.cells import Cells
from streamlint.support.errors import ConfigError
from streamlint.support.git import GitError, ask
from streamlint.support.paths import display_path
from streamlint.support.repositories import repository

HUNK = re.compile(r"^@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
Rows = list[tuple[int, int]]  # the first of some lines, and how many


class Changes:
    """Changed lines by file, of each repository that is asked about."""

    def __init__(self, revision: str) -> None:
        if revision.startswith("-") or not revision:
            raise ConfigError(f"--since: '{revision}' is no revision")
        self._revision = revision
        self._cells = Cells()
        self._of: dict[Path, dict[str, Rows | None] | None] = {}  # None: the whole file, or all of them, are new
        self.remarks: list[str] = []

    def keep(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings with a changed line at their place, or at a step of their trail.

        Code that cannot be read is reported where any line of its file changed: the cause may stand elsewhere.
        """
        return [found for found in findings if any(map(self.touches, _places(found)))]

    def touches(self, span: Span) -> bool:
        """Whether a line of the place changed."""
        path = Path(os.path.realpath(span.file))
        root = repository(path.parent)
        if root is None:
            raise ConfigError(f"--since: {span.file} is in no git repository")
        if root not in self._of:
            self._of[root] = self._of_another(root)
        changed = self._of[root]
        begin, end = self._file_rows(span)
        rows = changed.get(path.relative_to(root).as_posix(), []) if changed is not None else None
        return rows is None or any(first <= end and begin < first + count for first, count in rows)

    def _file_rows(self, span: Span) -> tuple[int, int]:
        """The rows of a place in the file as git sees it."""
        found = [self._cells.row(span.file, row) for row in (span.row, span.end_row)]
        begin, end = (one.file_row if one is not None else row for one, row in zip(found, (span.row, span.end_row), strict=True))
        return begin, end

    def check(self, folder: Path) -> None:
        """Ask git once, so that a wrong revision fails also where nothing was found."""
        root = repository(Path(os.path.realpath(folder)))
        if root is None:
            raise ConfigError(f"--since: {folder} is in no git repository")
        self._of[root] = self._changed(root)

    def _of_another(self, root: Path) -> dict[str, Rows | None] | None:
        """What changed in a repository inside of the one that was asked about; None where it does not know the revision."""
        try:
            return self._changed(root)
        except GitError as error:
            self.remarks.append(f"all findings in {display_path(str(root))}, a repository of its own, are reported: {error}")
            return None

    def _changed(self, root: Path) -> dict[str, Rows | None]:
        diff = ["diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"]
        diff += ["--find-renames", "--relative", "--src-prefix=a/", "--dst-prefix=b/"]
        try:
            found: dict[str, Rows | None] = dict(_parse(ask(root, *diff, self._revision, "--")))
        except ValueError:
            raise GitError("--since: what git says is no list of changes") from None
        for name in ask(root, "ls-files", "--others", "--exclude-standard", "-z").split("\0"):
            found[name] = None
        return found


def _places(finding: Finding) -> tuple[Span, ...]:
    if finding.code == UNREADABLE:
        return (Span(finding.span.file, 1, 1, sys.maxsize, 1),)
    return (finding.span, *(step.span for step in finding.trail))


def _parse(diff: str) -> dict[str, Rows]:
    """The changed lines by file. Raises ValueError for what is no list of changes."""
    if diff and not diff.startswith(("diff --git ", "* Unmerged path ")):
        raise ValueError
    rows: dict[str, Rows] = {}
    here: Rows = []
    content = 0  # lines of a hunk that are left: they may look like anything
    for line in diff.split("\n"):
        if content:
            content -= not line.startswith("\\")
        elif line.startswith("+++ "):
            here = rows.setdefault(_name(line[4:]), [])
        elif match := HUNK.match(line):
            first, count = int(match[2]), int(match[3] or 1)
            content = int(match[1] or 1) + count
            here.append((first, count))
    return rows


def _name(text: str) -> str:
    text = text.rstrip("\t")
    if text.startswith('"'):  # git quotes what is not plain
        text = text[1:-1].encode("latin-1").decode("unicode_escape").encode("latin-1").decode("utf-8", "surrogateescape")
    return text.removeprefix("b/")
