"""The rules' documents: code with the expected findings on its lines.

A document is a Markdown file beside this one. Each ``## section`` holds one or more fenced blocks (``python``, ``cuda``, or any
other language for a file that is only written to disk, such as a CMakeLists.txt). A block may name its file in a first comment:
``# file: name.py``. Marks, in a comment at the end of a line (``//`` in C++); several marks may follow each other:

    # error: [SL001]            this line has exactly these findings
    # error: [SL001] "text"     … and the message contains the text
    # trail: text               some finding's trail has a step on this line that contains the text (which may be empty)
    # orders                    the one operation that makes the section right: a second test deletes this line
    # without-orders: [SL005]   … and then expects this finding as well
    # MISSING: [SL001]          a known limit: should be found, is not
    # SPURIOUS: [SL001]         a known limit: is found, should not be
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from documents import DOCUMENTS, SUFFIXES, Mark, Section, options_of, read
from rename import File, misled, rename
from thorough import count
from wording import misshapen, misworded

from streamlint.checks.base import registry
from streamlint.config.options import Source
from streamlint.findings import Finding, Report
from streamlint.runner.engine import analyse

Place = tuple[str, int, str]  # file, row, code

SECTIONS = [section for document in DOCUMENTS for section in read(document)]


def lint(folder: Path, files: Iterable[File], document: str) -> Report:
    """Write the files and lint those that are code, with the rules that are on and the document's own; one on all loops asks for them."""
    sources = []
    for file in files:
        path = folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8")
        if file.language in SUFFIXES:
            sources.append(Source(str(path), file.text, file.language))
    return analyse(sources, options_of(document))


def places(folder: Path, findings: Iterable[Finding]) -> set[Place]:
    return {(Path(found.span.file).relative_to(folder).as_posix(), found.span.row, found.code) for found in findings}


def expected(marks: Iterable[Mark]) -> set[Place]:
    return {(mark.file, mark.row, mark.code) for mark in marks}


def twice(findings: Iterable[Finding]) -> list[tuple[str, int, int, str]]:
    """Findings that are reported more than once."""
    return [place for place, count in Counter(found.sort_key() for found in findings).items() if count > 1]


