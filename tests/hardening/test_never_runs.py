"""Nothing of what is linted is run: not by the linter, not by Python when it starts, not by git."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hardening.inputs import MISUSE

ROOT = Path(__file__).parents[2]
SHELL = "#!/bin/sh\necho ran >> '{marker}'\n"
PACKAGES = (
    *(
        "torch",
        "cupy",
        "numba",
        "cuda",
        "tree_sitter",
        "tree_sitter_cuda",
        "ahocorasick_rs",
        "pathspec",
        "shtab",
        "watchfiles",
        "tomli",
    ),
    *(
        "tomllib",
        "tempfile",
        "multiprocessing",
        "json",
        "subprocess",
        "argparse",
        "difflib",
        "resource",
        "mmap",
        "traceback",
        "jinja2",
        "pygls",
    ),
)
BUILD = """[build-system]
requires = ["evil"]
build-backend = "backend"
backend-path = ["."]
[project]
name = "x"
version = "0"
[project.entry-points."streamlint"]
x = "backend:x"
[tool.streamlint]
select = ["ALL"]
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree in which each file that is run leaves a marker behind."""
    here, marker = tmp_path / "tree", tmp_path / "marker"
    here.mkdir()
    code = f"open({str(marker)!r}, 'a').write(__name__ + '\\n')\n"
    for name in ("setup", "conftest", "sitecustomize", "usercustomize", "noxfile", "backend", "hook", "__main__", "__init__"):
        (here / f"{name}.py").write_text(code + MISUSE)
    for name in PACKAGES:
        (here / f"{name}.py").write_text(code + MISUSE)
    (here / "pyproject.toml").write_text(BUILD)
    (here / "evil.pth").write_text(f"import os; os.system('echo pth >> {marker}')\n")
    (here / "CMakeLists.txt").write_text(f'execute_process(COMMAND sh -c "echo cmake >> {marker}")\nadd_library(a a.cu)\n')
    (here / "Makefile").write_text(f"X := $(shell echo make >> {marker})\nall:\n\tnvcc a.cu\n")
    (here / "a.cu").write_text("#include <cuda_runtime.h>\nvoid f() { cudaDeviceSynchronize(); }\n")
    (here / "compile_commands.json").write_text(f'[{{"directory": ".", "command": "sh -c \'echo cc >> {marker}\'", "file": "a.cu"}}]')
    (here / "a.py").write_text(MISUSE)
    (here / "b.pyx").write_text("import torch\n" + code + "torch.cuda.synchronize()\n")
    return here


def run(tree: Path, *words: str, script: bool = False, **environment: str) -> subprocess.CompletedProcess[str]:
    more = {"PYTHONPATH": str(ROOT), **environment}
    call = [str(Path(sys.executable).with_name("streamlint"))] if script else [sys.executable, "-m", "streamlint"]
    return subprocess.run([*call, *words], cwd=tree, env={**os.environ, **more}, capture_output=True, text=True, timeout=120, check=False)


def marks(tree: Path) -> str:
    path = tree.parent / "marker"
    return path.read_text() if path.exists() else ""


@pytest.mark.parametrize("script", [False, True], ids=["module", "script"])
@pytest.mark.parametrize(
    "words",
    [
        ("check", "--jobs", "2", "."),
        ("check", "--fix", "--unsafe-fixes", "--select", "ALL", "--no-cache", "a.py", "setup.py"),
        ("check", "--show-settings", "."),
        ("check", "--add-ignore", "a.py"),
        ("check", "--explain-silence", "a.py:5", "a.py"),
        ("rule", "SL005"),
        ("evidence", "list"),
    ],
    ids=lambda words: words[0] + words[1],
)
def test_a_hostile_tree_is_read_only(tree: Path, words: tuple[str, ...], script: bool) -> None:
    done = run(tree, *words, script=script)
    assert marks(tree) == "", done.stderr
    assert done.returncode in (0, 1), done.stderr


def test_the_markers_work(tree: Path) -> None:
    subprocess.run([sys.executable, "setup.py"], cwd=tree, capture_output=True, check=False)
    assert marks(tree)


def test_a_program_of_verify_is_not_looked_for_in_the_current_folder(tree: Path) -> None:
    """Its child finds this package, and no library, where the user stands."""
    (tree / "streamlint").mkdir()
    (tree / "streamlint" / "__init__.py").write_text(f"open({str(tree.parent / 'marker')!r}, 'a').write('ours')\n")
    code = (
        "import sys; sys.path[:1] = []\nfrom streamlint.verify.device import Device\nwith Device(0) as device:\n    print(device.probe())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert marks(tree) == "", done.stderr
    assert "reason" in done.stdout


# Git ----------------------------------------------------------------------------------------------------------------------------


def git(folder: Path, *words: str) -> None:
    names = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    subprocess.run(["git", *words], cwd=folder, env={**os.environ, **names}, capture_output=True, check=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose configuration and hooks leave a marker, with a change in it."""
    here, program = tmp_path / "tree", tmp_path / "program"
    here.mkdir()
    program.write_text(SHELL.format(marker=tmp_path / "marker") + "cat 2>/dev/null\n")
    program.chmod(0o755)
    git(here, "init", "-q")
    (here / "a.py").write_text("x = 1\n")
    (here / "b.py").write_text("import torch\n")
    git(here, "add", ".")
    git(here, "commit", "-q", "-m", "first")
    (here / "a.py").write_text(MISUSE)
    (here / ".gitattributes").write_text("*.py diff=evil filter=evil\n*.cu filter=odd\n")
    hooks = here / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "fsmonitor-watchman", "post-checkout", "reference-transaction", "query-watchman"):
        (hooks / name).write_text(program.read_text())
        (hooks / name).chmod(0o755)
    keys = ("core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "diff.external", "diff.evil.command", "diff.evil.textconv")
    keys += ("filter.evil.clean", "filter.evil.smudge", "filter.odd.process", "pager.diff", "core.askPass", "gpg.program")
    for key in keys:
        git(here, "config", key, str(program))
    git(here, "config", "filter.odd.required", "true")
    return here


def test_git_starts_nothing_that_the_repository_names(repository: Path) -> None:
    done = run(repository, "check", "--isolated", "--no-cache", "--since", "HEAD", "--output-format", "concise", ".")
    assert marks(repository) == "", done.stderr
    assert done.returncode == 1, done.stderr
    assert "a.py:7" in done.stdout


def test_git_would_have_started_it(repository: Path) -> None:
    """Else the test above would show nothing."""
    subprocess.run(["git", "diff", "HEAD"], cwd=repository, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    assert marks(repository)


def test_changed_lines_that_look_like_a_diff(repository: Path) -> None:
    """What a file says of other files is not believed."""
    from streamlint.triage.changes import _parse

    diff = "diff --git a/a.py b/a.py\n"
    diff += "--- a/a.py\n+++ b/a.py\n@@ -1 +1,3 @@\n-x\n+a\n+++ b/other.py\n+b\x0c+++ b/other.py\n@@ -9,0 +11 @@\n+c\n"
    assert _parse(diff) == {"a.py": [(1, 3), (11, 1)]}


@pytest.mark.parametrize("revision", ["--output=x", "-O/dev/stdin", "", "HEAD --ext-diff", "HEAD\0x", "no/such"])
def test_a_revision_is_no_option(repository: Path, revision: str) -> None:
    if "\0" in revision:
        pytest.skip("the system takes no such argument")
    done = run(repository, "check", "--isolated", f"--since={revision}", ".")
    assert (done.returncode, marks(repository)) == (2, "")
    assert sorted(path.name for path in repository.iterdir()) == [".git", ".gitattributes", "a.py", "b.py"]
