"""The installed command, the same without a new interpreter, and an engine that finds what a test says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import forks
import pytest

from streamlint.config.options import Options, Source
from streamlint.findings import Category, Finding, Report, Span, Step
from streamlint.runner import engine

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
def forked(tmp_path: Path) -> Run:
    """As ``installed``, without a new interpreter: for tests of what a command says, of which some give many."""
    plain = {key: None for key in os.environ if "COLOR" in key}

    def call(*words: str, input: str = "", cwd: Path = tmp_path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return forks.run(cwd, *words, input=input.encode(), **{**plain, **(env or {})})

    return call


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
