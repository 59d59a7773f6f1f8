"""Output formats on a fixed list of findings, made up: no live rule can change what stands here."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from streamlint.findings import Category, Edit, Finding, Fix, Problem, Report, Span, Step, confidence
from streamlint.report import FORMATS, View, render, statistics
from streamlint.report.terminal import width

LOADER = """import torch

def load(n):
    batch = torch.empty(n)
    for step in range(3):
\t\tbatch.to("cuda", non_blocking=True)  # 1
    return a_very_long_line(argument_one, argument_two, argument_three, other.copy(batch, stream), the_end_of_the_line)
"""
TEXTS = {"src/loader.py": LOADER, "src/o.py": "日本(x)\n"}


def span(file, row, column, end):
    return Span(file, row, column, row, end)


FINDINGS = [
    Finding(
        "SL001",
        "unpinned-non-blocking",
        Category.STALL,
        "asynchronous copy from pageable memory, which the driver may run synchronously",
        span("src/loader.py", 6, 3, 38),
        (
            Step("allocated in pageable memory here", span("src/loader.py", 4, 13, 27)),
            Step("copied again here, where a long message has to go on in further lines", span("src/loader.py", 7, 73, 98)),
            Step("called here", span("src/o.py", 1, 1, 3)),
        ),
        help="allocate with `pin_memory=True`, or call `.pin_memory()` once before the loop and keep the result",
        fix=Fix("pin it", (Edit(", pin_memory=True", span("src/loader.py", 4, 26, 26)),)),
        facts={"bytes": 67108864, "memory": "pageable"},
        qualname="load",
        related=("SL010",),
    ),
    Finding("SL005", "d2h-read-before-sync", Category.RACE, "100% read, too: early", span("src/o.py", 1, 1, 3)),
]
PROBLEMS = [Problem("src/p.py", "does not parse", 3, 4)]
EVIDENCE = {"SL005": {"verdict": "CONFIRMED", "level": "rule", "platform": "GPU", "date": "2026-11-20", "summary": "stale", "more": 1}}
VIEW = View(Report(FINDINGS, PROBLEMS, texts=TEXTS), evidence=EVIDENCE)

FULL = """\
warning: unpinned-non-blocking [SL001] asynchronous copy from pageable memory,
    which the driver may run synchronously
 --> src/loader.py:6:3
  |
4 |     batch = torch.empty(n)
  |             -------------- 1: allocated in pageable memory here
5 |     for step in range(3):
6 |         batch.to("cuda", non_blocking=True)  # 1
  |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
7 | ...t_two, argument_three, other.copy(batch, stream), the_end_of_the_line)
  |                           -------------------------
  |                           2: copied again here, where a long message has to
  |                           go on in further lines
  |
 ::: src/o.py:1:1
  |
1 | 日本(x)
  | ---- 3: called here
  |
  = help: allocate with `pin_memory=True`, or call `.pin_memory()` once before
          the loop and keep the result
  = fix: pin it (unsafe)
  = related: SL010

error: d2h-read-before-sync [SL005] 100% read, too: early
 --> src/o.py:1:1
  |
1 | 日本(x)
  | ^^^^
  |
  = verify: rule confirmed on GPU, 2026-11-20 (streamlint rule SL005)

