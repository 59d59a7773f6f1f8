"""The generated cases: which template in which way, and the files that come of it."""

from __future__ import annotations

import functools
import json
import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.streambench import cuda_ways, more_ways, python_ways
from benchmarks.streambench.pieces import Line, Names, Template, lines_of, read_templates

RESULTS = Path(__file__).with_name("results")
SEED = 1
DEEPEST = 8
BAD, CLEAN = "bad", "clean"
_SAMPLED = {"depth": 3, "files": 2}
"""How many of the depths 2 to 8 a template stands in, by way."""
PLAIN, SAMPLE = 6, 5
"""In how many of the ways a template stands beside ``direct``, and in how many of the further ways, drawn by the seed."""
_RETURNING = {"returned", "returned-elsewhere"}
_CARRYING = {"dataclass", "container", "kwargs", "partial"}
"""Ways that carry values: of no use for a second part that takes none."""


@dataclass(frozen=True)
class Case:
    """A program in two versions, files by name; ``marks`` are the operations of the hazard in the bad one.

    ``links`` are the calls on the way from one operation to the other: a tool may report the hazard there as well.
    """

    name: str
    track: str
    hazard: str
    api: str
    way: str
    why: str
    bad: dict[str, str]
    clean: dict[str, str]
    marks: tuple[tuple[str, int], ...]
    links: tuple[tuple[str, int], ...] = ()
    functions: int = 1
    template: str = ""
    oracle: str = ""
    source: str = ""
    alarms: tuple[tuple[str, int], ...] = ()
    """Where a finding in the clean version is a false alarm; anywhere if empty."""

    @property
    def files(self) -> int:
        """How many files one must look at."""
        return len(self.bad)


def cases(seed: int = SEED, templates: Sequence[Template] | None = None, every_way: bool = False) -> Iterator[Case]:
    """The generated cases of a seed; ``every_way``: in all ways, not in a sample of them."""
    for template in templates if templates is not None else read_templates():
        for way, depth in _ways(template, seed) if every_way else _drawn(template, seed):
            yield build(template, way, depth, seed)
        for way in further(template, None if every_way else seed):
            yield build(template, way, 1, seed)


def further(template: Template, seed: int | None) -> list[str]:
    """The further ways that a template stands in: a sample that a seed draws, else all."""
    fitting = [name for name, way in more_ways.of(template).items() if way.fits(template) and name not in template.without]
    if seed is None or len(fitting) <= SAMPLE:
        return fitting
    drawn = random.Random(f"{seed} {template.name} further").sample(fitting, SAMPLE)
    return [name for name in fitting if name in drawn]


def _drawn(template: Template, seed: int) -> list[tuple[str, int]]:
    """Some of the ways that a template stands in, ``direct`` among them."""
    ways = list(_ways(template, seed))
    others = [way for way in ways if way[0] != "direct"]
    drawn = random.Random(f"{seed} {template.name} ways").sample(others, min(PLAIN, len(others)))
    return [way for way in ways if way[0] == "direct" or way in drawn]


def _ways(template: Template, seed: int) -> Iterator[tuple[str, int]]:
    """The ways that a template stands in, each with its number of helpers."""
    chance = random.Random(f"{seed} {template.name}")
    table = python_ways.WAYS if template.language == "python" else cuda_ways.WAYS
    for way in table:
        if way == "branches" or not _fits(template, way):
            continue
        if way in _SAMPLED:
            yield from ((way, depth) for depth in sorted(chance.sample(range(2, DEEPEST + 1), _SAMPLED[way])))
        else:
            yield way, 1


def _fits(template: Template, way: str) -> bool:
    if way in template.without or (template.only_ways and way not in template.only_ways):
        return False
    if way == "direct":
        return True
    if way in _RETURNING and (template.nested or not template.takes):
        return False
    if way == "loop-carried":
        return "loop-carried" in template.only_ways or (template.hazard in RACES and not template.nested and bool(template.takes))
    return bool(template.takes) or way not in _CARRYING


