"""Markdown: for a job's summary, or a comment in a review."""

from __future__ import annotations

from streamlint.report.entries import page
from streamlint.report.markdown import cell, code
from streamlint.support.cells import Cells
from streamlint.trace.prices import price
from streamlint.trace.rendering.rows import Row, others, rows
from streamlint.trace.rendering.view import View
from streamlint.trace.rendering.words import at, called, head, last_line, of_ranks, rank_waits, share, time


def render(view: View) -> str:
    """A heading, a table of the places that cost something, and a list of the other findings."""
    joined, cells = view.joined, Cells()
    lines = [f"## streamlint trace: {last_line(joined)}", "", cell(head(joined, view.recording))]
    lines += [f"\n{cell(sentence)}" for sentence in rank_waits(joined)]
    if found := rows(joined):
        lines += [
            "",
            "| cost | share | gain (estimate) | GPU idle behind it | host blocked | calls | place | finding |",
            "|--:|--:|--:|--:|--:|--:|---|---|",
        ]
        lines += [_row(view, row) for row in found[: view.top]]
        if len(found) > view.top:
            lines += ["", f"Not shown: {len(found) - view.top} more."]
    for standing, mine in others(joined):
        lines += ["", f"**{standing}**", ""]
        for one in mine[: view.top]:
            finding = one.finding
            figure = f"{time(one.cost.blocked)} blocked" if one.cost else one.note
            where = code(f"{finding.span.file}:{cells.line(finding.span.file, finding.span.row)}")
            lines.append(f"* {where} [{finding.name}]({page(finding.name)}) {finding.code}: {cell(figure)}")
        lines += [f"* {len(mine) - view.top} more"] if len(mine) > view.top else []
    lines += ["", *(f"* note: {cell(note)}" for note in joined.costs.notes)] if joined.costs.notes else []
    return "\n".join(lines) + "\n"


def _row(view: View, row: Row) -> str:
    cost, joined = row.cost, view.joined
    gain = "?" if cost.gain is None else time(cost.gain)
    figures = (time(price(cost)), share(joined, price(cost)), gain, time(cost.idle), time(cost.blocked), str(cost.calls))
    quoted = view.quoted(cost.place)
    parts = [cell(part) for part in (called(cost), *of_ranks(joined, cost))]
    place = "<br>".join([code(at(cost.place)), *([code(quoted)] if quoted else []), *parts])
    row_notes = [f"[{one.finding.name}]({page(one.finding.name)}) {one.finding.code}: {cell(one.finding.message)}" for one in row.judged]
    row_notes += [f"no finding: {cell(row.unnamed.reason)}"] if row.unnamed else []
    return f"| {' | '.join(figures)} | {place} | {'<br>'.join(row_notes)} |"
