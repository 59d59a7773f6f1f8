"""What is taken out of a list from out of view: it may be what was put in before, and who waits for it may wait for that.

A queue of events is filled by one method and emptied by another: which of them is at its end, no path says.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamlint.interpreter.values import Const, Opaque, Series, Value

_ADDED = ("appended", "extended")


def put_in(holder: Series) -> list[Value]:
    """What was put into a list whose elements are not known one by one."""
    return [value for key, value in holder.made.items() if key.startswith(_ADDED)]


def parts_at(values: Sequence[Value], term: str) -> list[Value]:
    """What stands at a place of the values, where they are tuples or lists; else they themselves."""
    place = int(term) if term.isdigit() else -1
    return [
        value.items[place] if isinstance(value, Series) and value.items and 0 <= place < len(value.items) else value for value in values
    ]


def may_be_among(element: Value, values: Sequence[Value]) -> Value:
    """An element that is not known, which may be one of these values, or a part of one."""
    if values and isinstance(element, Opaque) and not element.type:
        known = {id(value) for value in element.reach}
        element.reach = (*element.reach, *(value for value in values if id(value) not in known and not isinstance(value, Const)))
        element.held = True
    return element
