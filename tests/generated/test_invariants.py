"""Invariants over generated programs, with the differences that are known today: a new one fails, and so does one that is gone."""

from __future__ import annotations

import pytest
from generated.invariants import INVARIANTS, UNRELATED, known, sample, uniform
from generated.programs import GRAMMARS, HAZARDS

from streamlint.config.options import Options, Source
from streamlint.runner.engine import analyse

REWRITE = "mend what is new; for what is gone, write the record anew: PYTHONPATH=tests python -m generated.invariants"


@pytest.mark.parametrize("language", GRAMMARS)
@pytest.mark.parametrize("invariant", INVARIANTS)
def test_invariant(invariant: str, language: str) -> None:
    now, before = INVARIANTS[invariant](language), known(invariant, language)
    new = {key: value for key, value in now.items() if before.get(key) != value}
    gone = {key: value for key, value in before.items() if now.get(key) != value}
    assert not new, f"new: {new}; {REWRITE}"
    assert not gone, f"gone: {gone}; {REWRITE}"


def test_the_programs_are_varied() -> None:
    for language, grammar in GRAMMARS.items():
        mine = list(uniform(language))
        assert {kind for kind, *_ in mine} == set(grammar.links)
        assert {hazard for *_, hazard, _ in mine} == {name for name, hazard in HAZARDS.items() if hazard.language == language}
        assert {spec.hazard for spec in sample(language)} == {hazard for *_, hazard, _ in mine}
        assert {spec.placement for spec in sample(language)} == set(grammar.placements)


def test_unrelated_files_are_silent() -> None:
    sources = [Source(name, text, "python" if name.endswith(".py") else "cuda") for name, text in UNRELATED.items()]
    assert analyse(sources, Options(codes=frozenset(hazard.code for hazard in HAZARDS.values()))).findings == []
