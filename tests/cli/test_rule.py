"""``streamlint rule``: pages from docstrings and measured figures."""

from __future__ import annotations

import json

import pytest

from streamlint import cli
from streamlint.checks.rules import all_rules
from streamlint.commands.rule import wrapped
from streamlint.findings import measured

RECORD = {
    "verdict": "CONFIRMED",
    "case": "comment",
    "api": "torch",
    "prediction": "nothing waits",
    "platform": {"gpu": "NVIDIA H200", "driver": "580.159", "cuda_runtime": "13.0"},
    "date": "2026-11-20",
    "misuse": {"slope": 0.98765},
    "remedy": {"slope": 0.01},
}


@pytest.fixture
def recorded(monkeypatch):
    monkeypatch.setattr(measured, "records", lambda code: (RECORD,) if code == "SL900" else ())


def test_a_page(capsys, recorded):
    assert cli.main(["rule", "unused-suppression"]) == 0
    page = capsys.readouterr().out
    head = "# unused-suppression (SL900)\n\nportability · note · off unless selected\n\nA suppression comment hides nothing.\n"
    assert page.startswith(head)
    assert "## What it does\n" in page
    assert page.endswith(
        "## Measured\n\n* **CONFIRMED** comment · torch: nothing waits\n  NVIDIA H200 · driver 580.159 · CUDA 13.0 · 2026-11-20\n"
        "  misuse: slope 0.9877\n  remedy: slope 0.01\n"
    )


def test_a_page_fits_the_terminal(capsys):
    """Paragraphs are folded anew between words; code, headings and items keep their lines."""
    page = (
        "## What it does\n\none two three four five six seven\neight nine ten eleven twelve\n\n```python\n"
        + "x" * 60
        + "\n```\n\n- "
        + "item " * 10
    )
    assert wrapped(page, 40) == (
        "## What it does\n\none two three four five six seven eight\nnine ten eleven twelve\n\n```python\n" + "x" * 60 + "\n```\n\n"
        "- item item item item item item item\n  item item item"
    )
    assert wrapped(page, 0) == page


def test_a_page_tells_how_many_findings_were_judged(capsys, monkeypatch):
    monkeypatch.setattr(measured, "judged", lambda: {"SL900": {"judged": 3, "real": 2, "not_real": 1, "unclear": 0}})
    assert cli.main(["rule", "SL900"]) == 0
    assert "## Judged\n\n3 findings on released packages judged: 2 real, 1 not real.\n" in capsys.readouterr().out
    monkeypatch.setattr(measured, "judged", dict)
    assert cli.main(["rule", "SL900"]) == 0
    assert "No finding on a released package has been judged." in capsys.readouterr().out


def test_without_measurements(capsys, monkeypatch):
    monkeypatch.setattr(measured, "records", lambda code: ())
    assert cli.main(["rule", "SL900"]) == 0
    assert "Measured" not in capsys.readouterr().out


def test_json(capsys, recorded):
    assert cli.main(["rule", "SL900", "--output-format", "json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert (page["code"], page["default"], page["evidence"][0]["verdict"]) == ("SL900", "off", "CONFIRMED")
    assert "What it does" in page["sections"]


def test_all(capsys):
    assert cli.main(["rule", "--all", "--output-format", "json"]) == 0
    codes = [page["code"] for page in json.loads(capsys.readouterr().out)]
    assert codes == sorted(codes)
    assert {"SL000", "SL900"} <= set(codes)


def test_evidence_of_a_finding(recorded):
    assert measured.summary("SL001") is None
    assert measured.summary("SL900") == {
        "verdict": "CONFIRMED",
        "level": "rule",
        "platform": "NVIDIA H200 · driver 580.159 · CUDA 13.0",
        "date": "2026-11-20",
        "summary": "nothing waits",
    }


def test_without_a_name_the_table_of_rules(capsys):
    assert cli.main(["rule"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert cli.main(["rules"]) == 0
    assert rows == capsys.readouterr().out.splitlines()
    assert cli.main(["rule", "--output-format", "json"]) == 0
    assert [page["code"] for page in json.loads(capsys.readouterr().out)] == list(all_rules()) == [row.split()[0] for row in rows[1:]]
