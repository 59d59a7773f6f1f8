"""What must not change a finding: which other rules run, an unrelated file, other names, more helpers between, branches in them.

    PYTHONPATH=tests python -m generated.invariants      writes differences.toml anew

Where the linter does not keep an invariant today, ``differences.toml`` says so. A program that is listed and keeps it is as wrong as one
that does not and is not listed.
"""

from __future__ import annotations

import functools
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from generated.judging import Found, checked, judge
from generated.programs import DEEPEST, GRAMMARS, HAZARDS, NAME_CUDA, build
from generated.texts import Program, Spec

from streamlint import Settings
from streamlint.checks.base import registry
from streamlint.config.settings import parse_toml

RECORD = Path(__file__).with_name("differences.toml")
Differences = dict[str, str]  # program → what differs; one that keeps the invariant is not there

UNRELATED = {
    "apart_words.py": "def longest(words):\n    return max(words, key=len)\n",
    "apart_upload.py": """import torch


def uploaded(count):
    rows = torch.ones(count, pin_memory=True)
    lane = torch.cuda.Stream()
    with torch.cuda.stream(lane):
        there = rows.to("cuda", non_blocking=True)
    torch.cuda.current_stream().wait_stream(lane)
    return there.sum()
""",
    "apart_scale.cu": """#include <cuda_runtime.h>

__global__ void apart(float* rows) { rows[threadIdx.x] *= 2.0f; }

void apart_scale(float* rows, cudaStream_t lane) { apart<<<1, 64, 0, lane>>>(rows); }
""",
}


@functools.cache
def _found(spec: Spec, select: tuple[str, ...] = (), beside: bool = False) -> Found:
    program = build(spec)
    if beside:
        program = replace(program, files={**program.files, **UNRELATED})
    with tempfile.TemporaryDirectory() as folder:
        return checked(program, Path(folder), Settings.of(**({"select": list(select)} if select else {})))


def _reported(program: Program) -> bool:
    return judge(program, _found(program.spec)).reported


def _fitting(language: str, kind: str, placement: str, number: int) -> str:
    """One of the hazards that a kind of link and a placement go with; they take turns."""
    unfit = {kind, placement}
    fit = [name for name, hazard in HAZARDS.items() if hazard.language == language and not unfit & hazard.without]
    return fit[number % len(fit)]


def uniform(language: str) -> Iterator[tuple[str, str, str, int]]:
    """Each kind of link in each placement, with a hazard: kind, placement, hazard, number."""
    grammar = GRAMMARS[language]
    for number, kind in enumerate(grammar.links):
        for place, placement in enumerate(grammar.placements):
            if not (placement == "plain-files" and kind in NAME_CUDA):
                yield kind, placement, _fitting(language, kind, placement, number + 5 * place), number


def depth(language: str) -> Differences:
    """A hazard is found through 1 to 8 helpers of one kind, wherever they stand."""
    found: Differences = {}
    for kind, placement, hazard, number in uniform(language):
        specs = [Spec(hazard, (kind,) * deep, placement, number=number) for deep in range(1 + number % 2, DEEPEST + 1, 2)]
        lost = [str(spec.depth) for spec in specs if not _reported(build(spec))]
        if lost:
            found[f"{language} {kind} {placement} {hazard}"] = f"lost at {' '.join(lost)}"
    return found


def look_alikes(language: str) -> Differences:
    """A harmless program is silent, whatever its helpers are."""
    found: Differences = {}
    for kind, placement, hazard, number in uniform(language):
        spec = Spec(hazard, (kind,) * 3, placement, harmless=True, number=number)
        if codes := sorted({code for code, _, _ in _found(spec)}):
            found[spec.id] = f"flagged: {' '.join(codes)}"
    return found


def sample(language: str) -> Iterator[Spec]:
    """For each hazard a few chains of different links, depths and placements."""
    grammar = GRAMMARS[language]
    for number, (name, hazard) in enumerate(HAZARDS.items()):
        if hazard.language == language:
            kinds = [kind for kind in grammar.links if kind not in hazard.without | NAME_CUDA]
            for deep in (2, 3, 4):
                links = tuple(kinds[(5 * number + 7 * deep + step) % len(kinds)] for step in range(deep))
                placement = grammar.placements[(number + deep) % 4] if deep == 3 else "file"
                yield Spec(name, links, placement if placement not in hazard.without else "file", number=number)


def rule_alone(language: str) -> Differences:
    """A rule finds alone what it finds among those that are on, and among all; in its widest form no less."""
    found: Differences = {}
    every = tuple(sorted(registry()))
    for spec in sample(language):
        code = HAZARDS[spec.hazard].code
        alone, default, together, widest = (_of(code, _found(spec, select)) for select in ((code,), (), every, ("ALL",)))
        differing = {"by default": alone != default, "with every rule": alone != together, "with ALL": not alone <= widest}
        if words := [name for name, differs in differing.items() if differs]:
            found[spec.id] = f"other than alone: {', '.join(words)}"
    return found


def _of(code: str, found: Found) -> Found:
    return frozenset(finding for finding in found if finding[0] == code)


def unrelated_file(language: str) -> Differences:
    """Files that have nothing to do with a program change nothing in it."""
    return {spec.id: "findings differ" for spec in sample(language) if _found(spec) != _found(spec, beside=True)}


def misleading_names(language: str) -> Differences:
    """Names that hold words of the field, and are others, change nothing."""
    found: Differences = {}
    for spec in sample(language):
        neutral, misleading = (judge(build(own), _found(own)) for own in (spec, replace(spec, words="misleading")))
        if (neutral.reported, neutral.others) != (misleading.reported, misleading.others):
            with_neutral, with_misleading = ("found" if outcome.reported else "lost" for outcome in (neutral, misleading))
            found[spec.id] = f"{with_neutral} with neutral names, {with_misleading} with misleading ones"
    return found


def branches(language: str) -> Differences:
    """Branches, loops and cleaning up in the helpers between that do not touch the value change nothing."""
    found: Differences = {}
    for spec in sample(language):
        bare, padded = (judge(build(own), _found(own)) for own in (spec, replace(spec, padded=True)))
        if (bare.reported, bare.others) != (padded.reported, padded.others):
            found[spec.id] = "lost with branches" if bare.reported else "findings differ"
    return found


INVARIANTS: Mapping[str, Callable[[str], Differences]] = {
    "depth": depth,
    "look-alikes": look_alikes,
    "rule-alone": rule_alone,
    "unrelated-file": unrelated_file,
    "misleading-names": misleading_names,
    "branches": branches,
}


def known(invariant: str, language: str) -> Differences:
    """The differences that are recorded."""
    table: Mapping[str, Mapping[str, Differences]] = parse_toml(RECORD.read_bytes(), RECORD.name)
    return dict(table.get(invariant, {}).get(language, {}))


def text() -> str:
    """The record as it would be written now."""
    lines = ["# Programs that do not keep an invariant today; see invariants.py, which writes this file.", ""]
    for name, invariant in INVARIANTS.items():
        for language in GRAMMARS:
            lines += [f"[{name}.{language}]", *(f'"{key}" = "{value}"' for key, value in sorted(invariant(language).items())), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    RECORD.write_text(text(), encoding="utf-8")
    sys.exit(0)
