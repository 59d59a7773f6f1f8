"""The user's files: which file of the given roots a recorded path means, and what its functions do."""

from __future__ import annotations

import ast
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from streamlint.support.records import field, record
from streamlint.trace.names import common_end
from streamlint.trace.readers.sites import Body, bodies

_OTHERS = frozenset({"__pycache__", "node_modules", "site-packages", "dist-packages"})
Function = tuple[str, int]
"""A function's name, and its first line."""


@record(slots=True)
class Source:
    """A file of the user's."""

    path: str  # absolute
    parts: tuple[str, ...]
    bodies: dict[Function, Body] | None = None  # None until they are asked for

    def all(self) -> dict[Function, Body]:
        """The bodies of its functions; none where the file is not Python that this interpreter reads."""
        if self.bodies is None:
            try:
                self.bodies = bodies(ast.parse(Path(self.path).read_bytes()))
            except (OSError, RecursionError, SyntaxError, ValueError):
                self.bodies = {}
        return self.bodies

    def body(self, name: str, first: int) -> Body | None:
        """A function's body: by its first line, or by its name alone where the file was changed and one function has that name."""
        short = name.rpartition(".")[2]
        if short == "<module>":
            return self.all().get(("<module>", 0))
        found = self.all().get((short, first))
        if found is None:
            same = [body for (one, _), body in self.all().items() if one == short]
            found = same[0] if len(same) == 1 and not short.startswith("<") else None
        return found

    def has(self, functions: Iterable[Function]) -> bool:
        """Whether any of the functions begins where it was recorded."""
        return any((name.rpartition(".")[2], first) in self.all() for name, first in functions)


@record(slots=True)
class Sources:
    """All files below the roots, found by the ends of their paths."""

    roots: Sequence[Path]
    _by_name: dict[str, list[Source]] = field(default_factory=dict)
    _found: dict[str, Source | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        by_name: dict[str, list[Source]] = defaultdict(list)
        for path in dict.fromkeys(_files(self.roots)):
            by_name[os.path.basename(path)].append(Source(path, PurePosixPath(path.replace("\\", "/")).parts))
        self._by_name = dict(by_name)

    def find(self, recorded: str, functions: Iterable[Function]) -> Source | None:
        """The file that a recording's path means, None where it is none of the user's.

        A path of this machine is taken as it is. PyTorch cuts off the part that is in `sys.path`; other machines have other folders:
        there the longest end of the path decides, and where only the file's name agrees one of ``functions`` must begin on its recorded
        line, unless none is known.
        """
        if recorded not in self._found:
            self._found[recorded] = self._find(recorded.replace("\\", "/"), tuple(functions))
        return self._found[recorded]

    def _find(self, recorded: str, functions: Sequence[Function]) -> Source | None:
        path = PurePosixPath(recorded)
        near = self._by_name.get(path.name, [])
        absolute = recorded.startswith("/") or recorded[1:3] == ":/"
        if absolute and near:
            real = os.path.realpath(recorded)
            if exact := next((one for one in near if one.path == real), None):
                return exact
            if _OTHERS.intersection(path.parts):
                return None
        best, same = _nearest(near, path.parts)
        if same < len(path.parts) and not absolute:
            return None
        proven = [one for one in best if one.has(functions)]
        if len(proven) == 1:
            return proven[0]
        return best[0] if len(best) == 1 and (same > 1 or not functions) else None


def _nearest(files: Sequence[Source], parts: tuple[str, ...]) -> tuple[list[Source], int]:
    """The files that have the longest end in common with a path, and how many of its parts that is."""
    ends = [common_end(file.parts, parts) for file in files]
    same = max(ends, default=0)
    return [file for file, end in zip(files, ends, strict=True) if end == same], same


def _files(roots: Iterable[Path]) -> Iterator[str]:
    """The Python files below roots; a root that is a file is one, whatever its name."""
    for root in roots:
        if root.is_file():
            yield os.path.realpath(root)
            continue
        for folder, folders, names in os.walk(os.path.realpath(root)):
            if "pyvenv.cfg" in names:
                folders.clear()
                continue
            folders[:] = sorted(one for one in folders if one not in _OTHERS and not one.startswith("."))
            yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith((".py", ".pyw")))
