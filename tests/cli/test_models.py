"""``streamlint models``: the rows as a list, one row in words, and the check of the configuration."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from streamlint import cli
from streamlint.models.listing import shipped

ROWS = """[tool.streamlint]

[[tool.streamlint.models]]
library = "torch"

[[tool.streamlint.models.call]]
names = ["acme.memory.upload", "acme.memory.send"]
effect = "transfer"
of = "0:array"
to = "device"
asynchronous = true
type = "torch.Tensor"

[[tool.streamlint.models.type]]
names = "acme.queues.Queue"
kind = "stream"
base = "torch.cuda.Stream"

[[tool.streamlint.models.call]]
names = "torch.cuda.synchronize"
effect = "none"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "pyproject.toml").write_text(ROWS)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    code = cli.main(["models", *words])
    streams = capsys.readouterr()
    assert code == 0, streams.err
    return streams.out


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.main(["models", *words]) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    return streams.err


# Lists -----------------------------------------------------------------------------------------------------------------------


def test_all_rows_by_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models"]) == 0
    streams = capsys.readouterr()
    heads = [line for line in streams.out.splitlines() if not line.startswith(" ")]
    assert heads[0] == "streamlint/models/cffi.toml (cffi, Python)"
    assert heads[-1] == "pyproject.toml (torch, all languages)"
    assert re.search(r"^    copy +torch\.Tensor\.copy_$", streams.out, re.MULTILINE)
    assert streams.err == f"{len(shipped()) + 3} rows, 3 of your own\n"


def test_own_rows(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "--own") == (
        "pyproject.toml (torch, all languages)\n"
        "  calls\n"
        "    transfer  acme.memory.upload, acme.memory.send\n"
        "    none      torch.cuda.synchronize\n"
        "  types\n"
        "    stream  acme.queues.Queue\n"
    )
    assert told(capsys, "--own", "--isolated") == ""


def test_rows_of_a_pattern(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = told(capsys, "acme.*")
    assert "acme.memory.upload" in out
    assert "torch" not in out.partition("\n")[2]
    assert "no row has a name like 'nowhere.*'" in refused(capsys, "nowhere.*")
    assert "give one or the other" in refused(capsys, "acme.*", "torch.cuda.synchronize")


def test_json_holds_every_row(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(told(capsys, "--output-format", "json"))
    assert len(rows) == len(shipped()) + 3
    copy = next(row for row in rows if "torch.Tensor.copy_" in row["names"])
    assert (copy["kind"], copy["effect"], copy["library"], copy["language"], copy["own"]) == ("call", "copy", "torch", "python", False)
    assert [key["name"] for key in copy["keys"]] == ["dst", "src", "direction", "asynchronous", "result"]
    own = [row for row in rows if row["own"]]
    assert [(row["file"], row["line"]) for row in own] == [("pyproject.toml", 6), ("pyproject.toml", 19), ("pyproject.toml", 14)]


def test_places_of_shipped_rows_are_their_lines() -> None:
    package = Path(cli.__file__).parent.parent
    for entry in shipped():
        assert entry.line is not None
        lines = (package / entry.file).read_text(encoding="utf-8").splitlines()
        assert lines[entry.line - 1] == f"[[{entry.kind}]]"
        body = "\n".join(lines[entry.line : entry.line + 40]).partition("\n[[")[0]
        assert f'"{entry.names[0]}"' in body


# One row ---------------------------------------------------------------------------------------------------------------------


def test_a_shipped_row_in_words(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = told(capsys, "torch.Tensor.copy_")
    assert out.startswith("torch.Tensor.copy_\n  call row, library torch, Python\n  streamlint/models/torch.toml:")
    assert "  copy: copies between two buffers or pointers\n" in out
    assert '  asynchronous = "1:non_blocking=false"\n' in out
    assert "      Here: the second argument or the keyword `non_blocking` (left out: a flag that is not set)\n" in out


def test_a_row_of_the_user(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = told(capsys, "acme.memory.send")
    assert out.startswith("acme.memory.send\n  call row of your own, library torch, all languages\n  pyproject.toml:6\n")
    assert "      Here: the first argument or the keyword `array`\n" in out
    assert out.endswith("  The row has 1 other name: acme.memory.upload\n")


def test_the_users_row_wins_and_the_other_is_shown(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own, shipped_one = told(capsys, "torch.cuda.synchronize").split("\n\ntorch.cuda.synchronize\n")
    assert "  pyproject.toml:19\n  none: " in own
    assert "  not used: the row of pyproject.toml:19 has the same name and wins\n" in shipped_one
    alone = told(capsys, "--isolated", "torch.cuda.synchronize")
    assert "not used" not in alone
    assert "synchronize: makes the host wait" in alone


def test_methods_of_bases_and_patterns(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "torch.nn.Parameter.copy_ is inherited from torch.Tensor\n" in told(capsys, "torch.nn.Parameter.copy_")
    assert "acme.queues.Queue.wait_stream is inherited from torch.cuda.Stream\n" in told(capsys, "acme.queues.Queue.wait_stream")
    assert "\n  ctypes.c_float.from_address matches ctypes.c_*.from_address\n" in told(capsys, "ctypes.c_float.from_address")


def test_one_name_of_a_type_and_a_call(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = told(capsys, "torch.cuda.Stream")
    assert "  call row, " in out
    assert "  type row, " in out
    assert "not used" not in out


def test_json_of_one_row(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = json.loads(told(capsys, "cudaMemcpyAsync", "--output-format", "json"))
    stream = next(key for key in row["keys"] if key["name"] == "stream")
    assert (stream["value"], stream["here"]) == ("4=null", "the fifth argument (left out: the null stream)")


def test_every_shipped_row_can_be_explained(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [entry.names[0] for entry in shipped() if "*" not in entry.names[0]]
    out = told(capsys, *names)
    assert out.count("\n      Here: ") > 1000


def test_an_unknown_name(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        refused(capsys, "tourch.Tensor.copy_") == "streamlint: no row is about 'tourch.Tensor.copy_'; did you mean 'torch.Tensor.copy_'?\n"
    )


# check -----------------------------------------------------------------------------------------------------------------------


def test_check_counts_rows(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "check") == "pyproject.toml: 3 rows of your own, no error\n"
    (project / "inner").mkdir()
    (project / "inner" / "streamlint.toml").write_text("")
    assert told(capsys, "check", "inner", ".") == (
        "inner/streamlint.toml: 0 rows of your own\npyproject.toml: 3 rows of your own, no error\n"
    )


def test_check_names_what_is_wrong(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pyproject.toml").write_text(ROWS.replace("torch.cuda.Stream", "torch.cuda.Strem"))
    assert "pyproject.toml:17: models[0]: type acme.queues.Queue: base: type 'torch.cuda.Strem' is unknown" in refused(capsys, "check")
    assert "no such file or folder: nowhere" in refused(capsys, "check", "nowhere")


def test_another_configuration(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "other.toml").write_text('[[models]]\n[[models.call]]\nnames = "acme.sync"\neffect = "touch"\n')
    out = told(capsys, "--config", "other.toml", "acme.sync")
    assert "  call row of your own, no library: the call uses the current stream of none of the known ones, all languages\n" in out
    assert "  other.toml:2\n" in out
    assert "--config names one" in refused(capsys, "--config", "other.toml", "--isolated")
