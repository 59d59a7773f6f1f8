"""A warm run asks build files again only where they, or what stands beside them, changed; and it never misses that they did."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from streamlint import build_files
from streamlint.cache import runs
from streamlint.cache.store import Store
from streamlint.config.settings import Resolver
from streamlint.runner import linter

SOURCE = "__global__ void k() {}\nvoid f() { k<<<1, 1>>>(); cudaDeviceSynchronize(); }\n"
CMAKE = "project(a LANGUAGES CUDA)\nadd_library(a a.cu)\n"
PER_THREAD = CMAKE + "target_compile_options(a PRIVATE --default-stream=per-thread)\n"


@pytest.fixture
def look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, object]]:
    """Lints the project, and tells what build files say of its source."""
    monkeypatch.setattr(runs, "_TICK", 0)
    (tmp_path / "project" / "src" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "src")
    Path("a.cu").write_text(SOURCE, encoding="utf-8")
    Path("CMakeLists.txt").write_text(CMAKE, encoding="utf-8")

    def run() -> dict[str, object]:
        report = linter.run(["."], Resolver(), linter.How(store=Store(tmp_path / "cache")))
        return {str(word): said for _, word, said in report.built}

    return run


def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collects what is asked from now on."""
    asked: list[str] = []
    real = build_files.answer
    monkeypatch.setattr(build_files, "answer", lambda word, path: (asked.append(word), real(word, path))[1])
    return asked


def test_what_is_as_it_was_is_not_asked(look: Callable[[], dict[str, object]], monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = look(), look()
    asked = answers(monkeypatch)
    assert look() == second == first
    assert asked == []
    Path("notes.txt").write_text("nothing that builds", encoding="utf-8")
    assert look() == first
    assert asked == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("CMakeLists.txt", PER_THREAD),
        ("cmake/flags.cmake", 'set(CMAKE_CUDA_FLAGS "--default-stream per-thread")\n'),
        ("Makefile", "NVCCFLAGS = --default-stream per-thread\n"),
        ("build/compile_commands.json", '[{"directory": "..", "file": "a.cu", "command": "nvcc --default-stream per-thread a.cu"}]'),
    ],
)
def test_what_changed_is_asked(look: Callable[[], dict[str, object]], name: str, text: str) -> None:
    for folder in ("cmake", "build"):
        Path(folder).mkdir()
    for _ in range(3):
        assert look()["per_thread_default_stream"] is not True
    Path(name).write_text(text, encoding="utf-8")
    assert look()["per_thread_default_stream"] is True
    for _ in range(2):
        assert look()["per_thread_default_stream"] is True
    Path(name).unlink()
    assert look()["per_thread_default_stream"] is not True


def test_what_changed_just_now_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("CMakeLists.txt").write_text(CMAKE, encoding="utf-8")
    build_files.forget()
    build_files.answer("build_root", str(tmp_path / "a.cu"))
    facts = os.stat("CMakeLists.txt")
    assert build_files.looked_at(max(facts.st_mtime_ns, facts.st_ctime_ns)) is None
    seen = build_files.looked_at(facts.st_ctime_ns + (1 << 40))
    assert seen is not None
    assert all(build_files.looks_the_same(folder, said) for folder, said in seen.items())
    Path("CMakeLists.txt").write_text(CMAKE + "\n", encoding="utf-8")
    assert not all(build_files.looks_the_same(folder, said) for folder, said in seen.items())
