"""Files that name no CUDA are read where one that does stands beside them, and only there: bindings, headers, Python that is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlint.config.settings import Resolver
from streamlint.runner.linter import run

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


KEEPER = """import torch


class Keeper:
    def __init__(self, sizes):
        self.parts = []
        for size in sizes:
            self.parts.append(torch.zeros(size, 1 << 16))
"""
USER = """import torch
from {module} import {member}


class Upload:
    def __init__(self, sizes):
        self.keeper = {made}(sizes)

    def run(self, index):
        return self.keeper.parts[index].to("cuda", non_blocking=True)
"""


@pytest.mark.parametrize(
    ("place", "module", "member", "made"),
    [
        ("keeper.py", "keeper", "Keeper", "Keeper"),
        ("keeper.py", ".keeper", "(Keeper)", "Keeper"),
        ("keeper.py", ".", "keeper", "keeper.Keeper"),
        ("parts/keeper.py", "parts.keeper", "Keeper as Held", "Held"),
        ("parts/__init__.py", "parts", "Keeper", "Keeper"),
    ],
)
def test_python_that_keeps_tensors_is_read_for_who_imports_it(tmp_path: Path, place: str, module: str, member: str, made: str) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / place).write_text(KEEPER)
    (tmp_path / "other.py").write_text(KEEPER)
    relevant, findings = lint(tmp_path, user_dot_py=USER.format(module=module, member=member, made=made))
    assert (relevant, findings) == (2, [("user.py", 10, "SL001")])


def test_python_that_keeps_nothing_is_not_read(tmp_path: Path) -> None:
    where = KEEPER.replace("torch.zeros(size, 1 << 16)", "torch.zeros(size, 1 << 16, device=place())")
    user = USER.format(module="keeper", member="Keeper", made="Keeper") + "\nimport where\n"
    local = "import torch\n\n\ndef make():\n    made = torch.zeros(3)\n    return made.sum()\n"
    relevant, _ = lint(tmp_path, user_dot_py=user, keeper_dot_py=local, where_dot_py=where)
    assert relevant == 1


def test_a_string_that_names_the_device_makes_a_file_count(tmp_path: Path) -> None:
    relevant, _ = lint(tmp_path, one_dot_py='x = y.to("cuda")\n', two_dot_py="x = y.to('cuda:0')\n", three_dot_py='x = y.to("cpu")\n')
    assert relevant == 2


NAMED = """#include <cuda_runtime.h>
#include <pybind11/pybind11.h>

void fetch(uintptr_t host, uintptr_t source, size_t bytes, uintptr_t stream) {
  cudaMemcpyAsync((void*)host, (void*)source, bytes, cudaMemcpyDeviceToHost, (cudaStream_t)stream);
}
PYBIND11_MODULE(_fetcher, m) { m.def("fetch", &fetch); }
"""
CALLER = """from package import _fetcher

def early(host, source, stream):
    _fetcher.fetch(host, source, 64, stream)
"""


def test_python_that_imports_what_cpp_opens(tmp_path: Path) -> None:
    assert lint(tmp_path, fetcher_dot_cpp=NAMED, caller_dot_py=CALLER, other_dot_py="import _fetchers\n") == (2, [])


def test_python_that_opens_a_library_beside_cpp(tmp_path: Path) -> None:
    caller = "import ctypes\n\nlib = ctypes.CDLL('libfetch.so')\n"
    assert lint(tmp_path, caller_dot_py=caller) == (0, [])
    assert lint(tmp_path, fetcher_dot_cpp=NAMED, caller_dot_py=caller) == (2, [])


FILL = """#pragma once
#include <cuda_runtime.h>
__global__ void fill_kernel(float* out, int n);
inline void fill(float* out, int n, cudaStream_t stream = nullptr) {
  fill_kernel<<<n / 256, 256, 0, stream>>>(out, n);
}
"""
FILLED = """#include "toolbox.cuh"

