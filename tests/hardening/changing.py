"""Runs in whose midst the tree is changed: ``python tests/hardening/changing.py [EVERY [COMMAND …]]`` tries all of it, and tells.

A step is a call by which a run asks the system for something in the tree, or in the cache: what stands in a folder, what a file is, what it
holds. Before the step, a file or folder is changed. Each run is a fork of one process that has all modules, so that it takes no longer than
its work.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from hardening.inputs import MISUSE  # noqa: E402

from streamlint import cli  # noqa: E402

CALLS = ("stat", "lstat", "scandir", "listdir", "open", "replace", "readlink", "access", "fsync")
SECONDS = 30  # in which each run ends, on any machine
CUDA = """#include <cuda_runtime.h>
#include "b.cuh"
void f(float* d) {
  float* h;
  cudaMallocHost(&h, 4 << 20);
  COPY(h, d);
  use(h[0]);
}
"""
HEADER = "#pragma once\n#define COPY(h, d) cudaMemcpyAsync(h, d, 4 << 20, cudaMemcpyDeviceToHost, 0)\n"
TREE = {
    "pyproject.toml": "[tool.streamlint]\nextend = 'base.toml'\nselect = ['SL001', 'SL005']\n",
    "base.toml": "baseline = 'known.json'\n",
    "known.json": json.dumps({"streamlint-baseline": 1, "findings": []}),
    ".gitignore": "*.tmp.py\n",
    "CMakeLists.txt": "add_library(k sub/a.cu)\n",
    "sub/.gitignore": "*.log\n",
    "sub/a.cu": CUDA,
    "sub/b.cuh": HEADER,
    "sub/m.py": MISUSE + "# streamlint: ignore[SL001]\n",
    "sub/n.py": MISUSE.replace("run", "other"),
    "z.py": MISUSE.replace("run", "last"),
}


class Change(NamedTuple):
    """What happens to a path of the tree."""

    name: str
    path: str
    do: Callable[[str], None]


def _gone(path: str) -> None:
    shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


def _instead(make: Callable[[str], object]) -> Callable[[str], None]:
    def do(path: str) -> None:
        _gone(path)
        make(path)

    return do


def _text(text: str) -> Callable[[str], None]:
    return lambda path: Path(path).write_text(text) and None


def _cut(path: str) -> None:
    os.truncate(path, 20)


WHATS: dict[str, Callable[[str], None]] = {
    "gone": _gone,
    "empty": lambda path: os.truncate(path, 0),
    "cut": _cut,
    "other": _text("import torch\n" + MISUSE.replace("run", "quite_another")),
    "no text": lambda path: Path(path).write_bytes(b"\xff\0torch.cuda" * 9) and None,
    "vast": lambda path: os.truncate(path, 1 << 30),
    "folder": _instead(os.mkdir),
    "pipe": _instead(os.mkfifo),
    "loop": _instead(lambda path: os.symlink(os.path.basename(path), path)),
    "dangling": _instead(lambda path: os.symlink("nowhere", path)),
    "zero": _instead(lambda path: os.symlink("/dev/zero", path)),
    "locked": lambda path: os.chmod(path, 0),
}
FILES = [name for name in TREE if name != "sub/m.py"]
FOLDERS = {
    "gone": _gone,
    "file": _instead(lambda path: Path(path).write_text("")),
    "pipe": _instead(os.mkfifo),
    "loop": _instead(lambda path: os.symlink(os.path.basename(path), path)),
    "emptied": _instead(os.mkdir),
}
CHANGES = [Change(name, file, do) for file in FILES for name, do in WHATS.items()]
CHANGES += [Change(name, folder, do) for folder in ("sub", "../kept") for name, do in FOLDERS.items()]
CHANGES.append(Change("gone", ".", _gone))

COMMANDS = {
    "cold": ["--no-cache", "."],
    "kept": ["--cache-dir", "../kept", "."],
    "warm": ["--cache-dir", "../kept", "."],
    "fix": ["--no-cache", "--fix", "--unsafe-fixes", "."],
    "add-ignore": ["--no-cache", "--add-ignore", "."],
    "write-baseline": ["--no-cache", "--write-baseline", "new.json", "."],
    "given": ["--no-cache", "--force-exclude", "sub/n.py", "sub/a.cu", "z.py"],
    "explain": ["--explain-silence", "sub/n.py:3", "."],
    "full": ["--no-cache", "--output-format", "full:../out.txt", "--output-format", "sarif:../out.sarif", "."],
}


class Told(NamedTuple):
    """How a run ended: its status (a negative one is a signal's), what it wrote, and its steps."""

    status: int
    out: str
    errors: str
    steps: int


class Bench:
    """A folder with the tree, and a cache beside it, that is made anew for each run."""

    def __init__(self, base: Path) -> None:
        self._base, self.tree, self._kept = base, base / "tree", base / "kept"
        self._known: dict[str, dict[str, str]] = {}
        for words in COMMANDS.values():  # what is imported by then need not be imported again
            self._plant("")
            here = os.getcwd()
            os.chdir(self.tree)
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                cli.main(["check", *words])
            os.chdir(here)
        self._plant("")
        self._run(COMMANDS["kept"])
        shutil.copytree(self._kept, base / "saved")

    def undisturbed(self, command: str) -> Told:
        """The run without a change, which has so many steps."""
        self._plant(command)
        told = self._run(COMMANDS[command])
        self._known[command] = self._texts()
        return told

    def fault(self, command: str, change: Change, step: int) -> str:
        """What is wrong with a run in whose midst the tree is changed; empty where nothing is."""
        self._plant(command)
        told = self._run(COMMANDS[command], change, step)
        if told.status not in (0, 1, 2):
            return f"status {told.status}: {told.errors[-1000:]}"
        if "Traceback" in told.errors or "internal error" in told.errors:
            return told.errors[-1000:]
        if told.status == 2 and "streamlint: " not in told.errors:
            return "it does not say why it failed"
        for name, text in self._texts().items():
            if name == "new.json":
                json.loads(text)
            elif not name.startswith(change.path) and text not in (TREE.get(name), self._known[command].get(name)):
                return f"{name} is neither old nor new"
        if command in ("kept", "warm") and self.tree.is_dir() and not (self._kept.exists() and not self._kept.is_dir()):
            again, cold = self._run(COMMANDS["kept"]), self._run(COMMANDS["cold"])
            if (again.status, again.out) != (cold.status, cold.out):
                return f"the cache says {again}, and the tree {cold}"
        return ""

    def _plant(self, command: str) -> None:
        for path in (self.tree, self._kept):
            if path.is_symlink() or path.is_file() or path.is_fifo():
                path.unlink()
            shutil.rmtree(path, ignore_errors=True)
        for name, text in TREE.items():
            path = self.tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            os.utime(path, (1_000_000_000, 1_000_000_000))
        if command == "warm":
            shutil.copytree(self._base / "saved", self._kept)

    def _texts(self) -> dict[str, str]:
        files = [path for path in self.tree.rglob("*") if path.is_file() and path.stat().st_size < 1 << 20]
        return {path.relative_to(self.tree).as_posix(): path.read_bytes().decode("utf-8", "replace") for path in files}

    def _run(self, words: list[str], change: Change | None = None, step: int = -1) -> Told:
        answer = self._base / "answer.json"
        answer.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            try:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(SECONDS)
                os.chdir(self.tree)
                out, errors = io.StringIO(), io.StringIO()
                steps = _Steps(self.tree, change, step)
                sys.stdout, sys.stderr = out, errors
                with steps.watched():
                    status = cli.main(["check", "--output-format", "github", "--jobs", "1", *words])
                answer.write_text(json.dumps([status, out.getvalue(), errors.getvalue(), steps.count]))
            except BaseException:
                answer.write_text(json.dumps([99, "", traceback.format_exc(), 0]))
            finally:
                os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return Told(*json.loads(answer.read_text())) if status == 0 and answer.exists() else Told(status, "", "", 0)


class _Steps:
    """Counts what is asked of the system about a tree, and changes it before one of the questions."""

    def __init__(self, tree: Path, change: Change | None, step: int) -> None:
        self.count = 0
        self._near = (str(tree), str(tree.parent / "kept"))
        self._tree, self._change, self._step = tree, change, step

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        import builtins

        named: list[tuple[Any, str]] = [(os, name) for name in CALLS]
        named += [(builtins, "open"), (io, "open")]
        before = [(module, name, getattr(module, name)) for module, name in named]
        for module, name, call in before:
            setattr(module, name, self._counting(call))
        try:
            yield
        finally:
            for module, name, call in before:
                setattr(module, name, call)

    def _counting(self, call: Callable[..., object]) -> Callable[..., object]:
        def step(*words: object, **more: object) -> object:
            if words and self._counts(words[0]):
                self.count += 1
                if self.count - 1 == self._step and self._change is not None:
                    self._happen(self._change)
            return call(*words, **more)

        return step

    def _counts(self, word: object) -> bool:
        if not isinstance(word, (str, bytes, os.PathLike)):
            return False
        path = os.fsdecode(word)
        return not path.startswith("/") or path.startswith(self._near)

    def _happen(self, change: Change) -> None:
        self._step = -1
        with contextlib.suppress(OSError):
            change.do(str(self._tree / change.path) if change.path != "." else str(self._tree))


def main(words: list[str]) -> int:
    """Try each change before each step, or before each n-th, of all commands or of those that are named."""
    every = int(words[0]) if words else 1
    tried = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        for command in words[1:] or COMMANDS:
            steps = bench.undisturbed(command).steps
            for change in CHANGES:
                for step in range(0, steps, every):
                    tried += 1
                    if fault := bench.fault(command, change, step):
                        failed += 1
                        print(f"{command}: {change.path}: {change.name} before step {step} of {steps}: {fault}", flush=True)
            print(f"{command}: {steps} steps, {tried} runs so far, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
