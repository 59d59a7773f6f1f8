"""What programs are made of: lines with a role, names, hazards, and the files that come of them."""

from __future__ import annotations

import builtins
import keyword
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from rename import MISLEADING

Place = tuple[str, int]  # file, row


@dataclass(frozen=True)
class Spec:
    """What one program is made of; ``links`` are the kinds of its helpers, from the top."""

    hazard: str
    links: tuple[str, ...]
    placement: str
    harmless: bool = False
    words: str = "neutral"  # neutral, misleading
    number: int = 0  # names and small choices follow from it
    padded: bool = False  # whether the helpers between do something else as well

    @property
    def depth(self) -> int:
        return len(self.links)

    @property
    def id(self) -> str:
        """Short, and the same for the same program."""
        kinds = self.links[0] if len(set(self.links)) == 1 else "+".join(self.links)
        kind = "harmless " if self.harmless else ""
        padded = " padded" if self.padded else ""
        return f"{kind}{self.hazard} {self.depth} {kinds} {self.placement} {self.words} {self.number}{padded}"


@dataclass(frozen=True)
class Line:
    """A line of a program. Roles: ``source`` and ``sink`` of the hazard, ``call`` of the next helper."""

    text: str
    roles: tuple[str, ...] = ()
    differs: bool = False  # stands in the hazard or in its look-alike alone

    def indented(self, by: str) -> Line:
        return replace(self, text=f"{by}{self.text}" if self.text else "")


@dataclass(frozen=True)
class Hazard:
    """Two halves: ``top`` is the body of the caller, with one ``CALL(value)``; ``bottom`` that of the last helper, of ``$x``.

    A line ends with its marks: ``#: source``, ``#: sink``, ``#: bad`` and ``#: good``. Names that begin with ``$`` are drawn.
    """

    name: str
    code: str
    top: str
    bottom: str
    language: str = "python"
    imports: tuple[str, ...] = ("import torch",)
    carries: str = "argument"  # or result: which way the value goes that makes it a hazard
    without: frozenset[str] = frozenset()  # kinds of links and placements that it has no use for
    above: str = ""  # what stands before the caller, in its file
    type: str = "float*"  # of the value, in C++


@dataclass(frozen=True)
class Program:
    """Files by name; the code that is expected, none for a look-alike, and the places that it may stand on."""

    spec: Spec
    code: str
    files: dict[str, str]
    entry: tuple[str, str]  # file, function
    places: dict[str, tuple[Place, ...]]  # by role
    differing: frozenset[Place]

    @property
    def chain(self) -> frozenset[Place]:
        """Where the finding may stand: the two halves, and the calls between them."""
        return frozenset(place for places in self.places.values() for place in places)


# Names ------------------------------------------------------------------------------------------------------------------------

_TAKEN = {*keyword.kwlist, *dir(builtins), "self", "cls", "torch", "cp", "np", "main", *"int float auto this new".split()}
_HEADS, _VOWELS = "b br d f g gl h j k l m n p r s t v w z".split(), "aeiou"


class Names:
    """Draws names that are not taken yet. What they are made of says nothing, or misleads whoever reads words."""

    def __init__(self, words: str, number: int) -> None:
        self._chance = random.Random(f"names {number}")
        self._taken = set(_TAKEN)
        self._misleading = [word.lower() for word in MISLEADING] if words == "misleading" else []

    def new(self) -> str:
        while True:
            word = self._drawn()
            if word not in self._taken:
                self._taken.add(word)
                return word

    def big(self) -> str:
        """The name of a class."""
        return self.new().title().replace("_", "")

    def _drawn(self) -> str:
        if self._misleading:
            number = self._chance.randrange(4)
            return f"{self._chance.choice(self._misleading)}{number or ''}"
        count = self._chance.choice((2, 3))
        return "".join(self._chance.choice(_HEADS) + self._chance.choice(_VOWELS) for _ in range(count)) + self._chance.choice("lmnrs")


# Templates --------------------------------------------------------------------------------------------------------------------

_MARKS = re.compile(r"\s*#: (?P<marks>[a-z ]+)$")
_NAME = re.compile(r"\$(\w+)")


def lines_of(template: str, harmless: bool, names: Names, known: dict[str, str]) -> list[Line]:
    """The lines of a template, without those of the other kind; ``known`` gains the names that were drawn."""
    found: list[Line] = []
    for text in template.strip("\n").split("\n"):
        marks = _MARKS.search(text)
        words = marks["marks"].split() if marks else []
        text = text[: marks.start()] if marks else text
        for name in _NAME.findall(text):
            if name not in known:
                known[name] = names.new()
        if ("good" if not harmless else "bad") not in words:
            drawn = _NAME.sub(lambda match: known[match[1]], text)
            found.append(Line(drawn, tuple(w for w in words if w in {"source", "sink"}), bool({"good", "bad"} & set(words))))
    return found


def plain(*texts: str) -> list[Line]:
    return [Line(text) for text in texts]


def indent(lines: Iterable[Line], by: str = "    ") -> list[Line]:
    return [line.indented(by) for line in lines]


@dataclass
class File:
    """A file as it grows: imports first."""

    imports: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)

    def need(self, *imports: str) -> None:
        self.imports += [text for text in imports if text not in self.imports]


def finish(spec: Spec, code: str, files: dict[str, Sequence[Line]], entry: tuple[str, str]) -> Program:
    """A program of finished files: where the lines with roles came to stand."""
    places: dict[str, list[Place]] = {"source": [], "sink": [], "call": []}
    differing: set[Place] = set()
    for name, lines in files.items():
        for row, line in enumerate(lines, 1):
            for role in line.roles:
                places[role].append((name, row))
            if line.differs:
                differing.add((name, row))
    texts = {name: "\n".join(line.text for line in lines) + "\n" for name, lines in files.items()}
    held = {role: tuple(found) for role, found in places.items()}
    return Program(spec, "" if spec.harmless else code, texts, entry, held, frozenset(differing))
