"""How many random cases a test takes: few, or with ``STREAMLINT_TESTS_THOROUGH=1`` many."""

from __future__ import annotations

import os


def cases(few: int, many: int) -> range:
    """The numbers of the cases; the few are the first of the many."""
    return range(many if thorough() else few)


def thorough() -> bool:
    """Whether the many are asked for."""
    return bool(os.environ.get("STREAMLINT_TESTS_THOROUGH"))
