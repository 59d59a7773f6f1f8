"""Modules that are imported when they are first asked for: what a run may not need costs its start nothing."""

from __future__ import annotations

import sys

from streamlint import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


class Lazy:
    """Stands for a module, and imports it when it is asked for anything."""

    __slots__ = ("_module",)

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        __import__(self._module)
        return getattr(sys.modules[self._module], name)


def lazy(package: str, *modules: str) -> tuple[Lazy, ...]:
    """Modules of a package, to stand at the top of one that names them for type checkers beside it: ``from package import modules``."""
    return tuple(Lazy(f"{package}.{module}") for module in modules)
