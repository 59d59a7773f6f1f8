"""A stream that somebody has chosen for work, and what code says of such a choice."""

from __future__ import annotations

from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject, Site
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import Place
from streamlint.transfer.modelled import is_null


class Choice(NamedTuple):
    """A stream that an operation may work on: what it is, how it was chosen (as in `launches`; ``default``: a parameter or member was
    left at its default), where, and the calls from there to the operation, the outermost first. ``made`` are the streams it may be;
    ``obtained`` is the call that gave the default stream."""

    kind: str
    how: str
    at: Site
    calls: tuple[Site, ...] = ()
    made: frozenset[LibraryObject] = frozenset()
    place: Place | None = None
    obtained: Site | None = None

    @property
    def key(self) -> object:
        """What tells it from other streams."""
        return frozenset(one.site for one in self.made) if self.made else (self.kind, self.place)


def default_is_null(function: Function, index: int) -> bool:
    """Whether a parameter is null where a call leaves it out."""
    parameter = function.code.parameters[index]
    if function.is_cpp:
        default = function.default_of(parameter.name)
        return default is not None and any(is_null(default, end[2], []) for end in default.by_opcode[op.RETURN] if end[2] >= 0)
    register, parent = function.default_register(index), function.parent
    return register is not None and parent is not None and is_null(parent, register, [])
