"""The tables of a model file, each row checked against the keys of its kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamlint.models.effects import EFFECTS
from streamlint.models.keys import CONSTANT, HEAD, LANGUAGES, ROUND, ROWS, STEP, TRAIT, TYPE, Key
from streamlint.models.vocabulary import VERSION, ModelError, nearest, parse_field

HEADS = {one.name: one for one in HEAD}
# The keys of each effect, and of the other kinds of rows, by name.
_OF_EFFECT = {name: {one.name: one for one in effect.keys} for name, effect in EFFECTS.items()}
_OF_KIND = {
    kind: {one.name: one for one in keys if one.name != "names"}
    for kind, keys in (("type", TYPE), ("constant", CONSTANT), ("step", STEP), ("round", ROUND), ("trait", TRAIT))
}


def read_head(data: Mapping[str, Any], source: str) -> str:
    """The library of a file whose head is right.

    Raises ModelError.
    """
    for word in data:
        if word not in HEADS and word not in ROWS:
            raise ModelError(f"{source}: unknown key '{word}'; {nearest(word, sorted((*HEADS, *ROWS)))}", word)
    for word in ("triggers", "seams"):
        _texts(data.get(word, ()), f"{source}: {word}", word)
    if data.get("version", VERSION) != VERSION:
        raise ModelError(f"{source}: version {data['version']} is not known; this streamlint reads version {VERSION}", "version")
    if "language" in data and data["language"] not in LANGUAGES:
        said = data["language"]
        raise ModelError(f"{source}: language: {said!r} is unknown; {nearest(str(said), LANGUAGES)}", "language")
    library = data.get("library", "user")
    if not isinstance(library, str):
        raise ModelError(f"{source}: library: expected a name, not {library!r}", "library")
    return library


def tables(data: Mapping[str, Any], kind: str, source: str) -> list[dict[str, Any]]:
    """The raw rows of a kind.

    Raises ModelError.
    """
    found = data.get(kind, [])
    if not isinstance(found, list) or not all(isinstance(table, dict) for table in found):
        raise ModelError(f"{source}: {kind}: expected a list of tables, not {found!r}", kind)
    return found


def rows(data: Mapping[str, Any], kind: str, source: str) -> Iterator[tuple[tuple[str, ...], str, dict[str, Any]]]:
    """The rows of a kind: their names, their effect (of calls and attributes), and the values of their keys.

    Raises ModelError with the place in the file.
    """
    for number, table in enumerate(tables(data, kind, source)):
        try:
            names = _names(table, source)
            effect = _effect(table, f"{source}: {names[0]}") if kind in ("call", "attribute") else ""
            keys = _OF_EFFECT[effect] if effect else _OF_KIND[kind]
            what = f"effect '{effect}'" if effect else f"a {kind} row"
            yield names, effect, _values(table, keys, f"{source}: {'' if effect else f'{kind} '}{names[0]}", what)
        except ModelError as error:
            raise ModelError(str(error), kind, number, *error.at) from None


def _names(table: Mapping[str, Any], source: str) -> tuple[str, ...]:
    names = _texts(table.get("names", ()), f"{source}: names", "names")
    if not names:
        raise ModelError(f"{source}: a row without 'names': {table}")
    return names


def _texts(found: object, place: str, key: str) -> tuple[str, ...]:
    texts = [found] if isinstance(found, str) else found
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) and text for text in texts):
        raise ModelError(f"{place}: expected texts, not {found!r}", key)
    return tuple(texts)


def _effect(table: Mapping[str, Any], place: str) -> str:
    effect = table.get("effect")
    if effect is None:
        raise ModelError(f"{place}: 'effect' is missing")
    if not isinstance(effect, str) or effect not in EFFECTS:
        raise ModelError(f"{place}: effect '{effect}' is unknown; {nearest(str(effect), list(EFFECTS))}", "effect")
    return effect


def _values(table: Mapping[str, Any], keys: Mapping[str, Key], place: str, what: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for word, value in table.items():
        known = keys.get(word)
        if known is None:
            if word == "names" or (word == "effect" and what.startswith("effect")):
                continue
            hint = nearest(word, list(keys)) if keys else "it takes no keys"
            raise ModelError(f"{place}: {what} has no '{word}'; {hint}", word)
        try:
            values[word] = parse_field(known, value)
        except ModelError as error:
            raise ModelError(f"{place}: {word}: {error}", word) from None
    if missing := [one for one in keys.values() if one.needed and one.name not in values]:
        raise ModelError(f"{place}: {what} needs '{missing[0].name}': {missing[0].accepts}")
    return values
