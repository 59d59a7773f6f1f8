"""``--executor dask``: a real scheduler and two worker processes, one of which is killed; and all that can be wrong before."""

from __future__ import annotations

import concurrent.futures
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import until

from streamlint import build_files
from streamlint.cache.parts import says_the_same
from streamlint.checks.base import registry
from streamlint.config.options import Options, Source
from streamlint.findings import Finding, Part
from streamlint.runner.cluster import analyst, client, tasks
from streamlint.runner.cluster.job import Job
from streamlint.runner.engine import analyse
from streamlint.runner.parsing import Parser
from streamlint.support.errors import StreamlintError
from streamlint.support.memory import is_frozen
from streamlint.triage.precedence import winners

ROOT = Path(__file__).parents[2]
FILES = 20
STALL = """import torch
from app.m{other} import make{other}


def make{number}(n):
    return torch.empty(n + {number})


def load(n):
    host = make{other}(n)
    return host.to("cuda", non_blocking=True)
"""
KERNEL = """#include <cuda_runtime.h>
__global__ void fill(float* to) { to[threadIdx.x] = 1; }
void run(float* to, cudaStream_t one) {
  float* more;
  cudaMallocAsync(&more, 4096, one);
  fill<<<1, 32, 0, one>>>(more);
  cudaMemcpy(to, more, 128, cudaMemcpyDeviceToHost);
}
"""
SETUP = """from setuptools import setup
from torch.utils.cpp_extension import CUDAExtension
setup(ext_modules=[CUDAExtension("k", ["kernel.cu"], extra_compile_args={"nvcc": ["--default-stream=per-thread"]})])
"""


def environment(**more: str) -> dict[str, str]:
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("DASK", "COV", "STREAMLINT", "PYTHONWARN")) and "COLOR" not in key
    }
    return {**kept, "PYTHONPATH": str(ROOT), "STREAMLINT_NO_CACHE": "1", "STREAMLINT_SCHEDULER_SECONDS": "30", **more}


