"""Times of a run as pairs of a start and an end, in nanoseconds."""

from __future__ import annotations

from collections.abc import Iterable

Span = tuple[int, int]


def joined_spans(spans: Iterable[Span]) -> list[Span]:
    """Spans in order, those that touch as one."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found
