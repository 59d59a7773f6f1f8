"""What generated programs are made of: templates, lines with marks, and names."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

TEMPLATES = Path(__file__).with_name("templates")
SLOT = "SECOND"
"""The line of a body at which the second part of a template stands."""
_MARKS = re.compile(r"\s*#: (?P<marks>[a-z ]+)$")
_WORDS = frozenset({"mark", "link", "bad", "good"})


class BenchError(Exception):
    """The benchmark cannot do what was asked; the message says why."""


@dataclass(frozen=True)
class Line:
    """A line of a program. ``only``: the version it stands in, both if empty.

    ``mark``: an operation of the hazard; ``link``: a call on the way from one of them to the other.
    """

    text: str
    mark: bool = False
    only: str = ""
    link: bool = False

    def indented(self, by: str) -> Line:
        """The line, further to the right."""
        return replace(self, text=f"{by}{self.text}" if self.text else "")


@dataclass(frozen=True)
class Template:
    """A hazard in two parts. ``body`` is the entry function, with the line ``SECOND`` where ``second`` stands in the direct program.

    ``takes`` are the names (in C++ with their types) that the second part is given, ``gives`` the one that is used after it.
    A line that ends in ``#: bad`` stands in the hazardous version only, with ``#: good`` in the repaired one only; ``#: mark`` marks the
    lines on which a finding is expected.
    """

    name: str
    hazard: str
    api: str
    why: str
    body: str
    second: str
    takes: tuple[str, ...] = ()
    gives: str = ""
    imports: tuple[str, ...] = ()
    module: str = ""
    bottom: str = ""
    entry: str = ""
    suffix: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    only_ways: frozenset[str] = frozenset()
    oracle: str = ""
    source: str = ""

    @property
    def language(self) -> str:
        """`cuda` or `python`."""
        return "cuda" if self.api in {"cuda-c++", "extension"} else "python"

    @property
    def nested(self) -> bool:
        """Whether the second part stands within a block of the body."""
        return any(line.strip() == SLOT and line != SLOT for line in self.body.split("\n"))

    @property
    def drops(self) -> bool:
        """Whether the hazard is that the entry function drops what the second part was given."""
        return self.hazard == "SL007" and not re.search(r"^\s*del ", self.second, re.MULTILINE)


@dataclass(frozen=True)
class Way:
    """A way in which the two parts of a template stand in a program.

    ``carries``: what the second part takes goes through a mechanism of the way; ``keeps``: that holds on to it afterwards;
    ``flat``: the first part is moved, so that the second one must not stand in a block; ``threads``: a part runs in another thread;
    ``fixed``: what the second part takes cannot be bound anew there; ``apis``: the libraries that have the mechanism, all if empty.
    """

    act: Callable[[Any], None]
    carries: bool = False
    keeps: bool = False
    flat: bool = False
    threads: bool = False
    fixed: bool = False
    apis: frozenset[str] = frozenset()

    def fits(self, template: Template) -> bool:
        """Whether the program says what the template says. Much of Python cannot be compiled: there the second part runs as it stands."""
        if template.only_ways or "torch.compile" in template.body or (self.apis and template.api not in self.apis):
            return False
        if self.flat and (template.nested or not template.takes):
            return False
        if (self.threads and "thread" in template.without) or (self.keeps and template.drops):
            return False
        if self.fixed and template.gives in template.takes:
            return False
        return bool(template.takes) or not self.carries


_LISTS, _SETS = {"takes", "imports"}, {"without", "only_ways"}


def read_templates(folder: Path = TEMPLATES) -> list[Template]:
    """All templates, checked, in the order of the files."""
    found = [_template(entry, path.name) for path in sorted(folder.glob("*.yml")) for entry in yaml.safe_load(path.read_text("utf-8"))]
    names = [template.name for template in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise BenchError(f"templates of the same name: {', '.join(sorted(twice))}")
    return found


def _value(key: str, value: Any) -> Any:
    """A value of the YAML as a template keeps it."""
    if key in _LISTS:
        return tuple(value)
    if key in _SETS:
        return frozenset(value)
    return value.strip("\n") if isinstance(value, str) else value


def _template(entry: dict[str, Any], file: str) -> Template:
    try:
        template = Template(**{key: _value(key, value) for key, value in entry.items()})
    except TypeError as error:
        raise BenchError(f"{file}: {entry.get('name', '?')}: {error}") from None
    texts = (template.body, template.second, template.module, template.bottom, *template.files.values())
    if template.body.split("\n").count(SLOT) + sum(line.strip() == SLOT for line in template.body.split("\n") if line != SLOT) != 1:
        raise BenchError(f"{file}: {template.name}: the body needs one line {SLOT}")
    if not any(line.mark for text in texts for line in lines_of(text)):
        raise BenchError(f"{file}: {template.name}: no line is marked")
    if not any(line.only for text in texts for line in lines_of(text)):
        raise BenchError(f"{file}: {template.name}: bad and repaired version are the same")
    return template


def lines_of(text: str) -> list[Line]:
    """The lines of a part of a template."""
    if not text.strip("\n"):
        return []
    found = []
    for raw in text.strip("\n").split("\n"):
        marks = _MARKS.search(raw)
        words = set(marks["marks"].split()) if marks else set()
        if words - _WORDS:
            raise BenchError(f"unknown marks: {raw}")
        only = next((word for word in ("bad", "good") if word in words), "")
        found.append(Line(raw[: marks.start()] if marks else raw, "mark" in words, only, "link" in words))
    return found


def plain(*texts: str) -> list[Line]:
    """Lines without marks."""
    return [Line(text) for text in texts]


def linked(*texts: str) -> list[Line]:
    """Calls on the way from one operation of the hazard to the other."""
    return [Line(text, link=True) for text in texts]


def indent(lines: Iterable[Line], by: str = "    ") -> list[Line]:
    """Lines, further to the right."""
    return [line.indented(by) for line in lines]


def put(body: Sequence[Line], into: Sequence[Line]) -> list[Line]:
    """The body with other lines in place of its slot, at the slot's margin."""
    found: list[Line] = []
    for line in body:
        if line.text.strip() == SLOT:
            found += indent(into, line.text[: len(line.text) - len(line.text.lstrip())])
        else:
            found.append(line)
    return found


