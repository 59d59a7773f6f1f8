"""Sources that are lowered in processes beside the run: the same as those that are lowered in it."""

from __future__ import annotations

import os

import pytest

from streamlint import engine
from streamlint.findings import Report
from streamlint.interpreter.index import Program
from streamlint.options import Options, Source

INLINE = (
    'from torch.utils.cpp_extension import load_inline\n\nmod = load_inline("m", cpp_sources="""\nvoid f() { cudaMalloc(0, 1); }\n""")\n'
)
SOURCES = [
    *(
        Source(f"part{number}.py", f"import torch\n\n\ndef f{number}(x):\n    return x.cpu()  # {'é' * number}\n", "python")
        for number in range(6)
    ),
    Source("strings.py", INLINE, "python"),
    Source("broken.py", "def f(:\n", "python"),
    Source("kernel.cu", '#include "size.h"\nvoid g() { cudaMemcpy(0, 0, SIZE, cudaMemcpyHostToDevice); }\n', "cuda"),
    Source("size.h", "#define SIZE 12\n", "cuda"),
    Source("wrapped.pyx", "cdef extern from 'a.h':\n    void g()\n\ndef h():\n    g()\n", "cython"),
]


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "WORTH_A_PROCESS", 0)


def program_of(jobs: int) -> tuple[Program, Report]:
    read, program, report = engine.reader(SOURCES, Options()), Program(), Report()
    read.ahead(SOURCES, jobs)
    for source in SOURCES:
        read(source, program, report)
    return program, report


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_program_is_the_same_however_it_was_lowered() -> None:
    (here, report), (beside, other) = program_of(1), program_of(2)
    assert list(beside.files) == list(here.files)
    assert "strings.py#inline1" in beside.files
    assert {key: repr(file.module) for key, file in beside.files.items()} == {key: repr(file.module) for key, file in here.files.items()}
    assert other.problems == report.problems
    assert [problem.file for problem in other.problems] == ["broken.py"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_dies_costs_the_file_that_it_read(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered = engine.lowered
    monkeypatch.setattr(engine, "lowered", lambda source, headers: os._exit(3) if source.path == "part3.py" else lowered(source, headers))
    program, report = program_of(2)
    assert "part3.py" not in program.files
    assert "part4.py" in program.files
    assert [(problem.file, problem.message) for problem in report.problems if problem.file != "broken.py"] == [
        ("part3.py", "left out: a worker ended with status 3")
    ]


def test_few_sources_are_not_worth_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "WORTH_A_PROCESS", 1 << 16)
    read = engine.reader(SOURCES, Options())
    read.ahead(SOURCES, 2)
    assert read._ahead == {}
