"""What calls of the language and its library carry: the register, and the keys behind it, of a part of what they give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import External, Object
from streamlint.facts.code.passing import attribute_asked, attributes_given
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.operands import argument_registers

COPIED = frozenset({"list", "tuple", "dict", "iter", "reversed", "sorted"})
"""What the language makes a container of another one with, that holds the same elements."""
_BEHIND = {"enumerate": 1, "zip": 0}
"""What gives tuples of elements, with the number of its first argument's element in them."""


class Key(NamedTuple):
    """An attribute or an element (``is_element``) by its name or constant index; None for any element."""

    name: object
    is_element: bool = True


ANY = Key(None)
Keys = tuple[Key, ...]


def asked(function: Function, one: Instruction, callees: list[Function]) -> tuple[int, Key] | None:
    """The object, and what ``next``, ``getattr`` or an ``attrgetter`` takes of it."""
    if one[0] != op.CALL or len(one) < 6:
        return None
    if function.dotted(one[3]) == "next" and all(callee.is_generator for callee in callees):
        return one[5], ANY
    attribute = attribute_asked(function, one)
    return (one[5], Key(attribute, False)) if attribute is not None and "." not in attribute else None


def given_on(function: Function, one: Instruction, callees: list[Object], keys: Keys) -> Iterator[tuple[int, Keys]]:
    """What a call of a library may give the part of that some keys lead to, each with the keys behind it."""
    name, given = last_name(function, one), argument_registers(function, one)
    externals = {value.name for value in callees if isinstance(value, External)}
    is_copied = bool(externals & function.unit.models.marked("copies-object"))
    if "weakref.ref.__call__" in externals or "weakref.ref" in externals:
        yield (given[0][1] if given else one[3]), keys
    elif keys and (name in function.known("namespace") or is_copied):
        named = _named(function, one, keys[0])
        yield from ((register, keys[1:]) for register in named)
        yield from ((register, keys) for _, register in given[:1] if not named and is_copied)
    elif name in function.known("takes-of-first") and given:
        yield given[0][1], (ANY, *keys)
    elif keys:
        yield from _elements(function, one, name, given, keys)


def _named(function: Function, one: Instruction, key: Key) -> list[int]:
    """What a call gives for an attribute by its name."""
    return [register for name, register in attributes_given(function, one) if name == key.name and not key.is_element]


def _elements(function: Function, one: Instruction, name: str, given: list[tuple[object, int]], keys: Keys) -> Iterator[tuple[int, Keys]]:
    """What gives the elements of containers."""
    place = keys[1].name if len(keys) > 1 and keys[1].is_element else None
    if name in _BEHIND and isinstance(place, int):
        index = place - _BEHIND[name]
        yield from ((register, (ANY, *keys[2:])) for _, register in given[index : index + 1] if index >= 0)
    elif function.invokes(one, "gives-entries") and not given and place == 1:
        yield one[3], (ANY, *keys[2:])
    elif name in function.known("chains"):
        yield from ((register, (ANY, *keys[1:])) for _, register in given)
    elif name in function.known("filters") and len(given) > 1:
        yield given[1][1], (ANY, *keys[1:])
    elif one[0] == op.CALL and given and _copies(function, function.dotted(one[3])):
        yield given[0][1], keys


def _copies(function: Function, name: str) -> bool:
    """Whether a function gives a container of the same values."""
    return name in COPIED or name in function.known("copies-container")
