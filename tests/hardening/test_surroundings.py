"""What a run is given besides sources: streams that are closed or full, few files and processes, odd terminals, odd configurations."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import forks
import pytest
from hardening.groups import one_process
from hardening.inputs import MISUSE

from streamlint.config.settings import Resolver
from streamlint.report import FORMATS
from streamlint.runner import workers
from streamlint.support import guard
from streamlint.support.errors import ConfigError

ROOT = Path(__file__).parents[2]
PLAIN = {"PYTHONPATH": str(ROOT), "STREAMLINT_NO_CACHE": ""}
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
    with open("/dev/full", "wb") as full:
        done = forks.run(tree, "check", "--no-cache", "--output-format", format, ".", stdout=full)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "streamlint: what was found cannot be written: No space left on device")


def test_a_reader_that_leaves(tree: Path) -> None:
    with forks.begin(tree, "check", "--no-cache", "--output-format", "json", ".") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert len(os.read(process.stdout.fileno(), 10)) == 10
        process.stdout.close()
        assert process.wait(120) in (1, 141)
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize("format", FORMATS)
def test_a_reader_that_has_left(tree: Path, format: str) -> None:
    end, output = os.pipe()
    os.close(end)
    done = forks.run(tree, "check", "--isolated", "--no-cache", "--output-format", format, "a1.py", stdout=output)
    os.close(output)
    assert (done.returncode, "Traceback" in done.stderr) == (141, False)


@pytest.mark.parametrize("limit", ["-n 32", "-n 16", "-v 400000", "-s 512"])
def test_few_files_little_memory_a_small_stack(tree: Path, limit: str) -> None:
    done = shell(tree, f"ulimit {limit}; {COMMAND} --output-format concise --jobs 8 .")
    assert (done.returncode, done.stdout.count("SL005")) == (1, 12)


def _begun(tree: Path, limit: Callable[[], None], *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "streamlint", "check", "--isolated", "--output-format", "concise", "--jobs", "4", *words, "."]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **more}
    without = {name: text for name, text in environment.items() if text}
    done = subprocess.run(command, cwd=tree, env=without, capture_output=True, text=True, timeout=300, check=False, preexec_fn=limit)
    assert "internal error" not in done.stderr
    assert "Traceback" not in done.stderr
    return done


def _limited(tree: Path, limit: str, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    script = f"import resource\nresource.setrlimit(resource.{limit})\n{forks.COMMAND}"
    done = forks.run(tree, "check", "--isolated", "--output-format", "concise", "--jobs", "4", *words, ".", script=script, **more)
    assert "internal error" not in done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.skipif(sys.platform != "linux", reason="limits and capabilities are Linux's")
def test_a_user_who_may_begin_no_process(tree: Path) -> None:
    """Not even root's privilege to begin more; what root may read stays readable."""
    assert _begun(tree, one_process).stdout.count("SL005") == 12


@pytest.mark.skipif(sys.platform != "linux", reason="limits are Linux's")
@pytest.mark.parametrize("megabytes", [200, 60, 30])
def test_little_memory(tree: Path, megabytes: int) -> None:
    """All is found, or it is said that it is not; Python itself needs about 30."""
    size = megabytes << 20
    command = [sys.executable, "-m", "streamlint", "check", "--isolated", "--no-cache", "--output-format", "concise", "."]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command,
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
    )
    found = done.stdout.count("SL005")
    assert found == 12 or "left out" in done.stderr or (done.returncode != 0 and done.stderr), done.stderr
    assert found == 12 or megabytes < 200


def test_little_processor_time(tree: Path) -> None:
    """The limit of the system ends the process that comes to it: what it looked at is left out, and another goes on."""
    # To lower it takes more than two seconds, on a fast machine too.
    heavy = "import torch\ndef f(a):\n    torch.cuda.synchronize()\n" + "    x = a.to('cuda')\n" * 200_000
    (tree / "heavy.py").write_text(heavy)
    done = _limited(tree, "RLIMIT_CPU, (2, 8)", "--no-cache", "--jobs", "1")
    assert (done.returncode, done.stdout.count("SL005")) == (1, 12), done.stderr
    assert "heavy.py:1:1: unreadable-source [SL000] left out: the linter was ended by SIGXCPU while it looked at it" in done.stdout


