"""Lowered files, kept by all that they were made of: text, path, language, and for C++ what it includes of the run.

They are pickled, which is thirty times as fast as lowering, and read by an unpickler that knows the classes of the syntax tree and nothing
else, and that leaves them as they are: as with the other records, whoever can write to the folder can hide findings, and never run code.
"""

from __future__ import annotations

import io
import pickle
import re
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from streamlint import program
from streamlint.bare import bare
from streamlint.cache.store import MOST_BYTES, TREES, Store, digest
from streamlint.options import Source

if TYPE_CHECKING:
    from typing import Any

    from streamlint.frontends.cuda_headers import Headers

# What the preprocessor may take for an include, in branches that it leaves out too.
_INCLUDE = re.compile(r"""#[^\n]{0,80}?include\b(?:[^"'<\n]|\\\r?\n)*["'<]([^"'>\n]+)""")
_LEVEL = 1  # a fifth of the size for a sixth of the time that pickling takes
_CLASSES = [value for value in vars(program).values() if isinstance(value, type) and value.__module__ == program.__name__]
_KNOWN: dict[tuple[str, str], Any] = {(program.__name__, each.__name__): each for each in _CLASSES}
_KNOWN |= {("builtins", "Ellipsis"): ..., ("builtins", "complex"): complex}


_WHOLE = [(each, dict(vars(each))) for each in _CLASSES]
_LATER = {"__slotnames__", "__annotations_cache__"}  # what Python adds to a class itself


def mend_classes() -> bool:
    """Whether a pickle has changed the classes that it may name; then they are as before."""
    harmed = False
    for each, whole in _WHOLE:
        now = vars(each)
        if all(now.get(name) is value for name, value in whole.items()) and now.keys() - _LATER == whole.keys() - _LATER:
            continue
        harmed = True
        for name in now.keys() - _LATER - whole.keys():
            delattr(each, name)
        for name, value in whole.items():
            if vars(each).get(name) is not value:
                setattr(each, name, value)
    return harmed


class Trees:
    """The lowered files of a store, for the sources of one run; ``headers`` are asked for once there is C++."""

    def __init__(self, store: Store, headers: Callable[[], Headers | None]) -> None:
        self._store, self._headers = store, headers
        self._keys: dict[str, str] = {}
        self._digests: dict[str, str] = {}
        self._targets: dict[str, set[str]] = {}

    def load(self, source: Source) -> program.Module | None:
        """What a source was lowered to, if that is kept."""
        data = self._store.read_bytes(TREES, self.key(source))
        if data is None:
            return None
        try:
            made = _Reader(io.BytesIO(zlib.decompressobj().decompress(data, MOST_BYTES))).load()
        except Exception:  # written by somebody else: as good as absent
            made = None
        if mend_classes() or not isinstance(made, program.Module):
            return None
        made.text = bare(source).text
        return made

    def keep(self, source: Source, made: program.Module) -> None:
        """Write what a source was lowered to."""
        if any(message.startswith("left out") for _, message in made.problems):
            return  # a parser was missing
        text, made.text = made.text, ""  # it is at hand with the source
        try:
            data = pickle.dumps(made, 5)
        except RecursionError:
            return  # nested too deeply for this; it is lowered again
        finally:
            made.text = text
        self._store.write_bytes(TREES, self.key(source), zlib.compress(data, _LEVEL))

    def key(self, source: Source) -> str:
        """A hash of all that a source is lowered from."""
        if source.path not in self._keys:
            included = self._included(source) if source.language == "cuda" else ""
            self._keys[source.path] = digest("\0".join((source.path, source.language, digest(source.text), included)))
        return self._keys[source.path]

    def _included(self, source: Source) -> str:
        """C++: the texts that may give it macros. What includes itself is told by all texts: it matters which was read first."""
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
        told = sorted(headers.texts if _has_circle(found) else found.keys() - {source.path})
        return digest("\0".join(f"{path}\0{self._digest(path, headers)}" for path in told))

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


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _KNOWN[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a syntax tree") from None
