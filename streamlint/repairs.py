"""Fixes of a run: tried for each finding, and applied to files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from streamlint.files import Found
from streamlint.findings import Finding, Report
from streamlint.relint import Relint

if TYPE_CHECKING:
    from streamlint.fix.trial import Trial


def trials(report: Report, files: Mapping[str, Found], relints: Mapping[str, Relint]) -> dict[str, object]:
    """Give each finding of a report the fix that holds, and return what can try several together, by file."""
    from streamlint.fix import fixers

    made: dict[str, object] = {}
    for number, finding in enumerate(report.findings):
        file = finding.span.file
        if finding.code not in fixers() or file not in relints:
            continue
        if file not in made:
            made[file] = trial_of(report.texts[file], files[file], relints[file])
        report.findings[number] = replace(finding, fix=made[file].propose(finding))  # type: ignore[attr-defined]
    return made


def trial_of(text: str, found: Found, relint: Relint) -> Trial:
    """What tries the fixes of one file."""
    from streamlint.fix.trial import Trial
    from streamlint.rules import all_rules

    # A fix must not bring what only another selection of rules would tell.
    codes = found.settings.options().codes | {code for code, rule in all_rules().items() if rule.default != "off"}
    return Trial(found.path, text, found.language, lambda path, text: relint.findings(path, text, codes))


@dataclass(slots=True)
class Repairs:
    """What was mended, file by file."""

    texts: dict[str, str] = field(default_factory=dict)  # the new text of each file that changes
    mended: list[Finding] = field(default_factory=list)


def repairs(report: Report, unsafe: bool) -> Repairs:
    """The fixes of a report that hold together: safe ones, or all but those that are only shown."""
    from streamlint.fix.trial import Trial, together

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