def test_no_file_may_grow(tree: Path) -> None:
    done = _limited(tree, "RLIMIT_FSIZE, (0, 0)", "--cache-dir", "kept", "-o", "told", STREAMLINT_NO_CACHE="")
    assert (done.returncode, done.stderr) == (2, "streamlint: cannot write told: File too large\n")
    assert not (tree / "told").exists()
    assert [path for path in (tree / "kept").rglob("*") if path.is_file() and path.stat().st_size] == []


@pytest.mark.skipif(sys.platform != "linux", reason="where homes lie is the system's")
@pytest.mark.parametrize("known", [True, False])
def test_no_home(tree: Path, known: bool) -> None:
    """Of a user who is known, and of one who is not: containers run as any number."""
    user = (lambda: None) if known or os.geteuid() else (lambda: os.setresuid(54_321, 0, 0))
    done = _begun(tree, user, HOME="", XDG_CACHE_HOME="", STREAMLINT_NO_CACHE="")
    assert (done.returncode, done.stdout.count("SL005")) == (1, 12)
    assert [path.name for path in tree.iterdir() if path.suffix != ".py"] == []


# Mounts that no other process sees. Temporary folders and shared memory take nothing; the tree, which may lie in one of them, does.
MOUNTED = """
set -e
mount -t tmpfs -o ro none /dev/shm
for folder in /tmp /var/tmp; do mount --bind $folder $folder; mount -o remount,bind,ro $folder; done
mount --bind "$PWD" "$PWD"; mount -o remount,bind,rw "$PWD"; cd "$PWD"
for folder in /dev/shm /tmp /var/tmp; do if touch $folder/x 2> /dev/null; then exit 70; fi; done
"""


def _mounts() -> list[str]:
    """A command in which mounts are its own: as root, or as a user who is root of a namespace; empty where neither may mount."""
    for words in (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"]):
        with contextlib.suppress(OSError):
            if subprocess.run([*words, "mount", "-t", "tmpfs", "none", "/dev/shm"], capture_output=True, check=False).returncode == 0:
                return words
    return []


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces of mounts are Linux's")
def test_no_shared_memory_and_temporary_folders_that_take_nothing(tree: Path) -> None:
    if not (words := _mounts()):
        pytest.skip("neither this user nor the root of a namespace of its own may mount anything here")
    check = f"{COMMAND} --isolated --jobs 4 --output-format concise"
    kept = f"{sys.executable} -m streamlint check --isolated --jobs 4 --cache-dir kept -o told ."
    script = f"{MOUNTED}{kept} || echo $?; {kept} || echo $?; {check} --fix . || echo $?; {check} ."
    done = subprocess.run(
        [*words, "bash", "-c", script], cwd=tree, env={**os.environ, **PLAIN}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "1\n1\n"), done.stderr
    assert [line for line in done.stderr.splitlines() if "file" not in line] == ["[*] 12 fixable with --fix"] * 2
    assert "0 findings (12 fixed)" in done.stderr
    assert (tree / "told").read_text().count("[SL005]") == 12
    assert {path.name for path in tree.iterdir() if path.suffix != ".py"} == {"kept", "told"}


def test_no_more_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refused)
    assert guard.supervised(lambda: 7) == 7
    assert list(workers.shared(str.upper, list("abcdefghij"), 4, instead=lambda name, why: why)) == list("ABCDEFGHIJ")


@pytest.mark.parametrize("columns", ["0", "1", "-5", "x", "99999999999999999999"])
def test_terminals_of_odd_width(tree: Path, columns: str) -> None:
    done = forks.run(tree, "check", "--no-cache", "--output-format", "full", "a1.py", COLUMNS=columns)
    assert (done.returncode, "SL005" in done.stdout, "Traceback" in done.stderr) == (1, True, False)


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
