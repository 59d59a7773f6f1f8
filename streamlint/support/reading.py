"""Bytes to text: languages by suffix, encodings, what cannot be read; and how near files are to each other."""

from __future__ import annotations

import os
import re
import stat
from itertools import takewhile
from pathlib import Path

from streamlint import TYPE_CHECKING
from streamlint.support.lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from streamlint.support import notebooks
else:
    (notebooks,) = lazy("streamlint.support", "notebooks")

LANGUAGES = {
    **dict.fromkeys((".py", ".pyw", ".ipynb"), "python"),
    **dict.fromkeys((".pyx", ".pxd", ".pxi"), "cython"),
    **dict.fromkeys((".cu", ".cuh", ".hu"), "cuda"),
    **dict.fromkeys((".c", ".cc", ".cpp", ".cxx", ".c++"), "cuda"),
    **dict.fromkeys((".h", ".hh", ".hpp", ".hxx", ".h++", ".inl", ".ipp", ".tpp"), "cuda"),
}
CODING = re.compile(rb"\A(?:[ \t\f]*(?:#[^\r\n]*)?\r?\n)?[ \t\f]*#[^\r\n]*?coding[:=][ \t]*([-\w.]+)")
MOST_BYTES = 16 << 20
MOST_NOTEBOOK = 64 << 20  # bytes: most are pictures that cells have drawn
_ASIDE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
NO_TEXT = ("idna", "punycode")  # of host names: decoding a long file takes hours
BOM = b"\xef\xbb\xbf"


class Unreadable(Exception):
    """A file that cannot be read; the message is the reason."""


def language_of(path: str) -> str | None:
    """The language of a file by its suffix; None if it is nothing that streamlint reads."""
    name, _, ending = path.rpartition(".")
    if (language := LANGUAGES.get(f".{ending}".lower())) is None:
        return None
    return language if name[-1:] not in ("", ".", os.sep) or os.path.splitext(path)[1] else None  # ``.py`` alone is a name


def is_notebook(path: str) -> bool:
    """Whether a file is a Jupyter notebook by its suffix: its text is that of its code cells."""
    return path[-6:].lower() == ".ipynb"


def read_source(path: str) -> bytes:
    """The content of a source file. Raises Unreadable."""
    return read_bytes(path, MOST_NOTEBOOK if is_notebook(path) else MOST_BYTES)


def read_bytes(path: str | os.PathLike[str], most: int = MOST_BYTES) -> bytes:
    """The content of a regular file.

    Raises Unreadable for broken links, pipes, devices, what is larger than ``most``, and whatever the system refuses.
    """
    try:
        with open_regular(path) as file:
            data = file.read(most + 1) if os.fstat(file.fileno()).st_size <= most else None
    except ValueError:  # a null byte in its name
        raise Unreadable("no such file") from None
    except OSError as error:
        reason = "broken symbolic link" if os.path.islink(path) and not os.path.exists(path) else error.strerror or str(error)
        raise Unreadable(reason) from None
    if data is None or len(data) > most:
        raise Unreadable(f"larger than {most >> 20} MiB")
    return data


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """A regular file, opened for reading; whatever it is replaced by meanwhile, nobody waits for it.

    Raises OSError, and Unreadable for what is no regular file.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):  # to open a device may do something
        raise Unreadable("not a regular file")
    file = open(os.open(path, _ASIDE), "rb")  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # it was another one by then
        file.close()
        raise Unreadable("not a regular file")
    return file


def decode(data: bytes, language: str, path: str = "") -> tuple[str, str]:
    """The text without its byte order mark, line ends kept, and a warning (or ""); of a notebook the Python of its cells.

    Raises Unreadable if the bytes are no text of the language. C++ compilers take any bytes in comments, so C++ falls back to Latin-1.
    """
    if is_notebook(path):
        try:
            return notebooks.program_of(data), ""
        except notebooks.NotebookError as error:
            raise Unreadable(str(error)) from None
    encoding = "utf-8"
    body = data.removeprefix(BOM)
    if language != "cuda" and (declared := CODING.match(body)):
        encoding = declared[1].decode("ascii")
    try:
        if encoding.lower().replace("_", "-") in NO_TEXT:
            raise LookupError
        text = body.decode(encoding)
    except LookupError:
        raise Unreadable(f"unknown encoding '{encoding}'") from None
    except (UnicodeError, ValueError) as error:
        if not isinstance(error, UnicodeDecodeError):
            raise Unreadable(f"not {encoding.upper()}: {error}") from None
        if language != "cuda" or b"\0" in data:
            raise Unreadable(f"not {encoding.upper()}: {error.reason} at byte {error.start}") from None
        return body.decode("latin-1"), "not UTF-8, read as Latin-1"
    if "\0" in text:
        raise Unreadable("holds null bytes")
    return text, ""


def foreign_language(data: bytes) -> str:
    """The language of a notebook that can be read, if it is not Python, else ""."""
    return notebooks.foreign_language(data)


def encode(text: str, data: bytes, language: str, path: str = "") -> bytes:
    """The bytes of a changed text, in the encoding and with the mark of the file that it was read from.

    Raises Unreadable where a notebook cannot hold it.
    """
    if is_notebook(path):
        try:
            return notebooks.rewritten(data, text)
        except notebooks.NotebookError as error:
            raise Unreadable(str(error)) from None
    mark = BOM if data.startswith(BOM) else b""
    body = data.removeprefix(BOM)
    encoding = "utf-8"
    if language != "cuda" and (declared := CODING.match(body)):
        encoding = declared[1].decode("ascii")
    elif language == "cuda" and decode(data, language, path)[1]:
        encoding = "latin-1"
    return mark + text.encode(encoding)


def nearest(folder: str, known: dict[str, str | None], own: Callable[[str], str | None]) -> str | None:
    """What the first folder, from one upwards, has of its own; known from then on. A loop: folders nest deeper than calls may."""
    below: list[str] = []
    found: str | None = None
    while folder not in known:
        below.append(folder)
        found, above = own(folder), os.path.dirname(folder)
        if found is not None or above == folder:
            break
        folder = above
    else:
        found = known[folder]
    known.update(dict.fromkeys(below, found))
    return found


def home_folder() -> Path:
    """The user's folder; the root for a user with neither ``HOME`` nor a name, as container engines have it."""
    try:
        return Path.home()
    except RuntimeError:
        return Path(os.sep)


def shared_folders(one: str, other: str) -> int:
    """How many folders two paths begin with alike."""
    pairs = zip(one.replace("\\", "/").split("/")[:-1], other.replace("\\", "/").split("/")[:-1], strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def stat_of(path: str) -> list[int] | None:
    """What changes with a file or a folder: its times, its size and its number; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return [found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino]
