"""The process that touches the GPU: ``python -m streamlint.verify.child REQUEST``, with REQUEST a JSON object.

``{"do": "probe"}`` says what the platform is. ``{"do": "run", "jobs": [{"rule", "name", "api", "variant", "library"}]}`` runs programs in
sequence; a job with ``beside`` (another variant) times the two in turns. ``{"do": "build", "path": …}`` imports a snippet that compiles
itself. Answers are JSON objects, one a line, on what was standard output; whatever libraries print goes to standard error.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import importlib
import importlib.util
import json
import os
import signal
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

from streamlint.verify import templates
from streamlint.verify.cases import Case, Trial, UnsupportedError
from streamlint.verify.criteria import Experiment
from streamlint.verify.experiments import EXPERIMENTS, MAIN, costs
from streamlint.verify.lab import Lab, LabError
from streamlint.verify.templates import _common
from streamlint.verify.timeline import Timeline
from streamlint.verify.watchdog import STACKS

_PR_SET_PDEATHSIG = 1


class Answers:
    """The private end of the pipe to the parent. Anything else that prints is sent to standard error."""

    def __init__(self) -> None:
        self._pipe = os.dup(1)
        self._lock = threading.Lock()
        os.dup2(2, 1)

    def say(self, event: str, **more: Any) -> None:
        """Write an answer. Any thread may."""
        line = (json.dumps({"event": event, **more}, default=str) + "\n").encode()
        with self._lock:
            while line:
                line = line[os.write(self._pipe, line) :]

    def phase(self, thread: str, name: str, doing: str) -> None:
        """Where a thread stands."""
        self.say("phase", thread=thread, name=name, doing=doing)


def report_stacks() -> None:
    """On a crash, and whenever the parent asks: the stacks of all threads, on standard error. Needs no GIL."""
    faulthandler.enable(all_threads=True)
    if STACKS is not None:
        faulthandler.register(STACKS, all_threads=True)


def die_with_parent() -> None:
    """A hung child must not outlive a parent that was killed (Linux only; elsewhere the watchdog alone does it)."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def load_python(path: Path) -> ModuleType:
    """Import a snippet file under its own name."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _prepare(lab: Lab, case: Case, variant: str, library: str | None) -> Trial:
    if case.api in ("torch", "numba"):  # before the snippet is imported: it may not even import where the library has no CUDA
        (_common.torch_module if case.api == "torch" else _common.numba_cuda)()
    snippet: Any = ctypes.CDLL(library) if library else load_python(case.path(variant))
    return case.trial(lab, lab.keep(snippet), case.parameters)


def probe() -> dict[str, Any]:
    """GPU, driver and runtime as CuPy reports them. ``driver`` falls back to the CUDA version that the driver supports."""
    cupy: Any = importlib.import_module("cupy")
    runtime = cupy.cuda.runtime
    if runtime.getDeviceCount() < 1:
        raise UnsupportedError("no CUDA device")
    properties = runtime.getDeviceProperties(0)
    name = properties["name"]
    return {
        "gpu": name.decode() if isinstance(name, bytes) else str(name),
        "cuda_runtime": _version(runtime.runtimeGetVersion()),
        "cuda_driver": _version(runtime.driverGetVersion()),
        "arch": f"{properties['major']}.{properties['minor']}",
    }


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def run_jobs(answers: Answers, jobs: list[dict[str, Any]]) -> None:
    """Run each job; after anything but a lab error stop, since the context may be broken: the parent starts a fresh child."""
    lab = Lab(Timeline(answers.phase))
    answers.say("ready")
    for number, job in enumerate(jobs):
        case = templates.find(job["rule"], job["name"], job["api"]).given(job.get("parameters") or {})
        answers.say("start", job=number)
        lab.timeline.begin()
        lab.timeline.stands(MAIN, f"loads {case.path(job['variant']).name}")
        try:
            trial = _prepare(lab, case, job["variant"], job.get("library"))
            if case.experiment is Experiment.DEADLOCK:
                answers.say("armed", job=number)
            if job.get("beside"):
                figures = costs(lab, trial, _prepare(lab, case, job["beside"], job.get("beside_library")))
            else:
                figures = EXPERIMENTS[case.experiment](lab, trial)
        except UnsupportedError as problem:
            answers.say("unsupported", job=number, reason=str(problem))
        except LabError as problem:
            answers.say("failure", job=number, reason=str(problem))
        except Exception as problem:
            answers.say("failure", job=number, reason=f"{type(problem).__name__}: {_first_line(problem)}")
            return
        else:
            lanes = lab.timeline.lanes()
            answers.say("figures", job=number, figures={**figures, "timeline": lanes} if lanes else figures)


def _first_line(problem: BaseException) -> str:
    return (str(problem).strip() or "no message").splitlines()[0][:300]


def main(argv: list[str]) -> int:
    die_with_parent()
    report_stacks()
    answers = Answers()
    request = json.loads(argv[0])
    try:
        if request["do"] == "probe":
            answers.say("platform", **probe())
        elif request["do"] == "build":
            load_python(Path(request["path"]))
            answers.say("built")
        else:
            run_jobs(answers, request["jobs"])
    except Exception as problem:
        answers.say("broken", reason=f"{type(problem).__name__}: {_first_line(problem)}")
    answers.say("end")
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)  # no destructors: a CUDA context that hangs cannot be joined
