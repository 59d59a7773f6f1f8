"""Ask the tools that watch a running program: PyTorch's CUDA sanitizer, vLLM's check of waits, compute-sanitizer.

    python -m benchmarks.streambench generate --track micro --only direct --output TREE
    python -m benchmarks.streambench.dynamic TREE --output FILE [--vllm gpu_sync_debug.py] [--jobs 8] [--seconds 240] [--tools csan …]

Each program of TREE with an oracle runs once under each tool that knows its library, both versions in processes of their own, one tool
after the other until the time is over. What is kept is how often the tool spoke in the bad program and in its twin: it tells them apart
where it speaks in the bad one alone. `--vllm` is vLLM's `vllm/utils/gpu_sync_debug.py`; without it that tool is left out.
compute-sanitizer is looked for in the PATH and in the CUDA toolkit; its memcheck is given allocators whose memory is stream-ordered,
without which it sees none.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.streambench.oracle import NO_TIME, described, platform, program

LIMIT_S = 90
TOOLKIT = ("/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer")
VERSIONS = ("bad", "clean")
ASYNC = {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync", "PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync", "STREAMBENCH_ASYNC": "1"}


@dataclass(frozen=True)
class Watcher:
    """A tool: what stands before the interpreter, its environment, how it says how often it spoke, and the libraries that it knows."""

    before: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    counts: str = ""
    """A pattern: a number in its group, or one match for each time that the tool spoke."""
    libraries: frozenset[str] = frozenset({"torch", "cupy", "numba"})

    def spoke(self, text: str) -> int | None:
        """How often the tool spoke; None where it did not come to its end."""
        if "END OF PROGRAM" not in text:
            return None
        found = re.findall(self.counts, text)
        return int(found[-1]) if found and found[-1].isdigit() else len(found)


def watchers(vllm: Path | None) -> dict[str, Watcher]:
    """The tools that can be had."""
    torch_alone = frozenset({"torch"})
    found = {"csan": Watcher((), {"TORCH_CUDA_SANITIZER": "1"}, r"CSAN detected a possible data race", torch_alone)}
    if vllm is not None:
        found["vllm"] = Watcher((), {"STREAMBENCH_VLLM": str(vllm.resolve())}, r"WAITS TOLD: (\d+)", torch_alone)
    sanitizer = shutil.which(
        "compute-sanitizer", path=f"{os.environ.get('PATH', '')}:/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer"
    )
    if sanitizer is not None:
        known = (sanitizer, "--target-processes", "application-only", "--tool")
        ordered = ("--track-stream-ordered-races", "all")
        found["memcheck"] = Watcher((*known, "memcheck", *ordered), ASYNC, r"ERROR SUMMARY: (\d+) error")
        found["initcheck"] = Watcher((*known, "initcheck"), {}, r"ERROR SUMMARY: (\d+) error")
        found["racecheck"] = Watcher((*known, "racecheck"), {}, r"RACECHECK SUMMARY: (\d+) hazard")
    return found


def watched(watcher: Watcher, home: Path, until: float) -> int | str:
    """How often a tool spoke of one version of a program, or why nobody knows."""
    left = min(LIMIT_S, until - time.monotonic())
    if left < 5:
        return NO_TIME
    command = [*watcher.before, sys.executable, "-m", "benchmarks.streambench.dynamic", "--run", str(home)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=left, check=False, env={**os.environ, **watcher.environment}
        )
    except subprocess.TimeoutExpired:
        return f"more than {left:.0f} s"
    text = done.stdout + done.stderr
    spoke = watcher.spoke(text)
    return spoke if spoke is not None else (text.strip().splitlines() or ["no output"])[-1][:200]


def run(home: Path) -> None:
    """Run one version in this process, under what the environment asks for."""
    main = program(home.parent, home.name)
    if "STREAMBENCH_ASYNC" in os.environ and "cupy" in sys.modules:
        cupy = sys.modules["cupy"]
        cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
    try:
        told = _checked(Path(os.environ["STREAMBENCH_VLLM"]), main) if "STREAMBENCH_VLLM" in os.environ else main()
        if "STREAMBENCH_VLLM" in os.environ:
            print(f"WAITS TOLD: {told}")
        for name in ("torch", "cupy"):
            if name in sys.modules:
                library = sys.modules[name].cuda
                (library.synchronize if name == "torch" else library.Device().synchronize)()
    except Exception as problem:  # CSAN raises at the end of the call that races; a bad capture fails by itself
        print(f"{type(problem).__name__}: {problem}"[:300])
    print("END OF PROGRAM", flush=True)


def _checked(path: Path, main: Callable[[], Any]) -> int:
    """How many waits vLLM's check tells of a function; it asks its package for two settings, which are given here."""
    package, envs, platforms = (types.ModuleType(name) for name in ("vllm", "vllm.envs", "vllm.platforms"))
    envs.VLLM_GPU_SYNC_CHECK = "warn"  # type: ignore[attr-defined]
    platforms.current_platform = types.SimpleNamespace(is_cuda_alike=lambda: True)  # type: ignore[attr-defined]
    package.envs, package.platforms = envs, platforms  # type: ignore[attr-defined]
    sys.modules.update({"vllm": package, "vllm.envs": envs, "vllm.platforms": platforms})
    spec = importlib.util.spec_from_file_location("gpu_sync_debug", path)
    assert spec is not None
    assert spec.loader is not None
    check = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check)
    check.enable_gpu_sync_check()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        check.with_gpu_sync_check(main)()
    return sum("sync" in str(each.message) for each in told)


