"""The ledger: what readers say of the default findings on released packages. A file a package, in `precision/ledger`; no code is stored.

A finding has one judgment a reader. What all readers agree on is its verdict; where they differ, the judgment of a reader named `settled`
decides, and without one it is unclear. A finding that is reported no longer stays, with the day when it was found to be gone.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path, PurePosixPath
from typing import Any

from shares import ONE_SIDED_90, wilson

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent / "precision" / "ledger"
VERDICTS = ("real", "not real", "unclear")
SETTLED = "settled"
RACES = ("SL005", "SL006", "SL007", "SL008", "SL018", "SL027")
"""Rules whose findings want two readers."""
ENOUGH, BOUND = 12, 0.8
"""From so many judged findings on, the lower bound of a rule's precision must be above this for the rule to be on by default."""
PYTHON = {".py", ".pyx", ".pxd", ".pxi", ".pyi"}


class LedgerError(Exception):
    """The ledger cannot be read; the message says where it is wrong."""


def status(run: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """What a command ends with; 2 on an error, which is printed."""
    try:
        return run(options)
    except (LedgerError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


@dataclass(frozen=True)
class Judgment:
    """What one reader says: the verdict, why, and what a real one costs or breaks."""

    reader: str
    date: str
    verdict: str
    reason: str
    cost: str = ""


@dataclass(frozen=True)
class Entry:
    """A finding, without its code."""

    path: str
    line: int
    rule: str
    fingerprint: str
    judged: tuple[Judgment, ...] = ()
    gone: str = ""

    @property
    def verdict(self) -> str:
        """What the readers come to; nothing, if nobody has read it."""
        said = {judgment.verdict for judgment in self.judged}
        for judgment in self.judged:
            if judgment.reader == SETTLED:
                return judgment.verdict
        return "" if not said else said.pop() if len(said) == 1 else "unclear"

    @property
    def disputed(self) -> bool:
        """Whether readers differ and nobody has settled it."""
        return len({judgment.verdict for judgment in self.judged}) > 1 and all(judgment.reader != SETTLED for judgment in self.judged)

    @property
    def language(self) -> str:
        return "Python" if PurePosixPath(self.path).suffix in PYTHON else "C++"


@dataclass
class Package:
    """A pinned package, what was read of it at the last run, and its findings."""

    name: str
    version: str
    sha256: str
    files: int = 0
    lines: int = 0
    findings: list[Entry] = field(default_factory=list)

    @property
    def standing(self) -> list[Entry]:
        """What is reported today."""
        return [entry for entry in self.findings if not entry.gone]


# Reading and writing


def read(folder: Path = FOLDER) -> list[Package]:
    """All packages of the ledger, by name."""
    return [_package(path) for path in sorted(folder.glob("*.toml"))]


def _package(path: Path) -> Package:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    try:
        package = Package(**{**table, "findings": [_entry(one) for one in table.get("findings", [])]})
    except TypeError as error:
        raise LedgerError(f"{path.name}: {error}") from None
    if wrong := [message for entry in package.findings for message in faults(entry)]:
        raise LedgerError(f"{path.name}: {'; '.join(wrong)}")
    marks = Counter(entry.fingerprint for entry in package.findings)
    if twice := [mark for mark, times in marks.items() if times > 1]:
        raise LedgerError(f"{path.name}: stands there twice: {', '.join(twice)}")
    return package


def _entry(table: Mapping[str, Any]) -> Entry:
    return Entry(**{**table, "judged": tuple(Judgment(**one) for one in table.get("judged", []))})


def faults(entry: Entry) -> Iterator[str]:
    """What is wrong with an entry."""
    place = f"{entry.path}:{entry.line} {entry.rule}"
    if not re.fullmatch(r"SL\d{3}", entry.rule) or not re.fullmatch(r"[0-9a-f]{32}", entry.fingerprint):
        yield f"{place}: no code, or no fingerprint"
    readers = Counter(judgment.reader for judgment in entry.judged)
    if twice := [reader for reader, times in readers.items() if times > 1]:
        yield f"{place}: {', '.join(twice)} judged it twice"
    for judgment in entry.judged:
        if judgment.verdict not in VERDICTS:
            yield f"{place}: {judgment.verdict!r} is no verdict"
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", judgment.date) or not judgment.reader or not judgment.reason:
            yield f"{place}: a judgment needs a reader, a day and a reason"
        if judgment.verdict == "real" and not judgment.cost:
            yield f"{place}: a real one needs what it costs or breaks"


def write(package: Package, folder: Path = FOLDER) -> None:
    """Put a package's file into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{package.name}.toml").write_text("\n".join(_lines(package)) + "\n", encoding="utf-8")


def _lines(package: Package) -> Iterator[str]:
    yield from pairs(package, ("findings",))
    for entry in sorted(package.findings, key=lambda one: (one.path, one.line, one.rule, one.fingerprint)):
        yield from ("", "[[findings]]", *pairs(entry, ("judged",)))
        for judgment in entry.judged:
            yield from ("", "[[findings.judged]]", *pairs(judgment, ()))


def pairs(record: Any, without: Sequence[str]) -> Iterator[str]:
    """The plain fields of a record as TOML; empty ones are left out."""
    for one in fields(record):
        value = getattr(record, one.name)
        if one.name not in without and value != "":
            yield f"{one.name} = {value if isinstance(value, int) else _text(value)}"


def _text(value: str) -> str:
    """A basic TOML string."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(letter if letter >= " " and letter != "\x7f" else f"\\u{ord(letter):04x}" for letter in escaped) + '"'


# Counting


@dataclass(frozen=True)
class Tally:
    """How many findings were judged, and how."""

    real: int = 0
    false: int = 0
    unclear: int = 0
    unread: int = 0

    @property
    def judged(self) -> int:
        return self.real + self.false + self.unclear


def tally(entries: Iterable[Entry]) -> Tally:
    """Verdicts, counted."""
    count = Counter(entry.verdict for entry in entries)
    return Tally(count["real"], count["not real"], count["unclear"], count[""])


def lower(count: Tally) -> float:
    """The one-sided lower 90 % bound of the precision. What is unclear counts as wrong."""
    return wilson(count.real, count.judged, ONE_SIDED_90)[0]


def may_be_on(count: Tally) -> bool:
    """Whether a rule with this record may be on by default; with few findings, as the catalogue says while at most one was wrong."""
    if count.judged >= ENOUGH:
        return lower(count) > BOUND
    return count.false + count.unclear <= 1
