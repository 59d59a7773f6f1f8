"""The page on the architecture: what it prints of its program is printed, and it stays short."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from streamlint import cli
from streamlint_docs import DOCS

PAGE = (DOCS / "architecture.md").read_text(encoding="utf-8")
PROGRAM = re.search(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SHOWN = [textwrap.dedent(body) for body in re.findall(r"^    ```text\n(.*?)^    ```$", PAGE, re.MULTILINE | re.DOTALL)]
COMMANDS = (
    ("debug", "ir", "train.py:note"),
    ("debug", "hot", "train.py:8"),
    ("check", "train.py", "--isolated", "--no-cache", "--output-format", "concise"),
)


@pytest.mark.parametrize(("words", "shown"), [*zip(COMMANDS, SHOWN, strict=True)])
def test_what_the_page_shows_is_printed(words, shown, tmp_path: Path, monkeypatch, capsys):
    assert PROGRAM
    (tmp_path / "train.py").write_text(PROGRAM[1], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    cli.main(list(words))
    assert capsys.readouterr().out.replace(f"{tmp_path}/", "").startswith(shown)


def test_the_page_is_short():
    assert len(PAGE.split()) <= 1500
