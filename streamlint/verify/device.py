"""The machine's side: what is installed here, the child's environment, and what must be compiled first."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from streamlint.support.reading import home_folder
from streamlint.verify import care
from streamlint.verify.care import Plan
from streamlint.verify.cases import VARIANTS, Case
from streamlint.verify.lab import MEMORY, MEMORY_BYTES
from streamlint.verify.runner import STARTUP_S, Job
from streamlint.verify.watchdog import Child, program

NVCC_S = 120.0
_TWO_PROCESSES = ("SL012", "SL025")
PYTHON_HEADERS = "python-headers"
_LEFT = 2  # processors that the compilers leave to the programs that run meanwhile
BUILD_S = 300.0  # a torch extension, once per machine


def cache_folder() -> Path:
    """Where compiled snippets lie: ``STREAMLINT_CACHE_DIR``, ``XDG_CACHE_HOME`` or ``~/.cache``."""
    base = os.environ.get("STREAMLINT_CACHE_DIR")
    if base:
        return Path(base) / "verify"
    return Path(os.environ.get("XDG_CACHE_HOME") or home_folder() / ".cache") / "streamlint" / "verify"


class Device:
    """One GPU of this machine. ``number`` counts among the devices that the user sees. Use it with ``with``: it has a scratch folder."""

    def __init__(self, number: int = 0, *, memory: int = MEMORY_BYTES) -> None:
        self.number = number
        self.arch = ""
        self.plan = Plan(memory)
        self._scratch: str | None = None
        self._under_way: set[Child | subprocess.Popen[str]] = set()
        self._ending = False

    def __enter__(self) -> Device:
        self._scratch = tempfile.mkdtemp(prefix="streamlint-verify-")
        return self

    def __exit__(self, *problem: object) -> None:
        self._stop()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    def prepare(self, probed: Mapping[str, object]) -> Plan:
        """Look at the machine and decide how to behave on it."""
        self.plan = care.plan(care.survey(os.environ), self.number, self.plan.memory, probed)
        return self.plan

    def environment(self, *, lazy: bool = False, beside: Sequence[int] = ()) -> dict[str, str]:
        """The child's environment. ``lazy``: kernels are loaded when first launched. ``beside``: more devices that the child may see."""
        environment = {key: value for key, value in os.environ.items() if key not in care.UNSET}
        visible = [part for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part]
        chosen = ",".join(visible[number] if number < len(visible) else str(number) for number in (self.number, *beside))
        root = str(Path(__file__).resolve().parents[2])
        paths = [root, *(part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part)]
        environment.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # as nvidia-smi counts
        environment |= {
            "CUDA_VISIBLE_DEVICES": chosen,
            "CUDA_MODULE_LOADING": "LAZY" if lazy else "EAGER",
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONUNBUFFERED": "1",
            "TORCH_EXTENSIONS_DIR": str(self._extensions()),
            MEMORY: str(self.plan.memory),
        }
        if self.arch:
            environment["TORCH_CUDA_ARCH_LIST"] = self.arch
        if self._scratch is not None:
            environment["TMPDIR"] = self._scratch
            environment |= {name: value or self._scratch for name, value in self.plan.environment.items()}
        return environment

    def _extensions(self) -> Path:
        return self._room(cache_folder() / f"torch-{self.arch or 'any'}")

    def _room(self, folder: Path) -> Path:
        """A folder of the cache, or, where that takes nothing, one that is gone after this run."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
        except OSError:
            pass
        return Path(self._scratch or tempfile.gettempdir()) / folder.name

    def _command(self, request: Mapping[str, Any]) -> list[str]:
        return [*program("streamlint.verify.child"), json.dumps(request)]

    def _child(self, request: dict[str, Any], api: str = "cupy", devices: int = 1) -> Child:
        beside = [number for number in range(devices) if number != self.number][: devices - 1]
        # torch has thousands of kernels: it loads them lazily, and the warm-up run loads those in use.
        return Child(self._command(request), self.environment(lazy=api == "torch", beside=beside))

    def _stop(self) -> None:
        """End what is being compiled, and what a thread is about to start: whoever waits for it then comes back."""
        self._ending = True
        for task in list(self._under_way):
            _end(task)

    def _watch(self, task: Child | subprocess.Popen[str]) -> None:
        """A compiler that :meth:`_stop` ends."""
        self._under_way.add(task)
        if self._ending:
            _end(task)

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
        if self.plan.one_process and case.rule in _TWO_PROCESSES:
            return "the GPU is in exclusive mode, and the case has two processes"
        if case.devices > (self.plan.devices or case.devices):
            return "needs two GPUs"
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
        with ThreadPoolExecutor(max_workers=max(1, (os.cpu_count() or 2) - _LEFT)) as pool:
            try:
                compiled = {path: pool.submit(self._compile, Path(path)) for path in sorted(native)}
                built = {path: pool.submit(self._build_extension, path) for path in sorted(importing)}
                for path, future in compiled.items():
                    library, problem = future.result()
                    (libraries if problem is None else failures)[path] = library if problem is None else problem
                failures |= {path: problem for path, task in built.items() if (problem := task.result()) is not None}
            except BaseException:  # Ctrl-C: do not wait for compilers
                pool.shutdown(wait=False, cancel_futures=True)
                self._stop()
                raise
        return libraries, failures

    def _build_extension(self, path: str) -> str | None:
        """Import a snippet that compiles itself, so that its build is cached; what went wrong, or ``None``."""
        if self._ending:
            return "ended"
        child = self._child({"do": "build", "path": path}, "torch")
        self._watch(child)
        done = False
        try:
            message = child.read(BUILD_S)
            if message is None:
                return child.epitaph()
            done = True
        except TimeoutError:
            return f"the build did not end within {BUILD_S:.0f} s"
        finally:
            self._under_way.discard(child)
            child.kill()
            if not done:  # torch waits for ever for the lock of a build that was killed
                for lock in self._extensions().glob("*/lock"):
                    lock.unlink(missing_ok=True)
        return None if message["event"] == "built" else str(message.get("reason", "the build failed"))

    def _compile(self, source: Path) -> tuple[str, str | None]:
        """Compile one ``.cu`` with nvcc to a shared library, cached by content; returns its path, and what went wrong, if anything."""
        library, command = compilation(source, self.arch)
        if self._ending:
            return "", "ended"
        if library.exists():
            return str(library), None
        library = self._room(library.parent) / library.name
        scratch = ""
        try:
            library.parent.mkdir(exist_ok=True)
            scratch = tempfile.mkdtemp(prefix=f"{source.stem}-", dir=library.parent)  # nvcc's temporary files go there as well
            target = Path(scratch) / library.name
            problem = self._nvcc([*command, "-o", str(target)], scratch)
            if problem is not None:
                return "", problem
            os.replace(target, library)
        except OSError as error:
            return "", f"the library cannot be written: {error}"
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return str(library), None

    def _nvcc(self, command: Sequence[str], scratch: str) -> str | None:
        """Run the compiler; what went wrong, or ``None``."""
        environment = {**os.environ, "TMPDIR": scratch}
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment, start_new_session=True)
        except OSError as problem:
            return f"nvcc: {problem}"
        self._watch(process)
        try:
            output, errors = process.communicate(timeout=NVCC_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return f"nvcc: no end within {NVCC_S:.0f} s"
        finally:
            self._under_way.discard(process)
        lines = (errors or output).strip().splitlines()
        return f"nvcc: {lines[-1][:300] if lines else 'failed without a word'}" if process.returncode else None


def _end(task: Child | subprocess.Popen[str]) -> None:
    if isinstance(task, Child):
        task.kill()
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(task.pid, signal.SIGKILL)


def compilation(source: Path, arch: str) -> tuple[Path, list[str]]:
    """Where the library of a source is cached, by content, compiler and target, and the command that makes it, without its output."""
    target = f"sm_{arch.replace('.', '')}" if arch else "native"
    nvcc = shutil.which("nvcc") or "nvcc"
    identity = f"{target}\0{os.path.realpath(nvcc)}\0".encode() + source.read_bytes()
    library = cache_folder() / f"{source.stem}-{hashlib.sha256(identity).hexdigest()[:16]}.so"
    headers = f"-I{sysconfig.get_paths()['include']}"
    return library, [nvcc, "-shared", "-Xcompiler", "-fPIC", f"-arch={target}", headers, str(source)]
