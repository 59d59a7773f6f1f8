"""A whole run that is as it was: the same files, settings and build files. Then not even the files that mention CUDA are read.

A file is taken to be as it was if its size, its inode and both its times are. A file that was written less than two seconds before it was
read is hashed anew next time: a second change in the same tick of the clock would leave no trace.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections import namedtuple
from collections.abc import Sequence

from streamlint import TYPE_CHECKING, build_files
from streamlint.cache import records
from streamlint.cache.store import Store, digest
from streamlint.discovery.files import Found
from streamlint.findings import Finding, Fix, Problem, Report
from streamlint.support.reading import Unreadable, read_source, stat_of
from streamlint.support.records import field, record

if TYPE_CHECKING:
    from typing import Any

    from streamlint.triage.fingerprint import Statements

_TICK = 2_000_000_000
_MOST_FRESH = 64  # files that are read once more at the end of a run
Stat = list[int]  # of the last change, of the last change of the inode, the size, the inode


class Screen(namedtuple("Screen", ("content", "flags", "stat"), defaults=(None,))):
    """What a first look at a file's bytes said: their hash, flags, and the facts of the file, or None where these prove nothing."""

    __slots__ = ()
    content: str
    flags: int
    stat: Stat | None


@record(slots=True)
class Runs:
    """The record of the last run over these files with these settings."""

    store: Store
    found: Sequence[Found]
    extra: str = ""  # what else the run is asked
    key: str = ""
    screens: dict[str, Screen] = field(default_factory=dict)  # of this run
    whole: bool = True  # whether each file could be read
    _listed: str = ""
    _old: dict[str, Any] = field(default_factory=dict)
    _known: dict[str, Screen] = field(default_factory=dict)
    _looked: bool = False  # whether there is more to keep of the build files
    _started: int = field(default_factory=time.time_ns)

    def __post_init__(self) -> None:
        digests = {number: digest(repr(settings)) for number, settings in {id(file.settings): file.settings for file in self.found}.items()}
        listed = "\0".join(f"{file.path}\0{file.language}\0{digests[id(file.settings)]}\0{file.given}" for file in self.found)
        self._listed = digest(listed)
        given = sorted(file.path for file in self.found if file.given)
        roots = sorted({file.path.partition("/")[0] for file in self.found})  # runs over parts of a tree are kept apart
        self.key = digest(repr((os.getcwd(), sorted(set(digests.values())), given, roots, self.extra)))
        old = self.store.read("runs", self.key)
        self._old = old if records.is_run(old) and self._is_of_this(old["report"]["findings"]) else {}
        self._known = {path: Screen(*row) for path, row in self._old.get("files", {}).items()}

    def _is_of_this(self, findings: list[Any]) -> bool:
        """Whether findings lie in files of this run: the report of a place shows the text of that place."""
        paths = {file.path for file in self.found}
        return all({row[4][0], *(at[0] for _, at in row[5])} <= paths for row in findings)

    def glance(self, path: str) -> Screen | None:
        """What is known of a file without reading it; None if it may have changed."""
        known = self._known.get(path)
        if known is None or known.stat is None:
            return None
        if known.stat != stat_of(path):
            return None
        self.screens[path] = known
        return known

    @staticmethod
    def is_what(known: Screen, data: bytes) -> bool:
        """Whether a file that was read is what is known of it: it may have changed since it was looked at."""
        return known.content == content_of(data)

    def learn(self, path: str, data: bytes, flags: int, before: Stat | None) -> Screen:
        """Keep the first look at a file that was read after its ``stat``."""
        fresh = before is None or max(before[:2]) > self._started - _TICK
        self.screens[path] = made = Screen(content_of(data), flags, None if fresh else before)
        return made

    def unchanged(self) -> bool:
        """Whether all is as it was."""
        if self._old.get("listed") != self._listed or "report" not in self._old:
            return False
        for file in self.found:
            path = file.path
            known = self._known.get(path)
            if known is None:
                return False
            if known.stat is not None and known.stat == stat_of(path):
                self.screens[path] = known
            elif not self._same_text(path, known):
                return False
        return self._built_alike()

    def _built_alike(self) -> bool:
        """Whether build files say what they said; they are asked only where one of them, or what stands beside it, is not as it was."""
        looked = self._old.get("looked")
        try:
            same = looked is not None and all(map(build_files.looks_the_same, looked, looked.values()))
            for path, word, said in self._old["built"]:
                if (not same or word.startswith("lies_beside")) and build_files.answer(word, path) != said:
                    return False
        except (AttributeError, KeyError, TypeError, ValueError):  # nobody of ours has written that
            return False
        if not same and (seen := build_files.looked_at(self._started - _TICK)) is not None:
            self._old["looked"], self._looked = seen, True
        return True

    def _same_text(self, path: str, known: Screen) -> bool:
        before = stat_of(path)
        try:
            data = read_source(path)
        except Unreadable:
            return False
        return self.learn(path, data, known.flags, before).content == known.content

    def recall(self, report: Report) -> dict[tuple[str, int], str]:
        """Put into a report what the last run found, before comments and baselines; returns the statements that it stands at."""
        old = self._old["report"]
        report.files, report.relevant, report.coverage = old["files"], old["relevant"], records.COVERAGE.to(old["coverage"])
        report.findings = [records.FINDING.to(item) for item in old["findings"]]
        report.problems += [records.PROBLEM.to(item) for item in old["problems"]]
        report.built, report.own_rows = self._old["built"], old["own_rows"]
        if self._looked or any(screen.stat is not None and self._known[path].stat is None for path, screen in self.screens.items()):
            self._write(self._old)
        return {(file, row): text for file, row, text in self._old["statements"]}

    def fixes(self) -> dict[str, Fix | None]:
        """The fixes that were tried by the last run, by what they mend."""
        return {key: records.FIX.to(item) for key, item in self._old.get("fixes", {}).items()}

    def keep(self, report: Report, problems: Sequence[Problem], statements: Statements) -> None:
        """Write what this run found, before comments and baselines; ``problems`` are those of reading and analysing."""
        lost = any(problem.message.startswith(("left out", "internal error")) for problem in problems)
        if lost or not self.whole or not records.holds(report.findings):
            return
        found = {
            "files": report.files,
            "relevant": report.relevant,
            "coverage": report.coverage,
            "findings": [records.FINDING.of(finding) for finding in report.findings],
            "problems": [records.PROBLEM.of(problem) for problem in problems],
            "own_rows": report.own_rows,
        }
        self._check_listing()
        for finding in report.findings:
            statements.at(finding.span.file, finding.span.row)
        for problem in problems:
            if problem.lost:
                statements.at(problem.file, problem.row)
        stand_at = [[file, row, text] for (file, row), text in statements.known.items()]
        record = {"report": found, "built": report.built, "statements": stand_at}
        if (looked := self._looked_at(report.built)) is not None:
            record["looked"] = looked
        self._write(record)

    def _looked_at(self, built: Sequence[Sequence[Any]]) -> dict[str, Any] | None:
        """What the answers of build files rest on, if they are here as they were for who asked; None where that proves nothing."""
        alike = all(build_files.plain_answer(build_files.answer(word, path)) == said for path, word, said in built)
        return build_files.looked_at(self._started - _TICK) if alike else None

    def _check_listing(self) -> None:
        """Files that had just been written when they were read: by now their times may prove something, if they are as they were."""
        fresh = [path for path, screen in self.screens.items() if screen.stat is None]
        for path in fresh if len(fresh) <= _MOST_FRESH else ():
            before = stat_of(path)
            if before is None or max(before[:2]) > time.time_ns() - _TICK:
                continue
            with contextlib.suppress(Unreadable):
                if content_of(read_source(path)) == self.screens[path].content and stat_of(path) == before:
                    self.screens[path] = self.screens[path]._replace(stat=before)

    def keep_fixes(self, fixes: dict[str, Fix | None]) -> None:
        """Add the fixes that were tried."""
        if "report" in self._old:
            self._write({**self._old, "fixes": {key: records.FIX.of(fix) for key, fix in fixes.items()}})

    @staticmethod
    def name_of(finding: Finding) -> str:
        """What a fix is kept by."""
        return digest(repr((finding.code, records.SPAN.of(finding.span), finding.message, finding.trail)))

    def _write(self, record: dict[str, Any]) -> None:
        files = {path: [screen.content, screen.flags, screen.stat] for path, screen in self.screens.items()}
        self._old = {**record, "listed": self._listed, "files": files}
        self.store.write("runs", self.key, self._old)


def content_of(data: bytes) -> str:
    """The hash of a file's bytes."""
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()
