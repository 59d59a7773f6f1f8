"""The recall on real fixes: its record, what is read out of a clone, and how a fix is judged, on a tiny repository made here."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not in the source distribution")

WRONG = """\
#include <torch/extension.h>
#include "grid.cuh"

__global__ void twice(float* data) { data[threadIdx.x] *= 2; }

void run(torch::Tensor x) {
    twice<<<GRID, 32>>>(x.data_ptr<float>());
}
"""
RIGHT = WRONG.replace("<<<GRID, 32>>>", "<<<GRID, 32, 0, at::cuda::getCurrentCUDAStream()>>>")
NAMES = {"name": "Nobody", "email": "nobody@example.org"}


@pytest.fixture(scope="module")
def recall() -> Any:
    spec = importlib.util.spec_from_file_location("benchmarks_recall", BENCHMARKS / "recall" / "measure.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["benchmarks_recall"] = module
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("benchmarks_recall")


@pytest.fixture(scope="module")
def clones(recall: Any) -> Any:
    return sys.modules[recall.Clone.__module__]


def git(folder: Path, *words: str) -> str:
    settings = [word for key, value in NAMES.items() for word in ("-c", f"user.{key}={value}")]
    return subprocess.run(["git", "-C", str(folder), *settings, *words], capture_output=True, text=True, check=True).stdout.strip()


def commit(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--no-gpg-sign", "--message", "change")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture(scope="module")
def mirrors(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder of clones with one repository: a bug, its repair, and a change that repairs nothing."""
    folder = tmp_path_factory.mktemp("mirrors")
    tree = folder / "some+project"
    tree.mkdir()
    git(tree, "init", "--quiet")
    commit(
        tree, {"csrc/run.cu": WRONG, "csrc/grid.cuh": "#define GRID 8\n", "other/grid.cuh": "#define GRID 9\n", "README.md": "nothing\n"}
    )
    shas = {"fix": commit(tree, {"csrc/run.cu": RIGHT})}
    commit(tree, {"csrc/run.cu": WRONG})
    shas["idle"] = commit(tree, {"csrc/run.cu": f"// The same.\n{WRONG}"})
    return folder, shas


def fix(recall: Any, commit: str, **changes: Any) -> Any:
    """The fix of the tiny repository, with changes."""
    values = {
        "repository": "some/project",
        "commit": commit,
        "date": "2024-02-03",
        "path": "csrc/run.cu",
        "before": (7,),
        "after": (7,),
        "rule": "SL002",
        "decidable": "function",
        "why": "A launch without a stream.",
    }
    return recall.Fix(**{**values, **changes})


def judged(recall: Any, mirrors: Path, scratch: Path, one: Any) -> Any:
    return recall.judge(one, mirrors, scratch, 120)


def test_a_real_fix_is_found_before_and_silent_after(recall: Any, mirrors: Any, tmp_path: Path) -> None:
    folder, shas = mirrors
    outcome = judged(recall, folder, tmp_path, fix(recall, shas["fix"]))
    assert (outcome.found, outcome.silent, outcome.others, outcome.failure) == (True, True, (), "")


def test_what_a_commit_leaves_is_noise(recall: Any, mirrors: Any, tmp_path: Path) -> None:
    folder, shas = mirrors
    outcome = judged(recall, folder, tmp_path, fix(recall, shas["idle"], after=(8,)))
    assert (outcome.found, outcome.silent) == (True, False)


@pytest.mark.parametrize(("lines", "found"), [((12,), True), ((13,), False)])
def test_five_lines_are_near(recall: Any, mirrors: Any, tmp_path: Path, lines: tuple[int, ...], found: bool) -> None:
    folder, shas = mirrors
    assert judged(recall, folder, tmp_path, fix(recall, shas["fix"], before=lines)).found is found


