"""Which file a Python import means."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from pathlib import PurePosixPath

from streamlint.models import builtin, first_part

_SUFFIXES = (".py", ".pyx", ".pxd")
_LATE = re.compile(r"\bimport_module\(\s*[\"']([.\w]+)[\"']")


def late_imports(text: str) -> list[str]:
    """The modules that a text imports by `importlib.import_module`, as written."""
    return _LATE.findall(text) if "import_module(" in text else []


class Resolver:
    """Finds the file of a module, relative to the importing file, from any folder above it, or in the one folder that has the package.

    The folder of a package is on the path of a script in it alone: a part of a package that is called like a known library is not meant by
    an import of that. A package that is installed from elsewhere in the program (``src/package``) is found by its name, of
    several the nearest one.
    """

    def __init__(self, paths: Collection[str]) -> None:
        self._paths = {path.replace("\\", "/"): path for path in paths}
        self._found: dict[tuple[str, str], str | None] = {}
        self._ending: dict[str, list[str]] = {}  # by the last part of the names that a file can be imported by: the paths
        for path in self._paths:
            for name in _module_names(path):
                self._ending.setdefault(name, []).append(path)

    def find(self, module: str, asking: str) -> str | None:
        """The path of a module's file, seen from another file; None where no file of the program is meant."""
        key = (module, asking)
        if key not in self._found:
            self._found[key] = self._find(module, PurePosixPath(asking.replace("\\", "/")).parent)
        return self._found[key]

    def _find(self, module: str, folder: PurePosixPath) -> str | None:
        name = module.lstrip(".")
        level = len(module) - len(name)
        if name and name.rpartition(".")[2] not in self._ending:
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
        return self._installed(name, folder) if first_part(name) not in _libraries() else None

    def _installed(self, name: str, folder: PurePosixPath) -> str | None:
        """The file of a package, or of a module in one, wherever it stands: the only one that is called so below the nearest folder around
        the importing file that has any. Where a folder holds a copy of all that is around it, the copy is another program."""
        parts = tuple(name.split("."))
        found = [path for path in self._ending.get(parts[-1], ()) if _module_parts(path)[-len(parts) :] == parts]
        if len(found) > 1:
            found = _nearest(found, folder)
        is_in_package = len(parts) > 1 or (found and PurePosixPath(found[0]).stem == "__init__")
        return self._paths[found[0]] if len(found) == 1 and is_in_package else None

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


def _nearest(paths: list[str], folder: PurePosixPath) -> list[str]:
    """Of files that are called alike: those below the nearest folder around an importing file, without those of a copy of what is there."""
    for above in (folder, *folder.parents):
        base = f"{above}/".removeprefix("./").replace("//", "/")
        if near := [path for path in paths if path.startswith(base)]:
            shortest = min(near, key=len)
            is_copied = all(path == shortest or path.endswith(f"/{shortest[len(base) :]}") for path in near)
            return [shortest] if is_copied else near
    return paths


def _module_names(path: str) -> tuple[str, ...]:
    """The last parts of the names that a file can be imported by."""
    parts = PurePosixPath(path)
    return (parts.stem, parts.parent.name) if parts.stem == "__init__" else (parts.stem,)


def _module_parts(path: str) -> tuple[str, ...]:
    """The parts of the longest name that a file can be imported by."""
    parts = PurePosixPath(path).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts


@functools.cache
def _libraries() -> frozenset[str]:
    """The libraries of Python that rows are about."""
    return frozenset(map(first_part, builtin("python").calls))
