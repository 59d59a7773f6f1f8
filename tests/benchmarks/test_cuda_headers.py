"""The index of CUDA's headers: what is read of a header, and how rows are held against it."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from streamlint.models import Models, load

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not in the source distribution")

RUNTIME = """
/** cudaFree(p): a comment is no declaration. */
extern __host__ cudaError_t CUDARTAPI cudaMemcpyAsync(void *dst, const void *src, size_t count,
                                                      enum cudaMemcpyKind kind, cudaStream_t stream __dv(0));
#define cudaThing(x) cudaOther(x)
extern __host__ cudaError_t CUDARTAPI cudaDeviceSynchronize(void);
static __inline__ cudaError_t cudaEventCreate(cudaEvent_t *event, unsigned int flags = 0) {
    return ::cudaEventCreateWithFlags(event, flags);
}
extern __host__ cudaError_t CUDARTAPI cudaStreamQuery_ptsz(cudaStream_t stream);
"""
DRIVER = "#define CUDA_VERSION {version}\nCUresult CUDAAPI cuStreamDestroy(CUstream hStream{more});\n"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("cuda_headers")


def test_two_versions_of_headers(script: Any, tmp_path: Path) -> None:
    for version, more in ((12090, ""), (13000, ", int how")):
        folder = tmp_path / str(version)
        folder.mkdir()
        (folder / "cuda_runtime_api.h").write_text(RUNTIME)
        (folder / "cuda.h").write_text(DRIVER.format(version=version, more=more))
    found = script.index([tmp_path / "12090", tmp_path / "13000"])
    assert json.loads(script.written(found)) == found
    assert found == {
        "cuStreamDestroy": {"12.9": ["CUstream hStream"], "13.0": ["CUstream hStream", "int how"]},
        "cudaDeviceSynchronize": {"12.9 13.0": []},
        "cudaEventCreate": {"12.9 13.0": ["cudaEvent_t* event", "unsigned int flags=0"]},
        "cudaMemcpyAsync": {"12.9 13.0": ["void* dst", "const void* src", "size_t count", "cudaMemcpyKind kind", "cudaStream_t stream=0"]},
    }
    assert script.changed(found) == ["cuStreamDestroy"]


def test_rows_that_no_header_bears_out(script: Any) -> None:
    models = Models()
    calls = [
        {
            "names": ["cudaMemcpyAsync"],
            "effect": "copy",
            "dst": "0",
            "src": "1",
            "direction": "3",
            "asynchronous": True,
            "stream": "3=null",
        },
        {"names": ["cudaStreamQuery", "cudaLost*"], "effect": "query", "of": "1"},
        {"names": ["cudaGone"], "effect": "none"},
    ]
    models.add({"library": "cuda-runtime", "language": "cuda", "version": 1, "call": calls}, "rows.toml")
    said = {
        "cudaMemcpyAsync": {"13.0": ["void* dst", "const void* src", "size_t count", "cudaMemcpyKind kind", "cudaStream_t stream=0"]},
        "cudaStreamQuery": {"13.0": ["cudaStream_t stream"]},
        "cudaNew": {"13.0": []},
    }
    assert script.without_row(said, models) == ["cudaNew"]
    assert script.without_function(said, models) == ["cudaGone", "cudaLost*"]
    assert [line.partition(", but")[0] for line in script.misplaced(said, models)] == [
        "cudaMemcpyAsync: stream = 3",
        "cudaStreamQuery: of = 1",
    ]


def test_the_shipped_rows(script: Any) -> None:
    said, models = script.known(), load("cuda", ())
    assert script.without_row(said, models) == []
    assert script.misplaced(said, models) == []
