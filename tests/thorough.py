"""How many random cases a test takes: few, or with ``STREAMLINT_TESTS_THOROUGH=1`` many."""

from __future__ import annotations

import os


def cases(few: int, many: int) -> range:
    """The numbers of the cases; the few are the first of the many."""
    return range(count(few, many))


def count(few: int, many: int) -> int:
    """One of two numbers, by whether the many cases are asked for."""
    return many if os.environ.get("STREAMLINT_TESTS_THOROUGH") else few
