"""Questions about files that their names and texts answer, without lowering them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import PurePosixPath

MOST_TIED = 200  # files of a run whose imports are followed
Imports = dict[str, set[str]]  # by the path of a file: the paths of those that it imports
Words = tuple[tuple[str, ...], tuple[str, ...]]  # one of these, and all of these


def mentioning(texts: Mapping[str, str], words: Words) -> list[str]:
    """The paths of the texts that hold one of the first words (any text, if there are none) and all of the second."""
    one, every = words
    return [path for path, text in texts.items() if (not one or any(word in text for word in one)) and all(word in text for word in every)]


def module_path(dotted: str, asking: str, there: Callable[[str], bool], lasts: Collection[str]) -> str | None:
    """The path of the Python or Cython file that an import names, seen from ``asking``: relative to it, or from any folder above it.

    ``lasts`` are the last parts of the names that files can be imported by.
    """
    folder = PurePosixPath(asking.replace("\\", "/")).parent
    level = len(dotted) - len(dotted.lstrip("."))
    tail = dotted.lstrip(".").replace(".", "/")
    if tail and tail.rpartition("/")[2] not in lasts:
        return None
    bases = [folder]
    if level:
        base = folder
        for _ in range(level - 1):
            base = base.parent
        bases = [base]
    else:
        bases += list(folder.parents)
    for base in bases:
        stem = str(base / tail) if tail else str(base)
        for path in (f"{stem}.py", f"{stem}.pyx", f"{stem}.pxd", f"{stem}/__init__.py"):
            if there(path):
                return path
    return None


def lasts_of(path: str) -> Iterable[str]:
    """The last parts of the names that a file can be imported by."""
    parts = PurePosixPath(path.replace("\\", "/"))
    return (parts.stem, parts.parent.name) if parts.stem == "__init__" else (parts.stem,)


def imports_among(paths: Iterable[str], dotted: Callable[[str], Iterable[str]], resolve: Callable[[str, str], str | None]) -> Imports:
    """Which files some files import; ``dotted`` are the names that one says, ``resolve`` what such a name means there."""
    return {
        path: {target for name in dotted(path) for each in (name, name.rpartition(".")[0]) if each and (target := resolve(each, path))}
        for path in paths
    }


def importers(imports: Iterable[tuple[str, Iterable[str]]]) -> dict[str, set[str]]:
    """Who imports something, by the last part of its name; from the keys of modules with the dotted names that they say."""
    found: dict[str, set[str]] = {}
    for key, names in imports:
        for dotted in names:
            found.setdefault(dotted.rpartition(".")[2], set()).add(key)
    return found


def tied(start: str, imports: Imports) -> set[str]:
    """The files that imports tie to one, in either direction and through one another."""
    found, waiting = {start}, [start]
    while waiting:
        current = waiting.pop()
        own = imports.get(current, ())
        fresh = {other for other, theirs in imports.items() if other not in found and (other in own or current in theirs)}
        found |= fresh
        waiting.extend(fresh)
    return found


def last_word(dotted: str, asking: str) -> str:
    """The name of the file, or of the folder of the ``__init__``, that an import may mean."""
    tail = dotted.rpartition(".")[2]
    if tail:
        return tail
    folders = asking.replace("\\", "/").split("/")[:-1]
    return folders[-len(dotted)] if len(dotted) <= len(folders) else ""


def folder_word(name: str) -> str:
    """The word of a folder, for who asks what stands in it. No import is spelled so."""
    return f"{name}/"


def words_of(path: str) -> set[str]:
    """The words by which somebody may ask for a file: that of its imports, and those of the folders around it."""
    return {word_of(path), *map(folder_word, path.replace("\\", "/").split("/")[:-1])}


def word_of(path: str) -> str:
    """The word by which imports may mean a file: its stem, or its folder's name."""
    *folders, name = path.replace("\\", "/").split("/")
    stem = name.rpartition(".")[0]
    return (folders[-1] if folders else "") if stem == "__init__" else stem
