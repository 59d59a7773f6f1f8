"""The identity of a finding that outlives moved lines: for baselines and code scanning."""

from __future__ import annotations

import collections
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from streamlint import TYPE_CHECKING
from streamlint.findings import Finding
from streamlint.support.reading import Unreadable, language_of, nearest, read_bytes
from streamlint.support.records import replace

if TYPE_CHECKING:
    from streamlint.triage.layout import Layout


class Statements:
    """The statements that findings stand at, without comments and indentation, by file and row; files are looked through once."""

    def __init__(self, texts: Mapping[str, str], known: Mapping[tuple[str, int], str] | None = None) -> None:
        self.known = dict(known or {})
        self._texts = texts
        self._layouts: dict[str, Layout] = {}

    def at(self, file: str, row: int) -> str:
        """The statement at a place."""
        if (file, row) not in self.known:
            if file not in self._layouts:
                from streamlint.triage.layout import layout  # start-up: a run without findings

                self._layouts[file] = layout(self._texts.get(file, ""), language_of(file) or "python")
            self.known[file, row] = self._layouts[file].statement_text(row)
        return self.known[file, row]


def fingerprints(findings: Sequence[Finding], statements: Statements) -> list[str]:
    """A fingerprint for each finding, in their order.

    It is made of code, path, qualified name, the statement's text without comments and indentation, and an ordinal among equals.
    """
    seen: collections.Counter[tuple[str, ...]] = collections.Counter()
    result = []
    for finding in findings:
        file = finding.span.file
        key = (finding.code, stable_path(file), finding.qualname, statements.at(file, finding.span.row))
        result.append(_digest(key, seen[key]))
        seen[key] += 1
    return result


def with_fingerprints(findings: Sequence[Finding], statements: Statements) -> list[Finding]:
    """The findings, each with its fingerprint; one that has it keeps it."""
    if all(finding.fingerprint for finding in findings):
        return list(findings)
    marks = fingerprints(findings, statements)
    return [f if f.fingerprint else replace(f, fingerprint=mark) for f, mark in zip(findings, marks, strict=True)]


def _digest(key: tuple[str, ...], ordinal: int) -> str:
    import hashlib  # start-up: a run without findings

    return hashlib.sha256("\0".join((*key, str(ordinal))).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def stable_path(path: str) -> str:
    """The path from the root of its repository, so that the folder a run starts in does not count; without a repository, as shown."""
    absolute = Path(os.path.abspath(path))
    root = repository(absolute.parent)
    return absolute.relative_to(root).as_posix() if root else path


def repository(folder: Path) -> Path | None:
    """The root of the repository that holds an absolute folder."""
    root = _repository(str(folder))
    return Path(root) if root is not None else None


def _repository(folder: str) -> str | None:
    return nearest(folder, _roots, lambda each: each if os.path.exists(os.path.join(each, ".git")) else None)


def common_folder(git: str) -> str:
    """What a ``.git`` stands for: itself, or, where it is the file of a worktree or a submodule, the folder that its repository shares."""
    try:
        said = read_bytes(git, _MOST_BYTES).removeprefix(b"gitdir:").strip()
        folder = os.path.join(os.path.dirname(git), os.fsdecode(said))
    except Unreadable:
        return git
    try:
        shared = os.fsdecode(read_bytes(os.path.join(folder, "commondir"), _MOST_BYTES).strip())
    except Unreadable:
        return folder
    return os.path.join(folder, shared)


def forget_repositories() -> None:
    """Look for them again."""
    _roots.clear()


_roots: dict[str, str | None] = {}
_MOST_BYTES = 1 << 16  # of a file that names a folder
