"""What is advised where the GIL is held: a call guard, but not for a function that works with Python's objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlint.config import Resolver
from streamlint.linter import run

SOURCE = """#include <pybind11/pybind11.h>
#include <cuda_runtime.h>
namespace py = pybind11;

{function}

PYBIND11_MODULE(pipeline, m) {{
  m.def("finish", &finish);
}}
"""
GUARD, AROUND = "add a call guard", "release the GIL around the call"


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        ("int finish(int n) { cudaDeviceSynchronize(); return n; }", GUARD),
        ("int finish(int n) { py::gil_scoped_acquire held; cudaDeviceSynchronize(); return n; }", GUARD),
        ("int finish(py::object n) { cudaDeviceSynchronize(); return 0; }", AROUND),
        ("int finish(const pybind11::dict& n) { cudaDeviceSynchronize(); return 0; }", AROUND),
        ("int finish(int n) { py::dict all; cudaDeviceSynchronize(); return n; }", AROUND),
        ("int finish(int n) { cudaDeviceSynchronize(); py::print(n); return n; }", AROUND),
    ],
)
def test_the_advice(tmp_path: Path, function: str, advice: str) -> None:
    (tmp_path / "bindings.cpp").write_text(SOURCE.format(function=function))
    (finding,) = run([tmp_path], Resolver(None)).findings
    assert (finding.code, finding.help is not None and finding.help.startswith(advice)) == ("SL009", True)
