"""Which files a run looks at: paths as given, folders walked, exclusions, gitignore."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from streamlint import TYPE_CHECKING
from streamlint.config.settings import CONFIGURATIONS, Pattern, Resolver, Settings
from streamlint.discovery.patterns import Patterns, patterns
from streamlint.findings import Problem
from streamlint.support.errors import PathError
from streamlint.support.paths import below, display_path
from streamlint.support.reading import Unreadable, language_of, open_regular, read_bytes
from streamlint.support.records import field, record
from streamlint.support.repositories import common_folder, forget_repositories

if TYPE_CHECKING:
    Ignores = tuple[tuple[str, Patterns], ...]  # by folder, nearest first

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
_in_force: dict[str, Ignores] = {}  # by folder


@record(frozen=True, slots=True)
class Found:
    """A file to lint: its path as findings show it, its language, and whether it was named itself."""

    path: str
    language: str
    settings: Settings
    given: bool


@record(slots=True)
class Discovery:
    """What a walk found."""

    files: list[Found] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def discover(paths: Iterable[str | Path], resolver: Resolver) -> Discovery:
    """The lintable files of paths, in order, each once.

    Raises PathError for a path that does not exist.
    """
    forget()
    walk = _Walk(resolver)
    for path in paths:
        walk.start(os.fspath(path))
    walk.found.files.sort(key=lambda file: file.path)
    return walk.found


def matches(pattern: Pattern, path: str | Path, is_folder: bool = False) -> bool:
    """Whether a pattern, or one for a folder above, covers an absolute path."""
    path = Path(path)
    try:
        relative = path.relative_to(pattern.root).as_posix()
    except ValueError:
        return False
    return bool(patterns((pattern.glob,)).verdict(relative + "/" * is_folder))


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
        folder = absolute if is_folder else os.path.dirname(absolute)
        settings = self._resolver.of_folder(folder)
        if settings.force_exclude and left_out(absolute, is_folder, settings):
            return
        if is_folder:
            waiting = [(absolute, settings, _gitignores(folder))]
            while waiting:  # a loop: folders nest deeper than calls may
                waiting += self._folder(*waiting.pop())
        else:
            self._file(absolute, settings)

    def _folder(self, folder: str, settings: Settings, ignored: Ignores) -> list[tuple[str, Settings, Ignores]]:
        """Look through a folder; returns those in it. ``settings`` and ``ignored`` are those of the folder above, and this one's where it
        holds no file that says more.
        """
        inside: list[tuple[str, Settings, Ignores]] = []
        entries = self._entries(folder)
        names = {entry.name for entry in entries}
        if not names.isdisjoint(CONFIGURATIONS):
            settings = self._resolver.of_folder(folder)
        if not names.isdisjoint((".git", ".gitignore")):
            ignored = _gitignores(folder)
        above = folder.rstrip(os.sep) + os.sep
        shown_above = below(above, self._here) if above != self._here.rstrip(os.sep) + os.sep else ""
        for entry in entries:
            name = entry.name
            language = language_of(name) if "." in name else None
            is_folder = _is_folder(entry)
            if not is_folder and (language is None or _links_to_folder(entry)):
                continue  # a link to a folder is not followed: it may lead round
            path = above + name
            if _excluded(path, is_folder, settings) or (settings.respect_gitignore and _ignored_by_git(path, is_folder, ignored)):
                continue
            if is_folder:
                inside.append((path, settings, ignored))
            elif _included(path, settings):
                self._add(path, shown_above + name, language, settings, given=False)
        return inside

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as listed:
                return list(listed)
        except OSError as error:
            self.found.problems.append(Problem(display_path(folder), f"cannot read the folder: {error.strerror}"))
            return []

    def _file(self, path: str, settings: Settings) -> None:
        language = language_of(path) or ("python" if _is_python_script(Path(path)) else None)
        self._add(path, below(path, self._here), language, settings, given=True)

    def _add(self, path: str, shown_path: str, language: str | None, settings: Settings, *, given: bool) -> None:
        if language and path not in self._seen:
            self._seen.add(path)
            self.found.files.append(Found(shown_path, language, settings, given))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:  # of a file system that must be asked, and refuses: reading it will fail
        return False


def _links_to_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_symlink() and os.path.isdir(entry.path)


def _included(path: str, settings: Settings) -> bool:
    return settings.include is None or any(matches(pattern, path) for pattern in settings.include)


def _excluded(path: str, is_folder: bool, settings: Settings) -> bool:
    if not is_folder and settings.exclude is None and not settings.extend_exclude:
        return False
    name = path.rpartition(os.sep)[2]
    if is_folder and name in TOOL_FOLDERS:
        return True
    if settings.exclude is None:
        if is_folder and settings.default_excludes and name.lower() in DEFAULT_FOLDERS:
            return True
    elif any(matches(pattern, path, is_folder) for pattern in settings.exclude):
        return True
    return any(matches(pattern, path, is_folder) for pattern in settings.extend_exclude)


def left_out(path: str | Path, is_folder: bool, settings: Settings) -> bool:
    """What ``--force-exclude`` asks: whether a path, or a folder between it and the configuration's folder, is excluded."""
    path, root = os.fspath(path), os.fspath(settings.root)
    above = root.rstrip(os.sep) + os.sep
    if not path.startswith(above):
        return False
    step, names = root, path[len(above) :].split(os.sep)
    for number, name in enumerate(names, 1):
        folder, step = step, os.path.join(step, name)
        inside = is_folder or number < len(names)
        if _excluded(step, inside, settings):
            return True
        if settings.respect_gitignore and _ignored_by_git(step, inside, _gitignores(folder)):
            return True
    return False


