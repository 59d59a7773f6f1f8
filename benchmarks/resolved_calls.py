"""The calls within a package that pyrefly resolves, from the report that it writes for Pysa.

A call is told by its line and by the file and plain name of the function that it reaches: the report numbers functions, and spells no
qualified names.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Call = tuple[str, int, str, str, str]  # file, row, kind, callee's file, its plain name
_KINDS = {"call_targets": "call", "init_targets": "construct", "new_targets": "construct", "property_getters": "implicit"}


def report(root: Path, pyrefly: str) -> list[Call]:
    """Run pyrefly on a package and return the calls that it resolves in it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [pyrefly, "check", "--report-pysa", folder, "--report-pysa-format", "json", str(root)]
        done = subprocess.run(command, capture_output=True, text=True)  # fails where the package has type errors
        modules = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(folder, "call_graphs").glob("*.json"))]
    if not modules:
        raise ValueError(f"pyrefly wrote no report: {done.stderr.strip()[-300:]}")
    return sorted(set(calls(modules, root.resolve())))


def calls(modules: list[dict[str, Any]], root: Path) -> Iterator[Call]:
    """The calls from and to files below a folder, by the report's modules."""
    files: dict[int, str] = {}
    for module in modules:
        path = Path(module["source_path"].get("FileSystem", ""))
        if path.is_relative_to(root):
            files[module["module_id"]] = path.relative_to(root).as_posix()
    for module in modules:
        for places in module["call_graphs"].values() if module["module_id"] in files else ():
            for place, found in places.items():
                for key in ("Call", "AttributeAccess"):
                    for kind, target in _targets(found.get(key, {})):
                        if target["module_id"] in files and not target["function_id"].startswith("CF:"):
                            row = int(place.partition(":")[0])
                            yield files[module["module_id"]], row, kind, files[target["module_id"]], target["function_name"]


def _targets(found: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a call or an attribute reaches; methods that a dataclass generates (``CF:``) have no code."""
    for group, kind in _KINDS.items():
        for one in found.get(group, ()):
            target = one["target"]
            held = target.get("Function") or target.get("Overrides") if isinstance(target, dict) else None
            if isinstance(held, dict) and "function_id" in held:
                yield kind, held
