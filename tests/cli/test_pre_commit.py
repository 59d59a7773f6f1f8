"""The hook, run by pre-commit offline: its entry stands in a local hook that calls the installed command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BAD = b"# \xff\xfe\nx = 1\n"
GOOD = "x = 1\n"


@pytest.fixture
def commit(tmp_path, monkeypatch):
    """Commits a file in a repository with the hook; returns the finished git process."""
    import yaml  # of pre-commit, which the `test` extra brings: its lack is a failure

    (hook,) = [hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text()) if hook["id"] == "streamlint"]
    command, *rest = hook["entry"].split()
    assert command == "streamlint"
    hook |= {"entry": " ".join([str(Path(sys.executable).with_name(command)), *rest]), "language": "system"}
    hook["args"] = ["--select", "SL000"]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PRE_COMMIT_HOME": str(tmp_path / "cache"), "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*words):
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        return subprocess.run(["git", *identity, *words], cwd=repository, env=env, capture_output=True, text=True)

    def add(name, content):
        path = repository / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        git("add", name)
        return git("commit", "-m", name)

    repository = tmp_path / "repository"
    repository.mkdir()
    git("init", "-q")
    config = {"repos": [{"repo": "local", "hooks": [hook]}]}
    (repository / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    git("add", ".")
    git("commit", "-q", "-m", "start")
    install = [sys.executable, "-m", "pre_commit", "install"]
    subprocess.run(install, cwd=repository, env=env, check=True, capture_output=True)
    return add


def test_a_bad_commit_is_blocked_and_a_good_one_passes(commit):
    blocked = commit("bad.py", BAD)
    assert blocked.returncode == 1
    assert "bad.py:1:1: not UTF-8" in blocked.stderr + blocked.stdout


def test_a_good_commit_passes(commit):
    assert commit("good.py", GOOD).returncode == 0


def test_excluded_files_pass(commit):
    assert commit("tests/bad.py", BAD).returncode == 0
