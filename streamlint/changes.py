"""``--since``: the lines that changed since a revision, as git tells."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from streamlint.errors import ConfigError
from streamlint.findings import Finding, Span
from streamlint.fingerprint import repository

HUNK = re.compile(r"^@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
# A repository's own configuration may name programs for git to start. What is linted may be anybody's: none of them is started.
HARMLESS = (
    *("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.attributesFile=/dev/null", "core.excludesFile=/dev/null"),
    *("core.untrackedCache=false", "diff.external=", "protocol.allow=never", "diff.submodule=short"),
)
GIT_S = 60.0


class Changes:
    """Changed lines by file, of each repository that is asked about."""

    def __init__(self, revision: str) -> None:
        if revision.startswith("-") or not revision:
            raise ConfigError(f"--since: '{revision}' is no revision")
        self._revision = revision
        self._of: dict[Path, dict[str, set[int] | None]] = {}  # None: the whole file is new

    def keep(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings with a changed line at their place, or at a step of their trail."""
        return [found for found in findings if any(map(self.touches, (found.span, *(step.span for step in found.trail))))]

    def touches(self, span: Span) -> bool:
        """Whether a line of the place changed."""
        path = Path(os.path.realpath(span.file))
        root = repository(path.parent)
        if root is None:
            raise ConfigError(f"--since: {span.file} is in no git repository")
        if root not in self._of:
            self._of[root] = self._changed(root)
        rows = self._of[root].get(path.relative_to(root).as_posix(), set())
        return rows is None or not rows.isdisjoint(range(span.row, span.end_row + 1))

    def check(self, folder: Path) -> None:
        """Ask git once, so that a wrong revision fails also where nothing was found."""
        root = repository(Path(os.path.realpath(folder)))
        if root is None:
            raise ConfigError(f"--since: {folder} is in no git repository")
        self._of[root] = self._changed(root)

    def _changed(self, root: Path) -> dict[str, set[int] | None]:
        diff = ["diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"]
        diff += ["--find-renames", "--relative", "--src-prefix=a/", "--dst-prefix=b/"]
        found: dict[str, set[int] | None] = dict(_parse(_git(root, *diff, self._revision, "--")))
        for name in _git(root, "ls-files", "--others", "--exclude-standard", "-z").split("\0"):
            found[name] = None
        return found


def _parse(diff: str) -> dict[str, set[int]]:
    rows: dict[str, set[int]] = {}
    here: set[int] = set()
    content = 0  # lines of a hunk that are left: they may look like anything
    for line in diff.split("\n"):
        if content:
            content -= not line.startswith("\\")
        elif line.startswith("+++ "):
            here = rows.setdefault(_name(line[4:]), set())
        elif match := HUNK.match(line):
            first, count = int(match[2]), int(match[3] or 1)
            content = int(match[1] or 1) + count
            here |= set(range(first, first + count))
    return rows


def _name(text: str) -> str:
    text = text.rstrip("\t")
    if text.startswith('"'):  # git quotes what is not plain
        text = text[1:-1].encode("latin-1").decode("unicode_escape").encode("latin-1").decode("utf-8", "surrogateescape")
    return text.removeprefix("b/")


def _git(root: Path, *words: str) -> str:
    settings = [*HARMLESS, *(f"{key}=" for key in _filters(root))]
    return _output(root, *(word for setting in settings for word in ("-c", setting)), *words)


def _filters(root: Path) -> list[str]:
    """The keys that name the programs through which git would pass files on their way to a comparison."""
    try:
        found = _output(root, "config", "--null", "--name-only", "--get-regexp", r"^filter\..*\.(clean|smudge|process|required)$")
    except ConfigError:  # there are none
        return []
    return sorted({key for key in found.split("\0") if key and "=" not in key and "\n" not in key})


def _output(root: Path, *words: str) -> str:
    environment = {**os.environ, "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    command = ["git", "--no-pager", "-C", str(root), *words]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True, env=environment, timeout=GIT_S)
    except OSError:
        raise ConfigError("--since: git is not installed") from None
    except subprocess.TimeoutExpired:
        raise ConfigError(f"--since: git gave no answer within {GIT_S:.0f} s") from None
    except subprocess.CalledProcessError as error:
        reason = error.stderr.decode(errors="replace").strip().splitlines()
        raise ConfigError(f"--since: {reason[0] if reason else 'git failed'}") from None
    return done.stdout.decode("utf-8", "surrogateescape")
