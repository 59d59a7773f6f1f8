"""Fixes of a run: tried for each finding, and applied to files."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from streamlint.checks.catalog import entries
from streamlint.discovery.files import Found
from streamlint.findings import Finding, Fix, Problem, Report
from streamlint.fix import fixer_of
from streamlint.fix.trial import Trial, together
from streamlint.runner.workers import shared
from streamlint.support.memory import freeze, is_frozen, seldom_collected
from streamlint.support.notebooks import same_cells
from streamlint.support.reading import is_notebook
from streamlint.support.records import field, record, replace

if TYPE_CHECKING:
    from streamlint.runner.relint import Relint


Proposed = tuple[list[Fix | None] | None, str]  # fixes, and a fault of ours
FEWEST = 2  # files: even one trial reads a file anew, so that a second process soon pays


def trials(
    report: Report, files: Mapping[str, Found], relints: Mapping[str, Relint], jobs: int = 1, everywhere: bool = True
) -> dict[str, object]:
    """Give each finding of a report the fix that holds, and return what can try several together, by file.

    ``everywhere``: each is tried with all files that its findings come from; else with those near it, and applying it repeats the trial.
    """
    mine: dict[str, list[int]] = {}
    for number, finding in enumerate(report.findings):
        if finding.span.file in relints and fixer_of(finding.code) is not None:
            mine.setdefault(finding.span.file, []).append(number)
    trials = {file: trial_of(report.texts[file], files[file], relints[file], everywhere) for file in mine}

    def propose(file: str) -> Proposed:
        try:
            return trials[file].propose_all([report.findings[number] for number in mine[file]]), ""
        except Exception as error:  # a fault of ours costs the fixes of a file, never the run
            at = traceback.extract_tb(error.__traceback__)[-1]
            return None, f"{type(error).__name__} at {Path(at.filename).name}:{at.lineno}"

    with seldom_collected():
        if not is_frozen():
            freeze()  # what is collected from now on is what the trials leave behind
        proposed = list(
            shared(
                propose,
                list(mine),
                jobs,
                lambda file: len(report.texts[file]),
                instead=lambda file, why: (None, ""),
                fewest=FEWEST,
                stage="trying fixes",
            )
        )
    for (file, numbers), (fixes, fault) in zip(mine.items(), proposed, strict=True):
        if fault:
            report.problems.append(Problem(file, f"its fixes are left out: internal error: {fault}"))
        for number, fix in zip(numbers, fixes or (), strict=False):
            report.findings[number] = replace(report.findings[number], fix=fix)
    return dict(trials)


def trial_of(text: str, found: Found, relint: Relint, everywhere: bool = True) -> Trial:
    """What tries the fixes of one file."""
    # A fix must not bring what only another selection of rules would report.
    codes = found.settings.options().codes | {code for code, rule in entries().items() if rule.default != "off"}

    def look(path: str, after: str) -> list[Finding] | None:
        if is_notebook(path) and not same_cells(text, after):
            return None
        return relint.findings(path, after, codes, everywhere)

    return Trial(found.path, text, found.language, look, relint.found(found.path))


@record(slots=True)
class Repairs:
    """What was mended, file by file."""

    texts: dict[str, str] = field(default_factory=dict)  # the new text of each file that changes
    mended: list[Finding] = field(default_factory=list)


def repairs(report: Report, unsafe: bool) -> Repairs:
    """The fixes of a report that hold together: safe ones, or all but those that are only shown."""
    done = Repairs()
    allowed = ("safe", "unsafe") if unsafe else ("safe",)
    for file, trial in report.trials.items():
        mine = [found for found in report.findings if found.span.file == file and found.fix and found.fix.applicability in allowed]
        assert isinstance(trial, Trial)
        text, mended = together(trial, mine)
        if mended:
            done.texts[file] = text
            done.mended += mended
    return done
