"""The script that measures speed: medians, failures that are told, parts of a tree, files that are really changed."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not (FOLDER / "speed.py").is_file(), reason="benchmarks are not in the source distribution")


@pytest.fixture
def speed(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("speed")


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("speed_page")


def test_a_row_is_the_median_or_a_reason(speed: ModuleType, tmp_path: Path) -> None:
    quick = speed.Row("quick", [sys.executable, "-c", "pass"])
    slow = speed.Row("slow", [sys.executable, "-c", "import time; time.sleep(60)"])
    broken = speed.Row("broken", [sys.executable, "-c", "raise SystemExit(2)"])
    speed.measure([quick, slow, broken], tmp_path, tmp_path / "cache", 3, 3.0)
    assert len(quick.runs) == 3
    assert quick.summary()["peak_mib"] > 1
    assert slow.summary() == {"name": "slow", "failure": "did not end in 3 s"}
    assert broken.summary() == {"name": "broken", "failure": "ended with status 2"}


def row(name: str, wall: float) -> dict[str, object]:
    return {"name": name, "runs": 3, "wall": wall, "cpu": 1.0, "peak_mib": 9.0}


def test_the_page_holds_ratios(page: ModuleType) -> None:
    rows = [row("ruff", 2.0), row("other", 0.5), {"name": "gone", "failure": "did not end in 3 s"}]
    curve = {"part": 16, "jobs": 2, "files": 1200, **row("", 0.25)}
    machine = {"date": "2026-11-21", "cpu": "a CPU", "cores": 2, "memory_gib": 16, "python": "3.12", "versions": {"ruff": "1"}}
    tree = {"packages": ["timm"], "files": 8, "python": 7, "bytes": 10**7}
    record = {**machine, "load_at_start": 0.1, "tree": tree, "rows": rows, "curves": [curve]}
    text = page.figures(record)
    assert "| other | 3 | 500 ms | 0.25 |  | 1.0 s | 9 MiB |" in text
    assert "| gone | | did not end in 3 s |" in text
    assert "| 1/16 | 1,200 | 2 | 250 ms |" in text
    assert "Under load" not in text
    assert "Under load" in page.figures({**record, "load_at_start": 7.5})


def test_a_page_has_what_was_measured(page: ModuleType) -> None:
    assert page.figures({}) == f"{page.NOTHING}\n"
    peer = {"date": "2026-11-21", "cpu": "a CPU", "cores": 2, "memory_gib": 16, "python": "3.12", "versions": {}, "load_at_start": 0.1}
    peer |= {"part": 16, "files": 9, "packages": ["timm"], "command": "peer lint", "rows": [row("ruff", 2.0)]}
    assert "every 16th source of timm (9 files)" in page.figures({"peers": {"peer": peer}})


def test_the_committed_page_is_that_of_the_committed_record(page: ModuleType) -> None:
    record = json.loads((FOLDER / "speed.json").read_text(encoding="utf-8"))
    assert page.figures(record) in (page.DOCS / "speed.md").read_text(encoding="utf-8")


def test_a_part_is_every_nth_source(speed: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "corpus" / "mine-1.0" / "in").mkdir(parents=True)
    for number in range(8):
        (tmp_path / "corpus" / "mine-1.0" / "in" / f"{number}.py").write_text("pass\n")
    (tmp_path / "corpus" / "mine-1.0" / "notes.txt").write_text("none\n")
    files = speed.tree_of(tmp_path / "corpus", ["mine"], tmp_path / "tree")
    part = speed.part_of(tmp_path / "tree", files, 4, tmp_path / "part")
    assert len(files) == 8
    assert sorted(path.name for path in part.rglob("*.py")) == ["0.py", "4.py"]


def test_the_hook_is_run_as_pre_commit_runs_it(speed: ModuleType) -> None:
    assert speed.hook()[1:] == ["-m", "streamlint", "check", "--force-exclude"]


def test_each_edit_changes_a_file(speed: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("pass\n")
    (tmp_path / "streams.py").write_text("def f(x):\n    return torch.cuda.Stream()\n")
    (tmp_path / "kernel.cu").write_text("void f(int x) {\n  g();\n}\n")
    before = {path: path.read_text() for path in tmp_path.iterdir()}
    rows = {row.name.removeprefix("streamlint, "): row for row in speed.changes(tmp_path)}
    assert list(rows) == ["a comment in one file", "a statement in one file", "one file more", "one file less", "a statement in one .cu"]

    def changed(name: str) -> dict[str, str]:
        rows[name].before()
        found = {path.name: path.read_text() for path in sorted(tmp_path.iterdir()) if before.get(path) != path.read_text()}
        for path in tmp_path.iterdir():
            path.unlink()
        for path, text in before.items():
            path.write_text(text)
        return found

    assert changed("a comment in one file") == {"streams.py": "def f(x):\n    return torch.cuda.Stream()\n\n# one line more\n"}
    assert changed("a statement in one file") == {"streams.py": "def f(x):\n    one_statement_more = 1\n    return torch.cuda.Stream()\n"}
    assert changed("a statement in one .cu") == {"kernel.cu": "void f(int x) {\n  (void)0;\n  g();\n}\n"}
    assert list(changed("one file more")) == ["one_file_more_0.py"]


def test_a_file_goes_that_no_other_row_edits(speed: ModuleType, tmp_path: Path) -> None:
    for number in range(25):
        (tmp_path / f"{number:02}.py").write_text("torch.cuda.Stream()\n")
    edited = set(speed.relevant(tmp_path))
    speed.gone(tmp_path)()
    assert len(list(tmp_path.iterdir())) == 24
    assert all(path.exists() for path in edited)


def test_a_command_is_told_without_the_places_of_a_machine(speed: ModuleType) -> None:
    assert speed.told(["env", "PATH=/x", "/x/bin/peer", "scan", "--config", "/y/rules.yml", "."]) == "peer scan --config rules.yml ."
