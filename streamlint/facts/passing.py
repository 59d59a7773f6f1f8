"""Functions of the language's library that put objects into others, take them out, or make objects that hold what others do."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.functions import Function
from streamlint.facts.instructions import arguments_of, last_name
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

PUTTING = frozenset({"heappush", "heappushpop", "heapreplace", "insort", "insort_left", "insort_right"})
"""What puts its second argument into the list that is its first."""
TAKING = frozenset({"heappop", "heappushpop", "heapreplace"})
"""What takes an element out of the list that is its first argument."""
NAMESPACES = frozenset({"SimpleNamespace", "Namespace"})
"""What is made of keywords, which are its attributes."""
COPYING = frozenset({"copy.copy", "dataclasses.replace", "copy.replace", "attr.evolve", "attrs.evolve"})
"""What gives another object with the attributes of its first argument, but for those that are named."""
COPYING_NAMES = frozenset(name.rpartition(".")[2] for name in COPYING)
BY_KEYWORD = NAMESPACES | COPYING_NAMES - {"copy"}
"""What is given attributes by their names."""


def put_by_function(function: Function, use: Instruction) -> tuple[int, int] | None:
    """The list and the element of a call of a function that puts one into the other."""
    given = use[6 if use[0] == op.INVOKE else 5 :]
    return (given[0], given[1]) if len(given) > 1 and last_name(function, use) in PUTTING else None


def attributes_given(function: Function, one: Instruction) -> Iterator[tuple[str, int]]:
    """The attributes that a call sets by their names, each with the register of the value: of what it makes, or ``setattr``'s."""
    if one[0] == op.CALL and len(one) == 8 and function.dotted(one[3]) == "setattr":
        name = function.constant(one[6])
        yield from ((name, one[7]),) if isinstance(name, str) else ()
    elif last_name(function, one) in BY_KEYWORD:
        yield from ((kind, register) for register, kind in arguments_of(function, one) if isinstance(kind, str))


def attribute_asked(function: Function, one: Instruction) -> str | None:
    """The attribute that ``getattr`` asks for by its name."""
    if one[0] != op.CALL or len(one) < 7 or function.is_cpp or function.dotted(one[3]) != "getattr":
        return None
    name = function.constant(one[6])
    return name if isinstance(name, str) else None
