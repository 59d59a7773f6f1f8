"""``streamlint check --watch``: a rerun whenever a source or a configuration file changes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from streamlint.discovery.files import TOOL_FOLDERS
from streamlint.report.terminal import printable
from streamlint.support.errors import ConfigError, PathError, StreamlintError, not_installed
from streamlint.support.reading import language_of

T = TypeVar("T")
CONFIGURATIONS = frozenset({"pyproject.toml", "streamlint.toml", ".streamlint.toml", ".gitignore"})
CLEAR = "\x1b[2J\x1b[3J\x1b[H"


def watch(paths: Sequence[str], run: Callable[[], int]) -> int:
    """Run, then rerun after each change, until the user interrupts."""
    if list(paths) == ["-"]:
        raise ConfigError("--watch cannot watch standard input")
    if missing := [path for path in paths if not os.path.exists(path)]:
        raise PathError(f"{missing[0]}: no such file or folder")
    if odd := [path for path in paths if not _is_text(path)]:
        raise PathError(f"{odd[0]}: --watch cannot watch what has no name in UTF-8")
    try:
        from watchfiles import watch as changes  # start-up: for the option alone
    except ImportError as error:
        raise not_installed("--watch", "watchfiles", error) from None

    folders = [path if path.is_dir() else path.parent for path in map(Path, paths)]
    started = False
    # The first report comes while nothing has changed yet: from then on no change is missed, also during the first run.
    reports = changes(*dict.fromkeys(folders), watch_filter=lambda _, path: matters(path), yield_on_timeout=True, rust_timeout=100)
    for found in _checked_names(reports):
        if found or not started:
            _once(run)
            started = True
    return 0


def _checked_names(reports: Iterator[T]) -> Iterator[T]:
    try:
        yield from reports
    except RuntimeError as error:  # something changed whose name is not UTF-8: it watches no longer
        raise PathError(f"--watch: {error}") from None


def matters(path: str) -> bool:
    """Whether a change of this file can change the findings."""
    file = Path(path)
    if not TOOL_FOLDERS.isdisjoint(file.parts):
        return False
    return file.name in CONFIGURATIONS or language_of(file.name) is not None


def _is_text(path: str) -> bool:
    try:
        os.path.abspath(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _once(run: Callable[[], int]) -> None:
    if sys.stdout.isatty():
        sys.stdout.write(CLEAR)
    try:
        run()
    except StreamlintError as error:  # a file half written, a configuration half edited: it may be mended in a moment
        print(f"streamlint: {printable(str(error))}", file=sys.stderr)
    sys.stdout.flush()
    print("watching for changes ...", file=sys.stderr, flush=True)
