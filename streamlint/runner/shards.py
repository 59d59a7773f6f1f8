"""A run in shares: each asks its own rules of all files, and writes what they gave; joined, they are the run as a whole.

What a share writes is what its rules gave before precedence between rules, suppressions and baselines: these can be decided only once all
is known.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from streamlint import __version__
from streamlint.cache import records
from streamlint.config.options import Options, Source
from streamlint.findings import Report
from streamlint.runner import engine
from streamlint.runner.tasks import codes_of
from streamlint.support import guard
from streamlint.support.errors import ConfigError
from streamlint.support.reading import Unreadable, read_bytes
from streamlint.support.records import field, record, replace

if TYPE_CHECKING:
    from streamlint.cache.store import Store
    from streamlint.discovery.files import Found

FORMAT = 2
MARK = "streamlint-shard"
MOST_BYTES = 1 << 30
Keep = Callable[[Any, Mapping[str, Any]], None]
_KEYS = {"version": str, "shard": int, "shards": int, "settings": str, "tree": str, "arguments": list, "lost": dict, "groups": list}


class Share(Protocol):
    """What stands in for the engine where a run is one of several, or made of several."""

    def begin(self, files: Iterable[Found], sources: Sequence[Source]) -> None: ...

    def analyse(self, sources: list[Source], options: Options, jobs: int, keep: Keep | None, store: Store | None) -> Report: ...


def read_number(text: str) -> tuple[int, int]:
    """``K/N``, from 1 to N."""
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if match is None:
        raise ConfigError(f"--shard: expected K/N, such as 1/4, not '{text}'")
    number, count = int(match[1]), int(match[2])
    if not 1 <= number <= count:
        raise ConfigError(f"--shard {text}: K goes from 1 to N, and N from 1")
    return number, count


def dealt(codes: Iterable[str], number: int, count: int) -> frozenset[str]:
    """The rules of one share. The same wherever it is asked."""
    return frozenset(sorted(codes)[number - 1 :: count])


def tree_of(files: Iterable[Found], sources: Iterable[Source]) -> str:
    """A hash of the files of a run: all paths, and the texts of those that are analysed."""
    texts = {source.path: hashlib.sha256(source.text.encode("utf-8", "surrogatepass")).hexdigest() for source in sources}
    names = sorted({file.path for file in files} | texts.keys())
    return hashlib.sha256(json.dumps([[name, texts.get(name, "")] for name in names]).encode()).hexdigest()


@record(slots=True)
class Shard:
    """One share of a run; ``groups`` is what its rules gave, for the files of each configuration."""

    number: int
    count: int
    tree: str = ""
    groups: list[dict[str, Any]] = field(default_factory=list)

    def begin(self, files: Iterable[Found], sources: Sequence[Source]) -> None:
        self.tree = tree_of(files, sources)

    def analyse(self, sources: list[Source], options: Options, jobs: int, keep: Keep | None, store: Store | None) -> Report:
        mine = replace(options, codes=dealt(codes_of(options), self.number, self.count))
        report, parts = engine.parts_of(sources, mine, jobs, store) if mine.codes else (Report(), [])
        problems = [records.PROBLEM.of(problem) for problem in report.problems]
        self.groups.append({"problems": problems, "parts": [records.PART.of(part) for part in parts]})
        engine.join(report, parts, mine)
        return report

    def report(self, settings: str, arguments: list[str]) -> str:
        """What `streamlint merge` reads."""
        head = {MARK: FORMAT, "version": __version__, "shard": self.number, "shards": self.count, "settings": settings, "tree": self.tree}
        return json.dumps({**head, "arguments": arguments, "lost": dict(guard.lost), "groups": self.groups}, default=str) + "\n"


@record(slots=True)
class Joined:
    """All shares of a run, in place of its analysis."""

    reports: list[dict[str, Any]]
    _number: int = 0

    def begin(self, files: Iterable[Found], sources: Sequence[Source]) -> None:
        if tree_of(files, sources) != self.reports[0]["tree"]:
            raise ConfigError("the files here are not those of the shards; run `streamlint merge` in the same folder of the same tree")

    def analyse(self, sources: list[Source], options: Options, jobs: int, keep: Keep | None, store: Store | None) -> Report:
        report = Report()
        try:
            groups = [each["groups"][self._number] for each in self.reports]
            self._number += 1
            for group in groups:
                values = [records.PROBLEM.to(item) for item in group["problems"]]
                report.problems += [problem for problem in values if problem not in report.problems]
            parts = [records.PART.to(part) for group in groups for part in group["parts"]]
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            raise ConfigError("the reports of the shards do not fit together; run all shards anew") from None
        found = engine.join(report, parts, options)
        if keep is not None:
            keep(None, found)
        return report


def read_reports(files: Sequence[str]) -> list[dict[str, Any]]:
    """The reports of all shards of one run, in their order.

    Raises ConfigError where they are not that.
    """
    reports = {file: _read(file) for file in files}
    by_number: dict[int, str] = {}
    first = files[0]
    for file, report in reports.items():
        for key, what in (
            ("version", "versions of streamlint"),
            ("shards", "numbers of shards"),
            ("settings", "settings"),
            ("tree", "trees"),
        ):
            if report[key] != reports[first][key]:
                values = f" ({reports[first][key]} and {report[key]})" if key in ("version", "shards") else ""
                raise ConfigError(f"{first} and {file} come from different {what}{values}")
        other = by_number.setdefault(report["shard"], file)
        if other != file:
            raise ConfigError(f"shard {report['shard']}/{report['shards']} is there twice: {other} and {file}")
    if len(files) > len(reports):
        twice = next(file for file in files if files.count(file) > 1)
        raise ConfigError(f"shard {reports[twice]['shard']}/{reports[twice]['shards']} is there twice: {twice} and {twice}")
    count = reports[first]["shards"]
    if reports[first]["version"] != __version__:
        raise ConfigError(f"{first} is from streamlint {reports[first]['version']}, this is {__version__}")
    missing = [f"{number}/{count}" for number in range(1, min(count, len(reports) + 10) + 1) if number not in by_number]
    if missing:
        raise ConfigError(f"missing shard{'s' * (len(missing) > 1)} {', '.join(missing)}")
    return [reports[by_number[number]] for number in sorted(by_number)]


def _read(file: str) -> dict[str, Any]:
    try:
        report: Any = json.loads(read_bytes(file, MOST_BYTES))
    except Unreadable as error:
        raise ConfigError(f"{file}: {error}") from None
    except (ValueError, RecursionError):
        report = None
    if not isinstance(report, dict) or report.get(MARK) != FORMAT or not all(type(report.get(k)) is kind for k, kind in _KEYS.items()):
        raise ConfigError(f"{file}: no report of a shard; `streamlint check --shard K/N -o FILE` writes one")
    if not 1 <= report["shard"] <= report["shards"] or not all(isinstance(word, str) for word in report["arguments"]):
        raise ConfigError(f"{file}: no report of a shard; `streamlint check --shard K/N -o FILE` writes one")
    return report
