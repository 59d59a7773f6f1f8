"""Which way each unknown falls: always towards silence. This is the one place that says it.

* An event or a stream that is not known and is awaited, synchronized or recorded orders everything.
* Two indices or parts that may be the same are not the same for a pair of accesses.
* Two kernels whose arguments say which part of a buffer they touch do not meet where these arguments differ, nor does one meet what begins
  farther on in the buffer.
* Atomic operations of one kind, as a sum that many add to, are in no order and need none.
* Memory of unknown kind is neither pageable nor pinned; a view of unknown layout has no gaps.
* Streams that were created, handed in, or current at a root's entry differ from one another. The stream that is current at a root's
  entry is the default stream, unless a caller in view switched it; a wait for a stream from out of view may be a wait for it.
* Locks and the GIL are not held, no graph is being captured.
"""

from __future__ import annotations

import re

from streamlint.interpreter.values import Part, Value


def parts_meet(first: Part, second: Part) -> bool:
    """Whether two parts of one storage surely share an element: the whole meets all, equal terms meet, all else is disjoint."""
    return all(_axis_meets(one, two) for one, two in zip(first, second, strict=False))


def begin_apart(first: Part, second: Part) -> bool:
    """Whether of two pointers into one memory one begins farther on: how far either is used is not said."""
    shorter, longer = sorted((_pointer(first), _pointer(second)), key=len)
    if len(shorter) == len(longer) or longer[: len(shorter)] != shorter:
        return False
    axis = longer[len(shorter)]
    return axis[0] == "s" and axis[1] not in ("", "0")


def _pointer(part: Part) -> Part:
    """Where a pointer begins, whatever the kernel that it is given to touches of it."""
    return part[:-1] if part and part[-1][0] in ("@", "+") else part


def _axis_meets(one: tuple[str, ...], two: tuple[str, ...]) -> bool:
    if one == two:
        return one[0] not in ("?", "+")
    if "@" in (one[0], two[0]):
        return _placed_meets(one, two) if one[0] == "@" else _placed_meets(two, one)
    if "+" in (one[0], two[0]):
        return True  # one of them is no atomic operation, or another one
    if one[0] == "b" or two[0] == "b":
        return _reaches(one, two) if one[0] == "b" else _reaches(two, one)
    if one[0] == "i" and two[0] == "s":
        return _index_in_slice(one[1], two[1], two[2])
    if one[0] == "s" and two[0] == "i":
        return _index_in_slice(two[1], one[1], one[2])
    if one[0] == "s" and two[0] == "s":
        # Two ranges with one beginning, or one that is the whole axis.
        return one[1] == two[1] or ("", "") in (one[1:], two[1:])
    # "*" is an index that runs over the whole (a loop's own variable, a mask).
    return "*" in (one[0], two[0])


def _placed_meets(placed: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether what a kernel touches, as its arguments say, meets another such part, or what begins where the buffer does."""
    if other[0] == "@":
        return set(placed[1:]) <= set(other[1:]) or set(other[1:]) <= set(placed[1:])
    if other[0] == "b" and any(arg.isdecimal() and int(arg) for arg in placed[1:]):
        # So many bytes may end before a kernel that begins farther on: not with all that its arguments speak of, and more.
        return {name for arg in placed[1:] for name in _NAME.findall(arg)} < set(_NAME.findall(_SIZEOF.sub("", other[1])))
    return other[0] != "s" or other[1] in ("", "0")


_SIZEOF = re.compile(r"sizeof\([^()]*\)")
_NAME = re.compile(r"[^\W\d][\w.:@#]*")


def _reaches(beginning: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether so many bytes from the beginning on meet a range or an index: not one that begins farther on, or where they end."""
    if other[0] == "s":
        return other[1] in ("", "0")
    if other[0] != "i":
        return other[0] in ("b", "*")
    counts = {factor for factor in re.split(r"[ *()]+", beginning[1]) if not factor.isdigit()}
    return counts.isdisjoint(other[1].strip("()").split(" + "))


def _index_in_slice(index: str, low: str, high: str) -> bool:
    if low in ("", "0") and high == "":
        return True
    return index == (low or "0")


def truth(value: Value) -> bool | None:
    """Whether a value is true, where it is known."""
    from streamlint.interpreter.held import at_end
    from streamlint.interpreter.pointers import is_smart, pointee
    from streamlint.interpreter.values import Buffer, Const, Handle, Opaque, Series, Table

    if is_smart(value):
        held = pointee(value)
        return truth(held) if isinstance(held, Const) else True
    if isinstance(value, Const):
        try:
            return bool(value.value)
        except Exception:
            return None
    if isinstance(value, Series):
        return bool(value.items) if value.items is not None else (True if at_end(value) else None)
    if isinstance(value, Table):
        return True if value.items else (False if value.complete else None)
    if isinstance(value, Opaque | Buffer):
        return None
    if isinstance(value, Handle) and value.type.startswith("std::"):
        return None  # what a `std::atomic`, a `std::optional` or a future holds
    return True
