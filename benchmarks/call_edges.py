"""Which calls a call graph knows of those that test suites make.

    python benchmarks/call_edges.py record [--corpus DIR] [--to DIR] [NAME…]   fetch packages, run their tests, write the edges as JSON
    python benchmarks/call_edges.py compare [NAME…] [--graph MODULE:FUNCTION] [--missed N] [--from DIR]
    python benchmarks/call_edges.py hold FOLDER EDGES        the same for edges that executed_calls.py wrote for a folder
    python benchmarks/call_edges.py resolved FOLDER… [--pyrefly COMMAND] [--missed N]     calls that pyrefly resolves in packages

Packages and their suites stand in call_edges.toml; `record` runs their code, and needs Python 3.12. A call graph is a function that is
given the folder of a package and returns `targets(file, line)`: the functions, as file and qualified name, that calls on a line may reach.
Without `--graph` it is `call_names:graph`, which takes every function of the right name for one; `call_facts:graph` is that of the program
facts, and counts the targets of virtual calls as well: calls of methods whose receiver may be of several classes.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from corpus import CorpusError, Pin, choose, default_folder, fetch_all, read_pins, tomllib
from resolved_calls import report

PINS = Path(__file__).with_name("call_edges.toml")
RUNNER = Path(__file__).with_name("executed_calls.py")
FAILED = 1
"""What pytest returns where tests fail: what they called until then is told all the same."""
KINDS = ("call", "construct", "through", "implicit")
Target = tuple[str, str]  # file, qualified name
Targets = Callable[[str, int], "set[Target]"]


@dataclass(frozen=True)
class Suite:
    """How a package's tests are run."""

    package: str
    path: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Edge:
    """A call that was made: its place, its kind, and the function that it reached."""

    file: str
    row: int
    kind: str
    target: Target


@dataclass
class Score:
    """What a graph knows of one package's edges."""

    known: Counter[str] = field(default_factory=Counter)
    made: Counter[str] = field(default_factory=Counter)
    named: int = 0  # targets that the graph gives on lines with calls that were made
    lines: int = 0
    silent: int = 0  # of these lines, those for which it gives none
    missed: list[Edge] = field(default_factory=list)
    virtual: list[int] = field(default_factory=list)  # by call with several classes of receivers: its targets


def suites() -> dict[str, Suite]:
    """The suites by the name of their package."""
    tables: Mapping[str, Mapping[str, Any]] = tomllib.loads(PINS.read_text(encoding="utf-8"))["suite"]
    return {name: Suite(table["package"], table["path"], tuple(table["tests"])) for name, table in tables.items()}


# Recording


def record(pin: Pin, suite: Suite, corpus: Path, output: Path) -> str:
    """Run a suite in a copy of its tree and write the edges; returns a line for people."""
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name).resolve() / pin.tree
        shutil.copytree(corpus / pin.tree, tree)
        command = [sys.executable, str(RUNNER), str(tree / suite.package), str(output), *suite.tests]
        done = subprocess.run(command, cwd=tree, env=_environment(tree / suite.path), capture_output=True, text=True)
    said = done.stdout.strip().splitlines()
    if done.returncode not in (0, FAILED):
        raise CorpusError(f"{pin.tree}: its tests do not run: {(done.stderr.strip() or done.stdout.strip())[-500:]}")
    return f"{pin.tree}: {len(read_edges(output))} edges; {said[-1].strip('= ')}"


def _environment(path: Path) -> dict[str, str]:
    """The environment of a suite: its own tree first, and no settings of ours."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYTEST", "COV"))}
    return {**kept, "PYTHONPATH": str(path), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}


def read_edges(path: Path) -> list[Edge]:
    """The edges of one package."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    return [Edge(file, row, kind, (there, name)) for file, row, _column, _end_row, _end_column, kind, there, name in rows]


# Comparing


def score(edges: Iterable[Edge], targets: Targets) -> Score:
    """Hold a call graph against the edges."""
    result = Score(virtual=list(getattr(targets, "virtual", ())))
    lines: defaultdict[tuple[str, int], list[Edge]] = defaultdict(list)
    for edge in edges:
        lines[edge.file, edge.row].append(edge)
    for (file, row), made in lines.items():
        given = targets(file, row)
        result.lines += 1
        result.named += len(given)
        result.silent += not given
        for edge in made:
            result.made[edge.kind] += 1
            result.known[edge.kind] += edge.target in given
            if edge.target not in given:
                result.missed.append(edge)
    return result


