"""The rows that make the host wait against what was measured on a GPU: ``benchmarks/operator_waits.json``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamlint.models import Row, builtin

MEASURED: dict[str, Any] = json.loads((Path(__file__).parents[2] / "benchmarks" / "operator_waits.json").read_text(encoding="utf-8"))
CONDITIONS = (
    "waits", "waits_without", "waits_on", "waits_if", "checks", "uploads", "scalars", "compares", "data", "asynchronous", "host_access",
)  # fmt: skip
"""Keys of which one says that the host waits, for all arguments or for some."""

# Names that always waited where they were called, and have no row that says so.
LEFT = {
    "torch.Tensor.__iter__": "a part is a view",
    "range": "the language: what it counts to is read",
    "torch.autograd.set_detect_anomaly": "a mode for debugging: each backward pass looks at its gradients",
    "torch.nested.to_padded_tensor": "of a type of tensor that is not followed",
    "torch.nn.utils.parametrizations.orthogonal": "the module that it changes waits, by matrix_exp",
    "torch.nn.init.sparse_": "once, before training",
    **dict.fromkeys(
        ("torch.optim.swa_utils.AveragedModel.update_parameters", "torch.optim.Adafactor.step", "torch.optim.SparseAdam.step"),
        "nothing in a call of them shows a tensor of the device",
    ),
    "torch.optim.LBFGS.step": "told by what its closure gives",
    "D.TransformedDistribution.log_prob": "told where the distribution inside is made",
    "D.Independent.log_prob": "told where the distribution inside is made",
    **dict.fromkeys(
        (
            "D.LogNormal.sample", "D.HalfNormal.sample", "D.VonMises.sample", "D.Wishart.sample", "D.Wishart.rsample", "D.Wishart.entropy",
            "D.Wishart.expand", "D.Multinomial.entropy", "D.Binomial.entropy", "D.StudentT.variance", "D.RelaxedBernoulli.log_prob",
            "D.OneHotCategorical.log_prob", "D.LogisticNormal",
        ),
        "rare; told where the distribution is made",
    ),
}  # fmt: skip


def row_of(name: str) -> Row | None:
    models = builtin("python")
    return models.call(name.replace("D.", "torch.distributions.", 1) if name.startswith("D.") else name)


def says(row: Row | None) -> bool:
    """Whether a row says that the host waits, if only for some arguments."""
    return row is not None and (row.effect == "read" or any(row.get(key) is not None for key in CONDITIONS))


def operators(kind: str) -> Iterator[tuple[str, str]]:
    for operator, one in MEASURED[f"operators, {kind}"].items():
        yield from ((operator, name) for name in one["names"])


@pytest.mark.parametrize(("operator", "name"), [*operators("always")])
def test_an_operator_that_always_waits_has_a_row(operator: str, name: str) -> None:
    assert says(row_of(name)), (operator, name)


@pytest.mark.parametrize("name", [name for name, kinds in MEASURED["calls"].items() if "not" not in kinds])
def test_a_call_that_always_waits_has_a_row(name: str) -> None:
    called = builtin("python").calls.get(f"{name}.__call__") or row_of(name)
    assert says(called) or name in LEFT, name


def test_nothing_is_left_that_has_a_row() -> None:
    assert not [name for name in LEFT if name in MEASURED["calls"] and says(row_of(name))]


def test_what_does_not_always_wait_has_no_row_that_says_so() -> None:
    some = [name for name, kinds in MEASURED["calls"].items() if "not" in kinds]
    some += [name for operator, name in operators("some") if not operator.startswith(("equal", "linalg.lu"))]
    never = [f"{head}.{name}" for name in MEASURED["operators, never"] for head in ("torch", "torch.Tensor")]
    for name in [*some, *never, *MEASURED["calls that never wait"]]:
        row = row_of(name)
        assert row is None or not row.get("waits"), name


def test_the_measures_agree() -> None:
    """The debug mode is silent about waits of libraries that PyTorch calls, and about nothing else."""
    odd = MEASURED["the debug mode alone is silent"]
    assert MEASURED["looked at"] == MEASURED["all three agree"] + sum(odd.values())
