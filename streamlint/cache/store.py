"""Where records lie: plain files, written beside and renamed, each with the hash of its content.

A file is whole or absent, whoever writes at the same time and whoever is killed; two that write the same name write the same. So there is
no lock, and nothing to repair. A record that does not fit its hash is as good as absent. Records are JSON, or lowered files
(`intermediate`): whoever can write to the folder can at most hide findings or make a run fail, never run code. Where nothing can be
written, the run goes on without.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from streamlint import TYPE_CHECKING
from streamlint.support.reading import Unreadable, home_folder, open_regular, read_bytes

if TYPE_CHECKING:
    from typing import Any

FORMAT = "1"
PACKAGE = Path(__file__).parent.parent
TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is a cache of streamlint; `streamlint clean` empties it.\n"
LIBRARIES = ("tree-sitter", "tree-sitter-cuda", "ahocorasick-rs", "pathspec")
_DAY = 86_400.0
_OLD = 30 * _DAY
_OLD_FILE = 7 * _DAY
INTERMEDIATE = "ir"  # the kind of lowered files
MOST_BYTES = 1 << 28  # of a record
_VERSION = re.compile(r"v\d+-[0-9a-f]{32}")
_HASH = re.compile(r"[0-9a-f]{32}")
_RECORD = re.compile(r"[0-9a-f]{32}|\.[a-z0-9_]{8}")  # a scratch file has a dot


def folder_of(configured: Path | None = None) -> Path:
    """The folder: the one that is asked for, ``STREAMLINT_CACHE_DIR``, or the platform's."""
    if configured is not None:
        return configured
    if said := os.environ.get("STREAMLINT_CACHE_DIR"):
        return Path(os.path.expanduser(said)) / "check"
    return Path(_platforms_folder()) / "check"


def _platforms_folder() -> str:
    """Where `platformdirs` says; where that is plain, without it: its import takes tens of milliseconds."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ.get("HOME", ""), ".cache")
    if sys.platform == "linux" and "ANDROID_ROOT" not in os.environ and home[0] == "/" and home == home.strip():
        return os.path.join(home, "streamlint")
    from platformdirs import user_cache_dir  # start-up: Linux needs none

    try:
        return user_cache_dir("streamlint", appauthor=False)
    except RuntimeError:
        return str(home_folder() / ".cache" / "streamlint")


def open_store(configured: Path | None = None) -> Store:
    """The records of this version of streamlint in a folder."""
    return Store(folder_of(configured))


class Store:
    """Records by kind and key. ``trouble`` says once why nothing could be written, ``served`` whether a record was found.

    ``parts`` are the folders and files of streamlint that make the records, where that is not all of it: they outlast its other changes.
    """

    def __init__(self, base: Path, parts: tuple[str, ...] = ()) -> None:
        self.base, self.parts = base, parts
        self.trouble, self.served = "", False
        self._folders: set[Path] = set()
        self.folder = base / f"v{FORMAT}-{self._code()}"

    def read(self, kind: str, key: str) -> Any:
        """A record, or None."""
        body = self.read_bytes(kind, key)
        try:
            return None if body is None else json.loads(body)
        except (ValueError, RecursionError):
            return None

    def read_bytes(self, kind: str, key: str) -> bytes | None:
        """A record that is no JSON, or None."""
        path = self._path(kind, key)
        try:
            with open_regular(path) as file:
                head, _, body = file.read(MOST_BYTES).partition(b"\n")
                used = os.fstat(file.fileno()).st_mtime
            if head != _mark(body):
                return None
            if time.time() - used > _DAY:
                with contextlib.suppress(OSError):
                    os.utime(path)  # in use
            self.served = True
            return body
        except (OSError, Unreadable):
            return None

    def write(self, kind: str, key: str, record: object) -> None:
        """Keep a record; what cannot be written is left out."""
        if not self.trouble:
            self.write_bytes(kind, key, json.dumps(record, separators=(",", ":"), ensure_ascii=True).encode())

    def write_bytes(self, kind: str, key: str, body: bytes) -> None:
        """Keep a record that is no JSON."""
        if self.trouble:
            return
        path = self._path(kind, key)
        try:
            self._make(path.parent)
            try:
                _place(path, _mark(body) + b"\n" + body)
            except FileNotFoundError:  # somebody emptied the cache meanwhile
                self._folders.clear()
                self._make(path.parent)
                _place(path, _mark(body) + b"\n" + body)
        except OSError as error:
            self.trouble = f"the cache in {self.base} cannot be written: {error.strerror or error}"

    def prune(self) -> None:
        """Once a day, by who writes: drop what was not used for a month; lowered files, which are large, after a week."""
        stamp, now = self.base / "pruned", time.time()
        try:
            if stamp.exists() and now - stamp.stat().st_mtime < _DAY:
                return
            stamp.touch()
        except OSError:
            return
        for path in (*_records(self.base), *_codes(self.base)):
            with contextlib.suppress(OSError):  # another process is at it
                if now - path.lstat().st_mtime > (_OLD_FILE if path.parent.name == INTERMEDIATE else _OLD):
                    path.unlink()

    def _path(self, kind: str, key: str) -> Path:
        return self.folder / kind / key

    def _make(self, folder: Path) -> None:
        if folder not in self._folders:
            folder.mkdir(parents=True, exist_ok=True)
            if not self._folders:
                _mark_base(self.base)
                self.prune()
            self._folders.add(folder)

    def _code(self) -> str:
        """What this streamlint is: the hash of its files and the versions of what it parses with.

        Reading them all costs more than a run that finds everything kept, so the hash itself is kept by their dates.
        """
        seen = digest("\0".join((*self.parts, *_dates(self.parts))))
        path = self.base / "code" / seen
        try:
            text = read_bytes(path, len(seen)).decode("ascii")
            if _HASH.fullmatch(text):
                return text
        except (Unreadable, ValueError):
            pass
        made = code_hash(parts=self.parts)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _place(path, made.encode())
        except OSError as error:
            self.trouble = f"the cache in {self.base} cannot be written: {error.strerror or error}"
        return made


def clean(base: Path) -> int:
    """Empty a cache folder; how many records went. What others keep there is left: the folder may be anybody's."""
    count = 0
    for path in _records(base):
        path.unlink(missing_ok=True)
        count += _HASH.fullmatch(path.name) is not None
    for folder in _folders_of(base):
        for kind in [*_entries(folder, None), folder]:
            with contextlib.suppress(OSError):  # something else stands there
                os.rmdir(kind)
    for path in _codes(base):
        path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        (base / "code").rmdir()
    if (base / "pruned").is_file() and (base / "pruned").stat().st_size == 0:
        (base / "pruned").unlink(missing_ok=True)
    return count


