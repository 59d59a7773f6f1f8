"""Python that comes to no device: neither its file nor one that it imports, through any number of others, names a library of devices.

What a root runs stands in its file and in those that this one imports. What they are given is not known, and becomes a tensor, a stream or
an event only in a file that imports its library (`guesses.py`). A few methods speak for themselves wherever they stand; they are
looked for in each of the files.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from streamlint import program as p
from streamlint.interpreter.guesses import EVERYWHERE, OF_ARRAYS, ON_TORCH
from streamlint.interpreter.hot import BACKWARD, is_hot, is_step
from streamlint.interpreter.index import File, walk_module
from streamlint.interpreter.notes import Kept, kept, remembered
from streamlint.interpreter.quiet import BINDING

if TYPE_CHECKING:
    from streamlint.interpreter.index import Program
    from streamlint.models import Models

MOST_FILES = 2_000  # that one leads to: more are not looked through
_METHODS = EVERYWHERE | BACKWARD
_BUILTINS = frozenset(dir(builtins))


class _Ahead(NamedTuple):
    """What a file imports: each name with the file that it means, and the folders in which it may mean more."""

    modules: list[tuple[str, str | None]]
    folders: list[tuple[str, str, list[str]]]  # an import, the folder's name, and the files beneath such folders

    def paths(self) -> Iterator[str]:
        return (path for _, path in self.modules if path is not None)


class NoLibrary:
    """Which Python files of a program come to no library."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._found: dict[str, Kept[bool]] = {}
        self._ahead: dict[str, _Ahead | None] = {}
        self._more: dict[str, list[tuple[str, str | None]]] = {}
        self._folders: dict[str, list[str]] | None = None

    def holds(self, file: File) -> bool:
        """Whether nothing that a Python file runs can come to a device."""
        if file.is_cuda or file.is_cython or self._program.interface.may_be_imported:
            return False
        return kept(self._found, file.path, self._find, file)

    def _find(self, file: File) -> bool:
        seen = dict.fromkeys((file.path,))
        if not self._follow(seen, 0, file.models):
            return False
        checked = 0
        while checked < len(seen):  # by imports alone nothing is found: the files are looked at, which may lead to others
            begin, fresh = len(seen), list(seen)[checked:]
            for path in fresh:
                held = self._program.file_of(path)
                if held is None or _speaks(held):
                    return False
                seen.update(dict.fromkeys(path for _, path in self._more_of(held) if path is not None and not self._is_known(path)))
            checked = begin
            if not self._follow(seen, begin, file.models):
                return False
        self._note(seen, file.models)  # (who is run rests on what his run asks)
        return True

    def _follow(self, seen: dict[str, None], begin: int, models: Models) -> bool:
        """Add what imports lead to from all files that come after the first ones; whether none imports a library."""
        waiting = list(seen)[begin:]
        for path in waiting:  # grows
            ahead = self._ahead_of(path, models)
            if ahead is None or len(seen) > MOST_FILES or (path in self._found and not self._found[path][0]):
                return False
            fresh = dict.fromkeys(other for other in ahead.paths() if other not in seen and not self._is_known(other))
            seen.update(fresh)
            waiting += fresh
        return True

    def _is_known(self, path: str) -> bool:
        """Whether a file is known to come to no library: then all that it leads to does not either, and who leads to it rests on that."""
        return path in self._found and kept(self._found, path, self._find)

    def _note(self, paths: Iterable[str], models: Models) -> None:
        noted = self._program.consulted
        for path in paths:
            ahead = self._ahead_of(path, models)
            assert ahead is not None
            for name, answer in (*ahead.modules, *self._more[path]):
                noted.module(name, path, answer)
            for _, folder, _ in ahead.folders:
                noted.folder(folder, path)

    def _ahead_of(self, path: str, models: Models) -> _Ahead | None:
        """What a file imports; None where that is a library, or where the file is or holds C++."""
        if path not in self._ahead:
            self._ahead[path] = self._find_ahead(path, models)
        return self._ahead[path]

    def _find_ahead(self, path: str, models: Models) -> _Ahead | None:
        program, found = self._program, _Ahead([], [])
        names = sorted(program.imported_by(path))
        if program.holds_cpp(path) or any(_is_library(name.partition(".")[0], models) for name in names):
            return None
        for name in names:
            modules = [(each, program.path_of_module(each, path)) for each in _prefixes(name)]
            found.modules.extend(modules)
            *_, (_, meant) = modules
            if meant is None or meant.endswith("/__init__.py"):
                folder = name.rpartition(".")[2]
                found.folders.append((name, folder, self._beneath(folder)))
        return found

    def _more_of(self, file: File) -> list[tuple[str, str | None]]:
        """The modules that a file comes to by the names of packages: ``a.b.f()`` where ``a`` is imported. All, where one is handed on."""
        if file.path not in self._more:
            self._more[file.path] = list(self._find_more(file))
        return self._more[file.path]

    def _find_more(self, file: File) -> Iterator[tuple[str, str | None]]:
        ahead = self._ahead[file.path]
        beneath = {name: paths for name, _, paths in ahead.folders if paths} if ahead is not None else {}
        packages = {local: name for local, name in file.module.imports.items() if name in beneath}
        if not packages:
            return
        longer = set[int]()
        for node in walk_module(file.module):  # from the outside in
            if id(node) in longer or not isinstance(node, p.Attr | p.Name):
                continue
            local, *names = _chain(node, longer)
            if local not in packages:
                continue
            if not names:
                yield from ((packages[local], path) for path in beneath[packages[local]])
            for end in range(len(names)):
                dotted = ".".join((packages[local].rstrip("."), *names[: end + 1]))
                yield dotted, self._program.path_of_module(dotted, file.path)

    def _beneath(self, folder: str) -> list[str]:
        """The Python files in folders of that name."""
        if self._folders is None:
            self._folders = {}
            for path in self._program.file_keys():
                for part in dict.fromkeys(path.replace("\\", "/").split("/")[:-1]):
                    self._folders.setdefault(part, []).append(path)
        return self._folders.get(folder, [])


