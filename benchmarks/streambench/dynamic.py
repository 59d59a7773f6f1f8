"""Ask the tools that watch a running program: PyTorch's CUDA sanitizer, vLLM's check of waits, compute-sanitizer, CuSan.

    python -m benchmarks.streambench generate --track micro --only direct --output TREE
    python -m benchmarks.streambench.dynamic TREE --output FILE [--vllm gpu_sync_debug.py] [--cusan DIR] [--jobs 8] [--seconds 240]

Each program of TREE that can run runs once under each tool that knows its library, both versions in processes of their own, one tool after
the other until the time is over. What is kept is how often the tool spoke in the bad program and in its twin: it tells them apart where it
speaks in the bad one alone. `--vllm` is vLLM's `vllm/utils/gpu_sync_debug.py`, `--cusan` a folder with what `cusan-clang++` has made of the
programs in C++ (CASE-VERSION, their libraries in `lib`, and its suppressions.txt); without them those tools are left out.
compute-sanitizer and nvcc, which compiles programs in C++ for it, are looked for in the PATH and in the CUDA toolkit. Its memcheck is given
allocators whose memory is stream-ordered, without which it sees none.
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
    binaries: Path | None = None
    """Where programs in C++ lie that the tool's own compiler has made."""

    def spoke(self, text: str, code: int = 1) -> int | None:
        """How often the tool spoke; None where the program did not come to its end. A race makes TSan's exit code 66."""
        if ("END OF PROGRAM" not in text and code not in (0, 66)) or "DEADLYSIGNAL" in text:
            return None
        found = re.findall(self.counts, text)
        return int(found[-1]) if found and found[-1].isdigit() else len(found)


def of_toolkit(name: str) -> str | None:
    """A program of the CUDA toolkit."""
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), *TOOLKIT)))


def watchers(vllm: Path | None, cusan: Path | None = None) -> dict[str, Watcher]:
    """The tools that can be had."""
    torch_alone = frozenset({"torch"})
    found = {"csan": Watcher((), {"TORCH_CUDA_SANITIZER": "1"}, r"CSAN detected a possible data race", torch_alone)}
    if vllm is not None:
        found["vllm"] = Watcher((), {"STREAMBENCH_VLLM": str(vllm.resolve())}, r"WAITS TOLD: (\d+)", torch_alone)
    if cusan is not None:
        paths = {
            "LD_LIBRARY_PATH": str(cusan.resolve() / "lib"),
            "TSAN_OPTIONS": f"ignore_noninstrumented_modules=1 suppressions={cusan.resolve() / 'suppressions.txt'}",
        }
        before = ("setarch", "-R")  # TSan knows the usual addresses alone
        found["cusan"] = Watcher(before, paths, r"WARNING: ThreadSanitizer: data race", frozenset({"cuda-c++"}), cusan.resolve())
    sanitizer = of_toolkit("compute-sanitizer")
    if sanitizer is not None:
        known_to_all = frozenset({"torch", "cupy", "numba"} | ({"cuda-c++"} if of_toolkit("nvcc") else set()))
        known = (sanitizer, "--target-processes", "application-only", "--tool")
        ordered = ("--track-stream-ordered-races", "all")
        found["memcheck"] = Watcher((*known, "memcheck", *ordered), ASYNC, r"ERROR SUMMARY: (\d+) error", known_to_all)
        found["initcheck"] = Watcher((*known, "initcheck"), {}, r"ERROR SUMMARY: (\d+) error", known_to_all)
        found["racecheck"] = Watcher((*known, "racecheck"), {}, r"RACECHECK SUMMARY: (\d+) hazard", known_to_all)
    return found


def watched(watcher: Watcher, home: Path, until: float) -> int | str:
    """How often a tool spoke of one version of a program, or why nobody knows."""
    left = min(LIMIT_S, until - time.monotonic())
    if left < 5:
        return NO_TIME
    try:
        command = [*watcher.before, *_program(watcher, home)]
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=left, check=False, env={**os.environ, **watcher.environment}
        )
    except subprocess.TimeoutExpired:
        return f"more than {left:.0f} s"
    except (OSError, subprocess.CalledProcessError) as problem:
        return str(problem)[:200]
    text = done.stdout + done.stderr
    spoke = watcher.spoke(text, done.returncode)
    return spoke if spoke is not None else (text.strip().splitlines() or ["no output"])[-1][:200]


def _program(watcher: Watcher, home: Path) -> list[str]:
    """The command that runs one version; a program in C++ is compiled, if the tool has not made one itself."""
    source = home / "program.cu"
    if not source.is_file():
        return [sys.executable, "-m", "benchmarks.streambench.dynamic", "--run", str(home)]
    if watcher.binaries is not None:
        return [str(watcher.binaries / f"{home.parent.name}-{home.name}")]
    target = home / "program"
    if not target.is_file():
        words = [str(of_toolkit("nvcc")), "-std=c++17", "-lineinfo", "-arch=native", "-o", str(target), str(source)]
        subprocess.run(words, capture_output=True, check=True, timeout=LIMIT_S)
    return [str(target)]


def _can_run(watcher: Watcher, folder: Path, case: Mapping[str, Any]) -> bool:
    """Whether a tool can be asked about a case: it knows the library, and the programs are whole."""
    if case["api"] not in watcher.libraries:
        return False
    if case["api"] != "cuda-c++":
        return bool(case["oracle"])
    sources = [folder / each / "program.cu" for each in VERSIONS]
    made = [watcher.binaries / f"{folder.name}-{each}" for each in VERSIONS] if watcher.binaries is not None else []
    return all(path.is_file() for path in (*sources, *made)) and all("int main" in path.read_text(encoding="utf-8") for path in sources)


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
        mine = [folder for folder, case in cases.items() if _can_run(watcher, folder, case)]
        homes = [folder / version for folder in mine for version in VERSIONS]
        with ThreadPoolExecutor(jobs) as pool:
            spoke = dict(zip(homes, pool.map(lambda home, watcher=watcher: watched(watcher, home, until), homes), strict=True))
        pairs = {folder.name: [cases[folder]["hazard"], *(spoke[folder / version] for version in VERSIONS)] for folder in mine}
        told[name] = {
            "seconds": round(time.monotonic() - start),
            "cases": {key: pair for key, pair in pairs.items() if NO_TIME not in pair},
        }
    return told


def version() -> str:
    """compute-sanitizer's own words about its version."""
    sanitizer = of_toolkit("compute-sanitizer")
    if sanitizer is None:
        return "not installed"
    done = subprocess.run([sanitizer, "--version"], capture_output=True, text=True, check=False)
    return (done.stdout.strip().splitlines() or ["?"])[-1]


def main(words: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tree", type=Path, nargs="?")
    parser.add_argument("--run", type=Path, help="one version of one case, in this process")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--vllm", type=Path)
    parser.add_argument("--cusan", type=Path, metavar="DIR")
    parser.add_argument("--tools", nargs="+", metavar="NAME")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=240)
    options = parser.parse_args(words)
    if options.run is not None:
        run(options.run)
        return 0
    tools = {name: each for name, each in watchers(options.vllm, options.cusan).items() if not options.tools or name in options.tools}
    record = {
        "platform": platform(),
        "compute-sanitizer": version(),
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
