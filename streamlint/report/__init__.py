"""Output formats, a module each. Every module has ``render(view) -> str``.

In: findings and problems of a run. Out: text for people and machines.
May import: ``triage``, ``checks``, ``config``, ``findings``, ``support``.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from streamlint import TYPE_CHECKING
from streamlint.config.settings import FORMATS
from streamlint.findings import Finding, Report
from streamlint.support.cells import Cells
from streamlint.support.records import field, record

if TYPE_CHECKING:
    from typing import Any

    Evidence = Mapping[Any, Mapping[str, object]]  # by finding, or by code

__all__ = ["FORMATS", "View", "render"]


@record(frozen=True, slots=True)
class View:
    """What a format is given: a report, and how to show it."""

    report: Report
    color: bool = False
    width: int = 80
    links: bool = False  # whether rule names may be terminal hyperlinks
    evidence: Evidence | None = None
    unsafe_fixes: bool = False  # whether a fix that is not safe counts as one
    whole_lines: bool = False  # source lines are not cut to the width: a log has room
    costs: Mapping[Finding, Mapping[str, Any]] | None = None  # what a recorded run says of findings: standing, note, cost
    by_confidence: bool = False  # the surest findings come first
    cells: Cells = field(default_factory=Cells)  # of the notebooks among the files

    def fix_mark(self, finding: Finding) -> str:
        """``[*] `` for a finding that ``--fix`` would mend."""
        return "[*] " if finding.fix and (self.unsafe_fixes or finding.fix.applicability == "safe") else ""


def render(format: str, view: View) -> str:
    """The report in a format, with its final line end; empty if there is nothing to say."""
    module = importlib.import_module(f"streamlint.report.{format.replace('-', '_')}")
    text: str = module.render(view)
    return text
