"""API models: TOML files, one a library, and the table that facts and transfer ask.

In: rows, shipped and the user's own. Out: typed rows by the names of calls, methods and attributes. May import: ``support``.
"""

from __future__ import annotations

import fnmatch
import functools
import json
import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from streamlint.models.tables import read_head, rows
from streamlint.models.traits import Trait
from streamlint.models.vocabulary import ModelError, Row, Selector
from streamlint.support import toml
from streamlint.support.records import field, record, replace
from streamlint.support.shipped import head_of, model_files, text_of

T = TypeVar("T")
__all__ = ["ModelError", "Models", "RoundRow", "Row", "StepRow", "TypeRow", "builtin", "load", "load_file"]


@record(frozen=True, slots=True)
class TypeRow:
    """A type of a library: its kind decides what its values are."""

    name: str
    kind: str
    library: str
    base: str | None = None
    space: str = "unknown"
    memory: str = "unknown"
    raw: bool = False
    holds_stream: bool = False
    computes: bool = False
    fields: tuple[str, ...] = ()


@record(frozen=True, slots=True)
class StepRow:
    """Methods that a framework calls in each step, of the classes that derive from one of its own."""

    names: tuple[str, ...]
    methods: tuple[str, ...]
    unproven: tuple[str, ...] = ()
    on_device: tuple[Selector, ...] = ()
    counts: tuple[Selector, ...] = ()
    forward: bool = False  # it computes for whoever calls it, also where nothing is trained: what it returns is no log
    gives_loss: bool = False  # alone, first in a tuple, or under the key "loss"
    members: tuple[str, ...] = ()
    of: Selector | None = None  # the methods are those of what the constructor of such a class is given
    started: tuple[str, ...] = ()  # by what calls of an object of such a class its loop begins
    loop: str = "training"
    source: str = ""

    def covers(self, base: str, is_analysed: bool) -> bool:
        """Whether a base class, by its dotted name, is the framework's. An unknown one may be by the end of its name."""
        if any(fnmatch.fnmatchcase(base, pattern) for pattern in self.names):
            return True
        return not is_analysed and base.rpartition(".")[2].endswith(self.unproven)


@record(frozen=True, slots=True)
class RoundRow:
    """Calls by which a loop makes progress in each round: a backward pass, a step of an optimizer, a decoding step."""

    names: tuple[str, ...]
    does: str
    beside: tuple[str, ...] = ()
    function: Selector | None = None
    event: Selector | None = None
    events: tuple[str, ...] = ()
    source: str = ""

    def covers(self, name: str) -> bool:
        """Whether a dotted name is one of the row's."""
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.names)


