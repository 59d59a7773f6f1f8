"""C++: what members of an object lead to, by the names of what they were given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import uncast
from streamlint.ir import FieldIR, Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.flow import EVENT, STREAM
from streamlint.ordering.places.places import Place, Places
from streamlint.transfer.transfer import Transfer

Sources = Callable[[Function, Instruction, Function, int], Iterable[Place]]
"""Where a call has what it gives for a parameter."""


Member = tuple[Function, int, str]
"""A function, the register of an object in it, and the member's name."""
HANDLES = frozenset({STREAM, EVENT})
"""What a copy is as good as: who keeps one by its value keeps the same."""
_FIRST = 5
"""Where the arguments of what makes an object begin."""


def kept_names(transfer: Transfer, places: Places, sources: Sources, member: Member, is_handle: bool) -> Iterator[Place]:
    """The places of what a member of an object was given where a function makes the object: as the argument that its constructor keeps by a
    pointer or reference, or by the one assignment."""
    function, register, name = member
    definition = function.definitions[register]
    if definition is not None and definition[0] == op.DECLARE:
        uses = (use for use in function.uses[register] if use[0] == op.SET_ATTR and use[2] == register)
        given = [use[4] for use in uses if function.text(use[3]) == name]
        yield from places.names(function, given[0]) if len(given) == 1 else ()
    elif definition is not None and definition[0] in (op.CONSTRUCT, op.NEW):
        if (owned := _owned(places, function, definition)) is not None:
            yield from kept_names(transfer, places, sources, (function, owned, name), is_handle)
        for field, value in places.facts.members_given(function, definition):
            if field.name == name and _leads_on(field, is_handle):
                yield from places.names(function, value)
        for edge in transfer.edges(function, definition):
            for index in _initialising(transfer, edge.callee, name, is_handle):
                yield from sources(function, definition, edge.callee, index)


def _leads_on(member: FieldIR, is_handle: bool) -> bool:
    """Whether a member is a pointer, a reference, or a handle: what it leads to is that which it was given."""
    return member.type is not None and (is_handle or member.type[2] > 0 or member.type[3])


def _owned(places: Places, function: Function, one: Instruction) -> int | None:
    """The register of what a smart pointer is made for."""
    kind = places.facts.named_type(function, function.unit.ir.constants[one[3]])[0]
    return one[_FIRST] if kind[0] in places.facts.cpp_models.marked("smart") and len(one) > _FIRST and one[_FIRST] >= 0 else None


def _initialising(transfer: Transfer, constructor: Function, name: str, is_handle: bool) -> Iterator[int]:
    """The parameters of a constructor that initialise a member which is a pointer, a reference, or a handle."""
    member = transfer.facts.field_of(constructor.owner, name) if constructor.owner is not None else None
    if member is None or not _leads_on(member[1], is_handle):
        return
    for one in constructor.by_opcode[op.INIT]:
        given = constructor.definitions[uncast(constructor, one[5])] if len(one) == 6 else None
        if given is not None and given[0] == op.PARAM and constructor.text(one[3]) == name:
            yield given[3]
