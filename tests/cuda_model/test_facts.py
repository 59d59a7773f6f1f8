"""The facts themselves: each is a sentence with a source, rests in the code, and can be told from its opposite by its own program."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from streamlint import cuda_model, litmus
from streamlint.cuda_model import EFFECTS, FACTS, Fact, Strength
from streamlint.cuda_model.facts import GROUPS
from streamlint.litmus.command import TURNED
from streamlint.litmus.predict import allowed, observed, strengths
from streamlint.litmus.program import parse

MODEL, LITMUS = Path(cuda_model.__file__).parent, Path(litmus.__file__).parent
ALL = [fact for group in GROUPS.values() for fact in group]
EACH = pytest.mark.parametrize("fact", ALL, ids=[fact.name for fact in ALL])
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")
# Words of that shape which are no facts.
NO_FACTS = {"utf-8"}


@EACH
def test_a_fact_says_something(fact: Fact) -> None:
    assert NAME.fullmatch(fact.name)
    assert fact.says[0].isupper() or fact.says.startswith("cuda")
    assert fact.says.endswith(".")
    assert fact.says == fact.says.strip()
    assert "\n" not in fact.says
    assert isinstance(fact.strength, Strength)


@EACH
def test_a_fact_has_a_source(fact: Fact) -> None:
    """What only may be so needs none; of all else we say where we know it from, of what is guaranteed the document."""
    assert fact.source or fact.strength is Strength.MAY
    assert fact.documents or fact.strength is not Strength.GUARANTEED


def test_names_are_unique() -> None:
    assert len(FACTS) == len(ALL)
    assert len({fact.says for fact in ALL}) == len(ALL)


# The program of a fact --------------------------------------------------------------------------------------------------------


@EACH
def test_the_program_of_a_fact_rests_on_it(fact: Fact) -> None:
    program = parse(fact.shown_by)
    assert observed(program, strengths()) != observed(program, strengths(fact.name))


@EACH
def test_the_program_of_a_fact_is_as_it_reads_when_printed(fact: Fact) -> None:
    assert str(parse(fact.shown_by)) == fact.shown_by


@EACH
def test_whether_the_opposite_is_allowed_is_told_by_the_strength(fact: Fact) -> None:
    """Of what is guaranteed or excluded the opposite is outside of the model; of what lies between, it is one more outcome."""
    program = parse(fact.shown_by)
    possible = allowed(program, strengths())
    assert possible is not None
    assert (observed(program, strengths(fact.name)) in possible) is (fact.strength in (Strength.MAY, Strength.OBSERVED))


@EACH
def test_a_fact_turned_round_twice_is_as_it_was(fact: Fact) -> None:
    truth, turned = strengths(), strengths(fact.name)
    assert {name for name in FACTS if truth[name] is not turned[name]} == {fact.name}
    assert (truth[fact.name] >= Strength.OBSERVED) is not (turned[fact.name] >= Strength.OBSERVED)


def test_nothing_is_turned_that_is_no_fact() -> None:
    assert set(TURNED) <= set(FACTS)
    assert strengths() == {fact.name: fact.strength for fact in ALL}


# Where facts are used ---------------------------------------------------------------------------------------------------------


def named(path: Path) -> set[str]:
    """The words in a file's code that read like facts."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {word for word in words if NAME.fullmatch(word)} - NO_FACTS


CODE = sorted(path for path in (*MODEL.glob("*.py"), *LITMUS.glob("*.py")) if path != LITMUS / "command.py")


@pytest.mark.parametrize("path", CODE, ids=[f"{path.parent.name}/{path.stem}" for path in CODE])
def test_what_the_code_names_is_a_fact(path: Path) -> None:
    assert named(path) <= set(FACTS)


def test_every_fact_is_used() -> None:
    assert set(FACTS) - {name for path in CODE for name in named(path)} == set()


def test_what_rows_name_is_a_fact() -> None:
    rows = EFFECTS.values()
    claims = [claim for row in rows for claim in (*row.waits, *row.takes, *row.holds, *row.on_null.takes, *row.on_null.holds)]
    assert {claim.fact for claim in claims} <= set(FACTS)


def test_rows_are_found_by_their_names() -> None:
    assert {call: row.call for call, row in EFFECTS.items()} == {call: call for call in EFFECTS}
    assert {row.stream for row in EFFECTS.values()} == {"own", "null", ""}
    assert all(row.api for row in EFFECTS.values())


def test_strengths_are_nested() -> None:
    """What is guaranteed is observed, and what is observed may be."""
    assert Strength.NEVER < Strength.MAY < Strength.OBSERVED < Strength.GUARANTEED
