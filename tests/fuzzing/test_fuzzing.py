"""Programs that hypothesis makes, and real text changed at random, against what must hold for any program.

The examples are the same in each run, and each property is given a few seconds of processor time. ``STREAMLINT_FUZZ_SECONDS=60`` gives each
a minute, and other examples each time; ``benchmarks/fuzz.py`` goes on for hours and writes down what it finds.
"""

from __future__ import annotations

import os
import time

import pytest
from fuzzing import campaign, rewriting
from rename import File

from streamlint.hazards import sl002

ASKED = os.environ.get("STREAMLINT_FUZZ_SECONDS", "")
SECONDS = float(ASKED or 1.5)
PROPERTIES = campaign.all_properties()


def holds(name: str, at_least: int) -> None:
    one = PROPERTIES[name]
    seed = int(time.time()) if ASKED else None
    outcome = campaign.hold(one, SECONDS * one.weight, 100_000 if ASKED else 120, least=at_least, seed=seed)
    if outcome.against is not None:
        raise outcome.against
    assert outcome.tried >= at_least


def test_made_python_is_survived() -> None:
    holds("python", 10)


def test_made_cuda_is_survived() -> None:
    holds("cuda", 10)


def test_changed_bytes_and_tokens_are_survived() -> None:
    holds("bytes", 10)


def test_one_broken_file_among_others_is_survived() -> None:
    holds("among", 10)


def test_other_lines_and_comments_change_no_finding() -> None:
    holds("lines", 10)


def test_joined_lines_change_no_finding() -> None:
    holds("joined", 5)


def test_other_names_change_no_finding() -> None:
    holds("names", 10)


def test_dead_code_changes_no_finding() -> None:
    holds("dead", 10)


def test_an_unknown_call_adds_no_finding() -> None:
    holds("unknown", 10)


def test_fixes_settle_and_break_nothing() -> None:
    holds("fixes", 5)


def test_the_order_of_files_changes_nothing() -> None:
    holds("order", 5)


def test_each_property_is_tried() -> None:
    assert len(PROPERTIES) == sum(name.startswith("test_") for name in globals()) - 4  # the last four are about the tests


def test_a_directive_keeps_its_line_however_it_is_indented() -> None:
    text = "void f() {\n  g();\n\t #pragma omp parallel for\n  for (;;) { h(); }\n}\n"
    made = rewriting.rewritten([File("a.cu", "cuda", text)], rewriting.join_lines, rewriting.Choice((), (0,)))
    assert made is not None
    first, directive, _ = made["a.cu"].text.split("\n", 2)
    assert (first.split(), directive.strip()) == (["void", "f()", "{", "g();"], "#pragma omp parallel for")


def test_a_fault_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the linter turns into a message is a failure here."""

    def broken(context: object) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(sl002, "find", broken)
    outcome = campaign.hold(PROPERTIES["cuda"], 5, 20)
    assert "ZeroDivisionError: on purpose" in str(outcome.against)


def test_a_changed_finding_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that goes by lines is found out."""
    told = sl002.find
    monkeypatch.setattr(sl002, "find", lambda context: (one for one in told(context) if one.span.row % 2))
    outcome = campaign.hold(PROPERTIES["joined"], 10, 60)
    assert outcome.against is not None
