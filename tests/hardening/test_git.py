"""Wherever git is asked, or what it keeps is read: each kind of repository, and a git that is gone, hangs, lies or never stops talking."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import forks
import pytest
from hardening.groups import begun
from hardening.inputs import MISUSE
from waiting import until

from streamlint.support import git
from streamlint.support.errors import ConfigError
from streamlint.triage import changes
from streamlint.triage.changes import Changes

WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
SINCE = ("--since", "HEAD", "--output-format", "concise")


def say(folder: Path, *words: str) -> None:
    command = ["git", "-c", "protocol.file.allow=always", *words]
    subprocess.run(command, cwd=folder, env={**os.environ, **WHO}, capture_output=True, check=True)


def run(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    done = forks.run(folder, "check", "--isolated", "--no-cache", *words, **more)
    assert "Traceback" not in done.stderr
    return done


def told(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [":".join(line.split(":")[:2]) for line in done.stdout.splitlines()]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """One with an old misuse, in which a new one is not committed."""
    here = tmp_path / "here"
    here.mkdir()
    say(here, "init", "-q")
    (here / "old.py").write_text(MISUSE)
    (here / "new.py").write_text("import torch\n")
    say(here, "add", ".")
    say(here, "commit", "-q", "-m", "first")
    (here / "new.py").write_text(MISUSE.replace("run", "fresh"))
    return here


def test_a_worktree(repository: Path, tmp_path: Path) -> None:
    """There ``.git`` is a file, and what is excluded stands in the folder of the repository."""
    say(repository, "worktree", "add", "-q", str(tmp_path / "there"))
    there = tmp_path / "there"
    (there / "old.py").write_text("# one line more\n" + MISUSE.replace("return host.numpy()", "return host.numpy() + 1"))
    assert told(run(there, *SINCE, ".")) == ["old.py:8"]
    (repository / ".git" / "info").mkdir(exist_ok=True)
    (repository / ".git" / "info" / "exclude").write_text("old.py\n")
    assert "1 file," in run(there, ".").stderr


def test_a_submodule(repository: Path, tmp_path: Path) -> None:
    """It does not know the revision: all of its findings are told, with a word on why."""
    other = tmp_path / "other"
    other.mkdir()
    say(other, "init", "-q")
    (other / "old.py").write_text(MISUSE.replace("run", "part"))
    say(other, "add", ".")
    say(other, "commit", "-q", "-m", "first")
    say(repository, "submodule", "add", "-q", str(other), "part")
    say(repository, "commit", "-q", "-m", "second")
    say(repository, "tag", "mine")
    done = run(repository, "--since", "mine", "--output-format", "concise", ".")
    assert told(done) == ["new.py:7", "part/old.py:7"]
    assert "warning: all findings in part, a repository of its own, are reported: --since: " in done.stderr
    assert told(run(repository, *SINCE, ".")) == ["new.py:7"]


@pytest.mark.parametrize("text", ["gitdir: /nowhere\n", "nonsense", "", "gitdir: ../here/.git\n", "gitdir:" + "x" * 70_000])
def test_a_git_that_is_a_file(repository: Path, tmp_path: Path, text: str) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / ".git").write_text(text)
    (there / "new.py").write_text(MISUSE)
    assert told(run(there, "--output-format", "concise", ".")) == ["new.py:7"]
    done = run(there, *SINCE, ".")
    if "../here" in text:
        assert told(done) == ["new.py:7"]
    else:
        assert (done.returncode, done.stdout, done.stderr.count("streamlint: --since: ")) == (2, "", 1)


@pytest.mark.parametrize("kind", ["pipe", "folder", "loop", "endless"])
def test_a_git_that_is_neither(tmp_path: Path, kind: str) -> None:
    path = tmp_path / ".git"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(".git" if kind == "loop" else "/dev/zero")
    (tmp_path / "a.py").write_text(MISUSE)
    assert told(run(tmp_path, "--output-format", "concise", ".")) == ["a.py:7"]
    done = run(tmp_path, *SINCE, ".")
    assert (done.returncode, done.stdout) == (2, "")
    assert "streamlint: --since: " in done.stderr


def test_a_bare_repository(repository: Path, tmp_path: Path) -> None:
    say(tmp_path, "clone", "-q", "--bare", str(repository), "bare")
    (tmp_path / "bare" / "a.py").write_text(MISUSE)
    assert run(tmp_path / "bare", ".").returncode == 1
    done = run(tmp_path / "bare", *SINCE, ".")
    assert (done.returncode, done.stderr) == (2, "streamlint: --since: . is in no git repository\n")


def test_the_environment_of_a_hook_of_another_repository(repository: Path, tmp_path: Path) -> None:
    say(tmp_path, "init", "-q", "other")
    other = tmp_path / "other"
    more = {"GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other), "GIT_INDEX_FILE": str(other / "none"), "GIT_PREFIX": "x/"}
    assert told(run(repository, *SINCE, ".", **more)) == ["new.py:7"]


def test_names_that_git_quotes(repository: Path) -> None:
    say(repository, "config", "core.quotePath", "false")
    name = 'ü"日\t.py'
    (repository / name).write_text("import torch\n")
    say(repository, "add", ".")
    say(repository, "commit", "-q", "-m", "second")
    (repository / name).write_text(MISUSE)
    assert run(repository, *SINCE, ".").stdout.count("SL005") == 1


def test_no_git(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    done = run(repository, *SINCE, ".", PATH=str(tmp_path / "bin"))
    assert (done.returncode, done.stderr) == (2, "streamlint: --since: git is not installed\n")
    (tmp_path / "bin" / "git").write_text("no program")
    (tmp_path / "bin" / "git").chmod(0o755)
    done = run(repository, *SINCE, ".", PATH=str(tmp_path / "bin"))
    assert (done.returncode, done.stderr) == (2, "streamlint: --since: git cannot be started: Exec format error\n")
    assert run(repository, ".", PATH=str(tmp_path / "bin")).returncode == 1


LIES = {
    "nonsense": "echo nonsense",
    "bytes": "head -c 3000 /dev/urandom",
    "a number": "printf 'diff --git a/new.py b/new.py\\n+++ b/new.py\\n@@ -1 +'; head -c 9000 /dev/zero | tr '\\0' 9; echo ' @@'",
    "a quote": "printf 'diff --git a/x b/x\\n+++ \"b/\\\\x\"\\n'",
    "a letter": "printf 'diff --git a/x b/x\\n+++ \"b/日\"\\n'",
    "its end": "exit 3",
    "a signal": "kill -9 $$",
}


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git that says what a test tells it to say."""
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return program


