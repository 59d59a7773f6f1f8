"""Python programs: a caller, a chain of helpers, and where each of them stands."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from generated.python_links import LINKS, Link, Made
from generated.texts import File, Hazard, Line, Names, Program, Spec, finish, indent, lines_of, plain

# One file; a file for each helper, every one of them with PyTorch; the same where files between the ends name nothing of CUDA; a folder
# with an `__init__` for each helper, which exports it again.
PLACEMENTS = ("file", "files", "plain-files", "packages")
_CALL = re.compile(r"CALL\((?P<value>[^()]*)\)")


@dataclass
class _Home:
    """A file that helpers stand in, and how another one imports from it."""

    path: str
    dotted: str
    file: File

    def imported(self, into: File, exports: Sequence[str], chance: random.Random) -> Callable[[str], str]:
        """Make the names known in another file; returns how they are said there."""
        if into is self.file:
            return lambda name: name
        parent, _, last = self.dotted.rpartition(".")
        if chance.random() < 0.6:
            into.need(f"from {self.dotted} import {', '.join(sorted(exports))}")
            return lambda name: name
        into.need(f"from {parent} import {last}" if parent else f"import {last}")
        return lambda name: f"{last}.{name}"


def build(spec: Spec, hazard: Hazard) -> Program:
    """The program of a spec."""
    names, chance = Names(spec.words, spec.number), random.Random(f"choices {spec.number}")
    entry = names.new()
    homes = _homes(spec, hazard, names)
    made: Made | None = None
    for depth in range(spec.depth, 0, -1):
        parameter, file = names.new(), homes[depth].file
        body = _body(spec, hazard, names, parameter, last=depth == spec.depth, chance=chance)
        if made is not None:
            body = _calling(body, made, homes[depth + 1], file, chance)
        made = LINKS[spec.links[depth - 1]](Link(names.new(), parameter, body, names, chance, hazard.carries))
        _put(file, made, hazard.imports if _needs_hazard(spec, depth) else ())
    assert made is not None
    top = _calling(lines_of(hazard.top, spec.harmless, names, {}), made, homes[1], homes[0].file, chance)
    homes[0].file.need(*hazard.imports)
    homes[0].file.lines += [*_gap(homes[0].file), Line(f"def {entry}():"), *indent(top)]
    homes[0].file.lines += plain("", "", 'if __name__ == "__main__":', f"    {entry}()")
    files = {home.path: _assembled(home.file) for home in homes}
    if spec.placement == "packages":
        files |= _exporting(homes)
    return finish(spec, hazard.code, files, (homes[0].path, entry))


def _homes(spec: Spec, hazard: Hazard, names: Names) -> list[_Home]:
    """The files of the caller and of each helper."""
    first = names.new()
    home = _Home(f"{first}.py", first, File())
    if spec.placement == "file":
        return [home] * (spec.depth + 1)
    homes = [home]
    outer = names.new()
    for _ in range(spec.depth):
        name = names.new()
        if spec.placement == "packages":
            inner = names.new()
            homes.append(_Home(f"{outer}/{name}/{inner}.py", f"{outer}.{name}", File()))
        else:
            homes.append(_Home(f"{name}.py", name, File()))
    return homes


def _needs_hazard(spec: Spec, depth: int) -> bool:
    """Whether a helper's file imports what the hazard is about: the last one does, those between where they are not to be plain."""
    return depth == spec.depth or spec.placement in {"files", "packages"}


def _body(spec: Spec, hazard: Hazard, names: Names, parameter: str, last: bool, chance: random.Random) -> list[Line]:
    if last:
        return lines_of(hazard.bottom, spec.harmless, names, {"x": parameter})
    got, other = names.new(), names.new()
    local = chance.random() < 0.3
    around = chance.choice(_PADDING) if spec.padded else ""
    lines = around or ("GOT = CALL(X)\nreturn GOT" if local else "return CALL(X)")
    known = {"X": parameter, "GOT": got, "OTHER": other}
    return plain(*re.sub(r"\b(?:X|GOT|OTHER)\b", lambda word: known[word[0]], lines).split("\n"))


# What helpers do besides: branches, loops and cleaning up that have nothing to do with the value.
_PADDING = (
    "if X is None:\n    return None\nreturn CALL(X)",
    "OTHER = 1\nif __debug__:\n    OTHER += 1\nelse:\n    OTHER -= 1\nGOT = CALL(X)\nreturn GOT",
    "try:\n    GOT = CALL(X)\nfinally:\n    OTHER = None\nreturn GOT",
    "OTHER = 0\nfor GOT in range(3):\n    OTHER += GOT\nreturn CALL(X)",
    'OTHER = {"rounds": 3}\nif "scale" in OTHER:\n    raise ValueError(OTHER)\nGOT = CALL(X)\nOTHER["rounds"] += 1\nreturn GOT',
)


def _calling(body: Sequence[Line], made: Made, home: _Home, file: File, chance: random.Random) -> list[Line]:
    """The body with the call of the next helper in place of ``CALL(value)``."""
    say = home.imported(file, made.exports, chance)
    file.need(*made.caller_imports)
    lines: list[Line] = []
    for line in body:
        if found := _CALL.search(line.text):
            before, expression = made.call(found["value"], say)
            margin = line.text[: len(line.text) - len(line.text.lstrip())]
            text = line.text[: found.start()] + expression + line.text[found.end() :]
            lines += [replace(step, differs=line.differs) for step in indent(before, margin)]
            line = replace(line, text=text, roles=(*line.roles, "call"))
        lines.append(line)
    return lines


def _put(file: File, made: Made, imports: Sequence[str]) -> None:
    file.need(*imports, *made.imports)
    file.lines += [*_gap(file), *made.lines]


def _gap(file: File) -> list[Line]:
    return plain("", "") if file.lines else []


def _assembled(file: File) -> list[Line]:
    """Imports, then the code."""
    lines = plain(*sorted(file.imports, reverse=True))
    return [*lines, *plain("", ""), *file.lines] if lines else list(file.lines)


def _exporting(homes: Sequence[_Home]) -> dict[str, list[Line]]:
    """The ``__init__`` of each folder, which exports what its one file defines."""
    found: dict[str, list[Line]] = {}
    for home in homes[1:]:
        folder, _, name = home.path.removesuffix(".py").rpartition("/")
        outer = folder.partition("/")[0]
        found[f"{outer}/__init__.py"] = plain('"""Helpers."""')
        exported = _exports(home.file)
        found[f"{folder}/__init__.py"] = plain(f"from .{name} import {', '.join(exported)}", "", f"__all__ = {exported}")
    return found


_DEFINED = re.compile(r"^(?:def|class) (?P<name>\w+)|^(?P<variable>\w+) = ")


def _exports(file: File) -> list[str]:
    """The names that a file defines at its outermost level."""
    found = (_DEFINED.match(line.text) for line in file.lines)
    return sorted({match["name"] or match["variable"] for match in found if match})
