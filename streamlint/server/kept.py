"""Where findings are in a text that was edited meanwhile: asked for what is shown between two keys."""

from __future__ import annotations

from dataclasses import dataclass, replace

from streamlint.findings import Finding, Span
from streamlint.support.lines import split_lines


@dataclass(frozen=True, slots=True)
class Edit:
    """The lines that two texts have in common at their beginning and at their end."""

    first: int  # the first row that may differ
    last: int  # the last row that may differ, in the old text
    moved: int  # by how many rows what stands below moves

    @classmethod
    def between(cls, before: str, after: str) -> Edit:
        """The edit that leads from one text to the other."""
        old, new = split_lines(before), split_lines(after)
        most = min(len(old), len(new))
        head = next((at for at in range(most) if old[at] != new[at]), most)
        tail = next((at for at in range(most - head) if old[-1 - at] != new[-1 - at]), most - head)
        return cls(head + 1, len(old) - tail, len(new) - len(old))

    def row(self, row: int) -> int:
        """Where a row of the old text is in the new one."""
        return row + self.moved if row > self.last else row

    def touches(self, finding: Finding) -> bool:
        """Whether a finding of the old text stands in rows that were edited."""
        return self.first <= finding.span.row <= self.last

    def finding(self, finding: Finding) -> Finding:
        """A finding of the old text at its place in the new one."""
        if not self.moved:
            return finding
        file = finding.span.file

        def span(old: Span) -> Span:
            return replace(old, row=self.row(old.row), end_row=self.row(old.end_row)) if old.file == file else old

        return replace(
            finding,
            span=span(finding.span),
            trail=tuple(replace(step, span=span(step.span)) for step in finding.trail),
            pairs=tuple((span(one), span(two)) for one, two in finding.pairs),
            covers=tuple(map(span, finding.covers)),
        )
