"""What is answered to ``--explain-silence``: facts of a line and reasons for its silence, as text and as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from streamlint.report.terminal import line, tame

_LINE = re.compile(r"\bline (\d+)\b(?! of )")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why no finding stands at a line.

    ``kind``: unread, place, hidden, given-way, unreached, cut, nothing, order, facts, memory, round, loop; ``fact`` is no reason but what
    is known of the line, ``memory`` says that a kind of memory is not known, ``loop`` that a wait stands in none that counts. ``code`` is
    the rule that lacks something, empty where the reason holds for all.
    """

    kind: str
    message: str
    code: str = ""
    rows: tuple[int, ...] = ()  # the lines of the file that it names
    cells: tuple[int, ...] = ()  # in a notebook the cells of these lines

    @property
    def tagged(self) -> str:
        """The message behind the code of its rule, if it is of one."""
        return f"{self.code}: {self.message}" if self.code else self.message


@dataclass(slots=True)
class Answer:
    """The reasons for one line, the nearest to a finding first."""

    file: str
    row: int
    source: str = ""
    reasons: list[Reason] = field(default_factory=list)
    cell: int | None = None

    def add(self, kind: str, message: str, code: str = "", *rows: int) -> None:
        reason = Reason(kind, message, code, tuple(dict.fromkeys(rows)))
        if reason not in self.reasons:
            self.reasons.append(reason)

    def in_cells(self, at: Callable[[int], tuple[int, int, str]]) -> Answer:
        """The same answer for a notebook: ``at`` gives the cell of a line of the program, the line in there, and its text."""

        def in_cell(reason: Reason) -> Reason:
            def named(found: re.Match[str]) -> str:
                row = int(found[1])
                return f"line {at(row)[1]} of cell {at(row)[0]}" if row in reason.rows else found[0]

            cells, rows = tuple(at(row)[0] for row in reason.rows), tuple(at(row)[1] for row in reason.rows)
            return replace(reason, message=_LINE.sub(named, reason.message), rows=rows, cells=cells)

        cell, row, text = at(self.row)
        return replace(self, row=row, cell=cell, source=text.strip(), reasons=list(map(in_cell, self.reasons)))

    def as_text(self) -> str:
        """For a terminal: the line, what is known of it, and why each rule is silent."""
        where = f"cell {self.cell}:{self.row}" if self.cell is not None else str(self.row)
        lines = [f"{line(self.file)}:{where}" + (f": {line(self.source)}" if self.source else "")]
        lines += [tame(f"  {line(reason.tagged)}") for reason in self.reasons]
        return "\n".join(lines) + "\n"

    def as_json(self) -> dict[str, object]:
        reasons = [_as_data(reason) for reason in self.reasons]
        cell = {"cell": self.cell} if self.cell is not None else {}
        return {"filename": self.file, **cell, "row": self.row, "source": self.source, "reasons": reasons}


def rows_in(message: str) -> list[int]:
    """The lines of the file that a message names."""
    return [int(found[1]) for found in _LINE.finditer(message)]


def _as_data(reason: Reason) -> dict[str, object]:
    cells = {"cells": list(reason.cells)} if reason.cells else {}
    return {"kind": reason.kind, "code": reason.code or None, "message": reason.message, "lines": list(reason.rows), **cells}
