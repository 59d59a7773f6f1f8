"""By which calls functions were entered, and what their registers hold then."""

from __future__ import annotations

from typing import NamedTuple

from streamlint.facts.functions import ClassInfo, Function
from streamlint.facts.objects import Site
from streamlint.ir import Instruction

Context = tuple[tuple[Function, Site], ...]
"""The functions that were entered, each with the call that did it. A function that is not in it was entered by any of its calls."""


def entered_by(context: Context, function: Function) -> Site | None:
    """The call that has entered a function."""
    return next((site for entered, site in context if entered is function), None)


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
