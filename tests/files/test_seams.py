"""Bindings and headers that name no CUDA are read where a CUDA file stands beside them, and only there."""

from __future__ import annotations

from pathlib import Path

from streamlint.config import Resolver
from streamlint.linter import run

HEADER = "#pragma once\nstruct Engine;\nfloat engine_sum(Engine* engine);\n"
BODY = '#include "engine.h"\n#include <cuda_runtime.h>\nfloat engine_sum(Engine* engine) {\n  cudaDeviceSynchronize();\n  return 0.f;\n}\n'
BINDINGS = """#include <pybind11/pybind11.h>
#include "engine.h"

PYBIND11_MODULE(_engine, m) {
  m.def("sum", &engine_sum);
}
"""


def lint(folder: Path, **files: str) -> tuple[int, list[tuple[str, int, str]]]:
    for name, text in files.items():
        (folder / name.replace("_dot_", ".")).write_text(text)
    report = run([folder], Resolver(None))
    return report.relevant, [(Path(f.span.file).name, f.span.row, f.code) for f in report.findings]


def test_a_binding_joins_the_body_through_a_header(tmp_path: Path) -> None:
    assert lint(tmp_path, engine_dot_h=HEADER, engine_dot_cu=BODY, bindings_dot_cpp=BINDINGS, other_dot_h="#pragma once\n") == (
        3,
        [("bindings.cpp", 5, "SL009")],
    )


def test_bindings_alone_are_not_read(tmp_path: Path) -> None:
    assert lint(tmp_path, engine_dot_h=HEADER, bindings_dot_cpp=BINDINGS) == (0, [])
