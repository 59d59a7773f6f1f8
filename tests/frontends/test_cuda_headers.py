"""Macros that come from headers at hand."""

from __future__ import annotations

import pytest

from streamlint.frontends.cuda import lower
from streamlint.frontends.cuda_headers import Headers
from streamlint.program import Call, Launch, Name, walk


def nodes(files: dict[str, str], path: str = "src/use.cu") -> list[str]:
    """The launches and calls of a file, by name, in order."""
    module = lower(path, files[path], Headers(files))
    found = []
    for functions in module.functions.values():
        for function in functions:
            for node in walk(function):
                if isinstance(node, Launch) and isinstance(node.kernel, Name):
                    found.append(f"{node.kernel.id}<<<>>> at {node.name_at[0]}:{node.name_at[1]}")
                elif isinstance(node, Call) and isinstance(node.function, Name):
                    found.append(node.function.id)
    return found


LAUNCHER = "#pragma once\n#define LAUNCH(K, n, ...) K<<<((n) + 255) / 256, 256>>>(__VA_ARGS__)\n"


def test_a_launching_macro_of_a_header() -> None:
    files = {"src/launch.h": LAUNCHER, "src/use.cu": '#include "launch.h"\nvoid f(float* x, int n) {\n  LAUNCH(fill, n, x);\n}\n'}
    assert nodes(files) == ["fill<<<>>> at 3:10"]


def test_through_another_header() -> None:
    files = {
        "src/launch.h": LAUNCHER,
        "src/all.h": '#include "launch.h"\n',
        "src/use.cu": '#include "all.h"\nvoid f(float* x, int n) { LAUNCH(fill, n, x); }\n',
    }
    assert nodes(files) == ["fill<<<>>> at 2:34"]


def test_headers_that_include_one_another() -> None:
    files = {
        "src/a.h": f'#include "b.h"\n{LAUNCHER}',
        "src/b.h": '#include "a.h"\n#define WAIT() cudaDeviceSynchronize()\n',
        "src/use.cu": '#include "a.h"\nvoid f(float* x, int n) { LAUNCH(fill, n, x); WAIT(); }\n',
    }
    assert nodes(files) == ["fill<<<>>> at 2:34", "cudaDeviceSynchronize"]


def test_the_nearest_header_of_a_name() -> None:
    files = {
        "old/launch.h": "#define LAUNCH(K, n, ...) cudaLaunchKernel(K, n, n, nullptr, 0, 0)\n",
        "src/launch.h": LAUNCHER,
        "src/use.cu": '#include "launch.h"\nvoid f(float* x, int n) { LAUNCH(fill, n, x); }\n',
    }
    assert nodes(files) == ["fill<<<>>> at 2:34"]


def test_what_the_file_defines_itself_wins() -> None:
    own = '#include "launch.h"\n#undef LAUNCH\n#define LAUNCH(K, n, x) other(x)\nvoid f(float* x, int n) { LAUNCH(fill, n, x); }\n'
    assert nodes({"src/launch.h": LAUNCHER, "src/use.cu": own}) == ["other"]


def test_a_use_above_the_include_is_none() -> None:
    own = 'void LAUNCH(int, int, float*);\nvoid f(float* x, int n) { LAUNCH(1, n, x); }\n#include "launch.h"\n'
    assert nodes({"src/launch.h": LAUNCHER, "src/use.cu": own}) == ["LAUNCH"]


def test_a_header_of_another_vendor_is_not_asked() -> None:
    own = (
        '#ifdef USE_ROCM\n#include "amd/launch.h"\n#else\n#include "nv/launch.h"\n#endif\nvoid f(float* x, int n) { LAUNCH(fill, n, x); }\n'
    )
    files = {"src/amd/launch.h": "#define LAUNCH(K, n, x) amd(x)\n", "src/nv/launch.h": LAUNCHER, "src/use.cu": own}
    assert nodes(files) == ["fill<<<>>> at 6:34"]


@pytest.mark.parametrize(
    ("defined", "used", "found"),
    [
        # A dispatch macro of a header that calls a launching macro of the file by its name.
        (
            "#define BY_TYPE(T, FN) if (T == 1) { FN(float); } else { FN(int); }",
            "#define GO(T) fill<T><<<1, 32>>>(x)\nvoid f(float* x, int t) { BY_TYPE(t, GO); }",
            ["fill<<<>>> at 3:38", "fill<<<>>> at 3:38"],
        ),
        # A check macro that waits, and one that does nothing but check.
        ("#define CHECK(e) do { e; cudaDeviceSynchronize(); } while (0)", "void f() { CHECK(g()); }", ["g", "cudaDeviceSynchronize"]),
        ("#define CHECK(e) do { if ((e) != cudaSuccess) throw 1; } while (0)", "void f() { CHECK(g()); }", ["g"]),
        # Names of the API behind others.
        (
            "#define gpuStreamSynchronize cudaStreamSynchronize",
            "void f(cudaStream_t s) { gpuStreamSynchronize(s); }",
            ["cudaStreamSynchronize"],
        ),
        ("#define CURRENT() at::cuda::getCurrentCUDAStream()", "void f() { g(CURRENT()); }", ["g", "at::cuda::getCurrentCUDAStream"]),
        # A macro that asks where its argument is, by another one, and one that declares a guard.
        (
            "#define IS_HERE(x) TORCH_CHECK(x.is_cuda(), #x)\n#define EXPECT(x) IS_HERE(x); TORCH_CHECK(true)",
            "void f(at::Tensor x) { EXPECT(x); g(x); }",
            ["g"],
        ),
        ("#define ON(x) const at::cuda::OptionalCUDAGuard guard(at(x));", "void f(at::Tensor x) { ON(x) g(x); }", ["at", "g"]),
        # What has nothing to do with the GPU stays as it is written.
        ("#define TWICE(x) ((x) + (x))", "void f(int i) { g(TWICE(i)); }", ["g", "TWICE"]),
    ],
)
def test_which_macros_are_brought(defined: str, used: str, found: list[str]) -> None:
    assert nodes({"src/defs.h": f"#pragma once\n{defined}\n", "src/use.cu": f'#include "defs.h"\n{used}\n'}) == found


def test_a_branch_that_stops_the_compiler_is_not_taken() -> None:
    own = "#if SOME_OPTION\n#error no\n#elif CUDA_VERSION < 11000\nvoid f() { a(); }\n#else\nvoid f() { b(); }\n#endif\n"
    assert nodes({"src/use.cu": own}) == ["b"]


def test_the_version_of_cuda_is_known() -> None:
    own = "#if !defined(CUDA_VERSION) || CUDA_VERSION < 11000\nvoid f() { a(); }\n#else\nvoid f() { b(); }\n#endif\n"
    assert nodes({"src/use.cu": own}) == ["b"]


@pytest.mark.parametrize("condition", ["#if HAVE_GPU", "#ifdef WITH_CUDA", "#if defined(MINE_USE_CUDA)", "#if HAVE_CUDA && !NO_GPU"])
def test_a_build_for_gpus_has_what_says_so(condition: str) -> None:
    """Of ``#if HAVE_GPU … #else`` one branch is compiled, the same wherever it is asked."""
    own = f"void f() {{\n{condition}\na();\n#else\nb();\n#endif\n}}\n"
    assert nodes({"src/use.cu": own}) == ["a"]
