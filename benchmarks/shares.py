"""A share of a sample, with the interval in which the true one lies."""

from __future__ import annotations

import math

ONE_SIDED_90, TWO_SIDED_95 = 1.2815515655446004, 1.959963984540054


def wilson(hits: int, of: int, z: float = TWO_SIDED_95) -> tuple[float, float]:
    """The Wilson interval of a share; of nothing, nothing is known."""
    if not of:
        return 0.0, 1.0
    share, spread = hits / of, z * z / of
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / of + spread / (4 * of)) / (1 + spread)
    # Rounded, so that the ends are 0 and 1, and not almost, where the share is none or all.
    return max(0.0, round(middle - half, 12)), min(1.0, round(middle + half, 12))


def share(hits: int, of: int) -> str:
    """A share with its 95 % interval, for a table."""
    low, high = wilson(hits, of)
    return f"{100 * hits / of:.0f} % [{100 * low:.0f}, {100 * high:.0f}]" if of else "-"
