"""Where records lie: plain files, written beside and renamed, each with the hash of its content.

A file is whole or absent, whoever writes at the same time and whoever is killed; two that write the same name write the same. So there is
no lock, and nothing to repair. A record that does not fit its hash is as good as absent. Records are JSON, or syntax trees (`trees`) that
are read with as much care: whoever can write to the folder can at most hide findings, never run code. Where nothing can be written, the
run goes on without.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from streamlint import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

FORMAT = "1"
PACKAGE = Path(__file__).parent.parent
TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is a cache of streamlint; `streamlint clean` empties it.\n"
LIBRARIES = ("libcst", "tree-sitter", "tree-sitter-cuda", "ahocorasick-rs", "pathspec")
_DAY = 86_400.0
_OLD = 30 * _DAY
_OLD_TREE = 7 * _DAY
TREES = "trees"  # the kind of lowered files


def folder_of(asked: Path | None = None) -> Path:
    """The folder: the one that is asked for, ``STREAMLINT_CACHE_DIR``, or the platform's."""
    if asked is not None:
        return asked
    if said := os.environ.get("STREAMLINT_CACHE_DIR"):
        return Path(said).expanduser() / "check"
    return Path(_platforms_folder()) / "check"


def _platforms_folder() -> str:
    """Where `platformdirs` says; where that is plain, without it: its import takes tens of milliseconds."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ.get("HOME", ""), ".cache")
    if sys.platform == "linux" and "ANDROID_ROOT" not in os.environ and home[0] == "/" and home == home.strip():
        return os.path.join(home, "streamlint")
    from platformdirs import user_cache_dir

    return user_cache_dir("streamlint", appauthor=False)


def open_store(asked: Path | None = None) -> Store:
    """The records of this version of streamlint in a folder."""
    return Store(folder_of(asked))


class Store:
    """Records by kind and key. ``trouble`` says once why nothing could be written."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.trouble = ""
        self._folders: set[Path] = set()
        self.folder = base / f"v{FORMAT}-{self._code()}"

    def read(self, kind: str, key: str) -> Any:
        """A record, or None."""
        body = self.read_bytes(kind, key)
        try:
            return None if body is None else json.loads(body)
        except ValueError:
            return None

    def read_bytes(self, kind: str, key: str) -> bytes | None:
        """A record that is no JSON, or None."""
        path = self._path(kind, key)
        try:
            with open(path, "rb") as file:
                head, _, body = file.read().partition(b"\n")
                used = os.fstat(file.fileno()).st_mtime
            if head != _mark(body):
                return None
            if time.time() - used > _DAY:
                with contextlib.suppress(OSError):
                    os.utime(path)  # in use
            return body
        except OSError:
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
            _place(path, _mark(body) + b"\n" + body)
        except OSError as error:
            self.trouble = f"the cache in {self.base} cannot be written: {error.strerror or error}"

    def prune(self) -> None:
        """Once a day: drop what was not used for a month; lowered files, which are large, after a week."""
        stamp, now = self.base / "pruned", time.time()
        try:
            if stamp.exists() and now - stamp.stat().st_mtime < _DAY:
                return
            stamp.touch()
            os.utime(self.folder)
            for folder in self.base.glob("v*"):
                for path in folder.glob("*/*"):
                    if now - path.stat().st_mtime > (_OLD_TREE if path.parent.name == TREES else _OLD):
                        path.unlink()
        except OSError:
            return  # another process is at it

    def _path(self, kind: str, key: str) -> Path:
        return self.folder / kind / key

    def _make(self, folder: Path) -> None:
        if folder not in self._folders:
            folder.mkdir(parents=True, exist_ok=True)
            if not (self.base / "CACHEDIR.TAG").exists():
                (self.base / "CACHEDIR.TAG").write_text(TAG, encoding="utf-8")
                (self.base / ".gitignore").write_text("*\n", encoding="utf-8")
            self._folders.add(folder)

    def _code(self) -> str:
        """What this streamlint is: the hash of its files and the versions of what it parses with.

        Reading them all costs more than a run that finds everything kept, so the hash itself is kept by their dates.
        """
        seen = digest("\0".join(_dates()))
        path = self.base / "code" / seen
        try:
            text = path.read_text(encoding="ascii")
            if len(text) == len(seen):
                return text
        except (OSError, ValueError):
            pass
        made = code_hash()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _place(path, made.encode())
        except OSError as error:
            self.trouble = f"the cache in {self.base} cannot be written: {error.strerror or error}"
        return made


def clean(base: Path) -> int:
    """Empty a cache folder; how many records went. Files of others in it are left."""
    import shutil

    count = 0
    for folder in sorted(base.glob("v[0-9]*-*")):
        count += sum(1 for path in folder.glob("*/*") if path.is_file())
        shutil.rmtree(folder)
    if (base / "code").is_dir():
        shutil.rmtree(base / "code")
    (base / "pruned").unlink(missing_ok=True)
    return count


def digest(text: str | bytes) -> str:
    """A short hash of a text."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:32]


def _place(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    import tempfile

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


def _dates() -> Iterator[str]:
    yield sys.version
    for folder in sys.path:  # what is installed changes its folder
        with contextlib.suppress(OSError):
            yield f"{folder} {os.stat(folder or '.').st_mtime_ns if folder else 0}"
    for entry in _files(str(PACKAGE)):
        facts = entry.stat()
        yield f"{entry.path} {facts.st_mtime_ns} {facts.st_size} {facts.st_ino}"


def code_hash(python: str = sys.version) -> str:
    """A hash of the files of this streamlint, the versions of what it parses with, and Python's."""
    from importlib import metadata

    parts = [FORMAT, python]
    for name in LIBRARIES:
        try:
            parts.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            parts.append(f"{name} none")
    for entry in _files(str(PACKAGE)):
        with open(entry.path, "rb") as file:
            parts.append(f"{os.path.relpath(entry.path, PACKAGE)} {hashlib.sha256(file.read()).hexdigest()}")
    return digest("\0".join(parts))
