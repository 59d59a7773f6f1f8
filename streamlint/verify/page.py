"""The HTML page: one file with nothing to fetch, for each case its verdict, its figures, and misuse beside remedy in time.

Made from verify's JSON alone, so that what was kept as evidence can be drawn on a machine without a GPU. Jinja2 is imported here only.
"""

from __future__ import annotations

import difflib
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamlint.verify import templates
from streamlint.verify.cases import VARIANTS, Case
from streamlint.verify.criteria import Verdict
from streamlint.verify.timeline import in_order

PAGES = Path(__file__).parent / "pages"
SIGNS = {"CONFIRMED": "✓", "REFUTED": "✗", "NOT OBSERVED": "○", "INCONCLUSIVE": "?", "UNSUPPORTED": "·"}
_LABEL, _BAR, _GAP, _AXIS = 16, 16, 10, 22  # heights of a lane's parts, and of the axis, in px
_MOST_TICKS = 5
_SHORTEST = 0.4  # percent: a span that is shorter would not be seen
_STREAM_KINDS = {"gate": "gate", "work": "work", "a mark": "mark"}
_WRONG = {"does not return": "hangs", "a wrong value": "wrong"}  # how spans end that went wrong
_MARKER = re.compile(r"\s*(?:#|//) misuse: SL\d{3}\s*$")


@dataclass(frozen=True)
class Bar:
    """A span of a lane, in percent of the drawing's width."""

    kind: str  # call, gate, work, mark, hangs, wrong
    left: float
    width: float
    title: str


@dataclass(frozen=True)
class Lane:
    name: str
    top: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Drawing:
    """What one program did in its last round."""

    lanes: tuple[Lane, ...]
    ticks: tuple[tuple[float, str, str], ...]  # percent, text, anchor
    height: int
    text: str  # the same in words


def render(platform: Mapping[str, Any], cases: Sequence[Mapping[str, Any]], remarks: Sequence[str] = ()) -> str:
    """The page. ``cases`` are those of verify's JSON; a finding's facts, and where findings are, are shown where they are given."""
    import jinja2  # optional: for HTML

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(PAGES), autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    found = Counter(case["verdict"] for case in cases)
    return environment.get_template("verify.html.j2").render(
        platform=_platform(platform),
        packages=platform.get("packages", {}),
        remarks=list(remarks),
        counts=[(verdict.value, SIGNS[verdict.value], found[verdict.value]) for verdict in Verdict if found[verdict.value]],
        total=len(cases),
        rules=_rules(cases),
        signs=SIGNS,
    )


def _platform(platform: Mapping[str, Any]) -> list[tuple[str, str]]:
    words = {"gpu": "GPU", "driver": "driver", "cuda_runtime": "CUDA runtime", "python": "Python", "streamlint": "streamlint"}
    return [(word, str(platform[key])) for key, word in words.items() if platform.get(key)]


