"""Whether code asks for the time between events that other functions may know."""

from __future__ import annotations

import re

from streamlint import program as p
from streamlint.interpreter.index import File
from streamlint.interpreter.spelling import says

_ASKS = re.compile(r"(\w*lapsed\w*)\s*\(")
_ELAPSED = frozenset({"elapsed"})


def measures_time(file: File) -> bool:
    """Whether a file, or one that it includes, takes the time between events that are not a function's own.

    This is asked of the text: a call of any name that speaks of what has elapsed is one.
    """
    return any(_measures(other) for other in (file, *file.neighbours()))


def _measures(file: File) -> bool:
    if "lapsed" not in file.module.text:
        return False
    if not file.is_cuda:
        return True
    own = sum(_measures_own(function) for function, _ in p.functions_of(file.module))
    return own == 0 or sum(says(name, _ELAPSED) for name in _ASKS.findall(file.module.text)) != own


def _measures_own(function: p.Function) -> int:
    """The calls of a function that ask for the time between two events which it declares itself, and is not given."""
    declared: set[str] = set()
    asked: list[p.Call] = []
    for node in p.walk(function):
        if isinstance(node, p.Declare) and node.value is None and not node.args and not node.type.reference and not node.static:
            declared.add(node.name)
        elif isinstance(node, p.Call) and isinstance(node.function, p.Name) and node.function.id.endswith("EventElapsedTime"):
            asked.append(node)
    return sum(all(isinstance(arg.value, p.Name) and arg.value.id in declared for arg in call.args[1:]) for call in asked)
