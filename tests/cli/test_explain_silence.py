"""``check --explain-silence``: for each way in which a line can be silent, a program and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamlint import cli

TORCH = "import torch\n\n\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def ask(capsys, row, *words, path="a.py"):
    code = cli.main(["check", ".", "--explain-silence", f"{path}:{row}", *words])
    out, err = capsys.readouterr()
    assert (code, err) == (0, ""), err
    return out


def said(capsys, text, needle, *words, path="a.py"):
    """The answer for the line that holds the needle, as text."""
    Path(path).write_text(text)
    row = next(row for row, line in enumerate(text.split("\n"), 1) if needle in line)
    return ask(capsys, row, *words, path=path)


def test_a_file_without_a_trigger(capsys):
    assert "no trigger word of a rule's library occurs" in said(capsys, "x = 1\n", "x = 1")


SEAM = {
    "kernel.cu": """#include <cuda_runtime.h>
#include "wait.h"
void wait_all(cudaStream_t s) { cudaStreamSynchronize(s); }
""",
    "wait.h": "typedef struct CUstream_st* cudaStream_t;\nvoid wait_all(cudaStream_t s);\n",
    "a.pyx": """cdef extern from "wait.h":
    void wait_all(void* s)


def finish(size_t s):
    wait_all(<void*> s)
