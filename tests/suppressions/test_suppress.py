"""Suppression comments: a finding at the line that holds MISUSE, hidden or not."""

from __future__ import annotations

import datetime

import pytest

from streamlint.findings import Category, Finding, Span
from streamlint.triage.ignores import add_ignores
from streamlint.triage.suppress import suppress, unused

pytestmark = pytest.mark.usefixtures("made_up_rules")
TODAY = datetime.date(2026, 11, 20)


def outcome(text, language="python", code="SL001", **more):
    row = next(number for number, line in enumerate(text.splitlines(), 1) if "MISUSE" in line)
    finding = Finding(code, "x", Category.STALL, "m", Span("a.py", row, 1, row, 2), help="h")
    return suppress("a.py", text, language, [finding], today=TODAY, **more)


HIDES = {
    "its line": "MISUSE()  # streamlint: ignore[SL001] tiny\n",
    "by name": "MISUSE()  # streamlint: ignore[unpinned-non-blocking]\n",
    "several": "MISUSE()  # streamlint: ignore[SL005, SL001]\n",
    "after another comment": "MISUSE()  # type: ignore  # streamlint: ignore[SL001]\n",
    "line above": "# streamlint: ignore[SL001]\nMISUSE()\n",
    "comments above": "# streamlint: ignore[SL001]\n# why\nMISUSE()\n",
    "last line of the statement": "f(\n    MISUSE,\n    2,\n)  # streamlint: ignore[SL001]\n",
    "first line of the statement": "f(  # streamlint: ignore[SL001]\n    1,\n    MISUSE,\n)\n",
    "alone inside the statement": "f(\n    # streamlint: ignore[SL001]\n    MISUSE,\n)\n",
    "above the statement": "# streamlint: ignore[SL001]\nf(\n    1,\n    MISUSE,\n)\n",
    "backslash": "x = 1 + \\\n    MISUSE  # streamlint: ignore[SL001]\n",
    "noqa": "MISUSE()  # noqa: E501, SL001\n",
    "file": "# streamlint: ignore-file[SL001] why\nx = 1\nMISUSE()\n",
    "file after a long head": "# licence\n" * 20 + "# streamlint: ignore-file[SL001]\nMISUSE()\n",
    "until tomorrow": "MISUSE()  # streamlint: ignore[SL001] small until=2026-11-21\n",
    "in C++ that a string holds": 's = """\nf();\nMISUSE(1,\n  2);  // streamlint: ignore[SL001]\n"""\n',
    "above, in C++ that a string holds": 's = r"""\n  // streamlint: ignore[SL001]\n  MISUSE();\n"""\n',
}
SHOWS = {
    "another code": "MISUSE()  # streamlint: ignore[SL005]\n",
    "blanket": "MISUSE()  # streamlint: ignore\n",
    "blanket noqa": "MISUSE()  # noqa\n",
    "in a string": 'MISUSE("# streamlint: ignore[SL001]")\n',
    "line below": "MISUSE()\n# streamlint: ignore[SL001]\n",
    "end of the line above": "x = 1  # streamlint: ignore[SL001]\nMISUSE()\n",
    "a blank line between": "# streamlint: ignore[SL001]\n\nMISUSE()\n",
    "body of the compound statement": "if MISUSE:\n    x = 1  # streamlint: ignore[SL001]\n",
    "file, too late": "x = 1\n" * 12 + "# streamlint: ignore-file[SL001]\nMISUSE()\n",
    "until today": "MISUSE()  # streamlint: ignore[SL001] small until=2026-11-20\n",
    "a date that is none": "MISUSE()  # streamlint: ignore[SL001] until=soon\n",
}


@pytest.mark.parametrize("text", HIDES.values(), ids=HIDES)
def test_hides(text):
    result = outcome(text)
    assert (result.findings, result.problems) == ([], [])


@pytest.mark.parametrize("text", SHOWS.values(), ids=SHOWS)
def test_shows(text):
    assert len(outcome(text).findings) == 1


