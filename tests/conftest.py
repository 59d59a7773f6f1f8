"""Fixtures for tests that must not depend on the live rule set, and the way to the helpers that tests share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamlint.checks import catalog, rules
from streamlint.checks.base import Category, Check
from streamlint.config import selection

# `--import-mode=importlib` leaves the path alone: the helpers of this folder (`rename`) and the tool of the documentation are found
# through here.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
# A test finds what it asks for, not what another one found; those of the cache turn it on.
os.environ["STREAMLINT_NO_CACHE"] = "1"


def _rule(code: str, name: str, category: Category, default: str) -> type[Check]:
    return type(name, (Check,), {"__doc__": f"Made up {name}.", "code": code, "name": name, "category": category, "default": default})


@pytest.fixture
def made_up_rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Four rules: two that are on, one in preview, one that is off."""
    made = [
        _rule("SL001", "unpinned-non-blocking", Category.STALL, "on"),
        _rule("SL005", "d2h-read-before-sync", Category.RACE, "on"),
        _rule("SL007", "missing-record-stream", Category.RACE, "preview"),
        _rule("SL015", "blocking-stream", Category.STALL, "off"),
    ]
    caches = (rules.all_rules, catalog.entries, catalog.code_of, selection.selected)
    monkeypatch.setattr(catalog, "checks", lambda: [catalog.Entry(rule.code, rule.name, rule.default) for rule in made])
    monkeypatch.setattr(rules, "registry", lambda: {rule.code: rule for rule in made})
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()
