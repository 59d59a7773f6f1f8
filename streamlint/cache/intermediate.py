"""Intermediate representations of files, kept by content.

The key is a hash of a file's bytes, its language, and for C++ the texts that may give it macros; the folder is named by the sources that
make the representation, the front ends and the lowering. So it outlasts changes of everything else, and a path is no part of it.

Records are `marshal` data of plain tuples: a function stays packed until somebody asks for it. `marshal` builds no objects of classes and
runs nothing, but it trusts its input: whoever can write to the folder can make a run fail, so it must be the user's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlint.cache.store import INTERMEDIATE, Store, digest
from streamlint.ir import ModuleIR

if TYPE_CHECKING:
    from pathlib import Path

MADE_BY = ("frontends", "ir", "program", "lines.py", "record.py")
"""The folders and files of streamlint that decide what a file's intermediate representation is."""


class IntermediateCache:
    """The intermediate representations that are kept in a folder."""

    def __init__(self, base: Path) -> None:
        self.store = Store(base, MADE_BY)

    def load(self, path: str, language: str, data: bytes, included: str = "") -> ModuleIR | None:
        """What a file's bytes were lowered to, if that is kept. ``included`` tells what else decides it (C++: a hash of its headers)."""
        kept = self.store.read_bytes(INTERMEDIATE, _key(language, data, included))
        if kept is None:
            return None
        try:
            return ModuleIR.load(path, kept)
        except (ValueError, TypeError, EOFError, IndexError):  # written by somebody else: as good as absent
            return None

    def keep(self, module: ModuleIR, language: str, data: bytes, included: str = "") -> None:
        """Write what a file's bytes were lowered to; what cannot be written is left out."""
        self.store.write_bytes(INTERMEDIATE, _key(language, data, included), module.dump())


def _key(language: str, data: bytes, included: str) -> str:
    return digest(f"{language}\0{included}\0{digest(data)}")
