"""A picture of the draws: the share of findings that were real in each, with its interval, in light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from share_picture import LEFT, TOP, axis, dot, framed

WIDTH, HEIGHT, BOTTOM = 760, 250, 40  # px
TITLE = "Share of default findings that were real, by draw of packages that nobody had looked at"


def picture(draws: Sequence[Mapping[str, Any]]) -> str:
    """SVG: a dot for each draw in which findings were judged, as large as they are many, and the share of all as a line."""
    counted = [draw for draw in draws if "told" in draw]
    told, real = (sum(draw[key] for draw in counted) for key in ("told", "real"))
    all_of_them = real / told if told else 0.0
    middle = _y(all_of_them)
    parts = [
        *axis(WIDTH - 8, _y),
        f'<line class="mean" x1="{LEFT}" x2="{WIDTH - 8}" y1="{middle:.1f}" y2="{middle:.1f}"/>',
        f'<text x="{WIDTH - 8}" y="{HEIGHT - 4}" text-anchor="end">all {told:,} findings: {100 * all_of_them:.0f} %</text>',
        f'<line class="mean" x1="{WIDTH - 190}" x2="{WIDTH - 152}" y1="{HEIGHT - 8}" y2="{HEIGHT - 8}"/>',
        *_dots(counted),
        f'<text class="few" x="{LEFT}" y="{HEIGHT - 4}">A dot is a draw, its area the number of findings, the bar a 95 % interval.</text>',
    ]
    return framed(TITLE, WIDTH, HEIGHT, "draw", "mean", parts)


def _y(share: float) -> float:
    return TOP + (1 - share) * (HEIGHT - TOP - BOTTOM)


def _dots(draws: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    step = (WIDTH - 8 - LEFT) / max(len(draws), 1)
    for number, draw in enumerate(draws):
        title = f"{draw['date']}: {draw['real']} of {draw['told']}"
        yield from dot("draw", LEFT + (number + 0.5) * step, _y, draw["real"], draw["told"], 0.65, title)
