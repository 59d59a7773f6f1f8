"""What a format of ``streamlint trace`` is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.findings import Report
from streamlint.support.records import field, record
from streamlint.trace.model import Trace
from streamlint.trace.results import Joined, Place


@record(slots=True)
class View:
    """An answer, the run that it speaks of, the sources, and how to show it."""

    joined: Joined
    trace: Trace
    report: Report  # of the findings
    recording: str  # the file's name
    names: Any = None  # streamlint.trace.names.Names: the names of recorded files
    texts: Mapping[str, str] = field(default_factory=dict)  # sources of files with places, findings or not
    evidence: Mapping[Any, Mapping[str, object]] | None = None
    color: bool = False
    width: int = 100
    links: bool = False
    top: int = 10  # places that are shown with all their figures

    def quoted(self, place: Place) -> str:
        """The source line of an exact place; empty where it is not known."""
        if not place.is_exact or place.file not in self.texts:
            return ""
        rows = self.texts[place.file].splitlines()
        row = place.lines[0]
        return rows[row - 1].strip() if 0 < row <= len(rows) else ""
