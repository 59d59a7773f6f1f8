"""The rows of the user's own that a run has met: each look-up of one is noted for the file at hand, and for all that rests on the answer.

Rows that nothing looks up describe code that is not there, or describe it under a wrong name.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from streamlint.interpreter.file import File, dotted_name, walk_module
from streamlint.interpreter.notes import OWN, note, noted
from streamlint.models import Models, Row, StepRow, TypeRow, is_covered, names_of, with_user_rows
from streamlint.models.keys import ROWS
from streamlint.models.listing import key_of
from streamlint.program import Attr, Function, Name

V = TypeVar("V")
Rows = Iterable[tuple[str, Mapping[str, Any]]]


def met_in(file: File) -> set[str]:
    """The rows of the user's that a file is about: those whose names it spells, and those that were looked up since it was begun."""
    models = file.models
    assert isinstance(models, OwnModels)
    looked_up = {str(row[1]) for row in noted().rows() if row[0] == OWN}
    names, members = _spelled(file)
    return looked_up.union(models.keys_of_members(members), *map(models.keys_of, names))


def _spelled(file: File) -> tuple[set[str], set[str]]:
    """The full names and the members that a file spells, also where nothing is run: behind a return, in decorators, in annotations."""
    nodes: list[object] = [*walk_module(file.module)]
    nodes += [param.annotation for node in nodes if isinstance(node, Function) for param in node.params]
    names = {dotted_name(file, node) or (node.id if isinstance(node, Name) else "") for node in nodes if isinstance(node, Name | Attr)}
    return {name.removeprefix("::") for name in names}, {node.name for node in nodes if isinstance(node, Attr)}


class NotedRows(dict[str, V]):
    """Rows by name. A look-up of one of the user's is noted."""

    def __init__(self, rows: Mapping[str, V], own: dict[str, str]) -> None:
        super().__init__(rows)
        self.own = own

    def get(self, name: str, default: Any = None) -> Any:
        if name in self.own:
            note((OWN, self.own[name]))
        return super().get(name, default)

    def __getitem__(self, name: str) -> V:
        if name in self.own:
            note((OWN, self.own[name]))
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        if name in self.own:
            note((OWN, self.own[str(name)]))
        return super().__contains__(name)


class OwnModels(Models):
    """The shipped rows and the user's; it is noted which of the user's are met."""

    def __init__(self, models: Models, rows: Rows, language: str) -> None:
        keys: dict[str, dict[str, str]] = {kind: {} for kind in ROWS}
        for source, data in rows:
            if data.get("language", language) == language:
                for kind in ROWS:
                    for number, table in enumerate(data.get(kind, ())):
                        keys[kind].update(dict.fromkeys(names_of(table), key_of(source, kind, number)))
        soles = {name.rpartition(".")[2]: key for name, key in keys["attribute"].items()}
        self._keys = keys
        self._members: list[tuple[str, str]] = []  # the last parts of the names of rows about members of types
        for name, key in (*keys["call"].items(), *keys["attribute"].items()):
            holder, _, last = name.rpartition("::" if "::" in name else ".")
            if models.type_named(holder) is not None:
                self._members.append((last, key))
        super().__init__(
            NotedRows(models.calls, keys["call"]),
            NotedRows(models.attributes, keys["attribute"]),
            NotedRows(models.soles, {last: key for last, key in soles.items() if last in models.soles}),
            NotedRows(models.types, keys["type"]),
            NotedRows(models.constants, keys["constant"]),
            models.steps,
            models.rounds,
            models.triggers,
            models.libraries,
            models.own_words,
            models._patterns,
            models._type_patterns,
        )

    def every(self) -> set[str]:
        """All rows of the user's."""
        return {key for keys in self._keys.values() for key in keys.values()}

    def keys_of(self, name: str) -> set[str]:
        """The user's rows with this name, or with a pattern that covers it."""
        found = {keys[name] for keys in self._keys.values() if name in keys}
        for keys in self._keys.values():
            found.update(key for known, key in keys.items() if "*" in known and is_covered(known.split("*"), name))
        return found

    def keys_of_members(self, members: set[str]) -> set[str]:
        """The user's rows about members of types, by the names of the members: the type of a value shows only where code is run."""
        return {key for last, key in self._members if last in members}

    def _pattern(self, name: str, prefix: str) -> Row | None:
        row = super()._pattern(name, prefix)
        if row is not None:
            self._note_pattern("call", row.names, name)
        return row

    def type_named(self, name: str) -> TypeRow | None:
        """The row of a type."""
        row = super().type_named(name)
        if row is not None and name not in self._keys["type"]:
            self._note_pattern("type", [known for known in self._keys["type"] if "*" in known], name)
        return row

    def step(self, method: str, base: str, at_hand: bool) -> StepRow | None:
        """The row of a method that is called in each step."""
        row = super().step(method, base, at_hand)
        if row is not None:
            keys = self._keys["step"]
            for key in {keys[known] for known in row.names if known in keys}:
                note((OWN, key))
        return row

    def _note_pattern(self, kind: str, names: Iterable[str], name: str) -> None:
        keys = self._keys[kind]
        for pattern in names:
            if "*" in pattern and pattern in keys and is_covered(pattern.split("*"), name):
                note((OWN, keys[pattern]))


@functools.lru_cache(maxsize=8)
def _made(language: str, rows: str) -> OwnModels:
    own = [(source, data) for source, data in json.loads(rows)]
    return OwnModels(with_user_rows(language, own), own, language)


def own_models(language: str, rows: Rows) -> OwnModels:
    """The rows of a language with the user's, made once for the same rows."""
    return _made(language, json.dumps([[source, data] for source, data in rows], default=str))
