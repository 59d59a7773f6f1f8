"""``python -m streamlint.record script.py`` runs a program recorded; ``with streamlint.record("run.slt"):`` records a block.

The module can be called, so that `streamlint.record` means the same whether this module has been imported or not.
"""

from __future__ import annotations

import sys
import types

from streamlint import TYPE_CHECKING
from streamlint.trace.recording import record

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

__all__ = ["record"]


class _Callable(types.ModuleType):
    """This module, which can be called."""

    def __call__(self, output: str, *, root: str = "", share: float = 1.0) -> AbstractContextManager[None]:
        return record(output, root=root, share=share)


sys.modules[__name__].__class__ = _Callable
