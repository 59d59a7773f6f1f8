"""C++: what calls and constructors of the language's library put together: pairs, what a smart pointer holds, elements of maps."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Elements
from streamlint.facts.code.passing import STORES
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.code import spelled
from streamlint.ordering.places.given_places import PAIR
from streamlint.ordering.places.places import ANY, Element, Place, Places

_GET = "std::get"
_VALUE = Element(1)
Part = tuple[int, tuple[Element, ...], Place]
"""A register, the keys behind it, and where what is there stands then."""


def put_together(places: Places, function: Function, one: Instruction, target: Place) -> Iterator[Part]:
    """What a call or a constructor makes of its arguments."""
    if one[0] == op.INVOKE:
        yield from _put(places, function, one)
        return
    if one[0] == op.BUILD:
        yield from _listed(places, function, one, target)
        return
    given = one[5:]
    name = str(function.unit.ir.constants[one[3]][0]) if one[0] == op.CONSTRUCT else function.dotted(one[3])
    if name == _GET and given:
        yield given[0], (_number(function, one),), target
    else:
        yield from _kept(places, function, one, name, target)


def _kept(places: Places, function: Function, one: Instruction, name: str, target: Place) -> Iterator[Part]:
    """What a function or a constructor of a name keeps of its arguments, and where."""
    models, given = places.facts.cpp_models, one[5:]
    if name in models.marked("groups"):
        yield from _paired(given, target)
    elif one[0] == op.CONSTRUCT and name in models.marked("sequence"):
        yield from ((register, (), target.behind(ANY)) for register in given)
    elif name in models.marked("makes-held"):
        yield from ((register, (), target.behind(field)) for field, register in zip(places.members(function, one), given, strict=False))
    if len(given) == 1 and name in _holding(places):
        yield given[0], (), target


def _number(function: Function, one: Instruction) -> Element:
    """The element that ``std::get<1>(parts)`` takes."""
    template = function.code.templates.get(one[1])
    number = spelled(template[0]) if template else ""
    return Element(int(number)) if number.isdecimal() else ANY


def element_taken(places: Places, function: Function, one: Instruction) -> tuple[Element, ...]:
    """The keys that lead from a container to the element that a method gives; what holds one object alone stands for that."""
    if not any(isinstance(value, Elements) for value in places.facts.values(function, one[3]).values):
        return ()
    return (places.element(function, one[6]) if len(one) > 6 else ANY,)


def _holding(places: Places) -> frozenset[str]:
    """The functions and classes that stand for their only argument."""
    return frozenset().union(*(places.facts.cpp_models.marked(trait) for trait in ("makes-held", "smart", "gives-argument")))


def _paired(given: tuple[int, ...], target: Place) -> Iterator[Part]:
    """The elements of a pair or a tuple, which have names in a pair."""
    for index, register in enumerate(given):
        yield register, (), target.behind(Element(index))
        if len(given) == len(PAIR):
            yield register, (), target.behind(PAIR[index])


def _listed(places: Places, function: Function, one: Instruction, target: Place) -> Iterator[Part]:
    """The members of the record that a list in braces makes, or the elements of the pair."""
    fields = places.facts.brace_lists.fields(function, one)
    yield from ((register, (), target.behind(field)) for field, register in zip(fields, one[4:], strict=False))
    if not fields and len(one) == 4 + len(PAIR):
        yield from _paired(one[4:], target)


def _put(places: Places, function: Function, one: Instruction) -> Iterator[Part]:
    """What a method puts into a container that makes the element of its arguments, or finds it by a key."""
    given = one[6:]
    if not given or not function.invokes(one, *STORES):
        return
    element = places.of(function, one[3]).behind(ANY)
    fields = places.facts.brace_lists.emplaced(function, one)
    yield from ((register, (), element.behind(field)) for field, register in zip(fields, given, strict=False))
    if function.invokes(one, "stores-last"):
        yield given[-1], (), element
        yield from ((given[-1], (key,), element) for key in (_VALUE,) if len(given) == 1)
