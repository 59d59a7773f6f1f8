"""What a lowering knows while it walks one Python module."""

from __future__ import annotations

from dataclasses import dataclass

from streamlint.frontends.python_positions import Positions
from streamlint.program import Class, Module


@dataclass(slots=True)
class Enclosing:
    """A function or class that encloses the code at hand."""

    qualname: str
    definition: Class | None = None
    yields: bool = False


@dataclass(slots=True)
class Lowering:
    """``at`` maps libcst nodes to positions, ``scopes`` goes from the outside in, ``inner`` holds imports that stand in functions."""

    module: Module
    at: Positions
    lines: list[str]
    scopes: list[Enclosing]
    inner: dict[str, str]

    def qualname(self, name: str) -> str:
        """The dotted name of a definition that stands here."""
        return f"{self.scopes[-1].qualname}.{name}" if self.scopes else name

    @property
    def enclosing_class(self) -> Class | None:
        """The class whose body the code at hand belongs to, if it is one."""
        return self.scopes[-1].definition if self.scopes else None
