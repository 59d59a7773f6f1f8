"""Flags that are given by their place: ``x.copy_(y, True)``, ``x.to(device, dtype, wait_not)``. No word says what they are.

Tensor.to takes a device or another tensor, a data type, ``non_blocking`` and ``copy`` in this order; Tensor.cuda and Tensor.copy_ take the
flag second (PyTorch's documentation of torch.Tensor). So an argument behind the first one that is no data type may be the flag.
"""

from __future__ import annotations

import itertools
import re

from streamlint.operations import BY_PLACE

_CALL = re.compile(r"(?:(?:\.|->|::)\s*(?:to|cuda)|copy_)\(")
_PART = re.compile(r"""[()\[\]{},]|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""")
_NAMED = re.compile(r"\s*\w+\s*=(?!=)|\s*\*\*")
_DATA_TYPE = re.compile(
    r"(?:.*\W)?(?:\w*type(?:\(\))?|(?:b?float|u?int|complex|half|double|long|short|bool|float8_\w+)\d*|k(?:B?Float|U?Int|Half|Double|Long|Bool)\w*)\s*",
    re.DOTALL,
)
_LONGEST = 2000  # characters of one call's arguments


def marked(text: str) -> str:
    """The text with ``BY_PLACE`` instead of each comma before an argument that may be such a flag; all else stays at its place."""
    commas = [comma for call in _CALL.finditer(text) for comma in _before_flags(text, call.end())]
    if not commas:
        return text
    letters = list(text)
    for comma in commas:
        letters[comma] = BY_PLACE
    return "".join(letters)


def _before_flags(text: str, begin: int) -> list[int]:
    """The commas of one call, whose arguments begin here, that stand before a flag."""
    ends: list[int] = []  # of the arguments
    depth = 0
    for part in _PART.finditer(text, begin, begin + _LONGEST):
        if part[0] == "," and not depth:
            ends.append(part.start())
        elif part[0] in "([{":
            depth += 1
        elif part[0] in ")]}":
            depth -= 1
            if depth < 0:
                ends.append(part.start())
                return [comma for comma, end in itertools.pairwise(ends) if _may_be_flag(text[comma + 1 : end])]
    return []


def _may_be_flag(argument: str) -> bool:
    return bool(argument.strip()) and _NAMED.match(argument) is None and _DATA_TYPE.fullmatch(argument) is None
