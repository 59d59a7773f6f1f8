"""The house: every case has its two snippets, one marked line, and a control that differs."""

from __future__ import annotations

import ast
from types import SimpleNamespace

import pytest

from streamlint.verify import templates
from streamlint.verify.cases import SNIPPETS, VARIANTS, Case
from streamlint.verify.templates import _common

CASES = [case for template in templates.load().values() for case in template.cases]


# A remedy cures its rule's claim and may still be another rule's finding, where that is the point.
OTHER_FINDINGS = {"sl010_cuda_callback_own": ["SL001"]}


def _name(case: Case) -> str:
    return "-".join(case.key)


def test_keys_are_unique() -> None:
    assert len({case.key for case in CASES}) == len(CASES)


def test_every_snippet_is_used() -> None:
    used = {case.path(variant) for case in CASES for variant in VARIANTS}
    assert used == {path for path in SNIPPETS.iterdir() if path.suffix in (".py", ".cu")}


@pytest.mark.parametrize(
    ("rule", "apis"),
    [
        ("SL001", {"torch", "cupy", "numba", "cuda-python", "cuda"}),
        ("SL002", {"torch", "cupy", "numba", "cuda"}),
        ("SL003", {"torch", "cupy", "numba", "cuda-python", "cuda"}),
        ("SL004", {"cupy", "numba", "cuda"}),
        ("SL005", {"torch", "cupy", "numba", "cuda-python", "cuda"}),
        ("SL006", {"torch", "cupy", "numba", "cuda-python", "cuda"}),
        ("SL008", {"torch", "cupy", "numba", "cuda-python", "cuda"}),
        ("SL009", {"cuda"}),
        ("SL010", {"torch", "cupy", "cuda"}),
        ("SL011", {"torch"}),
        ("SL013", {"torch", "cupy", "cuda"}),
        ("SL022", {"torch"}),
        ("SL014", {"torch", "cupy", "cuda-python", "cuda"}),
        ("SL015", {"cupy", "cuda"}),
        ("SL016", {"cuda"}),
        ("SL017", {"torch"}),
        ("SL018", {"torch", "cupy", "cuda-python", "cuda"}),
        ("SL019", {"cuda"}),
        ("SL021", {"torch", "cupy", "cuda"}),
        ("SL023", {"torch", "cupy", "numba", "cuda"}),
        ("SL024", {"torch", "cupy", "cuda"}),
        ("SL027", {"torch"}),
        ("SL029", {"cupy", "numba", "cuda"}),
    ],
)
def test_apis(rule: str, apis: set[str]) -> None:
    assert {case.api for case in CASES if case.rule == rule} == apis


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_one_marked_line_in_the_misuse_and_none_of_its_rule_in_the_remedy(case: Case) -> None:
    assert [rule for rule, _ in case.marked("misuse")] == [case.rule]
    assert [rule for rule, _ in case.marked("remedy")] == OTHER_FINDINGS.get(case.stem, [])
    assert case.source("misuse") != case.source("remedy")


@pytest.mark.parametrize("case", [case for case in CASES if case.suffix == ".py"], ids=_name)
def test_python_snippets_parse(case: Case) -> None:
    for variant in VARIANTS:
        ast.parse(case.source(variant), feature_version=(3, 10))


def test_numpy_without_row_stack_gets_one_of_its_own() -> None:
    numpy = SimpleNamespace(vstack=sum)
    _common.supply_row_stack(numpy)
    assert numpy.row_stack([1, 2]) == 3
    assert numpy.row_stack is not numpy.vstack
    before = SimpleNamespace(row_stack=sum)
    _common.supply_row_stack(before)
    assert before.row_stack is sum
