"""Whether ``streamlint verify`` says the same each time: runs it N times and writes ``docs/verify-repeat.md``.

    python benchmarks/verify_repeat.py --runs 20 --keep runs/ > docs/verify-repeat.md

Each run is a process of its own and leaves its JSON in ``--keep``; runs that lie there already count, so that twenty need not be made in
one sitting (``--runs 0`` only writes the page). The first run after ``--cold`` empties the cache of compiled templates.
"""

from __future__ import annotations

import argparse
import collections
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Run = Mapping[str, Any]
Key = tuple[str, str, str]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=20, help="how many more; default: 20")
    parser.add_argument("--keep", type=Path, default=Path("verify-runs"), metavar="DIR", help="where the runs' JSON lies")
    parser.add_argument("--cold", action="store_true", help="empty the cache of compiled templates before the first")
    parser.add_argument("rest", nargs="*", help="further options of verify, after --")
    options = parser.parse_args(words)
    options.keep.mkdir(parents=True, exist_ok=True)
    if options.cold:
        from streamlint.verify.device import cache_folder

        shutil.rmtree(cache_folder(), ignore_errors=True)
    for number in range(options.runs):
        once(options.keep, cold=options.cold and number == 0, rest=options.rest)
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(options.keep.glob("run-*.json"))]
    print(page(runs))
    return 0 if runs and not changed(runs) else 1


def once(folder: Path, *, cold: bool, rest: Sequence[str]) -> None:
    """One run, with its whole time beside its cases."""
    path = folder / f"run-{len(list(folder.glob('run-*.json'))) + 1:03}.json"
    scratch = path.with_suffix(".part")
    command = [sys.executable, "-m", "streamlint.verify", "--no-save", "--quiet", "--output-format", f"json:{scratch}", *rest]
    started = time.perf_counter()
    done = subprocess.run(command, check=False)
    spent = time.perf_counter() - started
    if done.returncode == 2 or not scratch.exists():
        raise SystemExit(f"run {path.stem} ended with status {done.returncode}")
    content = {**json.loads(scratch.read_text(encoding="utf-8")), "wall_s": round(spent, 1), "cold": cold}
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    scratch.unlink()
    print(f"{path.stem}: {spent:.0f} s{', cold' if cold else ''}", file=sys.stderr, flush=True)


def by_case(runs: Sequence[Run]) -> dict[Key, list[Mapping[str, Any]]]:
    """Each case's results, in order of the runs."""
    found: dict[Key, list[Mapping[str, Any]]] = collections.defaultdict(list)
    for run in runs:
        for case in run["cases"]:
            found[case["rule"], case["case"], case["api"]].append(case)
    return dict(sorted(found.items()))


def changed(runs: Sequence[Run]) -> list[Key]:
    """Cases with more than one verdict."""
    return [key for key, cases in by_case(runs).items() if len({case["verdict"] for case in cases}) > 1]


def rule_seconds(run: Run) -> dict[str, float]:
    """What each rule's programs took in a run, without the start of their processes and without builds."""
    found: dict[str, float] = collections.defaultdict(float)
    for case in run["cases"]:
        found[case["rule"]] += case["seconds"]
    return found


def page(runs: Sequence[Run]) -> str:
    """The page in Markdown."""
    if not runs:
        return "No runs.\n"
    cases, other = by_case(runs), changed(runs)
    platform = runs[-1]["platform"]
    whole = f"{platform['gpu']}, driver {platform['driver']}, CUDA {platform['cuda_runtime']}"
    same = f"the same verdict in each of {len(runs)} runs" if not other else f"{len(other)} of {len(cases)} cases changed their verdict"
    packages = ", ".join(f"{name} {version}" for name, version in platform["packages"].items())
    lines = [
        "# The same verdicts each time",
        "",
        f"{len(runs)} runs of `streamlint verify` on {whole}: {len(cases)} cases, {same}. Python {platform['python']}, {packages}.",
        "Made by `benchmarks/verify_repeat.py`.",
        "",
        "| runs | whole time in s, least to most | longest rule |",
        "|---|---|---|",
    ]
    for name, wanted in (("cold: templates are compiled", True), ("warm", False)):
        if chosen := [run for run in runs if bool(run.get("cold")) is wanted]:
            lines.append(f"| {name}: {len(chosen)} | {_span([run['wall_s'] for run in chosen])} | {_longest(chosen)} |")
    lines += ["", "| rule | case | API | verdicts | seconds, median | most |", "|---|---|---|---|---|---|"]
    for key, results in cases.items():
        found = collections.Counter(case["verdict"] for case in results)
        verdicts = ", ".join(f"{verdict} {count}/{len(results)}" for verdict, count in found.items())
        seconds = [case["seconds"] for case in results]
        lines.append(f"| {' | '.join(key)} | {verdicts} | {statistics.median(seconds):.1f} | {max(seconds):.1f} |")
    return "\n".join([*lines, *_why(cases, other)])


def _why(cases: Mapping[Key, Sequence[Mapping[str, Any]]], other: Sequence[Key]) -> list[str]:
    """What the runs said that differ from most."""
    if not other:
        return []
    lines = ["", "## What differed", ""]
    for key in other:
        usual = collections.Counter(case["verdict"] for case in cases[key]).most_common(1)[0][0]
        said = {f"{case['verdict']}: {case['reason']}" for case in cases[key] if case["verdict"] != usual}
        lines += [f"* {' · '.join(key)}: {reason}" for reason in sorted(said)]
    return lines


def _span(values: Sequence[float]) -> str:
    least, most = f"{min(values):.0f}", f"{max(values):.0f}"
    return least if least == most else f"{least} to {most}"


def _longest(runs: Sequence[Run]) -> str:
    most = max(((seconds, rule) for run in runs for rule, seconds in rule_seconds(run).items()), default=(0.0, ""))
    return f"{most[1]}, {most[0]:.1f} s"


if __name__ == "__main__":
    raise SystemExit(main())
