"""The hook, run by pre-commit offline: its entry stands in a local hook that calls the installed command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BAD = b"# \xff\xfe\nx = 1\n"
GOOD = "x = 1\n"
MISUSE = 'import torch\n\n\ndef load(n):\n    return torch.empty(n).to("cuda", non_blocking=True)\n'


def git_in(folder, env):
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    return lambda *words: subprocess.run(["git", *identity, *words], cwd=folder, env=env, capture_output=True, text=True)


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
    shown = blocked.stderr + blocked.stdout
    assert "not UTF-8" in shown
    assert "bad.py:1:1" in shown


def test_a_good_commit_passes(commit):
    assert commit("good.py", GOOD).returncode == 0


def test_excluded_files_pass(commit):
    assert commit("tests/bad.py", BAD).returncode == 0


def test_the_example_of_the_readme(tmp_path):
    """As printed, with the path of a clone; the hook runs the installed command, for an installation needs a network."""
    import yaml

    command = Path(sys.executable).with_name("streamlint").parent
    env = {"PATH": f"{command}:{os.environ['PATH']}", "HOME": str(tmp_path), "PRE_COMMIT_HOME": str(tmp_path / "cache")}
    clone, user = tmp_path / "streamlint", tmp_path / "user"
    for folder in (clone, user):
        folder.mkdir()
        git_in(folder, env)("init", "-q")
    (clone / ".pre-commit-hooks.yaml").write_text((ROOT / ".pre-commit-hooks.yaml").read_text())
    git_in(clone, env)("add", ".")
    git_in(clone, env)("commit", "-qm", "start")
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    config = yaml.safe_load(block.replace("/path/to/streamlint", str(clone)))
    config["repos"][0]["hooks"][0]["language"] = "system"
    (user / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    (user / "a.py").write_text(MISUSE)
    git_in(user, env)("add", ".")
    run = subprocess.run([sys.executable, "-m", "pre_commit", "run"], cwd=user, env=env, capture_output=True, text=True)
    assert run.returncode == 1, run.stderr
    assert "unpinned-non-blocking [SL001]" in run.stdout
