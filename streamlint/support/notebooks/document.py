"""A notebook's JSON, with the places at which the sources of its code cells stand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from streamlint import TYPE_CHECKING
from streamlint.support.records import record

if TYPE_CHECKING:
    from typing import Any

BOM = b"\xef\xbb\xbf"
FORMAT = 4  # of nbformat
_KERNELS = ("python", "ipython")
Place = tuple[int, int]  # offsets of a value's first character and behind its last one

_TEXT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]')
_PLAIN = re.compile(r"[^,\]}\s]+")
_BLANK = re.compile(r"[ \t\r\n]*")
_HALF = re.compile("[\ud800-\udfff]")


class NotebookError(ValueError):
    """A file that is no notebook, or cannot be written back; the message is the reason."""


@record(frozen=True, slots=True)
class Code:
    """A code cell: its number among all cells (from 1), its source, and where that stands in the JSON.

    ``parts`` are the texts that the source is a list of, each with its place; None where it is one text.
    """

    number: int
    source: str
    place: Place
    parts: tuple[tuple[str, Place], ...] | None


@record(frozen=True, slots=True)
class Notebook:
    """The JSON of a notebook, the language of its kernel, and its code cells in order."""

    text: str
    language: str
    cells: tuple[Code, ...]

    @property
    def is_python(self) -> bool:
        """Whether the kernel runs Python."""
        return self.language.lower().startswith(_KERNELS)


def read(data: bytes) -> Notebook:
    """The notebook of a file's bytes.

    Raises NotebookError for what is no notebook of nbformat 4.
    """
    try:
        text = data.removeprefix(BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotebookError(f"not UTF-8: {error.reason} at byte {error.start}") from None
    if not text.strip():
        raise NotebookError("no notebook: the file is empty")
    try:
        loaded: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise NotebookError(f"no notebook: not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise NotebookError("no notebook: its JSON is nested too deeply") from None
    except ValueError as error:  # a number of more digits than Python reads
        raise NotebookError(f"no notebook: not JSON: {error}") from None
    return Notebook(text, _language(loaded), tuple(_code(text, _cells(loaded))))


def _cells(loaded: Any) -> list[Any]:
    """The cells, as they were parsed."""
    if not isinstance(loaded, dict):
        raise NotebookError("no notebook: its JSON is no object")
    version = loaded.get("nbformat")
    if version != FORMAT or isinstance(version, bool):
        known = f"a notebook of nbformat {version}" if isinstance(version, int) else "no notebook: it names no nbformat"
        raise NotebookError(f"{known}; only nbformat {FORMAT} is read, which `jupyter nbconvert --to notebook` writes")
    cells = loaded.get("cells")
    if not isinstance(cells, list):
        raise NotebookError("no notebook: it has no list of cells")
    return cells


def _language(loaded: Any) -> str:
    """The language of the kernel; Python where nobody says."""
    metadata = loaded.get("metadata") if isinstance(loaded, dict) else None
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        table = metadata.get(key) if isinstance(metadata, dict) else None
        if isinstance(table, dict) and isinstance(table.get(name), str):
            return str(table[name])
    return "python"


def _code(text: str, cells: list[Any]) -> Iterator[Code]:
    places = dict(members(text, blank(text, 0)))
    for number, (cell, (start, _)) in enumerate(zip(cells, items(text, places["cells"][0]), strict=True), 1):
        if not isinstance(cell, dict):
            raise NotebookError(f"no notebook: cell {number} is no object")
        if cell.get("cell_type") != "code" or not _is_python(cell.get("metadata")):
            continue
        source = cell.get("source")
        parts: list[Any] = source if isinstance(source, list) else [source]
        if not all(isinstance(part, str) for part in parts):
            raise NotebookError(f"no notebook: the source of cell {number} is neither text nor a list of texts")
        whole = "".join(parts)
        if _HALF.search(whole) or "\0" in whole:
            raise NotebookError(f"cell {number} holds {'null bytes' if chr(0) in whole else 'half of a surrogate pair'}")
        at = dict(members(text, start))["source"]
        yield Code(number, whole, at, tuple(zip(parts, items(text, at[0]), strict=True)) if isinstance(source, list) else None)


def _is_python(metadata: object) -> bool:
    """Whether the editor does not say that a cell is in another language than the kernel's."""
    said = metadata.get("vscode") if isinstance(metadata, dict) else None
    return not isinstance(said, dict) or said.get("languageId", "python") == "python"


# --- places in JSON that was parsed before ------------------------------------------------


def members(text: str, at: int) -> Iterator[tuple[str, Place]]:
    """The keys of the object at an offset, with the places of their values."""
    at = blank(text, at + 1)
    while text[at] != "}":
        end = _end(text, at)
        key = json.loads(text[at:end])
        start = blank(text, blank(text, end) + 1)
        end = _end(text, start)
        yield key, (start, end)
        at = _following(text, end)


def items(text: str, at: int) -> Iterator[Place]:
    """The places of the values in the list at an offset."""
    at = blank(text, at + 1)
    while text[at] != "]":
        end = _end(text, at)
        yield at, end
        at = _following(text, end)


def blank(text: str, at: int) -> int:
    """The offset behind white space."""
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _following(text: str, end: int) -> int:
    """Where the next value, or what closes the list, begins behind a value."""
    at = blank(text, end)
    return blank(text, at + 1) if text[at] == "," else at


def _end(text: str, at: int) -> int:
    if text[at] in "[{":
        depth = 0
        for token in _TOKEN.finditer(text, at):
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
            if not depth:
                return token.end()
    found = (_TEXT if text[at] == '"' else _PLAIN).match(text, at)
    return found.end() if found else len(text)
