"""The answer to ``initialize``, given before pygls is imported: an editor waits for it.

What has been read is given to pygls afterwards, whose own answer to it is dropped. Whatever is not plainly an ``initialize`` request is
left to pygls alone.
"""

from __future__ import annotations

import io
import json
import re
import sys
from typing import Any, BinaryIO

from streamlint import __version__

KINDS = ("quickfix", "source.fixAll.streamlint")  # of code actions
MOST_HEADER, MOST_MESSAGE = 1 << 16, 1 << 30  # bytes
ENCODINGS = ("utf-8", "utf-16", "utf-32")
INCREMENTAL = 2
NOTEBOOKS = {"notebookSelector": [{"notebook": "jupyter-notebook", "cells": [{"language": "python"}]}], "save": False}

_LENGTH = re.compile(rb"Content-Length: (\d{1,12})\r\n")

Id = int | str


class Incoming:
    """A client's messages, of which some bytes have been read before. One that no memory could hold ends them, as a lost client does."""

    def __init__(self, stream: BinaryIO, read: bytes = b"") -> None:
        self._stream, self._read = stream, io.BytesIO(read)

    def readline(self) -> bytes:
        """A line of a header, or the first part of one that has no end."""
        return self._read.readline() or self._stream.readline(MOST_HEADER)

    def read(self, size: int) -> bytes:
        """A message's body."""
        if size > MOST_MESSAGE:
            print(f"streamlint: a message of {size} bytes is refused", file=sys.stderr)
            return b""
        known = self._read.read(size)
        return known if len(known) == size else known + self._stream.read(size - len(known))


class Outgoing:
    """The way to the client, on which the second answer to a request is dropped."""

    def __init__(self, stream: BinaryIO, answered: Id | None = None) -> None:
        self._stream, self._answered = stream, answered

    def write(self, data: bytes) -> None:
        """Send a whole message."""
        if self._answered is not None:
            message = json.loads(data.partition(b"\r\n\r\n")[2])
            if message.get("id") == self._answered and "method" not in message:
                self._answered = None
                if "error" not in message:
                    return
                error = f"the request 'initialize' is not understood: {message['error'].get('message')}"
                data = _framed({"jsonrpc": "2.0", "method": "window/logMessage", "params": {"type": 1, "message": error}})
        self._stream.write(data)

    def flush(self) -> None:
        """Send what is held back."""
        self._stream.flush()

    def close(self) -> None:
        """Send nothing more."""
        self._stream.close()


def greet(stream: BinaryIO, answers: BinaryIO) -> tuple[Incoming, Outgoing]:
    """Read the first message, and answer it if it is ``initialize``."""
    data = _first(stream)
    number, params = _initialize(data.partition(b"\r\n\r\n")[2])
    if number is not None:
        answers.write(_framed({"id": number, "jsonrpc": "2.0", "result": result(params)}))
        answers.flush()
    return Incoming(stream, data), Outgoing(answers, number)


def result(params: dict[str, Any]) -> dict[str, Any]:
    """What the server can do."""
    general = params["capabilities"].get("general")
    offered = general.get("positionEncodings") if isinstance(general, dict) else None
    encoding = next((word for word in offered or () if word in ENCODINGS), "utf-16") if isinstance(offered, list | None) else "utf-16"
    return {
        "capabilities": {
            "positionEncoding": encoding,
            "textDocumentSync": {"openClose": True, "change": INCREMENTAL, "save": False},
            **({"notebookDocumentSync": NOTEBOOKS} if params["capabilities"].get("notebookDocument") is not None else {}),
            "hoverProvider": True,
            "codeActionProvider": {"codeActionKinds": list(KINDS), "resolveProvider": True},
            "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
        },
        "serverInfo": {"name": "streamlint", "version": __version__},
    }


def _first(stream: BinaryIO) -> bytes:
    """The bytes of the first message, or as many as show that it is none."""
    lines, size = [stream.readline(MOST_HEADER)], 0
    while lines[-1].strip():
        if not size and (length := _LENGTH.fullmatch(lines[-1])):
            size = int(length[1])
        lines.append(stream.readline(MOST_HEADER))
    return b"".join(lines) + (stream.read(size) if 0 < size <= MOST_MESSAGE else b"")


def _initialize(body: bytes) -> tuple[Id | None, dict[str, Any]]:
    """The number and the parameters of an ``initialize`` request; no number where the body is none."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return None, {}
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or message.get("method") != "initialize":
        return None, {}
    number, params = message.get("id"), message.get("params")
    if not isinstance(number, int | str) or isinstance(number, bool) or not isinstance(params, dict):
        return None, {}
    return (number, params) if isinstance(params.get("capabilities"), dict) else (None, {})


def _framed(message: dict[str, Any]) -> bytes:
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
