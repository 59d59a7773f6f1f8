"""Run findings of the field notes on a GPU, in the released packages themselves, beside their repair.

    python benchmarks/reproduce.py [NAME…] [--trees DIR] [--output FILE]
    python benchmarks/reproduce.py --page        write the evidence into docs/field-notes.md and docs/reports; needs no GPU

NAME is a module of `reproductions/`. DIR holds unpacked packages (`precision.py` and `corpus.py` fetch them). Each package runs in a
process of its own with a deadline; those that measure time run alone, after the others. Needs PyTorch with CUDA; nvcc for the packages in
C++; gymnasium and what else the package itself imports. Exits 1 if one could not be run, 2 without a GPU.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import corpus
import reproductions
from reproductions.reports import REPORTS

EVIDENCE = Path(__file__).parent / "reproductions" / "evidence.json"
PAGE = Path(__file__).parents[1] / "docs" / "field-notes.md"
OUTPUT = re.compile(r"(<!-- output: (\S+) (\S+) -->\n).*?(<!-- /output -->\n)", re.DOTALL)
BEGIN, END = "<!-- reproduced -->\n", "<!-- /reproduced -->\n"
DEADLINE_S = 400.0


def child(name: str, trees: Path) -> dict[str, Any]:
    """What one package gave, or why it gave nothing."""
    command = [sys.executable, __file__, "--child", name, "--trees", str(trees)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    except subprocess.TimeoutExpired:
        return {"failure": f"did not end within {DEADLINE_S:.0f} s"}
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        said = done.stderr.splitlines()
        errors = [line for line in said if "error" in line][:5]
        return {"failure": f"status {done.returncode}: {' / '.join([*errors, '…', *said[-6:]])}"}
    outcome: dict[str, Any] = json.loads(lines[-1])
    return outcome


def asked(name: str, trees: Path) -> None:
    """Run one package here, and print its outcome as the last line."""
    module = importlib.import_module(f"reproductions.{name}")
    places = module.run(trees / f"{module.PACKAGE}-{module.VERSION}")
    print(
        "\n" + json.dumps({"package": module.PACKAGE, "version": module.VERSION, "stands_in": module.STANDS_IN, "places": places}),
        flush=True,
    )
    os._exit(0)  # a context that has seen a fault may not end in an orderly way


def platform() -> dict[str, str] | None:
    """The GPU and what runs on it; None where there is none."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        gpu, _, driver = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0].partition(", ")
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None
    versions = subprocess.run(
        [sys.executable, "-c", "import torch; print(torch.__version__, torch.version.cuda)"], capture_output=True, text=True, check=False
    ).stdout.split()
    if len(versions) != 2:
        return None
    return {"gpu": gpu, "driver": driver, "torch": versions[0], "cuda": versions[1], "date": datetime.date.today().isoformat()}


def figure(outcome: dict[str, Any]) -> str:
    """One side of a row."""
    if "trials" in outcome:
        errors = "".join(f"; `{error}`" for error in outcome.get("errors", ()))
        return f"{outcome['wrong']} of {outcome['trials']} wrong{errors}"
    return f"{outcome['ms_a_step']:.2f} ms a step ({outcome['least']:.2f} to {outcome['most']:.2f})"


def table(evidence: dict[str, Any]) -> str:
    """The evidence as Markdown: a row a place, what stood in, and where it ran."""
    lines = ["| package | place | as released | repaired |", "| --- | --- | --- | --- |"]
    runs, stand_ins = set(), []
    for entry in sorted(evidence.values(), key=lambda each: str(each["package"])):
        release = f"{entry['package']} {entry['version']}"
        for place, sides in entry["places"].items():
            path, _, where = place.partition(" ") if " " in place else (place, "", "")
            shown = f"`{path.rstrip(',')}`" + (f" {where}" if where else "")
            lines.append(f"| {release} | {shown} | {figure(sides['released'])} | {figure(sides['repaired'])} |")
        if entry["stands_in"]:
            stand_ins.append(f"* {release}: {entry['stands_in']}.")
        facts = entry["platform"]
        runs.add(f"{facts['gpu']}, driver {facts['driver']}, PyTorch {facts['torch']}, {facts['date']}")
    measured = "Wrong results of 20 calls; times are medians of nine rounds, with the least and the most."
    return "\n".join([*lines, "", f"{measured} Measured on: {'; '.join(sorted(runs))}.", "", *stand_ins, ""])


def with_table(page: str, evidence: dict[str, Any]) -> str:
    """The page with its table made anew."""
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"no {BEGIN.strip()} … {END.strip()} in the page")
    return f"{before}{BEGIN}\n{table(evidence)}\n{END}{after}"


def with_output(report: str, evidence: dict[str, Any]) -> str:
    """A report with what its reproduction gave: the places that begin as its marker says."""

    def output(marker: re.Match[str]) -> str:
        entry = evidence.get(marker[2])
        if entry is None:
            return f"{marker[1]}\nNot run on a GPU yet.\n\n{marker[4]}"
        lines = ["| place | as released | with the patch |", "| --- | --- | --- |"]
        for place, sides in entry["places"].items():
            if place.startswith(marker[3]):
                lines.append(f"| {place} | {figure(sides['released'])} | {figure(sides['repaired'])} |")
        facts = entry["platform"]
        ran = f"{facts['gpu']}, driver {facts['driver']}, PyTorch {facts['torch']}, CUDA {facts['cuda']}, {facts['date']}."
        if entry["stands_in"]:
            ran += f" In this run {entry['stands_in']}."
        return "\n".join([marker[1], *lines, "", f"Run by `python benchmarks/reproduce.py {marker[2]}`. {ran}", "", marker[4]])

    return OUTPUT.sub(output, report)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run findings of the field notes on a GPU, beside their repair.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(reproductions.MODULES)} (default: all)")
    parser.add_argument("--trees", type=Path, default=corpus.default_folder(), metavar="DIR", help="unpacked packages")
    parser.add_argument("--output", type=Path, default=EVIDENCE, metavar="FILE", help="the evidence; packages that are not run keep theirs")
    parser.add_argument("--page", action="store_true", help="write the evidence into the documents, and run nothing")
    parser.add_argument("--child", choices=reproductions.MODULES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        asked(options.child, options.trees)
    if options.page:
        text = with_table(PAGE.read_text(encoding="utf-8"), json.loads(options.output.read_text(encoding="utf-8")))
        PAGE.write_text(text, encoding="utf-8")
        for report in sorted(REPORTS.glob("*.md")):
            text = with_output(report.read_text(encoding="utf-8"), json.loads(options.output.read_text(encoding="utf-8")))
            report.write_text(text, encoding="utf-8")
        return 0
    if unknown := set(options.names) - set(reproductions.MODULES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    facts = platform()
    if facts is None:
        print("reproduce.py: no GPU, or no PyTorch that sees one", file=sys.stderr)
        return 2
    names = options.names or list(reproductions.MODULES)
    alone = [name for name in names if getattr(importlib.import_module(f"reproductions.{name}"), "ALONE", False)]
    with ThreadPoolExecutor() as pool:
        together = [name for name in names if name not in alone]
        outcomes = dict(zip(together, pool.map(lambda name: child(name, options.trees), together), strict=True))
    outcomes |= {name: child(name, options.trees) for name in alone}
    kept = json.loads(options.output.read_text(encoding="utf-8")) if options.output.exists() else {}
    for name, outcome in outcomes.items():
        print(name, json.dumps(outcome, indent=1))
        if "failure" not in outcome:
            kept[name] = {**outcome, "platform": facts}
    options.output.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return int(any("failure" in outcome for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
