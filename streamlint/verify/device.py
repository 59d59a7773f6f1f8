"""The machine's side: what is installed here, the child's environment, and what must be compiled first."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from streamlint.verify.cases import VARIANTS, Case
from streamlint.verify.runner import STARTUP_S, Job
from streamlint.verify.watchdog import Child

NVCC_S = 120.0
PYTHON_HEADERS = "python-headers"
BUILD_S = 300.0  # a torch extension, once per machine

# What would change the semantics under test: serialised launches, another default stream, no caching, few hardware queues.
_UNSET = (
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUPY_CUDA_PER_THREAD_DEFAULT_STREAM",
    "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM",
    "NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "TORCH_CUDA_SANITIZER",
)


def cache_folder() -> Path:
    """Where compiled snippets lie: ``STREAMLINT_CACHE_DIR``, ``XDG_CACHE_HOME`` or ``~/.cache``."""
    base = os.environ.get("STREAMLINT_CACHE_DIR")
    if base:
        return Path(base) / "verify"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "streamlint" / "verify"


class Device:
    """One GPU of this machine. ``number`` counts among the devices that the user sees."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.arch = ""

    def environment(self, *, lazy: bool = False, beside: Sequence[int] = ()) -> dict[str, str]:
        """The child's environment. ``lazy``: kernels are loaded when first launched. ``beside``: more devices that the child may see."""
        environment = {key: value for key, value in os.environ.items() if key not in _UNSET}
        visible = [part for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part]
        chosen = ",".join(visible[number] if number < len(visible) else str(number) for number in (self.number, *beside))
        root = str(Path(__file__).resolve().parents[2])
        paths = [root, *(part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part)]
        environment |= {
            "CUDA_VISIBLE_DEVICES": chosen,
            "CUDA_MODULE_LOADING": "LAZY" if lazy else "EAGER",
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONUNBUFFERED": "1",
            "TORCH_EXTENSIONS_DIR": str(cache_folder() / f"torch-{self.arch or 'any'}"),
        }
        if self.arch:
            environment["TORCH_CUDA_ARCH_LIST"] = self.arch
        return environment

    def _child(self, request: dict[str, Any], api: str = "cupy", devices: int = 1) -> Child:
        beside = [number for number in range(devices) if number != self.number][: devices - 1]
        # torch has thousands of kernels: it loads them lazily, and the warm-up run loads those in use.
        return Child(
            [sys.executable, "-m", "streamlint.verify.child", json.dumps(request)], self.environment(lazy=api == "torch", beside=beside)
        )

    def probe(self) -> dict[str, Any]:
        """The platform's facts, or ``{"reason": …}`` where no GPU answers."""
        child = self._child({"do": "probe"})
        try:
            message = child.read(STARTUP_S)
            if message is None:
                return {"reason": child.epitaph()}
        except TimeoutError:
            return {"reason": f"no answer within {STARTUP_S:.0f} s"}
        finally:
            child.kill()
        if message["event"] == "platform":
            self.arch = str(message.get("arch", ""))
        return {key: value for key, value in message.items() if key != "event"}

    def spawn(self, jobs: Sequence[Job]) -> Child:
        """A child that runs these jobs in sequence."""
        return self._child({"do": "run", "jobs": [job.request() for job in jobs]}, jobs[0].case.api, jobs[0].case.devices)

    def missing(self, case: Case) -> str | None:
        """What the case needs and this machine lacks, in a sentence; ``None`` if it can run."""
        for requirement in case.requirements:
            if requirement in ("nvcc", "ninja"):
                if shutil.which(requirement) is None:
                    return f"{requirement} is not on PATH"
            elif requirement == PYTHON_HEADERS:
                if not (Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
                    return "Python's headers are not installed"
            elif importlib.util.find_spec(requirement) is None:
                return f"{requirement} is not installed"
        return None

    def build(self, cases: Sequence[Case]) -> tuple[dict[str, str], dict[str, str]]:
        """Compile what needs it, side by side and with no GPU. Returns libraries by snippet, and failures by snippet."""
        native = {str(case.path(variant)) for case in cases if case.api == "cuda" for variant in VARIANTS}
        importing = {str(case.path(variant)) for case in cases if case.builds for variant in VARIANTS}
        libraries: dict[str, str] = {}
        failures: dict[str, str] = {}
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
            compiled = {path: pool.submit(compile_library, Path(path), self.arch) for path in sorted(native)}
            built = {path: pool.submit(self._build_extension, path) for path in sorted(importing)}
            for path, future in compiled.items():
                library, problem = future.result()
                (libraries if problem is None else failures)[path] = library if problem is None else problem
            failures |= {path: problem for path, task in built.items() if (problem := task.result()) is not None}
        return libraries, failures

    def _build_extension(self, path: str) -> str | None:
        """Import a snippet that compiles itself, so that its build is cached; what went wrong, or ``None``."""
        child = self._child({"do": "build", "path": path}, "torch")
        try:
            message = child.read(BUILD_S)
            if message is None:
                return child.epitaph()
        except TimeoutError:
            return f"the build did not end within {BUILD_S:.0f} s"
        finally:
            child.kill()
        return None if message["event"] == "built" else str(message.get("reason", "the build failed"))


def compile_library(source: Path, arch: str) -> tuple[str, str | None]:
    """Compile one ``.cu`` with nvcc to a shared library, cached by content; returns its path, and what went wrong, if anything."""
    target = f"sm_{arch.replace('.', '')}" if arch else "native"
    nvcc = shutil.which("nvcc") or "nvcc"
    identity = f"{target}\0{os.path.realpath(nvcc)}\0".encode() + source.read_bytes()
    folder = cache_folder()
    library = folder / f"{source.stem}-{hashlib.sha256(identity).hexdigest()[:16]}.so"
    if library.exists():
        return str(library), None
    folder.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(suffix=".so", dir=folder)
    os.close(handle)
    headers = f"-I{sysconfig.get_paths()['include']}"
    command = [nvcc, "-shared", "-Xcompiler", "-fPIC", f"-arch={target}", headers, str(source), "-o", scratch]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=NVCC_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        Path(scratch).unlink(missing_ok=True)
        return "", f"nvcc: {problem}"
    if done.returncode != 0:
        Path(scratch).unlink(missing_ok=True)
        lines = (done.stderr or done.stdout).strip().splitlines()
        return "", f"nvcc: {lines[-1][:300] if lines else 'failed without a word'}"
    os.replace(scratch, library)
    return str(library), None