def _chain(node: p.Attr | p.Name, longer: set[int]) -> list[str]:
    """A dotted name by its parts; the nodes within it are noted. The first part is empty where it begins with no name."""
    names: list[str] = []
    inner: object = node
    while isinstance(inner, p.Attr):
        names.append(inner.name)
        inner = inner.value
        longer.add(id(inner))
    return [inner.id if isinstance(inner, p.Name) else "", *reversed(names)]


def _prefixes(name: str) -> Iterator[str]:
    """The modules that a dotted name may go through, itself last: ``a``, ``a.b``; of a relative one first the folder that it begins in."""
    tail = name.lstrip(".")
    dots = name[: len(name) - len(tail)]
    if dots:
        yield dots
    parts = tail.split(".") if tail else []
    yield from (dots + ".".join(parts[: end + 1]) for end in range(len(parts)))


def _is_library(package: str, models: Models) -> bool:
    """Whether code may come to a device through a package. All that rows know of the standard library works on the host."""
    return package in ON_TORCH or (package not in sys.stdlib_module_names and models.does_anything(package))


@remembered(4096)
def _speaks(file: File) -> bool:
    """Whether a file has names that it does not say where it has from, or a method that means a device whatever has it."""
    if "*" in file.globals:
        return True
    free, bound = set[str](), set[str]()
    for node in walk_module(file.module):
        if isinstance(node, p.Name):
            free.add(node.id)
        elif (binding := BINDING.get(node.__class__)) is not None:
            bound.update(binding(node))
        elif (isinstance(node, p.Attr) and node.name in file.models.soles) or (
            isinstance(node, p.Call) and isinstance(node.function, p.Attr) and _is_of_device(node.function.name, node.args)
        ):
            return True
    return not (free - bound - file.globals.keys() - file.module.imports.keys()).isdisjoint(file.models.packages - _BUILTINS) or _trains(
        file
    )


def _trains(file: File) -> bool:
    """Whether a loop of a file trains: an unknown value that it works with is a tensor."""
    if any(isinstance(node, p.Loop) and is_hot(node, file) for node in walk_module(file.module)):
        return True
    return any(is_step(function, owner, file) for function, owner in p.functions_of(file.module))


def _is_of_device(method: str, given: Iterable[p.Arg]) -> bool:
    """Whether a method is told by its name, or by what it is given: ``x.get(blocking=False)``."""
    return method in _METHODS or (method in ("get", "set") and any(arg.keyword in OF_ARRAYS or arg.stars == 2 for arg in given))
