"""Functions of the language's library that put objects into others, take them out, or make objects that hold what others do."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import arguments_of, last_name
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.traits import Trait

STORES: tuple[Trait, ...] = ("stores", "stores-second", "stores-last")
"""What methods of containers of C++ do that store an argument."""


def put_by_function(function: Function, use: Instruction) -> tuple[int, int] | None:
    """The list and the element of a call of a function that puts one into the other."""
    given = use[6 if use[0] == op.INVOKE else 5 :]
    return (given[0], given[1]) if len(given) > 1 and last_name(function, use) in function.known("puts-in-first") else None


def is_put(function: Function, use: Instruction) -> bool:
    """Whether a method puts what it is given, or the elements of that, into its container."""
    return function.invokes(use, "puts", "extends", "puts-if-absent")


def is_stored(function: Function, use: Instruction) -> bool:
    """The same, or whether it puts what it is given into what holds one object at a time."""
    return is_put(function, use) or function.invokes(use, "sets-variable")


def stored(function: Function, use: Instruction) -> int | None:
    """C++: the register of the argument that a method stores in its container, NONE where it is left out; None of another call."""
    if not function.invokes(use, *STORES):
        return None
    given, place = use[6:], -1 if function.invokes(use, "stores-last") else int(function.invokes(use, "stores-second"))
    return given[place] if len(given) > max(place, 0) else op.NONE


def attributes_given(function: Function, one: Instruction) -> Iterator[tuple[str, int]]:
    """The attributes that a call sets by their names, each with the register of the value: of what it makes, or ``setattr``'s."""
    if one[0] == op.CALL and len(one) == 8 and function.dotted(one[3]) == "setattr":
        name = function.constant(one[6])
        yield from ((name, one[7]),) if isinstance(name, str) else ()
    elif last_name(function, one) in function.known("sets-attributes"):
        yield from ((kind, register) for register, kind in arguments_of(function, one) if isinstance(kind, str))


def attribute_of(function: Function, one: Instruction) -> tuple[int, int] | None:
    """The object and the name of the attribute that a call asks for: ``getattr(o, name)``, ``attrgetter(name)(o)``."""
    if one[0] != op.CALL or len(one) < 6 or function.is_cpp:
        return None
    if len(one) > 6 and function.dotted(one[3]) == "getattr":
        return one[5], one[6]
    made = function.definitions[one[3]] if len(one) == 6 and one[3] >= 0 else None
    if made is None or made[0] not in (op.CALL, op.INVOKE) or last_name(function, made) not in function.known("attribute-getter"):
        return None
    names = made[6 if made[0] == op.INVOKE else 5 :]
    return (one[5], names[0]) if len(names) == 1 else None


def attribute_asked(function: Function, one: Instruction) -> str | None:
    """The attribute that a call asks for by its name."""
    asked = attribute_of(function, one)
    name = function.constant(asked[1]) if asked is not None else None
    return name if isinstance(name, str) else None
