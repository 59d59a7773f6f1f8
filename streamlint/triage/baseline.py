"""Baselines: findings that were there before, known by their content, so that only new ones are reported."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from streamlint.findings import Finding
from streamlint.support.errors import ConfigError
from streamlint.support.reading import Unreadable, read_bytes
from streamlint.support.records import field, record
from streamlint.support.repositories import repository
from streamlint.support.writing import write_output
from streamlint.triage.fingerprint import stable_path

VERSION = 1
MOST_BYTES = 1 << 26
KEYS = ("code", "filename", "fingerprint", "message")


@record(slots=True)
class Baseline:
    """One file's entries, and which of them match a finding."""

    path: Path
    entries: list[dict[str, str]]
    matched: set[str] = field(default_factory=set)
    known: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.known = frozenset(entry["fingerprint"] for entry in self.entries)

    def hides(self, finding: Finding) -> bool:
        """Whether the finding was there before."""
        if finding.fingerprint not in self.known:
            return False
        self.matched.add(finding.fingerprint)
        return True

    def stale(self, files: Iterable[str], codes: frozenset[str]) -> list[dict[str, str]]:
        """Entries that nothing matched, though their file was linted (or is gone) and their rule ran."""
        linted, root = {stable_path(file) for file in files}, _root_of(self.path)
        gone = {entry["filename"] for entry in self.entries if not os.path.exists(root / entry["filename"])}
        left = [entry for entry in self.entries if entry["fingerprint"] not in self.matched and entry["code"] in codes]
        return [entry for entry in left if entry["filename"] in linted | gone]


def load(path: Path) -> Baseline:
    """The baseline of a file.

    Raises ConfigError if it is missing, or is none.
    """
    try:
        data: Any = json.loads(read_bytes(path, MOST_BYTES).decode("utf-8"))
    except Unreadable as error:
        raise ConfigError(f"baseline {path}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"baseline {path}: {error}") from None
    if not isinstance(data, dict) or data.get("streamlint-baseline") != VERSION:
        raise ConfigError(f"baseline {path}: no baseline of version {VERSION}; write one with --write-baseline")
    entries = data.get("findings")
    if not isinstance(entries, list) or not all(map(_is_entry, entries)):
        raise ConfigError(f"baseline {path}: each finding needs {', '.join(KEYS)}, which are texts")
    return Baseline(path, entries)


def write(path: Path, findings: Sequence[Finding], files: Iterable[str]) -> int:
    """Write the findings; entries of files that this run did not look at stay. Returns the number of entries.

    Raises ConfigError if the file cannot be written.
    """
    linted, root = {stable_path(file) for file in files}, _root_of(path)
    others = [entry for entry in load(path).entries if entry["filename"] not in linted] if path.exists() else []
    entries = [entry for entry in others if os.path.exists(root / entry["filename"])]
    entries += [_entry(finding) for finding in findings]
    entries.sort(key=lambda entry: (entry["filename"], entry["code"], entry["fingerprint"]))
    rows = ",\n".join(f"    {json.dumps(entry)}" for entry in entries)
    body = f"[\n{rows}\n  ]" if rows else "[]"
    text = f'{{\n  "streamlint-baseline": {VERSION},\n  "findings": {body}\n}}\n'
    try:
        write_output(path, text)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from None
    return len(entries)


def _entry(finding: Finding) -> dict[str, str]:
    values = (finding.code, stable_path(finding.span.file), finding.fingerprint, finding.message)
    return dict(zip(KEYS, values, strict=True))


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict) and all(isinstance(entry.get(key), str) for key in KEYS)


def _root_of(path: Path) -> Path:
    return repository(path.absolute().parent) or Path.cwd()
