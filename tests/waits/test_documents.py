"""The documents of SL020 and SL021, decided from program facts: their Python sections, in both directions; and those of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from documents import DOCUMENTS, Section, options_of, read
from rename import File, misled, rename

from streamlint.findings import Finding
from streamlint.options import Source
from streamlint.waits.findings import CODES, find

UNLIKE = {
    "a divisor that a function of one line takes to each part": "a hook of autograd that divides by the number is no use that is followed",
    "meters that a table makes of what it lacks": "values that come as keywords are not followed into the objects that a table makes",
}
"""Sections that come out otherwise, and why."""
UNTOLD = {"a loss reads what it only divides by"}
"""Sections in which a further read of the same round is not told in the trail: it stands in a loop of the forward."""
OWN = sorted(Path(__file__).parent.glob("*.md"))
"""What only program facts tell."""
SECTIONS = [
    section
    for document in (*(one for one in DOCUMENTS if one.stem.startswith(("sl020", "sl021"))), *OWN)
    for section in read(document)
    if all(file.language == "python" for file in section.files)
]
Place = tuple[str, int, str]


def told(files: list[tuple[str, str]], document: str) -> list[Finding]:
    return find([Source(name, text, "python") for name, text in files], options_of(document))


def places(findings: list[Finding]) -> set[Place]:
    return {(one.span.file, one.span.row, one.code) for one in findings}


def expected(section: Section) -> set[Place]:
    return {(mark.file, mark.row, mark.code) for mark in section.marked("error") if mark.code in CODES}


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.id)
def test_document(section: Section) -> None:
    """Each line has exactly the findings that its marks tell, and the trails name the lines that they should."""
    found = told([(file.name, file.text) for file in section.files], section.document)
    alike = places(found) == expected(section)
    assert alike is (section.title not in UNLIKE), sorted(places(found) ^ expected(section))
    trails = {(step.span.file, step.span.row) for finding in found for step in finding.trail}
    untold = {(mark.file, mark.row) for mark in section.marked("trail")} - trails
    assert not alike or bool(untold) is (section.title in UNTOLD), sorted(untold)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.id)
@pytest.mark.parametrize("other", [rename, misled], ids=["neutral", "misleading"])
def test_names_mean_nothing(section: Section, other: Callable[[Iterable[File]], list[File]]) -> None:
    """Other names for what the user named change nothing."""
    files = [(file.name, file.text) for file in other(section.files)]
    same = places(told([(file.name, file.text) for file in section.files], section.document))
    assert places(told(files, section.document)) == same


def test_all_documents_are_read() -> None:
    assert len(SECTIONS) > 130
    assert {section.document for section in SECTIONS} > {"sl020", "sl020_all_loops", "sl020_possible", "sl021", "indices"}
