"""Intermediate representations of files, kept by content.

The key is a hash of a file's bytes, its language, and for C++ the texts that may give it macros; the folder is named by the sources that
make the representation, the front ends and the lowering. So it outlasts changes of everything else, and a path is no part of it.

Records are `marshal` data of plain tuples: a function stays packed until somebody asks for it. `marshal` builds no objects of classes and
runs nothing, but it trusts its input: whoever can write to the folder can make a run fail, so it must be the user's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from streamlint.cache.includes import Includes
from streamlint.cache.store import INTERMEDIATE, Store, digest
from streamlint.config.options import Source
from streamlint.ir import ModuleIR

if TYPE_CHECKING:
    from pathlib import Path

    from streamlint.frontends.cuda_headers import Headers

MADE_BY = (
    *("frontends", "ir", "program", "support/declared_words.py", "support/lazy.py", "support/lines.py", "support/records.py"),
    "support/recursion.py",
)
"""The folders and files of streamlint that decide what a file's intermediate representation is."""


class IntermediateCache:
    """The intermediate representations that are kept in a folder."""

    def __init__(self, base: Path) -> None:
        self.store = Store(base, MADE_BY)

    def load(self, path: str, language: str, data: bytes, included: str = "") -> ModuleIR | None:
        """What a file's bytes were lowered to, if that is kept. ``included`` is what else decides it (C++: a hash of its headers)."""
        kept = self.store.read_bytes(INTERMEDIATE, _key(language, data, included))
        if kept is None:
            return None
        try:
            return ModuleIR.load(path, kept)
        except (ValueError, TypeError, EOFError, LookupError, AttributeError):  # written by somebody else: as good as absent
            return None

    def keep(self, module: ModuleIR, language: str, data: bytes, included: str = "") -> None:
        """Write what a file's bytes were lowered to; what cannot be written is left out."""
        self.store.write_bytes(INTERMEDIATE, _key(language, data, included), module.dump())


class Representations:
    """The intermediate representations of the sources of one run. ``headers`` are the C++ that is included, asked for once there is C++."""

    def __init__(self, base: Path, headers: Callable[[], Headers | None]) -> None:
        self._cache, self._includes = IntermediateCache(base), Includes(headers)

    def load(self, source: Source) -> ModuleIR | None:
        """What a source was lowered to, if that is kept."""
        return self._cache.load(source.path, source.language, _bytes_of(source), self._included(source))

    def keep(self, source: Source, module: ModuleIR) -> None:
        """Write what a source was lowered to, unless a parser was missing."""
        if not any(text.startswith("left out") for _, text in module.problems):
            self._cache.keep(module, source.language, _bytes_of(source), self._included(source))

    def _included(self, source: Source) -> str:
        return self._includes.of(source) if source.language == "cuda" else ""


def _bytes_of(source: Source) -> bytes:
    return source.text.encode("utf-8", "surrogatepass")


def _key(language: str, data: bytes, included: str) -> str:
    return digest(f"{language}\0{included}\0{digest(data)}")
