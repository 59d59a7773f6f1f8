"""What is taken out of a list from out of view: it may be what was put in before, and who waits for it may wait for that.

A queue of events is filled by one method and emptied by another: which of them is at its front, no path says. What was added at the end
of a list is at its end until it is taken from there.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamlint.interpreter.values import Const, Opaque, Series, Value

_END = "appended"
_SOMEWHERE = "extended"
_ADDED = (_END, _SOMEWHERE)


def append(holder: Series, value: Value) -> None:
    """Put a value at the end of a list whose elements are not known one by one."""
    holder.made[f"{_END}{len(holder.made)}"] = value


def put_somewhere(holder: Series, value: Value) -> None:
    """Put one of several values into such a list; what is at its end now is not known."""
    holder.made[f"{_SOMEWHERE}{len(holder.made)}"] = value


def mix(holder: Series) -> None:
    """What was put into such a list stands anywhere in it from now on, or in it no more."""
    if any(key.startswith(_END) for key in holder.made):
        holder.made = {key.replace(_END, _SOMEWHERE): value for key, value in holder.made.items()}


def at_end(holder: Series) -> Value | None:
    """The last element of such a list, where it is known to be what was appended last."""
    key = _last(holder)
    return holder.made[key] if key else None


def take_last(holder: Series) -> None:
    """Take away the last element of such a list."""
    key = _last(holder)
    if key:
        del holder.made[key]


def _last(holder: Series) -> str:
    if holder.items is None and holder.kind != "set":
        for key in reversed(holder.made):
            if key.startswith(_ADDED):
                return key if key.startswith(_END) else ""
    return ""


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
