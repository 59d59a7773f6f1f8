"""Records survive parallel and killed writers, damage, full disks and folders that cannot be written; a warm run loads no parser."""

from __future__ import annotations

import errno
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cache.conftest import report
from cache.projects import PROJECT, write
from platformdirs import user_cache_dir

from streamlint import cli
from streamlint.cache.store import PACKAGE, Store, clean, folder_of

Check = Callable[..., tuple[int, str]]


def test_a_record_comes_back(tmp_path: Path) -> None:
    Store(tmp_path).write("units", "a", {"x": [1, None, "é\ud800"]})
    assert Store(tmp_path).read("units", "a") == {"x": [1, None, "é\ud800"]}
    assert Store(tmp_path).read("units", "b") is None


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_damage_is_absence(tmp_path: Path, damage: str) -> None:
    store = Store(tmp_path)
    store.write("units", "a", {"findings": ["one", "two"]})
    path = store.folder / "units" / "a"
    data = path.read_bytes()
    path.write_bytes({"cut": data[:-3], "flipped": data.replace(b"two", b"tvo"), "empty": b""}[damage])
    assert store.read("units", "a") is None
    store.write("units", "a", {})
    assert store.read("units", "a") == {}


def test_damaged_records_of_a_run_are_made_again(cache: Path) -> None:
    before = report(cache)
    for number, path in enumerate(sorted(cache.rglob("*/*/*"))):
        if path.is_file():
            path.write_bytes(path.read_bytes()[: -number - 1])
    assert report(cache) == before


def _write_much(base: Path) -> None:
    store = Store(base)
    for number in range(50):
        store.write("units", str(number % 5), {"number": ["x" * 5000] * (number % 7)})


