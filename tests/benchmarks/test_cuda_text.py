"""The text scan that the front end is held against."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "cuda_text.py"
pytestmark = pytest.mark.skipif(not FILE.is_file(), reason="benchmarks are not in the source distribution")


@pytest.fixture(scope="module")
def cuda_text() -> Iterator[Any]:
    spec = importlib.util.spec_from_file_location("benchmarks_cuda_text", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["benchmarks_cuda_text"] = module
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("benchmarks_cuda_text")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("void f() { k<<<1, 2>>>(x); }", ["launch"]),
        ("void f() { k<int> << <1, 2 >> >(x); }", ["launch"]),
        ("void f() { // k<<<1, 2>>>(x);\n /* cudaFree(p) */ }", []),
        ('void f() { g("k<<<1, 2>>>(x); cudaFree(p)"); auto s = R"x(cudaFree(q))x"; }', []),
        ("void f() { int n = 1'000'000; cudaFree(p); char c = '\"'; cudaFree(q); }", ["cudaFree", "cudaFree"]),
        ("void f() { ::cudaFree(p); rt::cudaFree(q); x.cudaFree(); }", ["cudaFree", "cudaFree"]),
        ("void f() { return cudaFree(p); }", ["cudaFree"]),
        ("void f() { e = cudaFuncGetAttributes<T>(&a, k); cuInit(0); }", ["cudaFuncGetAttributes", "cuInit"]),
        # Declarations, kernels and device functions.
        ("cudaError_t cudaFree(void*);\nconst char* cudaName(int);\nstatic std::vector<int> cudaSizes(int);", []),
        ("__global__ void k(int n) { g<<<1, 2>>>(n); cudaFree(p); }", []),
        ("template <int N> __device__ __forceinline__ void d(int n) { if (n) { cudaFree(p); } }", []),
        ("__host__ __device__ void d(int n) { cudaFree(p); }", ["cudaFree"]),
        ("__global__ void k(int n);\nvoid f() { cudaFree(p); }", ["cudaFree"]),
        # Branches: what no build for NVIDIA compiles, and what nobody can know.
        ("#ifdef USE_ROCM\nvoid f() { k<<<1, 2>>>(x); }\n#else\nvoid f() { cudaFree(p); }\n#endif", ["cudaFree"]),
        ("void f() {\n#ifdef SOME_OPTION\nk<<<1, 2>>>(x);\n#else\ncudaFree(p);\n#endif\n}", ["launch", "cudaFree"]),
        ("#if 0\n#ifdef X\nvoid f() { cudaFree(p); }\n#endif\n#endif\nvoid g() { k<<<1, 2>>>(x); }", ["launch"]),
        # A project's own macros are no calls of the API.
        ("#define cudaCheck(e) check(e)\nvoid f() { cudaCheck(cudaFree(p)); }", ["cudaFree"]),
        ("#define GO(x) k<<<1, 2>>>(x); \\\n  cudaFree(x)\nvoid f() { GO(p); }", []),
    ],
)
def test_places(cuda_text: Any, text: str, found: list[str]) -> None:
    scan = cuda_text.scan(text)
    assert [place.name or place.kind for place in sorted(scan.places, key=lambda place: place.offset)] == found


def test_what_is_left_out_is_counted(cuda_text: Any) -> None:
    scan = cuda_text.scan("#if 0\nvoid f() { cudaFree(p); }\n#endif\n__global__ void k() { g<<<1, 2>>>(); }\n")
    assert (scan.not_compiled, scan.device) == (1, 1)


def test_macro_bodies_are_a_group_of_their_own(cuda_text: Any) -> None:
    scan = cuda_text.scan("#define GO(x) k<<<1, 2>>>(x)\n#define CHECK(e) if (e) g(cudaGetErrorString(e))\nvoid f() { GO(p); GO(q); }\n")
    assert list(scan.in_macros) == ["GO"]
    assert [place.offset for place in cuda_text.uses(scan, {"GO"})] == [scan.mask.index("GO(p"), scan.mask.index("GO(q")]