"""


def test_full():
    assert render("full", VIEW) == FULL


def test_full_tells_what_a_run_with_the_findings_own_facts_showed():
    own = {"SL005": {**EVIDENCE["SL005"], "level": "facts"}}
    assert "  = verify: CONFIRMED on GPU, 2026-11-20, with the facts of this finding: stale\n" in render(
        "full", View(VIEW.report, evidence=own)
    )


def test_a_step_at_the_operation_itself_shares_its_underline():
    here = FINDINGS[1].span
    found = replace(FINDINGS[1], trail=(Step("allocated here", here), Step("freed here", span("src/o.py", 1, 3, 5))))
    text = render("full", View(Report([found], texts=TEXTS)))
    assert "1 | 日本(x)\n  | ^^^^ 1: allocated here\n  |     -- 2: freed here\n" in text


def test_full_is_readable_at_80_columns():
    assert max(width(line) for line in render("full", VIEW).splitlines()) <= 80


@pytest.mark.parametrize("columns", [40, 60, 120])
def test_full_keeps_to_other_widths(columns):
    lines = render("full", View(VIEW.report, width=columns)).splitlines()
    assert max(width(line) for line in lines) <= columns


def test_colours_change_nothing_but_colours():
    painted = render("full", View(VIEW.report, color=True, evidence=EVIDENCE))
    assert re.sub(r"\x1b\[[\d;]*m", "", painted) == FULL


def test_links_on_terminals():
    assert "\x1b]8;;https://" in render("full", View(VIEW.report, color=True, links=True))


def test_full_without_the_source():
    assert " --> src/o.py:1:1\n" in render("full", View(Report([FINDINGS[1]])))


def test_sources_cannot_drive_the_terminal():
    text = render("full", View(Report([FINDINGS[1]], texts={"src/o.py": "x\x1b[2J\u202e\n"})))
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_concise():
    assert render("concise", VIEW) == (
        "src/loader.py:6:3: unpinned-non-blocking [SL001] asynchronous copy from pageable memory, which the driver may run synchronously\n"
        "src/o.py:1:1: d2h-read-before-sync [SL005] 100% read, too: early\n"
    )


def test_json():
    first, second, third = json.loads(render("json", VIEW))
    marks = [entry.pop("fingerprint") for entry in (first, second, third)]
    assert len(set(marks)) == 3
    assert first == {
        "code": "SL001",
        "name": "unpinned-non-blocking",
        "category": "stall",
        "severity": "warning",
        "message": FINDINGS[0].message,
        "filename": "src/loader.py",
        "cell": None,
        "location": {"row": 6, "column": 3},
        "end_location": {"row": 6, "column": 38},
        "trail": [
            {
                "message": step.message,
                "filename": step.span.file,
                "cell": None,
                "location": {"row": step.span.row, "column": step.span.column},
                "end_location": {"row": step.span.end_row, "column": step.span.end_column},
            }
            for step in FINDINGS[0].trail
        ],
        "help": FINDINGS[0].help,
        "fix": {
            "applicability": "unsafe",
            "message": "pin it",
            "edits": [
                {
                    "content": ", pin_memory=True",
                    "filename": "src/loader.py",
                    "cell": None,
                    "location": {"row": 4, "column": 26},
                    "end_location": {"row": 4, "column": 26},
                }
            ],
        },
        "facts": {"bytes": 67108864, "memory": "pageable"},
        "confidence": confidence.level(FINDINGS[0]),
        "rank": confidence.rank(FINDINGS[0]),
        "grounds": None,
        "related": ["SL010"],
        "evidence": None,
        "url": first["url"],
    }
    assert second["severity"] == "error"
    assert second["evidence"] == {"verdict": "CONFIRMED", "level": "rule", "platform": "GPU", "date": "2026-11-20", "summary": "stale"}
    assert (third["code"], third["severity"], third["location"]) == ("SL000", "warning", {"row": 3, "column": 4})


def test_json_lines():
    lines = render("json-lines", VIEW).splitlines()
    assert [json.loads(line) for line in lines] == json.loads(render("json", VIEW))


def test_github():
    error, warning, problem = render("github", VIEW).splitlines()
    assert error == (
        "::error title=streamlint%3A d2h-read-before-sync (SL005),file=src/o.py,line=1,col=1,endLine=1,endColumn=3::"
        "src/o.py:1:1: d2h-read-before-sync [SL005] 100%25 read, too: early"
    )
    assert warning.startswith("::warning title=streamlint%3A unpinned-non-blocking (SL001),file=src/loader.py,line=6,")
    assert "%0A  src/loader.py:4: allocated in pageable memory here%0A" in warning
    assert problem.startswith("::warning title=streamlint%3A unreadable-source (SL000),file=src/p.py,line=3,")


@pytest.mark.parametrize("format", sorted({*FORMATS} - {"sarif", "junit", "rdjson", "markdown"}))
def test_nothing_to_report(format):
    assert render(format, View(Report())) == ("[]\n" if format in ("json", "gitlab") else "")


def test_statistics():
    view = View(Report([*FINDINGS, FINDINGS[1]]))
    assert statistics.render(view) == "2\tSL005\t[ ] d2h-read-before-sync\n1\tSL001\t[*] unpinned-non-blocking\n"