def start(folder: Path, *words: str, **more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "streamlint", "check", "app", "--select", "ALL", "--output-format", "json", *words]
    return subprocess.Popen(command, cwd=folder, env=environment(**more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def told(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    try:
        out, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    return process.returncode, out, errors


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "app").mkdir()
    for number in range(FILES):
        (tmp_path / "app" / f"m{number}.py").write_text(STALL.format(number=number, other=(number + 1) % FILES))
    (tmp_path / "app" / "kernel.cu").write_text(KERNEL)
    (tmp_path / "app" / "setup.py").write_text(SETUP)
    return tmp_path


class Cluster:
    """Processes as an administrator would start them, in a folder where the tree is not."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "scheduler.json"
        self._all: list[subprocess.Popen[bytes]] = []
        self._start("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0")
        self.workers = [self._start("distributed.cli.dask_worker", "--no-nanny", "--nthreads", "1", "--no-dashboard") for _ in range(2)]

    def _start(self, module: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", module, *words, "--scheduler-file", str(self.file)]
        process = subprocess.Popen(command, cwd=self.folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._all.append(process)
        return process

    @property
    def address(self) -> str:
        return str(until(lambda: self.file.exists() and json.loads(self.file.read_text() or "{}").get("address")))

    def stop(self) -> None:
        for process in self._all:
            process.kill()
            process.wait()


def children(process: subprocess.Popen[bytes]) -> list[str]:
    return subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True).stdout.split()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    (tmp_path / "cluster").mkdir()
    made = Cluster(tmp_path / "cluster")
    yield made
    made.stop()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs fork and ps")
def test_on_a_cluster(tree: Path, cluster: Cluster) -> None:
    local = told(start(tree))
    assert local[0] == 1
    assert local[2].startswith(f"{FILES + 2} files, {FILES + 2} mention CUDA, ")
    far = ("--executor", "dask", "--scheduler", cluster.address)

    other = tree / "other"  # the same version, another code
    shutil.copytree(ROOT / "streamlint", other / "streamlint", ignore=shutil.ignore_patterns("__pycache__", "evidence"))
    (other / "streamlint" / "more.py").write_text("")
    code, _, errors = told(start(tree, *far, PYTHONPATH=str(other)))
    assert code == 2
    assert "of other code, or with another Python" in errors
    version = other / "streamlint" / "__init__.py"
    version.write_text(version.read_text().replace('__version__ = "', '__version__ = "9'))
    code, _, errors = told(start(tree, *far, PYTHONPATH=str(other)))
    assert (code, len(errors.splitlines())) == (2, 1)
    assert "has streamlint 0" in errors
    assert "this is streamlint 90" in errors

    # A worker is killed while it has a process at work.
    running = start(tree, *far)
    busy = until(lambda: next((worker for worker in cluster.workers if children(worker)), None))
    (left,) = (worker for worker in cluster.workers if worker is not busy)
    busy.send_signal(signal.SIGKILL)
    assert running.poll() is None, "it was over before"
    assert told(running) == local
    # What is left works on; what it says can be kept.
    kept = {"STREAMLINT_NO_CACHE": "", "STREAMLINT_CACHE_DIR": str(tree / "kept")}
    assert told(start(tree, *far, **kept)) == local
    assert children(left)
    left.send_signal(signal.SIGKILL)
    code, _, errors = told(start(tree, *far, STREAMLINT_SCHEDULER_SECONDS="2"))
    assert (code, errors) == (2, f"streamlint: the Dask scheduler at {cluster.address} has no workers\n")
    assert told(start(tree, **kept)) == local


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--executor", "dask"), "--executor dask needs --scheduler ADDRESS"),
        (("--scheduler", "tcp://127.0.0.1:1"), "--scheduler needs --executor dask"),
        (("--executor", "dask", "--scheduler", "tcp://127.0.0.1:1"), "no Dask scheduler answers at tcp://127.0.0.1:1 within 1 s"),
        (("--executor", "dask", "--scheduler", "odd://x"), "no Dask scheduler answers at odd://x within 1 s (unknown address scheme 'odd'"),
    ],
)
def test_wrong_options(tree: Path, words: tuple[str, ...], says: str) -> None:
    code, out, errors = told(start(tree, *words, STREAMLINT_SCHEDULER_SECONDS="1"))
    assert (code, out, len(errors.splitlines())) == (2, "", 1)
    assert errors.startswith(f"streamlint: {says}")


def test_another_executor(tree: Path) -> None:
    code, out, errors = told(start(tree, "--executor", "ray"))
    assert (code, out, len(errors.splitlines())) == (2, "", 1)


def test_without_the_package(tree: Path) -> None:
    (tree / "distributed.py").write_text("raise ImportError\n")
    path = os.pathsep.join((str(tree), str(ROOT)))
    code, _, errors = told(start(tree, "--executor", "dask", "--scheduler", "tcp://127.0.0.1:1", PYTHONPATH=path))
    assert (code, errors) == (2, "streamlint: --executor dask needs a package that is not here: pip install 'streamlint[dask]'\n")


def test_nothing_of_it_is_imported_without_the_option(tree: Path) -> None:
    wanted = "('distributed', 'dask', 'streamlint.runner.cluster')"
    ask = f"import sys; from streamlint import cli; cli.main(['check', '-q']); print([m for m in sys.modules if m.startswith({wanted})])"
    done = subprocess.run([sys.executable, "-c", ask], cwd=tree, env=environment(), capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


class KilledWorker(Exception):
    """Named as Dask names it."""


def played(outcome: Callable[[list[str]], object]) -> tuple[dict[str, object], list[list[str]]]:
    hands: list[list[str]] = []

    def submit(hand: list[str]) -> concurrent.futures.Future[object]:
        hands.append(hand)
        future: concurrent.futures.Future[object] = concurrent.futures.Future()
        try:
            future.set_result(outcome(hand))
        except Exception as error:
            future.set_exception(error)
        return future

    answers = client.gather(submit, client.dealt(["a", "b", "c", "d", "e", "f"], len, 1), lambda: None)  # type: ignore[arg-type]
    return dict(answers), hands


def test_what_ends_workers_costs_itself_alone() -> None:
    def outcome(hand: list[str]) -> object:
        if "b" in hand:
            raise KilledWorker
        if "c" in hand:
            raise tasks.AnalystDiedError("left out: the linter was ended by SIGSEGV while it looked at it")
        return dict.fromkeys(hand, "well")

    answers, hands = played(outcome)
    assert answers.pop("b") == "left out: Dask workers ended while they looked at it"
    assert answers.pop("c") == "left out: the linter was ended by SIGSEGV while it looked at it"
    assert answers == dict.fromkeys("adef", "well")
    assert sorted(map(sorted, hands)) == [["a"], ["a", "b", "c", "d", "e", "f"], ["b"], ["c"], ["d"], ["e"], ["f"]]


def test_a_fault_of_ours_ends_the_run() -> None:
    def outcome(hand: list[str]) -> object:
        raise ZeroDivisionError("by zero")

    with pytest.raises(StreamlintError, match="a Dask worker failed: ZeroDivisionError: by zero"):
        played(outcome)


@pytest.mark.parametrize("beside", [SETUP, ""], ids=["per-thread", "nothing"])
def test_other_build_files_are_noticed(tree: Path, monkeypatch: pytest.MonkeyPatch, beside: str) -> None:
    """An answer that rests on build files that are not those here is not taken."""
    monkeypatch.chdir(tree / "app")
    Path("setup.py").write_text(SETUP)
    sources, options = [Source("kernel.cu", KERNEL, "cuda"), Source("m0.py", STALL.format(number=0, other=1), "python")], Options()
    build_files.forget()
    parser = Parser(sources)
    job = Job(os.getcwd(), tuple(parser.sources), options, parser.sent(), 60)
    Path("setup.py").write_text(beside)
    build_files.forget()
    codes = sorted(registry())
    answers = analyst.Analyst(job).answers(codes)
    assert not is_frozen()
    Path("setup.py").write_text(SETUP)
    build_files.forget()
    first = answers[codes[0]]
    assert isinstance(first, Part)
    assert says_the_same(first) is (beside == SETUP)
    found = [finding for answer in answers.values() for finding in answer.findings]  # type: ignore[union-attr]
    told = sorted(winners(found), key=Finding.sort_key)
    assert (told == analyse(sources, options).findings) is (beside == SETUP)