@record(slots=True)
class Models:
    """All rows of a language, by name."""

    calls: dict[str, Row] = field(default_factory=dict)
    operators: dict[str, Row] = field(default_factory=dict)  # of libraries' own tables: where no other row names the call
    attributes: dict[str, Row] = field(default_factory=dict)
    types: dict[str, TypeRow] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    steps: list[StepRow] = field(default_factory=list)
    rounds: list[RoundRow] = field(default_factory=list)
    traits: dict[str, set[str]] = field(default_factory=dict)  # by trait: the names
    triggers: set[str] = field(default_factory=set)
    libraries: set[str] = field(default_factory=set)
    _patterns: list[tuple[str, list[str], Row]] = field(default_factory=list)
    _type_patterns: list[tuple[list[str], TypeRow]] = field(default_factory=list)
    _cache: dict[tuple[str, str], Row | None] = field(default_factory=dict)
    _no_types: set[str] = field(default_factory=set)  # names that no row of a type is about
    _gathered: dict[tuple[Hashable, ...], Any] = field(default_factory=dict)
    _known: dict[tuple[Trait, ...], frozenset[str]] = field(default_factory=dict)
    _marked: dict[Trait, frozenset[str]] = field(default_factory=dict)

    def gathered(self, gather: Callable[..., T], *asked: Hashable) -> T:
        """What a function of a module gathers from all rows, given them and what is asked: found once, for rows outlive programs."""
        key = (gather, *asked)
        if key not in self._gathered:
            self._gathered[key] = gather(self, *asked)
        found: T = self._gathered[key]
        return found

    def with_effect(self, effect: str) -> Mapping[str, Sequence[Row]]:
        """By the last parts of their names: the rows of calls that have an effect."""
        return self.gathered(_by_effect).get(effect, {})

    def attributes_with(self, *effects: str) -> frozenset[str]:
        """The last parts of the names of attributes that have one of some effects."""
        return self.gathered(_attributes_with, *effects)

    def known(self, *traits: Trait) -> frozenset[str]:
        """The last parts of the names that have one of some traits: as what methods and functions of unknown values are called."""
        found = self._known.get(traits)
        if found is None:
            found = self._known[traits] = frozenset(last_part(name) for trait in traits for name in self.traits.get(trait, ()))
        return found

    def marked(self, trait: Trait) -> frozenset[str]:
        """The full names that have a trait."""
        found = self._marked.get(trait)
        if found is None:
            found = self._marked[trait] = frozenset(self.traits.get(trait, ()))
        return found

    def is_of_host(self, name: str) -> bool:
        """Whether a full name is one of Python's own library, or of another that starts nothing on a device
        unless a function is handed in."""
        parts = name.replace("::", ".").split(".")
        if parts[0] in _PYTHON and "::" not in name:
            return True
        return any(".".join(parts[:count]) in self.marked("host-namespace") for count in range(1, len(parts) + 1))

    def counters(self, name: str) -> Collection[str]:
        """The packages whose objects count the rounds of a loop in an attribute of a name."""
        return self.gathered(_counters).get(name, ())

    def own_type(self, library: str, kind: str) -> str | None:
        """The type of a kind that a library's own functions take and give: the first that stands in its rows; None if there is none."""
        return self.gathered(_own_types).get((library, kind))

    @property
    def array_types(self) -> Mapping[str, str]:
        """The types of arrays and tensors that compute on a device, each with its library: those whose methods a value of which nothing is
        known may have. The type with more methods comes first."""
        return self.gathered(_array_types)

    def is_known(self, package: str) -> bool:
        """Whether any row is about a package, by the first part of its name; rows of clocks and rounds say nothing of what else it has."""
        return package in self.gathered(_heads)

    def call(self, name: str) -> Row | None:
        """The row of a call, by its full name; exact names win over patterns."""
        return self.named(name) or self._pattern(name, "")

    def named(self, name: str) -> Row | None:
        """The row that has this name of a call among its own."""
        return self.calls.get(name) or self.operators.get(name)

    def part_type(self, type_name: str, name: str | None = None) -> str | None:
        """The type of the parts of a tuple with names, or of the part of one name; None where it has none."""
        known = self.types.get(type_name)
        if known is None or not known.fields or (name is not None and name not in known.fields):
            return None
        return known.base

    def patterns(self) -> Iterator[tuple[str, Row]]:
        """The rows of calls whose names are patterns, each with its pattern."""
        return ((text, row) for text, _, row in self._patterns)

    def pattern_of(self, name: str) -> str | None:
        """The longest pattern of a call's row that a name matches."""
        return next((text for text, pieces, _ in self._patterns if is_covered(pieces, name)), None)

    def type_named(self, name: str) -> TypeRow | None:
        """The row of a type; one found by a pattern takes the name that was asked for."""
        found = self.types.get(name)
        if found is None and name not in self._no_types:
            held = next((row for pattern, row in self._type_patterns if is_covered(pattern, name)), None)
            if held is not None:
                found = self.types[name] = replace(held, name=name)
            else:
                self._no_types.add(name)
        return found

    def attribute(self, name: str) -> Row | None:
        """The row of an attribute that is read."""
        return self.attributes.get(name)

    def method(self, type_name: str, method: str, separator: str = ".") -> Row | None:
        """The row of a method: exact rows along the bases of its type first, then patterns of these types."""
        line = self.lineage(type_name)
        for seen in line:
            if row := self.named(f"{seen}{separator}{method}"):
                return row
        for seen in line:
            row = self._pattern(f"{seen}{separator}{method}", f"{seen}{separator}") or self._method_pattern(seen, method, separator)
            if row is not None:
                return row
        return None

    def _method_pattern(self, type_name: str, method: str, separator: str) -> Row | None:
        """A row whose pattern covers the type's own name (``cutlass::gemm::device::*::run``)."""
        if not any(is_covered(pattern, type_name) for pattern, _ in self._type_patterns):
            return None
        return self._pattern(f"{type_name}{separator}{method}", "")

    def lineage(self, type_name: str) -> list[str]:
        """A type and its bases, nearest first."""
        found: list[str] = []
        seen: str | None = type_name
        while seen and seen not in found:
            found.append(seen)
            known = self.types.get(seen)
            seen = known.base if known else None
        return found

    def member(self, type_name: str, name: str, separator: str = ".") -> Row | None:
        """The row of an attribute, looked up along the bases of its type."""
        rows = (self.attributes.get(f"{seen}{separator}{name}") for seen in self.lineage(type_name))
        return next((row for row in rows if row is not None), None)

    def _pattern(self, name: str, prefix: str) -> Row | None:
        """The longest pattern that matches a name, among those that begin with ``prefix``."""
        key = (name, prefix)
        if key not in self._cache:
            self._cache[key] = next(
                (row for text, pattern, row in self._patterns if text.startswith(prefix) and is_covered(pattern, name)), None
            )
        return self._cache[key]

    def add(self, data: dict[str, Any], source: str) -> None:
        """Add the rows of one model file.

        Raises ModelError for a word outside the vocabulary.
        """
        library = read_head(data, source)
        exact = self.operators if data.get("fallback") else self.calls
        self.libraries.add(library)
        self.triggers.update(data.get("triggers", ()))
        for names, _, values in rows(data, "type", source):
            self._add_types([TypeRow(name=name, library=library, **values) for name in names])
        for names, effect, values in rows(data, "call", source):
            row = Row(names, effect, values, library, source)
            for name in names:
                if "*" in name:
                    self._patterns.append((name, name.split("*"), row))
                else:
                    exact[name] = row
        for names, effect, values in rows(data, "attribute", source):
            row = Row(names, effect, values, library, source)
            self.attributes.update(dict.fromkeys(names, row))
        for names, _, values in rows(data, "constant", source):
            self.constants.update(dict.fromkeys(names, values["value"]))
        self.steps.extend(StepRow(names, **values) for names, _, values in rows(data, "step", source))
        self.rounds.extend(RoundRow(names, **values) for names, _, values in rows(data, "round", source))
        for names, _, values in rows(data, "trait", source):
            for trait in values["traits"]:
                self.traits.setdefault(trait, set()).update(names)
        self._patterns.sort(key=lambda item: -len(item[0]))
        self._cache.clear()
        self._gathered.clear()
        self._known.clear()
        self._marked.clear()
        self._no_types.clear()

    def _add_types(self, found: Iterable[TypeRow]) -> None:
        for row in found:
            if "*" in row.name:
                self._type_patterns.append((row.name.split("*"), row))
            else:
                self.types[row.name] = row


