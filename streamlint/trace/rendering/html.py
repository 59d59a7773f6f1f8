"""One self-contained page: the places that cost something, and a timeline that shows each where it cost most.

All that is said stands in the page as text, also without its script. Nothing is fetched; the script runs by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from string import Template

from streamlint.report.entries import page as address
from streamlint.report.terminal import CONTROL
from streamlint.support.cells import Cells
from streamlint.trace.prices import price
from streamlint.trace.rendering.rows import Row, others, rows
from streamlint.trace.rendering.timeline import Drawn, timeline
from streamlint.trace.rendering.view import View
from streamlint.trace.rendering.words import at, called, last_line, more, of_ranks, part, rank_waits, share, time
from streamlint.trace.results import Cost, Judged

_FOLDER = Path(__file__).with_name("page")
_STANDINGS = {
    "CHEAP": "ran, and cost less than the threshold",
    "NOT REACHED": "the recording has no call of this line",
    "RACED ONLY": "races cost no time that could be shown",
}


def render(view: View) -> str:
    """The page."""
    found = rows(view.joined)[: view.top]
    drawn = timeline(Drawn(view.trace, view.names), found, view.trace)
    script = (_FOLDER / "trace.js").read_text(encoding="utf-8")
    mark = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    data = json.dumps(drawn, separators=(",", ":")).replace("<", "\\u003c")
    return Template((_FOLDER / "trace.html").read_text(encoding="utf-8")).substitute(
        title=_text(f"streamlint trace: {view.recording}"),
        style=(_FOLDER / "trace.css").read_text(encoding="utf-8"),
        hash=mark,
        head="".join(_head(view)),
        places="".join(_place(view, row, number) for number, row in enumerate(found)),
        details="".join(_details(view, row, number) for number, row in enumerate(found)),
        left=_left(view, len(found)),
        others="".join(_others(view)),
        data=data,
        script=script,
        empty="" if found else "empty",
    )


def _text(text: str) -> str:
    """Text that is no markup, and that no terminal or reader is turned round by."""
    return escape(CONTROL.sub("\N{REPLACEMENT CHARACTER}", text))


def _head(view: View) -> Iterator[str]:
    costs, joined = view.joined.costs, view.joined
    yield f"<h1>{_text(last_line(joined))}</h1>"
    facts = [
        ("recording", view.recording),
        ("GPU", costs.gpu or "unknown"),
        ("wall time", time(costs.wall) + (f", {joined.processes} processes" if joined.processes > 1 else "")),
        ("GPU idle", f"{time(costs.idle)} ({share(joined, costs.idle)})"),
        ("host blocked", time(costs.blocked)),
        *(("ranks", sentence) for sentence in rank_waits(joined)),
    ]
    yield "<dl>" + "".join(f"<div><dt>{word}</dt><dd>{_text(value)}</dd></div>" for word, value in facts) + "</dl>"
    if costs.notes:
        yield "<ul class=notes>" + "".join(f"<li>{_text(note)}</li>" for note in costs.notes) + "</ul>"


def _place(view: View, row: Row, number: int) -> str:
    cost, joined = row.cost, view.joined
    quoted = view.quoted(cost.place)
    rules = " ".join(f"<span class=rule>{_text(one.finding.code)} {_text(one.finding.name)}</span>" for one in row.judged)
    return (
        f'<li><button type=button class="place{"" if row.judged else " bare"}" data-cost={number} aria-pressed=false>'
        f"<span class=figure><b>{time(price(cost))}</b> <span class=dim>{share(joined, price(cost))}</span></span>"
        f'<span class=bar><i style="width:{max(100 * part(joined, price(cost)), 0.5):.1f}%"></i></span>'
        f"<span class=where>{_text(', '.join(map(at, row.places)))}</span>"
        + (f"<code>{_text(quoted)}</code>" if quoted else "")
        + (rules or "<span class=none>no finding</span>")
        + "</button></li>"
    )


def _details(view: View, row: Row, number: int) -> str:
    cost = row.cost
    body = "".join(_finding(one) for one in row.judged)
    if row.unnamed is not None:
        body = f"<p class=none><b>No finding.</b> {_text(row.unnamed.reason)}</p>"
    function = f" <span class=dim>in {_text(cost.place.function)}</span>" if cost.place.function else ""
    via = "".join(f"<li>{_text(at(place))}{f' in {_text(place.function)}' if place.function else ''}</li>" for place in cost.via)
    return (
        f"<article data-cost={number}><h2>{_text(', '.join(map(at, row.places)))}{function}</h2>"
        f"<p class=dim>{_text(called(cost))}</p>{_figures(view, cost)}{body}"
        + (f"<p class=dim>called from</p><ol class=via>{via}</ol>" if via else "")
        + "</article>"
    )


def _figures(view: View, cost: Cost) -> str:
    joined = view.joined
    gain = "not estimated" if cost.gain is None else f"{time(cost.gain)} ({share(joined, cost.gain)})"
    figures = [
        ("cost", f"{time(price(cost))} ({share(joined, price(cost))})"),
        ("GPU idle behind it", f"{time(cost.idle)} ({share(joined, cost.idle)})"),
        ("of that avoidable", time(min(cost.avoidable, cost.idle))),
        ("gain without it (estimate)", gain),
        ("host blocked", f"{time(cost.blocked)} ({share(joined, cost.blocked)})"),
        ("calls", f"{cost.calls:,}"),
        ("median, largest", f"{time(cost.median)}, {time(cost.largest)}"),
        *([("thread", cost.thread)] if cost.thread else []),
        *(("also", one) for one in more(cost)),
        *(("ranks", one) for one in of_ranks(joined, cost)),
    ]
    return "<dl class=figures>" + "".join(f"<div><dt>{word}</dt><dd>{_text(value)}</dd></div>" for word, value in figures) + "</dl>"


def _finding(one: Judged) -> str:
    finding = one.finding
    help = f"<p class=help>{_text(finding.help)}</p>" if finding.help else ""
    place = _text(f"{finding.span.file}:{Cells().line(finding.span.file, finding.span.row)}")
    rule = f'<a href="{escape(address(finding.name))}">{_text(finding.name)}</a> {_text(finding.code)}'
    return f"<div class=finding><p><b>{rule}</b> <span class=dim>{place}</span><br>{_text(finding.message)}</p>{help}</div>"


def _left(view: View, shown: int) -> str:
    left = len(rows(view.joined)) - shown
    return f"<p class=dim>{left} more place{'s' * (left != 1)}: --top {left + shown} shows all.</p>" if left else ""


def _others(view: View) -> Iterator[str]:
    cells = Cells()
    for standing, mine in others(view.joined):
        yield f"<details><summary>{standing}: {len(mine)} <span class=dim>{_STANDINGS[standing]}</span></summary><ul>"
        for one in mine:
            figure = f"{time(one.cost.blocked)} blocked" if one.cost else one.note
            place = _text(f"{one.finding.span.file}:{cells.line(one.finding.span.file, one.finding.span.row)}")
            yield f"<li><span class=where>{place}</span> {_text(one.finding.code)} {_text(one.finding.name)}: {_text(figure)}</li>"
        yield "</ul></details>"
