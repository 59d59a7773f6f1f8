"""By which calls functions were entered."""

from __future__ import annotations

from streamlint.facts.functions import Function
from streamlint.facts.objects import Site

Context = tuple[tuple[Function, Site], ...]
"""The functions that were entered, each with the call that did it. A function that is not in it was entered by any of its calls."""


def entered_by(context: Context, function: Function) -> Site | None:
    """The call that has entered a function."""
    return next((site for entered, site in context if entered is function), None)
