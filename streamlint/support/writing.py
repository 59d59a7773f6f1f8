"""Files written whole: after a crash, a kill or a full disk a file holds what it held before, or all that is new."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

SUFFIX = ".streamlint-tmp"  # what a killed run may leave behind
_NAME = 60  # characters of a file's name that its scratch file is known by


def write_output(path: str | Path, text: str | bytes) -> None:
    """Write what a run makes. What is no regular file (a pipe, a terminal, ``/dev/null``) is written to as it is.

    Where the folder takes no new file, or the file is a mount of its own, the file is written in place: it can be remade.
    """
    data = text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text
    target = Path(os.path.realpath(path))
    if _is_special(Path(path)):
        Path(path).write_bytes(data)
        return
    refuse_read_only(target)
    if target.exists() and not os.access(target.parent, os.W_OK):
        target.write_bytes(data)
        return
    with scratch_beside(target, data) as scratch:
        try:
            os.replace(scratch, target)
        except OSError:
            if not os.path.ismount(target):
                raise
            target.write_bytes(data)
    sync_folder(target.parent)


@contextlib.contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Holds a folder's lock, so that what is read, changed and written there is not changed by another process in between.

    Where the system or the file system has no locks, nothing is held.
    """
    try:
        import fcntl  # platform: POSIX
    except ImportError:
        yield
        return
    with open(folder / ".lock", "ab") as file:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)  # let go when the file is closed, or its process ends
        yield


@contextlib.contextmanager
def scratch_beside(target: Path, data: bytes) -> Iterator[str]:
    """A file beside the target that holds the data and has the target's mode; gone in the end, whatever becomes of it."""
    import tempfile  # start-up: nothing to write

    handle, name = tempfile.mkstemp(SUFFIX, f".{target.name[:_NAME]}.", target.parent)
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            _like(file.fileno(), target)
            os.fsync(file.fileno())
        yield name
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)


def _like(handle: int, target: Path) -> None:
    """Owner, mode and extended attributes (access lists are such) of the file that is replaced, as far as the system lets us."""
    try:
        old = os.stat(target)
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        _change_mode(handle, 0o666 & ~mask)
        return
    if hasattr(os, "fchown"):
        with contextlib.suppress(OSError):
            os.fchown(handle, old.st_uid, old.st_gid)
    _change_mode(handle, stat.S_IMODE(old.st_mode))
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for name in os.listxattr(target):
                with contextlib.suppress(OSError):
                    os.setxattr(handle, name, os.getxattr(target, name))


def _change_mode(handle: int, mode: int) -> None:
    if hasattr(os, "fchmod"):
        os.fchmod(handle, mode)


def refuse_read_only(target: Path) -> None:
    """What could not be opened for writing is not replaced either."""
    if target.exists():
        os.close(os.open(target, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0)))


def _is_special(path: Path) -> bool:
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False


def sync_folder(folder: Path) -> None:
    """The new name outlives a power cut where the file system supports it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
