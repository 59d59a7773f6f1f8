"""A package that is not there, or does not work there, costs what needs it, with one message, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STALL = """import torch


def load(n):
    host = torch.empty(n)
    return host.to("cuda", non_blocking=True)
"""
KERNEL = """#include <cuda_runtime.h>
void run(float* to, float* from, cudaStream_t s) {
  for (int i = 0; i < 9; ++i) {
    float* more;
    cudaMalloc(&more, 4096);
    cudaMemcpyAsync(more, from, 4096, cudaMemcpyDefault, s);
    cudaFree(more);
  }
}
"""
INLINE = '''import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cuda_runtime.h>
void run() {
  cudaDeviceSynchronize();
}
"""
module = load_inline("m", cpp_sources="", cuda_sources=SOURCE, functions=["run"])
'''
WITHOUT = '''
import sys

package, how, *words = sys.argv[1:]

class Without:
    """A finder that does not see a package, or whose package fails to load."""

    def __init__(self, finder):
        self._finder = finder

    def __getattr__(self, name):
        return getattr(self._finder, name)

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] != package:
            return self._finder.find_spec(name, path, target)
        if how == "broken":
            raise ImportError("made for another system")

sys.meta_path[:] = map(Without, sys.meta_path)
from streamlint.cli import main
sys.argv = ["streamlint", *words]
sys.exit(main())
'''


def run(package: str, tree: Path, *words: str, how: str = "absent") -> tuple[int, str, str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "STREAMLINT_CACHE_DIR": str(tree / "cache")}
    command = [sys.executable, "-c", WITHOUT, package, how, *words]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=40)
    return done.returncode, done.stdout, done.stderr


CHECK = ("check", "--isolated", "--select", "ALL", "--output-format", "concise", "app")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "loader.py").write_text(STALL)
    for number in range(4):
        (tmp_path / "app" / f"kernel{number}.cu").write_text(KERNEL)
    return tmp_path


def test_all_of_it_is_found_with_the_packages(tree: Path) -> None:
    code, out, errors = run("no_such_package", tree, *CHECK)
    assert (code, "loader.py" in out, "kernel0.cu" in out, "warning" in errors) == (1, True, True, False)


@pytest.mark.parametrize("package", ["tree_sitter_cuda", "tree_sitter"])
def test_without_the_parser_of_cpp_python_is_linted_and_it_is_said_once(tree: Path, package: str) -> None:
    name = package.replace("_", "-")
    for _ in range(2):  # with an empty cache, and with a full one
        code, out, errors = run(package, tree, *CHECK)
        assert (code, "loader.py:6:" in out, "kernel" in out) == (1, True, False)
        told = [line for line in errors.splitlines() if name in line]
        assert told == [
            f"warning: app/kernel0.cu:1:1: left out, with 3 others: no parser for C++ ({name} is not installed): pip install {name}"
        ]
        assert "Traceback" not in errors
        assert "5 files, 5 mention CUDA" in errors


def test_a_parser_that_does_not_work_here_says_why(tree: Path) -> None:
    code, out, errors = run("tree_sitter_cuda", tree, *CHECK, how="broken")
    assert (code, "loader.py:6:" in out) == (1, True)
    assert errors.count("no parser for C++ (tree-sitter-cuda does not work here: made for another system)") == 1


def test_once_the_parser_is_there_cpp_is_read(tree: Path) -> None:
    run("tree_sitter_cuda", tree, *CHECK)
    code, out, errors = run("no_such_package", tree, *CHECK)
    assert (code, "kernel0.cu" in out, "warning" in errors) == (1, True, False)


def test_cpp_in_strings_of_python_counts_too(tree: Path) -> None:
    for path in (tree / "app").glob("*.cu"):
        path.unlink()
    (tree / "app" / "inline.py").write_text(INLINE)
    code, out, errors = run("tree_sitter_cuda", tree, *CHECK)
    assert (code, "loader.py:6:" in out) == (1, True)
    assert errors.count("no parser for C++") == 1


def test_fixes_of_python_need_no_parser_of_cpp(tree: Path) -> None:
    code, _, errors = run("tree_sitter_cuda", tree, *CHECK, "--fix", "--unsafe-fixes")
    assert (code, "Traceback" in errors) == (0, False)
    assert (tree / "app" / "loader.py").read_text() != STALL


def test_a_tree_without_cpp_says_nothing(tree: Path) -> None:
    for path in (tree / "app").glob("*.cu"):
        path.unlink()
    code, _, errors = run("tree_sitter_cuda", tree, *CHECK)
    assert (code, "warning" in errors) == (1, False)


def test_without_the_automaton_the_same_is_found(tree: Path) -> None:
    (tree / "app" / "plain.py").write_text("x = 1\n")
    assert run("ahocorasick_rs", tree, *CHECK, "--no-cache") == run("no_such_package", tree, *CHECK, "--no-cache")


def test_watching_needs_watchfiles(tree: Path) -> None:
    code, out, errors = run("watchfiles", tree, *CHECK, "--watch")
    assert (code, out, errors) == (2, "", "streamlint: --watch needs watchfiles, which is not installed: pip install watchfiles\n")
    assert run("watchfiles", tree, *CHECK)[0] == 1


def test_completion_needs_shtab(tree: Path) -> None:
    code, out, errors = run("shtab", tree, "generate-shell-completion", "bash")
    says = "streamlint: generate-shell-completion needs shtab, which is not installed: pip install shtab\n"
    assert (code, out, errors) == (2, "", says)
    assert "does not work here: made for another system" in run("shtab", tree, "generate-shell-completion", "zsh", how="broken")[2]
    assert run("shtab", tree, *CHECK)[0] == 1


def test_the_server_needs_pygls(tree: Path) -> None:
    code, out, errors = run("pygls", tree, "server")
    assert (code, out, len(errors.splitlines())) == (2, "", 1)
    assert "pip install 'streamlint[server]'" in errors
