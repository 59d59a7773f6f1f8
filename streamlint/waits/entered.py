"""By which calls functions were entered, and what their registers hold then."""

from __future__ import annotations

from typing import NamedTuple

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction

Context = tuple[tuple[Function, Site], ...]
"""The functions that were entered, each with the call that did it. A function that is not in it was entered by any of its calls."""


def entered_by(context: Context, function: Function) -> Site | None:
    """The call that has entered a function."""
    return next((site for entered, site in context if entered is function), None)


def is_running(context: Context, function: Function, callee: Function) -> bool:
    """Whether a call of a context that has entered a function still runs while another one does: one more call would be recursion."""
    for _ in context:
        site = entered_by(context, function)
        if site is None or function is callee:
            return site is not None
        function = site.function
    return False


def entering(context: Context, callee: Function, call: Site) -> Context:
    """A context behind a call that enters a function. An earlier call of it has come to its end."""
    return (*(entry for entry in context if entry[0] is not callee), (callee, call))


class Held(NamedTuple):
    """A register of a function that some calls have entered. ``classes``: of a constructor, those of the objects that it makes;
    ``makers``: by constructor, the only calls that have made the objects that are meant."""

    function: Function
    register: int
    context: Context = ()
    classes: frozenset[ClassInfo] | None = None
    makers: Context = ()

    @property
    def instruction(self) -> Instruction | None:
        """What defines the register."""
        return self.function.definitions[self.register] if self.register >= 0 else None
