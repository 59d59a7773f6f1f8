"""The templates are read by the linter too: the misuse is found on the line that says so, by that rule alone, and the remedy is clean.

So what the docs show, what the linter finds and what the GPU runs cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from rename import File, rename

from streamlint.checks.base import registry
from streamlint.config.options import Options, Source
from streamlint.findings import Finding
from streamlint.runner.engine import analyse
from streamlint.verify import templates
from streamlint.verify.cases import VARIANTS, Case

# Rules that are on read every snippet, the others their own.
CODES = frozenset(code for code, check in registry().items() if check.default == "on")
LANGUAGES = {".py": "python", ".cu": "cuda"}
# Several cases may run one pair of snippets, with other parameters: it is read once.
PAIRS = {case.stem: case for template in templates.load().values() for case in template.cases}
CASES = [case for template in templates.load().values() for case in template.cases]

# Where the linter is wrong and the template is right (semantics: sections 2 and 3). A mended entry fails, and goes.
DEFECTS: dict[tuple[str, str], str] = {}


def _snippets(*suffixes: str) -> list[Any]:
    """Both snippets of each pair in these languages."""
    found = []
    for stem, case in PAIRS.items():
        for variant in VARIANTS if case.suffix in suffixes else ():
            reason = DEFECTS.get((stem, variant))
            marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
            found.append(pytest.param(case, variant, marks=marks, id=f"{stem}-{variant}"))
    return found


def _file(case: Case, variant: str) -> File:
    return File(case.path(variant).name, LANGUAGES[case.suffix], case.source(variant))


def _lint(file: File, rule: str) -> list[Finding]:
    report = analyse(
        [Source(file.name, file.text, file.language)], Options(codes=CODES | {rule}, hidden_sync="all-loops", evidence="possible")
    )
    assert not report.problems
    return report.findings


def _places(findings: Iterable[Finding]) -> list[tuple[str, int]]:
    return [(found.code, found.span.row) for found in findings]


@pytest.mark.parametrize(("case", "variant"), _snippets(".py", ".cu"))
def test_findings_are_where_the_snippet_says(case: Case, variant: str) -> None:
    assert _places(_lint(_file(case, variant), case.rule)) == case.marked(variant)


@pytest.mark.parametrize(("case", "variant"), _snippets(".py"))
def test_names_mean_nothing(case: Case, variant: str) -> None:
    """With variables, parameters and attributes of self called v0, v1, …"""
    (file,) = rename([_file(case, variant)])
    assert file.text != case.source(variant)
    assert _places(_lint(file, case.rule)) == case.marked(variant)


@pytest.mark.parametrize("case", CASES, ids=["-".join(case.key) for case in CASES])
def test_a_finding_says_nothing_that_a_case_contradicts(case: Case) -> None:
    """The linter reads no parameters: of a snippet that runs with pinned and with pageable memory it may claim neither."""
    for found in _lint(_file(case, "misuse"), case.rule):
        for fact in ("memory", "direction", "bytes"):
            claimed, given = found.facts.get(fact), case.parameters.get(fact)
            assert given is None or claimed in (None, "unknown", given), f"{fact}: {claimed}"
        if found.facts.get("memory") == "unknown":
            assert "pageable" not in found.message
            assert "pinned" not in found.message


def test_snippets_are_shared_within_a_rule_and_an_api_only() -> None:
    """So that one reading settles all cases of a pair."""
    assert all((case.rule, case.api) == (PAIRS[case.stem].rule, PAIRS[case.stem].api) for case in CASES)


def test_defects_name_snippets() -> None:
    assert {stem for stem, _ in DEFECTS} <= set(PAIRS)
    assert {variant for _, variant in DEFECTS} <= set(VARIANTS)
