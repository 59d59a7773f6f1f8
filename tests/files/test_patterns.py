"""Patterns are those of pathspec, which is asked only where one may match."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from pathspec import GitIgnoreSpec

from streamlint.discovery.patterns import Patterns

WORDS = (
    "a",
    "b",
    "ab",
    "a.py",
    "b.log",
    "build",
    " a",
    "*",
    "**",
    "*.py",
    "a*",
    "*b*",
    "?",
    "a?.py",
    "[ab]",
    "*.py[co]",
    "[!a]",
    "x[a-c]",
    "a**b",
    "",
)


def pattern(draw: random.Random) -> str:
    body = "/".join(draw.choice(WORDS) for _ in range(draw.randint(1, 3)))
    return draw.choice(("", "", "!", "/", "\\")) + body + draw.choice(("", "", "/", " ", "\\ "))


@pytest.mark.parametrize("seed", range(300))
def test_what_pathspec_says(seed: int) -> None:
    draw = random.Random(seed)
    lines: list[str] = []
    while len(lines) < 1 + seed % 5:
        line = pattern(draw)
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            continue
        lines.append(line)
    ours, theirs = Patterns(tuple(lines)), GitIgnoreSpec.from_lines(lines)
    for _ in range(60):
        path = "/".join(
            draw.choice(("a", "b", "ab", "a.py", "b.log", "build", "xb", "ab.py", "a.pyc", "a\nb")) for _ in range(draw.randint(1, 4))
        )
        path += draw.choice(("", "/"))
        assert ours.verdict(path) == theirs.check_file(path).include, (lines, path)


def test_most_paths_need_no_library(tmp_path: Path) -> None:
    lines = ["__pycache__/", "*.py[cod]", "*$py.class", "*.egg-info/", "/docs/_build/", ".venv", "*.log", "**/.cache", "!keep.log"]
    known = Patterns(tuple(lines))
    assert not known.may_know("streamlint/docs/files.py")
    assert known.may_know("streamlint/keep.log")
    assert known.may_know("a/b.pyc")
    (tmp_path / ".gitignore").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "a.py").write_text("x = 1\n", encoding="utf-8")
    script = (
        "import sys; from streamlint.discovery.files import discover; from streamlint.config.settings import Resolver, Settings\n"
        "assert [file.path for file in discover(['.'], Resolver(Settings())).files] == ['a.py']\nassert 'pathspec' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
