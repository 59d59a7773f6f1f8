"""Whether a call's arguments fit a function of Python: what raises TypeError at once is not what a call of one of many functions enters."""

from __future__ import annotations

from collections.abc import Collection

from streamlint.facts.functions import Function
from streamlint.facts.instructions import arguments_of
from streamlint.facts.objects import BoundMethod, FunctionObject, Object
from streamlint.ir import Instruction

_KEEPING = frozenset({"staticmethod", "classmethod"})
"""Decorators behind which a function takes the arguments that it says."""


def takes(function: Function, is_bound: bool, positional: int, keywords: Collection[str]) -> bool:
    """Whether a function takes so many arguments by position and those by name; what is decorated, or written in C++, may take any."""
    if function.is_cpp or not _KEEPING.issuperset(function.decorators):
        return True
    parameters = [one for one in function.code.parameters if one.kind != "captured"]
    kinds = {one.kind for one in parameters}
    given = positional + (1 if is_bound and function.has_receiver else 0)
    if given > sum(one.kind == "plain" for one in parameters) and "star" not in kinds:
        return False
    names = {one.name for one in parameters}
    return "double" in kinds or names.issuperset(keywords)


def fits(value: Object, function: Function, one: Instruction) -> bool:
    """Whether a call instruction of a function may enter what it calls."""
    if function.is_cpp or not isinstance(value, (FunctionObject, BoundMethod)):
        return True
    kinds = [kind for _, kind in arguments_of(function, one)]
    spread = next((place for place, kind in enumerate(kinds) if kind is not None), len(kinds))
    names = [kind for kind in kinds if isinstance(kind, str)]
    called = value.method.function if isinstance(value, BoundMethod) else value.function
    return takes(called, isinstance(value, BoundMethod) and value.receiver is not None, spread, names)
