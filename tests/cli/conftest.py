"""The installed command, the same without a new interpreter, and an engine that finds what a test says."""

from __future__ import annotations

import functools
import importlib
import os
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from streamlint import cli, engine, linter
from streamlint.config import Resolver, Settings
from streamlint.findings import Category, Finding, Report, Span, Step
from streamlint.options import Options, Source

COMMAND = Path(sys.executable).with_name("streamlint")
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def installed(tmp_path: Path) -> Run:
    """Runs the installed command in an empty folder."""

    def call(*words: str, **more: object) -> subprocess.CompletedProcess[str]:
        env = {key: value for key, value in os.environ.items() if "COLOR" not in key}
        options = {"cwd": tmp_path, "env": env, "capture_output": True, "text": True, "timeout": 60, **more}
        return subprocess.run([str(COMMAND), *words], **options)  # type: ignore[call-overload]

    return call


@pytest.fixture
def run(installed: Run) -> Run:
    """What most tests say: a module's own may be another."""
    return installed


@pytest.fixture
def forked(installed: Run, tmp_path: Path) -> Run:
    """As ``installed``, in a fork of this process, which has imported all: for tests of what a command says, of which some give many."""
    if not hasattr(os, "fork"):
        return installed
    _import_all()

    def call(*words: str, input: str = "", cwd: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            given.write(input.encode())
            given.seek(0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of threads in this process: pytest-xdist's
                child = os.fork()
            if child == 0:
                _be_command(words, cwd, [file.fileno() for file in (given, out, errors)])
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            said = []
            for file in (out, errors):
                file.seek(0)
                said.append(file.read().decode())
        return subprocess.CompletedProcess(words, code, *said)

    return call


@functools.cache
def _import_all() -> None:
    """What a run imports when it first needs it, each fork would import anew."""
    for word in ("check", "merge"):
        importlib.import_module(cli.COMMANDS[word][0])
    for module in ("fixing", "shard"):
        importlib.import_module(f"streamlint.commands.{module}")
    misuse = b"import torch\n\n\ndef f(x):\n    return x.to('cpu', non_blocking=True).numpy(), torch.cuda.current_stream()\n"
    linter.run_text(misuse, "a.py", Resolver(Settings()), fixes=True)
    linter.run_text(b"void f() { cudaDeviceSynchronize(); }\n", "a.cu", Resolver(Settings()))


def _be_command(words: tuple[str, ...], folder: Path, streams: list[int]) -> None:
    code = 70
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode, encoding="utf-8", closefd=False) for number, mode in enumerate("rww"))
        for key in [key for key in os.environ if "COLOR" in key]:
            del os.environ[key]
        os.chdir(folder)
        sys.argv = ["streamlint", *words]
        code = cli.main()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


@pytest.fixture
def fake_engine(made_up_rules: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Options]:
    """An engine that flags each line that holds the word ``misuse``; the options of each call are kept."""
    seen: list[Options] = []

    def analyse(sources: list[Source], options: Options, jobs: int = 1, keep: object = None) -> Report:
        seen.append(options)
        findings = []
        for source in sources:
            for row, line in enumerate(source.text.splitlines(), 1):
                if "misuse" in line:
                    column = line.index("misuse") + 1
                    span = Span(source.path, row, column, row, column + 6)
                    trail = (Step("the file begins here", Span(source.path, 1, 1, 1, 2)),)
                    findings.append(Finding("SL001", "unpinned-non-blocking", Category.STALL, "made up", span, trail))
        return Report(findings=findings, coverage={"roots": len(sources)}, timings={"parse": 0.5})

    monkeypatch.setattr(engine, "analyse", analyse)
    monkeypatch.chdir(tmp_path)
    return seen
