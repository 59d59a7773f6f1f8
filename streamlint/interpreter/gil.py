"""Who holds Python's GIL on a path: taken by whoever Python calls, let go and taken back by guards, macros and ``with nogil``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from streamlint.findings import Span
from streamlint.operations import Holding
from streamlint.record import field, record, replace

# What a guard object of C++ keeps, so that its end is seen.
GUARD = "(gil)"


@record(eq=False, slots=True)
class Gil:
    """``home`` is the function that Python called; ``before`` what held when each change was made that is not undone yet."""

    held: Holding | None = None
    home: Holding | None = None
    before: list[Holding | None] = field(default_factory=list)

    def let_go(self) -> None:
        """``PyEval_SaveThread`` and its like."""
        self.before.append(self.held)
        self.held = None

    def take(self) -> None:
        """``PyGILState_Ensure`` and its like: held, by the function that Python called if there is one."""
        self.before.append(self.held)
        self.held = self.home

    def back(self) -> None:
        """The last change is undone."""
        if self.before:
            self.held = self.before.pop()

    @contextlib.contextmanager
    def entered(self, holding: Holding | None) -> Iterator[None]:
        """Inside, ``holding`` holds it; None is a thread of the driver's, or code that is run to learn what it makes."""
        state = self.held, self.home, self.before
        self.held = self.home = holding
        self.before = []
        try:
            yield
        finally:
            self.held, self.home, self.before = state

    @contextlib.contextmanager
    def scope(self, part: str) -> Iterator[None]:
        """A block in which it is let go, or taken."""
        self.let_go() if part == "drop" else self.take()
        depth = len(self.before)
        try:
            yield
        finally:
            del self.before[depth:]
            self.back()


def held_by_function(place: Span, depth: int) -> Holding:
    """A function that Python calls, and that releases nothing by itself."""
    line = replace(place, end_row=place.row, end_column=place.column + 1)
    return Holding("function", line, depth)
