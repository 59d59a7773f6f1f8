"""Whether a call's arguments fit a function of Python: what raises TypeError at once is not what a call of one of many functions enters."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import arguments_of
from streamlint.facts.code.objects import BoundMethod, FunctionObject, Object
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


def fitting(values: Iterable[Object], function: Function, one: Instruction) -> list[Object]:
    """The called values that a call instruction of a function may enter, or of which nothing here tells."""
    if function.is_cpp:
        return list(values)
    kinds = [kind for _, kind in arguments_of(function, one)]
    spread = next((place for place, kind in enumerate(kinds) if kind is not None), len(kinds))
    names = [kind for kind in kinds if isinstance(kind, str)]
    return [value for value in values if _takes(value, spread, names)]


def _takes(value: Object, positional: int, keywords: Collection[str]) -> bool:
    if isinstance(value, BoundMethod):
        return takes(value.method.function, value.receiver is not None, positional, keywords)
    return not isinstance(value, FunctionObject) or takes(value.function, False, positional, keywords)