def _is_python_script(path: Path) -> bool:
    if path.suffix or not path.is_file():
        return False
    try:
        with open_regular(path) as file:
            first = file.readline(200)
    except (OSError, Unreadable):
        return False
    return first.startswith(b"#!") and b"python" in first


def _ignored_by_git(path: str, is_folder: bool, ignored: Ignores) -> bool:
    """Whether a gitignore says so: the nearest file that knows the path decides."""
    for folder, spec in ignored:
        verdict = spec.verdict(below(path, folder) + "/" * is_folder)
        if verdict is not None:
            return verdict
    return False


def _gitignores(folder: str) -> Ignores:
    """The ignore files in force in a folder, nearest first, up to the root of the repository."""
    below = []
    while folder not in _in_force:
        own, is_root = _own_gitignores(folder)
        below.append((folder, own))
        above = os.path.dirname(folder)
        if is_root or above == folder:
            found: Ignores = ()
            break
        folder = above
    else:
        found = _in_force[folder]
    for folder, own in reversed(below):  # a loop: folders nest deeper than calls may
        found = _in_force[folder] = own + found
    return found


def _own_gitignores(folder: str) -> tuple[Ignores, bool]:
    """What the ignore files of one folder say, and whether a repository begins there."""
    git = os.path.join(folder, ".git")
    is_root = os.path.exists(git)
    own = [os.path.join(folder, ".gitignore"), *([os.path.join(common_folder(git), "info", "exclude")] if is_root else [])]
    return tuple((folder, spec) for spec in map(_gitignore, own) if spec), is_root


def _gitignore(path: str) -> Patterns | None:
    if not os.path.lexists(path):
        return None
    try:
        lines = re.split(r"\r?\n", read_bytes(path, _MOST_PATTERNS).decode("utf-8", "replace"))
    except Unreadable:
        return None
    useful = tuple(line for line in lines if line.strip() and not line.startswith("#"))
    return patterns(useful) if useful else None


def forget() -> None:
    """Forget ignore files and repositories: for callers that run more than once."""
    _in_force.clear()
    forget_repositories()
