"""The line that shows how far a run is."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator

import pytest

from streamlint import cli
from streamlint.runner import progress

pytest.importorskip("tqdm")
FILE = "import torch\n\n\ndef f(x):\n    return x.cuda()\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal for the errors, and a line that waits for nothing."""
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    return Terminal()


@contextlib.contextmanager
def told(stderr: io.StringIO, quiet: bool = False) -> Iterator[None]:
    with contextlib.redirect_stderr(stderr), progress.reporting(quiet):
        yield


def shown(terminal: io.StringIO) -> list[str]:
    return [part.strip() for part in terminal.getvalue().replace("\x1b[K", "").split("\r") if part.strip()]


def test_the_line_counts_files_and_names_the_one_in_progress(terminal: Terminal) -> None:
    with told(terminal):
        progress.expect(2)
        for _ in progress.over(["src/one.py", "src/two.py"], "checking", 2):
            pass
        progress.finish()
        lines = shown(terminal)
    assert lines[0].startswith("checking 0 of 2 files")
    assert lines[0].endswith("src/one.py")
    assert any(line.startswith("checking 1 of 2 files") and line.endswith("src/two.py") for line in lines)


def test_the_line_is_gone_at_the_end(terminal: Terminal) -> None:
    with told(terminal):
        for _ in progress.over(["a.py"], "checking", 1):
            pass
    assert terminal.getvalue().split("\r")[-1].strip() == ""


def test_quiet_and_pipes_show_no_line(terminal: Terminal) -> None:
    with told(terminal, quiet=True):
        list(progress.over(["a.py"], "checking", 1))
    assert terminal.getvalue() == ""
    pipe = io.StringIO()
    with told(pipe):
        list(progress.over(["a.py"], "checking", 1))
    assert pipe.getvalue() == ""


def test_a_run_on_a_terminal_goes_through_its_stages(terminal: Terminal, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(FILE)
    with contextlib.redirect_stderr(terminal):
        cli.main(["check", "--no-cache", "-j1", "."])
    stages = list(dict.fromkeys(line.split()[0] for line in shown(terminal) if " of " in line))
    assert stages[-2:] == ["parsing", "checking"]


def test_what_was_done_is_counted_per_stage() -> None:
    watched = progress._Progress(shows=False)
    assert watched.undone() == "interrupted; nothing is reported"
    watched.begin("reading", 3)
    watched.count()
    assert watched.undone() == "interrupted while reading: 1 of 3 files read, none linted; no finding is reported"
    watched.expected = 3
    watched.begin("checking", 3)
    watched.count()
    assert watched.undone() == "interrupted while checking: 1 of 3 files linted, 2 not; no finding is reported"
    watched.finish()
    assert watched.undone() == ""