""",
}


def test_a_file_that_is_read_for_others_is_run(capsys):
    """Cython that names no CUDA, beside C++ that does, can hold findings."""
    for name, text in SEAM.items():
        Path(name).write_text(text)
    cli.main(["check", ".", "--output-format", "json", "--no-cache", "--exit-zero", "--select", "SL009"])
    (finding,) = json.loads(capsys.readouterr().out)
    row = finding["location"]["row"]
    assert finding["filename"].endswith("a.pyx")
    assert "this line is not silent" in ask(capsys, row, "--select", "SL009", path="a.pyx")


def test_a_file_that_is_excluded(capsys):
    Path("tests").mkdir()
    answer = said(capsys, TORCH + "x = torch.zeros(2).cuda()\n", "zeros", path="tests/a.py")
    assert "the file is excluded" in answer


def test_a_file_beside_the_paths(capsys):
    Path("lib").mkdir()
    Path("b.py").write_text(TORCH)
    assert cli.main(["check", "lib", "--explain-silence", "b.py:1"]) == 0
    assert "outside of the paths" in capsys.readouterr().out


def test_a_file_that_does_not_parse(capsys):
    assert "could not be parsed" in said(capsys, TORCH + "def f(:\n    torch.cuda.synchronize()\n", "synchronize")


UPLOAD = "def load(batch):\n    return batch.to('cuda', non_blocking=True){comment}\n"


def test_memory_of_a_parameter_is_unknown(capsys):
    answer = said(capsys, TORCH + UPLOAD.format(comment=""), "return batch")
    assert "line 5 is a copy to the device, asynchronous (torch.Tensor.to)" in answer
    assert "SL001: needs pageable memory; the host memory of the copy in line 5 is unknown (parameter `batch`)" in answer


PAGEABLE = "def load():\n    batch = torch.zeros(4096, 4096)\n    return batch.to('cuda', non_blocking=True){comment}\n"


def test_a_line_that_is_not_silent(capsys):
    assert "SL001: this line is not silent: asynchronous copy from pageable memory" in said(
        capsys, TORCH + PAGEABLE.format(comment=""), "return"
    )


def test_a_comment_hides_it(capsys):
    text = TORCH + PAGEABLE.format(comment="  # streamlint: ignore[SL001] once")
    assert "SL001: suppressed by the comment in line 6" in said(capsys, text, "return")


def test_a_rule_that_was_not_selected(capsys):
    text = TORCH + PAGEABLE.format(comment="")
    assert "SL001: the rule is not among those that were selected" in said(capsys, text, "return", "--ignore", "SL001")
    assert "SL001: a per-file ignore" in said(capsys, text, "return", "--per-file-ignores", "*.py:SL001")


def test_a_rule_in_preview(capsys):
    text = TORCH + (
        "import torch.distributed as dist\n\n\ndef log(loss):\n    total = loss.detach().clone().cuda()\n"
        "    work = dist.all_reduce(total, async_op=True)\n    work.wait()\n    return total.item()\n"
    )
    assert "SL011: the rule is in preview: pass --preview" in said(capsys, text, "return total")


def test_a_rule_that_is_off(capsys):
    loop = "def turn(done):\n    while not done.query():\n        pass\n"
    text = f"{TORCH}{loop}\n\ndef go():\n    event = torch.cuda.Event()\n    event.record()\n    turn(event)\n"
    assert "SL024: the rule is off by default: pass --extend-select SL024" in said(capsys, text, "while not")


READ = TORCH + (
    "def fetch(x: torch.Tensor, foo=print):\n"
    "    out = torch.empty(10, pin_memory=True)\n"
    "    side = torch.cuda.Stream()\n"
    "    y = x.cuda()\n"
    "    side.wait_stream(torch.cuda.current_stream())\n"
    "    with torch.cuda.stream(side):\n"
    "        out.copy_(y, non_blocking=True)\n"
    "    {order}\n"
    "    return out.numpy().sum()\n"
)
ORDERED = "SL005: the operation in line 12 is ordered after that in line 10: "


def test_a_synchronization_orders_it(capsys):
    answer = said(capsys, READ.format(order="side.synchronize()"), "return out")
    assert ORDERED + "`side.synchronize()` in line 11 makes the host wait for the stream made in line 6" in answer


def test_the_copys_own_line_tells_the_same(capsys):
    assert ORDERED in said(capsys, READ.format(order="side.synchronize()"), "out.copy_")


def test_a_call_into_the_dark_is_named(capsys):
    text = TORCH + "def step(opt):\n    torch.cuda.synchronize()\n    opt.begin_round()\n"
    assert "line 6 calls `opt.begin_round`, whose body is unknown" in said(capsys, text, "begin_round")


def test_a_call_of_a_library_is_named(capsys):
    text = TORCH + "def step(opt):\n    torch.cuda.synchronize()\n    opt.zero_grad()\n"
    assert "line 6 calls `torch.nn.Module.zero_grad`" in said(capsys, text, "zero_grad")


def test_nothing_reads_what_a_copy_fills(capsys):
    text = TORCH + "def fetch(x: torch.Tensor):\n    y = x.cuda()\n    y.to('cpu', non_blocking=True)\n"
    assert "the copy in line 6: nothing in view uses the memory behind it" in said(capsys, text, "non_blocking")


def test_nothing_is_in_flight_at_the_start(capsys):
    text = TORCH + (
        "class Out:\n"
        "    def __init__(self):\n        self.out = torch.empty(8, pin_memory=True)\n\n"
        "    def fill(self, x: torch.Tensor):\n        self.out.copy_(x.cuda(), non_blocking=True)\n\n"
        "    def show(self):\n        return self.out.numpy().sum()\n"
    )
    answer = said(capsys, text, "return self")
    assert "the read in line 12: no path in view leads from an asynchronous copy into this memory to it" in answer


def test_two_orders_are_both_named(capsys):
    answer = said(capsys, READ.format(order="side.synchronize(); torch.cuda.synchronize()"), "return out")
    assert "makes the host wait for the stream made in line 6" in answer
    assert "makes the host wait for the whole device" in answer


def test_an_opaque_call_may_wait(capsys):
    answer = said(capsys, READ.format(order="foo(side)"), "return out")
    assert ORDERED + "`foo(side)` in line 11 is out of view, receives what would tell that the work is done, and may wait for it" in answer


def test_a_function_of_a_module_out_of_view_may_wait(capsys):
    answer = said(capsys, "import acme\n" + READ.format(order="acme.finished(side)"), "return out")
    assert "`acme.finished(side)` in line 12 is out of view, receives what would tell that the work is done" in answer


def test_a_wait_orders_streams(capsys):
    text = TORCH + (
        "def split(x: torch.Tensor):\n"
        "    y = x.cuda() + 1\n"
        "    side = torch.cuda.Stream()\n"
        "    side.wait_stream(torch.cuda.current_stream())\n"
        "    with torch.cuda.stream(side):\n"
        "        return y * 2\n"
    )
    answer = said(capsys, text, "return y")
    assert "SL006: the operation in line 9 is ordered after that in line 5: `side.wait_stream" in answer


def test_a_copy_that_waits_for_itself(capsys):
    text = TORCH + "def fetch(x: torch.Tensor):\n    y = x.cuda()\n    out = y.to('cpu')\n    return out.numpy().sum()\n"
    assert "SL005: needs an asynchronous copy; that in line 6 is synchronous: the host waits for it" in said(capsys, text, "return out")


def test_the_default_streams_barrier(capsys):
    text = (
        "#include <cuda_runtime.h>\n"
        "__global__ void fill(float *p);\n"
        "void work(size_t n) {\n"
        "    float *p;\n"
        "    cudaMalloc(&p, n);\n"
        "    cudaStream_t s;\n"
        "    cudaStreamCreate(&s);\n"
        "    fill<<<1, 32, 0, s>>>(p);\n"
        "    cudaMemsetAsync(p, 0, n, 0);\n"
        "}\n"
    )
    answer = said(capsys, text, "MemsetAsync", path="a.cu")
    by = "`cudaMemsetAsync(p, 0, n, 0);` in line 9 is on the default stream"
    assert f"SL006: the operation in line 9 is ordered after that in line 8: {by}" in answer


LOOP = TORCH + (
    "def train(model, opt, data):\n    for x in data:\n        loss = model(x.cuda()).sum()\n        loss.backward()\n        opt.step()\n"
)


def test_a_read_that_is_not_met_in_each_round(capsys):
    text = LOOP.replace("for x in data", "for i, x in enumerate(data)") + "        if i % 100 == 0:\n            print(loss.item())\n"
    assert "SL020: `print(loss.item())` may make the host wait, but it is not met in each round" in said(capsys, text, "print")


def test_a_read_behind_the_training_loop(capsys):
    assert "it stands in no loop that trains" in said(capsys, LOOP + "    print(loss.item())\n", "print")


def test_a_read_in_no_training_loop(capsys):
    text = TORCH + "def show(rows):\n    for row in rows:\n        print(row.cuda().item())\n"
    assert "it stands in no loop that trains" in said(capsys, text, "print")


def test_a_branch_tests_is_cuda(capsys):
    text = TORCH + (
        "def load(x: torch.Tensor, y):\n    if x.is_cuda:\n        y = torch.zeros(8).to(x.device, non_blocking=True)\n    return y.sum()\n"
    )
    assert "the branch in line 5 tests `if x.is_cuda:`" in said(capsys, text, "return y")


def test_a_line_that_no_path_reaches(capsys):
    text = TORCH + "def load(x):\n    if False:\n        return x.cuda(non_blocking=True)\n    return x.cuda()\n"
    answer = said(capsys, text, "non_blocking")
    assert "no path comes here: the branch in line 5 (`if False:`) goes the other way" in answer


def test_code_behind_a_return(capsys):
    text = TORCH + "def load(x):\n    return x.cuda()\n    x = torch.zeros(2)\n"
    assert "no path comes here: the last line that is run before it is 5" in said(capsys, text, "zeros")


def test_nothing_of_interest(capsys):
    text = TORCH + "def load(x):\n    n = 3 + 4\n    return x.cuda(), n\n"
    assert "nothing at this line is an operation that a rule looks at" in said(capsys, text, "3 + 4")


def test_an_import(capsys):
    assert "nothing at this line is an operation" in said(capsys, TORCH + "def load(x):\n    return x.cuda()\n", "import torch")


def test_one_finding_stands_for_several_reads(capsys):
    text = LOOP + "        a = loss.item()\n        b = loss.item()\n        print(a, b)\n"
    assert "SL020: the finding in line 9 names this line in its trail" in said(capsys, text, "b = loss")


def test_json(capsys):
    Path("a.py").write_text(TORCH + UPLOAD.format(comment=""))
    answer = json.loads(ask(capsys, 5, "--output-format", "json"))
    assert (answer["filename"], answer["row"], answer["source"]) == ("a.py", 5, "return batch.to('cuda', non_blocking=True)")
    (reason,) = (reason for reason in answer["reasons"] if reason["code"] == "SL001")
    assert reason == {
        "kind": "memory",
        "code": "SL001",
        "message": "needs pageable memory; the host memory of the copy in line 5 is unknown (parameter `batch`)",
        "lines": [5],
    }


@pytest.mark.parametrize("place", ["a.py", "a.py:x", "a.py:0", "a.py:99", "b.py:1"])
def test_a_place_that_is_none(capsys, place):
    Path("a.py").write_text(TORCH)
    assert cli.main(["check", ".", "--explain-silence", place]) == 2
    assert place.partition(":")[0] in capsys.readouterr().err


BINDINGS = """#include <cuda_runtime.h>
#include <pybind11/pybind11.h>
namespace py = pybind11;

