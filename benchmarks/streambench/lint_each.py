"""Lint each program of a tree by itself with streamlint, and print one SARIF log of all findings.

    python -m benchmarks.streambench.lint_each TREE [--rules widest|all|default] [--jobs 2]

A program is a folder `CASE/bad` or `CASE/clean`. No program sees another one: each is a run of `streamlint.lint` of its own, without a
cache. Rules: `default` are those that are on by default; `all` are all that have a code, with the default evidence; `widest` is
`--select ALL`, which also reports what is only possible.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.streambench.sarif import log, result
from streamlint import Settings, lint
from streamlint.checks.catalog import checks

RULES: dict[str, dict[str, Any]] = {
    "default": {},
    "all": {"select": sorted(entry.code for entry in checks())},
    "widest": {"select": ["ALL"]},
}


def look(folder: Path, rules: str) -> list[dict[str, Any]]:
    """The findings of one program, as results of SARIF; paths are absolute."""
    settings = replace(Settings.of(**RULES[rules]), root=folder, default_excludes=False, respect_gitignore=False)
    return [
        result(finding.code, finding.message, str(folder / finding.span.file), finding.span.row)
        for finding in lint([folder], settings).findings
    ]


def programs(tree: Path) -> list[Path]:
    """The programs of a tree, in a fixed order."""
    return sorted(path for case in tree.iterdir() if case.is_dir() for path in case.iterdir() if path.is_dir())


def main() -> int:
    """Lint all programs and print one log."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("--rules", choices=RULES, default="all")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    words = parser.parse_args()
    tree = words.tree.resolve()
    with multiprocessing.Pool(words.jobs) as pool:
        found = pool.imap(partial(look, rules=words.rules), programs(tree), chunksize=8)
        json.dump(log("streamlint", (each for results in found for each in results)), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
