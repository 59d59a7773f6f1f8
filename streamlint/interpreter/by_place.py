"""Flags that are given by their place: ``x.copy_(y, True)``, ``x.to(device, dtype, wait_not)``. No word says what they are.

Tensor.to takes a device or another tensor, a data type, ``non_blocking`` and ``copy`` in this order; Tensor.cuda and Tensor.copy_ take the
flag second (PyTorch's documentation of torch.Tensor). So an argument behind the first one that is no data type may be the flag.
What a module defines under such a name (``init.copy_(weight, other)``) is a function, whose own text says what it does.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

from streamlint.interpreter.letters import separators, with_letter
from streamlint.operations import BY_PLACE

# Each way begins with a letter of its own: `re` looks for these, and tries nothing at others.
_CALL = re.compile(r"\.\s*(?:to|cuda)\(|->\s*(?:to|cuda)\(|::\s*(?:to|cuda)\(|c(?<!index_c)(?<!def c)opy_\(")
_OF_NAME = re.compile(r"(?<![\w.])(\w+)\.(?:to|cuda|copy_)\(")
_NAMED = re.compile(r"\s*\w+\s*=(?!=)|\s*\*\*")
_DATA_TYPE = re.compile(
    r"(?:.*\W)?(?:\w*type(?:\(\))?|(?:b?float|u?int|complex|half|double|long|short|bool|float8_\w+)\d*|k(?:B?Float|U?Int|Half|Double|Long|Bool)\w*)\s*",
    re.DOTALL,
)


def marked(text: str) -> str:
    """The text with ``BY_PLACE`` instead of each comma before an argument that may be such a flag; all else stays at its place."""
    return with_letter(text, (comma for call in _CALL.finditer(text) for comma in _before_flags(text, call.end())), BY_PLACE)


def unmarked(text: str, is_module: Callable[[str], bool]) -> str:
    """A marked text without the marks in calls of modules' functions."""
    for call in list(_OF_NAME.finditer(text)) if BY_PLACE in text else ():
        marks = [part.start() for part in separators(text, call.end()) if part[0] == BY_PLACE]
        if marks and is_module(call[1]):
            text = with_letter(text, marks, ",")
    return text


def _before_flags(text: str, begin: int) -> Iterator[int]:
    """The commas of one call, whose arguments begin here, that stand before a flag."""
    ends = [part.start() for part in separators(text, begin) if part[0] != ":"]  # of the arguments
    if ends and text[ends[-1]] != ",":
        yield from (comma for comma, end in itertools.pairwise(ends) if _may_be_flag(text[comma + 1 : end]))


def _may_be_flag(argument: str) -> bool:
    return bool(argument.strip()) and _NAMED.match(argument) is None and _DATA_TYPE.fullmatch(argument) is None
