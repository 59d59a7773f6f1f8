"""Which files a run looks at: paths as given, folders walked, exclusions, gitignore."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from streamlint.config import CONFIGURATIONS, Pattern, Resolver, Settings
from streamlint.errors import PathError
from streamlint.findings import Problem
from streamlint.reading import Unreadable, language_of, read_bytes

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

    Ignores = tuple[tuple[Path, GitIgnoreSpec], ...]  # by folder, nearest first

# Folders of tools: nobody's source.
TOOL_FOLDERS = frozenset(
    ".bzr .direnv .eggs .git .hg .ipynb_checkpoints .mypy_cache .nox .pants.d .pyenv .pytest_cache .pytype .ruff_cache .streamlint_cache"
    " .svn .tox .venv .vscode __pycache__ __pypackages__ node_modules".split()
)
# Folders that are left out by default, and read with `--no-default-excludes`.
DEFAULT_FOLDERS = frozenset(
    "test tests benchmark benchmarks example examples third_party third-party thirdparty 3rdparty"
    " cutlass cub cccl _cccl eigen eigen3 composable_kernel _build buck-out build dist site-packages venv".split()
)
_MOST_PATTERNS = 1 << 20  # bytes of an ignore file
_MOST_STARS = 4  # in a part of a pattern, and of folders in between


@dataclass(frozen=True, slots=True)
class Found:
    """A file to lint: its path as findings show it, its language, and whether it was named itself."""

    path: str
    language: str
    settings: Settings
    given: bool


@dataclass(slots=True)
class Discovery:
    """What a walk met."""

    files: list[Found] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def discover(paths: Iterable[str | Path], resolver: Resolver) -> Discovery:
    """The lintable files of paths, in order, each once.

    Raises PathError for a path that does not exist.
    """
    walk = _Walk(resolver)
    for path in paths:
        walk.start(os.fspath(path))
    walk.found.files.sort(key=lambda file: file.path)
    return walk.found


def shown(path: str) -> str:
    """A path as findings show it: relative to the current folder where it lies below, with forward slashes."""
    return _below(os.path.abspath(path), os.getcwd())


def _below(absolute: str, here: str) -> str:
    above = here.rstrip(os.sep) + os.sep
    return (absolute[len(above) :] if absolute.startswith(above) else absolute).replace(os.sep, "/")


def matches(pattern: Pattern, path: str | Path, is_folder: bool = False) -> bool:
    """Whether a pattern, or one for a folder above, covers an absolute path."""
    path = Path(path)
    try:
        relative = path.relative_to(pattern.root).as_posix()
    except ValueError:
        return False
    return bool(_spec((pattern.glob,)).match_file(relative + "/" * is_folder))


class _Walk:
    """Paths are plain strings here: to make a `Path` of each file costs more than to look at its folder."""

    def __init__(self, resolver: Resolver) -> None:
        self.found = Discovery()
        self._resolver = resolver
        self._seen: set[str] = set()
        self._here = os.getcwd()

    def start(self, path: str) -> None:
        absolute = os.path.abspath(path)
        if not os.path.lexists(path):
            raise PathError(f"{path}: no such file or folder")
        is_folder = os.path.isdir(absolute)
        folder = Path(absolute if is_folder else os.path.dirname(absolute))
        settings = self._resolver.of_folder(folder)
        if settings.force_exclude and left_out(Path(absolute), is_folder, settings):
            return
        if is_folder:
            self._folder(absolute, settings, _gitignores(folder))
        else:
            self._file(absolute, settings, given=True)

    def _folder(self, folder: str, settings: Settings, ignored: Ignores) -> None:
        """``settings`` and ``ignored`` are those of the folder above, and this one's where it holds no file that says more."""
        try:
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            self.found.problems.append(Problem(shown(folder), f"cannot read the folder: {error.strerror}"))
            return
        names = {entry.name for entry in entries}
        if not names.isdisjoint(CONFIGURATIONS):
            settings = self._resolver.of_folder(Path(folder))
        if not names.isdisjoint((".git", ".gitignore")):
            ignored = _gitignores(Path(folder))
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and (language_of(entry.name) is None or (entry.is_symlink() and os.path.isdir(entry.path))):
                continue  # links to folders are not followed: they may lead round
            path = f"{folder.rstrip(os.sep)}{os.sep}{entry.name}"
            if _excluded(path, is_folder, settings) or (settings.respect_gitignore and _ignored_by_git(path, is_folder, ignored)):
                continue
            if is_folder:
                self._folder(path, settings, ignored)
            elif settings.include is None or any(matches(pattern, path) for pattern in settings.include):
                self._file(path, settings, given=False)

    def _file(self, path: str, settings: Settings, given: bool) -> None:
        language = language_of(path) or ("python" if given and _is_python_script(Path(path)) else None)
        if language and path not in self._seen:
            self._seen.add(path)
            self.found.files.append(Found(_below(path, self._here), language, settings, given))