def _records(base: Path) -> Iterator[Path]:
    """The records in a folder, and what killed writers left of them: by their names, never through a link."""
    for folder in _folders_of(base):
        for kind in _entries(folder, None):
            if not kind.is_symlink() and kind.is_dir():
                yield from _entries(kind, _RECORD)


def _codes(base: Path) -> list[Path]:
    return [] if (base / "code").is_symlink() else _entries(base / "code", _HASH)


def _folders_of(base: Path) -> list[Path]:
    return [path for path in _entries(base, _VERSION) if not path.is_symlink() and path.is_dir()]


def _entries(folder: Path, named: re.Pattern[str] | None) -> list[Path]:
    try:
        names = sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [folder / name for name in names if named is None or named.fullmatch(name)]


def _mark_base(base: Path) -> None:
    """Backups and git pass over the folder, if nothing but the cache lies in it."""
    if any(name not in ("code", "pruned") and not _VERSION.fullmatch(name) for name in os.listdir(base)):
        return  # or it is marked already
    for name, text in (("CACHEDIR.TAG", TAG), (".gitignore", "*\n")):
        with contextlib.suppress(FileExistsError), open(base / name, "x", encoding="utf-8") as file:
            file.write(text)


def digest(text: str | bytes) -> str:
    """A short hash of a text."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:32]


def _place(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    import tempfile  # start-up: nothing to write

    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _mark(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()


def _files(folder: str) -> Iterator[os.DirEntry[str]]:
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_dir(follow_symlinks=False):
            if entry.name != "__pycache__":
                yield from _files(entry.path)
        elif entry.name.endswith((".py", ".toml")):
            yield entry


def _files_of(parts: tuple[str, ...]) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """The files of parts of this streamlint, by their paths in it; of all of it, where none is named."""
    for entry in _files(str(PACKAGE)):
        path = os.path.relpath(entry.path, PACKAGE)
        if not parts or path in parts or path.split(os.sep)[0] in parts:
            yield path, entry


def _dates(parts: tuple[str, ...]) -> Iterator[str]:
    yield sys.version
    for folder in sys.path:  # what is installed changes its folder
        with contextlib.suppress(OSError):
            yield f"{folder} {os.stat(folder or '.').st_mtime_ns if folder else 0}"
    for _, entry in _files_of(parts):
        facts = entry.stat()
        yield f"{entry.path} {facts.st_mtime_ns} {facts.st_size} {facts.st_ino}"


def code_hash(python: str = sys.version, parts: tuple[str, ...] = ()) -> str:
    """A hash of the files of this streamlint, or of parts of it, the versions of what it parses with, and Python's."""
    from importlib import metadata  # start-up: for a folder without the hash

    versions = [FORMAT, python]
    for name in LIBRARIES:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            versions.append(f"{name} none")
    for path, entry in _files_of(parts):
        with open(entry.path, "rb") as file:
            versions.append(f"{path} {hashlib.sha256(file.read()).hexdigest()}")
    return digest("\0".join(versions))
