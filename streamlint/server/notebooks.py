"""The notebooks that an editor has open: documents to the session, whose places are those of cells to the editor."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from lsprotocol import types

from streamlint.server import shapes
from streamlint.server.jobs import FindingRow, Range, Repair
from streamlint.server.positions import applied, width
from streamlint.support.lines import split_lines
from streamlint.support.notebooks import Row, rows_of

SYNC = types.NotebookDocumentSyncOptions(
    [types.NotebookDocumentFilterWithNotebook("jupyter-notebook", [types.NotebookCellLanguage("python")])], save=False
)


@dataclass(eq=False, slots=True)
class Cell:
    """A cell's document."""

    uri: str
    is_code: bool
    language: str = ""
    version: int = 0
    text: str = ""

    @property
    def kind(self) -> str:
        """What kind of cell a notebook of Python holds it as."""
        return "code" if self.is_code and self.language == "python" else "raw"


@dataclass(eq=False, slots=True)
class Notebook:
    """An open notebook. ``encoding`` is that of the client's characters."""

    uri: str
    path: str
    version: int
    encoding: str
    cells: list[Cell] = field(default_factory=list)
    _rows: tuple[Row, ...] | None = None

    @property
    def text(self) -> str:
        """The JSON of a file with these cells."""
        cells = [dict[str, object](cell_type=cell.kind, metadata={}, source=cell.text) for cell in self.cells]
        return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})

    def open(self, items: Iterable[types.TextDocumentItem]) -> None:
        """Cells get their texts."""
        for item in items:
            if (cell := self.cell(item.uri)) is not None:
                cell.language, cell.version, cell.text = str(item.language_id), item.version, item.text
        self._rows = None

    def change(self, event: types.NotebookDocumentCellChanges) -> list[Cell]:
        """Cells come, go and change; returns those that are gone."""
        gone: list[Cell] = []
        if event.structure is not None:
            array = event.structure.array
            end = array.start + array.delete_count
            gone = self.cells[array.start : end]
            self.cells[array.start : end] = map(_cell, array.cells or ())
            known = {cell.uri: cell for cell in gone}
            for new in self.cells:
                if (old := known.pop(new.uri, None)) is not None:  # it has moved
                    new.language, new.version, new.text = old.language, old.version, old.text
            gone = list(known.values())
            self.open(event.structure.did_open or ())
        for content in event.text_content or ():
            if (cell := self.cell(content.document.uri)) is not None:
                edits = [(shapes.place_of(change), change.text) for change in content.changes]
                cell.version, cell.text = content.document.version, applied(cell.text, edits, self.encoding)
        self._rows = None
        return gone

    def cell(self, uri: str) -> Cell | None:
        """The cell of this URI."""
        return next((cell for cell in self.cells if cell.uri == uri), None)

    def located(self, row: FindingRow) -> tuple[Cell | None, FindingRow]:
        """The cell of a finding, and the finding as it is in there; the places that led to it are those of cells, too."""
        cell, place = self._outside(row.range)
        trail = tuple((message, *self._step(path, at)) for message, path, at in row.trail)
        return cell, replace(row, range=place, trail=trail)

    def inside(self, uri: str, place: Range) -> Range | None:
        """A place of a cell as one of the program; None where the cell is no part of it."""
        number = next((number for number, cell in enumerate(self.cells, 1) if cell.uri == uri), 0)
        lines = [line for line, row in enumerate(self.rows) if row.cell == number]
        if not lines:
            return None
        first, last = (lines[min(line, len(lines) - 1)] for line in (place[0], place[2]))
        return first, place[1], last, place[3]

    def edits(self, repair: Repair) -> Iterator[tuple[Cell, Range, str]]:
        """The edits of a repair by cells."""
        for place, text in repair.edits:
            cell, there = self._outside(place)
            if cell is not None:
                yield cell, there, text

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of the program."""
        if self._rows is None:
            self._rows = rows_of(self.text.encode("utf-8", "surrogatepass"))
        return self._rows

    def _step(self, path: str, place: Range) -> tuple[str, Range]:
        if path != self.path:
            return path, place
        cell, there = self._outside(place)
        return (cell.uri, there) if cell is not None else (path, place)

    def _outside(self, place: Range) -> tuple[Cell | None, Range]:
        """A place of the program in its cell, in which it ends at the latest."""
        rows = self.rows
        if not rows:
            return None, place
        first, last = (rows[min(line, len(rows) - 1)] for line in (place[0], place[2]))
        cell = self.cells[first.cell - 1]
        begin = self._within(cell, first.row - 1, place[1])
        end = self._within(cell, last.row - 1, place[3]) if last.cell == first.cell else self._within(cell, len(rows), 0)
        return cell, (*begin, *end)

    def _within(self, cell: Cell, line: int, character: int) -> tuple[int, int]:
        lines = split_lines(cell.text)
        if line < len(lines):
            return line, character
        return len(lines) - 1, width(lines[-1], self.encoding)


class Notebooks:
    """The open notebooks, by their URIs and those of their cells."""

    def __init__(self) -> None:
        self._open: dict[str, Notebook] = {}
        self._of_cells: dict[str, Notebook] = {}

    def open(self, params: types.DidOpenNotebookDocumentParams, path: str, encoding: str) -> Notebook:
        """A notebook is opened."""
        opened = params.notebook_document
        notebook = self._open[opened.uri] = Notebook(opened.uri, path, opened.version, encoding, list(map(_cell, opened.cells)))
        notebook.open(params.cell_text_documents)
        self._of_cells.update((cell.uri, notebook) for cell in notebook.cells)
        return notebook

    def change(self, params: types.DidChangeNotebookDocumentParams) -> tuple[Notebook | None, list[Cell]]:
        """A notebook changes; returns it and the cells that are gone."""
        notebook = self._open.get(params.notebook_document.uri)
        if notebook is None:
            return None, []
        notebook.version = params.notebook_document.version
        gone = notebook.change(params.change.cells) if params.change.cells is not None else []
        for cell in gone:
            del self._of_cells[cell.uri]
        self._of_cells.update((cell.uri, notebook) for cell in notebook.cells)
        return notebook, gone

    def close(self, notebook: Notebook) -> None:
        """A notebook is closed."""
        del self._open[notebook.uri]
        for cell in notebook.cells:
            self._of_cells.pop(cell.uri, None)

    def of(self, uri: str) -> Notebook | None:
        """The notebook of this URI, or of a cell of this URI."""
        return self._open.get(uri) or self._of_cells.get(uri)


def _cell(located: types.NotebookCell) -> Cell:
    return Cell(located.document, located.kind == types.NotebookCellKind.Code)
