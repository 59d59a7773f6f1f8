"""Programs that run recorded, in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import streamlint.record
from streamlint.support.errors import StreamlintError
from streamlint.trace.readers.recorded import read
from streamlint.trace.recording import cupti, run

ROOT = Path(__file__).parents[3]
PATHS = os.pathsep.join((str(ROOT), str(ROOT / "tests")))
PLAYED = "import os, sys\nfrom fake_cupti import played\nplayed(sys.modules['fake_cupti_library'])\n"


def begun(folder: Path, body: str, *arguments: str, fake: bool = True) -> subprocess.Popen[str]:
    """A program of this body, recorded into run.slt."""
    (folder / "program.py").write_text(PLAYED * fake + textwrap.dedent(body))
    start = [str(ROOT / "tests" / "fake_cupti.py")] if fake else ["-m", "streamlint.record"]
    return subprocess.Popen(
        [sys.executable, *start, "-o", "run.slt", *(arguments or ("program.py",))],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": PATHS, "CUDA_VISIBLE_DEVICES": ""},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # an interrupted `check` of another test ignores it
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_program_runs_as_python_runs_it(tmp_path: Path) -> None:
    body = """
        import __main__
        print(sys.argv, __name__, __main__.__file__, sys.path[0] == os.getcwd())
        sys.exit(7)
    """
    program = begun(tmp_path, body, "program.py", "--epochs", "1")
    out, err = program.communicate(timeout=30)
    assert (program.returncode, out, err) == (7, "['program.py', '--epochs', '1'] __main__ program.py True\n", "")
    trace = read(tmp_path / "run.slt")
    assert len(trace.calls) == 3
    assert trace.notes == [] or "compiler" in trace.notes[0]


def test_an_exception_is_shown_as_python_shows_it(tmp_path: Path) -> None:
    program = begun(tmp_path, "def f():\n    raise ValueError('mine')\nf()\n", "-m", "program")
    _, err = program.communicate(timeout=30)
    plain = subprocess.run([sys.executable, "-c", "def f():\n    raise ValueError('mine')\nf()\n"], capture_output=True, text=True)
    assert program.returncode == plain.returncode == 1
    assert [row for row in err.split("\n") if "File" in row] == [
        f'  File "{tmp_path}/program.py", line 6, in <module>',
        f'  File "{tmp_path}/program.py", line 5, in f',
    ]
    assert err.split("\n")[-2] == plain.stderr.split("\n")[-2]
    assert len(read(tmp_path / "run.slt").calls) == 3


def test_ctrl_c_closes_the_file_and_is_passed_on(tmp_path: Path) -> None:
    program = begun(tmp_path, "import time\nprint('here', flush=True)\ntime.sleep(30)\n")
    assert program.stdout is not None
    assert program.stdout.readline() == "here\n"
    program.send_signal(signal.SIGINT)
    _, err = program.communicate(timeout=30)
    assert program.returncode == -signal.SIGINT
    assert err.endswith("KeyboardInterrupt\n")
    trace = read(tmp_path / "run.slt")
    assert len(trace.calls) == 3
    assert not any("breaks off" in note for note in trace.notes)


def test_without_a_gpu_the_program_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = begun(tmp_path, "print('ran')\n", fake=False)
    out, err = program.communicate(timeout=30)
    if "libcuda" not in err and "no GPU" not in err:
        pytest.fail(f"this test needs a machine without a GPU: {err}")
    assert (program.returncode, out) == (2, "")
    assert not (tmp_path / "run.slt").exists()
    monkeypatch.setattr(cupti, "load", lambda _name: None)
    with pytest.raises(StreamlintError, match="no CUDA driver"):
        run(["program.py"], tmp_path / "run.slt")


def test_bad_arguments_are_told(tmp_path: Path) -> None:
    program = begun(tmp_path, "", "none.py", fake=False)
    assert program.communicate(timeout=30) == ("", "streamlint: none.py: no such file\n")
    assert program.returncode == 2


def test_a_module_that_can_be_called() -> None:
    """Importing `streamlint.record` hides the function of that name."""
    assert callable(streamlint.record)
    assert streamlint.record.record.__doc__ is not None


@pytest.mark.parametrize("share", ["0", "101%", "half", ""])
def test_a_share_is_a_percentage(tmp_path: Path, share: str) -> None:
    (tmp_path / "program.py").touch()
    program = begun(tmp_path, "", "--share", share, "program.py")
    assert (program.communicate()[1], program.returncode) == (
        f"streamlint: --share: expected a percentage from 1% to 100%, not '{share}'\n",
        2,
    )
