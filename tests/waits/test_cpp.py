"""Waits of C++: the Python and the C++ of a run are told apart, and what no round concerns is not lowered."""

from __future__ import annotations

from functools import partial

from streamlint import models
from streamlint.config.options import Options, Source
from streamlint.facts.files.program import Program, SourceFile
from streamlint.frontends import cuda
from streamlint.ir import ModuleIR
from streamlint.ir import opcodes as op
from streamlint.ir.modules import lower
from streamlint.runner.engine import analyse
from streamlint.waits.judge import HotWaits

TRAIN = """
#include <torch/torch.h>

void fit(torch::nn::Linear net, torch::optim::Adam& adam, const std::vector<torch::Tensor>& rows) {
  double sum = 0;
  for (const auto& row : rows) {
    adam.zero_grad();
    auto loss = net->forward(row).mean();
    loss.backward();
    adam.step();
    sum += loss.item<double>();
  }
}
"""
STEPS = """
__global__ void advance(float* field);

void simulate(float* field, int steps) {
  for (int step = 0; step < steps; ++step) {
    advance<<<1, 64>>>(field);
    cudaDeviceSynchronize();
  }
}
"""
OTHER = "void scale(float* x, int n) { for (int i = 0; i < n; ++i) x[i] *= 2; }\n"
PYTHON = """
import fast
import torch


def fit(model, loader, optimizer):
    model.cuda()
    total = 0.0
    for x in loader:
        loss = fast.mean(model(x.cuda()))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total += loss.item()
"""
BOUND = """
#include <torch/extension.h>

torch::Tensor mean(torch::Tensor x) { return torch::zeros({1}); }
PYBIND11_MODULE(fast, m) { m.def("mean", &mean); }
"""


def _lowered(path: str, text: str) -> ModuleIR:
    return lower(cuda.lower(path, text))


def waits_of(texts: dict[str, str], all_loops: bool = False) -> HotWaits:
    program = Program([SourceFile(path, "cuda", text, partial(_lowered, path, text)) for path, text in texts.items()])
    return HotWaits(program, all_loops, models.builtin("cuda"))


def told(sources: list[Source], **options: str) -> list[tuple[str, int, str]]:
    wanted = Options(codes=frozenset({"SL020", "SL021"}), **options)  # type: ignore[arg-type]
    return [(one.span.file, one.span.row, one.code) for one in analyse(sources, wanted).findings]


def test_only_files_that_a_round_concerns_are_lowered() -> None:
    waits = waits_of({"fit.cpp": TRAIN, "steps.cu": STEPS, "other.cpp": OTHER})
    assert [hazard.wait.what for hazard in waits.hazards()] == ["read"]
    assert waits.facts.program.lowered == 1


def test_with_all_loops_those_that_wait_for_the_device_too() -> None:
    waits = waits_of({"fit.cpp": TRAIN, "steps.cu": STEPS, "other.cpp": OTHER}, all_loops=True)
    assert sorted(hazard.wait.what for hazard in waits.hazards()) == ["device", "read"]
    assert waits.facts.program.lowered == 2


def test_no_file_is_lowered_where_nothing_trains() -> None:
    waits = waits_of({"steps.cu": STEPS, "other.cpp": OTHER})
    assert (list(waits.hazards()), waits.facts.program.lowered) == ([], 0)


def test_what_is_told_of_python_does_not_hang_on_cpp_beside_it() -> None:
    alone = told([Source("fit.py", PYTHON, "python")])
    beside = told([Source("fit.py", PYTHON, "python"), Source("fast.cpp", BOUND, "cuda"), Source("fit.cpp", TRAIN, "cuda")])
    assert alone == [("fit.py", 14, "SL020")]
    assert beside == [("fit.cpp", 11, "SL020"), ("fit.py", 14, "SL020")]


def test_waits_that_are_passed_over_say_why() -> None:
    waits = waits_of({"fit.cpp": TRAIN.replace("sum += loss.item<double>();", "if (loss.item<double>() > 9) break;")})
    assert [(wait.name, why.partition(":")[0]) for wait, why in waits.passed_over("fit.cpp")] == [
        ("at::Tensor::item", "the round needs the value")
    ]


def test_a_list_in_braces_makes_an_object() -> None:
    text = "struct Pair { int a; float* b; };\nPair make(float* x) { Pair p = {1, x}; int n[2] = {3, 4}; return {n[0], p.b}; }\n"
    made = _lowered("pair.cu", text)
    code = next(made.code(number) for number, one in enumerate(made.outline) if one[0] == "make")
    kinds = [made.constants[one[3]][0] for one in code.instructions() if one[0] == op.CONSTRUCT]
    assert kinds == ["Pair", "Pair"]
