"""What fixes write, and what they leave alone: sources before and after, by the linter itself."""

from __future__ import annotations

import collections
import difflib
import functools
import re
from pathlib import Path

import pytest

from streamlint.checks.rules import all_rules
from streamlint.config.settings import Resolver, Settings
from streamlint.fix import fixer_of
from streamlint.fix.trial import Trial, together
from streamlint.runner import linter

DOCUMENTS = Path(__file__).parents[1] / "rules"
FENCE = re.compile(r"^```(?P<language>python|cuda|cython)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
NAMES = {"python": "a.py", "cuda": "a.cu", "cython": "a.pyx"}
EVERY = [code for code, rule in all_rules().items() if rule.default != "off"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def lint(text, language="python", codes=EVERY, fixes=False):
    return linter.run_text(text.encode(), NAMES[language], Resolver(Settings.of(select=codes)), fixes=fixes)


@functools.cache
def mended(text, language="python", code="SL001"):
    """The text with all fixes of a rule, and the applicability of each; the edited text is linted anew, apart from the trial."""
    report = lint(text, language, [code], fixes=True)
    found = [finding for finding in report.findings if finding.fix]
    if not found:
        return text, []
    trial = report.trials[NAMES[language]]
    assert isinstance(trial, Trial)
    after, done = together(trial, found)
    codes = [*EVERY, code]
    again, before = lint(after, language, codes), lint(text, language, codes)
    assert not again.problems, "it does not parse"
    left = collections.Counter(finding.code for finding in before.findings)
    left.subtract(finding.code for finding in done)
    left = +left  # of rules that others take precedence over, none is there before
    now = collections.Counter(finding.code for finding in again.findings)
    assert now[code] == left[code], "a finding is left"
    assert now <= left, "a finding is new"
    return after, [finding.fix.applicability for finding in done]


def changes(text, after):
    """The lines that a fix takes away and those that it adds."""
    lines = difflib.ndiff(text.splitlines(), after.splitlines())
    return [line[:2] + line[2:].strip() for line in lines if line[:2] in ("- ", "+ ")]


HEAD = "import torch\nfrom torch.utils.data import DataLoader\n\n\n"
CPP = "#include <cuda_runtime.h>\n\n__global__ void work(float* x, int n);\n\n"
LAUNCH = "work<<<1, 64, 0, stream>>>"
CAPI = "#include <Python.h>\n#include <cuda_runtime.h>\n\nstatic PyObject* drain(PyObject* self, PyObject* unused) {\n"
METHODS = '\nstatic PyMethodDef methods[] = {{"drain", drain, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};\n'
NOGIL = (
    'cdef extern from "cuda_runtime.h" nogil:\n    ctypedef void* cudaStream_t\n    int cudaStreamSynchronize(cudaStream_t stream)\n'
    "    int cudaDeviceSynchronize()\n\n\n"
)
FIXED = {
    "a loader is pinned": (
        "SL001",
        "python",
        HEAD + "def run(data, net):\n    loader = DataLoader(data, batch_size=8)\n    for x in loader:\n"
        '        net(x.to("cuda", non_blocking=True))\n',
        ["- loader = DataLoader(data, batch_size=8)", "+ loader = DataLoader(data, batch_size=8, pin_memory=True)"],
        "unsafe",
    ),
    "what says that it is not pinned is changed": (
        "SL001",
        "python",
        HEAD + "def run(data, net):\n    for x in DataLoader(data, pin_memory=False, batch_size=8):\n"
        '        net(x.to("cuda", non_blocking=True))\n',
        [
            "- for x in DataLoader(data, pin_memory=False, batch_size=8):",
            "+ for x in DataLoader(data, pin_memory=True, batch_size=8):",
        ],
        "unsafe",
    ),
    "an argument gets a line of its own where the others have one": (
        "SL001",
        "python",
        HEAD
        + 'def run(n=9999):\n    host = torch.empty(\n        n,  # n\n        4,\n    )\n    return host.to("cuda", non_blocking=True)\n',
        ["+ pin_memory=True,"],
        "unsafe",
    ),
    "an allocation of several lines keeps its style": (
        "SL001",
        "python",
        HEAD + 'def run(n=1 << 20):\n    host = torch.empty(\n        n,\n        4)\n    return host.to("cuda", non_blocking=True)\n',
        ["- 4)", "+ 4, pin_memory=True)"],
        "unsafe",
    ),
    "an argument in parentheses is no place for another one": (
        "SL001",
        "python",
        HEAD + 'def run(n):\n    host = torch.empty((1 << 20))\n    return host.to("cuda", non_blocking=True)\n',
        ["- host = torch.empty((1 << 20))", "+ host = torch.empty((1 << 20), pin_memory=True)"],
        "unsafe",
    ),
    "columns are characters, not bytes": (
        "SL001",
        "python",
        HEAD + 'def run(größe=1 << 20):\n    maß = "ä€😀"; host = torch.empty(größe)\n    return maß, host.to("cuda", non_blocking=True)\n',
        ['- maß = "ä€😀"; host = torch.empty(größe)', '+ maß = "ä€😀"; host = torch.empty(größe, pin_memory=True)'],
        "unsafe",
    ),
    "a line that begins with another statement is waited before as a whole": (
        "SL005",
        "python",
        HEAD + 'def run(x):\n    host = x.to("cpu", non_blocking=True)\n    n = 1; a = host.numpy()\n    return a, n\n',
        ["+ torch.cuda.current_stream().synchronize()"],
        "safe",
    ),
    "a statement on the line of its `if` is waited for before that": (
        "SL005",
        "python",
        HEAD + 'def run(x, flag):\n    host = x.to("cpu", non_blocking=True)\n    n = 1\n    if flag: return host.numpy()\n    return n\n',
        ["+ copied = torch.cuda.current_stream().record_event()", "+ copied.synchronize()"],
        "safe",
    ),
    "an `elif` is waited for before its `if`": (
        "SL005",
        "python",
        HEAD + 'def run(x, flag):\n    host = x.to("cpu", non_blocking=True)\n    n = 1\n    if flag:\n        return n\n'
        "    elif host.numpy()[0]:\n        return 2\n    return n\n",
        ["+ copied = torch.cuda.current_stream().record_event()", "+ copied.synchronize()"],
        "safe",
    ),
    "a launch gets the stream of the function": (
        "SL002",
        "cuda",
        CPP + "void run(float* x, int n, cudaStream_t stream) {\n  work<<<1, 64>>>(x, n);\n  work<<<2, 64, 0, stream>>>(x, n);\n}\n",
        ["- work<<<1, 64>>>(x, n);", f"+ {LAUNCH}(x, n);"],
        "unsafe",
    ),
    "an algorithm of Thrust gets the stream of the function": (
        "SL002",
        "cuda",
        CPP.replace("\n\n", "\n#include <thrust/execution_policy.h>\n#include <thrust/sort.h>\n\n", 1)
        + "void run(int* keys, float* x, int n, cudaStream_t stream) {\n  "
        + LAUNCH
        + "(x, n);\n"
        "  thrust::sort(thrust::device, keys, keys + n);\n}\n",
        ["- thrust::sort(thrust::device, keys, keys + n);", "+ thrust::sort(thrust::cuda::par.on(stream), keys, keys + n);"],
        "unsafe",
    ),
    "a launch of an extension gets the current stream, and its header": (
        "SL002",
        "cuda",
        "#include <torch/extension.h>\n\n__global__ void work(float* x, int n);\n\nvoid run(torch::Tensor x) {\n"
        "  work<<<1, 64>>>(x.data_ptr<float>(), x.numel());\n}\n",
        [
            "+ #include <ATen/cuda/CUDAContext.h>",
            "- work<<<1, 64>>>(x.data_ptr<float>(), x.numel());",
            "+ work<<<1, 64, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), x.numel());",
        ],
        "unsafe",
    ),
    "so does one that stands in a Python string": (
        "SL002",
        "python",
        'import torch\nfrom torch.utils.cpp_extension import load_inline\n\nSOURCE = r"""\n#include <torch/types.h>\n\n'
        "__global__ void work(float* x, int n);\n\nvoid run(torch::Tensor x) {\n"
        '  work<<<1, 64>>>(x.data_ptr<float>(), x.numel());\n}\n"""\n'
        'module = load_inline("m", cpp_sources="void run(torch::Tensor x);", cuda_sources=SOURCE, functions=["run"])\n',
        [
            "+ #include <ATen/cuda/CUDAContext.h>",
            "- work<<<1, 64>>>(x.data_ptr<float>(), x.numel());",
            "+ work<<<1, 64, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), x.numel());",
        ],
        "unsafe",
    ),
    "so does one whose text is indented": (
        "SL002",
        "python",
        'import torch\nfrom torch.utils.cpp_extension import load_inline\n\nSOURCE = r"""\n    #include <torch/types.h>\n\n'
        "    __global__ void work(float* x, int n);\n\n    void run(torch::Tensor x) {\n"
        '      work<<<1, 64>>>(x.data_ptr<float>(), x.numel());\n    }\n"""\n'
        'module = load_inline("m", cpp_sources="void run(torch::Tensor x);", cuda_sources=SOURCE, functions=["run"])\n',
        [
            "+ #include <ATen/cuda/CUDAContext.h>",
            "- work<<<1, 64>>>(x.data_ptr<float>(), x.numel());",
            "+ work<<<1, 64, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), x.numel());",
        ],
        "unsafe",
    ),
    "a handle gets the stream": (
        "SL002",
        "cuda",
        "#include <cublas_v2.h>\n#include <cuda_runtime.h>\n\n__global__ void work(float* x, int n);\n\n"
        "void run(cublasHandle_t unused, const float* a, float* x, int n, cudaStream_t stream) {\n  cublasHandle_t handle;\n"
        "  cublasCreate(&handle);\n  const float one = 1.0f;\n  " + LAUNCH + "(x, n);\n"
        "  cublasSaxpy(handle, n, &one, a, 1, x, 1);\n  cublasDestroy(handle);\n}\n",
        ["+ cublasSetStream(handle, stream);"],
        "unsafe",
    ),
    "malloc and free become the pinned pair": (
        "SL001",
        "cuda",
        CPP.replace("\n\n", "\n#include <cstdlib>\n\n", 1) + "void run(float* x, int n, cudaStream_t stream) {\n"
        "  float* host = (float*)malloc((1 << 24) * sizeof(float));\n  for (int i = 0; i < 1 << 24; ++i) host[i] = i;\n"
        "  cudaMemcpyAsync(x, host, (1 << 24) * sizeof(float), cudaMemcpyHostToDevice, stream);\n  work<<<1, 64, 0, stream>>>(x, n);\n"
        "  cudaStreamSynchronize(stream);\n  free(host);\n}\n",
        [
            "- float* host = (float*)malloc((1 << 24) * sizeof(float));",
            "+ float* host;",
            "+ cudaMallocHost((void**)&host, (1 << 24) * sizeof(float));",
            "- free(host);",
            "+ cudaFreeHost(host);",
        ],
        "unsafe",
    ),
    "a stream of numba is waited for": (
        "SL005",
        "python",
        "import numpy as np\nfrom numba import cuda\n\n\ndef run(field):\n    lane = cuda.stream()\n"
        "    host = cuda.pinned_array(field.shape, dtype=np.float32)\n    there = cuda.to_device(field, stream=lane)\n"
        "    there.copy_to_host(host, stream=lane)\n    return host.sum()\n",
        ["+ lane.synchronize()"],
        "safe",
    ),
    "the C API lets the GIL go around one statement": (
        "SL009",
        "cuda",
        CAPI + "  cudaDeviceSynchronize();\n  Py_RETURN_NONE;\n}\n" + METHODS,
        ["+ Py_BEGIN_ALLOW_THREADS", "+ Py_END_ALLOW_THREADS"],
        "unsafe",
    ),
    "a variable that the statement makes outlives the macros": (
        "SL009",
        "cuda",
        CAPI + "  cudaError_t status = cudaDeviceSynchronize();\n  return PyLong_FromLong(status);\n}\n" + METHODS,
        [
            "+ cudaError_t status;",
            "+ Py_BEGIN_ALLOW_THREADS",
            "- cudaError_t status = cudaDeviceSynchronize();",
            "+ status = cudaDeviceSynchronize();",
            "+ Py_END_ALLOW_THREADS",
        ],
        "unsafe",
    ),
    "Cython lets the GIL go": (
        "SL009",
        "cython",
        NOGIL
        + "def drain(size_t handle):\n    cdef int status\n    status = cudaStreamSynchronize(<cudaStream_t>handle)\n    return status\n",
        [
            "+ with nogil:",
            "- status = cudaStreamSynchronize(<cudaStream_t>handle)",
            "+ status = cudaStreamSynchronize(<cudaStream_t>handle)",
        ],
        "unsafe",
    ),
    "what is pinned for one copy is not": (
        "SL022",
        "python",
        HEAD + "def run(net, documents):\n    for ids in documents:\n        host = torch.tensor(ids).pin_memory()\n"
        "        net(host.cuda(non_blocking=True))\n",
        [
            "- host = torch.tensor(ids).pin_memory()",
            "+ host = torch.tensor(ids)",
        ],
        "unsafe",
    ),
    "the stream-ordered pair": (
        "SL003",
        "cuda",
        CPP + "void run(int rounds, int n, cudaStream_t stream) {\n  for (int i = 0; i < rounds; ++i) {\n    float* x = nullptr;\n"
        "    cudaMalloc((void**)&x, n * 4);\n    " + LAUNCH + "(x, n);\n    cudaFree(x);\n  }\n}\n",
        [
            "- cudaMalloc((void**)&x, n * 4);",
            "+ cudaMallocAsync((void**)&x, n * 4, stream);",
            "- cudaFree(x);",
            "+ cudaFreeAsync(x, stream);",
        ],
        "unsafe",
    ),
    "pinned memory out of the loop": (
        "SL003",
        "cuda",
        CPP + "void run(float* x, int rounds, size_t n, cudaStream_t stream) {\n  for (int i = 0; i < rounds; ++i) {\n"
        "    float* host;\n    cudaMallocHost((void**)&host, n);\n"
        "    cudaMemcpyAsync(host, x, n, cudaMemcpyDeviceToHost, stream);\n    cudaStreamSynchronize(stream);\n"
        "    cudaFreeHost(host);\n  }\n}\n",
        [
            "+ float* host;",
            "+ cudaMallocHost((void**)&host, n);",
            "- float* host;",
            "- cudaMallocHost((void**)&host, n);",
            "- cudaFreeHost(host);",
            "+ cudaFreeHost(host);",
        ],
        "unsafe",
    ),
    "scratch out of a loop of CuPy": (
        "SL003",
        "python",
        "import cupy as cp\n\ncp.cuda.set_allocator(None)\n\n\ndef run(now, rounds, shape):\n    for _ in range(rounds):\n"
        "        scratch = cp.empty(shape)\n        cp.sin(now, out=scratch)\n        now[...] = scratch\n",
        ["+ scratch = cp.empty(shape)", "- scratch = cp.empty(shape)"],
        "unsafe",
    ),
    "the host waits at once": (
        "SL005",
        "python",
        HEAD + 'def run(x):\n    host = x.cuda().to("cpu", non_blocking=True)\n    return host.numpy()\n',
        ["+ torch.cuda.current_stream().synchronize()"],
        "safe",
    ),
    "the host waits for an event where there is work in between": (
        "SL005",
        "python",
        HEAD + 'def run(x, log):\n    host = x.cuda().to("cpu", non_blocking=True)\n    log("copying")\n    return host.numpy()\n',
        ["+ copied = torch.cuda.current_stream().record_event()", "+ copied.synchronize()"],
        "safe",
    ),
    "a name that is taken is not used": (
        "SL005",
        "python",
        HEAD + 'def run(x, copied):\n    host = x.cuda().to("cpu", non_blocking=True)\n    copied(1)\n    return host.numpy()\n',
        ["+ copied_2 = torch.cuda.current_stream().record_event()", "+ copied_2.synchronize()"],
        "safe",
    ),
    "the host waits before the loop that reads": (
        "SL005",
        "cuda",
        CPP + "float run(const float* x, int n, cudaStream_t stream) {\n  float* host;\n  cudaMallocHost((void**)&host, n * 4);\n"
        "  cudaMemcpyAsync(host, x, n * 4, cudaMemcpyDeviceToHost, stream);\n  float sum = 0;\n"
        "  for (int i = 0; i < n; ++i) {\n    sum += host[i];\n  }\n  return sum;\n}\n",
        ["+ cudaStreamSynchronize(stream);"],
        "safe",
    ),
    "the current stream waits for a side stream": (
        "SL006",
        "python",
        HEAD + "def run():\n    side = torch.cuda.Stream()\n    with torch.cuda.stream(side):\n"
        '        x = torch.rand(9, device="cuda").exp()\n    return x.sum()\n',
        ["+ torch.cuda.current_stream().wait_stream(side)"],
        "safe",
    ),
    "a side stream waits for the current one, before it is entered": (
        "SL006",
        "python",
        HEAD + "def run(batch):\n    x = batch.cuda() * 2\n    side = torch.cuda.Stream()\n    with torch.cuda.stream(side):\n"
        "        return x.mean()\n",
        ["+ side.wait_stream(torch.cuda.current_stream())"],
        "safe",
    ),
    "a stream of CuPy waits for an event": (
        "SL006",
        "python",
        "import cupy as cp\n\n\ndef run(frame):\n    a = cp.cuda.Stream(non_blocking=True)\n    b = cp.cuda.Stream(non_blocking=True)\n"
        "    with a:\n        x = cp.asarray(frame).astype(cp.float32)\n    with b:\n        return x - 1\n",
        ["+ b.wait_event(a.record())"],
        "safe",
    ),
    "a stream that was handed in is known by the `with` around the work": (
        "SL006",
        "python",
        HEAD + "def run(value, lane):\n    with torch.cuda.stream(lane):\n"
        '        x = torch.full((9,), value, device="cuda")\n    return x.sum()\n',
        ["+ torch.cuda.current_stream().wait_stream(lane)"],
        "safe",
    ),
    "a stream of C++ waits for an event": (
        "SL006",
        "cuda",
        CPP + "void run(float* x, int n) {\n  cudaStream_t a, b;\n  cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);\n"
        "  cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);\n  cudaMemsetAsync(x, 0, n * 4, a);\n"
        "  work<<<1, 64, 0, b>>>(x, n);\n}\n",
        [
            "+ cudaEvent_t ready;",
            "+ cudaEventCreateWithFlags(&ready, cudaEventDisableTiming);",
            "+ cudaEventRecord(ready, a);",
            "+ cudaStreamWaitEvent(b, ready, 0);",
            "+ cudaEventDestroy(ready);",
        ],
        "safe",
    ),
    "the allocator is told": (
        "SL007",
        "python",
        HEAD + "class Bucket:\n    def __init__(self):\n        self.lane = torch.cuda.Stream()\n\n    def send(self, grads):\n"
        "        flat = torch.cat([g.flatten() for g in grads])\n        self.lane.wait_stream(torch.cuda.current_stream())\n"
        "        with torch.cuda.stream(self.lane):\n            flat.mul_(0.5)\n        return self.lane.record_event()\n",
        ["+ flat.record_stream(self.lane)"],
        "unsafe",
    ),
    "the allocator is told before the storage goes": (
        "SL039",
        "python",
        HEAD + "class Bucket:\n    def __init__(self):\n        self.lane = torch.cuda.Stream()\n\n    def send(self, grads):\n"
        "        flat = torch.cat([g.flatten() for g in grads])\n        self.lane.wait_stream(torch.cuda.current_stream())\n"
        "        with torch.cuda.stream(self.lane):\n            flat.mul_(0.5)\n        flat.untyped_storage().resize_(0)\n",
        ["+ flat.record_stream(self.lane)"],
        "unsafe",
    ),
    "a staging buffer is waited for": (
        "SL008",
        "python",
        HEAD + "def run(blocks, net):\n    host = torch.empty(1 << 20, pin_memory=True)\n    for block in blocks:\n"
        '        host.copy_(torch.from_numpy(block))\n        net(host.to("cuda", non_blocking=True))\n',
        ["+ copied = torch.cuda.Event()", "+ copied.synchronize()", "+ copied.record()"],
        "safe",
    ),
    "a staging buffer of CuPy is waited for": (
        "SL008",
        "python",
        "import cupy as cp\nimport cupyx\n\n\ndef run(blocks, out, stream):\n    host = cupyx.empty_pinned(1024)\n"
        "    for block in blocks:\n        host[:] = block\n        out.set(host, stream=stream)\n",
        ["+ copied = cp.cuda.Event(disable_timing=True)", "+ copied.synchronize()", "+ copied.record(stream)"],
        "safe",
    ),
    "the GIL is released": (
        "SL009",
        "cuda",
        "#include <cuda_runtime.h>\n#include <pybind11/pybind11.h>\n\nvoid drain() { cudaDeviceSynchronize(); }\n\n"
        'PYBIND11_MODULE(lane, m) {\n  m.def("drain", &drain, "waits");\n}\n',
        [
            '- m.def("drain", &drain, "waits");',
            '+ m.def("drain", &drain, "waits", pybind11::call_guard<pybind11::gil_scoped_release>());',
        ],
        "unsafe",
    ),
    "an event without a clock": (
        "SL023",
        "python",
        HEAD + "def run(side):\n    ready = torch.cuda.Event(enable_timing=True, blocking=True)\n    ready.record()\n"
        "    side.wait_event(ready)\n",
        ["- ready = torch.cuda.Event(enable_timing=True, blocking=True)", "+ ready = torch.cuda.Event(blocking=True)"],
        "safe",
    ),
    "an event of C++ without a clock": (
        "SL023",
        "cuda",
        CPP + "void run(cudaStream_t a, cudaStream_t b) {\n  cudaEvent_t e;\n  cudaEventCreate(&e);\n  cudaEventRecord(e, a);\n"
        "  cudaStreamWaitEvent(b, e, 0);\n}\n",
        ["- cudaEventCreate(&e);", "+ cudaEventCreateWithFlags(&e, cudaEventDisableTiming);"],
        "safe",
    ),
    "a wait of a stream for itself, before its scope": (
        "SL032",
        "python",
        HEAD + "def run(rows, side):\n    rows = rows.cuda() * 2\n    with torch.cuda.stream(side):\n"
        "        side.wait_stream(torch.cuda.current_stream())\n        return rows.sum().item()\n",
        ["+ side.wait_stream(torch.cuda.current_stream())", "- side.wait_stream(torch.cuda.current_stream())"],
        "safe",
    ),
    "a wait of a stream for itself, behind its scope": (
        "SL032",
        "python",
        HEAD + "def run(rows, side):\n    rows = rows.cuda()\n    side.wait_stream(torch.cuda.current_stream())\n"
        "    with torch.cuda.stream(side):\n        rows = rows * 2\n        torch.cuda.current_stream().wait_stream(side)\n"
        "    return rows.sum()\n",
        ["- torch.cuda.current_stream().wait_stream(side)", "+ torch.cuda.current_stream().wait_stream(side)"],
        "safe",
    ),
}


@pytest.mark.parametrize("name", FIXED)
def test_what_is_written(name):
    code, language, text, expected, applicability = FIXED[name]
    after, kinds = mended(text, language, code)
    assert changes(text, after) == expected
    assert kinds == [applicability]


@pytest.mark.parametrize("name", FIXED)
def test_line_ends_are_kept(name):
    code, language, text, *_ = FIXED[name]
    after, _ = mended(text.replace("\n", "\r\n"), language, code)
    assert after == mended(text, language, code)[0].replace("\n", "\r\n")


ALONE = {
    "memory that is not torch's": (
        "SL001",
        "python",
        'import numpy as np\nimport torch\n\ndef f(n):\n    return torch.from_numpy(np.zeros((n, 65536))).to("cuda", non_blocking=True)\n',
    ),
    "a pinned buffer that is written in flight": (
        "SL001",
        "python",
        HEAD + "def run(blocks, net):\n    host = torch.empty(1 << 20)\n    for block in blocks:\n"
        '        host.copy_(torch.from_numpy(block))\n        net(host.to("cuda", non_blocking=True))\n',
    ),
    "several streams": (
        "SL002",
        "cuda",
        CPP + "void run(float* x, int n, cudaStream_t a, cudaStream_t b) {\n  work<<<1, 64, 0, a>>>(x, n);\n"
        "  work<<<1, 64>>>(x, n);\n  work<<<1, 64, 0, b>>>(x, n);\n}\n",
    ),
    "zeros that each round wants anew": (
        "SL003",
        "python",
        "import cupy as cp\n\ncp.cuda.set_allocator(None)\n\n\ndef run(now, rounds, shape):\n    for _ in range(rounds):\n"
        "        total = cp.zeros(shape)\n        cp.add(total, now, out=total)\n        now[...] = total\n",
    ),
    "a handle, and several streams": (
        "SL002",
        "cuda",
        "#include <cublas_v2.h>\n#include <cuda_runtime.h>\n\n__global__ void work(float* x, int n);\n\n"
        "void run(const float* a, float* x, float* y, int n, cudaStream_t stream, cudaStream_t other) {\n  cublasHandle_t handle;\n"
        "  cublasCreate(&handle);\n  const float one = 1.0f;\n  " + LAUNCH + "(y, n);\n"
        "  cublasSaxpy(handle, n, &one, a, 1, x, 1);\n  work<<<1, 64, 0, other>>>(y, n);\n}\n",
    ),
    "a vector has no pinned pair": (
        "SL001",
        "cuda",
        CPP.replace("\n\n", "\n#include <vector>\n\n", 1) + "void run(float* x, int n, cudaStream_t stream) {\n"
        "  std::vector<float> host(1 << 24, 1.0f);\n"
        "  cudaMemcpyAsync(x, host.data(), (1 << 24) * sizeof(float), cudaMemcpyHostToDevice, stream);\n"
        "  work<<<1, 64, 0, stream>>>(x, n);\n  cudaStreamSynchronize(stream);\n}\n",
    ),
    "memory that is freed elsewhere": (
        "SL001",
        "cuda",
        CPP.replace("\n\n", "\n#include <cstdlib>\n\n", 1) + "float* run(float* x, int n, cudaStream_t stream) {\n"
        "  float* host = (float*)malloc((1 << 24) * sizeof(float));\n  host[0] = 1;\n"
        "  cudaMemcpyAsync(x, host, (1 << 24) * sizeof(float), cudaMemcpyHostToDevice, stream);\n  work<<<1, 64, 0, stream>>>(x, n);\n"
        "  cudaStreamSynchronize(stream);\n  return host;\n}\n",
    ),
    "a statement of the C API that makes an object": (
        "SL009",
        "cuda",
        CAPI + "  return PyLong_FromLong(cudaDeviceSynchronize());\n}\n" + METHODS,
    ),
    "a result that is an object in Cython": (
        "SL009",
        "cython",
        NOGIL + "def drain():\n    status = cudaDeviceSynchronize()\n    return status\n",
    ),
    "an argument that is an object in Cython": (
        "SL009",
        "cython",
        NOGIL + "def drain(handle):\n    cudaStreamSynchronize(<cudaStream_t>handle)\n",
    ),
    "what Cython may only call with the GIL": (
        "SL009",
        "cython",
        NOGIL.replace(" nogil:", ":") + "def drain():\n    cudaDeviceSynchronize()\n",
    ),
    "a binding that touches Python's objects": (
        "SL009",
        "cuda",
        "#include <cuda_runtime.h>\n#include <pybind11/pybind11.h>\n\nvoid drain(pybind11::list kept) {\n  cudaDeviceSynchronize();\n"
        '  kept.append(1);\n}\n\nPYBIND11_MODULE(lane, m) {\n  m.def("drain", &drain);\n}\n',
    ),
}


@pytest.mark.parametrize("name", ALONE)
def test_what_is_left_alone(name):
    code, language, text = ALONE[name]
    assert [finding.code for finding in lint(text, language, [code]).findings] == [code]
    assert mended(text, language, code) == (text, [])


# The documents of the rules ---------------------------------------------------------------------------------------------------

# How many findings of a rule's document have a fix, at least.
OFFERED = {
    "SL001": 14,
    "SL002": 14,
    "SL003": 4,
    "SL005": 35,
    "SL006": 6,
    "SL007": 12,
    "SL008": 6,
    "SL009": 16,
    "SL022": 2,
    "SL023": 4,
    "SL032": 4,
    "SL039": 8,
}


@functools.cache
def blocks(code):
    text = (DOCUMENTS / f"{code.lower()}.md").read_text(encoding="utf-8")
    return tuple((fence["language"], fence["body"]) for fence in FENCE.finditer(text))


def test_each_fixer_belongs_to_a_rule():
    assert {code for code in all_rules() if fixer_of(code) is not None} == set(OFFERED)


@pytest.mark.parametrize("code", OFFERED)
def test_every_fix_that_is_offered_holds(code):
    count = 0
    for language, body in blocks(code):
        count += len(mended(body, language, code)[1])
    assert count >= OFFERED[code]


DEEP = 'import torch\n\ny = torch.empty(1 << 20).to("cuda", non_blocking=True)\n\ndef f(a):\n    if a:\n        return y\n'
DEEP += "    elif a == 1:\n        pass\n" * 900


def test_code_as_deep_as_is_read_has_its_fix():
    report = lint(DEEP, codes=["SL001"], fixes=True)
    assert [(finding.code, finding.fix is not None) for finding in report.findings] == [("SL001", True)]
    assert report.problems == []


def test_a_fault_of_a_fix_costs_the_fixes_of_its_file(monkeypatch):
    def broken(finding, code):
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr("streamlint.fix.sl001_unpinned_non_blocking.fixes", broken)
    text = 'import torch\n\ny = torch.empty(1 << 20).to("cuda", non_blocking=True)\n'
    report = lint(text, codes=["SL001"], fixes=True)
    assert [(finding.code, finding.fix) for finding in report.findings] == [("SL001", None)]
    (problem,) = report.problems
    assert problem.file == "a.py"
    assert problem.message.startswith("its fixes are left out: internal error: ZeroDivisionError at test_fixes.py:")
