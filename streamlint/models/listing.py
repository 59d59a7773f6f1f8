"""The rows as a list to look at: each with its names, its place, and its keys in words."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from streamlint.models import builtin, is_covered, load_file, names_of, with_user_rows
from streamlint.models.effects import EFFECTS
from streamlint.models.keys import ROWS, VALUES, Key
from streamlint.models.traits import MEANINGS
from streamlint.models.vocabulary import DEFAULTS, Selector, parse_field
from streamlint.support.records import record, replace
from streamlint.support.shipped import model_files, text_of

LANGUAGE_NAMES = {"python": "Python", "cuda": "C++", "cython": "Cython", "": "all languages"}
_ROW = re.compile(r"^\[\[(\w+)\]\]$", re.MULTILINE)
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
UserRows = Iterable[tuple[str, Mapping[str, Any]]]
LineOf = Callable[[str, str, int], "tuple[str, int | None]"]  # a source, a kind of row and its number: file and line


def key_of(source: str, kind: str, number: int) -> str:
    """The name of a row: where its table is from, its kind, and its number among those of the table."""
    return f"{source}\0{kind}\0{number}"


@record(frozen=True, slots=True)
class Entry:
    """A row, where it is, and what it says."""

    kind: str  # call, attribute, type, constant, step, round, trait
    names: tuple[str, ...]
    table: Mapping[str, Any]
    library: str
    language: str
    source: str  # as rows know it
    number: int  # among the rows of its kind in its table
    file: str
    line: int | None
    own: bool = False

    @property
    def effect(self) -> str:
        """The effect of a call or an attribute; for other rows the kind, or the value."""
        return str(self.table.get("effect") or self.table.get("kind") or self.table.get("value") or "")

    @property
    def place(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"

    @property
    def key(self) -> str:
        """The name of a row of the user's, by which a run reports that it was used."""
        return key_of(self.source, self.kind, self.number)

    def fields(self) -> Iterator[tuple[Key, object]]:
        """The keys of the row but its names and its effect, each with its raw value."""
        known = EFFECTS[self.effect].keys if self.kind in ("call", "attribute") else ROWS[self.kind][1]
        yield from ((key, self.table[key.name]) for key in known if key.name != "names" and key.name in self.table)

    def matches(self, name: str) -> bool:
        """Whether one of the names is this one, or a pattern that covers it."""
        return any(own == name or ("*" in own and is_covered(own.split("*"), name)) for own in self.names)


def meaning_of(entry: Entry) -> str:
    """A row's effect in a sentence, without the full stop."""
    if entry.kind in ("call", "attribute"):
        return EFFECTS[entry.effect].meaning
    return (
        VALUES[entry.effect]
        if entry.kind == "constant"
        else ROWS[entry.kind][0].rstrip(".").lower()
        if entry.kind in ("step", "round", "trait")
        else ""
    )


@functools.cache
def shipped() -> tuple[Entry, ...]:
    """The rows of streamlint's own files, in the order of the files."""
    return tuple(entry for path in model_files() for entry in _of_file(path.name, load_file(path), text_of(path)))


def _of_file(name: str, data: Mapping[str, Any], text: str) -> Iterator[Entry]:
    lines: dict[str, list[int]] = {}
    for found in _ROW.finditer(text):
        lines.setdefault(found[1], []).append(text.count("\n", 0, found.start()) + 1)
    for kind in ROWS:
        yield from _entries(name, data, kind, lambda _, kind, number: (f"streamlint/models/{name}", lines[kind][number]), own=False)


def of_user(rows: UserRows, line_of: LineOf) -> list[Entry]:
    """The user's rows."""
    return [entry for source, data in rows for kind in ROWS for entry in _entries(source, data, kind, line_of, own=True)]


def _entries(source: str, data: Mapping[str, Any], kind: str, line_of: LineOf, own: bool) -> Iterator[Entry]:
    library, language = str(data.get("library", "")), str(data.get("language", ""))
    for number, table in enumerate(data.get(kind, ())):
        file, line = line_of(source, kind, number)
        yield Entry(kind, tuple(names_of(table)), table, library, language, source, number, file, line, own)


def find(name: str, entries: Iterable[Entry], rows: UserRows) -> list[tuple[Entry, str]]:
    """The rows that say what a name means, the winning one first, each with why it does if that is not its own name."""
    entries = list(entries)
    exact = [entry for entry in entries if name in entry.names]
    found = [(entry, "") for entry in sorted(exact, key=lambda entry: (entry.kind == "trait", not entry.own))]
    if found:
        return found
    rows = list(rows)
    for language in ("python", "cuda", "cython"):
        if (inherited := _inherited(name, language, rows)) is not None:
            row, why = inherited
            return [(entry, why) for entry in entries if entry.source == row.source and entry.names == row.names][:1]
    patterns = [entry for entry in entries if entry.matches(name)]
    return [(entry, _matched(name, entry.names)) for entry in patterns]


def _matched(name: str, names: Iterable[str]) -> str:
    """Which pattern of a row a name matches: the longest one counts."""
    found = [pattern for pattern in names if "*" in pattern and is_covered(pattern.split("*"), name)]
    return f"{name} matches {max(found, key=len)}" if found else f"{name} matches a pattern of the row"


def _inherited(name: str, language: str, rows: list[tuple[str, Mapping[str, Any]]]) -> tuple[Any, str] | None:
    """The row of a method or an attribute of one of a type's bases, or of a pattern."""
    models = with_user_rows(language, rows) if rows else builtin(language)
    separator = "::" if "::" in name else "."
    holder, _, member = name.rpartition(separator)
    if models.type_named(holder) is not None:
        row = models.method(holder, member, separator) or models.member(holder, member, separator)
        if row is not None:
            base = next((kind for kind in models.lineage(holder) if f"{kind}{separator}{member}" in row.names), None)
            return row, f"{name} is inherited from {base}" if base else _matched(name, row.names)
    row = models.call(name)
    return (row, _matched(name, row.names)) if row is not None else None


def in_words(key: Key, value: object) -> str:
    """The value of a key in words."""
    held = parse_field(key, value)
    if key.kind == "cases" and isinstance(held, tuple):
        return ", ".join(f"{_place(replace(case, default=None))} is {case.default}" for case in held)
    if key.kind == "words" and isinstance(held, tuple):
        return "they " + "; ".join(MEANINGS[word] for word in held)
    return _said(held)


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(_said, value))
    return _place(value) if isinstance(value, Selector) else str(value)


def _place(selector: Selector) -> str:
    where = "all arguments" if selector.kind == "all" else "the receiver" if selector.kind == "self" else "the result"
    if selector.kind in ("argument", "pointee"):
        parts = [] if selector.position is None else [_argument(selector.position)]
        parts += [] if selector.keyword is None else [f"the keyword `{selector.keyword}`"]
        where = " or ".join(parts) if parts else "no argument"
        where = f"the object that {where} points to" if selector.kind == "pointee" else where
    where = f"the opposite of {where}" if selector.negated else where
    return f"{where} (left out: {DEFAULTS.get(selector.default, selector.default)})" if selector.default else where


def _argument(position: int) -> str:
    return f"the {_ORDINALS[position]} argument" if position < len(_ORDINALS) else f"argument {position + 1}"