__global__ void scale_kernel(float* out, int n);
void filled(float* out, int n, cudaStream_t stream) {
  fill(out, n);
  scale_kernel<<<n / 256, 256, 0, stream>>>(out, n);
}
"""


def test_a_header_of_includes_alone_passes_on_what_they_bring(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "fill.cuh").write_text(FILL)
    (tmp_path / "parts" / "all.cuh").write_text('// all of it\n#include "fill.cuh"\n')
    toolbox = '/* The whole\n * of it; */\n#pragma once\n#include "parts/all.cuh"  // and no more\n'
    other = "#pragma once\n#include <vector>\n"
    assert lint(tmp_path, toolbox_dot_cuh=toolbox, user_dot_cu=FILLED, other_dot_h=other) == (4, [("user.cu", 5, "SL002")])


def test_a_header_that_holds_more_than_includes_passes_them_on_too(tmp_path: Path) -> None:
    more = '#pragma once\n#include "fill.cuh"\nusing real = float;\n'
    assert lint(tmp_path, fill_dot_cuh=FILL, toolbox_dot_cuh=more, user_dot_cu=FILLED) == (3, [("user.cu", 5, "SL002")])


def test_headers_of_includes_alone_are_not_read_without_cuda(tmp_path: Path) -> None:
    assert lint(tmp_path, all_dot_h='#include "part.h"\n', part_dot_h="int part();\n", user_dot_cpp='#include "all.h"\n') == (0, [])


DEVICE = """#pragma once
#include <memory>
class Device {
 public:
  Device();
  void fetch(void* to, const void* from, size_t bytes, stream_t stream);
 private:
  class impl;
  std::unique_ptr<impl> pimpl;
};
"""
WORK = """#include "device.h"
#include <cuda_runtime.h>
class Device::impl {
 public:
  void fetch(void* to, const void* from, size_t bytes, stream_t stream) {
    cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream);
  }
};
#include "device_part.cc"
"""
PART = """Device::Device() : pimpl{new impl} {}
void Device::fetch(void* to, const void* from, size_t bytes, stream_t stream) { pimpl->fetch(to, from, bytes, stream); }
"""
STORE = """#include "device.h"
#include <cuda_runtime.h>
float sum(Device& device, float* values, cudaStream_t stream) {
  cudaMemsetAsync(values, 0, 1 << 20, stream);
  float* host;
  cudaMallocHost(&host, 1 << 20);
  device.fetch(host, values, 1 << 20, stream);
  return host[0];
}
"""


def test_what_stands_between_cpp_files_is_read(tmp_path: Path) -> None:
    other = "#pragma once\nclass Timer { public: void start(); };\n"
    files = {"device_dot_h": DEVICE, "work_dot_cc": WORK, "device_part_dot_cc": PART, "other_dot_h": other}
    relevant, findings = lint(tmp_path, store_dot_cc=STORE + '#include "other.h"\n', **files)
    assert (relevant, findings) == (5, [("store.cc", 8, "SL005")])


def test_a_copy_between_that_is_waited_for(tmp_path: Path) -> None:
    waits = STORE.replace("  return host", "  cudaStreamSynchronize(stream);\n  return host")
    assert lint(tmp_path, device_dot_h=DEVICE, work_dot_cc=WORK, device_part_dot_cc=PART, store_dot_cc=waits) == (4, [])


DISPATCH = """#pragma once
template <class F, typename... Ts>
void dispatch(int type, F f, Ts&&... args) {
  switch (type) {
    case 0: return f.template operator()<char>(std::forward<Ts>(args)...);
    default: return f.template operator()<float>(std::forward<Ts>(args)...);
  }
}
"""
SUMS = """#include "dispatch.h"
#include <cuda_runtime.h>
__global__ void sum(void* data);
struct Sum {
  template <typename T>
  void operator()(void* data, cudaStream_t stream) {
    sum<<<1, 256, 0, stream>>>(data);
    CLEAR
  }
};
void sums(int type, void* data, cudaStream_t stream) {
  Sum op;
  dispatch(type, op, data, stream);
  cudaStreamSynchronize(stream);
}
"""
SUMMED = '#include <pybind11/pybind11.h>\nvoid sums(int, void*, cudaStream_t);\nPYBIND11_MODULE(_sums, m) {\n  m.def("sums", &sums);\n}\n'


def test_a_template_that_calls_a_functor_is_read(tmp_path: Path) -> None:
    waits = SUMS.replace("CLEAR", "cudaStreamSynchronize(stream);").replace("  cudaStreamSynchronize(stream);\n}\n", "}\n")
    assert lint(tmp_path, dispatch_dot_h=DISPATCH, sums_dot_cu=waits, bind_dot_cpp=SUMMED) == (3, [("bind.cpp", 4, "SL009")])


def test_a_template_whose_functor_does_not_wait(tmp_path: Path) -> None:
    quiet = SUMS.replace("CLEAR", "").replace("  cudaStreamSynchronize(stream);\n}\n", "}\n")
    assert lint(tmp_path, dispatch_dot_h=DISPATCH, sums_dot_cu=quiet, bind_dot_cpp=SUMMED) == (3, [])


GRAPHED = """import torch
from layers import stack

class Graphed:
    def __init__(self, width):
        self.net = stack(width).cuda()
        self.rows = torch.zeros(8, width, device="cuda")
        self.graph = torch.cuda.CUDAGraph()

    def capture(self):
        with torch.cuda.graph(self.graph):
            self.out = self.net(self.rows)
"""
LAYERS = """from torch import nn
from ramps import ramp

class Layer(nn.Module):
    def forward(self, rows):
        return rows * ramp(rows.shape[1], rows.device)

