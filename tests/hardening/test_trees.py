"""Trees that hold what is no source: pipes, devices, loops, holes, odd names. Each run ends, and says what it left out."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import forks
import pytest
from hardening.groups import as_anyone
from hardening.inputs import MISUSE

DEEP = 1_900  # deeper than calls may nest; paths have at most 4,096 bytes
SOURCE = "import torch\ntorch.cuda.synchronize()\n"


def run(folder: Path, *words: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return forks.run(folder, "check", "--no-cache", *words, text=False, **more)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "ok.py").write_text(SOURCE)
    return tmp_path


def test_what_is_no_regular_file(tree: Path) -> None:
    os.mkfifo(tree / "pipe.py")
    (tree / "zero.cu").symlink_to("/dev/zero")
    (tree / "random.py").symlink_to("/dev/urandom")
    (tree / "memory.h").symlink_to("/proc/self/mem")
    (tree / "broken.py").symlink_to("nowhere.py")
    (tree / "loop.py").symlink_to("loop.py")
    (tree / "up").symlink_to("..")
    (tree / "folder.py").mkdir()
    (tree / "folder.py" / "back.py").symlink_to("../ok.py")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(tree)
        server.bind("socket.py")
        os.chdir(here)
        done = run(tree, "--isolated", "--output-format", "concise", ".")
    assert done.returncode == 1, done.stderr
    told = sorted(line for line in done.stdout.splitlines() if b"[SL000]" in line)
    for name, reason in (("broken.py", "broken symbolic link"), ("pipe.py", "not a regular file"), ("random.py", "not a regular file")):
        assert f"{name}:1:1: unreadable-source [SL000] {reason}".encode() in told
    for name in (b"loop.py", b"socket.py", b"zero.cu"):
        assert any(line.startswith(name) for line in told)


def test_links_out_of_the_tree(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A folder is not entered by a link, a file is read by one; both are left as they are."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "far.py").write_text(MISUSE)
    (tree / "folder").symlink_to(outside)
    done = run(tree, "--isolated", "--fix", "--unsafe-fixes", ".")
    assert (done.returncode, done.stdout) == (0, b"")
    (tree / "near.py").symlink_to(outside / "far.py")
    done = run(tree, "--isolated", "--output-format", "concise", ".")
    assert b"near.py:7:" in done.stdout
    done = run(tree, "--isolated", "--fix", "--unsafe-fixes", ".")
    assert (done.returncode, b"out of the tree" in done.stderr) == (2, True)
    assert (outside / "far.py").read_text() == MISUSE
    assert (tree / "near.py").is_symlink()


def test_files_with_holes(tree: Path) -> None:
    for name in ("hole.py", "hole.cu"):
        with (tree / name).open("wb") as file:
            file.write(b"import torch\n")
            file.truncate(1 << 30)
    done = run(tree, "--isolated", ".")
    assert done.returncode == 1
    assert done.stdout.count(b"larger than 16 MiB") == 2


@pytest.mark.parametrize("kind", ["pipe", "zero", "hole", "folder"])
@pytest.mark.parametrize(
    "name",
    ["pyproject.toml", "streamlint.toml", ".gitignore", "CMakeLists.txt", "setup.py", "Makefile", "compile_commands.json", "cmake/x.cmake"],
)
def test_files_that_are_read_beside_sources(tree: Path, name: str, kind: str) -> None:
    path = tree / name
    path.parent.mkdir(exist_ok=True)
    (tree / "a.cu").write_text("#include <cuda_runtime.h>\nvoid f() { cudaDeviceSynchronize(); kernel<<<1, 1>>>(); }\n")
    (tree / "setup.cfg").write_text("CUDA")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "zero":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(1 << 30)
    done = run(tree, ".", "--select", "ALL")
    assert done.returncode in (0, 1, 2), done.stderr
    assert b"Traceback" not in done.stderr
    assert done.returncode < 2 or name.endswith("toml"), done.stderr


def test_a_baseline_that_never_ends(tree: Path) -> None:
    (tree / "streamlint.toml").write_text('baseline = "/dev/zero"\n')
    done = run(tree, ".")
    assert (done.returncode, b"not a regular file" in done.stderr) == (2, True)


NAMES = [b"a\nb.py", b"a\xff\xfe.py", b"a\x1b[31m.py", b" .py", b"-rf.py", b"a'\"`$(x).py", "ü\u202e.py".encode(), b"%s%n.py"]
# All other formats have made-up findings with such names in `test_output`.
NAMED = [(name, format) for format in ("json", "sarif") for name in NAMES]
NAMED += [(name, format) for format in ("concise", "junit", "github", "gitlab", "markdown", "full") for name in NAMES[:2]]


@pytest.mark.parametrize(("name", "format"), NAMED)
def test_names(tree: Path, name: bytes, format: str) -> None:
    source = b"import torch\ndef f(x):\n    h = torch.empty(9, device='cuda').to('cpu', non_blocking=True)\n    return h.numpy()\n"
    (Path(os.fsdecode(os.fsencode(tree) + b"/" + name))).write_bytes(source)
    done = run(tree, "--isolated", "--output-format", format, ".")
    assert done.returncode == 1, done.stderr
    assert b"\x1b" not in done.stdout
    if format == "json":
        (entry,) = json.loads(done.stdout)
        assert os.fsencode(entry["filename"]) == name


def test_a_pattern_that_takes_years(tree: Path) -> None:
    (tree / ".gitignore").write_text("*a" * 20 + "b\n" + "**/a/" * 20 + "b\n*.txt\n")
    (tree / ("a" * 200 + ".py")).write_text(SOURCE)
    (tree / "skipped.txt").write_text("")
    done = run(tree, ".")
    assert done.returncode == 0, done.stderr
    assert b"2 files" in done.stderr


@pytest.fixture
def deep(tree: Path) -> Iterator[str]:
    """The way to folders so deep that who removes them by calls, as pytest does in a later run, fails."""
    here = os.getcwd()
    os.chdir(tree)
    try:
        for _ in range(DEEP):
            os.mkdir("d")
            os.chdir("d")
        Path("a.py").write_text(SOURCE)
        Path("b.py").write_text(SOURCE)
        Path(".gitignore").write_text("b.py\n")
        os.chdir(here)
        yield "d/" * DEEP
    finally:
        os.chdir(here)
        subprocess.run(["rm", "-rf", tree / "d"], check=True)


def test_deep_folders(tree: Path, deep: str) -> None:
    for given in (".", f"{deep}a.py"):
        done = run(tree, given, "--force-exclude", "--output-format", "sarif")
        assert done.returncode == 0, done.stderr[-500:]
        assert (b"2 files" if given == "." else b"1 file,") in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="capabilities are Linux's")
def test_a_folder_that_may_not_be_read(tree: Path) -> None:
    (tree / "locked").mkdir()
    (tree / "locked" / "a.py").write_text(SOURCE)
    (tree / "secret.py").write_text(SOURCE)
    (tree / "secret.py").chmod(0)
    (tree / "locked").chmod(0)
    command = [sys.executable, "-m", "streamlint", "check", "--no-cache", "--isolated", "."]  # what is dropped is gone with a new program
    more = {"cwd": tree, "env": {**os.environ, "PYTHONPATH": forks.PATHS}, "preexec_fn": as_anyone}
    done = subprocess.run(command, capture_output=True, timeout=120, check=False, **more)  # type: ignore[call-overload]
    (tree / "locked").chmod(0o755)
    assert done.returncode == 1  # for the file; a folder that cannot be listed is a warning
    assert (done.stdout.count(b"Permission denied"), done.stderr.count(b"Permission denied")) == (1, 1)


def test_standard_input_without_end(tree: Path) -> None:
    with open("/dev/zero", "rb") as zero:
        done = run(tree, "--isolated", "-", stdin=zero)
    assert (done.returncode, b"larger than 16 MiB" in done.stderr) == (2, True)
