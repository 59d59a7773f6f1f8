"""The names that a function has for its registers, and whether two places may be one."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import assigned_at_once
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import Element, Place


class LocalNames:
    """The local names of registers."""

    def __init__(self) -> None:
        self._known: dict[tuple[Function, int], frozenset[str]] = {}

    def of(self, function: Function, register: int, depth: int = 4) -> frozenset[str]:
        """The local names of a register; those of a join are the names of what it joins."""
        key = (function, register)
        found = self._known.get(key)
        if found is None:
            self._known[key] = frozenset()  # a cycle of joins ends here
            own = {function.text(use[2]) for use in function.uses.get(register, ()) if use[0] == op.BIND}
            definition = function.definitions[register] if register >= 0 else None
            if definition is not None and definition[0] == op.PHI and depth:
                own.update(name for each in definition[3:] if each >= 0 for name in self.of(function, each, depth - 1))
            for one in _also(function, register):
                own |= self.of(function, one, depth)
            found = self._known[key] = frozenset(own)
        return found


def _also(function: Function, register: int) -> Iterator[int]:
    """The registers that are names of another one by ``a, b = x, y``."""
    for use in function.uses.get(register, ()):
        for one in function.uses.get(use[2], ()) if use[0] == op.BUILD else ():
            if assigned_at_once(function, one) == register:
                yield one[2]


def may_be_one(first: Place, second: Place) -> bool:
    """Whether two places may be one element of a container: of indices that are not constants nobody knows."""
    if first.root != second.root or len(first.path) != len(second.path) or first.path == second.path:
        return False
    pairs = zip(first.path, second.path, strict=True)
    return all(one == two or (isinstance(one, Element) and isinstance(two, Element) and not _are_known(one, two)) for one, two in pairs)


def _are_known(first: Element, second: Element) -> bool:
    return isinstance(first.key, (int, str)) and isinstance(second.key, (int, str))