def stack(width):
    return nn.Sequential(*(Layer() for _ in range(3)))
"""
RAMPS = """import torch

def ramp(count, device):
    return MADE
"""


def test_what_runs_in_a_capture_is_read_through_imports(tmp_path: Path) -> None:
    files = {"graphed_dot_py": GRAPHED, "layers_dot_py": LAYERS, "other_dot_py": LAYERS}
    uploads = RAMPS.replace("MADE", "torch.tensor([float(k) for k in range(count)], device=device)")
    relevant, findings = lint(tmp_path, **files, ramps_dot_py=uploads)
    assert (relevant, findings) == (3, [("graphed.py", 12, "SL013")])


def test_what_runs_in_a_capture_makes_its_values_on_the_device(tmp_path: Path) -> None:
    made = RAMPS.replace("MADE", "torch.arange(count, device=device)")
    assert lint(tmp_path, graphed_dot_py=GRAPHED, layers_dot_py=LAYERS, ramps_dot_py=made)[1] == []


def test_a_header_that_a_cuda_file_includes_is_read(tmp_path: Path) -> None:
    page = '#include "numbers.h"\ntemplate <typename T> struct Held { T* at; };\nstruct Page {\n cudaStream_t lane; Held<row_t> rows;\n};\n'
    numbers = "#pragma once\nusing row_t = std::uint64_t;\n"
    assert lint(tmp_path, page_dot_cuh=page, numbers_dot_h=numbers) == (2, [])
    assert lint(tmp_path, page_dot_cuh=page, numbers_dot_h=numbers.replace("std::uint64_t", "std::string")) == (2, [])


SEND = """#pragma once
#include <cuda_runtime.h>

inline void send(float* device, float* host, cudaStream_t lane) {
  cudaMemcpyAsync(device, host, 1 << 22, cudaMemcpyHostToDevice, lane);
}
"""
HOP = "#pragma once\n\ninline void hop(float* device, float* host, cudaStream_t lane) {\n  send(device, host, lane);\n}\n"
ALL = '#pragma once\n#include "send.cuh"\n#include "hop.cuh"\n'
USE = """#include "all.cuh"

void use() {
  float* device;
  cudaMalloc((void**)&device, 1 << 22);
  cudaStream_t lane;
  cudaStreamCreateWithFlags(&lane, cudaStreamNonBlocking);
  float* host = static_cast<float*>(malloc(1 << 22));
  hop(device, host, lane);
}
"""


def test_a_header_has_the_names_of_those_that_stand_before_it(tmp_path: Path) -> None:
    relevant, found = lint(tmp_path, send_dot_cuh=SEND, hop_dot_cuh=HOP, all_dot_cuh=ALL, use_dot_cu=USE)
    assert (relevant, found) == (4, [("use.cu", 9, "SL001")])


def test_who_calls_what_a_header_of_includes_hands_on_is_read(tmp_path: Path) -> None:
    caller = '#include "all.cuh"\nvoid use(float* device, cudaStream_t lane) {\n  hop(device, new float[1 << 20], lane);\n}\n'
    assert lint(tmp_path, send_dot_cuh=SEND, hop_dot_cuh=HOP, all_dot_cuh=ALL, use_dot_cu=caller)[0] == 4
    other = '#include "all.cuh"\nint twice(int n) {\n  return 2 * n;\n}\n'
    assert lint(tmp_path, use_dot_cu=other)[0] == 3


@pytest.mark.parametrize(
    "named",
    [
        "static void (*const hop)(float*, float*, cudaStream_t) = send;\n",
        "static std::function<void(float*, float*, cudaStream_t)> hop = send;\n",
        "static const auto hop = [](float* device, float* host, cudaStream_t lane) { send(device, host, lane); };\n",
        "#define hop(device, host, lane) \\\n  cudaMemcpyAsync(device, host, 1 << 22, cudaMemcpyHostToDevice, lane)\n",
    ],
    ids=["pointer", "function", "lambda", "macro"],
)
def test_who_calls_what_a_header_holds_under_another_name_is_read(tmp_path: Path, named: str) -> None:
    caller = '#include "named.cuh"\nvoid use(float* device, cudaStream_t lane) {\n  hop(device, new float[1 << 20], lane);\n}\n'
    found = lint(tmp_path, send_dot_cuh=SEND, named_dot_cuh=f'#pragma once\n#include "send.cuh"\n{named}', use_dot_cpp=caller)
    assert found == (3, [("use.cpp", 3, "SL001")])


def test_who_names_a_macro_without_work_is_not_read(tmp_path: Path) -> None:
    header = SEND + "#define TWICE(n) (2 * (n))\n"
    other = '#include "moves.cuh"\nint twice(int n) {\n  return TWICE(n);\n}\n'
    assert lint(tmp_path, moves_dot_cuh=header, use_dot_cpp=other)[0] == 1