def test_parallel_writers(tmp_path: Path) -> None:
    Store(tmp_path)
    writers = [multiprocessing.get_context("fork").Process(target=_write_much, args=(tmp_path,)) for _ in range(4)]
    for writer in writers:
        writer.start()
    writers[0].kill()
    for writer in writers:
        writer.join()
    store = Store(tmp_path)
    for number in range(5):
        assert set(store.read("units", str(number))["number"]) <= {"x" * 5000}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_what_cannot_be_written_is_said_once(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.delenv("STREAMLINT_NO_CACHE")
    monkeypatch.setattr(os, "replace", refuse)
    empty = str(cache.parent / "empty")
    words = ["check", ".", "--output-format", "github", "--jobs", "1"]
    assert cli.main([*words, "--no-cache"]) == 1
    cold = capsys.readouterr()
    assert cli.main([*words, "--cache-dir", empty]) == 1
    told = capsys.readouterr()
    assert told.out == cold.out
    assert told.err.count("the cache in") == 1
    assert os.strerror(number) in told.err
    assert not [path for path in Path(empty).rglob("*") if path.name.startswith(".") and path.name != ".gitignore"]


def test_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMLINT_CACHE_DIR", str(tmp_path))
    assert folder_of() == tmp_path / "check"
    assert folder_of(Path("x")) == Path("x")
    monkeypatch.delenv("STREAMLINT_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    if sys.platform == "linux":
        assert folder_of() == tmp_path / "home" / "streamlint" / "check"


@pytest.mark.parametrize("home", [None, "", "/home/a", "a", "/home/a/"])
@pytest.mark.parametrize("said", [None, "", " ", "/x", "/x/ ", "x", "~/x", "/x/"])
def test_the_platforms_folder(said: str | None, home: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STREAMLINT_CACHE_DIR", raising=False)
    for name, value in (("XDG_CACHE_HOME", said), ("HOME", home)):
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    assert folder_of() == Path(user_cache_dir("streamlint", appauthor=False)) / "check"


def test_clean(check: Check, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (cache / "check").mkdir(exist_ok=True)
    (cache / "check" / "mine.txt").write_text("mine")
    check("app")
    assert list((cache / "check").glob("v*"))
    assert cli.main(["clean"]) == 0
    assert "removed" in capsys.readouterr().err
    assert [path.name for path in (cache / "check").iterdir() if not path.name.startswith((".", "CACHEDIR"))] == ["mine.txt"]
    assert clean(cache / "check") == 0


def test_no_cache_writes_nothing(check: Check, cache: Path) -> None:
    check("app", "--no-cache")
    assert not (cache / "check").exists()


HEAVY = (
    "tree_sitter", "tree_sitter_cuda", "streamlint.runner.tasks", "ahocorasick_rs", "streamlint.checks.base", "streamlint.models",
    "streamlint.findings.operations", "multiprocessing", "tomllib",
)  # fmt: skip
ASK = f"import sys; from streamlint import cli; cli.main(sys.argv[1:]); print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr)"


def modules(cache: Path, *words: str) -> str:
    env = {**os.environ, "STREAMLINT_CACHE_DIR": str(cache), "STREAMLINT_NO_CACHE": "", "PYTHONPATH": str(PACKAGE.parent)}
    run = subprocess.run([sys.executable, "-c", ASK, "check", *words, "-q"], env=env, capture_output=True, text=True, timeout=120)
    return run.stderr.splitlines()[-1]


def test_a_warm_run_loads_no_parser(cache: Path) -> None:
    words = ("app", "--no-default-excludes", "--output-format", "full")
    assert "streamlint.runner.tasks" in modules(cache, *words)
    for name in PROJECT:  # else the files are too fresh for their dates to be trusted, and are hashed again
        os.utime(name, (1e9, 1e9))
    modules(cache, *words)
    assert modules(cache, *words) == "[]"


def test_a_run_with_no_roots_loads_no_parser(cache: Path) -> None:
    write({"empty/plain.py": "def add(a, b):\n    return a + b\n"})
    assert modules(cache, "empty", "--no-cache") == "['ahocorasick_rs']"


@pytest.mark.parametrize("ours", [True, False], ids=["ours", "of others"])
def test_what_others_keep_in_the_folder_stays(tmp_path: Path, ours: bool) -> None:
    """A configuration may name any folder: the root of the repository, or a home."""
    old = 40 * 86_400
    names = ("v2/photos/a.jpg", "vendor/x/y.c", "v1-old/runs/a", "code/main.py", ".gitignore", "pruned/a", "v1-backup/kept/b")
    for name in () if ours else names:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
        os.utime(path, (time.time() - old,) * 2)
    first = Store(tmp_path)
    first.write("units", "0" * 32, {})
    assert (tmp_path / "CACHEDIR.TAG").exists() is ours
    os.utime(first.folder / "units" / ("0" * 32), (time.time() - old,) * 2)
    (tmp_path / "pruned").unlink() if ours else None
    Store(tmp_path).write("units", "1" * 32, {})
    assert not (first.folder / "units" / ("0" * 32)).exists() or not ours
    assert clean(tmp_path) == (1 if ours else 2)
    assert [name for name in names if not ours and (tmp_path / name).read_text() != "mine"] == []
    assert not first.folder.exists()


def test_links_in_the_folder_lead_nowhere(tmp_path: Path) -> None:
    """Who commits a cache may put links in it."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ("a" * 32)).write_text("mine")
    os.utime(tmp_path / "home" / ("a" * 32), (0, 0))
    base = tmp_path / "cache"
    store = Store(base)
    store.folder.mkdir(parents=True)
    (store.folder / "runs").symlink_to(tmp_path / "home")
    (base / f"v9-{'b' * 32}").symlink_to(tmp_path)
    Store(base).write("units", "1" * 32, {})
    clean(base)
    assert (tmp_path / "home" / ("a" * 32)).read_text() == "mine"


@pytest.mark.parametrize("kind", ["pipe", "endless", "folder"])
def test_what_stands_where_a_record_would(tmp_path: Path, kind: str) -> None:
    store = Store(tmp_path)
    path = store.folder / "units" / "a"
    path.parent.mkdir(parents=True)
    {"pipe": os.mkfifo, "endless": lambda path: path.symlink_to("/dev/zero"), "folder": os.mkdir}[kind](path)
    assert store.read("units", "a") is None
    store.write("units", "a", {})
    assert store.trouble == ("" if kind != "folder" else f"the cache in {tmp_path} cannot be written: Is a directory")


def test_a_cache_that_is_emptied_in_the_midst_of_a_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write("units", "a", {})
    shutil.rmtree(tmp_path)
    store.write("units", "b", {})
    assert (store.read("units", "b"), store.trouble) == ({}, "")
