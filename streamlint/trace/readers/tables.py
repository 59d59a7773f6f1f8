"""Tables of things, each held once and known by its number."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Table(Generic[T]):
    """Numbers things from 0 on, in a list that may hold some already; things are hashable."""

    def __init__(self, all: list[T] | None = None) -> None:
        self.all: list[T] = [] if all is None else all
        self._numbers = {one: number for number, one in enumerate(self.all)}

    def number(self, one: T) -> int:
        """The index of a thing in the list, to which it is added if it is not there."""
        found = self._numbers.get(one)
        if found is None:
            found = self._numbers[one] = len(self.all)
            self.all.append(one)
        return found