void finish() {
  py::gil_scoped_release quiet;
  cudaDeviceSynchronize();
}
void drain() { cudaDeviceSynchronize(); }
int devices() { return 1; }

PYBIND11_MODULE(_x, m) {
  m.def("finish", &finish);
  m.def("drain", &drain, py::call_guard<py::gil_scoped_release>());
  m.def("devices", &devices);
}
"""


def test_the_gil_is_let_go_in_the_body(capsys):
    answer = said(capsys, BINDINGS, '"finish"', path="a.cpp")
    assert "SL009: the GIL is not held at the wait of the host (line 7)" in answer


def test_the_gil_is_let_go_by_the_binding(capsys):
    assert "SL009: the binding lets the GIL go around what it calls" in said(capsys, BINDINGS, '"drain"', path="a.cpp")


def test_a_binding_that_waits_for_nothing(capsys):
    assert "SL009: nothing that this binding is known to call may wait" in said(capsys, BINDINGS, '"devices"', path="a.cpp")


def test_a_read_in_cpp_that_the_round_needs(capsys):
    text = (
        "#include <torch/torch.h>\n\n"
        "void fit(torch::nn::Linear net, torch::optim::Adam& adam, const std::vector<torch::Tensor>& rows) {\n"
        "    for (const auto& row : rows) {\n"
        "        auto loss = net->forward(row).mean();\n"
        "        loss.backward();\n"
        "        adam.step();\n"
        "        if (loss.item<float>() > 9) break;\n"
        "    }\n"
        "}\n"
    )
    assert "may make the host wait, but the round needs the value" in said(capsys, text, "item", path="fit.cpp")


LOOPS = """import torch


