"""Programs that carry one known hazard, or its harmless look-alike, through a chain of helpers.

A ``Spec`` says what a program is made of, and ``build`` makes it, always the same. ``specs`` draws many of them from a seed. The caller at
the top of the chain and the helper at its end hold the two halves of the hazard; between them stand only links.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from generated import cuda_hazards, cuda_links, cuda_programs, python_hazards, python_links, python_programs
from generated.texts import Hazard, Program, Spec

HAZARDS: dict[str, Hazard] = {hazard.name: hazard for hazard in (*python_hazards.HAZARDS, *cuda_hazards.HAZARDS)}
DEEPEST = 8
NAME_CUDA = {"module"}
"""Kinds of links that name PyTorch themselves: not for files that are to name nothing of CUDA."""


@dataclass(frozen=True)
class Grammar:
    """What programs of one language are made of."""

    links: tuple[str, ...]
    placements: tuple[str, ...]


GRAMMARS = {
    "python": Grammar(tuple(python_links.LINKS), python_programs.PLACEMENTS),
    "cuda": Grammar(tuple(cuda_links.LINKS), cuda_programs.PLACEMENTS),
}


def build(spec: Spec) -> Program:
    """The program of a spec."""
    hazard = HAZARDS[spec.hazard]
    return (python_programs if hazard.language == "python" else cuda_programs).build(spec, hazard)


def specs(seed: int, count: int, hazards: Sequence[str] = tuple(HAZARDS)) -> Iterator[Spec]:
    """Hazards and depths in turn; of two chains one is made of one kind of link throughout, the other of several.

    A look-alike follows each hazard: the same program, harmless.
    """
    chance = random.Random(f"specs {seed}")
    rounds: list[tuple[str, int]] = []
    for number in range((count + 1) // 2):
        if not rounds:
            rounds = [(name, depth) for name in hazards for depth in range(1, DEEPEST + 1)]
            chance.shuffle(rounds)
        name, depth = rounds.pop()
        spec = _drawn(chance, name, depth, number)
        yield spec
        if 2 * number + 1 < count:
            yield replace(spec, harmless=True)


def _drawn(chance: random.Random, name: str, depth: int, number: int) -> Spec:
    hazard = HAZARDS[name]
    grammar = GRAMMARS[hazard.language]
    placement = chance.choice([place for place in grammar.placements if place not in hazard.without])
    without = hazard.without | (NAME_CUDA if placement == "plain-files" else set())
    kinds = [kind for kind in grammar.links if kind not in without]
    first = chance.choice(kinds)
    links = [first] * depth if chance.random() < 0.5 else [chance.choice(kinds) for _ in range(depth)]
    words = chance.choice(("neutral", "misleading"))
    return Spec(name, tuple(links), placement, words=words, number=number, padded=chance.random() < 0.5)


def plain(name: str, harmless: bool = False) -> Spec:
    """The hazard with one ordinary function in one file."""
    return Spec(name, ("function",), "file", harmless)


def write(program: Program, folder: Path) -> None:
    """Put the files of a program under a folder."""
    for name, text in program.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
