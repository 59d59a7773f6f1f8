"""Sources that are lowered in processes beside the run: the same as those that are lowered in it."""

from __future__ import annotations

import os

import pytest

from streamlint.config.options import Source
from streamlint.ir.printer import print_module
from streamlint.runner import parsing
from streamlint.runner.parsing import Parser

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
    monkeypatch.setattr(parsing, "WORTH_A_PROCESS", 0)


def parsed(jobs: int) -> Parser:
    parser = Parser(SOURCES)
    parser.ahead(jobs)
    return parser


def printed(parser: Parser) -> dict[str, str]:
    made = {source.path: parser.representation(source) for source in parser.sources}
    return {path: print_module(module) + "".join(map(print_module, module.inline)) for path, module in made.items() if module is not None}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_program_is_the_same_however_it_was_lowered() -> None:
    here, beside = parsed(1), parsed(2)
    assert beside._made
    assert not here._made
    assert printed(beside) == printed(here)
    assert "cudaMalloc" in printed(beside)["strings.py"]
    assert beside.problems() == here.problems()
    assert [problem.file for problem in here.problems()] == ["broken.py"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_dies_costs_the_file_that_it_read(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = parsing.parsed
    monkeypatch.setattr(parsing, "parsed", lambda source, headers: os._exit(3) if source.path == "part3.py" else plain(source, headers))
    parser = parsed(2)
    assert "part3.py" not in printed(parser)
    assert "part4.py" in printed(parser)
    assert [(problem.file, problem.message) for problem in parser.problems() if problem.file != "broken.py"] == [
        ("part3.py", "left out: a worker ended with status 3")
    ]


def test_few_sources_are_not_worth_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "WORTH_A_PROCESS", 1 << 16)
    assert parsed(2)._made == {}
