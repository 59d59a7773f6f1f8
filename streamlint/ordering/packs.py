"""What calls hand over in bundles: ``*args`` and ``**kwargs``, of the call and of the function that is called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.autograd import offset_of
from streamlint.facts.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places import ANY, Element, Key, Place
from streamlint.waits.operands import argument_registers, bound_of

_SPREAD, _SPREAD_NAMES = 1, 2
_BUNDLES = frozenset({"star", "double"})


class Packed(NamedTuple):
    """What is behind ``keys`` of a caller's register is found at a place of the function that is called."""

    register: int
    keys: tuple[Key, ...]
    target: Place


def packed(function: Function, call: Instruction, callee: Function) -> Iterator[Packed]:
    """What a call gives a function by a bundle on either side."""
    if call[0] not in (op.CALL, op.INVOKE) or function.is_cpp:
        return
    given = argument_registers(function, call)
    kinds = [parameter.kind for parameter in callee.code.parameters]
    is_spread = any(kind in (_SPREAD, _SPREAD_NAMES) for kind, _ in given)
    if not (is_spread or _BUNDLES.intersection(kinds)) or offset_of(function, call, callee) is None:
        return
    first = bound_of(function, call, callee)
    plain = [place for place, kind in enumerate(kinds) if kind == "plain" and place >= first]
    star = kinds.index("star") if "star" in kinds else None
    double = kinds.index("double") if "double" in kinds else None
    named = {one.name: place for place, one in enumerate(callee.code.parameters) if one.kind in ("plain", "keyword")}
    position, is_known = 0, True  # of the next argument; not known behind one that is spread
    for kind, register in given:
        if kind == _SPREAD:
            yield from _spread(register, position, plain, star) if is_known else ()
            is_known = False
        elif kind == _SPREAD_NAMES:
            yield from (Packed(register, (Element(name),), Place(("parameter", place))) for name, place in named.items())
            if double is not None:
                yield Packed(register, (), Place(("parameter", double)))
        elif kind is None:
            if star is not None and (position >= len(plain) or not is_known):
                yield Packed(register, (), Place(("parameter", star), (Element(position - len(plain)) if is_known else ANY,)))
            position += 1
        elif kind not in named and double is not None:
            yield Packed(register, (), Place(("parameter", double), (Element(kind),)))


def _spread(register: int, position: int, plain: list[int], star: int | None) -> Iterator[Packed]:
    """The elements of ``*register``, the first of them as an argument of that position."""
    for index, place in enumerate(plain[position:]):
        yield Packed(register, (Element(index),), Place(("parameter", place)))
    if star is None:
        return
    if position >= len(plain):
        target = Place(("parameter", star))
        yield Packed(register, (), target if position == len(plain) else target.behind(ANY))
    else:  # those that no parameter takes are counted anew
        yield Packed(register, (ANY,), Place(("parameter", star), (ANY,)))