CPP_HIDES = {
    "its line": "void f() {\n  MISUSE(1);  // streamlint: ignore[SL001] tiny\n}\n",
    "block comment": "MISUSE(1);  /* streamlint: ignore[SL001] tiny */\n",
    "statement": "k<<<1, 2>>>(MISUSE,\n  2);  // streamlint: ignore[SL001]\n",
    "above": "x();\n// streamlint: ignore[SL001]\nMISUSE(1,\n 2);\n",
    "in a lambda": "D(t, [&] {\n  a();\n  MISUSE(1,\n    2);  // streamlint: ignore[SL001]\n});\n",
    "head of a loop": "for (int i = 0; i < n;\n     MISUSE) {  // streamlint: ignore[SL001]\n  g();\n}\n",
    "define": "#define X \\\n  MISUSE() // streamlint: ignore[SL001]\n",
}
CPP_SHOWS = {
    "next statement of the lambda": "D(t, [&] {\n  MISUSE(1);\n  a();  // streamlint: ignore[SL001]\n});\n",
    "in a string": 'MISUSE("// streamlint: ignore[SL001]");\n',
    "in a raw string": 'MISUSE(R"x(\n// streamlint: ignore[SL001]\n)x");\n',
    "body": "for (;;MISUSE) {\n  g();  // streamlint: ignore[SL001]\n}\n",
}


@pytest.mark.parametrize("text", CPP_HIDES.values(), ids=CPP_HIDES)
def test_hides_in_cpp(text):
    assert outcome(text, "cuda").findings == []


@pytest.mark.parametrize("text", CPP_SHOWS.values(), ids=CPP_SHOWS)
def test_shows_in_cpp(text):
    assert len(outcome(text, "cuda").findings) == 1


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("streamlint: ignore[SL002]", "suppression of an unknown rule 'SL002'"),
        ("streamlint: ignore", "'streamlint: ignore' names no rule; write 'ignore[SL001]'"),
        ("streamlint: ignored[SL001]", "unknown comment 'streamlint: ignored'"),
        ("noqa: SL002", "suppression of an unknown rule 'SL002'"),
        ("streamlint: ignore[SL001] until=soon", "'until=soon' is no date"),
    ],
)
def test_what_is_wrong_with_a_comment(comment, message):
    (problem,) = outcome(f"MISUSE()  # {comment}\n").problems
    assert message in problem.message
    assert (problem.row, problem.column) == (1, 11)


def test_foreign_noqa_codes_are_none_of_ours():
    assert outcome("MISUSE()  # noqa: E501\n").problems == []


def test_reasons_may_be_required():
    assert outcome("MISUSE()  # streamlint: ignore[SL001] tiny\n", require_reasons=True).findings == []
    assert outcome("MISUSE()  # noqa: SL001 tiny\n", require_reasons=True).findings == []
    (finding,) = outcome("MISUSE()  # streamlint: ignore[SL001]\n", require_reasons=True).findings
    assert finding.help == "h; its suppression gives no reason, and `require-reasons` asks for one"


def test_an_end_is_told():
    (finding,) = outcome("MISUSE()  # streamlint: ignore[SL001] x until=2026-01-01\n").findings
    assert finding.help == "h; its suppression ended on 2026-01-01"


def test_unused():
    suppressions = outcome("MISUSE()  # streamlint: ignore[SL001, SL005, SL015]\n").suppressions
    (finding,) = unused("a.py", suppressions, frozenset({"SL001", "SL005"}))
    assert (finding.code, finding.name, finding.message) == ("SL900", "unused-suppression", "suppression of SL005 hides nothing")
    assert (finding.span.row, finding.span.column) == (1, 11)
    assert unused("a.py", suppressions, frozenset({"SL001"})) == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("MISUSE()  # streamlint: ignore[SL001] old until=2020-01-01\n", "MISUSE()  # streamlint: ignore[SL001] new\n"),
        ("# streamlint: ignore[SL001] old until=2020-01-01\nMISUSE()\n", "# streamlint: ignore[SL001] new\nMISUSE()\n"),
        ("MISUSE()  # streamlint: ignore[SL005] old until=2020-01-01\n", "MISUSE()  # streamlint: ignore[SL005, SL001] new\n"),
        ("MISUSE()  # streamlint: ignore[SL005] old\n", "MISUSE()  # streamlint: ignore[SL005, SL001] old\n"),
    ],
)
def test_a_comment_that_has_ended_is_renewed(text, wanted):
    """No second comment is written beside it."""
    row = next(number for number, line in enumerate(text.splitlines(), 1) if "MISUSE" in line)
    found = Finding("SL001", "unpinned-non-blocking", Category.STALL, "m", Span("a.py", row, 1, row, 7))
    assert add_ignores("a.py", text, "python", [found], "new") == (wanted, 1)
