"""The generated programs are what they claim: valid, with a hazard whose value really goes through the chain, and harmless twins."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
import tree_sitter_cuda
from generated.cuda_links import LINKS as CUDA_LINKS
from generated.programs import DEEPEST, GRAMMARS, HAZARDS, build, plain, specs, write
from generated.python_links import LINKS as PYTHON_LINKS
from generated.running import run
from generated.texts import Hazard, Program, Spec
from tree_sitter import Language, Parser

from streamlint import Settings, lint

MANY = list(specs(seed=1, count=600))
PYTHON = [spec for spec in MANY if HAZARDS[spec.hazard].language == "python"]
CUDA = [spec for spec in MANY if HAZARDS[spec.hazard].language == "cuda"]
# What their sink reads or writes is what their source made or wrote; elsewhere the two are tied by time alone.
VALUES = {"SL001", "SL005", "SL006", "SL008", "SL010", "SL018"}


def uniform(language: str) -> list[Spec]:
    """For each kind of link a chain of three of them, in each placement, with every hazard in turn."""
    hazards = [hazard for hazard in HAZARDS.values() if hazard.language == language]
    grammar = GRAMMARS[language]
    found: list[Spec] = []
    for number, kind in enumerate(grammar.links):
        for place, placement in enumerate(grammar.placements):
            fit = [hazard for hazard in hazards if not {kind, placement} & hazard.without]
            found.append(Spec(fit[(number + 5 * place) % len(fit)].name, (kind,) * 3, placement, number=number))
    return found


def test_enough_is_varied() -> None:
    languages = [hazard.language for hazard in HAZARDS.values()]
    assert len({hazard.code for hazard in HAZARDS.values() if hazard.language == "python"}) >= 8
    assert languages.count("cuda") >= 4
    for language, links in (("python", PYTHON_LINKS), ("cuda", CUDA_LINKS)):
        mine = [spec for spec in MANY if HAZARDS[spec.hazard].language == language]
        assert {kind for spec in mine for kind in spec.links} == set(links)
        assert {spec.placement for spec in mine} == set(GRAMMARS[language].placements)
        assert {spec.depth for spec in mine} == set(range(1, DEEPEST + 1))
    assert {spec.hazard for spec in MANY} == set(HAZARDS)
    assert {spec.padded for spec in MANY} == {False, True}


def test_a_seed_gives_the_same_programs() -> None:
    assert list(specs(7, 40)) == list(specs(7, 40))
    assert list(specs(7, 40)) != list(specs(8, 40))
    assert [build(spec) for spec in MANY[:40]] == [build(spec) for spec in MANY[:40]]


@pytest.mark.parametrize("hazard", HAZARDS.values(), ids=HAZARDS)
def test_the_plain_hazard_is_found_and_its_twin_is_not(hazard: Hazard, tmp_path: Path) -> None:
    """What the chains do to a finding can be told only where there is one without them."""
    program = build(plain(hazard.name))
    write(program, tmp_path / "bad")
    write(build(plain(hazard.name, harmless=True)), tmp_path / "good")
    (found,) = lint([tmp_path / "bad"], Settings(root=tmp_path)).findings
    assert found.code == hazard.code
    assert (Path(found.span.file).relative_to(tmp_path / "bad").as_posix(), found.span.row) in program.chain
    assert lint([tmp_path / "good"], Settings(root=tmp_path)).findings == []


def without(program: Program) -> dict[str, list[str]]:
    """The lines of a program but for those that make it a hazard or harmless."""
    return {
        name: [line for row, line in enumerate(text.split("\n"), 1) if (name, row) not in program.differing]
        for name, text in program.files.items()
    }


def test_look_alikes_differ_in_the_harmless_part_alone() -> None:
    for spec in (*MANY, *uniform("python"), *uniform("cuda")):
        if not spec.harmless:
            hazard, twin = build(spec), build(replace(spec, harmless=True))
            assert hazard.files != twin.files
            assert without(hazard) == without(twin), spec.id
            assert hazard.code
            assert not twin.code


def test_other_words_make_no_other_program() -> None:
    for spec in MANY[::7]:
        neutral, misleading = (build(replace(spec, words=words)) for words in ("neutral", "misleading"))
        assert [len(text.split("\n")) for text in neutral.files.values()] == [len(text.split("\n")) for text in misleading.files.values()]
        assert len(neutral.chain) == len(misleading.chain)


def names_cuda(text: str) -> bool:
    return any(word in text for word in ("torch", "cupy", "cp.", "cuda", "<<<"))


def test_plain_files_name_nothing_of_cuda() -> None:
    for spec in MANY:
        if spec.placement == "plain-files" and spec.depth > 2:
            program = build(spec)
            between = [name for name, text in program.files.items() if name != program.entry[0] and not names_cuda(text)]
            assert len(between) == spec.depth - 1, spec.id


@pytest.mark.parametrize("words", ["neutral", "misleading"])
def test_python_programs_run(words: str, tmp_path: Path) -> None:
    """Each line that the hazard stands on is reached, and its value arrives."""
    many = [*PYTHON[::5], *uniform("python")] if words == "neutral" else PYTHON[::10]
    for number, spec in enumerate(many):
        program = build(replace(spec, words=words))
        for name, text in program.files.items():
            ast.parse(text, name, feature_version=(3, 10))
        write(program, folder := tmp_path / str(number))
        log = run(program, folder)
        assert program.chain <= log.ran, spec.id
        if program.code in VALUES:
            sources = set(program.places["source"])
            assert any(log.touched[sink] & sources for sink in program.places["sink"]), spec.id


def test_cuda_programs_are_read_without_errors() -> None:
    parser = Parser(Language(tree_sitter_cuda.language()))
    for spec in (*CUDA, *uniform("cuda")):
        for name, text in build(spec).files.items():
            tree = parser.parse(text.encode())
            assert not tree.root_node.has_error, f"{spec.id}: {name}\n{text}"