def ask_all(tree: Path, tools: Mapping[str, Watcher], jobs: int, seconds: float) -> dict[str, Any]:
    """What the tools say of the programs of a tree: by tool and case, how often in the bad version and in its twin."""
    until = time.monotonic() + seconds
    cases = {folder: described(folder) for folder in sorted(tree.iterdir()) if (folder / "case.yml").is_file()}
    told: dict[str, Any] = {}
    for name, watcher in tools.items():
        start = time.monotonic()
        mine = [folder for folder, case in cases.items() if case["oracle"] and case["api"] in watcher.libraries]
        homes = [folder / version for folder in mine for version in VERSIONS]
        with ThreadPoolExecutor(jobs) as pool:
            spoke = dict(zip(homes, pool.map(lambda home, watcher=watcher: watched(watcher, home, until), homes), strict=True))
        pairs = {folder.name: [cases[folder]["hazard"], *(spoke[folder / version] for version in VERSIONS)] for folder in mine}
        told[name] = {
            "seconds": round(time.monotonic() - start),
            "cases": {key: pair for key, pair in pairs.items() if NO_TIME not in pair},
        }
    return told


def version(tools: Mapping[str, Watcher]) -> str:
    """compute-sanitizer's own words about its version."""
    before = next((watcher.before for watcher in tools.values() if watcher.before), None)
    if before is None:
        return "not installed"
    done = subprocess.run([before[0], "--version"], capture_output=True, text=True, check=False)
    return (done.stdout.strip().splitlines() or ["?"])[-1]


def main(words: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tree", type=Path, nargs="?")
    parser.add_argument("--run", type=Path, help="one version of one case, in this process")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--vllm", type=Path)
    parser.add_argument("--tools", nargs="+", metavar="NAME")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=240)
    options = parser.parse_args(words)
    if options.run is not None:
        run(options.run)
        return 0
    tools = {name: each for name, each in watchers(options.vllm).items() if not options.tools or name in options.tools}
    record = {
        "platform": platform(),
        "compute-sanitizer": version(tools),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "tools": ask_all(options.tree, tools, options.jobs, options.seconds),
    }
    options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    for name, told in record["tools"].items():
        pairs = [pair[1:] for pair in told["cases"].values()]
        alone = sum(isinstance(bad, int) and isinstance(clean, int) and bad > 0 and clean == 0 for bad, clean in pairs)
        print(f"{name}: {len(pairs)} programs, told apart {alone}, {told['seconds']} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