def _rules(cases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The cases by rule, in order."""
    known = templates.load()
    found: dict[str, list[dict[str, Any]]] = {}
    for number, case in enumerate(cases):
        found.setdefault(case["rule"], []).append(_case(case, f"c{number}"))
    return [
        {"code": code, "name": known[code].name if code in known else "", "cases": shown, "verdicts": [case["verdict"] for case in shown]}
        for code, shown in sorted(found.items())
    ]


def _case(case: Mapping[str, Any], mark: str) -> dict[str, Any]:
    sides = {variant: case.get(variant) or {} for variant in VARIANTS}
    return {
        "mark": mark,
        "name": str(case.get("case", "")).replace("_", " "),
        "api": case.get("api", ""),
        "prediction": case.get("prediction", ""),
        "verdict": case["verdict"],
        "reason": case.get("reason", ""),
        "platform": case.get("platform", ""),
        "facts": case.get("facts") or {},
        "findings": case.get("findings") or [],
        "drawings": _drawings(sides),
        "costs": _costs(sides),
        "figures": {variant: _figures(side) for variant, side in sides.items() if side},
        "programs": _programs(case),
    }


# Time --------------------------------------------------------------------------------------------------------------------------


def _drawings(sides: Mapping[str, Mapping[str, Any]]) -> dict[str, Drawing]:
    """Both programs on one scale, so that their lengths can be compared."""
    lanes = {variant: sorted(side["timeline"], key=in_order) for variant, side in sides.items() if side.get("timeline")}
    spans = [span for rows in lanes.values() for row in rows for span in row["spans"]]
    if not spans:
        return {}
    first, last = min(span["from"] for span in spans), max(span["to"] for span in spans)
    first = min(first, 0.0)
    return {variant: drawing(rows, first, max(last, first + 0.01)) for variant, rows in lanes.items()}


def drawing(rows: Sequence[Mapping[str, Any]], first: float, last: float) -> Drawing:
    """Lanes on the scale from ``first`` to ``last`` ms."""
    length = last - first
    lanes = []
    words = []
    for number, row in enumerate(rows):
        bars = tuple(_bar(row["kind"], span, first, length) for span in row["spans"])
        lanes.append(Lane(row["name"], number * (_LABEL + _BAR + _GAP), bars))
        shown = "; ".join(bar.title for bar in bars[:4]) + (f"; and {len(bars) - 4} more" if len(bars) > 4 else "")
        words.append(f"{row['name']}: {shown}")
    height = len(lanes) * (_LABEL + _BAR + _GAP) + _AXIS
    return Drawing(tuple(lanes), tuple(_ticks(first, last)), height, ". ".join(words))


def _bar(place: str, span: Mapping[str, Any], first: float, length: float) -> Bar:
    start, end, what = span["from"], span["to"], span["what"]
    kind = _WRONG.get(what.rpartition(": ")[2]) or (_STREAM_KINDS.get(what.split(",")[0], "call") if place == "stream" else "call")
    left = (start - first) / length * 100
    width = max((end - start) / length * 100, _SHORTEST)
    return Bar(kind, round(min(left, 100 - width), 2), round(width, 2), f"{what}, {start:.1f} to {end:.1f} ms")


def _ticks(first: float, last: float) -> Iterable[tuple[float, str, str]]:
    """Round times along the axis."""
    step = _round_up((last - first) / _MOST_TICKS)
    at = math.ceil(first / step) * step
    while at <= last + step * 1e-6:
        percent = (at - first) / (last - first) * 100
        anchor = "start" if percent < 3 else "end" if percent > 92 else "middle"
        yield round(percent, 2), f"{at:g} ms" if percent < 3 or percent > 92 else f"{at:g}", anchor
        at = round(at + step, 9)


def _round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, …"""
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * part for part in (1, 2, 5, 10) if power * part >= value * 0.999)


@dataclass(frozen=True)
class Costs:
    """Runs of both programs as dots on one axis."""

    rows: tuple[tuple[str, tuple[float, ...], float, str], ...]  # name, dots and median in percent, the median in words
    ticks: tuple[tuple[float, str, str], ...]


def _costs(sides: Mapping[str, Mapping[str, Any]]) -> Costs | None:
    taken = {variant: sorted(side["ms"]) for variant, side in sides.items() if side.get("ms")}
    if not taken:
        return None
    most = max(samples[-1] for samples in taken.values()) or 1.0
    rows = []
    for variant, samples in taken.items():
        middle = samples[len(samples) // 2]
        dots = tuple(round(sample / most * 98 + 1, 2) for sample in samples)
        rows.append((variant, dots, round(middle / most * 98 + 1, 2), f"median {middle:.3g} ms of {len(samples)} runs"))
    return Costs(tuple(rows), tuple((round(at * 0.98 + 1, 2), text, anchor) for at, text, anchor in _ticks(0.0, most)))


# Words -------------------------------------------------------------------------------------------------------------------------


def _figures(side: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Everything that was measured, but for what is drawn."""
    return [(key.replace("_", " "), _figure(value)) for key, value in side.items() if key != "timeline"]


def _figure(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_figure(item) for item in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _programs(case: Mapping[str, Any]) -> dict[str, list[tuple[str, str]]]:
    """Both snippets, line by line: what only one of them has is marked, and so is the line of the finding."""
    try:
        known: Case = templates.find(case["rule"], case["case"], case["api"])
        texts = {variant: known.source(variant).splitlines() for variant in VARIANTS}
    except (KeyError, OSError):  # evidence of a release that had other templates
        return {}
    plain = {variant: [_MARKER.sub("", line) for line in lines] for variant, lines in texts.items()}
    matcher = difflib.SequenceMatcher(a=plain["misuse"], b=plain["remedy"], autojunk=False)
    same = {"misuse": set[int](), "remedy": set[int]()}
    for block in matcher.get_matching_blocks():
        same["misuse"].update(range(block.a, block.a + block.size))
        same["remedy"].update(range(block.b, block.b + block.size))
    return {
        variant: [(_kind(line, number in same[variant]), plain[variant][number]) for number, line in enumerate(lines)]
        for variant, lines in texts.items()
    }


def _kind(line: str, same: bool) -> str:
    return "found" if _MARKER.search(line) else "" if same else "changed"
