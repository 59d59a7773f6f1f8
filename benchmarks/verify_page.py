"""The table of docs/verify-h200.md, from runs of ``streamlint verify --output-format json``.

    python benchmarks/verify_page.py SELF.json RUN.json [RUN.json …] > table.md

``SELF.json`` is a run with ``--self-test``. Figures are ranges over the runs.
"""

from __future__ import annotations

import collections
import json
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from streamlint.verify.criteria import slope

Case = Mapping[str, Any]
Key = tuple[str, str, str]


def cases_of(path: Path) -> dict[Key, Case]:
    """The cases of a run by rule, name and API."""
    return {(case["rule"], case["case"], case["api"]): case for case in json.loads(path.read_text(encoding="utf-8"))["cases"]}


def span(values: Iterable[float], form: str = "{:.1f}") -> str:
    """``least to most``, or one figure where they read the same."""
    known = [value or 0 for value in values]  # no -0.0
    least, most = form.format(min(known)), form.format(max(known))
    return least if least == most else f"{least} to {most}"


def figures(runs: Sequence[Mapping[str, Any]]) -> str:
    """What the runs of one program showed."""
    first = runs[0]
    if "gate_ms" in first:
        return _waits(runs)
    if "wrong" in first:
        return f"{span((run['wrong'] for run in runs), '{}')} of {first['runs']} wrong"
    if "returned_before" in first:
        return f"other thread free in {span((run['returned_before'] for run in runs), '{}')} of {first['runs']}"
    if "started_before" in first:
        return f"B ran first in {span((run['started_before'] for run in runs), '{}')} of {first['runs']}"
    if "ended" in first:
        return "ended at once" if all(run["ended"] for run in runs) else f"not ended after {first['waited_s']:.0f} s, killed"
    if "ms" in first:
        return f"median {span((statistics.median(run['ms']) for run in runs), '{:.2f}')} ms"
    if "beats" in first:
        return f"other thread ran {span((beats for run in runs for beats in run['beats']), '{}')} times"
    return f"status {span((run['status'] for run in runs), '{}')}"


def _waits(runs: Sequence[Mapping[str, Any]]) -> str:
    slopes = [slope(run["gate_ms"], run["host_ms"]) or 0.0 for run in runs]
    text = f"slope {span((round(found, 2) for found in slopes), '{:.2f}')}"
    if max(slopes) > 0.5:
        late = [host - gate for run in runs for gate, host in zip(run["gate_ms"], run["host_ms"], strict=True)]
        return f"{text}; returns {span(late)} ms after the gate opens"
    return f"{text}; returns after {span(host for run in runs for host in run['host_ms'])} ms"


def rows(reverse: Mapping[Key, Case], runs: Sequence[Mapping[Key, Case]]) -> Iterable[str]:
    """A row of the table for each case that all runs have."""
    for key in sorted(runs[-1]):
        found = [run[key] for run in runs if key in run]
        verdicts = collections.Counter(case["verdict"] for case in found)
        decided = [case for case in found if case["misuse"] and case["remedy"] and "failure" not in {**case["misuse"], **case["remedy"]}]
        cells = (
            *key[:2],
            key[2],
            found[0]["prediction"],
            ", ".join(f"{verdict} {count}/{len(found)}" for verdict, count in verdicts.items()),
            figures([case["misuse"] for case in decided]) if decided else "",
            figures([case["remedy"] for case in decided]) if decided else "",
            span(case["seconds"] for case in found),
            reverse[key]["verdict"] if key in reverse else "",
        )
        yield "| " + " | ".join(cells) + " |"


def main(argv: Sequence[str]) -> int:
    """Print the table."""
    if len(argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    reverse, *runs = (cases_of(Path(name)) for name in argv)
    print("| rule | case | API | prediction | verdict | misuse | remedy | seconds | self-test |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in rows(reverse, runs):
        print(row)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
