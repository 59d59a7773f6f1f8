"""What is printed of each source of the documents is what stands below it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from ir_documents import DOCUMENTS, Section, read

from streamlint.frontends import UnreadableSource

SECTIONS = [section for document in DOCUMENTS for section in read(document)]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: f"{section.document}: {section.title}")
def test_a_section(section: Section) -> None:
    try:
        printed = section.printed()
    except UnreadableSource:
        if sys.version_info >= section.since:
            raise
        pytest.skip(f"this Python reads no Python 3.{section.since[1]}")
    assert printed == section.expected


def test_each_heading_is_a_section_of_its_own() -> None:
    headings = [
        (document.stem, line.removeprefix("## "))
        for document in DOCUMENTS
        for line in document.read_text(encoding="utf-8").splitlines()
        if line.startswith("## ")
    ]
    assert [(section.document, section.title) for section in SECTIONS] == headings
    assert len(set(headings)) == len(headings)
    assert len(headings) >= 150
