"""What the C++ files of a run include of one another, as hashes: their intermediate representations hang on it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from streamlint.cache.store import digest
from streamlint.config.options import Source

if TYPE_CHECKING:
    from streamlint.frontends.cuda_headers import Headers

# What the preprocessor may take for an include, in branches that it leaves out too.
_INCLUDE = re.compile(r"""#[^\n]{0,80}?include\b(?:[^"'<\n]|\\\r?\n)*["'<]([^"'>\n]+)""")


class Includes:
    """The includes of the sources of one run; ``headers`` are asked for once there is C++."""

    def __init__(self, headers: Callable[[], Headers | None]) -> None:
        self._headers = headers
        self._digests: dict[str, str] = {}
        self._targets: dict[str, set[str]] = {}

    def of(self, source: Source) -> str:
        """A hash of a C++ source's path, and of the texts that may give it macros.

        A header that includes itself depends on all texts: it matters which one was read first.
        """
        headers = self._headers()
        if headers is None:
            return ""
        found: dict[str, set[str]] = {}
        waiting = [source.path]
        while waiting:
            path = waiting.pop()
            if path not in found:
                found[path] = set(self._named(path, headers, source.text))
                waiting.extend(found[path])
        relevant = sorted(headers.texts if _has_circle(found) else found.keys() - {source.path})
        return digest("\0".join([source.path, *(f"{path}\0{self._digest(path, headers)}" for path in relevant)]))

    def _named(self, path: str, headers: Headers, text: str) -> set[str]:
        """The texts of the run that one includes; ``text`` is that of a source which is none of them."""
        if path not in self._targets:
            named = (headers.find(name, path) for name in _INCLUDE.findall(headers.texts.get(path, text)))
            self._targets[path] = {target for target in named if target is not None}
        return self._targets[path]

    def _digest(self, path: str, headers: Headers) -> str:
        if path not in self._digests:
            self._digests[path] = digest(headers.texts[path])
        return self._digests[path]


def _has_circle(edges: dict[str, set[str]]) -> bool:
    left = {path: set(targets) for path, targets in edges.items()}
    while ends := [path for path, targets in left.items() if not targets]:
        for path in ends:
            del left[path]
        for targets in left.values():
            targets.difference_update(ends)
    return bool(left)
