"""What readers said of a rule's findings in released packages, counted from the ledger of ``benchmarks/precision``."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections import Counter
from typing import Any

from streamlint_docs import DOCS, ROOT

_MORE = "; [Accuracy](../accuracy.md) has all rules."


def words(code: str) -> str:
    """A sentence with the counts of the findings that are reported today; empty if nobody has read any."""
    entries = [entry for package in _packages() for entry in package.standing if entry.rule == code and entry.verdict]
    if not entries:
        return ""
    count = Counter(entry.verdict for entry in entries)
    told = ", ".join(f"{count[verdict]} {verdict}" for verdict in ("real", "not real", "unclear") if count[verdict])
    return (
        f"Of this rule's findings in {len(_packages())} pinned packages, readers judged {len(entries)} from the code: {told}. "
        f"What they said of each stands in `benchmarks/precision/ledger`{_MORE if (DOCS / 'accuracy.md').is_file() else '.'}"
    )


@functools.cache
def _packages() -> list[Any]:
    spec = importlib.util.spec_from_file_location("streamlint_ledger", ROOT / "benchmarks" / "ledger.py")
    assert spec
    assert spec.loader
    ledger = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = ledger  # dataclasses look their module up
    spec.loader.exec_module(ledger)
    found: list[Any] = ledger.read()
    return found
