"""Calls that lie deep below whoever makes a stream or gives memory, or are many: how far up somebody looks decides nothing."""

from __future__ import annotations

from streamlint.config.options import Options, Source
from streamlint.frontends import cuda, python
from streamlint.hazards.findings import find
from streamlint.ir import ModuleIR
from streamlint.ir.modules import lower

HELPER = """#include <cuda_runtime.h>

__global__ void refine(float* mesh);
__global__ void draw(float* image);
__global__ void sum(const float* mesh, float* total);

static void work(float* mesh, float* image, cudaStream_t stream) {
  refine<<<64, 256, 0, stream>>>(mesh);
  draw<<<64, 256>>>(image);
}
"""
FRAME = """
void frame(float* mesh, float* image, float* total) {{
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  {start}(mesh, image, stream);
  {after}
  cudaDeviceSynchronize();
}}
"""
NEEDED = "sum<<<1, 256>>>(mesh, total);"


def lowered(source: Source) -> ModuleIR:
    return lower((cuda if source.language == "cuda" else python).lower(source.path, source.text))


def found(text: str, code: str) -> list[str]:
    return [one.code for one in find([Source("main.cu", text, "cuda")], Options(codes=frozenset({code})), lowered).findings]


def chain(length: int, after: str) -> str:
    """A stream that is made a number of calls above its work."""
    calls, called = "", "work"
    for number in range(length):
        calls += f"static void step{number}(float* mesh, float* image, cudaStream_t stream) {{ {called}(mesh, image, stream); }}\n"
        called = f"step{number}"
    return HELPER + calls + FRAME.format(start=called, after=after)


def test_a_caller_far_above_needs_the_order_of_a_blocking_stream() -> None:
    assert found(chain(16, ""), "SL015") == ["SL015"]
    assert not found(chain(16, NEEDED), "SL015")


def crowd(size: int, after: str) -> str:
    """A stream that is made where many other calls of the same function stand."""
    calls = ""
    for number in range(size):
        calls += f"void other{number}(float* mesh, float* image, cudaStream_t stream) {{ work(mesh, image, stream); }}\n"
    return HELPER + FRAME.format(start="work", after=after) + calls


def test_one_of_many_callers_needs_the_order_of_a_blocking_stream() -> None:
    assert found(crowd(80, ""), "SL015") == ["SL015"]
    assert not found(crowd(80, NEEDED), "SL015")


GIVEN = """import torch


def total(rows: torch.Tensor):
    return rows.to("cpu", non_blocking=True)


{calls}
def use(rows):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        print({called}(rows))


{above}
"""


def given(below: int, above: int) -> list[str]:
    """An argument that some calls lead to work under a stream of its own, below some other calls."""
    calls, called = "", "total"
    for number in range(below):
        calls += f"def step{number}(rows):\n    return {called}(rows)\n\n\n"
        called = f"step{number}"
    outer, use = "", "use"
    for number in range(above):
        outer += f"def outer{number}(rows):\n    {use}(rows)\n\n\n"
        use = f"outer{number}"
    source = Source("main.py", GIVEN.format(calls=calls, called=called, above=outer), "python")
    return [one.code for one in find([source], Options(codes=frozenset({"SL006"})), lowered).findings]


def test_an_argument_is_known_to_be_given_whatever_calls_lie_between() -> None:
    assert given(0, 0) == ["SL006"]
    assert given(9, 0) == ["SL006"]
    assert given(0, 9) == ["SL006"]


def pyramid(height: int, body: str) -> str:
    """Functions each of which calls the one below it five times: 5 ** height chains of calls lead to the wait."""
    text = f"#include <cuda_runtime.h>\n#include <pybind11/pybind11.h>\n\nstatic void step0() {{ {body} }}\n"
    for number in range(height):
        calls = f"step{number}(); " * 5
        text += f"static void step{number + 1}() {{ {calls}}}\n"
    return f'{text}\nPYBIND11_MODULE(_mesh, m) {{ m.def("refine", &step{height}); }}\n'


def test_chains_of_calls_to_a_wait_are_not_all_looked_at() -> None:
    assert found(pyramid(11, "cudaDeviceSynchronize();"), "SL009") == ["SL009"]
    assert not found(pyramid(11, "pybind11::gil_scoped_release quiet; cudaDeviceSynchronize();"), "SL009")
