"""Methods that answer each question once."""

from __future__ import annotations

from functools import wraps

from streamlint import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Method = TypeVar("Method", bound=Callable[..., Any])

_NONE_YET = object()


def memoized(method: Method) -> Method:
    """Have a method compute its answer once for each of its arguments; the answers are kept with the object."""
    name = f"answers of {method.__qualname__}"

    @wraps(method)
    def answer(self: Any, *given: Any) -> Any:
        answers = self.__dict__.get(name)
        if answers is None:
            answers = self.__dict__[name] = {}
        found = answers.get(given, _NONE_YET)
        if found is _NONE_YET:
            found = answers[given] = method(self, *given)
        return found

    return answer  # type: ignore[return-value]
