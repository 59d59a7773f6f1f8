"""Which file a Python import means."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import PurePosixPath

_SUFFIXES = (".py", ".pyx", ".pxd")


class Resolver:
    """Finds the file of a module, relative to the importing file, or from any folder above it."""

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
        packages = [one for one in above if f"{one}/__init__.py".removeprefix("./") in self._paths]  # not on the path, unless by a script
        for base in (*(one for one in above if one not in packages), *packages):
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

    def submodule(self, package: str, name: str) -> str | None:
        """The path of a module inside of a package, by the path of the package's ``__init__.py``."""
        package = package.replace("\\", "/")
        return self._in_folder(PurePosixPath(package).parent, name) if package.endswith("__init__.py") else None


def _module_names(path: str) -> tuple[str, ...]:
    """The last parts of the names that a file can be imported by."""
    parts = PurePosixPath(path)
    return (parts.stem, parts.parent.name) if parts.stem == "__init__" else (parts.stem,)
