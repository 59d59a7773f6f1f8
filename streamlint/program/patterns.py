"""The patterns of Python's ``match``."""

from __future__ import annotations

from typing import Literal

from streamlint.program.expressions import Expression
from streamlint.program.positions import NOWHERE, PACKED, Position
from streamlint.support.records import field, record


@record(eq=False, slots=True)
class Pattern:
    """What a subject may fit. ``name`` is bound to what fits.

    ``value``: the subject equals ``value``, or is it (``single``: None, True, False). ``any``: everything fits. ``or``: one of ``items``.
    ``sequence``: ``items``, of which that at ``star`` takes the rest. ``mapping``: ``items`` at ``keys``; ``rest`` is bound to all others.
    ``class``: an instance of ``value`` whose attributes ``names`` fit the last ``items``; those before them go by their places.
    """

    __packed__ = (("at", PACKED),)

    kind: Literal["value", "single", "any", "or", "sequence", "mapping", "class"]
    value: Expression | None = None
    items: tuple[Pattern, ...] = ()
    keys: tuple[Expression, ...] = ()
    names: tuple[str, ...] = ()
    name: str = ""
    rest: str = ""
    star: int = -1
    at: Position = field(default=NOWHERE, kw_only=True)


@record(eq=False, slots=True)
class Case:
    """The pattern and the guard of one arm; the first ``bindings`` statements of its body stand for the names that the pattern binds."""

    pattern: Pattern
    guard: Expression | None
    bindings: int
