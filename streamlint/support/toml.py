"""TOML, for whoever reads it: configurations, model files, and the heads of these.

Our own model files are read twenty times as fast as all of TOML (`read_rows`), without the parser, which takes longer to import than some
runs: a line is a table's head, or a key with a value that JSON writes alike; a list may go over several lines.
"""

from __future__ import annotations

import re
import sys

from streamlint import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


class TomlError(ValueError):
    """A text that is no TOML; the message says where."""


def parse(text: str) -> dict[str, Any]:
    """The document that a text of TOML holds.

    Raises TomlError.
    """
    if sys.version_info >= (3, 11):
        import tomllib  # start-up: a run without configuration, whose rows are kept
    else:
        import tomli as tomllib  # start-up: the same
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TomlError(str(error)) from None
    except RecursionError:
        raise TomlError("nested too deeply") from None


def read(text: str) -> dict[str, Any]:
    """The document that a model file holds, by the quick reader where it is written as ours are.

    Raises TomlError.
    """
    return rows if (rows := read_rows(text)) is not None else parse(text)


def head_of(text: str) -> dict[str, Any]:
    """The strings, and lists of strings, before the first table of a model file. Every run reads them, so neither parser is imported."""
    return {key: _strings(value) if value[0] == "[" else _strings(value)[0] for key, value in _PAIR.findall(text.partition("\n[")[0])}


def _strings(text: str) -> list[str]:
    return [plain or re.sub(r"\\(.)", r"\1", quoted) for quoted, plain in _STRING.findall(text)]


_TEXT = r'"(?:[^"\\]|\\.)*"|\'[^\']*\''
_PAIR = re.compile(rf"^(\w+) = ((?:{_TEXT})|\[(?:{_TEXT}|[^\]\"'])*\])", re.MULTILINE)
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"|\'([^\']*)\'')
_LINE = re.compile(r"([a-z_]+) = (.+)")
_ENDS = re.compile(r"\s*(?:#.*)?")
_LAST_COMMA = re.compile(r",\s*\]\s*$")


def read_rows(text: str) -> dict[str, Any] | None:
    """The tables of a file; None where a line is not written as ours are."""
    from json import JSONDecoder  # start-up: a run without a file of CUDA reads no rows

    value_at = JSONDecoder().raw_decode
    data: dict[str, Any] = {}
    table = data
    lines = iter(text.split("\n"))
    for line in lines:
        if not line or line[0] == "#":
            continue
        if line.startswith("[["):
            table = {}
            data.setdefault(line[2:-2], []).append(table)
            if not line.endswith("]]") or not line[2:-2].isidentifier():
                return None
            continue
        found = _LINE.fullmatch(line)
        if found is None or found[1] in table:
            return None
        said = found[2]
        if said == "[":
            said += " ".join(iter(lambda: next(lines, "]"), "]")) + "]"
        if said[0] == "[":
            said = _LAST_COMMA.sub("]", said)
        try:
            table[found[1]], end = value_at(said)
        except (ValueError, RecursionError):
            return None
        if not _ENDS.fullmatch(said, end):
            return None
    return data
