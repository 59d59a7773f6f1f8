"""What parsers let go of goes back to the system, where the C library can be asked for it."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Iterator

import pytest

from streamlint.config.options import Options, Source
from streamlint.runner import engine, tasks, workers
from streamlint.support import memory


def test_a_run_gives_back_after_so_much_source(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    monkeypatch.setattr(memory, "give_back", lambda: given.append(1))
    monkeypatch.setattr(memory, "OFTEN", 100)
    texts = ["x = 1\n" * 10, "y = 2\n" * 10, "z = 3\n" * 10, "w = 4\n" * 40]  # 60, 60, 60 and 240 characters
    engine.analyse([Source(f"{number}.py", text, "python") for number, text in enumerate(texts)], Options())
    assert len(given) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="only there it is asked")
def test_a_library_that_cannot_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    memory.give_back()


def test_it_can_be_asked_for_more_than_once() -> None:
    memory.give_back()
    memory.give_back()


@pytest.fixture
def thawed() -> Iterator[None]:
    memory.thaw()
    yield
    memory.thaw()


def lint() -> None:
    engine.analyse([Source("a.py", "import torch\ntorch.cuda.synchronize()\n", "python")], Options())


@pytest.mark.usefixtures("thawed")
def test_what_a_run_leaves_behind_is_collected() -> None:
    """In a process that lints many times nothing of an earlier run is kept out of the collector's sight."""
    lint()
    assert not gc.get_freeze_count()


@pytest.mark.usefixtures("thawed")
def test_what_was_frozen_before_a_run_stays_frozen() -> None:
    memory.freeze()
    lint()
    assert gc.get_freeze_count()


def test_what_a_task_leaves_behind_is_freed_where_the_process_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    monkeypatch.setattr(memory, "give_back", lambda: given.append(1))
    monkeypatch.setattr(memory, "LARGE", 1 << 50)  # the tests before may have made this process large
    memory.collect()
    assert not given
    monkeypatch.setattr(memory, "LARGE", -1)
    lint()
    assert not given  # processes that others do not follow need not be searched
    monkeypatch.delattr(os, "fork")
    lint()
    assert given


def test_a_large_run_has_a_process_for_each_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with one job: what a task leaves behind ends with it."""
    monkeypatch.setattr(engine, "WORTH_A_PROCESS", 0)
    begun: list[int] = []
    start = workers._Pool._start

    def counted(pool: workers._Pool) -> bool:
        begun.append(1)
        return start(pool)

    monkeypatch.setattr(workers._Pool, "_start", counted)
    found = engine.analyse([Source("a.py", "import torch\ntorch.cuda.synchronize()\n", "python")], Options())
    assert len(begun) == len([kind for kind in tasks.kinds(Options()) if "python" in kind.languages])
    assert not found.problems


@pytest.mark.skipif(sys.platform != "linux", reason="only there it is told")
def test_how_large_a_process_is() -> None:
    assert memory.resident() > 1 << 20
