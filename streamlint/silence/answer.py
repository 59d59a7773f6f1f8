"""What is answered to ``--explain-silence``: facts of a line and reasons for its silence, as text and as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamlint.report.terminal import line, tame


@dataclass(frozen=True, slots=True)
class Reason:
    """Why no finding stands at a line.

    ``kind``: unread, place, hidden, given-way, unreached, cut, nothing, order, facts, round; ``fact`` is no reason but what is known of
    the line. ``code`` is the rule that lacks something, empty where the reason holds for all.
    """

    kind: str
    message: str
    code: str = ""
    rows: tuple[int, ...] = ()  # the lines of the file that it names


@dataclass(slots=True)
class Answer:
    """The reasons for one line, the nearest to a finding first."""

    file: str
    row: int
    source: str = ""
    reasons: list[Reason] = field(default_factory=list)

    def add(self, kind: str, message: str, code: str = "", *rows: int) -> None:
        reason = Reason(kind, message, code, tuple(dict.fromkeys(rows)))
        if reason not in self.reasons:
            self.reasons.append(reason)

    def as_text(self) -> str:
        """For a terminal: the line, what is known of it, and why each rule is silent."""
        lines = [f"{line(self.file)}:{self.row}" + (f": {line(self.source)}" if self.source else "")]
        lines += [tame(f"  {line(_tagged(reason))}") for reason in self.reasons]
        return "\n".join(lines) + "\n"

    def as_json(self) -> dict[str, object]:
        reasons = [{"kind": r.kind, "code": r.code or None, "message": r.message, "lines": list(r.rows)} for r in self.reasons]
        return {"filename": self.file, "row": self.row, "source": self.source, "reasons": reasons}


def _tagged(reason: Reason) -> str:
    return f"{reason.code}: {reason.message}" if reason.code else reason.message
