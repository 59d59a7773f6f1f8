"""Where a path can still meet what it is followed for: the functions that hold it, and those from which calls lead there."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.support.memo import memoized

_MOST_CALLERS = 2_000
"""Functions above one that are looked at; of one with more, a path goes up everywhere."""
Callers = Callable[[Function], list[tuple[Function, Instruction]]]
Calls = dict[Function, set[Instruction]]


class Meeting:
    """Some functions, and the calls that lead to them, by the functions that hold the calls. ``calls`` is None where these are too many."""

    def __init__(self, functions: frozenset[Function], calls: Calls | None, callers: Callers, repeats: Repeats) -> None:
        self.functions = functions
        self.calls = calls
        self._callers = callers
        self._repeats = repeats
        self._above: dict[Function, bool] = {}

    def is_ahead(self, function: Function) -> bool:
        """Whether a path that begins in a function may come there, through calls or callers."""
        return self.calls is None or function in self.functions or function in self.calls or self._is_above(function)

    def is_behind(self, caller: Function, call: Instruction) -> bool:
        """Whether a path that goes up behind a call may come there: in the caller, through its other calls or next rounds, or above."""
        if self.calls is None or caller in self.functions:
            return True
        own = self.calls.get(caller, set())
        if len(own) > 1 or (own and call not in own) or (own and self._repeats(caller, call)):
            return True
        return self._is_above(caller)

    def _is_above(self, function: Function) -> bool:
        found = self._above.get(function)
        if found is None:
            self._above[function] = False  # in a cycle, the others tell
            found = self._above[function] = any(self.is_behind(*place) for place in self._callers(function))
        return found


Repeats = Callable[[Function, Instruction], bool]
"""Whether an instruction stands in a loop of its function."""


class Meetings:
    """The meetings of a program."""

    def __init__(self, callers: Callers, repeats: Repeats) -> None:
        self._callers = callers
        self._repeats = repeats
        self._known: dict[frozenset[Function], Meeting] = {}

    def of(self, functions: Iterable[Function]) -> Meeting:
        """The meeting with what some functions hold."""
        wanted = frozenset(functions)
        found = self._known.get(wanted)
        if found is None:
            found = self._known[wanted] = Meeting(wanted, self._leading(wanted), self._callers, self._repeats)
        return found

    def _leading(self, wanted: frozenset[Function]) -> Calls | None:
        merged: Calls = {}
        for function in wanted:
            calls = self._leading_to(function)
            if calls is None:
                return None
            for caller, own in calls.items():
                merged.setdefault(caller, set()).update(own)
        return merged

    @memoized
    def _leading_to(self, function: Function) -> Calls | None:
        """By caller: the calls that lead to a function, directly or through others."""
        found: Calls = {}
        waiting = [function]
        for each in waiting:
            for caller, call in self._callers(each):
                if caller not in found and caller is not function:
                    waiting.append(caller)
                found.setdefault(caller, set()).add(call)
        return found if len(found) <= _MOST_CALLERS else None
