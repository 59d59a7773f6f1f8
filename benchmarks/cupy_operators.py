"""What was measured of CuPy's public functions, written as rows: ``streamlint/models/cupy_operators.toml``.

    python benchmarks/cupy_operators.py            what rows that are written by hand say otherwise
    python benchmarks/cupy_operators.py --write    make the rows anew

The measurements are those of ``cupy_waits.json``. A function that waited in all of its calls waits; of one that waited in some, and of one
that was not measured, nothing is said. Functions that no row by hand names get a row where the row of a pattern says something else.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from streamlint import models as shipped
from streamlint.models import Models, Row, builtin

MEASURED = Path(__file__).with_name("cupy_waits.json")
ROWS = Path(shipped.__file__).parent / "cupy_operators.toml"
HEAD = """# Observed: what calls of CuPy's public functions gave, and whether the host waited for the device in all of them.
# {gpu}, driver {driver}, CuPy {cupy}, {date}: benchmarks/cupy_operators.py writes this file from benchmarks/cupy_waits.json.
# Rows of files that are written by hand come first, rows by patterns last.
library = "cupy"
language = "python"
version = 1
fallback = true
"""
RESULTS = {
    "device array": "buffer", "host scalar": "scalar", "none": "none", "tuple of device array": "sequence",
    "tuple of device array, host scalar": "sequence",
}  # fmt: skip
SPARSE = "cupyx.scipy.sparse."
WIDTH = 138


def measured() -> dict[str, Any]:
    """The committed measurements."""
    found: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return found


def gives(found: dict[str, Any]) -> dict[str, list[str]]:
    """What each function that was measured gave, in the words of ``cupy_calls.kind_of``."""
    of = {name: list(one["gives"]) for kind in ("always", "some") for name, one in found[kind].items()}
    return of | {name: kinds.split(" | ") for kinds, names in found["never"].items() for name in names}


def by_hand(models: Models, name: str) -> Row | None:
    """The row that a file written by hand has for exactly this name."""
    return models.calls.get(name)


def row_of(found: dict[str, Any], models: Models, name: str) -> tuple[tuple[str, str], ...] | None:
    """The keys of a function's row; None where the row of a pattern says the same, or too little is known."""
    kinds = gives(found)[name]
    waits = name in found["always"]
    result = RESULTS.get(kinds[0]) if len(kinds) == 1 else None
    if by_hand(models, name) is not None or name.startswith(SPARSE) or result is None:
        return None
    if not waits and result == "scalar" and name not in found["some"]:
        return (("effect", "none"), ("result", "scalar"))
    if not waits and (result != "sequence" or name in found["some"]):
        return None
    keys = [("effect", "compute"), ("result", result)]
    if waits:
        keys.append(("waits", "true"))
    return (*keys, ("type", "cupy.ndarray")) if result in ("buffer", "sequence") else tuple(keys)


def written(found: dict[str, Any], models: Models) -> str:
    """The file, a row for all functions of which the same is said."""
    groups: dict[tuple[tuple[str, str], ...], list[str]] = defaultdict(list)
    for name in sorted(gives(found)):
        keys = row_of(found, models, name)
        if keys is not None:
            groups[keys].append(name)
    parts = [HEAD.format(**found["platform"])]
    for keys, names in sorted(groups.items()):
        lines, line = [], "   "
        for name in names:
            if len(line) + len(name) + 4 > WIDTH:
                lines.append(line)
                line = "   "
            line += f' "{name}",'
        said = "\n".join(f"{key} = {value}" if value == "true" else f'{key} = "{value}"' for key, value in keys)
        parts.append("\n".join(["", "[[call]]", "names = [", *lines, line, "]", said, ""]))
    return "".join(parts)


def otherwise(found: dict[str, Any], models: Models) -> list[str]:
    """Where rows that are written by hand say of waiting what was not measured."""
    lines = []
    for name in gives(found):
        row = by_hand(models, name)
        if row is None or row.effect not in ("compute", "read"):
            continue
        says = row.effect == "read" or bool(row.get("waits"))
        if says and name not in found["always"]:
            lines.append(f"{name}: the row waits, and the function {'sometimes' if name in found['some'] else 'never'}")
        if not says and name in found["always"]:
            lines.append(f"{name}: always waits, and the row does not")
    return lines


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        ROWS.write_text(written(measured(), builtin("python")), encoding="utf-8")
    else:
        print(*otherwise(measured(), builtin("python")), sep="\n")
