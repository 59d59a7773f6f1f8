"""Where functions of the language's library put what they are given: attributes by name, copies of objects, joined iterables, heaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.keyword_stores import attributes_of
from streamlint.facts.code.objects import External, FunctionObject
from streamlint.facts.code.passing import put_by_function
from streamlint.facts.values.containers import mapping_of_pair
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.traits import Trait
from streamlint.ordering.places.places import ANY, Element, Key, Place, Places, rest_behind
from streamlint.waits.operands import argument_registers

Moves = Iterator[tuple[tuple[Place, ...], Place, tuple[Key, ...]]]
"""Places, where what stands there stands afterwards, and the keys that lead to it from them."""


def given_by_library(places: Places, function: Function, one: Instruction, target: Place) -> Moves:
    """What a call of a function of the library gives of its arguments."""
    if function.is_cpp:
        return
    name, given, known = last_name(function, one), argument_registers(function, one), function.known
    if name in known("chains", "filters") and _is_one(places, function, one, "chains", "filters"):
        sources = given[1:] if name in known("filters") else given
        yield from ((places.names(function, register), target.behind(ANY), (ANY,)) for _, register in sources)
    elif (put := put_by_function(function, one)) is not None:
        yield places.names(function, put[1]), places.of(function, put[0]).behind(ANY), ()
    elif name in known("takes-of-first") and given:
        yield places.names(function, given[0][1]), target, (ANY,)
    elif given and _gives_first(places, function, one, name, len(given)):
        yield places.names(function, given[0][1]), target, ()
    else:
        yield from _made(places, function, one, target)


def _gives_first(places: Places, function: Function, one: Instruction, name: str, count: int) -> bool:
    """Whether a function gives its first argument, or what a coroutine gives: that is known by the name of the coroutine."""
    if name in function.known("enters") and count == 1 and _is_object(places, function, one):
        return True
    return name in function.known("awaits") and _is_one(places, function, one, "awaits")


def _made(places: Places, function: Function, one: Instruction, target: Place) -> Moves:
    """Objects that are made of others, and references to them."""
    name, given = last_name(function, one), argument_registers(function, one)
    if name in function.known("namespace"):
        yield from ((places.names(function, register), target.behind(kind), ()) for kind, register in given if isinstance(kind, str))
    elif name in function.known("copies-object") and given and _is_one(places, function, one, "copies-object"):
        yield places.names(function, given[0][1]), target, ()
        yield from ((places.names(function, register), target.behind(kind), ()) for kind, register in given if isinstance(kind, str))
    elif name == "ref" and given and "weakref.ref" in _externals(places, function, one):
        yield places.names(function, given[0][1]), target, ()
    elif one[0] == op.CALL and not given and "weakref.ref.__call__" in _externals(places, function, one):
        yield places.names(function, one[3]), target, ()


def elements_given(places: Places, function: Function, one: Instruction, callee: Function, index: int) -> tuple[Place, ...] | None:
    """Where a parameter of a function is found that is called with the elements of iterables: ``map``, ``filter``, ``reduce``."""
    name, given = last_name(function, one), [register for _, register in argument_registers(function, one)]
    if name not in function.known("calls-with-elements") or len(given) < 2:
        return None
    held = places.facts.values(function, given[0]).values
    if not any(isinstance(value, FunctionObject) and value.function is callee for value in held):
        return None
    if name in function.known("folds"):
        sources = [*(places.names(function, given[2]) if index == 0 and len(given) > 2 else ()), *_behind(places, function, given[1])]
    else:
        sources = _behind(places, function, given[1 + index]) if 1 + index < len(given) else []
    return tuple(sources)


def _behind(places: Places, function: Function, register: int) -> list[Place]:
    return [name.behind(ANY) for name in places.names(function, register)]


def _is_object(places: Places, function: Function, one: Instruction) -> bool:
    """Whether a call gives what it is given, no other object."""
    given, held = (set(places.facts.values(function, register).values) for register in (one[2], one[-1]))
    return bool(given) and given <= held


def _is_one(places: Places, function: Function, one: Instruction, *traits: Trait) -> bool:
    """Whether a call is one of a function that has one of some traits."""
    named = _externals(places, function, one)
    return any(named & function.unit.models.marked(trait) for trait in traits)


def _externals(places: Places, function: Function, one: Instruction) -> set[str]:
    return {value.name for value in places.facts.callees(function, one) if isinstance(value, External)}


def set_by_keywords(places: Places, function: Function, one: Instruction, held: Iterable[Place]) -> Iterator[tuple[Place, Place]]:
    """What stands under the keys of a dict, and where it stands among the attributes of an object that they are set of."""
    found = _keywords_set(function, one) if not function.is_cpp else None
    if found is None:
        return
    owner, mapping = (places.of(function, each) for each in found)
    for place in held:
        for source in {mapping, *places.names(function, found[1])}:
            rest = rest_behind(source, place)
            key = rest[0] if rest else None
            if rest and isinstance(key, Element) and isinstance(key.key, str):
                yield place, owner.behind(key.key, *rest[1:])
                break


def _keywords_set(function: Function, one: Instruction) -> tuple[int, int] | None:
    """The object and the dict of ``setattr(object, name, value)`` over its items, and of ``object.__dict__.update(dict)``."""
    if one[0] == op.CALL and len(one) == 8 and function.dotted(one[3]) == "setattr":
        mapping = mapping_of_pair(function, one[6], one[7])
        return (one[5], mapping) if mapping != op.NONE else None
    if len(one) != 7 or not function.invokes(one, "puts-entries"):
        return None
    owner = attributes_of(function, one[3])
    return (owner, one[6]) if owner != op.NONE else None
