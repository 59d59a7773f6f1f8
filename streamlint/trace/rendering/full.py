"""The table for people: places that cost something, the dearest first, with their findings or the reason that there is none."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from streamlint.findings import Span
from streamlint.report.entries import page
from streamlint.report.terminal import Paint, line, link, printable, tame
from streamlint.support.cells import Cells
from streamlint.trace.prices import price
from streamlint.trace.rendering.rows import Row, others, rows
from streamlint.trace.rendering.view import View
from streamlint.trace.rendering.words import at, called, head, more, of_ranks, part, rank_waits, share, time
from streamlint.trace.results import Cost, Judged

BAR = 8  # signs
_EIGHTHS = " ▏▎▍▌▋▊▉"
_COLUMNS = (("cost", 8), ("share", BAR + 9), ("GPU idle", 10), ("blocked", 9), ("calls", 7))
_INDENT = "    "


def render(view: View) -> str:
    """The whole text; empty lines between its parts."""
    blocks = ["\n".join(_head(view)), "\n\n".join(_table(view)), "\n".join(_others(view)), "\n".join(_notes(view))]
    return "\n\n".join(tame(block) for block in blocks if block) + "\n"


def _head(view: View) -> Iterator[str]:
    for sentence in (head(view.joined, view.recording), *rank_waits(view.joined)):
        yield from textwrap.wrap(line(sentence), view.width, subsequent_indent="  ")


def _table(view: View) -> Iterator[str]:
    found = rows(view.joined)
    if not found:
        return
    paint = Paint(view.color)
    titles = "".join(f"{title:>{width}}" if title != "share" else f"  {'':<{BAR}}{'':>{width - BAR - 2}}" for title, width in _COLUMNS)
    first = paint(f"{titles}   place", "dim") + "\n"
    for number, row in enumerate(found[: view.top]):
        yield (first if number == 0 else "") + "\n".join(_row(view, row, paint))
    if len(found) > view.top:
        left = found[view.top :]
        cost = sum(price(row.cost) for row in left)
        yield paint(
            f"{_INDENT}{_more(len(left))}, {time(cost)} together: --top {len(found)} shows {'it' if len(left) == 1 else 'them'}",
            "dim",
        )


def _more(count: int) -> str:
    return f"{count} more place{'s' * (count != 1)}"


def _row(view: View, row: Row, paint: Paint) -> Iterator[str]:
    cost, joined = row.cost, view.joined
    style = "error" if row.judged else "warning"
    figures = (
        paint(f"{time(price(cost)):>8}", "strong")
        + f"  {paint(_bar(part(joined, price(cost))), style)}{share(joined, price(cost)):>7}"
        + f"{time(cost.idle):>10}{time(cost.blocked):>9}{cost.calls:>7}"
    )
    function = paint(f" in {line(cost.place.function)}", "dim") if cost.place.function else ""
    yield f"{figures}   {paint(line(at(cost.place)), 'strong')}{function}"
    if quoted := view.quoted(cost.place):
        yield _INDENT + _cut(line(quoted), view.width - len(_INDENT))
    via = f", called from {line(at(cost.via[0]))}" if cost.via else ""
    via += "".join(f", and {line(at(place))}" for place in row.places[1:])
    parts = [line(called(cost)) + via + _thread(cost), *_gain(cost), *more(cost), *of_ranks(joined, cost)]
    yield from _wrapped(view, paint, "dim", "; ".join(parts))
    for one in row.judged:
        yield from _finding(view, paint, row, one)
    if row.unnamed is not None:
        yield from _wrapped(view, paint, "", f"no finding: {printable(row.unnamed.reason)}", "no finding", "warning")


def _gain(cost: Cost) -> list[str]:
    return [f"without the wait about {time(cost.gain)} shorter (estimate)"] if cost.gain else []


def _thread(cost: Cost) -> str:
    return f", in thread {line(cost.thread)}" if cost.thread and cost.thread != "main" else ""


def _finding(view: View, paint: Paint, row: Row, one: Judged) -> Iterator[str]:
    finding = one.finding
    label = f"{finding.code} {finding.name}"
    span = finding.span
    where = "" if _is_at(span, row) else f" ({line(span.file)}:{Cells().line(span.file, span.row)})"
    rendered = list(_wrapped(view, paint, "", f"{label}: {printable(finding.message)}{where}", label, "label"))
    if view.links:
        rendered[0] = rendered[0].replace(label, link(label, page(finding.name)), 1)
    yield from rendered


def _is_at(span: Span, row: Row) -> bool:
    return any(span.file == place.file and span.row in place.lines for place in row.places)


def _wrapped(view: View, paint: Paint, style: str, text: str, label: str = "", label_style: str = "") -> Iterator[str]:
    """Text in the column of a place, its first words in a style of their own."""
    held = text.replace(label, label.replace(" ", "\0"), 1) if label else text
    for number, row in enumerate(textwrap.wrap(held, view.width - len(_INDENT), subsequent_indent="  ")):
        row = row.replace("\0", " ")
        if number == 0 and label:
            yield _INDENT + paint(label, label_style) + row.removeprefix(label)
        else:
            yield _INDENT + (paint(row, style) if style else row)


def _bar(share: float) -> str:
    """A bar of eight signs, in eighths; what is not nothing shows at least one."""
    eighths = round(share * BAR * 8) or (1 if share else 0)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (_EIGHTHS[rest] if rest else "")).ljust(BAR)


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 3] + "..."


def _others(view: View) -> Iterator[str]:
    paint, cells = Paint(view.color), Cells()
    for standing, mine in others(view.joined):
        for one in mine[: view.top]:
            finding = one.finding
            figure = f"{time(one.cost.blocked)} blocked" if one.cost else one.note
            where = f"{line(finding.span.file)}:{cells.line(finding.span.file, finding.span.row)}"
            yield f"{paint(f'{standing:<11}', 'dim')}  {where}  {paint(finding.code, 'label')} {finding.name}: {figure}"
        if len(mine) > view.top:
            yield paint(f"{standing:<11}  {len(mine) - view.top} more", "dim")


def _notes(view: View) -> Iterator[str]:
    paint = Paint(view.color)
    for note in view.joined.costs.notes:
        yield f"{paint('note', 'note')}: {printable(note)}"
