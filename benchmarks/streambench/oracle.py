"""Ask a GPU: do the programs of the benchmark do what their cases say?

    python -m benchmarks.streambench.oracle TREE --output FILE [--jobs 4] [--seconds 100]
    python -m benchmarks.streambench.oracle TREE --case NAME          one case, in this process

TREE is what `generate` wrote. Each case with an oracle runs in a process of its own: the repaired program first, then the bad one, each
in 20 runs with seeds of their own behind the gate of `streamlint.verify` on one stream. Oracles:

- `race`: the bad program returns other values than the repaired one with the same seed. The gate shuts the default stream, the first, the
  second or the third stream that the program creates, in turns.
- `stall`: the program returns only after the gate has opened. A repaired program that does so as well shows nothing.
- `calls`: PyTorch's debug mode counts at least 8 waits more in the bad program than in the repaired one.
- `error`: the bad program fails, the repaired one does not.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.util
import json
import os
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

from streamlint.verify.lab import Lab, handle_of

RUNS = 20
STALL_RUNS = 5  # with each of three streams shut
SCHEDULES = 4  # the default stream, and the first three that the program makes
GATE_MS = {"race": 50.0, "stall": 500.0}
MORE_WAITS = 8
ERROR_RUNS = 3
LIMIT_S = 60
NO_TIME = "no time left"


class Bench:
    """The libraries that are there, one gate, and the streams that a program makes."""

    def __init__(self) -> None:
        self.lab = Lab()
        self.torch = _library("torch")
        self.numba = _library("numba.cuda")
        self._schedule, self._made, self._gate_ms = -1, 0, 0.0
        self.gate: Any = None
        self._watch()

    def _watch(self) -> None:
        """Let the streams that programs make come by here."""
        cupy, bench = self.lab.cupy, self

        class CupyStream(cupy.cuda.Stream):  # type: ignore[name-defined, misc]
            def __init__(self, *words: Any, **options: Any) -> None:
                super().__init__(*words, **options)
                bench.made(self.ptr)

        CupyStream.null = cupy.cuda.Stream.null
        cupy.cuda.Stream = CupyStream
        if self.torch is not None:
            plain = self.torch.cuda.Stream

            class TorchStream(plain):  # type: ignore[misc, valid-type]
                def __new__(cls, *words: Any, **options: Any) -> Any:
                    stream = super().__new__(cls, *words, **options)
                    if "stream_id" not in options and "stream_ptr" not in options:
                        bench.made(stream.cuda_stream)
                    return stream

            self.torch.cuda.Stream = TorchStream
        if self.numba is not None:
            make = self.numba.stream

            def stream(*words: Any) -> Any:
                found = make(*words)
                bench.made(handle_of(found))
                return found

            self.numba.stream = stream

    def made(self, handle: int) -> None:
        """A stream of the program: shut it if it is its turn."""
        self._made += 1
        if self._schedule == self._made:
            self._shut(handle)

    def _shut(self, handle: int) -> None:
        self.gate = self.lab.gate(handle)
        self.gate.__enter__()
        self.gate.open_after(self._gate_ms)

    @contextlib.contextmanager
    def shut(self, schedule: int, gate_ms: float) -> Iterator[None]:
        """One run with one stream shut: the default one (0), the n-th that the program makes, or none (-1)."""
        self._schedule, self._made, self._gate_ms, self.gate = schedule, 0, gate_ms, None
        self.lab.synchronize()
        if schedule == 0:
            self._shut(0)
        try:
            yield
        finally:
            self._schedule = -1
            if self.gate is not None:
                self.gate.await_open()
                self.gate.__exit__(None, None, None)
            self.lab.synchronize()

    def seed(self, number: int) -> None:
        """Seed all generators of random numbers."""
        import numpy  # optional: comes with CuPy

        numpy.random.seed(number)
        self.lab.cupy.random.seed(number)
        if self.torch is not None:
            self.torch.manual_seed(number)

    def value(self, found: Any) -> Any:
        """What a program returned, as numbers."""
        if isinstance(found, (list, tuple)):
            return [self.value(each) for each in found]
        if hasattr(found, "copy_to_host"):
            found = found.copy_to_host()
        elif hasattr(found, "get") and hasattr(found, "device"):
            found = found.get()
        elif self.torch is not None and isinstance(found, self.torch.Tensor):
            found = found.detach().cpu().double().numpy()
        if hasattr(found, "sum") and hasattr(found, "reshape"):
            flat = found.reshape(-1).astype(float)
            return [float(flat.sum()), *(float(each) for each in flat[:: max(1, len(flat) // 16)])]
        return float(found) if isinstance(found, (int, float)) or hasattr(found, "__float__") else None


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except Exception:
        return None


def program(folder: Path, version: str) -> Callable[[], Any]:
    """The `main` of one version, with its own modules."""
    home = folder / version
    for name in [path.stem for path in home.glob("*.py")]:
        sys.modules.pop(name, None)
    sys.path.insert(0, str(home))
    try:
        spec = importlib.util.spec_from_file_location("program", home / "program.py")
        assert spec is not None
        assert spec.loader is not None
        module: ModuleType = importlib.util.module_from_spec(spec)
        sys.modules["program"] = module
        spec.loader.exec_module(module)
        for path in home.glob("*.py"):
            importlib.import_module(path.stem)
    finally:
        sys.path.remove(str(home))
    return module.main  # type: ignore[no-any-return]


def alike(first: Any, second: Any) -> bool:
    """Whether two values are the same but for rounding."""
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(alike(*pair) for pair in zip(first, second, strict=True))
    if isinstance(first, float) and isinstance(second, float):
        return abs(first - second) <= 1e-5 * max(1.0, abs(first), abs(second)) or (first != first and second != second)
    return bool(first == second)


def race(bench: Bench, folder: Path) -> dict[str, Any]:
    """How often each version returns other values than the repaired one with the same seed and no gate."""
    clean, bad = program(folder, "clean"), program(folder, "bad")
    expected, counts = {}, {}
    for number in range(1, RUNS + 1):
        bench.seed(number)
        with bench.shut(-1, 0):
            expected[number] = clean()
        bench.lab.synchronize()
        expected[number] = bench.value(expected[number])
    for name, main in (("clean", clean), ("bad", bad)):
        bench.seed(1)
        main()
        wrong = 0
        for number in range(1, RUNS + 1):
            bench.seed(number)
            with bench.shut(number % SCHEDULES, GATE_MS["race"]):
                found = main()
            wrong += not alike(bench.value(found), expected[number])
        counts[name] = wrong
    return {"bad": counts["bad"], "clean": counts["clean"], "runs": RUNS}


def stall(bench: Bench, folder: Path) -> dict[str, Any]:
    """Which of three streams holds the bad program up most often: the default one, the first of its own, one that has no part in it."""
    counts: dict[str, list[int]] = {}
    other = bench.lab.stream()
    for name in ("clean", "bad"):
        main = program(folder, name)
        main()
        main()
        counts[name] = [0, 0, 0]
        for _ in range(STALL_RUNS):
            for schedule in (0, 1):
                with bench.shut(schedule, GATE_MS["stall"]):
                    kept = main()
                    counts[name][schedule] += bench.gate is not None and bench.gate.opened_at is not None
                del kept
            with bench.lab.gate(other.ptr) as gate:
                gate.open_after(GATE_MS["stall"])
                kept = main()
                counts[name][2] += gate.opened_at is not None
                gate.await_open()
            del kept
    most = max(range(3), key=lambda schedule: counts["bad"][schedule] - counts["clean"][schedule])
    return {"bad": counts["bad"][most], "clean": counts["clean"][most], "runs": STALL_RUNS}


def calls(bench: Bench, folder: Path) -> dict[str, Any]:
    """In how many runs the bad program waits at least eight times more than the repaired one."""
    torch = bench.torch
    own = {"count": 0}

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any, **options: Any) -> Any:
            own["count"] += 1
            return function(*words, **options)

        return call

    torch.cuda.synchronize, torch.cuda.empty_cache = counted(torch.cuda.synchronize), counted(torch.cuda.empty_cache)
    waits: dict[str, list[int]] = {}
    for name in ("clean", "bad"):
        main = program(folder, name)
        main()
        waits[name] = []
        for number in range(RUNS):
            bench.seed(number)
            own["count"] = 0
            torch.cuda.set_sync_debug_mode("warn")
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                main()
            torch.cuda.set_sync_debug_mode("default")
            waits[name].append(own["count"] + sum("synchron" in str(one.message) for one in told))
    more = [bad - clean for bad, clean in zip(waits["bad"], waits["clean"], strict=True)]
    return {"bad": sum(each >= MORE_WAITS for each in more), "clean": 0, "runs": RUNS, "waits": [waits["bad"][0], waits["clean"][0]]}


def error(bench: Bench, folder: Path) -> dict[str, Any]:
    """In how many runs each version fails."""
    counts = {}
    for name in ("clean", "bad"):
        main, failed = program(folder, name), 0
        for number in range(ERROR_RUNS):
            bench.seed(number)
            try:
                main()
                bench.lab.synchronize()
            except Exception:
                failed += 1
        counts[name] = failed
    return {"bad": counts["bad"], "clean": counts["clean"], "runs": ERROR_RUNS}


ORACLES: dict[str, Callable[[Bench, Path], dict[str, Any]]] = {"race": race, "stall": stall, "calls": calls, "error": error}


def one(folder: Path, oracle: str) -> dict[str, Any]:
    """What the GPU says of one case, in this process."""
    with contextlib.redirect_stdout(sys.stderr):
        return ORACLES[oracle](Bench(), folder)


def described(folder: Path) -> dict[str, Any]:
    """The YAML of a generated case: each value is JSON."""
    lines = (folder / "case.yml").read_text(encoding="utf-8").splitlines()
    return {key: json.loads(value) for key, _, value in (line.partition(": ") for line in lines)}


def apart(folder: Path, oracle: str, until: float) -> dict[str, Any]:
    """The same in a process of its own."""
    left = min(LIMIT_S, until - time.monotonic())
    if left < 5:
        return {"failure": NO_TIME}
    command = [sys.executable, "-m", "benchmarks.streambench.oracle", str(folder.parent), "--case", folder.name, "--oracle", oracle]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=left, check=False)
        return json.loads(done.stdout.strip().splitlines()[-1])  # type: ignore[no-any-return]
    except subprocess.TimeoutExpired:
        return {"failure": f"more than {left:.0f} s"}
    except (ValueError, IndexError):
        return {"failure": (done.stderr.strip().splitlines() or ["no output"])[-1][:300]}


def platform() -> dict[str, str]:
    """The GPU, its driver, and the libraries."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    name, _, driver = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0].partition(", ")
    found = {"gpu": name, "driver": driver}
    for library in ("torch", "cupy", "numba_cuda"):
        with contextlib.suppress(Exception):
            found[library] = str(importlib.import_module(library).__version__)
    return found


