"""Rows of the user's own that match nothing: ``models --unused`` lists them, and ``check`` says so where it sees the whole project."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamlint import cli

ROWS = """[tool.streamlint]

[[tool.streamlint.models]]
library = "torch"

[[tool.streamlint.models.call]]
names = "acme.memory.upload"
effect = "transfer"
of = "0:array"
to = "device"
asynchronous = true
type = "torch.Tensor"

[[tool.streamlint.models.call]]
names = "acme.memry.pin"
effect = "register"
of = "0"
"""
USE = """import torch
from acme.memory import pin, upload


def table(rows):
    return upload(torch.rand(rows, 4096))
"""
PIN = "from acme.memry import pin\n\n\ndef keep(values):\n    pin(values)\n"
WARNING = (
    "warning: 1 row of your models matches nothing in this project: acme.memry.pin (pyproject.toml:14); see 'streamlint models --unused'\n"
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("STREAMLINT_CACHE_DIR", str(tmp_path / ".cache"))
    (tmp_path / "pyproject.toml").write_text(ROWS)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "use.py").write_text(USE)
    return tmp_path


def check(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What `check` says on stderr; there is one finding, and the exit code is 1 with a warning or without."""
    assert cli.main(["check", "--output-format", "concise", "--cache-dir", ".cache", *words]) == 1
    streams = capsys.readouterr()
    assert "use.py:6:" in streams.out
    assert "matches nothing" not in streams.out
    return streams.err


# models --unused --------------------------------------------------------------------------------------------------------------


def test_unused_rows_are_listed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models", "--unused"]) == 1
    streams = capsys.readouterr()
    assert streams.out == "pyproject.toml:14: call acme.memry.pin\n"
    assert streams.err == "1 of 2 rows of your own match nothing in 1 file\n"


def test_no_row_is_listed_that_matches(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "src" / "pins.py").write_text(PIN)
    assert cli.main(["models", "--unused", "."]) == 0
    streams = capsys.readouterr()
    assert (streams.out, streams.err) == ("", "0 of 2 rows of your own match nothing in 2 files\n")


