"""``streamlint rules``: the list of rules, and what is on where it is asked."""

from __future__ import annotations

import json

import pytest

from streamlint import cli
from streamlint.commands import rules

pytestmark = pytest.mark.usefixtures("made_up_rules")
HEAD = "code   rule                      here  default  fix  languages            finds\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def on(capsys, *words):
    assert cli.main(["rules", "--output-format", "json", *words]) == 0
    return [row["code"] for row in json.loads(capsys.readouterr().out) if row["enabled"]]


def test_the_list(here, capsys):
    assert cli.main(["rules"]) == 0
    assert capsys.readouterr().out == (
        HEAD + "SL000  unreadable-source         on    off      -    Python, Cython, C++  "
        "A file, or a whole function, could not be read or parsed\n"
        "SL001  unpinned-non-blocking     on    on       -    Python, C++          Made up unpinned-non-blocking\n"
        "SL005  d2h-read-before-sync      on    on       -    Python, C++          Made up d2h-read-before-sync\n"
        "SL007  missing-record-stream     off   preview  -    Python, C++          Made up missing-record-stream\n"
        "SL015  blocking-stream           off   off      -    Python, C++          Made up blocking-stream\n"
        "SL900  unused-suppression        off   off      -    Python, Cython, C++  A suppression comment hides nothing\n"
        "SL901  contradicted-declaration  on    on       -    Python, C++          "
        "The program contradicts a declaration of memory or of a stream\n"
    )


def test_what_is_on_is_what_this_folder_says(here, capsys):
    (here / "streamlint.toml").write_text('select = ["SL015"]\nextend-select = ["SL900"]\n')
    assert on(capsys) == ["SL000", "SL015", "SL900"]
    assert on(capsys, "--isolated", "--preview") == ["SL000", "SL001", "SL005", "SL007", "SL901"]
    assert on(capsys, "--select", "SL0,SL9", "--ignore", "SL005") == ["SL000", "SL001", "SL015", "SL901"]
    assert on(capsys, "--config", 'ignore = ["SL000", "SL015"]') == ["SL900"]


def test_only_what_is_on(here, capsys):
    assert cli.main(["rules", "--enabled", "--select", "SL001"]) == 0
    assert [row.split()[0] for row in capsys.readouterr().out.splitlines()] == ["code", "SL000", "SL001"]


def test_json_has_what_a_program_asks_for(here, capsys):
    assert cli.main(["rules", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[1] == {
        "code": "SL001",
        "name": "unpinned-non-blocking",
        "summary": "Made up unpinned-non-blocking",
        "category": "stall",
        "severity": "warning",
        "default": "on",
        "enabled": True,
        "fixes": [],
        "languages": ["Python", "C++"],
        "url": "https://streamlint.readthedocs.io/rules/unpinned-non-blocking/",
    }


def test_markdown_is_a_table(here, capsys):
    assert cli.main(["rules", "--output-format", "markdown", "--enabled", "--select", "SL015"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["| code | rule | here | default | fix | languages | finds |", "|---|---|---|---|---|---|---|"]
    assert lines[3] == (
        "| SL015 | [blocking-stream](https://streamlint.readthedocs.io/rules/blocking-stream/) | on | off | - | Python, C++ | "
        "Made up blocking-stream |"
    )


@pytest.mark.parametrize("columns", [100, 130])
def test_on_a_terminal_summaries_are_folded(here, capsys, monkeypatch, columns):
    monkeypatch.setattr(rules.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", str(columns))
    assert cli.main(["rules", "--isolated"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    assert ("       Made up blocking-stream (Python, C++)" in lines) is (columns < 110)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--select", "SL002"], "streamlint: command line: unknown rule 'SL002'; did you mean"),
        (["--selct", "SL001"], "streamlint rules: unknown option '--selct'; did you mean '--select'?"),
        (["--format", "xml"], "invalid choice: 'xml'"),
        (["src"], "unknown option 'src'"),
    ],
)
def test_mistakes(here, capsys, words, told):
    assert cli.main(["rules", *words]) == 2
    assert told in capsys.readouterr().err
