"""The code cells of a notebook as one Python text, and the way back."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from streamlint.support.lines import line_starts, split_lines
from streamlint.support.notebooks.document import BOM, Code, Notebook, NotebookError, Place, read
from streamlint.support.notebooks.magics import Escapes, put_back
from streamlint.support.records import record
from streamlint.support.unified import steps

_BORDER = re.compile(r"(?m)^\f+$")


@record(frozen=True, slots=True)
class Row:
    """A row of the program: the number of its cell, its row in there, the row in the notebook's file, and its text there. All from 1."""

    cell: int
    row: int
    file_row: int
    text: str


@record(frozen=True, slots=True)
class _Program:
    notebook: Notebook
    cells: tuple[Code, ...]  # those that are read
    texts: tuple[str, ...]  # their Python
    escaped: tuple[str, ...]  # the lines for IPython
    between: str  # the line between two cells

    @property
    def text(self) -> str:
        return f"\n{self.between}\n".join(self.texts)

    def sources_in(self, text: str) -> list[str]:
        """The sources of the cells in a changed text."""
        *before, last = re.split(rf"(?m)^{self.between}\n", text)
        found = [put_back(part, self.escaped) for part in (*(part.removesuffix("\n") for part in before), last)]
        if len(found) != len(self.texts or ("",)):
            raise NotebookError("a change goes over the border of two cells")
        return found


def program_of(data: bytes) -> str:
    """The Python of a notebook's bytes; empty for a kernel of another language.

    Raises NotebookError for what is no notebook.
    """
    return _program(data).text


def foreign_language(data: bytes) -> str:
    """The language of a notebook's kernel if that is not Python, else ""."""
    notebook = read(data)
    return "" if notebook.is_python else notebook.language


def rows_of(data: bytes) -> tuple[Row, ...]:
    """Where each row of a notebook's program stands. What lies between two cells counts to the first of them."""
    program = _program(data)
    starts = line_starts(program.notebook.text)
    rows: list[Row] = []
    is_half = False
    for cell in program.cells:
        if rows:
            if is_half:
                rows.pop()
            last = rows[-1]
            rows.append(Row(last.cell, last.row + 1, last.file_row, ""))
        is_half = cell.source.endswith("\r")  # with the end of line behind it that is one
        lines = split_lines(cell.source)
        places = _file_rows(cell, starts)
        rows += [Row(cell.number, number, place, line) for number, (place, line) in enumerate(zip(places, lines, strict=True), 1)]
    return tuple(rows)


def changed_cells(data: bytes, text: str) -> list[tuple[int, str, str]]:
    """The cells of a notebook that differ in a changed program: number, source before, and source after."""
    program = _program(data)
    pairs = zip(program.cells, program.sources_in(text), strict=False)
    return [(cell.number, cell.source, source) for cell, source in pairs if source != cell.source]


def sources_of(data: bytes, text: str) -> list[str]:
    """The sources of a notebook's cells in its program, or in a changed one."""
    return _program(data).sources_in(text)


def same_cells(before: str, after: str) -> bool:
    """Whether a changed program still falls into the cells that it is made of."""
    return _BORDER.findall(before) == _BORDER.findall(after)


def rewritten(data: bytes, text: str) -> bytes:
    """The bytes of a notebook whose program is another text: those of each cell that did not change stay as they are.

    Raises NotebookError where the text cannot be divided into the cells.
    """
    program = _program(data)
    before = program.notebook.text
    made, at, sources = [], 0, program.sources_in(text)[: len(program.cells)]
    for cell, source in zip(program.cells, sources, strict=True):
        if source != cell.source:
            start, end = cell.place
            made += [before[at:start], _literal(cell, source, before)]
            at = end
    new = (BOM if data.startswith(BOM) else b"") + "".join([*made, before[at:]]).encode("utf-8")
    if [cell.source for cell in _program(new).cells] != sources:
        raise NotebookError("a change cannot be written into the cells")
    return new


def _program(data: bytes) -> _Program:
    notebook = read(data)
    escapes = Escapes()
    taken = [(cell, escapes.take(cell.source)) for cell in (notebook.cells if notebook.is_python else ())]
    cells = tuple(cell for cell, text in taken if text is not None)
    texts = tuple(text for _, text in taken if text is not None)
    used = {line for text in texts if "\f" in text for line in split_lines(text)}
    between = "\f"
    while between in used:
        between += "\f"
    return _Program(notebook, cells, texts, tuple(escapes.lines), between)


def _file_rows(cell: Code, starts: Sequence[int]) -> Iterator[int]:
    """The rows of the notebook's file at which the lines of a cell begin."""
    parts = cell.parts or ((cell.source, cell.place),)
    begins = []  # offsets in the source at which the parts begin
    length = 0
    for part, _ in parts:
        begins.append(length)
        length += len(part)
    for start in line_starts(cell.source):
        number = min(bisect_right(begins, start) - 1, len(parts) - 1)
        yield bisect_right(starts, parts[number][1][0])


# --- JSON that changes --------------------------------------------------------------------


def _literal(cell: Code, source: str, before: str) -> str:
    """The JSON of a cell's new source, in the form of the old one; of lines that stay, it is the old one's."""
    ascii_only = before.isascii()
    if cell.parts is None:
        return json.dumps(source, ensure_ascii=ascii_only)
    old, new = [part for part, _ in cell.parts], _lines(source)
    literals: list[str] = []
    for kind, first, last, start, end in steps(old, new):
        if kind == "equal":
            literals += [_at(before, place) for _, place in cell.parts[first:last]]
        else:
            literals += [json.dumps(line, ensure_ascii=ascii_only) for line in new[start:end]]
    opening, closing = _around(cell, before)
    places = [place for _, place in cell.parts]
    joint = before[places[0][1] : places[1][0]] if len(places) > 1 else "," + opening
    return f"[{opening if literals else ''}{joint.join(literals)}{closing if literals else ''}]"


def _around(cell: Code, before: str) -> tuple[str, str]:
    """The white space before the first part of a source, and behind its last one."""
    start, end = cell.place
    if not cell.parts:
        return "", ""
    return before[start + 1 : cell.parts[0][1][0]], before[cell.parts[-1][1][1] : end - 1]


def _lines(source: str) -> list[str]:
    """The lines of a source with their ends, as Jupyter lists them."""
    return re.findall(r"[^\n]*\n|[^\n]+", source)


def _at(text: str, place: Place) -> str:
    return text[place[0] : place[1]]
