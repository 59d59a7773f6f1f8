"""Which program settles a finding, and with which of its facts."""

from __future__ import annotations

from typing import Any

import pytest

from streamlint.findings import Category, Facts, Finding, Span
from streamlint.verify import templates
from streamlint.verify.cases import ANY_KIND, OTHER_CLAIM
from streamlint.verify.questions import choose, questions, within

MOST = 64 << 20
CASES = [case for template in templates.load().values() for case in template.cases]


def _chosen(rule: str, **facts: Any) -> tuple[str, str, dict[str, Any], tuple[str, ...]]:
    found = choose(templates.load()[rule], Facts.read(facts), MOST)
    assert found is not None
    case, notes = found
    return case.name, case.api, dict(case.facts), notes


def _finding(rule: str, row: int, **facts: Any) -> Finding:
    return Finding(rule, "name", Category.STALL, "message", Span("a.py", row, 1, row, 2), facts=facts)


def test_facts_are_read_in_the_published_words() -> None:
    noted = {"api": "cuda-runtime", "bytes": 64, "memory": "unknown", "direction": "h2d", "stream": "ambient", "what": "read"}
    assert Facts.read(noted) == Facts("cuda", 64, None, "h2d", "null", "read")
    assert Facts.read({"stream": "parameter", "bytes": None}) == Facts()
    apis = {"torch.Tensor.item": "torch", "cudaDeviceSynchronize": "cuda", "cuda_python": "cuda-python", "thrust": "cuda", "python": None}
    assert {api: Facts.read({"api": api}).api for api in apis} == apis
    assert Facts.read({"libraries": ["cupy", "torch"]}).api == "torch"


def test_all_facts_known() -> None:
    facts = {"api": "torch", "direction": "h2d", "memory": "pageable", "stream": "null", "bytes": 4096}
    assert _chosen("SL001", **facts) == ("pageable_upload", "torch", {"bytes": 4096, "stream": "null"}, ())


def test_unknown_facts_are_the_templates_and_said_to_be() -> None:
    notes = ("bytes not known: the template's 1 MiB", "stream not known: the template's non-blocking")
    assert _chosen("SL001", api="cupy", direction="d2h", memory="pageable") == ("pageable_download", "cupy", {}, notes)


def test_sizes_are_brought_to_what_may_be_taken() -> None:
    name, api, given, notes = _chosen("SL003", api="cuda-runtime", bytes=8 << 30)
    assert (name, api, given) == ("cuda_free_in_loop", "cuda", {"bytes": MOST})
    assert notes == ("8 GiB brought to 64 MiB",)
    assert _chosen("SL003", api="cuda-runtime", bytes=3)[2:] == ({"bytes": 4}, ("3 bytes brought to 4 bytes",))


def test_a_small_share_cuts_the_templates_own_sizes() -> None:
    large = next(case for case in CASES if case.key == ("SL019", "copy_without_access", "cuda"))
    assert within(large, 1 << 30) is large
    assert within(large, 256 << 20).parameters["bytes"] == 16 << 20
    small = next(case for case in CASES if case.key == ("SL005", "loss_to_cpu", "torch"))
    assert within(small, 1 << 20) is small


def test_memory_chooses_the_case() -> None:
    assert _chosen("SL005", api="cupy", memory="pageable", stream="non-blocking")[0] == "pageable_destination"
    assert _chosen("SL005", api="cupy", memory="pinned", stream="blocking")[:3] == ("pinned_destination", "cupy", {"stream": "blocking"})
    notes = _chosen("SL005", api="cuda_python", memory="pageable", stream="null")[3]
    assert notes == ("memory is pageable, the template's pinned",)


def test_an_api_without_a_template_is_run_in_another() -> None:
    assert _chosen("SL010", api="numba", bytes=1024)[1:] == ("torch", {"bytes": 1024}, ("no template for numba: run with torch",))
    assert _chosen("SL016")[3] == ("API not known: run with cuda",)


def test_the_kind_of_mistake_chooses_the_case() -> None:
    assert _chosen("SL004", api="cupy", kind="lock inversion")[0] == "lock_in_callback"
    assert _chosen("SL004", api="cupy", kind="refused call")[0] == "operation_in_callback"
    assert _chosen("SL012", api="torch", kind="f")[0] == "written_after_the_put"
    assert _chosen("SL013", api="cuda-runtime", kind="unjoined")[0] == "fork_not_joined"
    assert _chosen("SL020", api="torch.Tensor.item", what="read")[::3] == ("loss_read_each_step", ())
    assert _chosen("SL020", api="torch.Tensor.type", what="cast")[::3] == ("loss_read_each_step", ("no template for 'cast': the nearest",))
    cache = _chosen("SL021", api="torch.cuda.empty_cache", what="cache")
    assert cache[::3] == ("synchronize_each_step", ("no template for 'cache': the nearest",))
    assert choose(templates.load()["SL012"], Facts.read({"api": "torch", "kind": "g"}), MOST) is None


def test_one_question_for_each_distinct_set() -> None:
    known = {"api": "torch", "direction": "h2d", "memory": "pageable", "stream": "null"}
    findings = [
        _finding("SL001", 1, **known, bytes=64),
        _finding("SL001", 2, **known, bytes=64),
        _finding("SL001", 3, **known, bytes=128),
        _finding("SL012", 4, api="torch", kind="g"),
        _finding("SL900", 5),
    ]
    asked, without = questions(findings, templates.load(), 1 << 30)
    assert [[finding.span.row for finding in question.findings] for question in asked] == [[1, 2], [3]]
    assert [finding.span.row for finding in without] == [4, 5]
    assert len({question.case.identity for question in asked}) == 2


@pytest.mark.parametrize("rule", templates.load())
def test_every_rule_answers_a_finding_of_which_nothing_is_known(rule: str) -> None:
    cases = templates.load()[rule].cases
    found = choose(templates.load()[rule], Facts(), MOST)
    assert (found is None) == all(case.kinds and ANY_KIND not in case.kinds for case in cases)
    assert found is None or OTHER_CLAIM not in found[0].kinds


@pytest.mark.parametrize("case", CASES, ids=["-".join(case.key) for case in CASES])
def test_what_a_case_takes_has_a_default(case: Any) -> None:
    assert set(case.takes) <= set(case.parameters)
