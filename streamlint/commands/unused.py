"""Rows of the user's own that matched nothing in a run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from streamlint.checks.catalog import UNREADABLE
from streamlint.config.settings import line_in
from streamlint.findings import Report
from streamlint.models.listing import Entry, of_user
from streamlint.support.paths import display_path

MOST = 5  # rows that a warning names


def unmatched(report: Report) -> list[Entry]:
    """The rows that no code of the run is about."""
    used = set(report.own_rows)
    return [entry for entry in of_user(report.models, place_of) if entry.key not in used]


def place_of(source: str, kind: str, number: int) -> tuple[str, int | None]:
    """The file and the line of a row of the configuration."""
    file = file_of(source)
    if not os.path.isfile(file):
        return file or source, None  # of the command line
    table = int(source[len(file) :].removeprefix(": models[").rstrip("]"))
    return display_path(file), line_in(Path(file), ("models", table, kind, number))


def file_of(source: str) -> str:
    """The configuration file that a table of rows is from."""
    return source.rpartition(": models[")[0]


def warning(report: Report, paths: Sequence[str]) -> str | None:
    """What `check` says of rows that matched nothing; None where the run cannot know.

    Only rows of a configuration are judged whose folder lies in a folder that was given: other runs do not see the whole project.
    """
    if not report.models or any(problem.lost for problem in report.problems) or any(f.code == UNREADABLE for f in report.findings):
        return None
    folders = [os.path.abspath(path) for path in paths if os.path.isdir(path)]
    used = set(report.own_rows)
    judged = [(source, table) for source, table in report.models if _lies_in(file_of(source), folders)]
    unused = [entry for entry in of_user(judged, lambda source, kind, number: (source, None)) if entry.key not in used]
    if not unused:
        return None
    named = [f"{entry.names[0]} ({'{}:{}'.format(*place_of(entry.source, entry.kind, entry.number))})" for entry in unused[:MOST]]
    more = f" and {len(unused) - MOST} more" if len(unused) > MOST else ""
    count = "1 row of your models matches" if len(unused) == 1 else f"{len(unused)} rows of your models match"
    return f"{count} nothing in this project: {', '.join(named)}{more}; see 'streamlint models --unused'"


def _lies_in(file: str, folders: Iterable[str]) -> bool:
    return bool(file) and any(Path(file).parent.is_relative_to(folder) for folder in folders)
