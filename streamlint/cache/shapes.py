"""Whether a record is of the form that is written: one may fit its hash, and come from anybody. What does not fit is as good as absent."""

from __future__ import annotations

from collections.abc import Callable

from streamlint import TYPE_CHECKING
from streamlint.findings import Category

if TYPE_CHECKING:
    from typing import Any

    # A type; a list of one form; a tuple of forms, for a list of this length; a dictionary by its keys, or by ``str``; a question.
    Shape = type | list[Any] | tuple[Any, ...] | dict[Any, Any] | Callable[[Any], bool]

MOST = 1 << 25  # rows and columns: a source has 16 MiB


def fits(value: object, shape: Shape) -> bool:
    """Whether a value of JSON has a form."""
    if isinstance(shape, type):
        return type(value) is shape
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(item, shape[0]) for item in value)
    if isinstance(shape, tuple):
        return isinstance(value, list) and len(value) == len(shape) and all(map(fits, value, shape))
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return False
        if str in shape:
            return all(fits(item, shape[str]) for item in value.values())
        return value.keys() >= shape.keys() and all(fits(value[key], each) for key, each in shape.items())
    return shape(value)


def optional(shape: Shape) -> Shape:
    """A form, or nothing."""
    return lambda value: value is None or fits(value, shape)


def among(*words: str) -> Shape:
    """One of some words."""
    return lambda value: isinstance(value, str) and value in words


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value < MOST


def _is_anything(value: object) -> bool:
    return True


def _are_screens(files: object) -> bool:
    """Of each file: a hash, flags, and the facts of the file. There may be a hundred thousand of them."""
    return isinstance(files, dict) and all(
        type(row) is list and len(row) == 3 and type(row[0]) is str and type(row[1]) is int and type(row[2]) in (list, type(None))
        for row in files.values()
    )


def _is_coverage(read: object) -> bool:
    return isinstance(read, dict) and fits(read.get("opaque", []), [list])


SPAN = (str, _is_number, _is_number, _is_number, _is_number)
PROBLEM = (str, str, _is_number, _is_number, bool)
FIX = optional((str, [(str, SPAN)], among("safe", "unsafe", "display")))
FINDING = (
    *(str, str, among(*(each.value for each in Category)), str, SPAN, [(str, SPAN)], str, FIX),
    *(dict, str, [str], [(SPAN, SPAN)], str, [SPAN], bool),
)
_BUILT = [(str, str, _is_anything)]
PART = ([FINDING], [PROBLEM], int, _is_coverage, [str], _BUILT)
REPORT = {"files": int, "relevant": int, "coverage": _is_coverage, "findings": [FINDING], "problems": [PROBLEM], "own_rows": [str]}
RUN = {"report": REPORT, "built": _BUILT, "listed": str, "files": _are_screens, "statements": [(str, int, str)]}


def is_run(record: object) -> bool:
    """Whether this is the record of a run; what it may hold besides fits, too."""
    return fits(record, RUN) and isinstance(record, dict) and fits(record.get("fixes", {}), {str: FIX})
