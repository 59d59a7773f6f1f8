"""What an object's options say where an instruction runs: what runs with an option on and what runs with it off never meet."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import opcodes as op
from streamlint.transfer.transfer import Transfer
from streamlint.waits.questions import conditions

_HIGHEST = 3
Options = dict[tuple[str, ...], bool]
"""By the attributes that lead from the object to an option: whether it is on."""


class OptionWays:
    """Finds the options that are known to be on or off."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self._around: dict[Function, Options] = {}

    def exclude(self, first: Site, second: Site) -> bool:
        """Whether one of two places in methods of one class runs with an option on, the other one with it off."""
        owner = first.function.owner
        if owner is None or owner is not second.function.owner:
            return False
        on_first, on_second = self._at(first), self._at(second)
        return any(on_second.get(option, state) != state for option, state in on_first.items())

    def _at(self, site: Site, depth: int = _HIGHEST) -> Options:
        """The options that a place is shown to run with, by the tests around it and around the calls of its method."""
        function = site.function
        found: Options = {}
        for condition, holds in conditions(function, function.blocks[site.instruction]):
            path = _path(function, condition)
            if path:
                found.setdefault(path, holds)
        return self._of_callers(function, depth) | found if depth else found

    def _of_callers(self, function: Function, depth: int) -> Options:
        """What all calls of a method agree on, where its own class calls it alone."""
        if function not in self._around:
            self._around[function] = {}  # a method that calls itself says nothing more
            callers = [Site(*place) for place in self.transfer.callers(function)]
            if callers and all(caller.function.owner is function.owner for caller in callers):
                first, *others = [self._at(caller, depth - 1) for caller in callers]
                agreed = {path: state for path, state in first.items() if all(other.get(path) == state for other in others)}
                self._around[function] = agreed
        return self._around[function]


def _path(function: Function, register: int) -> tuple[str, ...]:
    """The attributes that lead from a method's object to what a register holds; none for all else."""
    names: list[str] = []
    one = function.definitions[register] if register >= 0 else None
    while one is not None and one[0] == op.ATTR:
        names.append(function.text(one[4]))
        register = one[3]
        one = function.definitions[register] if register >= 0 else None
    return tuple(reversed(names)) if function.owner is not None and function.is_parameter(register) else ()