def differences(section: Section, files: Iterable[File], found: set[Place], wanted: set[Place]) -> str:
    """What is wrong, line by line; empty where all is right."""
    texts = {file.name: file.text.split("\n") for file in files}
    spurious = expected(section.marked("SPURIOUS"))
    limits = expected(section.marked("MISSING"))
    report = []
    for title, places_of in (("not found", wanted - found), ("unexpected", found - wanted)):
        for file, row, code in sorted(places_of):
            note = ""
            if title == "not found" and (file, row, code) in spurious:
                note = " (a known limit is mended: remove SPURIOUS)"
            if title == "unexpected" and (file, row, code) in limits:
                note = " (a known limit is mended: write error instead of MISSING)"
            report.append(f"{title}: {file}:{row} {code}{note}\n    {texts[file][row - 1].strip()}")
    return "\n".join(report)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder whose name says nothing of tests, which rules may treat with indulgence."""
    return tmp_path_factory.mktemp("project").resolve()


def ids(sections: Iterable[Section]) -> list[str]:
    return [section.id for section in sections]


@pytest.mark.parametrize("section", SECTIONS, ids=ids(SECTIONS))
def test_document(section: Section, folder: Path) -> None:
    report = lint(folder, section.files, section.document)
    assert not report.problems
    assert not twice(report.findings)
    wrong = differences(section, section.files, places(folder, report.findings), expected(section.marked("error", "SPURIOUS")))
    assert not wrong, f"{section.id}\n{wrong}"
    for mark in section.marked("error"):
        messages = [f.message for f in report.findings if f.span.row == mark.row and f.code == mark.code]
        assert any(mark.text in message for message in messages), f"line {mark.row}: {mark.text!r} is in none of {messages}"
    assert {text: wrong for found in report.findings for text, wrong in misworded(found).items()} == {}
    assert {found.message: wrong for found in report.findings if (wrong := misshapen(found))} == {}
    steps = [step for found in report.findings for step in found.trail]
    for mark in section.marked("trail"):
        here = [s.message for s in steps if s.span.row == mark.row and Path(s.span.file).name == Path(mark.file).name]
        assert any(mark.text in message for message in here), f"line {mark.row}: no trail step says {mark.text!r}, only {here}"


PYTHON = [section for section in SECTIONS if any(file.language == "python" for file in section.files)]
EACH = count(2, 1)
"""Sections are linted with other names or with misleading ones in turn; with ``STREAMLINT_TESTS_THOROUGH=1`` each is with both."""


@pytest.mark.parametrize("section", PYTHON[::EACH], ids=ids(PYTHON[::EACH]))
def test_names_mean_nothing(section: Section, folder: Path) -> None:
    """A rule that went by the names of variables would change its mind."""
    files = rename(section.files)
    report = lint(folder, files, section.document)
    wrong = differences(section, files, places(folder, report.findings), expected(section.marked("error", "SPURIOUS")))
    assert not wrong, f"{section.id}\n{wrong}"


@pytest.mark.parametrize("section", PYTHON[EACH - 1 :: EACH], ids=ids(PYTHON[EACH - 1 :: EACH]))
def test_misleading_names_mean_nothing(section: Section, folder: Path) -> None:
    """Nor do names that hold a word which the engine looks for."""
    files = misled(section.files)
    report = lint(folder, files, section.document)
    wrong = differences(section, files, places(folder, report.findings), expected(section.marked("error", "SPURIOUS")))
    assert not wrong, f"{section.id}\n{wrong}"


ORDERED = [section for section in SECTIONS if section.marked("orders")]


@pytest.mark.parametrize("section", ORDERED, ids=ids(ORDERED))
def test_without_order(section: Section, folder: Path) -> None:
    """Deleting the one operation that orders a good section makes it bad."""
    gone = {(mark.file, mark.row) for mark in section.marked("orders")}
    files = [
        File(f.name, f.language, "\n".join("" if (f.name, row) in gone else line for row, line in enumerate(f.text.split("\n"), 1)))
        for f in section.files
    ]
    report = lint(folder, files, section.document)
    wanted = expected(section.marked("error", "SPURIOUS", "without-orders"))
    wrong = differences(section, files, places(folder, report.findings), wanted)
    assert not wrong, f"{section.id}\n{wrong}"


def test_every_rule_is_found_somewhere() -> None:
    assert {mark.code for section in SECTIONS for mark in section.marked("error")} == set(registry())


def test_ids_are_unique() -> None:
    assert not [name for name, count in Counter(ids(SECTIONS)).items() if count > 1]


def test_orders_come_in_pairs() -> None:
    wrong = [s.id for s in SECTIONS if bool(s.marked("orders")) != bool(s.marked("without-orders"))]
    assert not wrong


@pytest.mark.parametrize("section", PYTHON, ids=ids(PYTHON))
def test_snippets_parse(section: Section) -> None:
    """As they stand, renamed, and without the line that orders."""
    gone = {(mark.file, mark.row) for mark in section.marked("orders")}
    for before, after in zip(section.files, rename(section.files), strict=True):
        if before.language == "python":
            ast.parse(before.text)
            assert len(before.text.split("\n")) == len(after.text.split("\n"))
            lines = after.text.split("\n")
            ast.parse("\n".join(lines))
            ast.parse("\n".join("" if (before.name, row) in gone else line for row, line in enumerate(lines, 1)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("## one\n\n```python\nx = 1\n\n## two\n\n```python\nx = 2\n```\n", "page.md:3: the fence is not closed in its section"),
        ("## one\n\n```python\nx = 1\n\n```cuda\nint x;\n```\n", "page.md:3: the fence is not closed in its section"),
        ("## one\n\n```python\nx = 1\n```\n\nx = 2\n```\n", "page.md:8: a fence opens with its language alone"),
        ("## one\n\n```python file=one.py\nx = 1\n```\n", "page.md:3: a fence opens with its language alone"),
    ],
)
def test_a_fence_that_is_not_closed_is_refused(text: str, said: str, tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text(text)
    with pytest.raises(ValueError, match=re.escape(said)):
        list(read(document))
