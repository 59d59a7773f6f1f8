"""``docs/reliability.md`` names tests that there are, and each file of this folder and of ``tests/fuzzing`` has a row."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
COMMAND = re.compile(r"`pytest (tests/\S+\.py)(?: -k \"?([\w ]+?)\"?)?`")


def test_each_command_of_the_page_selects_tests() -> None:
    commands = COMMAND.findall(PAGE)
    assert len(commands) > 10
    for file, words in commands:
        names = re.findall(r"def (test_\w+)", (ROOT / file).read_text(encoding="utf-8"))
        for word in words.split(" or ") if words else ["test"]:
            assert any(word in name for name in names), (file, word)


def test_each_file_has_a_row() -> None:
    told = {Path(file).name for file, _ in COMMAND.findall(PAGE)}
    folders = (Path(__file__).parent, Path(__file__).parents[1] / "fuzzing")
    assert {path.name for folder in folders for path in folder.glob("test_*.py")} - {Path(__file__).name} <= told


def test_each_row_has_a_command() -> None:
    tests = PAGE.partition("## `verify` under fire")[0]  # a script repeats those of a GPU
    rows = [line for line in tests.splitlines() if line.startswith("| ") and not line.startswith("| tried")]
    assert all(COMMAND.search(row) for row in rows)
