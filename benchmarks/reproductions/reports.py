"""The patches of `docs/reports`: what a report proposes to the package's authors is what a reproduction runs as the repair."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

REPORTS = Path(__file__).parents[2] / "docs" / "reports"
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class PatchError(ValueError):
    """A patch that is not one, or that does not fit the text."""


@dataclass(frozen=True)
class Hunk:
    """Lines of a file, from ``start`` (counted from 1) on, and what takes their place."""

    path: str
    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]


def patch_of(name: str) -> str:
    """The unified diff that stands in a report. Raises PatchError where there is not exactly one."""
    found = re.findall(r"^```diff\n(.*?)^```$", (REPORTS / f"{name}.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    if len(found) != 1:
        raise PatchError(f"{name}: {len(found)} diffs")
    return str(found[0])


def hunks(patch: str) -> Iterator[Hunk]:
    """The hunks of a unified diff. Raises PatchError where the lines are not those that a header announces."""
    lines = iter(patch.splitlines())
    path = ""
    for line in lines:
        if line.startswith("--- a/"):
            path = line.removeprefix("--- a/")
        elif line.startswith("+++ b/"):
            if line.removeprefix("+++ b/") != path:
                raise PatchError(f"two names for one file: {path}, {line}")
        elif header := _HUNK.match(line):
            yield _body(path, header, lines)
        else:
            raise PatchError(f"neither a name nor a hunk: {line!r}")


def _body(path: str, header: re.Match[str], lines: Iterator[str]) -> Hunk:
    left, right = (int(header[group] or 1) for group in (2, 4))
    old: list[str] = []
    new: list[str] = []
    while len(old) < left or len(new) < right:
        line = next(lines, None)
        if line is None or line[:1] not in {" ", "-", "+", ""}:
            raise PatchError(f"{path}: {header[0]} ends early")
        if line[:1] != "+":
            old.append(line[1:])
        if line[:1] != "-":
            new.append(line[1:])
    if not path or len(old) != left or len(new) != right:
        raise PatchError(f"{path}: {header[0]} counts other lines")
    return Hunk(path, int(header[1]), tuple(old), tuple(new))


def patched(path: str, text: str, *names: str) -> str:
    """The text of a package's file with the patches of these reports in it, each made for the file as it was released.

    Raises PatchError where the file does not have the lines that a patch takes out, at their place.
    """
    lines = text.split("\n")
    found = [hunk for name in names for hunk in hunks(patch_of(name)) if hunk.path == path]
    for hunk in sorted(found, key=lambda each: each.start, reverse=True):
        place = slice(hunk.start - 1, hunk.start - 1 + len(hunk.old))
        if tuple(line.rstrip("\r") for line in lines[place]) != hunk.old:
            raise PatchError(f"{path}: line {hunk.start} is not what the patch was made for")
        lines[place] = list(hunk.new)
    return "\n".join(lines)


def module_of(tree: Path, path: str, *names: str, package: str = "") -> ModuleType:
    """A module of a package, loaded by itself from its source, with the patches of these reports (none: as it was released)."""
    text = (tree / path).read_text(encoding="utf-8")
    name = ".".join(filter(None, (package, f"{Path(path).stem}_{'repaired' if names else 'released'}")))
    spec = importlib.util.spec_from_loader(name, loader=None, origin=path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    module.__package__ = package
    module.__file__ = str(tree / path)
    sys.modules[name] = module
    exec(compile(patched(path, text, *names), path, "exec"), module.__dict__)
    return module
