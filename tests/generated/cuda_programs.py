"""Programs in CUDA C++: a caller, a chain of helpers, and where each of them stands."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from generated.cuda_links import LINKS, Link, Made
from generated.texts import File, Hazard, Line, Names, Program, Spec, finish, indent, lines_of, plain

# One file; a header for each helper; the same where headers between the ends name nothing of CUDA; headers in folders behind a header
# that includes them all.
PLACEMENTS = ("file", "files", "plain-files", "packages")
_CALL = re.compile(r"CALL\((?P<value>[^()]*)\)")


@dataclass
class _Home:
    """A file that helpers stand in, and how another one includes it."""

    path: str
    included: str
    file: File


def build(spec: Spec, hazard: Hazard) -> Program:
    """The program of a spec."""
    names, chance = Names(spec.words, spec.number), random.Random(f"choices {spec.number}")
    entry = names.new()
    homes = _homes(spec, names)
    drawn: dict[str, str] = {}
    kernel = lines_of(hazard.above, spec.harmless, names, drawn)
    common = File(list(hazard.imports), kernel)
    known = {key: name for key, name in drawn.items() if key == "work"}
    made: Made | None = None
    for depth in range(spec.depth, 0, -1):
        parameter, file, last = names.new(), homes[depth].file, depth == spec.depth
        body = _half(hazard.bottom, spec, names, {"x": parameter, **known}) if last else _between(spec, hazard, names, parameter, chance)
        if made is not None:
            body = _calling(body, made, homes[depth + 1], file)
        made = LINKS[spec.links[depth - 1]](Link(names.new(), parameter, body, names, hazard.type))
        file.need(*(hazard.imports[:1] if last or spec.placement != "plain-files" else ()), *made.imports)
        file.lines += [*(plain("") if file.lines else []), *made.lines]
    assert made is not None
    top = _calling(_half(hazard.top, spec, names, dict(known)), made, homes[1], homes[0].file)
    homes[0].file.lines += [*plain(""), Line(f"{hazard.type} {entry}() {{"), *indent(top), Line("}")]
    homes[0].file.lines += plain("", "int main() {", f"    {entry}();", "    return 0;", "}")
    return finish(spec, hazard.code, _assembled(spec, homes, common, names), (homes[0].path, entry))


def _half(template: str, spec: Spec, names: Names, known: dict[str, str]) -> list[Line]:
    return [line for line in lines_of(template, spec.harmless, names, known) if line.text]


def _homes(spec: Spec, names: Names) -> list[_Home]:
    home = _Home(f"{names.new()}.cu", "", File())
    if spec.placement == "file":
        return [home] * (spec.depth + 1)
    homes, outer = [home], names.new()
    for depth in range(1, spec.depth + 1):
        suffix = "h" if spec.placement == "plain-files" and depth < spec.depth else "cuh"
        name = names.new()
        if spec.placement == "packages":
            homes.append(_Home(f"{outer}/{name}/{name}.{suffix}", f"{outer}/{outer}.cuh", File()))
        else:
            homes.append(_Home(f"{name}.{suffix}", f"{name}.{suffix}", File()))
    return homes


# What helpers do besides: branches and loops that have nothing to do with the value.
_PADDING = (
    "int OTHER = 0;\nif (X != nullptr) {\n    ++OTHER;\n}\nreturn CALL(X);",
    "int OTHER = 0;\nfor (int ROUND = 0; ROUND < 3; ++ROUND) {\n    OTHER += ROUND;\n}\nTYPE GOT = CALL(X);\nreturn GOT;",
    "int OTHER = sizeof(X);\nif (OTHER > 4) {\n    OTHER = 2;\n} else {\n    OTHER = 3;\n}\nTYPE GOT = CALL(X);\nreturn GOT;",
)


def _between(spec: Spec, hazard: Hazard, names: Names, parameter: str, chance: random.Random) -> list[Line]:
    known = {"X": parameter, "TYPE": hazard.type, "GOT": names.new(), "OTHER": names.new(), "ROUND": names.new()}
    local = chance.random() < 0.3
    around = chance.choice(_PADDING) if spec.padded else ""
    text = around or ("TYPE GOT = CALL(X);\nreturn GOT;" if local else "return CALL(X);")
    return plain(*re.sub(r"\b(?:X|TYPE|GOT|OTHER|ROUND)\b", lambda word: known[word[0]], text).split("\n"))


def _calling(body: Sequence[Line], made: Made, home: _Home, file: File) -> list[Line]:
    """The body with the call of the next helper in place of ``CALL(value)``."""
    if home.file is not file and not home.included.endswith(f"/{home.included.partition('/')[0]}.cuh"):
        file.need(f'#include "{home.included}"')
    lines: list[Line] = []
    for line in body:
        if found := _CALL.search(line.text):
            before, expression = made.call(found["value"])
            margin = line.text[: len(line.text) - len(line.text.lstrip())]
            text = line.text[: found.start()] + expression + line.text[found.end() :]
            lines += [replace(step, differs=line.differs) for step in indent(before, margin)]
            line = replace(line, text=text, roles=(*line.roles, "call"))
        lines.append(line)
    return lines


def _assembled(spec: Spec, homes: Sequence[_Home], common: File, names: Names) -> dict[str, list[Line]]:
    """Files by name, with the kernel where both ends can see it."""
    if spec.placement == "file":
        whole = File(list(common.imports))
        whole.need(*homes[0].file.imports)
        return {homes[0].path: [*plain(*whole.imports, ""), *common.lines, Line(""), *homes[0].file.lines]}
    shared = f"{names.new()}.cuh"
    files = {shared: [*plain("#pragma once", *common.imports, ""), *common.lines]}
    for depth, home in enumerate(homes):
        ends = depth in (0, spec.depth)
        up = "../" * home.path.count("/")
        includes = [f'#include "{up}{shared}"'] if ends else []
        if spec.placement == "packages" and depth == 0:
            includes.append(f'#include "{homes[1].included}"')
        head = plain(*([] if depth == 0 else ["#pragma once"]), *home.file.imports, *includes, "")
        files[home.path] = [*head, *home.file.lines]
    if spec.placement == "packages":
        outer = homes[1].included
        folder = outer.partition("/")[0]
        listed = [f'#include "{home.path.removeprefix(f"{folder}/")}"' for home in reversed(homes[1:])]
        files[outer] = plain("#pragma once", *listed)
    return files