def _by_effect(models: Models) -> dict[str, dict[str, list[Row]]]:
    found: dict[str, dict[str, list[Row]]] = {}
    for name, row in models.calls.items():
        found.setdefault(row.effect, {}).setdefault(name.replace("::", ".").rpartition(".")[2], []).append(row)
    return found


def _attributes_with(models: Models, *effects: str) -> frozenset[str]:
    return frozenset(name.rpartition(".")[2] for name, row in models.attributes.items() if row.effect in effects)


def _counters(models: Models) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, row in models.attributes.items():
        if row.effect == "counter":
            found.setdefault(last_part(name), set()).add(first_part(name))
    return found


def _own_types(models: Models) -> dict[tuple[str, str], str]:
    return {(row.library, row.kind): row.name for row in reversed(models.types.values()) if row.base is None}


def _array_types(models: Models) -> dict[str, str]:
    found = {row.name: row.library for row in models.types.values() if row.computes}
    counts = {name: sum(1 for each in models.calls if each.startswith(f"{name}.")) for name in found}
    return dict(sorted(found.items(), key=lambda one: -counts[one[0]]))


def _heads(models: Models) -> frozenset[str]:
    named: list[tuple[str, Row | TypeRow]] = [*models.types.items(), *models.calls.items(), *models.attributes.items(), *models.patterns()]
    return frozenset(name.partition(".")[0] for name, row in named if row.library not in ("clocks", "frameworks"))


def is_covered(pieces: list[str], name: str) -> bool:
    """Whether a name is these pieces, with anything between them."""
    first, *between, last = pieces
    if not name.startswith(first) or not name.endswith(last):
        return False
    at, end = len(first), len(name) - len(last)
    for piece in between:
        at = name.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return at <= end


def load_file(path: Path) -> dict[str, Any]:
    """A model file as TOML.

    Raises ModelError if it is not TOML, and StreamlintError if it cannot be read.
    """
    text = text_of(path)
    try:
        return toml.read(text)
    except toml.TomlError as error:
        raise ModelError(f"{path.name}: {error}") from None


_PYTHON = sys.stdlib_module_names
_shipped = functools.cache(load_file)
# Cython calls both, and has names of its own.
_SPOKEN = {"cython": ("python", "cuda", "cython")}


@functools.cache
def builtin(language: str) -> Models:
    """The rows that streamlint ships for ``python`` or ``cuda``."""
    return _loaded(language, ())


def load(language: str, user_rows: tuple[tuple[str, dict[str, Any]], ...]) -> Models:
    """The shipped rows of a language, then the user's (source, data), which win."""
    return _loaded(language, user_rows) if user_rows else builtin(language)


def _loaded(language: str, user_rows: tuple[tuple[str, dict[str, Any]], ...]) -> Models:
    models = Models()
    for path in model_files():
        if head_of(path).get("language", language) in _SPOKEN.get(language, (language,)):  # a run of Python alone needs no rows of C++
            models.add(_shipped(path), path.name)
    for source, data in user_rows:
        if data.get("language", language) == language:
            models.add(data, source)
    return models


def names_of(row: Mapping[str, Any]) -> list[str]:
    """The names of a raw row."""
    names = row.get("names", ())
    return [names] if isinstance(names, str) else list(names)


def last_part(name: str) -> str:
    """The part of a dotted name that stands at its call."""
    return name.replace("::", ".").rpartition(".")[2].strip("*")


def first_part(name: str) -> str:
    """The library or namespace that a name begins with."""
    return name.replace("::", ".").partition(".")[0]


@functools.lru_cache(maxsize=8)
def _with_rows(language: str, rows: str) -> Models:
    return load(language, tuple((source, data) for source, data in json.loads(rows)))


def with_user_rows(language: str, user_rows: Iterable[tuple[str, Mapping[str, Any]]]) -> Models:
    """As ``load``, made once for the same rows."""
    return _with_rows(language, json.dumps([[source, data] for source, data in user_rows], default=str))
