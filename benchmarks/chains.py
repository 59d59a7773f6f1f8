"""How many hazards are found when helpers carry them from a caller to an operation, over generated programs.

    python benchmarks/chains.py                                  992 programs of seed 1, a table
    python benchmarks/chains.py --seed 5 --count 2000 --json FILE
    python benchmarks/chains.py --select ALL                     other rules than those that are on
    python benchmarks/chains.py --read-all                       hand every file to the engine, whatever its text mentions
    python benchmarks/chains.py --only SL005 --missed            some programs; name those that went wrong

The programs are those of `tests/generated`: half are hazards, each followed by its harmless twin. A hazard is found when its code stands on
a line of the chain. All run in one process, without the cache.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from generated.judging import Outcome, checked, judge, read_whole  # noqa: E402
from generated.programs import HAZARDS, build, specs  # noqa: E402
from generated.texts import Spec  # noqa: E402

from streamlint import Settings  # noqa: E402

GROUPS = ("language", "rule", "depth", "placement", "names", "helpers", "kind of link", "kind of link, alone")


def outcomes(seed: int, count: int, settings: Settings, only: str = "", read_all: bool = False) -> Iterator[Outcome]:
    """What the linter says of each program of a seed."""
    look = read_whole if read_all else checked
    hazards = [name for name, hazard in HAZARDS.items() if only in name or only == hazard.code]
    for spec in specs(seed, count, hazards):
        program = build(spec)
        with tempfile.TemporaryDirectory() as folder:
            yield judge(program, look(program, Path(folder), settings))


def keys(spec: Spec) -> Iterator[tuple[str, str]]:
    """The groups that a program is counted in."""
    hazard = HAZARDS[spec.hazard]
    yield "language", hazard.language
    yield "rule", f"{hazard.code} {hazard.language}"
    yield "depth", str(spec.depth)
    yield "placement", f"{hazard.language} {spec.placement}"
    yield "names", spec.words
    yield "helpers", "padded" if spec.padded else "bare"
    for kind in dict.fromkeys(spec.links):
        yield "kind of link", f"{hazard.language} {kind}"
    if len(set(spec.links)) == 1:
        yield "kind of link, alone", f"{hazard.language} {spec.links[0]}"


def summary(results: Iterable[Outcome]) -> dict[str, Any]:
    """Counts: of all, and by group ``[found, hazards, flagged, look-alikes]``."""
    all_of_it, others = [0, 0, 0, 0], Counter[str]()
    groups: dict[str, dict[str, list[int]]] = {name: {} for name in GROUPS}
    wrong: list[str] = []
    for result in results:
        first = 2 if result.spec.harmless else 0
        for counts in (all_of_it, *(groups[group].setdefault(key, [0, 0, 0, 0]) for group, key in keys(result.spec))):
            counts[first] += result.reported
            counts[first + 1] += 1
        others.update(f"{code} beside {result.code}" for code in result.others)
        if not result.right:
            wrong.append(result.spec.id)
    ordered = {name: dict(sorted(table.items())) for name, table in groups.items()}
    return {"all": all_of_it, "by": ordered, "other findings": dict(sorted(others.items())), "wrong": wrong}


def table(told: dict[str, Any]) -> Iterator[str]:
    """The counts for people."""
    for group, rows in told["by"].items():
        yield f"\nby {group}"
        yield from (_row(key, counts) for key, counts in rows.items())
    yield f"\nother findings: {', '.join(f'{key} {count}' for key, count in told['other findings'].items()) or 'none'}"
    yield _row("all", told["all"])


def _row(key: str, counts: list[int]) -> str:
    found, hazards, flagged, alike = counts
    return f"{key:28} {found:4} of {hazards:4} found ({100 * found / max(hazards, 1):3.0f} %), {flagged:3} of {alike:4} look-alikes flagged"


def main() -> int:
    """Run the programs, print the table, and write the counts where asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=992, help="how many programs, look-alikes included")
    parser.add_argument("--select", nargs="+", metavar="CODE", help="rules, as for `streamlint check`")
    parser.add_argument("--only", default="", metavar="WORD", help="hazards of this rule, or whose name holds this")
    parser.add_argument("--read-all", action="store_true", help="hand every file to the engine, whatever its text mentions")
    parser.add_argument("--missed", action="store_true", help="name the programs that went wrong")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the counts there")
    words = parser.parse_args()
    settings = Settings.of(**({"select": words.select} if words.select else {}))
    start = time.process_time()
    told = {"seed": words.seed, "count": words.count, **summary(outcomes(words.seed, words.count, settings, words.only, words.read_all))}
    print("\n".join(table(told)))
    if words.missed:
        print("\n".join(["", *told["wrong"]]))
    print(f"{time.process_time() - start:.1f} s of CPU", file=sys.stderr)
    if words.json:
        words.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
