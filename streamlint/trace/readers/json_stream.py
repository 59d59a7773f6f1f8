"""The events of a trace in Chrome's format, one at a time: neither the file nor its list of events is ever held whole.

Two forms are read: an object with the list under ``traceEvents``, its other keys before or after it, and a list of events alone.
Numbers with a fraction come as their text, so that no digit of a time is lost (a double holds microseconds since 1970 to 0.25 µs).
"""

from __future__ import annotations

import codecs
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from streamlint.support.errors import StreamlintError

GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20  # bytes that are read at once
_PACKED = 1 << 14  # bytes that are unpacked at once: what stands before damage is not lost
_LONGEST = 1 << 20  # characters of an event
_LARGEST = 1 << 24  # characters of what stands beside the list of events
_GZIP_ONLY = 31  # zlib's window bits for gzip
_BETWEEN = re.compile(r"[\s,]*")
_BLANK = re.compile(r"\s*")
_NEXT_EVENT = re.compile(r"\}\s*,\s*(?=\{)")


class Malformed(Exception):
    """Text that is no JSON."""


class EventStream:
    """The events of a file, and what stood beside them.

    ``header`` is complete when all events have been taken. ``truncated`` says that the file ends too early, ``skipped`` how many events
    could not be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header: dict[str, Any] = {}
        self.truncated = False
        self.skipped = 0
        self.is_trace = False
        self._pieces = _pieces(path)
        self._decode = json.JSONDecoder(parse_float=str, strict=False).scan_once  # type: ignore[attr-defined]  # of all versions
        self._text = ""
        self._at = 0

    def events(self) -> Iterator[dict[str, Any]]:
        """All events that can be read, in the order of the file.

        Raises StreamlintError where the file is no JSON or no trace, OSError where it cannot be read.
        """
        opening = self._peek()
        if opening == "[":
            self.is_trace = True
            yield from self._list()
        elif opening == "{":
            self._at += 1
            yield from self._object()
        elif not opening:
            raise StreamlintError(f"{self.path} is empty")
        else:
            raise StreamlintError(f"{self.path} is not a trace: neither JSON nor an SQLite database")
        if not self.is_trace:
            what = "ends before its list of events" if self.truncated else "is JSON, but no trace: it has no list 'traceEvents'"
            raise StreamlintError(f"{self.path} {what}")

    def _object(self) -> Iterator[dict[str, Any]]:
        try:
            while (found := self._peek()) != "}":
                if found == ",":
                    self._at += 1
                    continue
                key = self._value()
                if not isinstance(key, str) or self._peek() != ":":
                    raise Malformed
                self._at += 1
                if key == "traceEvents" and self._peek() == "[":
                    self.is_trace = True
                    yield from self._list()
                else:
                    self.header[key] = self._value()
        except Malformed:
            self.truncated = True

    def _list(self) -> Iterator[dict[str, Any]]:
        self._at += 1
        decode, between = self._decode, _BETWEEN.match
        while True:
            text, at = self._text, self._at
            try:
                while True:
                    at = between(text, at).end()  # type: ignore[union-attr]  # it matches nothing, too
                    event, at = decode(text, at)
                    if type(event) is dict:
                        yield event
            except (StopIteration, ValueError, RecursionError):
                self._at = at
            if text[at : at + 1] == "]":
                self._at += 1
                return
            if self._more(_LONGEST):
                continue
            if not self._skip():
                self.truncated = True
                return

    def _skip(self) -> bool:
        """Pass over an event that is no JSON, to the one behind it."""
        found = _NEXT_EVENT.search(self._text, self._at)
        while found is None and self._more(_LARGEST):
            found = _NEXT_EVENT.search(self._text, self._at)
        if found is None:
            return False
        self.skipped += 1
        self._at = found.end()
        return True

    def _peek(self) -> str:
        """The next character that is not blank, "" at the end."""
        while True:
            self._at = _BLANK.match(self._text, self._at).end()  # type: ignore[union-attr]  # it matches nothing, too
            if self._at < len(self._text) or not self._more(_LARGEST):
                return self._text[self._at : self._at + 1]

    def _value(self) -> Any:
        while True:
            try:
                value, end = self._decode(self._text, _BLANK.match(self._text, self._at).end())  # type: ignore[union-attr]
            except (StopIteration, ValueError, RecursionError):
                if self._more(_LARGEST):
                    continue
                raise Malformed from None
            if end == len(self._text) and self._more(_LARGEST):
                continue  # a number may go on
            self._at = end
            return value

    def _more(self, most: int) -> bool:
        """Read on, unless more than ``most`` characters are waiting already."""
        if len(self._text) - self._at > most:
            return False
        piece = next(self._pieces, "")
        self._text = self._text[self._at :] + piece
        self._at = 0
        return bool(piece)


def _pieces(path: Path) -> Iterator[str]:
    """The text of a file, unpacked. What is damaged ends it."""
    decode = codecs.getincrementaldecoder("utf-8-sig")(errors="replace").decode
    for piece in _unpacked(path):
        if text := decode(piece):
            yield text


def _unpacked(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        piece = file.read(_CHUNK)
        if not piece.startswith(GZIP):
            while piece:
                yield piece
                piece = file.read(_CHUNK)
            return
        yield from _inflated(file, piece)


def _inflated(file: BinaryIO, piece: bytes) -> Iterator[bytes]:
    """What gzip packed, up to where it is damaged. ``piece`` was read already."""
    unpack = zlib.decompressobj(_GZIP_ONLY)
    while piece:
        for start in range(0, len(piece), _PACKED):
            part = piece[start : start + _PACKED]
            while part:
                before = unpack.copy()
                try:
                    out = unpack.decompress(part, _CHUNK)
                except zlib.error:
                    yield from _before_damage(before, part)
                    return
                if out:
                    yield out
                part = unpack.unconsumed_tail or unpack.unused_data
                if unpack.eof and part:
                    unpack = zlib.decompressobj(_GZIP_ONLY)  # files may be put one behind the other
        piece = file.read(_CHUNK)
    yield unpack.flush()


def _before_damage(unpack: zlib._Decompress, part: bytes) -> Iterator[bytes]:
    for byte in part:
        try:
            yield unpack.decompress(bytes((byte,)))
        except zlib.error:
            return