@torch.no_grad()
def evaluate(model, batches):
    total = 0.0
    for images, labels in batches:
        scores = model(images.to("cuda"))
        total += (scores.argmax(1) == labels.to("cuda")).sum().item()
    return total


def fit(model, batches, optimizer):
    for images, labels in batches:
        loss = torch.nn.functional.cross_entropy(model(images.to("cuda")), labels.to("cuda"))
        worst = loss.item()
        loss.backward()
        if worst > 9:
            break
        optimizer.step()
"""
ARRAYS = """import cupy


def levels(images):
    found = []
    for image in images:
        spectrum = cupy.abs(cupy.fft.rfft2(cupy.asarray(image)))
        low = spectrum.min().item()
        high = spectrum.max().item()
        found.append((low, high))
    return found
"""


def test_a_value_that_the_round_needs_says_where(capsys):
    assert "SL020: `worst = loss.item()` may make the host wait, but the round needs the value: line " in said(capsys, LOOPS, "worst = ")


def test_a_loop_that_evaluates_is_none_with_all_loops_either(capsys):
    answer = said(capsys, LOOPS, "total +=")
    assert 'but it stands in no loop that trains, and with hidden-sync = "all-loops" the round needs the value' in answer


def test_other_reads_of_a_round_are_asked_for_by_all_loops(capsys):
    """The finding stands at one read of a loop. The other one is no less looked at."""
    for needle in ("low =", "high ="):
        assert '`hidden-sync-in-hot-loop` looks at this loop only with hidden-sync = "all-loops"' in said(capsys, ARRAYS, needle)
