"""What a caller calls the parameters of a function that it enters, and the places behind them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import Element, Key, Place, Places, rest_behind
from streamlint.ordering.places.rotation import EARLIER
from streamlint.ordering.walk.indices import is_named, renamed
from streamlint.waits.operands import ended_parameter, operand_of
from streamlint.waits.questions import alike

_HOLDING = (op.DELETE, op.DECLARE, op.CONSTRUCT, op.NEW)
"""What has the object in its first register whose constructor or destructor it runs."""


def given_for(function: Function, one: Instruction, callee: Function, index: int) -> int | None:
    """The register that an instruction gives for a parameter of a function that it enters."""
    if one[0] == op.DESTROY:
        return one[2] if index == ended_parameter(callee) else None
    if index == 0 and callee.has_receiver:
        if one[0] in _HOLDING or (one[0] == op.CALL and callee.code.name == "__init__"):
            return one[2]
        if one[0] == op.CALL and function.is_cpp:
            return _this(function)
        if one[0] in (op.ENTER, op.EXIT):
            return one[3]
    if one[0] in (op.CALL, op.INVOKE):
        return operand_of(function, one, callee, index)
    if one[0] in (op.CONSTRUCT, op.NEW):
        given = one[5:]
        return given[index - 1] if 0 <= index - 1 < len(given) else None
    return None


def _this(function: Function) -> int | None:
    """The register of a method's object."""
    return next((param[2] for param in function.by_opcode[op.PARAM] if param[3] == 0), None) if function.has_receiver else None


def outer_path(places: Places, site: Site, callee: Function, place: Place) -> tuple[Key, ...]:
    """The keys of a function's place as a call of it names them: of an index that the caller has no name for, as one of that function."""
    if not any(map(is_named, place.path)):
        return place.path
    given = ((param[2], given_for(*site, callee, param[3])) for param in callee.by_opcode[op.PARAM])
    known = ((alike(callee, param), each) for param, each in given if each is not None and each >= 0)
    names: dict[object, object] = {key: places.element(site.function, each).key for key, each in known}
    keys: list[Key] = []
    for key in place.path:
        if isinstance(key, Element) and is_named(key):
            outer = renamed(key.key, names)
            key = Element(outer if outer is not None else (EARLIER, callee.unit.number, callee.code.number, key.key))
        keys.append(key)
    return tuple(keys)


def as_parameters(places: Places, site: Site, callee: Function, found: Iterable[Place]) -> Iterator[Place]:
    """Places of a caller by the names that a function has for them which a call of it enters."""
    found = tuple(found)
    for param in callee.by_opcode[op.PARAM]:
        given = given_for(*site, callee, param[3])
        for name in places.names(site.function, given) if given is not None and given >= 0 else ():
            rests = (rest_behind(name, place) for place in found)
            yield from (Place(("parameter", param[3]), rest) for rest in rests if rest is not None and not any(map(is_named, rest)))