def table(scores: Mapping[str, Score]) -> Iterator[str]:
    """The scores in Markdown."""
    yield f"| package | {' | '.join(KINDS)} | all | targets a line | lines without | targets of a virtual call |"
    yield f"|---|{'---:|' * (len(KINDS) + 4)}"
    for name, result in scores.items():
        shares = [f"{result.known[kind]} of {result.made[kind]} ({_percent(result.known[kind], result.made[kind])})" for kind in KINDS]
        shares.append(_percent(sum(result.known.values()), sum(result.made.values())))
        mean = result.named / max(result.lines, 1)
        virtual = f"{sum(result.virtual) / len(result.virtual):.1f}" if result.virtual else "-"
        yield f"| {name} | {' | '.join(shares)} | {mean:.1f} | {_percent(result.silent, result.lines)} | {virtual} |"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def graph_named(words: str) -> Callable[[Path], Targets]:
    """The maker of a call graph that ``MODULE:FUNCTION`` names."""
    module, _, function = words.partition(":")
    found: Callable[[Path], Targets] = getattr(importlib.import_module(module), function)
    return found


# Commands


def _record(pins: Sequence[Pin], corpus: Path, to: Path) -> None:
    if wrong := fetch_all(pins, corpus):
        raise CorpusError("; ".join(wrong))
    to.mkdir(parents=True, exist_ok=True)
    for pin in pins:
        print(record(pin, suites()[pin.name], corpus, to / f"{pin.tree}.json"), flush=True)


def _compare(pins: Sequence[Pin], words: argparse.Namespace) -> None:
    graph = graph_named(words.graph)
    scores: dict[str, Score] = {}
    for pin in pins:
        edges = words.to / f"{pin.tree}.json"
        if not edges.is_file():
            raise CorpusError(f"{pin.tree} is not recorded; run: python benchmarks/call_edges.py record {pin.name}")
        scores[pin.tree] = score(read_edges(edges), graph(words.corpus / pin.tree / suites()[pin.name].package))
    _print(scores, words.missed)


def _resolved(words: argparse.Namespace) -> None:
    scores: dict[str, Score] = {}
    for root in map(Path, words.names):
        edges = [Edge(file, row, kind, (there, name)) for file, row, kind, there, name in report(root, words.pyrefly)]
        targets = graph_named(words.graph)(root)
        scores[root.name] = score(edges, partial(_plain, targets))
        scores[root.name].virtual = list(getattr(targets, "virtual", ()))
    _print(scores, words.missed)


def _hold(words: argparse.Namespace) -> None:
    root, edges = map(Path, words.names)
    _print({root.name: score(read_edges(edges), graph_named(words.graph)(root))}, words.missed)


def _plain(targets: Targets, file: str, row: int) -> set[Target]:
    """Targets by their plain names."""
    return {(there, name.rpartition(".")[2]) for there, name in targets(file, row)}


def _print(scores: Mapping[str, Score], missed: int) -> None:
    print("\n".join(table(scores)))
    for name, result in scores.items():
        for edge in result.missed[:missed]:
            print(f"{name}: {edge.file}:{edge.row}: {edge.kind} {edge.target[0]}: {edge.target[1]}")


def main() -> int:
    """Run a command; 0 if all went well, else 2."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["record", "compare", "hold", "resolved"])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--corpus", type=Path, default=default_folder(), metavar="DIR", help="where trees are kept")
    parser.add_argument("--to", "--from", type=Path, metavar="DIR", help="where edges are kept; default: beside the trees")
    parser.add_argument("--graph", default="call_names:graph", metavar="MODULE:FUNCTION")
    parser.add_argument("--pyrefly", default="pyrefly", metavar="COMMAND")
    parser.add_argument(
        "--missed", type=int, default=0, metavar="N", help="print this many edges of a package that the graph does not know"
    )
    words = parser.parse_intermixed_args()
    words.to = words.to or words.corpus / "call_edges"
    try:
        if words.command in ("resolved", "hold"):
            (_resolved if words.command == "resolved" else _hold)(words)
            return 0
        pins = choose(read_pins(PINS), words.names)
        _record(pins, words.corpus, words.to) if words.command == "record" else _compare(pins, words)
    except (CorpusError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
