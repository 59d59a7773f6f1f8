"""Texts of files that a run may have to show. They wait packed: of most nobody asks for more than was lowered of them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, MutableMapping


class Texts(MutableMapping[str, str]):
    """Texts by the paths of their files. One that is asked for several times in a row is unpacked once."""

    __slots__ = ("_last", "_packed")

    def __init__(self) -> None:
        self._packed: dict[str, bytes] = {}
        self._last: tuple[str | None, str] = None, ""

    def __getitem__(self, path: str) -> str:
        packed = self._packed[path]
        if self._last[0] != path:
            self._last = path, zlib.decompress(packed).decode("utf-8", "surrogatepass")
        return self._last[1]

    def __setitem__(self, path: str, text: str) -> None:
        self._last = None, ""
        self._packed[path] = zlib.compress(text.encode("utf-8", "surrogatepass"), 1)

    def __delitem__(self, path: str) -> None:
        self._last = None, ""
        del self._packed[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)
