"""Queues: which element a call takes out of a container, and where the others are behind it.

What was put in last stands at `NEWEST` until something else is put in. A call that takes what a queue holds longest does not take
that where the queue holds several, nor what has a constant index behind 0, which the call moves up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant, Container
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import ANY, NEWEST, Element, Key, Place, Places, rest_behind
from streamlint.waits.operands import argument_registers
from streamlint.waits.questions import conditions

_FEWEST = {(">", True): 1, (">=", True): 0, ("<", False): 0, ("<=", False): 1, ("==", True): 0}
"""By comparison of a length, and whether it holds: how many more elements there are than the number at least."""
_TURNED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}


def takes_first(function: Function, one: Instruction) -> bool:
    """Whether a method takes what a queue holds longest, or looks at it."""
    name, given = function.text(one[4]), argument_registers(function, one)
    if name in function.known("first-out") or (name == "get" and not given):
        return True
    return name == "pop" and bool(given) and function.constant(given[0][1]) == 0


def is_newest(function: Function, one: Instruction) -> bool:
    """Whether a method puts something behind all that a container holds."""
    return function.text(one[4]) in function.known("puts-last", "sets-variable")


def may_be_taken(places: Places, function: Function, one: Instruction, held: Place) -> bool:
    """Whether a method that takes the first element of its container may take what stands at a place."""
    rest = _inside(places, function, one, held)
    if rest is None:
        return False
    _, key, _ = rest
    if key == NEWEST.key:
        return not _holds_several(places, function, one)
    return not isinstance(key, int) or key <= 0 or _may_be_mapping(places, function, one)


def moved_up(places: Places, function: Function, one: Instruction, held: Place) -> Place | None:
    """Where something stands once a method has taken the first element of its container; None where it was that."""
    rest = _inside(places, function, one, held)
    before, key, behind = rest if rest is not None else ((), None, ())
    if not isinstance(key, int) or _may_be_mapping(places, function, one):
        return held
    return Place(held.root, (*before, Element(key - 1), *behind)) if key else None


def aged(places: Places, function: Function, one: Instruction, held: Place) -> Place | None:
    """Where something in a container is once something else was put in behind it; a variable of a context holds nothing else then."""
    rest = _inside(places, function, one, held)
    if rest is not None and is_variable(places, function, one):
        return None
    return Place(held.root, (*rest[0], ANY, *rest[2])) if rest is not None and rest[1] == NEWEST.key else held


def _inside(places: Places, function: Function, one: Instruction, held: Place) -> tuple[tuple[Key, ...], object, tuple[Key, ...]] | None:
    """The keys to the container of a method, that of the element, and those behind it, of what stands in the container."""
    for name in places.names(function, one[3]):
        rest = rest_behind(name, held)
        if rest and isinstance(rest[0], Element):
            return held.path[: len(name.path)], rest[0].key, rest[1:]
    return None


def _may_be_mapping(places: Places, function: Function, one: Instruction) -> bool:
    """Whether a container finds its elements by keys, which stay."""
    return any(isinstance(value, Container) and value.kind == "dict" for value in places.facts.values(function, one[3]).values)


def is_variable(places: Places, function: Function, one: Instruction) -> bool:
    """Whether a method is called on what holds one object at a time."""
    held = places.facts.values(function, one[3]).values
    return bool(held) and all(isinstance(value, Container) and value.kind == "variable" for value in held)


def _holds_several(places: Places, function: Function, one: Instruction) -> bool:
    """Whether a branch before a method has asked for the length of its container, and found two elements at least."""
    names = set(places.names(function, one[3]))
    for condition, holds in conditions(function, function.blocks[one]):
        asked = function.definitions[condition] if condition >= 0 else None
        if asked is None or asked[0] != op.COMPARE:
            continue
        operator = function.text(asked[3])
        for length, number, way in ((asked[4], asked[5], operator), (asked[5], asked[4], _TURNED.get(operator, operator))):
            more = _FEWEST.get((way, holds))
            if more is not None and _is_of(places, function, length, names):
                numbers = list(_numbers(places, function, number))
                return bool(numbers) and min(numbers) + more > 1
    return False


def _is_of(places: Places, function: Function, register: int, names: set[Place]) -> bool:
    """Whether a call is asked of a container alone: ``len(queue)``, ``queue.size()``."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or one[0] not in (op.CALL, op.INVOKE):
        return False
    given: Iterable[int] = (each for _, each in argument_registers(function, one))
    asked = [*given, *((one[3],) if one[0] == op.INVOKE else ())]
    return len(asked) == 1 and not names.isdisjoint(places.names(function, asked[0]))


def _numbers(places: Places, function: Function, register: int) -> Iterator[int]:
    """The numbers that a register may hold, as far as the program says."""
    for value in places.facts.values(function, register).values:
        if isinstance(value, Constant) and isinstance(value.value, int):
            yield value.value
