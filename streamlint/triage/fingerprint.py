"""The identity of a finding that outlives moved lines: for baselines and code scanning."""

from __future__ import annotations

import collections
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from streamlint import TYPE_CHECKING
from streamlint.findings import Finding
from streamlint.support.lazy import lazy
from streamlint.support.reading import language_of
from streamlint.support.records import replace
from streamlint.support.repositories import repository

if TYPE_CHECKING:
    from streamlint.triage import layout
    from streamlint.triage.layout import Layout
else:
    (layout,) = lazy("streamlint.triage", "layout")


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
                self._layouts[file] = layout.layout(self._texts.get(file, ""), language_of(file) or "python")
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
