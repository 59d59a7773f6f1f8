"""A picture of the draws: the share of findings that were real in each, with its interval, in light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shares import wilson

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 760, 250, 46, 30, 40  # px
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#17181b}.axis{stroke:#d5d8dd}.range{stroke:#8fa3c8;stroke-width:2}.draw{fill:#1f4fb5}"
    ".mean{stroke:#8a5a00;stroke-dasharray:5 4}.few{fill:#63676e}"
    "@media(prefers-color-scheme:dark){text{fill:#e4e6ea}"
    ".axis{stroke:#33363c}.range{stroke:#4a5f86}.draw{fill:#8ab4ff}.mean{stroke:#ffca64}.few{fill:#9aa0a8}}"
)


def picture(draws: Sequence[Mapping[str, Any]]) -> str:
    """SVG: a dot for each draw in which findings were judged, as large as they are many, and the share of all as a line."""
    counted = [draw for draw in draws if "told" in draw]
    told, real = (sum(draw[key] for draw in counted) for key in ("told", "real"))
    all_of_them = real / told if told else 0.0
    title = "Share of default findings that were real, by draw of packages that nobody had looked at"
    middle = _y(all_of_them)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">',
        f"<title>{title}</title>",
        f"<style>{STYLE}</style>",
        f'<text x="{LEFT}" y="16">{title}</text>',
        *_axes(),
        f'<line class="mean" x1="{LEFT}" x2="{WIDTH - 8}" y1="{middle:.1f}" y2="{middle:.1f}"/>',
        f'<text x="{WIDTH - 8}" y="{HEIGHT - 4}" text-anchor="end">all {told:,} findings: {100 * all_of_them:.0f} %</text>',
        f'<line class="mean" x1="{WIDTH - 190}" x2="{WIDTH - 152}" y1="{HEIGHT - 8}" y2="{HEIGHT - 8}"/>',
        *_dots(counted),
        f'<text class="few" x="{LEFT}" y="{HEIGHT - 4}">A dot is a draw, its area the number of findings, the bar a 95 % interval.</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _y(share: float) -> float:
    return TOP + (1 - share) * (HEIGHT - TOP - BOTTOM)


def _axes() -> Iterator[str]:
    for percent in (0, 25, 50, 75, 100):
        y = _y(percent / 100)
        yield f'<line class="axis" x1="{LEFT}" x2="{WIDTH - 8}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{percent} %</text>'


def _dots(draws: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    step = (WIDTH - 8 - LEFT) / max(len(draws), 1)
    for number, draw in enumerate(draws):
        x = LEFT + (number + 0.5) * step
        low, high = wilson(draw["real"], draw["told"])
        yield f'<line class="range" x1="{x:.1f}" x2="{x:.1f}" y1="{_y(low):.1f}" y2="{_y(high):.1f}"/>'
        radius = 0.65 * draw["told"] ** 0.5
        yield (
            f'<circle class="draw" cx="{x:.1f}" cy="{_y(draw["real"] / draw["told"]):.1f}" r="{radius:.1f}">'
            f"<title>{draw['date']}: {draw['real']} of {draw['told']}</title></circle>"
        )