def ask_all(tree: Path, output: Path, jobs: int, seconds: float) -> None:
    """Ask about all cases of a tree that have an oracle, direct programs first, and write what came of those that the time sufficed for."""
    until = time.monotonic() + seconds
    folders = [folder for folder in sorted(tree.iterdir()) if folder.is_dir() and described(folder)["oracle"]]
    folders.sort(key=lambda folder: described(folder)["way"] != "direct")
    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(lambda folder: apart(folder, described(folder)["oracle"], until), folders))
    told = {
        "platform": platform(),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "cases": {
            folder.name: {"oracle": described(folder)["oracle"], **result}
            for folder, result in zip(folders, results, strict=True)
            if result.get("failure") != NO_TIME
        },
    }
    output.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=100)
    parser.add_argument("--case")
    parser.add_argument("--oracle", choices=ORACLES)
    words = parser.parse_args()
    if words.case:
        try:
            print(json.dumps(one(words.tree / words.case, words.oracle or described(words.tree / words.case)["oracle"])))
        except Exception as problem:
            traceback.print_exc()
            print(json.dumps({"failure": f"{type(problem).__name__}: {problem}"[:300]}))
        sys.stdout.flush()
        os._exit(0)  # a destructor may wait for a device that a failed capture has left
    ask_all(words.tree, words.output, words.jobs, words.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
