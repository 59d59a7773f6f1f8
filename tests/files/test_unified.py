"""Unified diffs: they lead from one text to the other, and are those of `difflib` where few lines are alike."""

from __future__ import annotations

import difflib
import random

import pytest

from streamlint.support import unified as module
from streamlint.support.unified import steps, unified


@pytest.mark.parametrize("seed", range(200))
def test_the_steps_lead_from_one_text_to_the_other(seed: int) -> None:
    chance = random.Random(seed)
    old = [f"{chance.randrange(12)}\n" for _ in range(chance.randrange(30))]
    new = [line for line in old if chance.random() > 0.2]
    for _ in range(chance.randrange(6)):
        new.insert(chance.randrange(len(new) + 1), f"{chance.randrange(12)}\n")
    made: list[str] = []
    at = at_new = 0
    for kind, i, i_end, j, j_end in steps(old, new):
        assert (i, j) == (at, at_new)
        if kind == "equal":
            assert old[i:i_end] == new[j:j_end]
        made += new[j:j_end]
        at, at_new = i_end, j_end
    assert (at, made) == (len(old), new)


@pytest.mark.parametrize("where", [0, 1, 10, 19, 20])
def test_a_line_more_is_told_as_difflib_tells_it(where: int) -> None:
    old = [f"line {number}\n" for number in range(20)]
    new = [*old[:where], "more\n", *old[where:]]
    for one, two in ((old, new), (new, old), (old, old), ([], new), (new, [])):
        assert list(unified(one, two, "a.py", "a.py")) == list(difflib.unified_diff(one, two, "a.py", "a.py"))


def test_no_more_is_compared_than_what_lies_between_lines_that_stand_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    class Matcher(difflib.SequenceMatcher[str]):
        def __init__(self, junk: None, one: list[str], two: list[str]) -> None:
            lengths.append(len(one) + len(two))
            super().__init__(junk, one, two)

    monkeypatch.setattr(module.difflib, "SequenceMatcher", Matcher)
    old = [line for number in range(300) for line in (f"def f{number}():\n", "    a()\n", "    c()\n", "\n")]
    new = [line for row in old for line in ((row, "    b()\n") if "a()" in row else (row,))]
    assert len([step for step in steps(old, new) if step[0] == "insert"]) == 300
    assert max(lengths) <= 7
