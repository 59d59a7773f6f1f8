"""A reliability diagram: what share of findings was expected to be real, and what share was, in light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from share_picture import LEFT, PERCENTS, TOP, axis, dot, framed

SIDE, BOTTOM = 320, 44  # px
TITLE = "Expected and real share of findings, by confidence"


def picture(bins: Sequence[tuple[float, int, int]]) -> str:
    """SVG: a dot for findings whose chances lie together (expected share, how many, how many real), as large as they are many."""
    width, height = LEFT + SIDE + 12, TOP + SIDE + BOTTOM
    parts = [
        *_axes(),
        f'<line class="right" x1="{_x(0):.1f}" y1="{_y(0):.1f}" x2="{_x(1):.1f}" y2="{_y(1):.1f}"/>',
        *_dots(bins),
        f'<text class="few" x="{LEFT}" y="{height - 6}">Across: expected; up: real, with a 95 % interval.</text>',
    ]
    return framed(TITLE, width, height, "bin", "right", parts)


def _x(share: float) -> float:
    return LEFT + share * SIDE


def _y(share: float) -> float:
    return TOP + (1 - share) * SIDE


def _axes() -> Iterator[str]:
    lines = list(axis(LEFT + SIDE, _y))
    for percent, line, name in zip(PERCENTS, lines[::2], lines[1::2], strict=True):
        yield from (line, name, f'<text x="{_x(percent / 100):.1f}" y="{TOP + SIDE + 16}" text-anchor="middle">{percent} %</text>')


def _dots(bins: Sequence[tuple[float, int, int]]) -> Iterator[str]:
    for expected, told, real in bins:
        yield from dot("bin", _x(expected), _y, real, told, 1.2, f"{100 * expected:.0f} % expected: {real} of {told}")
