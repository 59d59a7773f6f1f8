"""A project and a cache of its own for each test."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cache.projects import PROJECT, write

from streamlint import cli
from streamlint.cache import open_store
from streamlint.config.options import Source
from streamlint.config.settings import Resolver
from streamlint.findings import Part, Report
from streamlint.runner import linter, parsing
from streamlint.runner.tasks import Task

OVERRIDES = {"preview": True}


def report(folder: Path | None) -> Report:
    """What a run over the current folder tells, with the records of a folder or without any."""
    resolver = Resolver(None, [("test", OVERRIDES)], default_excludes=False)
    found = linter.run(["."], resolver, linter.How(store=open_store(folder) if folder else None))
    found.timings, found.built, found.trials = {}, [], {}
    return found


@pytest.fixture(scope="session")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the project, and the records of a run over it."""
    folder = tmp_path_factory.mktemp("known")
    (folder / "project").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder / "project")
        write(PROJECT)
        report(folder / "cache")
    return folder


@pytest.fixture
def cache(known: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder is a project that a run has been over; the folder with what it found."""
    shutil.copytree(known / "project", tmp_path / "project")
    shutil.copytree(known / "cache", tmp_path / "cache")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "cache"


@pytest.fixture
def check(cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Runs ``check`` with the cache on: exit code and what was printed."""
    monkeypatch.delenv("STREAMLINT_NO_CACHE")
    monkeypatch.setenv("STREAMLINT_CACHE_DIR", str(cache))

    def run(*words: str) -> tuple[int, str]:
        code = cli.main(["check", *words, "--output-format", "json", "--jobs", "1"])
        told = capsys.readouterr()
        return code, told.out + told.err

    return run


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tasks that are done."""
    names: list[str] = []
    plain = Task.done

    def done(self: Task, part: Part) -> None:
        names.append(" ".join(self.kind.languages))
        plain(self, part)

    monkeypatch.setattr(Task, "done", done)
    return names


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are parsed."""
    paths: list[str] = []
    plain = parsing.parsed

    def parsed(source: Source, headers: Any) -> Any:
        paths.append(source.path)
        return plain(source, headers)

    monkeypatch.setattr(parsing, "parsed", parsed)
    return paths
