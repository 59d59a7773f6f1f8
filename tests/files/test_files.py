"""Which files a run looks at."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streamlint.config.settings import Resolver, Settings
from streamlint.discovery.files import discover
from streamlint.support.errors import PathError

pytestmark = pytest.mark.usefixtures("made_up_rules")


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Makes empty files in the current folder."""
    monkeypatch.chdir(tmp_path)

    def make(*names):
        for name in names:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")

    return make


def found(*paths, **keys):
    attributes = {key: keys.pop(key) for key in ("force_exclude", "default_excludes") if key in keys}
    return [file.path for file in discover(paths or ["."], Resolver(Settings.of(**keys), **attributes)).files]


def test_kinds_of_files(tree):
    tree("a.py", "a.pyi", "b.pyx", "c.cu", "d.cuh", "e.cpp", "f.h", "g.hpp", "h.txt", "i.ipynb", "J.CU")
    assert found() == ["J.CU", "a.py", "b.pyx", "c.cu", "d.cuh", "e.cpp", "f.h", "g.hpp", "i.ipynb"]
    languages = {file.path: file.language for file in discover(["."], Resolver()).files}
    assert (languages["a.py"], languages["b.pyx"], languages["f.h"], languages["J.CU"], languages["i.ipynb"]) == (
        *("python", "cython", "cuda", "cuda", "python"),
    )


def test_each_file_once_and_in_order(tree):
    tree("b/z.py", "a.py")
    assert found("b", "a.py", ".", "b/z.py") == ["a.py", "b/z.py"]


@pytest.mark.parametrize(
    "folder",
    ["tests", "benchmarks", "examples", "third_party", "cutlass", "cub", "include/_cccl", "eigen", "composable_kernel", "csrc/Tests"],
)
def test_folders_left_out_by_default_when_met_on_the_way(tree, folder):
    tree(f"{folder}/a.py", "b.py")
    assert found() == ["b.py"]
    assert found(default_excludes=False) == sorted(["b.py", f"{folder}/a.py"])
    assert found(folder) == [f"{folder}/a.py"]
    assert found(f"{folder}/a.py") == [f"{folder}/a.py"]
    assert found(f"{folder}/a.py", force_exclude=True) == []


def test_vendor_is_read(tree):
    tree("vendor/a.py", "vendor/cutlass/b.cu")
    assert found() == ["vendor/a.py"]


def test_an_excluded_name_above_the_given_path_does_not_count(tree, monkeypatch):
    tree("tests/project/a.py")
    monkeypatch.chdir("tests/project")
    assert found() == ["a.py"]
    assert found("a.py", force_exclude=True) == ["a.py"]


def test_exclude_takes_the_place_of_the_default(tree):
    tree("tests/a.py", "src/b.py", ".git/c.py")
    assert found(exclude=["src"]) == ["tests/a.py"]
    assert found(extend_exclude=["src/*.py"]) == []


def test_include(tree):
    tree("a.py", "b.cu", "sub/c.cu")
    assert found(include=["*.cu"]) == ["b.cu", "sub/c.cu"]
    assert found("a.py", include=["*.cu"]) == ["a.py"]


def test_patterns_are_relative_to_their_configuration(tree):
    tree("a/gen.py", "b/gen.py")
    Path("a/streamlint.toml").write_text('extend-exclude = ["/gen.py"]\n')
    assert [file.path for file in discover(["."], Resolver()).files] == ["b/gen.py"]


def test_gitignore(tree):
    tree("a.py", "out/b.py", "sub/c.py", "sub/keep.py", "sub/deep/d.py")
    Path(".git").mkdir()
    Path(".gitignore").write_text("out/\nc.py\nkeep.py\n!!! [broken\n")
    Path("sub/.gitignore").write_text("!keep.py\ndeep\n")
    assert found() == ["a.py", "sub/keep.py"]
    assert len(found(respect_gitignore=False)) == 5
    assert found("out/b.py") == ["out/b.py"]
    assert found("out/b.py", force_exclude=True) == []


def test_gitignore_stops_at_the_repository(tree):
    tree("repository/a.py")
    Path(".gitignore").write_text("*.py\n")
    Path("repository/.git").mkdir()
    assert found("repository") == ["repository/a.py"]


def test_links_to_folders_are_not_followed(tree):
    tree("real/a.py")
    os.symlink("..", "real/up")
    os.symlink("real", "again")
    assert found() == ["real/a.py"]


def test_scripts_without_suffix(tree):
    tree("other")
    Path("tool").write_text("#!/usr/bin/env python3\n")
    assert found("tool", "other") == ["tool"]
    assert found() == []


def test_a_missing_path(tree):
    with pytest.raises(PathError, match=r"no/such.py: no such file or folder"):
        found("no/such.py")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_cannot_be_read(tree):
    tree("locked/a.py")
    Path("locked").chmod(0)
    try:
        (problem,) = discover(["."], Resolver()).problems
    finally:
        Path("locked").chmod(0o755)
    assert problem.message == "cannot read the folder: Permission denied"
