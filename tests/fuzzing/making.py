"""What the two generators share: names by kind, and templates whose holes are filled by drawing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
_HOLE = re.compile(r"\{\{|\}\}|\{(?P<word>\w+)(?: (?P<kind>\w+))?\}")


class Maker:
    """Draws the parts of one program."""

    def __init__(self, draw: Callable[[st.SearchStrategy[object]], object], first: int = 0) -> None:
        self._draw = draw
        self.count = first
        self.known: dict[str, list[str]] = {}

    def pick(self, choices: Sequence[T]) -> T:
        return self._draw(st.sampled_from(choices))  # type: ignore[return-value,arg-type]

    def number(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))  # type: ignore[return-value]

    def new(self, letter: str = "v") -> str:
        self.count += 1
        return f"{letter}_{self.count}"

    def learn(self, kind: str, name: str) -> None:
        self.known.setdefault(kind, []).append(name)

    def fill(self, template: str, value: Callable[[str], str]) -> str:
        """Holes: ``{new KIND}`` makes a name, ``{it}`` is the last one made, ``{KIND}`` is a value,
        ``{same KIND}`` once more; two braces are one.
        """
        made: list[tuple[str, str]] = []
        last: dict[str, str] = {}

        def hole(match: re.Match[str]) -> str:
            if match["word"] is None:
                return match.group()[0]
            if match["word"] == "new":
                made.append((match["kind"], self.new()))
                return made[-1][1]
            if match["word"] == "it":
                return made[-1][1]
            if match["word"] == "same":
                return last[match["kind"]]
            last[match["word"]] = text = value(match["word"])
            return text

        filled = _HOLE.sub(hole, template)
        for kind, name in made:  # not before: a statement does not use what it makes
            self.learn(kind, name)
        return filled
