"""A reliability diagram: what share of findings was expected to be real, and what share was, in light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shares import wilson

SIDE, LEFT, TOP, BOTTOM = 320, 46, 30, 44  # px
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#17181b}.axis{stroke:#d5d8dd}.range{stroke:#8fa3c8;stroke-width:2}.bin{fill:#1f4fb5}"
    ".right{stroke:#8a5a00;stroke-dasharray:5 4}.few{fill:#63676e}"
    "@media(prefers-color-scheme:dark){text{fill:#e4e6ea}"
    ".axis{stroke:#33363c}.range{stroke:#4a5f86}.bin{fill:#8ab4ff}.right{stroke:#ffca64}.few{fill:#9aa0a8}}"
)
TITLE = "Expected and real share of findings, by confidence"


def picture(bins: Sequence[tuple[float, int, int]]) -> str:
    """SVG: a dot for findings whose chances lie together (expected share, how many, how many real), as large as they are many."""
    width, height = LEFT + SIDE + 12, TOP + SIDE + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        f"<title>{TITLE}</title>",
        f"<style>{STYLE}</style>",
        f'<text x="{LEFT}" y="16">{TITLE}</text>',
        *_axes(),
        f'<line class="right" x1="{_x(0):.1f}" y1="{_y(0):.1f}" x2="{_x(1):.1f}" y2="{_y(1):.1f}"/>',
        *_dots(bins),
        f'<text class="few" x="{LEFT}" y="{height - 6}">Across: expected; up: real, with a 95 % interval.</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _x(share: float) -> float:
    return LEFT + share * SIDE


def _y(share: float) -> float:
    return TOP + (1 - share) * SIDE


def _axes() -> Iterator[str]:
    for percent in (0, 25, 50, 75, 100):
        x, y = _x(percent / 100), _y(percent / 100)
        yield f'<line class="axis" x1="{LEFT}" x2="{LEFT + SIDE}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{percent} %</text>'
        yield f'<text x="{x:.1f}" y="{TOP + SIDE + 16}" text-anchor="middle">{percent} %</text>'


def _dots(bins: Sequence[tuple[float, int, int]]) -> Iterator[str]:
    for expected, told, real in bins:
        low, high = wilson(real, told)
        x = _x(expected)
        yield f'<line class="range" x1="{x:.1f}" x2="{x:.1f}" y1="{_y(low):.1f}" y2="{_y(high):.1f}"/>'
        yield (
            f'<circle class="bin" cx="{x:.1f}" cy="{_y(real / told):.1f}" r="{1.2 * told**0.5:.1f}">'
            f"<title>{100 * expected:.0f} % expected: {real} of {told}</title></circle>"
        )