def split(body: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    """What stands before the slot, and what after it."""
    at = next(number for number, line in enumerate(body) if line.text.strip() == SLOT)
    return list(body[:at]), list(body[at + 1 :])


def renamed(lines: Iterable[Line], names: Mapping[str, str]) -> list[Line]:
    """The lines with other names: whole words that are neither attributes, keyword arguments nor in quotes."""
    if not names:
        return list(lines)
    words = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    found = re.compile(rf"(?<![\w.\"'])(?<!->)(?:{words})(?![\w\"'])(?!=(?!=))")
    return [replace(line, text=found.sub(lambda match: names[match[0]], line.text)) for line in lines]


# Names ------------------------------------------------------------------------------------------------------------------------

_FUNCTIONS = """consume advance publish gather_row fold settle digest carry relay pass_on hand_over complete apply_to accept deliver
drain_part forward_to handle_one conclude proceed treat inspect_one follow_up resume_part""".split()
_CLASSES = "Stage Relay Carrier Holder Pump Courier Keeper Runner Session Handler Porter Agent".split()
_FILES = "stages relays carriers holders pumps couriers keepers runners sessions handlers porters agents parts tools".split()
_VALUES = "rows block part grid plane record item piece sheet layer slab chunk entry bundle".split()
_MISLEADING = {
    "function": """synchronize_all wait_for_copy pinned_copy record_and_wait join_streams safe_read flush_cache on_cpu without_gil
    already_synced never_blocks checked_wait after_barrier host_only ordered_copy""".split(),
    "class": "Synchronizer PinnedPool StreamGuard SafeReader EventWaiter CpuOnly Barrier HostMemory".split(),
    "file": "synchronized pinned_memory cpu_only waits barriers events_done safe_streams host_tools".split(),
    "value": "synced pinned_rows waited ready_on_host safe_part recorded joined_part host_done ordered_rows".split(),
}
_NEUTRAL = {"function": _FUNCTIONS, "class": _CLASSES, "file": _FILES, "value": _VALUES}


class Names:
    """Draws names that are not taken yet; what they say is neutral, or misleads whoever reads words."""

    def __init__(self, seed: str, misleading: bool, taken: str) -> None:
        self._chance = random.Random(seed)
        self._pools = _MISLEADING if misleading else _NEUTRAL
        self._taken = set(re.findall(r"\w+", taken))

    def new(self, kind: str) -> str:
        """A name for a ``function``, ``class``, ``file`` or ``value``."""
        pool = [word for word in self._pools[kind] if word not in self._taken]
        if pool:
            word = self._chance.choice(pool)
        else:
            base, number = self._chance.choice(self._pools[kind]), 2
            while f"{base}_{number}" in self._taken:
                number += 1
            word = f"{base}_{number}"
        self._taken.add(word)
        return word


@dataclass
class Program:
    """A program as it grows: what stands above its entry function, what that does, the first lines of its file, and the other files."""

    template: Template
    names: Names
    depth: int = 1
    branches: int = 0
    above: list[Line] = field(default_factory=list)
    imports: list[str] = field(default_factory=list)
    body: list[Line] = field(default_factory=list)
    others: dict[str, tuple[list[str], list[Line]]] = field(default_factory=dict)

    def need(self, *imports: str) -> None:
        """Imports, or includes, of the file with the entry function."""
        self.imports += [text for text in imports if text not in self.imports]

    def place(self, lines: Sequence[Line]) -> None:
        """Let the entry function do this in place of the second part."""
        self.body = put(lines_of(self.template.body), lines)
