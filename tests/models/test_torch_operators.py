"""The rows that are made of PyTorch's own tables: those of a small table, and those that are shipped."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from streamlint.models import Models, builtin, load_file
from streamlint.models.vocabulary import Selector
from streamlint.support.shipped import MODELS

FOLDER = Path(__file__).parents[2] / "benchmarks"
needs_benchmarks = pytest.mark.skipif(not FOLDER.is_dir(), reason="benchmarks are not in the source distribution")

TABLE = """\
# A comment.
- func: topk(Tensor self, SymInt k, int dim=-1, bool largest=True) -> (Tensor values, Tensor indices)
  variants: method, function

- func: topk.values(Tensor self, SymInt k, int dim=-1, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)

- func: max(Tensor self) -> Tensor
  variants: function, method

- func: max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
  variants: function, method

- func: max.other(Tensor self, Tensor other) -> Tensor
  variants: function, method

- func: relu_(Tensor(a!) self) -> Tensor(a!)
  variants: function, method

- func: detach_(Tensor(a!) self) -> Tensor(a!)
  variants: function, method
  tags: inplace_view

- func: _foreach_add_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()
  variants: function

- func: unsafe_split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]
  variants: function

- func: masked_select(Tensor self, Tensor mask) -> Tensor
  variants: function
  tags: dynamic_output_shape

- func: clamp_min(Tensor self, Scalar min) -> Tensor
  variants: function

- func: clamp_min.Tensor(Tensor self, Tensor min) -> Tensor
  variants: function

- func: dist(Tensor self, Tensor other, Scalar p=2) -> Tensor
  variants: function

- func: dropout(Tensor input, float p, bool train) -> Tensor
  tags: nondeterministic_seeded

- func: linalg_diagonal(Tensor(a) A, *, int offset=0) -> Tensor(a)
  python_module: linalg
  variants: function

- func: softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor
  python_module: nn
"""
FUNCTIONS = """\
def topk(input: Tensor, k: int) -> torch.return_types.topk: ...
def relu_(input: Tensor) -> Tensor: ...
def detach_(input: Tensor) -> Tensor: ...
def _foreach_add_(self: list[Tensor], scalar: Number) -> None: ...
def unsafe_split_with_sizes(input: Tensor, split_sizes: list[int]) -> tuple[Tensor, ...]: ...
def masked_select(input: Tensor, mask: Tensor) -> Tensor: ...
def clamp_min(input: Tensor, min: Number) -> Tensor: ...
def dist(input: Tensor, other: Tensor, p: Number = 2) -> Tensor: ...
def dropout(input: Tensor, p: float, train: bool) -> Tensor: ...
def get_num_threads() -> _int: ...
"""
METHODS = """\
class TensorBase:
    def max(self) -> Tensor: ...
    def relu_(self) -> Tensor: ...
    def is_contiguous(self) -> _bool: ...
"""
NN = "def softplus(input: Tensor, beta: Number = 1, threshold: Number = 20) -> Tensor: ...\n"
FUNCTIONAL = """\
from torch._C._nn import softplus as softplus
from torch import relu_ as relu_

def tanh(input: Tensor) -> Tensor: ...
"""
PATTERNS = {
    "library": "torch",
    "type": [{"names": "torch.Tensor", "kind": "buffer"}],
    "call": [
        {"names": ["torch.Tensor.*", "torch.*"], "effect": "compute", "result": "buffer"},
        {"names": "torch.Tensor.*_", "effect": "compute", "writes": ["self"], "result": "self"},
        {"names": "torch.Tensor.is_contiguous", "effect": "none", "result": "scalar"},
    ],
}
ROWS = """
[[type]]
names = ["torch.return_types.max", "torch.return_types.topk"]
kind = "buffer"
base = "torch.Tensor"
fields = ["values", "indices"]

[[call]]
names = "torch.Tensor.max"
effect = "compute"
result = "sequence"
several = "0:dim"
type = "torch.return_types.max"

[[call]]
names = "torch._foreach_add_"
effect = "compute"
writes = ["0:self"]
scalars = ["1:scalar"]
result = "none"

[[call]]
names = "torch.detach_"
effect = "same"
of = "0:input"

[[call]]
names = "torch.dist"
effect = "compute"
scalars = ["2:p"]
result = "buffer"
type = "torch.Tensor"

[[call]]
names = "torch.dropout"
effect = "compute"
result = "buffer"
random = true
type = "torch.Tensor"

[[call]]
names = "torch.get_num_threads"
effect = "none"
result = "scalar"

[[call]]
names = "torch.linalg.diagonal"
effect = "view"
of = "0:A"
part = "some"

[[call]]
names = "torch.masked_select"
effect = "compute"
result = "buffer"
waits = true
type = "torch.Tensor"

[[call]]
names = ["torch.nn.functional.relu_", "torch.relu_"]
effect = "compute"
out = ["0:input"]
result = "buffer"
type = "torch.Tensor"

[[call]]
names = "torch.nn.functional.softplus"
effect = "compute"
scalars = ["1:beta", "2:threshold"]
result = "buffer"
type = "torch.Tensor"

[[call]]
names = "torch.topk"
effect = "compute"
out = [":out"]
result = "sequence"
type = "torch.return_types.max"

[[call]]
names = "torch.unsafe_split_with_sizes"
effect = "view"
of = "0:input"
part = "elements"
"""


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("torch_operators"), importlib.import_module("torch_tables")


@needs_benchmarks
def test_the_rows_of_a_small_table(scripts: tuple[Any, Any], tmp_path: Path) -> None:
    script, tables = scripts
    for path, text in zip(
        (tables.TABLE, *tables.STUBS.values(), tables.FUNCTIONAL), (TABLE, FUNCTIONS, METHODS, NN, FUNCTIONAL), strict=True
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    found = tables.public(tables.read(tmp_path))
    models = Models()
    models.add(PATTERNS, "patterns.toml")
    text = script.rows(found, models)
    assert text == script.HEAD + ROWS
    models.add(script.read_rows(text), "torch_operators.toml")
    assert [(name, kind) for name, facts in found.items() for kind in script.disagreements(models, name, facts)] == []


def test_rows_that_are_written_by_hand_come_first() -> None:
    table = {"library": "torch", "fallback": True, "call": [{"names": ["a.f", "a.g", "torch.Tensor.h"], "effect": "touch"}]}
    for order in (1, -1):
        models = Models()
        for data in (table, {"library": "torch", "call": [{"names": ["a.f", "a.*", "torch.Tensor.*"], "effect": "unknown"}]})[::order]:
            models.add(data, "rows.toml")
        effects = [row.effect for name in ("a.f", "a.g", "a.h") if (row := models.call(name)) is not None]
        assert effects == ["unknown", "touch", "unknown"]
        method = models.method("torch.Tensor", "h")
        assert method is not None
        assert method.effect == "touch"


def test_the_shipped_rows() -> None:
    data = load_file(MODELS / "torch_operators.toml")
    assert data["fallback"] is True
    models = builtin("python")
    assert not models.calls.keys() & models.operators.keys()
    assert models.part_type("torch.return_types.topk", "values") == "torch.Tensor"
    assert models.part_type("torch.return_types.topk", "count") is None
    relu = models.call("torch.relu_")
    assert relu is not None
    assert relu.get("out") == (Selector("argument", 0, "input"),)
    largest = models.method("torch.nn.Parameter", "max")
    assert largest is not None
    assert models.part_type(str(largest.get("type"))) == "torch.Tensor"
