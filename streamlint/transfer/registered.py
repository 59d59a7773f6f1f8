"""Memory that the program page-locks in place."""

from __future__ import annotations

from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.ir import opcodes as op
from streamlint.transfer.origin import Origin
from streamlint.transfer.origins import Origins
from streamlint.waits.questions import alike

Key = tuple[object, ...]


class Registered:
    """The memory that calls like ``cudaHostRegister`` are given."""

    def __init__(self, origins: Origins) -> None:
        self.origins = origins

    def holds(self, origin: Origin) -> bool:
        """Whether memory is page-locked somewhere in the program."""
        return _key(origin) in self._keys

    @cached_property
    def _keys(self) -> frozenset[Key]:
        found = set[Key]()
        for call in self.origins.transfer.sites(frozenset({"register"})):
            for register in call.all("of"):
                found.update(map(_key, self.origins.of(call.function, register)))
                for known in self.origins.elements(call.function, register, ()):
                    found.update(map(_key, self.origins.of(*known)))
        return frozenset(found)


def _key(origin: Origin) -> Key:
    """What tells one piece of memory from others: the place that made it, or the member that holds it."""
    known, site = origin.known, origin.site
    function = known.function
    if site is not None and site.instruction[0] == op.NAME:
        method = function.method
        return (method.owner if method is not None else None, function.text(site.instruction[3]))
    if site is not None and site.instruction[0] == op.REBIND:
        return function, site.instruction[5]
    return function, _owner(function, known.register)


def _owner(function: Function, register: int) -> object:
    """A register, or what tells the object whose memory's address it holds: ``frame.buffer.data()`` is the same memory each time."""
    one = function.definitions[register] if register >= 0 else None
    while one is not None and one[0] == op.INVOKE and function.text(one[4]) in function.known("address"):
        register, one = one[3], function.definitions[one[3]]
    return alike(function, register) if one is not None and one[0] in (op.ATTR, op.ITEM) else register
