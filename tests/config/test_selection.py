"""Selectors, over four made-up rules: SL001 and SL005 on, SL007 in preview, SL015 off; SL901 is the linter's own, and on."""

from __future__ import annotations

import pytest

from streamlint.config.selection import Selectors, is_widest, selected
from streamlint.config.settings import Settings

pytestmark = pytest.mark.usefixtures("made_up_rules")
ON = {"SL001", "SL005", "SL901"}


@pytest.mark.parametrize(
    ("keys", "codes"),
    [
        ({}, ON),
        ({"preview": True}, ON | {"SL007"}),
        ({"select": []}, set()),
        ({"select": ["SL005"]}, {"SL005"}),
        ({"select": ["d2h-read-before-sync"]}, {"SL005"}),
        ({"select": ["SL007"]}, {"SL007"}),
        ({"select": ["SL00"]}, {"SL001", "SL005"}),
        ({"select": ["SL00"], "preview": True}, {"SL001", "SL005", "SL007"}),
        ({"select": ["SL01"]}, {"SL015"}),
        ({"select": ["ALL"]}, ON | {"SL007", "SL015"}),
        ({"select": ["ALL"], "ignore": ["SL00"]}, {"SL015", "SL901"}),
        ({"select": ["SL001"], "ignore": ["SL0"]}, {"SL001"}),
        ({"select": ["SL001"], "ignore": ["unpinned-non-blocking"]}, set()),
        ({"ignore": ["SL001"]}, ON - {"SL001"}),
        ({"extend_ignore": ["SL001"]}, ON - {"SL001"}),
        ({"extend_select": ["SL015"]}, ON | {"SL015"}),
        ({"extend_select": ["SL900"]}, ON | {"SL900"}),
        ({"select": ["unreadable-source"]}, {"SL000"}),
    ],
)
def test_one_layer(keys, codes):
    assert Settings.of(**keys).codes == codes


@pytest.mark.parametrize(
    ("first", "second", "codes"),
    [
        (Selectors(select=("SL001",)), Selectors(select=("SL005",)), {"SL005"}),
        (Selectors(ignore=("SL001",)), Selectors(extend_select=("SL015",)), {"SL005", "SL015", "SL901"}),
        (Selectors(select=("SL001",)), Selectors(ignore=("SL0",)), set()),
        (Selectors(ignore=("SL001",)), Selectors(select=("SL001",)), {"SL001"}),
    ],
)
def test_the_later_layer_wins(first, second, codes):
    assert selected((first, second), False) == codes


def test_widest():
    assert is_widest([Selectors(select=("ALL",))])
    assert is_widest([Selectors(extend_select=("ALL",)), Selectors(ignore=("SL001",))])
    assert not is_widest([Selectors(select=("ALL",)), Selectors(select=("SL001",))])
    assert not is_widest([])
