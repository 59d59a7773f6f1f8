"""Errors of a configuration carry the line of the key."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from streamlint.config.settings import load
from streamlint.support.errors import ConfigError
from streamlint.support.toml_lines import heads_of, line_of

PROJECT = '''[project]
name = "selct"
description = """
[tool.streamlint]
selct = []
"""

[tool.other]
selct = 1

[tool.streamlint]
preview = true
select = [
    "SL001",
    "SL005",
]
'''


@pytest.mark.parametrize(
    ("more", "line", "message"),
    [
        ("selct = []\n", 17, ": unknown key 'selct'; did you mean 'select'?"),
        ('ignore = [\n "SL9999",\n]\n', 17, ": unknown rule 'SL9999'"),
        ('"baseline" = 3\n', 17, ": baseline: expected a path, not 3"),
        (
            '\n[[tool.streamlint.models]]\nlibrary = "torch"\n\n[[tool.streamlint.models]]\nlibary = "torch"\n',
            22,
            ": models[1]: unknown key",
        ),
        (
            '\n[[tool.streamlint.models]]\nlibrary = "torch"\n\n[[tool.streamlint.models.call]]\nnames = "a.b"\neffect = "copy"\nraw = 1\n',
            24,
            ": models[0]: a.b: effect 'copy' has no 'raw'",
        ),
        ('\n[tool.streamlint.per-file-ignores]\n"a.py" = ["SL9999"]\n', 18, ": per-file-ignores: unknown rule"),
        ("extend = 1\n", 17, ": extend: expected a path"),
    ],
)
def test_the_line_of_an_error(tmp_path: Path, more: str, line: int, message: str) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(PROJECT + more)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}:{line}{message}")


def test_heads_of_lists_are_found_in_one_pass() -> None:
    text = "[[a]]\nx = 1\n[[a.b]]\n[[ a . b ]]  # more\n[[a]]\n[[a.b]]\n"
    assert heads_of(text) == {("a", 0): 1, ("a", 0, "b", 0): 3, ("a", 0, "b", 1): 4, ("a", 1): 5, ("a", 1, "b", 0): 6}
    assert line_of(text, ("a", 1, "b", 0)) == 6
    assert line_of(text, ("a", 1, "b", 1)) is None


def test_a_head_in_a_string_is_none() -> None:
    text = "[[a]]\nx = '''\n[[a]]\n'''\n[[a]]\n"
    assert heads_of(text) == {}
    assert line_of(text, ("a", 1)) == 5
    assert heads_of("[[a]\n") == heads_of("a = [{b = 1}]\n") == {}


def test_the_lines_of_many_rows_take_no_time(tmp_path: Path) -> None:
    rows = "".join(f'\n[[models.call]]\nnames = "acme.f{number}"\neffect = "touch"\n' for number in range(300))
    text = "[[models]]\n" + rows
    start = time.perf_counter()
    assert [line_of(text, ("models", 0, "call", number)) for number in range(300)] == [3 + 4 * number for number in range(300)]
    assert time.perf_counter() - start < 5


def test_the_parser_decides() -> None:
    keys = ("tool", "streamlint", "select")
    assert line_of(PROJECT, keys) == 13
    assert line_of(PROJECT, ("tool", "streamlint", "selct")) is None
    assert line_of(PROJECT.replace("\n", "\r\n"), keys) == 13
    assert line_of("a = \n", ("a",)) is None
