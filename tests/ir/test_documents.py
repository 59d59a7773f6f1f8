"""What is printed of each source of the documents is what stands below it."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from ir_documents import DOCUMENTS, Section, read

SECTIONS = [section for document in DOCUMENTS for section in read(document)]
LIBCST = tuple(int(part) for part in metadata.version("libcst").split(".")[:2])  # reads what the running Python is too old for


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: f"{section.document}: {section.title}")
def test_a_section(section: Section) -> None:
    if sys.version_info < section.since and LIBCST < (1, 9):
        pytest.skip(f"neither this Python nor this libcst reads Python 3.{section.since[1]}")
    assert section.printed() == section.expected


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
