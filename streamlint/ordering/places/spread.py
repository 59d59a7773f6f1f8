"""Arguments that calls spread, and parameters that collect the rest: which element of one is which element of the other."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import DICT, LIST
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.c_api import is_of_c, taken_apart
from streamlint.ordering.places.places import Element, Place, Places
from streamlint.waits.operands import Given, all_given, bound_of, operand_of


def brought(function: Function, call: Instruction, callee: Function, index: int) -> list[int]:
    """The registers that may bring what a parameter holds: its argument, what is spread, or what the parameter collects."""
    register = operand_of(function, call, callee, index)
    if register is not None:
        return [register] if register >= 0 else []
    if function.is_cpp or callee.is_cpp or call[0] not in (op.CALL, op.INVOKE) or index >= len(callee.code.parameters):
        return []
    kind = callee.code.parameters[index].kind
    given = all_given(function, call, callee)
    if kind in ("star", "double"):
        mark = LIST if kind == "star" else DICT
        return [each for key, each in given if key == mark or (key is None if kind == "star" else isinstance(key, str))]
    return [each for key, each in given if key == DICT or (key == LIST and kind == "plain")]


def spread(places: Places, function: Function, call: Instruction, callee: Function) -> Iterator[tuple[Place, Place]]:
    """Places of a caller, and the places of the callee that mean the same, where one of them is within a tuple or dictionary."""
    kinds = [parameter.kind for parameter in callee.code.parameters]
    given = all_given(function, call, callee) if call[0] in (op.CALL, op.INVOKE) else []
    if is_of_c(function, callee):
        for index, (kind, register) in enumerate(given):
            target = Place(("parameter", 1), (Element(index),)) if taken_apart(places.facts, callee) else Place(("parameter", 1 + index))
            yield from ((name, target) for name in places.names(function, register) if kind is None)
        return
    if callee.code.name == "__post_init__":
        for field, register in places.records.given(function, call):
            yield from ((name, Place(("parameter", 0), (field,))) for name in places.names(function, register))
    if not ({"star", "double"} & set(kinds) or any(kind in (LIST, DICT) for kind, _ in given)):
        return
    yield from _by_position(places, function, kinds, given, bound_of(function, call, callee))
    yield from _by_name(places, function, callee, kinds, given)


def spread_to(places: Places, function: Function, call: Instruction, callee: Function, index: int) -> tuple[Place, ...]:
    """The places of a caller that mean a parameter of the callee: what is spread, or the default of a function that it has made."""
    wanted = Place(("parameter", index))
    found = tuple(source for source, target in spread(places, function, call, callee) if target == wanted)
    if found or callee.parent is not function or index >= len(callee.code.parameters):
        return found
    default = callee.default_register(index)
    return places.names(function, default) if default is not None else ()


def _by_position(places: Places, function: Function, kinds: list[str], given: list[Given], index: int) -> Iterator[tuple[Place, Place]]:
    star = kinds.index("star") if "star" in kinds else len(kinds)
    for kind, register in given:
        if kind is None:
            if star <= index:
                yield from ((name, Place(("parameter", star), (Element(index - star),))) for name in places.names(function, register))
            index += 1
        elif kind == LIST:
            for name in places.names(function, register):
                plain = range(index, min(star, len(kinds)))
                yield from ((name.behind(Element(each - index)), Place(("parameter", each))) for each in plain if kinds[each] == "plain")
                if star == index:
                    yield name, Place(("parameter", star))
            return  # what follows is at no known place


def _by_name(places: Places, function: Function, callee: Function, kinds: list[str], given: list[Given]) -> Iterator[tuple[Place, Place]]:
    double = kinds.index("double") if "double" in kinds else None
    named = {parameter.name: index for index, parameter in enumerate(callee.code.parameters) if parameter.kind in ("plain", "keyword")}
    for kind, register in given:
        names = places.names(function, register)
        if isinstance(kind, str) and kind not in named and double is not None:
            yield from ((name, Place(("parameter", double), (Element(kind),))) for name in names)
        elif kind == DICT:
            for name in names:
                yield from ((name.behind(Element(key)), Place(("parameter", index))) for key, index in named.items())
                if double is not None:
                    yield name, Place(("parameter", double))
