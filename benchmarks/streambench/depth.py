"""Recall over the depth of helpers, the number of files and of irrelevant branches, and time over size; the record and its picture.

    python -m benchmarks.streambench.depth measure [--tool streamlint]     writes depth.json beside this file
    python -m benchmarks.streambench.depth picture                         writes docs/images/streambench-depth.svg; needs matplotlib

Every template whose second part may stand in a function is built at each point, so that all points of a curve have the same hazards.
Sizes: so many of the generated programs, drawn by a seed and put into one folder each, linted as one project.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.streambench.cases import BAD, SEED, Case, build, cases, write
from benchmarks.streambench.pieces import Template, read_templates
from benchmarks.streambench.score import answers, count, judge
from benchmarks.streambench.tools import ROOT, TOOLS, ask

RECORD = Path(__file__).with_name("depth.json")
PICTURE = ROOT / "docs/images/streambench-depth.svg"
POINTS = {"depth": range(1, 9), "files": range(1, 9), "branches": (0, 1, 2, 4, 8, 16, 32)}
LABELS = {"depth": "helpers in a chain", "files": "files, a helper each", "branches": "irrelevant branches"}
SIZES = (8, 16, 32, 64, 128, 256)


def suited() -> list[Template]:
    """The templates that stand in all three ways."""
    return [template for template in read_templates() if not template.only_ways and not set(POINTS) & template.without]


def points() -> Iterator[tuple[str, int, Case]]:
    """Each template at each point of each curve."""
    for way, values in POINTS.items():
        for value in values:
            for template in suited():
                depth, branches = (1, value) if way == "branches" else (value, 0)
                yield way, value, build(template, way, depth, SEED, branches)


def curves(tool: str) -> dict[str, Any]:
    """Per curve and language: point, found, of, flagged twins."""
    everything = list(points())
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve()
        for *_, case in everything:
            write(case, tree)
        log, seconds = ask(TOOLS[tool], tree)
        answer = answers(log, tree, TOOLS[tool].hazards)
    found: dict[str, Any] = {"seconds": round(seconds)}
    for way, values in POINTS.items():
        for language in ("Python", "C++"):
            rows = []
            for value in values:
                mine = [case for name, at, case in everything if (name, at) == (way, value) and _language(case) == language]
                row = count("", [judge(case, answer) for case in mine])
                rows.append([value, row.found, row.bad, row.flagged])
            found.setdefault(way, {})[language] = rows
    return found


def _language(case: Case) -> str:
    return "C++" if case.api in {"cuda-c++", "extension"} else "Python"


def sizes() -> list[list[float]]:
    """Lines, and seconds of processor time, of projects that hold more and more programs."""
    from streamlint import Settings, lint  # optional: other tools can be measured without it

    programs = list(cases())
    random.Random(SEED).shuffle(programs)
    rows = []
    for size in (SIZES[0], *SIZES):  # the first one warms up
        with tempfile.TemporaryDirectory() as folder:
            lines = 0
            for case in programs[:size]:
                write(case, Path(folder))
                lines += sum(text.count("\n") for text in case.bad.values())
            chosen = [str(path) for path in sorted(Path(folder).glob(f"*/{BAD}"))]
            start = time.process_time()
            lint(chosen, Settings.of(select=["SL"]))
            rows.append([lines, round(time.process_time() - start, 2)])
    return rows[1:]


def picture(record: dict[str, Any], to: Path = PICTURE) -> None:
    """Draw the curves of a record."""
    import matplotlib  # optional: the extra `bench`

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "streamlint"
    from matplotlib import pyplot  # optional: the extra `bench`

    pyplot.rcParams.update({"font.size": 9, "axes.edgecolor": "#888888", "text.color": "#888888", "axes.labelcolor": "#888888"})
    figure, axes = pyplot.subplots(1, 4, figsize=(12, 2.8), layout="constrained")
    for axis, way in zip(axes, POINTS, strict=False):
        for language, colour in (("Python", "#3d6fb4"), ("C++", "#c06030")):
            rows = record[way][language]
            at = range(len(rows)) if way == "branches" else [row[0] for row in rows]
            axis.plot(at, [100 * row[1] / row[2] for row in rows], marker="o", markersize=3, color=colour, label=language)
        if way == "branches":
            axis.set_xticks(range(len(POINTS[way])), [str(value) for value in POINTS[way]])
        axis.set_ylim(0, 102)
        axis.set_xlabel(LABELS[way])
    axes[0].set_ylabel("recall, %")
    axes[0].legend(frameon=False)
    axes[3].plot([row[0] for row in record["sizes"]], [row[1] for row in record["sizes"]], marker="o", markersize=3, color="#3d6fb4")
    axes[3].set_xlabel("lines of one project")
    axes[3].set_ylabel("seconds of processor time")
    for axis in axes:
        axis.tick_params(colors="#888888")
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(to, transparent=True, metadata={"Date": None})


def main() -> int:
    """Measure, or draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("measure", "picture"))
    parser.add_argument("--tool", choices=TOOLS, default="streamlint")
    words = parser.parse_args()
    if words.what == "measure":
        RECORD.write_text(json.dumps({"tool": words.tool, **curves(words.tool), "sizes": sizes()}, indent=1) + "\n", encoding="utf-8")
    else:
        picture(json.loads(RECORD.read_text(encoding="utf-8")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
