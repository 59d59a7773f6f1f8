"""What is read out of a clone of a repository: a file at a revision, and files of the project around it."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Protocol

BESIDE = 40
"""Files of the same repository that are put beside the one in question, at most."""
AROUND = 1000
"""The same where the project decides: then also files that name what is there already, which is all of most projects."""
PYTHON, NATIVE = {".py", ".pyx", ".pxd", ".pxi"}, {".cu", ".cuh", ".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".hh", ".inl", ".inc", ".hu"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
EXTERN = re.compile(r"""^\s*cdef\s+extern\s+from\s+["'<]([^"'>]+)["'>]""", re.MULTILINE)
IMPORT = re.compile(r"^\s*(?:from\s+(\.*[\w.]*)\s+c?import\s+\(?([\w ,.*]+)|(?:c?import)\s+([\w., ]+))", re.MULTILINE)
NAMING = r"^[[:space:]]*(#[[:space:]]*include|from|c?import|cdef[[:space:]]+extern)[[:space:]<\"]"
"""Lines that name other files, for ``git grep``."""


class Place(Protocol):
    """What is asked of a fix here."""

    @property
    def path(self) -> str: ...
    @property
    def beside(self) -> tuple[str, ...]: ...
    @property
    def decidable(self) -> str: ...


class Index(NamedTuple):
    """The paths of a revision, by their last part, and what stands in each folder."""

    by_end: dict[str, list[str]]
    folders: dict[str, set[str]]


class Clone:
    """A repository's history at hand; files are read by revision, nothing is checked out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names = lru_cache(maxsize=4)(self._names)
        self.ties = lru_cache(maxsize=2)(self._ties)

    def git(self, *words: str) -> bytes | None:
        """What git prints, or None if it refuses."""
        done = subprocess.run(["git", f"--git-dir={self.folder}", *words], capture_output=True, check=False)
        return done.stdout if done.returncode == 0 else None

    def _names(self, revision: str) -> tuple[str, ...]:
        """Paths of the revision's files that could be included or imported."""
        listed = self.git("ls-tree", "-r", "--name-only", "-z", revision) or b""
        names = (name.decode("utf-8", "replace") for name in listed.split(b"\0"))
        return tuple(name for name in names if PurePosixPath(name).suffix in PYTHON | NATIVE)

    def _ties(self, revision: str) -> dict[str, list[str]]:
        """The files that each file of a revision includes or imports, then those that do so with it, the nearest folders first."""
        names = self.names(revision)
        printed = (self.git("grep", "-I", "-E", "-z", NAMING, revision) or b"").decode("utf-8", "replace")
        texts: dict[str, list[str]] = defaultdict(list)
        for line in printed.splitlines():
            path, _, text = line.partition("\0")
            texts[path.partition(":")[2]].append(text)
        named = {path: list(dict.fromkeys(wanted(path, "\n".join(texts[path]), names))) for path in names if path in texts}
        naming: dict[str, list[str]] = defaultdict(list)
        for path, targets in named.items():
            for target in targets:
                naming[target].append(path)
        return {path: named.get(path, []) + sorted(naming[path], key=lambda one: -shared(one, path)) for path in {*named, *naming}}

    def read(self, revision: str, path: str) -> bytes | None:
        return self.git("show", f"{revision}:{path}")


def clone_of(repository: str, mirrors: Path) -> Clone | None:
    """The clone of a repository, wherever it stands under the folder."""
    for name in (repository, repository.replace("/", "+"), repository.partition("/")[2]):
        for inner in ("", "repo", "repo/.git", ".git"):
            folder = mirrors / name / inner
            if (folder / "objects").is_dir() and (folder / "HEAD").is_file():
                return Clone(folder)
    return None


def needed(clone: Clone, revision: str, place: Place) -> dict[str, bytes]:
    """The file in question, what stands beside it, and what these include or import, nearest first; of a project, what is around them."""
    names = clone.names(revision)
    is_project = place.decidable == "project"
    files: dict[str, bytes] = {}
    queue = [place.path, *place.beside]
    while queue and len(files) <= (AROUND if is_project else BESIDE):
        path = queue.pop(0)
        if path in files or (text := clone.read(revision, path)) is None:
            continue
        files[path] = text
        queue += [f"{path[:-4]}.pxd"] if path.endswith(".pyx") else []  # Cython reads it without being asked
        queue += [name for name in wanted(path, text.decode("utf-8", "replace"), names) if name not in files]
        queue += [name for name in clone.ties(revision).get(path, ()) if name not in files] if is_project else []
    return files


def wanted(path: str, text: str, names: Sequence[str]) -> Iterator[str]:
    """Files of the repository that a file includes or imports; of what other packages bring, nothing is looked for."""
    index = _index(tuple(names))
    native = PurePosixPath(path).suffix in NATIVE
    near = set(PurePosixPath(path).parts[:-1]) | {PurePosixPath(name).stem for name in index.folders[str(PurePosixPath(path).parent)]}
    declared = [] if native else [str(PurePosixPath(name)) for name in EXTERN.findall(text)]
    for target in included(text) if native else [*imported(path, text), *declared]:
        if not native and target not in declared and PurePosixPath(target).parts[0].partition(".")[0] not in near:
            continue
        ends = index.by_end.get(target.rpartition("/")[2], ())
        matches = [name for name in ends if name == target or name.endswith(f"/{target}")]
        if matches:
            yield max(matches, key=lambda name: (shared(name, path), -len(name)))


@lru_cache(maxsize=4)
def _index(names: tuple[str, ...]) -> Index:
    by_end: dict[str, list[str]] = defaultdict(list)
    folders: dict[str, set[str]] = defaultdict(set)
    for name in names:
        by_end[name.rpartition("/")[2]].append(name)
        while name:
            folder, _, last = name.rpartition("/")
            folders[folder or "."].add(last)
            name = folder
    return Index(by_end, folders)


def included(text: str) -> Iterator[str]:
    for match in INCLUDE.finditer(text):
        yield str(PurePosixPath(*(part for part in PurePosixPath(match[1]).parts if part not in (".", ".."))))


def imported(path: str, text: str) -> Iterator[str]:
    """Files that a module may come from: itself, or as a package."""
    for match in IMPORT.finditer(text):
        source, members, plain = match[1], match[2], match[3]
        bases: Iterable[str] = [source] if source else [word.split()[0] for word in (plain or "").split(",") if word.strip()]
        for base in bases:
            module = anchored(path, base)
            inner = [f"{module}/{word.split()[0]}" for word in (members or "").split(",") if word.strip()]
            for stem in (*inner, module):
                yield from (f"{stem}{ending}" for ending in (".py", "/__init__.py", ".pyx", ".pxd") if stem)


def anchored(path: str, module: str) -> str:
    """A module's path without its ending; a relative one from the file that imports it."""
    level = len(module) - len(module.lstrip("."))
    parts = [part for part in module.lstrip(".").split(".") if part]
    if level:
        parts = [*PurePosixPath(path).parts[:-level], *parts]
    return "/".join(parts)


def shared(one: str, other: str) -> int:
    """How many leading folders two paths share."""
    count = 0
    for left, right in zip(PurePosixPath(one).parts[:-1], PurePosixPath(other).parts[:-1], strict=False):
        if left != right:
            break
        count += 1
    return count
