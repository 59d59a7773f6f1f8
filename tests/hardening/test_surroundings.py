"""What a run is given besides sources: streams that are closed or full, few files and processes, odd terminals, odd configurations."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hardening.inputs import MISUSE

from streamlint import guard, workers
from streamlint.config import Resolver
from streamlint.errors import ConfigError

ROOT = Path(__file__).parents[2]
COMMAND = f"{sys.executable} -m streamlint check --no-cache"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for number in range(12):
        (tmp_path / f"a{number}.py").write_text(MISUSE.replace("run", f"run{number}"))
    return tmp_path


def shell(folder: Path, line: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **more}
    done = subprocess.run(["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert "Traceback" not in done.stderr + done.stdout
    assert "internal error" not in done.stderr
    return done


def test_standard_input_that_is_closed(tree: Path) -> None:
    assert shell(tree, f"{COMMAND} . <&-").returncode == 1
    done = shell(tree, f"{COMMAND} - <&-")
    assert (done.returncode, done.stderr) == (2, "streamlint: standard input is closed\n")


def test_outputs_that_are_closed(tree: Path) -> None:
    assert shell(tree, f"{COMMAND} . >&-").returncode == 1
    done = shell(tree, f"{COMMAND} --output-format concise . 2>&-")
    assert (done.returncode, done.stdout.count("SL005")) == (1, 12)


@pytest.mark.parametrize("format", ["concise", "json"])
def test_an_output_that_is_full(tree: Path, format: str) -> None:
    done = shell(tree, f"{COMMAND} --output-format {format} . > /dev/full")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "streamlint: what was found cannot be written: No space left on device")


def test_a_reader_that_leaves(tree: Path) -> None:
    done = shell(tree, f"set -o pipefail; {COMMAND} --output-format json . | head -c 10")
    assert done.returncode in (1, 141)
    assert len(done.stdout) == 10


@pytest.mark.parametrize("limit", ["-n 32", "-n 16", "-v 400000", "-s 512"])
def test_few_files_little_memory_a_small_stack(tree: Path, limit: str) -> None:
    done = shell(tree, f"ulimit {limit}; {COMMAND} --output-format concise --jobs 8 .")
    assert (done.returncode, done.stdout.count("SL005")) == (1, 12)


def test_no_more_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refused)
    assert guard.supervised(lambda: 7) == 7
    assert list(workers.shared(str.upper, list("abcdefghij"), 4, instead=lambda name, why: why)) == list("ABCDEFGHIJ")


@pytest.mark.parametrize("columns", ["0", "1", "-5", "x", "99999999999999999999"])
def test_terminals_of_odd_width(tree: Path, columns: str) -> None:
    done = shell(tree, f"{COMMAND} --output-format full a1.py", COLUMNS=columns)
    assert (done.returncode, "SL005" in done.stdout) == (1, True)


def test_a_locale_without_the_letters_of_names(tree: Path) -> None:
    (tree / "ünï_日本.py").write_text(MISUSE)
    more = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = shell(tree, f"{COMMAND} --output-format concise .", **more)
    assert (done.returncode, done.stdout.count("SL005")) == (1, 13)


WRONG = {
    "deep": "[tool.streamlint]\nselect = " + "[" * 100_000,
    "other line ends": "[tool.streamlint]\rselect = []\r",
    "a null": '[tool.streamlint]\nselect = ["\\u0000"]\n',
    "no text": b"[tool.streamlint]\nselect = ['\xff']\n",
    "itself": '[tool.streamlint]\nextend = "pyproject.toml"\n',
    "a null in a path": '[tool.streamlint]\nextend = "\\u0000"\n',
    "a long path": f'[tool.streamlint]\nextend = "{"a" * 5_000}"\n',
    "a number": "[tool.streamlint]\nselect = 1\n",
    "a date": "[tool.streamlint]\nselect = [2024-01-01]\n",
    "a table": "[tool.streamlint]\ndefault-stream = {}\n",
    "tables": "[tool.streamlint]\nper-file-ignores = []\n",
    "no table": "[tool]\nstreamlint = 1\n",
}


@pytest.mark.parametrize("name", WRONG)
def test_configurations_that_are_wrong(tmp_path: Path, name: str) -> None:
    text = WRONG[name]
    (tmp_path / "pyproject.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        Resolver().of_file(tmp_path / "a.py")
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("text", ['tool = "streamlint"\n', "[[tool]]\nstreamlint = 1\n", "# streamlint\n"])
def test_configurations_that_hold_nothing_of_ours(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    assert Resolver().of_file(tmp_path / "a.py").source is None


def test_configurations_that_extend_one_another_for_ever(tmp_path: Path) -> None:
    for number in range(1_500):
        (tmp_path / f"{number}.toml").write_text(f'extend = "{number + 1}.toml"\n')
    (tmp_path / "streamlint.toml").write_text('extend = "0.toml"\n')
    with pytest.raises(ConfigError, match="more than 50 configurations extend one another"):
        Resolver().of_file(tmp_path / "a.py")
