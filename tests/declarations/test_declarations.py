"""What users declare in code, by documents as those of the rules: ``*.md`` beside this file, with the rules that are on and SL901."""

from __future__ import annotations

from pathlib import Path

import pytest
from documents import ON, SUFFIXES, read

from streamlint.checks.catalog import CONTRADICTED
from streamlint.config.options import Options, Source
from streamlint.runner.engine import analyse

SECTIONS = [section for document in sorted(Path(__file__).parent.glob("*.md")) for section in read(document)]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.id)
def test_sections(section, tmp_path):
    sources = []
    for file in section.files:
        path = tmp_path / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8")
        sources.append(Source(str(path), file.text, file.language))
    assert {source.language for source in sources} <= set(SUFFIXES)
    report = analyse(sources, Options(codes=ON | {CONTRADICTED, *(mark.code for mark in section.marked("error"))}))
    assert report.problems == []

    def name(path):
        return Path(path).relative_to(tmp_path).as_posix()

    found = {(name(one.span.file), one.span.row, one.code) for one in report.findings}
    assert found == {(mark.file, mark.row, mark.code) for mark in section.marked("error")}
    for mark in section.marked("error"):
        messages = [one.message for one in report.findings if one.code == mark.code and one.span.row == mark.row]
        assert any(mark.text in message for message in messages), messages
    steps = [(name(step.span.file), step.span.row, step.message) for one in report.findings for step in one.trail]
    for mark in section.marked("trail"):
        assert any((file, row) == (mark.file, mark.row) and mark.text in message for file, row, message in steps), steps
