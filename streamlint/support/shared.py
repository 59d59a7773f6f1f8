"""Objects that find something out once for all that ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Kind = TypeVar("Kind")


class Shared:
    """Objects by what they are made from."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Any] = {}

    def one_of(self, kind: Callable[..., Kind], *given: object) -> Kind:
        """The one object of a kind for what it is made from."""
        key = (kind, *given)
        found: Kind | None = self._known.get(key)
        if found is None:
            found = self._known[key] = kind(*given)
        return found
