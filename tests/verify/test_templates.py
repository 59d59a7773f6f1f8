"""The house: every case has its two snippets, one marked line, and a control that differs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

from streamlint.verify import templates
from streamlint.verify.cases import SNIPPETS, VARIANTS, Case
from streamlint.verify.criteria import Experiment
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
        ("SL033", {"cupy", "torch"}),
        ("SL036", {"torch"}),
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


HELD_CUDA = [case for case in CASES if case.experiment is Experiment.THREAD_HELD and case.api == "cuda"]


def _within(node: Node, kind: str) -> Iterator[Node]:
    if node.type == kind:
        yield node
    for child in node.children:
        yield from _within(child, kind)


def _vectors_made(source: str) -> list[str]:
    """The vectors that functions make with a size: they touch all of their memory when they are made."""
    tree = Parser(Language(tree_sitter_cuda.language())).parse(source.encode())
    made = [
        declaration
        for function in _within(tree.root_node, "function_definition")
        for declaration in _within(function, "declaration")
        if any(name.text == b"vector" for kind in _within(declaration, "template_type") for name in kind.children)
    ]
    return [(declaration.text or b"").decode() for declaration in made]


@pytest.mark.parametrize("case", HELD_CUDA, ids=_name)
@pytest.mark.parametrize("variant", VARIANTS)
def test_no_memory_is_touched_before_the_copy(case: Case, variant: str) -> None:
    """Another thread launches once the first is in its copy: what that one does before would let it by."""
    assert _vectors_made(case.source(variant)) == []
    assert _vectors_made("void f(int n) {\n  std::vector<float> host(n);\n}\n") == ["std::vector<float> host(n);"]
