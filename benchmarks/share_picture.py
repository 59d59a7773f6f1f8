"""What pictures of shares have in common: a frame in light and dark, the axis of percents, and a dot with its interval."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from shares import wilson

LEFT, TOP = 46, 30  # px
PERCENTS = (0, 25, 50, 75, 100)
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#17181b}.axis{stroke:#d5d8dd}.range{stroke:#8fa3c8;stroke-width:2}.DOT{fill:#1f4fb5}"
    ".LINE{stroke:#8a5a00;stroke-dasharray:5 4}.few{fill:#63676e}"
    "@media(prefers-color-scheme:dark){text{fill:#e4e6ea}"
    ".axis{stroke:#33363c}.range{stroke:#4a5f86}.DOT{fill:#8ab4ff}.LINE{stroke:#ffca64}.few{fill:#9aa0a8}}"
)


def framed(title: str, width: int, height: int, dot: str, line: str, parts: Iterable[str]) -> str:
    """SVG of some parts, whose dots and dashed lines have these classes."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        f"<title>{title}</title>",
        f"<style>{STYLE.replace('DOT', dot).replace('LINE', line)}</style>",
        f'<text x="{LEFT}" y="16">{title}</text>',
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def axis(right: int, y_of: Callable[[float], float]) -> Iterator[str]:
    """The lines of the percents, up to a place on the right."""
    for percent in PERCENTS:
        y = y_of(percent / 100)
        yield f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{percent} %</text>'


def dot(kind: str, x: float, y_of: Callable[[float], float], real: int, told: int, scale: float, title: str) -> Iterator[str]:
    """A share as a dot, as large as it is of many, with its interval."""
    low, high = wilson(real, told)
    yield f'<line class="range" x1="{x:.1f}" x2="{x:.1f}" y1="{y_of(low):.1f}" y2="{y_of(high):.1f}"/>'
    yield f'<circle class="{kind}" cx="{x:.1f}" cy="{y_of(real / told):.1f}" r="{scale * told**0.5:.1f}"><title>{title}</title></circle>'