def _excluded(path: str, is_folder: bool, settings: Settings) -> bool:
    name = path.rpartition(os.sep)[2]
    if is_folder and name in TOOL_FOLDERS:
        return True
    if settings.exclude is None:
        if is_folder and settings.default_excludes and name.lower() in DEFAULT_FOLDERS:
            return True
    elif any(matches(pattern, path, is_folder) for pattern in settings.exclude):
        return True
    return any(matches(pattern, path, is_folder) for pattern in settings.extend_exclude)


def left_out(path: Path, is_folder: bool, settings: Settings) -> bool:
    """What ``--force-exclude`` asks: whether a path, or a folder between it and the configuration's folder, is excluded."""
    if not path.is_relative_to(settings.root):
        return False
    below = path.relative_to(settings.root).parts
    steps = [settings.root.joinpath(*below[: length + 1]) for length in range(len(below))]
    return any(
        _excluded(str(step), folder, settings)
        or (settings.respect_gitignore and _ignored_by_git(str(step), folder, _gitignores(step.parent)))
        for step, folder in ((step, is_folder or step != path) for step in steps)
    )


def _is_python_script(path: Path) -> bool:
    if path.suffix or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            first = file.readline(200)
    except OSError:
        return False
    return first.startswith(b"#!") and b"python" in first


def _ignored_by_git(path: str, is_folder: bool, ignored: Ignores) -> bool:
    """Whether a gitignore says so: the nearest file that knows the path decides."""
    for folder, spec in ignored:
        verdict = spec.check_file(_below(path, str(folder)) + "/" * is_folder).include
        if verdict is not None:
            return verdict
    return False


@functools.cache
def _gitignores(folder: Path) -> Ignores:
    """The ignore files in force in a folder, nearest first, up to the root of the repository."""
    is_root = (folder / ".git").exists()
    own = [folder / ".gitignore", *([folder / ".git" / "info" / "exclude"] if is_root else [])]
    specs = tuple((folder, spec) for spec in map(_gitignore, own) if spec)
    return specs if is_root or folder.parent == folder else specs + _gitignores(folder.parent)


def _gitignore(path: Path) -> GitIgnoreSpec | None:
    try:
        lines = re.split(r"\r?\n", read_bytes(path, _MOST_PATTERNS).decode("utf-8", "replace"))
    except Unreadable:
        return None
    useful = tuple(line for line in lines if line.strip() and not line.startswith("#"))
    return _spec(useful) if useful else None


@functools.cache
def _spec(lines: tuple[str, ...]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(_parsable(lines))


def _parsable(lines: tuple[str, ...]) -> Iterator[str]:
    """Patterns that pathspec accepts; git itself skips the others without a word."""
    from pathspec import GitIgnoreSpec

    for line in lines:
        if any(part.count("*") > _MOST_STARS for part in line.split("/")) or line.count("**") > _MOST_STARS:
            continue  # to match it could take years
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            continue
        yield line


def forget() -> None:
    """Read ignore files again: for who runs more than once."""
    _gitignores.cache_clear()
