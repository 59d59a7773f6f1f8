"""Which file a Python import means."""

from __future__ import annotations

import functools
from collections.abc import Collection
from pathlib import PurePosixPath

from streamlint.models import builtin, first_part

_SUFFIXES = (".py", ".pyx", ".pxd")


class Resolver:
    """Finds the file of a module, relative to the importing file, or from any folder above it.

    The folder of a package is on the path of a script in it alone: a part of a package that is called like a known library is not meant by
    an import of that.
    """

    def __init__(self, paths: Collection[str]) -> None:
        self._paths = {path.replace("\\", "/"): path for path in paths}
        self._found: dict[tuple[str, str], str | None] = {}
        self._names = {name for path in self._paths for name in _module_names(path)}

    def find(self, module: str, asking: str) -> str | None:
        """The path of a module's file, seen from another file; None where no file of the program is meant."""
        key = (module, asking)
        if key not in self._found:
            self._found[key] = self._find(module, PurePosixPath(asking.replace("\\", "/")).parent)
        return self._found[key]

    def _find(self, module: str, folder: PurePosixPath) -> str | None:
        name = module.lstrip(".")
        level = len(module) - len(name)
        if name and name.rpartition(".")[2] not in self._names:
            return None
        if level:
            for _ in range(level - 1):
                folder = folder.parent
            return self._in_folder(folder, name)
        above = (folder, *folder.parents)
        packages = [one for one in above if f"{one}/__init__.py".removeprefix("./") in self._paths]
        by_script = () if first_part(name) in _libraries() else packages
        for base in (*(one for one in above if one not in packages), *by_script):
            if (found := self._in_folder(base, name)) is not None:
                return found
        return None

    def _in_folder(self, folder: PurePosixPath, name: str) -> str | None:
        stem = str(folder / name.replace(".", "/")) if name else str(folder)
        stem = stem.removeprefix("./")
        for path in (*(stem + suffix for suffix in _SUFFIXES), f"{stem}/__init__.py"):
            if path in self._paths:
                return self._paths[path]
        return None

    def is_about(self, module: str) -> bool:
        """Whether a file or a folder is called like a package: it may be meant where another folder is searched too."""
        name = first_part(module.lstrip("."))
        return name in self._parts and name not in _libraries()

    @functools.cached_property
    def _parts(self) -> frozenset[str]:
        """The names of all files and folders."""
        return frozenset(part.partition(".")[0] for path in self._paths for part in PurePosixPath(path).parts)

    def submodule(self, package: str, name: str) -> str | None:
        """The path of a module inside of a package, by the path of the package's ``__init__.py``."""
        package = package.replace("\\", "/")
        return self._in_folder(PurePosixPath(package).parent, name) if package.endswith("__init__.py") else None


def _module_names(path: str) -> tuple[str, ...]:
    """The last parts of the names that a file can be imported by."""
    parts = PurePosixPath(path)
    return (parts.stem, parts.parent.name) if parts.stem == "__init__" else (parts.stem,)


@functools.cache
def _libraries() -> frozenset[str]:
    """The libraries of Python that rows are about."""
    return frozenset(map(first_part, builtin("python").calls))
