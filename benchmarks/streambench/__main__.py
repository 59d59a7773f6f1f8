"""StreamBench.

python -m benchmarks.streambench run --tool streamlint [--track micro quiet] [--only TEXT] [--every-way] [--json FILE] [--missed]
python -m benchmarks.streambench generate --output DIR
python -m benchmarks.streambench score SARIF --tree DIR --tool NAME
python -m benchmarks.streambench list [--only TEXT]
python -m benchmarks.streambench oracle --tree DIR --output FILE          on a GPU
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.streambench.cases import SEED, Case, write
from benchmarks.streambench.oracle import ask_all
from benchmarks.streambench.pieces import BenchError
from benchmarks.streambench.score import Outcome, answers, count, judge, rows, table
from benchmarks.streambench.tools import TOOLS, ask
from benchmarks.streambench.tracks import OWN, TRACKS, read


def chosen(words: argparse.Namespace) -> list[Case]:
    """The cases that the command line asks for."""
    read_cases = read(words.track, words.seed, words.mirrors, words.every_way)
    found = [case for case in read_cases if words.only in f"{case.name} {case.hazard} {case.api} {case.way}"]
    if not found:
        raise BenchError(f"no case holds {words.only!r}")
    return found


def told(outcomes: Sequence[Outcome], seconds: float) -> Iterator[str]:
    """The tables of a run."""
    for track in TRACKS:
        if mine := [outcome for outcome in outcomes if outcome.case.track == track]:
            yield f"\n## {track}: {len(mine)} cases\n"
            yield from table("hazard", [*rows(mine, lambda case: case.hazard), count("all", mine)])
            if track == "micro":
                for title, key in (("API", lambda case: case.api), ("way", _way)):
                    yield ""
                    yield from table(title, rows(mine, key))
    yield f"\n{seconds:.0f} s"


def _way(case: Case) -> str:
    kind = "C++" if case.api in {"cuda-c++", "extension"} else "Python"
    return f"{kind} {case.way}"


def wrong(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The cases that went wrong, by name."""
    for outcome in outcomes:
        if outcome.case.bad and not outcome.found:
            yield f"missed {outcome.case.name}{' (reported elsewhere)' if outcome.elsewhere else ''}"
        if outcome.flagged:
            yield f"flagged {outcome.case.name}"


def record(tool: str, seconds: float, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The counts of a run: found, bad, flagged, clean by track and group."""
    groups: dict[str, Any] = {}
    for track in TRACKS:
        mine = [outcome for outcome in outcomes if outcome.case.track == track]
        for title, key in (("hazard", lambda case: case.hazard), ("api", lambda case: case.api), ("way", _way)):
            groups.setdefault(track, {})[title] = {row.name: [row.found, row.bad, row.flagged, row.clean] for row in rows(mine, key)}
    return {"tool": tool, "seconds": round(seconds), "tracks": groups}


def run(words: argparse.Namespace) -> int:
    """Write the cases to a folder, ask a tool about them, and score it."""
    cases = chosen(words)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve()
        for case in cases:
            write(case, tree)
        log, seconds = ask(TOOLS[words.tool], tree)
        return _report(words, cases, log, tree, seconds)


def score(words: argparse.Namespace) -> int:
    """Score a SARIF log of a tree that was generated before."""
    log = json.loads(words.sarif.read_text(encoding="utf-8"))
    return _report(words, chosen(words), log, words.tree.resolve(), 0.0)


def _report(words: argparse.Namespace, cases: Sequence[Case], log: dict[str, Any], tree: Path, seconds: float) -> int:
    answer = answers(log, tree, TOOLS[words.tool].hazards)
    outcomes = [judge(case, answer) for case in cases]
    print("\n".join(told(outcomes, seconds)))
    if words.missed:
        print("\n".join(wrong(outcomes)))
    if words.json:
        told_of = record(words.tool, seconds, outcomes) | ({"wrong": list(wrong(outcomes))} if words.missed else {})
        words.json.write_text(json.dumps(told_of, indent=1) + "\n", encoding="utf-8")
    return 0


def generate(words: argparse.Namespace) -> int:
    """Write the cases."""
    for case in chosen(words):
        write(case, words.output)
    return 0


def listed(words: argparse.Namespace) -> int:
    """Name the cases."""
    for case in chosen(words):
        print(f"{case.track:6} {case.hazard} {case.api:12} {case.way:20} {case.name}")
    return 0


def asked(words: argparse.Namespace) -> int:
    """Ask a GPU about the cases of a tree."""
    ask_all(words.tree, words.output, words.jobs, words.seconds)
    return 0


def main(words: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code, 2 for what cannot be done."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--track", nargs="+", choices=TRACKS, default=list(OWN))
    common.add_argument("--only", default="", metavar="TEXT", help="cases whose name, hazard, API or way holds the text")
    common.add_argument("--mirrors", type=Path, metavar="DIR", help="clones of repositories, for the track fixes")
    common.add_argument("--seed", type=int, default=SEED)
    common.add_argument("--every-way", action="store_true", help="each template in all ways, not in a sample of the further ones")
    answering = argparse.ArgumentParser(add_help=False, parents=[common])
    answering.add_argument("--tool", choices=TOOLS, default="streamlint")
    answering.add_argument("--missed", action="store_true", help="name the cases that went wrong, in the JSON file as well")
    answering.add_argument("--json", type=Path, metavar="FILE", help="write the counts there, too")
    parser = argparse.ArgumentParser(prog="streambench", description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    commands.add_parser("run", parents=[answering], help="ask a tool about all cases, and score it").set_defaults(act=run)
    scoring = commands.add_parser("score", parents=[answering], help="score a SARIF log of a generated tree")
    scoring.add_argument("sarif", type=Path)
    scoring.add_argument("--tree", type=Path, required=True)
    scoring.set_defaults(act=score)
    making = commands.add_parser("generate", parents=[common], help="write all cases, with a YAML each")
    making.add_argument("--output", type=Path, required=True, metavar="DIR")
    making.set_defaults(act=generate)
    commands.add_parser("list", parents=[common], help="name the cases").set_defaults(act=listed)
    asking = commands.add_parser("oracle", help="ask a GPU about the cases of a generated tree")
    asking.add_argument("--tree", type=Path, required=True, metavar="DIR")
    asking.add_argument("--output", type=Path, required=True, metavar="FILE")
    asking.add_argument("--jobs", type=int, default=4)
    asking.add_argument("--seconds", type=float, default=600)
    asking.set_defaults(act=asked)
    options = parser.parse_args(words)
    try:
        return int(options.act(options))
    except (BenchError, OSError) as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
