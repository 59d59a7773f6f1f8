"""The file that the recorder writes, ``.slt``: blocks that stand alone, so that what was written before a crash can be read.

    magic    ``streamlint trace`` and a line feed, then the version as two bytes, little endian
    block    one byte for its kind, four bytes for the length of what follows, then that many bytes, compressed by zlib

Blocks of kind ROWS hold JSON arrays, one a line; the first element names the row:

    ["run", {...}]                        the process: pid, main thread, command, root, versions, start of the clock, and the session,
                                          an id that all recordings of one run share (since version 2); the first row of the file
    ["rank", number]                      of a process of torch.distributed, or as its launcher says
    ["names", domain, {cbid: name}]       names of calls, by CUPTI's domain (1 driver, 2 runtime) and number
    ["size", kind, bytes]                 what is kept of activity records of a kind, from their beginning
    ["kernel", address, name]             the name that kernel records point to
    ["frame", number, file, line, function, first line]
    ["stack", number, [frames]]           innermost frame first; 0 is the empty stack
    ["thread", thread, name]
    ["meanwhile", thread]                 the thread had no frames of the user's code; its stacks are the main thread's at that time
    ["gpu", name]
    ["note", sentence]
    ["end", time]                         of the recording, or of a part of it
    ["part", time]                        another part begins, and correlations begin anew; what passed between the two was not recorded

Blocks of kind RECORDS hold the beginnings of CUPTI's activity records. Blocks of kind LINKS hold, for each call whose stack was taken, its
correlation and the number of the stack (32 bits each, unsigned) and a word (64 bits): of allocations the bytes, of waits for a stream its
number plus one, else 0.
A row stands before all blocks that need it.
"""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

from streamlint import TYPE_CHECKING
from streamlint.support.errors import StreamlintError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO, Protocol

    class Sink(Protocol):
        """What is written to."""

        def write(self, data: bytes, /) -> object: ...


MAGIC = b"streamlint trace\n"
VERSION = 2
ROWS, RECORDS, LINKS = b"J", b"A", b"L"
LINK = struct.Struct("<IIQ")
_VERSION = struct.Struct("<H")
_HEAD = struct.Struct("<cI")
_LEVEL = 1  # of zlib: records repeat so much that higher ones gain little


def begin(file: Sink) -> None:
    """Write what a file starts with."""
    file.write(MAGIC + _VERSION.pack(VERSION))


def write(file: Sink, kind: bytes, data: bytes) -> None:
    """Write one block in one call, so that a file ends between blocks unless the process dies within that call."""
    packed = zlib.compress(data, _LEVEL)
    file.write(_HEAD.pack(kind, len(packed)) + packed)


def write_rows(file: Sink, rows: list[list[object]]) -> None:
    """Write rows as one block."""
    write(file, ROWS, "\n".join(json.dumps(row, separators=(",", ":")) for row in rows).encode())


def head(path: str | Path) -> dict[str, Any]:
    """What a file says of its process; nothing where it is no recording, or has only just been opened. Raises nothing."""
    try:
        kind, data = next(iter(Blocks(Path(path))))
        name, facts = json.loads(data.split(b"\n", 1)[0])
    except (StopIteration, StreamlintError, ValueError):
        return {}
    return facts if kind == ROWS and name == "run" else {}


class Blocks:
    """The blocks of a file, in order, whether its end is missing, and how many within are damaged.

    Raises StreamlintError for a file of another kind, of a later version, or that cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_cut = False
        self.damaged = 0

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        try:
            with self.path.open("rb") as file:
                self._begin(file)
                while head := file.read(_HEAD.size):
                    if len(head) < _HEAD.size:
                        self.is_cut = True
                        return
                    kind, length = _HEAD.unpack(head)
                    packed = file.read(length)
                    if len(packed) < length:
                        self.is_cut = True
                        return
                    try:
                        data = zlib.decompress(packed)
                    except zlib.error:
                        self.damaged += 1
                        continue
                    yield kind, data
        except OSError as error:
            raise StreamlintError(f"{self.path}: {error.strerror}") from error

    def _begin(self, file: BinaryIO) -> None:
        start = file.read(len(MAGIC) + _VERSION.size)
        if not start.startswith(MAGIC) or len(start) < len(MAGIC) + _VERSION.size:
            raise StreamlintError(f"{self.path}: not a recording of streamlint")
        (version,) = _VERSION.unpack(start[len(MAGIC) :])
        if version > VERSION:
            raise StreamlintError(f"{self.path}: written by a later streamlint (format {version}, this one reads up to {VERSION})")