@pytest.mark.parametrize("lie", LIES)
def test_a_git_that_lies(repository: Path, fake: Path, lie: str) -> None:
    fake.write_text(f'#!/bin/sh\ncase "$*" in *diff*) {LIES[lie]};; esac\n')
    done = run(repository, *SINCE, ".")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("streamlint: --since: ")


def test_a_git_that_says_that_all_has_changed(repository: Path, fake: Path) -> None:
    """Lines are not counted out."""
    fake.write_text(
        "#!/bin/sh\ncase \"$*\" in *diff*) printf 'diff --git a/new.py b/new.py\\n+++ b/new.py\\n@@ -1 +1,999999999999 @@\\n';; esac\n"
    )
    assert told(run(repository, *SINCE, ".")) == ["new.py:7"]


@pytest.mark.parametrize("what", ["yes", "sleep 1000 & sleep 1000", "trap '' TERM HUP INT; while :; do sleep 1; done"])
def test_a_git_without_end(repository: Path, fake: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    fake.write_text(f"#!/bin/sh\necho $$ >> {fake}.pid\n{what}\n")
    monkeypatch.setattr(git, "SECONDS", 1.5)
    monkeypatch.setattr(git, "MOST_BYTES", 1 << 20)
    with pytest.raises(ConfigError, match=r"--since: git (says more than 1 MiB|gave no answer within 2 s)"):
        Changes("HEAD").check(repository)
    for number in map(int, Path(f"{fake}.pid").read_text().split()):
        _gone(number)
    assert changes.Changes("HEAD").remarks == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_ended_while_git_hangs(repository: Path, fake: Path, number: signal.Signals) -> None:
    fake.write_text(f"#!/bin/sh\necho $$ > {fake}.pid\nsleep 1000\n")
    with begun(repository, "check", "--isolated", "--no-cache", *SINCE, ".") as process:
        until(lambda: Path(f"{fake}.pid").exists() and Path(f"{fake}.pid").read_text())
        time.sleep(0.2)
        process.send_signal(number)
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, b"Traceback" in errors) == (130 if number == signal.SIGINT else -number, b"", False), errors
    _gone(int(Path(f"{fake}.pid").read_text()))


def _gone(group: int) -> None:
    """Nothing of a group of processes is left, once their new parent has heard of their end."""

    def asked() -> bool:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        return False

    until(asked)
