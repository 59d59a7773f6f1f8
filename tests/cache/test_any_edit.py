"""Whatever is edited: a run with what earlier runs kept tells what one without it tells, to the byte."""

from __future__ import annotations

import random
import textwrap
from pathlib import Path

import pytest
from cache.conftest import report
from cache.mutations import Tree, mutated
from cache.projects import PROJECT, write
from documents import DOCUMENTS, read
from thorough import cases

STEPS = 7


CPP = (".cu", ".cuh", ".cpp", ".h", ".hpp")


def tree_of(chance: random.Random, cpp: bool = False) -> dict[str, str]:
    """The project, and sections of the rules' documents beside it: those of several files count more. ``cpp``: those with C++ alone."""
    sections = [section for document in DOCUMENTS for section in read(document)]
    sections = [section for section in sections if not cpp or any(file.name.endswith(CPP) for file in section.files)]
    several = [section for section in sections if len(section.files) > 1]
    found = {name: textwrap.dedent(text) for name, text in PROJECT.items()}
    for number, section in enumerate((*chance.sample(several, 6), *chance.sample(sections, 3))):
        found |= {f"part{number}/{file.name}": file.text for file in section.files}
    return found


@pytest.mark.parametrize("cpp", [False, True])
@pytest.mark.parametrize("seed", cases(4, 6))
def test_warm_is_cold_after_any_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, cpp: bool) -> None:
    chance = random.Random(seed)
    original = tree_of(chance, cpp)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    now: Tree = dict(original)
    write(now)
    report(tmp_path / "cache")
    for step in range(STEPS):
        edit = mutated(chance, {name: text for name, text in now.items() if not cpp or name.endswith(CPP)}, original)
        now |= edit
        write(edit)
        warm = report(tmp_path / "cache")
        assert warm == report(None), f"step {step}: {edit}"
        assert report(tmp_path / "cache") == warm