def test_unused_rows_of_some_paths_as_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "src" / "pins.py").write_text(PIN)
    assert cli.main(["models", "--unused", "src/pins.py", "--output-format", "json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["names"], row["line"], row["own"]) == (["acme.memory.upload"], 6, True)


def test_unused_needs_files(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "empty").mkdir()
    assert cli.main(["models", "--unused", "empty"]) == 2
    assert capsys.readouterr().err == "streamlint: no lintable file in empty\n"


KINDS = """[[models]]
library = "torch"
type = [{names = "acme.Queue", kind = "stream", base = "torch.cuda.Stream"}, {names = "acme.frames.*", kind = "buffer"}]
attribute = [{names = "acme.Queue.raw", effect = "stream_of", which = "attribute"}]
constant = [{names = "acme.TO_DEVICE", value = "h2d"}]
step = [{names = "acme.Trainer", methods = "train_one"}]
call = [
  {names = "acme.Queue.flush", effect = "synchronize", of = "self"},
  {names = "acme.many.*", effect = "touch"},
  {names = "acme.behind", effect = "touch"},
  {names = "acme.decorate", effect = "touch"},
]

[[models]]
language = "cuda"
call = [{names = "acme::sync", effect = "synchronize", of = "device"}, {names = "acmeCopy", effect = "touch"}]
type = [{names = "acme::Stream", kind = "stream", base = "cudaStream_t"}]
"""
PYTHON = """import acme
from acme import Queue, many


def wait(queue: Queue, x, frame: acme.frames.Frame):
    many.one(x, acme.TO_DEVICE)
    queue.flush()
    return queue.raw


@acme.decorate
def late(x):
    return x
    acme.behind(x)


class Mine(acme.Trainer):
    def train_one(self, batch):
        loss = batch.sum()
        loss.backward()
        print(loss.item())
"""
CPP = """#include <cuda_runtime.h>
void wait() { acme::sync(); }
void copy(acme::Stream stream, float* a, float* b) { acmeCopy(a, b); cudaMemcpyAsync(a, b, 4, cudaMemcpyHostToDevice, stream); }
"""


def test_rows_of_every_kind_are_met(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By a name that stands in the code, through an import, by the type of a value; also where nothing is run."""
    (project / "streamlint.toml").write_text(KINDS)
    (project / "src" / "use.py").write_text(PYTHON)
    (project / "src" / "use.cu").write_text(CPP)
    assert cli.main(["models", "--unused"]) == 0, capsys.readouterr().out
    assert capsys.readouterr().err == "0 of 12 rows of your own match nothing in 2 files\n"


@pytest.mark.parametrize(
    ("there", "instead", "names"),
    [
        (", acme.TO_DEVICE", "", "constant acme.TO_DEVICE"),
        ("queue.flush()", "queue.flash()", "call acme.Queue.flush"),
        ("queue.raw", "queue", "attribute acme.Queue.raw"),
        ("frame: acme.frames.Frame", "frame: acme.frame.Frame", "type acme.frames.*"),
        ("acme.behind(x)", "acme.before(x)", "call acme.behind"),
        ("@acme.decorate", "@acme.decorates", "call acme.decorate"),
        ("acme.Trainer", "acme.Trainers", "step acme.Trainer"),
        ("many.one", "most.one", "call acme.many.*"),
        ("acme::sync()", "acne::sync()", "call acme::sync"),
        ("acmeCopy(a, b); ", "", "call acmeCopy"),
        ("acme::Stream", "cudaStream_t", "type acme::Stream"),
    ],
)
def test_a_row_of_each_kind_is_missed(project: Path, there: str, instead: str, names: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert (PYTHON + CPP).count(there) == 1
    (project / "streamlint.toml").write_text(KINDS)
    (project / "src" / "use.py").write_text(PYTHON.replace(there, instead))
    (project / "src" / "use.cu").write_text(CPP.replace(there, instead))
    assert cli.main(["models", "--unused"]) == 1
    assert [line.partition(": ")[2] for line in capsys.readouterr().out.splitlines()] == [names]


# check ------------------------------------------------------------------------------------------------------------------------


def test_check_warns_of_the_whole_project(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, ".").count(WARNING) == 1
    (project / "src" / "pins.py").write_text(PIN)
    assert "warning" not in check(capsys, ".")


@pytest.mark.parametrize(
    "words", [["src"], ["src/use.py"], ["src/use.py", "--force-exclude"], [".", "-q"], [".", "--isolated"]], ids=" ".join
)
def test_check_is_silent_where_it_does_not_see_the_project(project: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    if "--isolated" in words:
        (project / "src" / "use.py").write_text(USE.replace("upload(", "(lambda x: x.to('cuda', non_blocking=True))("))
    assert "matches nothing" not in check(capsys, *words)


def test_a_warning_is_no_finding(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "src" / "use.py").write_text(USE.replace("torch.rand(rows, 4096)", "rows"))
    assert cli.main(["check", "--cache-dir", ".cache", "."]) == 0
    assert WARNING in capsys.readouterr().err


def test_kept_runs_warn_alike(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that is kept as a whole, one of which some files are kept, and one in two processes."""
    for number in range(12):
        (project / "src" / f"other{number}.py").write_text(f"import torch\n\n\ndef f{number}(x):\n    return x.cuda()\n" + "# more\n" * 900)
    fresh = check(capsys, ".", "--no-cache", "--jobs", "1")
    assert WARNING in fresh
    assert check(capsys, ".", "--no-cache", "--jobs", "2") == fresh
    assert check(capsys, ".") == fresh
    assert check(capsys, ".") == fresh  # all of it is kept
    (project / "src" / "other1.py").write_text(PIN)
    assert "warning" not in check(capsys, ".")
    (project / "src" / "other2.py").write_text("import torch\n")
    assert "warning" not in check(capsys, ".")  # the file with the only use is kept
    (project / "src" / "other1.py").write_text("import torch\n")
    assert WARNING in check(capsys, ".")


@pytest.mark.parametrize("code", ["SL009", "SL020", "SL016", "SL003"])
def test_few_rules_warn_no_more_than_all(project: Path, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Rules that run few functions see few rows."""
    (project / "src" / "pins.py").write_text(PIN)
    assert cli.main(["check", "--no-cache", "--select", code, "."]) == 0
    assert "matches nothing" not in capsys.readouterr().err


def test_a_file_that_cannot_be_read_may_use_any_row(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "src" / "broken.py").write_text("import torch\ntorch.cuda.synchronize(\n")
    assert "matches nothing" not in check(capsys, ".")


def test_rows_of_a_configuration_elsewhere_are_not_judged(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A shared one is for other projects too; that of a folder below is judged with it."""
    inner = project / "src"
    (project / "pyproject.toml").rename(project / "shared.toml")
    (project / "shared.toml").write_text(ROWS.replace("tool.streamlint.", "").replace("[tool.streamlint]\n", ""))
    (inner / "streamlint.toml").write_text('extend = "../shared.toml"\n[[models]]\n[[models.call]]\nnames = "acme.own"\neffect = "touch"\n')
    told = check(capsys, "src")
    assert "1 row of your models matches nothing in this project: acme.own (src/streamlint.toml:3); see" in told
    assert "2 rows of your models match nothing in this project: acme.memry.pin (shared.toml:13), acme.own" in check(capsys, ".")


def test_a_long_list_is_cut(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f'\n[[tool.streamlint.models.call]]\nnames = "acme.f{number}"\neffect = "touch"\n' for number in range(9))
    (project / "pyproject.toml").write_text(ROWS + rows)
    told = check(capsys, ".")
    assert "10 rows of your models match nothing in this project: acme.memry.pin" in told
    assert "and 5 more; see 'streamlint models --unused'\n" in told
