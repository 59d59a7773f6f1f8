"""The files of a folder that one file can see: what it imports and includes, and so on.

A run on the command line reads them all; an editor cannot wait for that. Of C++ that is linked by name, the files beside are taken.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from streamlint.discovery.files import Found
from streamlint.discovery.outlines import imports_in
from streamlint.discovery.seams import INCLUDE, NATIVE, OPENED
from streamlint.support.reading import Unreadable, decode, is_notebook, read_source

MOST = 100  # files that one is read with

_MODULES = (".py", ".pyx", ".pxd", "/__init__.py")
_BINDINGS = re.compile(r"\b(?:PYBIND11_(?:EMBEDDED_)?MODULE|NB_MODULE|PyModuleDef|PyInit_\w+|TORCH_LIBRARY\w*)\b|extern\s+\"C\"")


@dataclass(slots=True)
class Entry:
    """A file that can hold a finding, or that such files are joined by."""

    found: Found
    _data: bytes | None = None  # read when it is asked for
    _text: str | None = None
    _imports: tuple[tuple[int, tuple[str, ...], tuple[str, ...]], ...] | None = None

    @property
    def is_read(self) -> bool:
        return self._data is not None

    @property
    def data(self) -> bytes:
        """Its bytes; none if it cannot be read."""
        if self._data is None:
            try:
                self._data = read_source(self.found.path)
            except Unreadable:
                self._data = b""
        return self._data

    @property
    def text(self) -> str:
        """Its text, as far as names are looked for in it."""
        if self._text is None:
            self._text = program_in(self.data) if is_notebook(self.found.path) else self.data.decode("utf-8", "replace")
        return self._text

    @property
    def imports(self) -> tuple[tuple[int, tuple[str, ...], tuple[str, ...]], ...]:
        """Import statements: leading dots, the module's parts, the members."""
        if self._imports is None:
            self._imports = tuple(_imports(self.text))
        return self._imports

    @property
    def includes(self) -> list[str]:
        """The headers that it names."""
        return INCLUDE.findall(self.text)

    @property
    def opened(self) -> set[str]:
        """The modules of Python that this C++ file is."""
        return {name for names in OPENED.findall(self.text) for name in names if name}


def program_in(data: bytes) -> str:
    """The Python of a notebook's bytes; nothing of what is no notebook."""
    try:
        return decode(data, "python", ".ipynb")[0]
    except Unreadable:
        return ""


@dataclass(slots=True)
class Map:
    """The files of a folder by their names."""

    entries: Mapping[str, Entry]
    _by_name: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _by_stem: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _by_folder: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _bindings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for path, entry in self.entries.items():
            if entry.found.language == "python":
                continue
            folder, _, name = path.rpartition("/")
            self._by_name[name].append(path)
            if entry.found.language == "cuda":
                self._by_stem[name.partition(".")[0]].append(path)
                self._by_folder[folder].append(path)
                if entry.is_read and _BINDINGS.search(entry.text):
                    self._bindings.append(path)

    def near(self, path: str) -> list[Entry]:
        """The file, and what it can see, the nearest first."""
        seen, waiting = {path: self.entries[path]}, [path]
        for current in waiting:
            for other in self._seen_from(current, path):
                if len(seen) >= MOST:
                    return list(seen.values())
                if other not in seen:
                    seen[other] = self.entries[other]
                    waiting.append(other)
        return list(seen.values())

    def _seen_from(self, path: str, first: str) -> Iterator[str]:
        entry = self.entries[path]
        language = entry.found.language
        if language != "cuda":
            yield from self._imported(path, entry)
        if language != "python":
            yield from self._included(path, entry)
        if language == "cuda" and path in (first, *self._bindings):
            yield from self._by_folder[path.rpartition("/")[0]]

    def _imported(self, path: str, entry: Entry) -> Iterator[str]:
        names: set[str] = set()
        for level, module, members in entry.imports:
            folders = [PurePosixPath(path).parent, *PurePosixPath(path).parent.parents]
            names.update(module, members)
            for base in folders[level - 1 : level] if level else folders:
                found = [
                    *self._modules(base.joinpath(*module)),
                    *(m for name in members for m in self._modules(base.joinpath(*module, name))),
                ]
                if found:
                    yield from found
                    break
        native = NATIVE.search(entry.text) is not None
        for binding in self._bindings:
            opened = self.entries[binding].opened
            if native or "TORCH_EXTENSION_NAME" in opened or not names.isdisjoint(opened):
                yield binding

    def _modules(self, stem: PurePosixPath) -> Iterator[str]:
        """A module's file, and what Python runs on the way to it."""
        if found := [name for end in _MODULES if (name := f"{stem}{end}") in self.entries]:
            yield from found
            yield from (name for above in stem.parents if (name := f"{above}/__init__.py") in self.entries)

    def _included(self, path: str, entry: Entry) -> Iterator[str]:
        for include in entry.includes:
            tail = include.replace("\\", "/").lstrip("./")
            named = [
                other for other in self._by_name.get(tail.rpartition("/")[2], ()) if f"/{other}".endswith(f"/{tail}") and other != path
            ]
            if named:
                header = max(named, key=lambda other: _common(other, path))
                yield header
                yield from self._bodies(header)

    def _bodies(self, header: str) -> Iterable[str]:
        """The files that define what a header declares, by its name: ``scan.cu`` for ``scan.cuh``."""
        found = self._by_stem[header.rpartition("/")[2].partition(".")[0]]
        return sorted(found, key=lambda other: -_common(other, header))[:4]


def _imports(text: str) -> Iterator[tuple[int, tuple[str, ...], tuple[str, ...]]]:
    for module, members, plain in imports_in(text):
        level = len(module) - len(module.lstrip("."))
        if module:
            yield level, tuple(filter(None, module.split("."))), tuple(re.findall(r"\w+", re.sub(r"\bas\s+\w+", "", members)))
        for part in plain.split(",") if plain else ():
            if parts := tuple(re.findall(r"\w+", part.partition(" as ")[0])):
                yield 0, parts, ()


def _common(one: str, two: str) -> int:
    """How many letters two paths begin with alike."""
    return next((at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
