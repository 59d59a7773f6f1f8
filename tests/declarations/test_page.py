"""The examples of docs/declaring.md have the findings that stand there, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documents import ON

from streamlint.checks.catalog import CONTRADICTED
from streamlint.config.options import Options, Source
from streamlint.runner.engine import analyse
from streamlint.support.declared_words import VOCABULARY

PAGE = (Path(__file__).parents[2] / "docs" / "declaring.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"<!-- code: (\w+) -->\n```(python|cuda)\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("language", "text"), [each[1:] for each in EXAMPLES], ids=[each[0] for each in EXAMPLES])
def test_examples(language, text):
    report = analyse([Source("example", text, language)], Options(codes=ON | {CONTRADICTED}))
    said = {(row, code) for row, line in enumerate(text.splitlines(), 1) for code in re.findall(r"SL\d{3}", line)}
    assert report.problems == []
    assert {(one.span.row, one.code) for one in report.findings} == said


def test_all_words_are_listed():
    table = PAGE[PAGE.index("## The words") : PAGE.index("The list is closed")]
    assert set(re.findall(r"`([\w-]+)`", table)) == set(VOCABULARY)
