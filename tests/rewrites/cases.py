"""What a rewrite changes: findings before and after, by the labels of their lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from rename import File
from rewrites import branches, extraction, padding, splitting
from rewrites.labels import Label, labelled, labels_of

from streamlint.config.options import Options, Source
from streamlint.findings import Finding
from streamlint.runner.engine import analyse

Rewrite = Callable[[list[File], list[Label]], "list[File] | None"]
REWRITES: dict[str, Rewrite] = {
    "extract": extraction.rewrite,
    "extract-cause": extraction.rewrite,
    "split": splitting.rewrite,
    "swap": branches.rewrite,
    "pad": padding.rewrite,
}
LANGUAGES = ("python", "cuda", "cython")
Place = Label | str
Found = list[tuple[str, tuple[Place, ...]]]


@dataclass(frozen=True)
class Case:
    """A program of a few files, the rules to run on it, and lines that matter where it has no findings."""

    files: list[File]
    options: Options
    rows: list[Label]


@dataclass(frozen=True)
class Difference:
    """Findings that a rewrite lost, and those that it brought."""

    lost: tuple[str, ...]
    new: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.lost or self.new)


def findings(files: list[File], options: Options) -> list[Finding]:
    sources = [Source(f.name, f.text, f.language) for f in files if f.language in LANGUAGES]
    report = analyse(sources, options)
    faults = [problem.message for problem in report.problems if "internal error" in problem.message]
    assert not faults, faults
    return report.findings


def places(files: list[File], found: list[Finding]) -> Found:
    """Codes with the labels of their lines; a line that can carry none (in a string) stands for itself."""
    lines = {f.name: f.text.split("\n") for f in files}
    rows = [(f.code, lines[f.span.file][f.span.row - 1]) for f in found]
    return [(code, tuple(labels_of(line)) or (line.strip(),)) for code, line in rows]


def target(name: str, files: list[File], found: list[Finding], rows: list[Label]) -> list[Label]:
    """The lines that a rewrite is about: those with findings, else those that the case names, else those that call something.

    For ``extract-cause`` those that the trails of the findings name.
    """
    lines = {f.name: f.text.split("\n") for f in files}
    if name == "extract-cause":
        steps = [step.span for finding in found for step in finding.trail]
        flagged = [label for span in steps if span.file in lines for label in labels_of(lines[span.file][span.row - 1])]
        return [label for label in flagged if not any(label in labels for _, labels in places(files, found))]
    flagged = [label for _, labels in places(files, found) for label in labels if isinstance(label, tuple)]
    if flagged or rows:
        return [*flagged, *rows]
    return [label for f in files if f.language == "python" for line in lines[f.name] if "(" in line for label in labels_of(line)]


def difference(before: Found, after: Found) -> Difference:
    """Each finding before has one of its code on a line with its label after, and the other way round."""
    lost = [f"{code} {_shown(labels)}" for code, labels in before if not any(code == c and set(labels) & set(m) for c, m in after)]
    new = [f"{code} {_shown(labels)}" for code, labels in after if not any(code == c and set(labels) & set(m) for c, m in before)]
    return Difference(tuple(sorted(lost)), tuple(sorted(new)))


def _shown(labels: tuple[Place, ...]) -> str:
    return " ".join(place if isinstance(place, str) else f"{place[0]}:{place[1]}" for place in labels)


def applying(case: Case) -> int:
    """How many rewrites apply where nothing is found: nothing is linted."""
    files = labelled(case.files)
    return sum(rewrite(files, target(name, files, [], case.rows)) is not None for name, rewrite in REWRITES.items())


def compare(case: Case, names: Iterable[str] = REWRITES) -> Iterator[tuple[str, Difference | None]]:
    """For each rewrite what it changes; None where it does not apply. Files that are no code must lie in the current folder."""
    files = labelled(case.files)
    found = findings(files, case.options)
    before = places(files, found)
    for name in names:
        changed = REWRITES[name](files, target(name, files, found, case.rows))
        yield name, None if changed is None else difference(before, places(changed, findings(changed, case.options)))
