"""Our own model files are read by a reader of less than TOML, which knows when it is at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlint import models
from streamlint.support.toml import read_rows

try:
    import tomllib
except ModuleNotFoundError:
    import tomli as tomllib

FILES = sorted(Path(models.__file__).parent.glob("*.toml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_reads_what_toml_says(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert read_rows(text) == tomllib.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        "a = 'b'",
        "a = 1_000",
        'a = {b = "c"}',
        '[a]\nb = "c"',
        'a = "b"\na = "c"',
        'a = [\n  "b",  # why\n  "c",\n]',
        'a = "b" c',
        '[[a]]x\nb = "c"',
        'a = """b"""',
        '"a b" = 1',
        "  a = 1",
    ],
)
def test_it_leaves_what_it_does_not_know(text: str) -> None:
    assert read_rows(text) is None


def test_a_comment_behind_a_value() -> None:
    assert read_rows('a = "b # c"  # d\nb = ["e", "f",]\n') == {"a": "b # c", "b": ["e", "f"]}


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("a.*.b", "a.x.y.b", True),
        ("a.*.b", "a.b", False),
        ("*a", "a", True),
        ("a*a", "a", False),
        ("a*b*c", "abxbc", True),
        ("a*bb*c", "abxbc", False),
    ],
)
def test_patterns(pattern: str, name: str, fits: bool) -> None:
    assert models.is_covered(pattern.split("*"), name) is fits