RACES = frozenset("SL005 SL006 SL007 SL008 SL014 SL038 SL039".split())
"""Hazards between two operations, which may stand in two rounds of a loop."""


def build(template: Template, way: str, depth: int = 1, seed: int = SEED, branches: int = 0) -> Case:
    """One case."""
    number = zlib.crc32(f"{seed} {template.name} {way} {depth}".encode())
    ways = python_ways if template.language == "python" else cuda_ways
    texts = (template.body, template.second, template.module, template.bottom, template.entry, *template.takes, *template.imports)
    names = Names(str(number), way == "misleading", "\n".join(texts))
    program = ways.Build(template, names, depth, branches)
    if further_way := more_ways.of(template).get(way):
        further_way.act(program)
        lines = ways.files_of(program)
    else:
        lines = ways.apply(way, program)
    lines |= {path: lines_of(text) for path, text in template.files.items()}
    name = f"{template.name}-{way}" + (f"-{depth}" if way in _SAMPLED else "") + (f"-{branches}" if way == "branches" else "")
    bad = {path: [line for line in found if line.only != "good"] for path, found in lines.items()}
    marks, links = places(bad)
    return Case(
        name,
        "micro",
        template.hazard,
        template.api,
        way if way not in _SAMPLED else f"{way}-{depth}",
        template.why,
        {path: _text(found) for path, found in bad.items()},
        {path: _text(line for line in found if line.only != "bad") for path, found in lines.items()},
        marks,
        links,
        1 if way == "direct" else depth + 1,
        template.name,
        template.oracle,
        template.source,
    )


def places(bad: dict[str, list[Line]]) -> tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]:
    """Where the operations of a hazard and the calls between them stand."""
    numbered = [(path, row, line) for path, found in bad.items() for row, line in enumerate(found, 1)]
    return tuple((path, row) for path, row, line in numbered if line.mark), tuple((path, row) for path, row, line in numbered if line.link)


def _text(lines: Iterator[Line] | list[Line]) -> str:
    return "".join(f"{line.text}\n" for line in lines)


def write(case: Case, folder: Path) -> None:
    """Put both versions of a case and its YAML under a folder."""
    for version, files in ((BAD, case.bad), (CLEAN, case.clean)):
        for path, text in files.items():
            target = folder / case.name / version / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    (folder / case.name / "case.yml").write_text(described(case), encoding="utf-8")


@functools.cache
def oracle_results() -> dict[str, str]:
    """What GPUs said of cases, by name: `k of n` with the GPU and the day; `latent` of those that did not show their hazard."""
    found: dict[str, str] = {}
    for path in sorted(RESULTS.glob("oracle-*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        where = f"{record['platform']['gpu']}, driver {record['platform']['driver']}, {record['date']}"
        for name, told in record["cases"].items():
            found[name] = f"{told['bad']} of {told['runs']} ({where})" if shows(told) else f"latent ({where})"
    return found


def shows(told: Mapping[str, Any]) -> bool:
    """Whether an oracle's answer shows the hazard: in the bad program, and not in its twin."""
    return bool(told.get("bad")) and not told.get("clean")


def result_of(case: Case) -> str:
    """What a GPU said of a case, else of the direct program of its template; `latent` of those that have no oracle."""
    results = oracle_results()
    if not case.oracle:
        return "latent"
    direct = results.get(f"{case.template}-direct")
    return results.get(case.name) or (f"not run; the direct program: {direct}" if direct else "not run")


def described(case: Case) -> str:
    """The YAML of a case: each value as JSON, which YAML reads."""
    told = {
        "name": case.name,
        "track": case.track,
        "hazard": case.hazard,
        "api": case.api,
        "way": case.way,
        "places": [f"{path}:{row}" for path, row in case.marks],
        "calls": [f"{path}:{row}" for path, row in case.links],
        "why": case.why,
        "look": {"functions": case.functions, "files": case.files},
        "template": case.template,
        "oracle": case.oracle,
        "result": result_of(case),
        "source": case.source or f"streamlint rule {case.hazard}: Verify, References",
    }
    return "".join(f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in told.items())