def test_another_rule_at_the_place_is_told(recall: Any, mirrors: Any, tmp_path: Path) -> None:
    folder, shas = mirrors
    outcome = judged(recall, folder, tmp_path, fix(recall, shas["fix"], rule="SL006"))
    assert (outcome.found, outcome.others) == (False, ("SL002",))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"repository": "some/other"}, "no clone"),
        ({"path": "csrc/gone.cu"}, "csrc/gone.cu is not in"),
    ],
)
def test_what_cannot_be_measured_says_why(recall: Any, mirrors: Any, tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    folder, shas = mirrors
    outcome = judged(recall, folder, tmp_path, fix(recall, shas["fix"], **changes))
    assert outcome.failure.startswith(reason)
    assert not outcome.found


def test_a_run_that_takes_too_long_says_so(recall: Any, mirrors: Any, tmp_path: Path) -> None:
    folder, shas = mirrors
    assert recall.judge(fix(recall, shas["fix"]), folder, tmp_path, 0.001).failure == "more than 0.001 s"


def test_the_nearest_included_file_stands_beside(recall: Any, mirrors: Any) -> None:
    folder, shas = mirrors
    clone = recall.clone_of("some/project", folder)
    files = recall.needed(clone, shas["fix"], fix(recall, shas["fix"]))
    assert sorted(files) == ["csrc/grid.cuh", "csrc/run.cu"]
    assert files["csrc/grid.cuh"] == b"#define GRID 8\n"


def test_where_the_project_decides_who_includes_a_file_stands_beside(recall: Any, mirrors: Any) -> None:
    folder, shas = mirrors
    clone = recall.clone_of("some/project", folder)
    header = fix(recall, shas["fix"], path="csrc/grid.cuh")
    assert sorted(recall.needed(clone, shas["fix"], header)) == ["csrc/grid.cuh"]
    assert sorted(recall.needed(clone, shas["fix"], replace(header, decidable="project"))) == ["csrc/grid.cuh", "csrc/run.cu"]


def test_imports_are_followed_from_where_they_stand(clones: Any) -> None:
    names = ("pkg/__init__.py", "pkg/ops/run.py", "pkg/ops/copy.py", "pkg/streams.py", "tests/streams.py", "pkg/native.pyx")
    text = "import torch\nfrom . import copy\nfrom ..streams import side\nfrom pkg import native\n"
    assert set(clones.wanted("pkg/ops/run.py", text, names)) == {"pkg/ops/copy.py", "pkg/streams.py", "pkg/native.pyx", "pkg/__init__.py"}


def test_cython_declares_headers(clones: Any) -> None:
    text = 'from .rings cimport Ring\ncdef extern from "ring/all.h" nogil:\n    pass\n'
    names = ("pkg/native.pyx", "pkg/rings.pxd", "include/ring/all.h", "include/other.h")
    assert set(clones.wanted("pkg/native.pyx", text, names)) == {"pkg/rings.pxd", "include/ring/all.h"}


def test_the_interval_is_wilsons(recall: Any) -> None:
    wilson = importlib.import_module(recall.share.__module__).wilson
    assert wilson(0, 0) == (0.0, 1.0)
    low, high = wilson(8, 10)
    assert (round(low, 3), round(high, 3)) == (0.490, 0.943)
    assert wilson(10, 10)[1] == 1.0


def test_the_report_counts_by_rule_and_by_depth(recall: Any) -> None:
    sha = "0" * 40
    outcomes = [
        recall.Outcome(fix(recall, sha), found=True, silent=True),
        recall.Outcome(fix(recall, sha, decidable="file"), found=False, silent=False, others=("SL006",)),
        recall.Outcome(fix(recall, sha, decidable="project"), found=False, silent=True),
        recall.Outcome(fix(recall, sha, decidable="no"), found=False, silent=True),
        recall.Outcome(fix(recall, sha, rule="SL005"), failure="no clone"),
    ]
    lines = list(recall.report(outcomes))
    assert lines[1].split() == "SL002 4 1/2 50 % [9, 91] 1/3 33 % [6, 79] 3/4 75 % [30, 95] 1".split()
    assert "decidable: no        0/1 0 % [0, 79]" in lines
    assert f"SL002 file     some/project@{sha[:10]}:csrc/run.cu:7 (reported as SL006): A launch without a stream." in lines
    assert lines[-2:] == ["\nnot measured: 1", f"some/project@{sha[:10]}:csrc/run.cu: no clone"]


def test_one_command_prints_it_all(recall: Any, mirrors: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, shas = mirrors
    record, left = tmp_path / "fixes.toml", tmp_path / "missed.txt"
    one = fix(recall, shas["fix"])
    fields = {**one.__dict__, "before": list(one.before), "after": list(one.after), "beside": []}
    record.write_text("[[fix]]\n" + "".join(f"{key} = {value!r}\n" for key, value in fields.items()), encoding="utf-8")
    assert recall.main([str(folder), "--fixes", str(record), "--missed", str(left)]) == 0
    assert "SL002      1  1/1 100 % [21, 100]" in capsys.readouterr().out
    assert left.read_text(encoding="utf-8") == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"commit": "abc"}, "commit is no full SHA-1"),
        ({"rule": "race"}, "rule is no code"),
        ({"decidable": "maybe"}, "decidable is none of"),
        ({"before": []}, "needs lines before and after"),
        ({"why": " "}, "needs a reason"),
        ({"date": "today"}, "date is no day"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_wrong_row_is_refused(recall: Any, tmp_path: Path, change: dict[str, Any], message: str) -> None:
    one = fix(recall, "0" * 40)
    fields = {**one.__dict__, "before": list(one.before), "after": list(one.after), "beside": [], **change}
    record = tmp_path / "fixes.toml"
    record.write_text("[[fix]]\n" + "".join(f"{key} = {value!r}\n" for key, value in fields.items()), encoding="utf-8")
    with pytest.raises(recall.RecallError, match=message):
        recall.read_fixes(record)


def test_the_committed_record_can_be_read(recall: Any) -> None:
    fixes = recall.read_fixes()
    assert len(fixes) >= 100
    assert all(one.why.endswith(".") for one in fixes)


def test_what_takes_too_long_is_ended_with_all_that_it_has_started(recall: Any, tmp_path: Path) -> None:
    late = "import os, pathlib, time\nos.fork()\ntime.sleep(1.5)\npathlib.Path(str(os.getpid())).touch()\n"
    with pytest.raises(subprocess.TimeoutExpired):
        recall.run([sys.executable, "-c", late], tmp_path, 0.5)
    time.sleep(1.5)
    assert list(tmp_path.iterdir()) == []
