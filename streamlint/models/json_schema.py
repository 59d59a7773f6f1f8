"""The JSON Schema of the user's rows, made from the table of keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamlint.models.effects import EFFECTS
from streamlint.models.keys import ATTRIBUTE, CALL, CONSTANT, HEAD, ROUND, ROWS, STEP, TRAIT, TYPE, Effect, Key
from streamlint.models.user_rows import libraries
from streamlint.models.vocabulary import DEFAULTS, VERSION

_PLACE = r"(self|result|\*|&\d+(\.\w+)?|\d+|\d*:\w+)(=(" + "|".join([*DEFAULTS, r"\d+"]) + "))?"
_REFERENCES = ("place", "places", "cases", "switch", "names", "texts")


def definitions() -> dict[str, Any]:
    """The kinds of values that several keys accept, and the keys of each effect."""
    text, place = {"type": "string", "minLength": 1}, _place("")
    case = {"type": "string", "pattern": r"^(\d+|\d*:\w+)=.+$"}
    return {
        "place": place,
        "places": {"anyOf": [place, {"type": "array", "items": place}]},
        "cases": {"anyOf": [case, {"type": "array", "items": case, "minItems": 1}]},
        "switch": {"anyOf": [{"type": "boolean"}, _place("!?"), {"type": "array", "items": place, "minItems": 1}]},
        "names": {"anyOf": [text, {"type": "array", "items": text, "minItems": 1}]},
        "texts": {"anyOf": [text, {"type": "array", "items": text}]},
        "effects": {"allOf": [_of_effect(effect) for effect in EFFECTS.values()]},
    }


def of_tables() -> dict[str, Any]:
    """Of the list of tables ``models``."""
    kinds = {"call": _of_effects(CALL), "attribute": _of_effects(ATTRIBUTE)}
    plain = (("type", TYPE), ("constant", CONSTANT), ("step", STEP), ("round", ROUND), ("trait", TRAIT))
    kinds |= {kind: _row(keys) for kind, keys in plain}
    rows = {kind: {"description": ROWS[kind][0], "type": "array", "items": items} for kind, items in kinds.items()}
    return {
        "type": "array",
        "items": {"type": "object", "additionalProperties": False, "properties": {**_properties(HEAD), **rows}},
    }


def _of_effects(keys: Iterable[Key]) -> dict[str, Any]:
    """Rows whose effect decides the keys."""
    row = _row(keys)
    row["properties"]["effect"]["enum"] = list(EFFECTS)
    del row["additionalProperties"]
    return {**row, "allOf": [{"$ref": "#/definitions/effects"}]}


def _of_effect(effect: Effect) -> dict[str, Any]:
    return {
        "if": {"properties": {"effect": {"const": effect.name}}},
        "then": {
            "additionalProperties": False,
            "required": [key.name for key in effect.keys if key.needed],
            "properties": {"names": True, "effect": {"description": effect.meaning}, **_properties(effect.keys)},
        },
    }


def _row(keys: Iterable[Key]) -> dict[str, Any]:
    keys = list(keys)
    needed = [key.name for key in keys if key.needed]
    return {"type": "object", "additionalProperties": False, "required": needed, "properties": _properties(keys)}


def _properties(keys: Iterable[Key]) -> dict[str, Any]:
    return {key.name: {"description": key.meaning, **_value(key)} for key in keys}


def _value(key: Key) -> dict[str, Any]:
    if key.kind in _REFERENCES:
        return {"allOf": [{"$ref": f"#/definitions/{key.kind}"}]}  # draft 7 reads nothing beside a reference
    if key.kind == "word or place":
        return {"anyOf": [{"enum": list(key.words)}, {"$ref": "#/definitions/place"}]}
    if key.kind == "words":
        return {"anyOf": [{"enum": list(key.words)}, {"type": "array", "items": {"enum": list(key.words)}, "minItems": 1}]}
    simple: dict[str, dict[str, Any]] = {
        "bool": {"type": "boolean"},
        "word": {"enum": list(key.words)} if key.words else {"type": "string"},
        "number": {"type": ["integer", "string"], "pattern": "^[0-9]{1,4}$", "minimum": 0, "maximum": 9999},
        "version": {"const": VERSION},
        "library": {"enum": list(libraries())},
    }
    return simple.get(key.kind, {"type": "string", "minLength": 1})


def _place(before: str) -> dict[str, Any]:
    return {"type": ["string", "integer"], "minimum": 0, "pattern": f"^{before}{_PLACE}$"}
