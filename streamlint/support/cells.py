"""Places in notebooks as people and machines name them: the number of the cell, and the row in there."""

from __future__ import annotations

from collections.abc import Mapping

from streamlint import TYPE_CHECKING
from streamlint.support.lazy import lazy
from streamlint.support.lines import split_lines
from streamlint.support.reading import Unreadable, is_notebook, read_source

if TYPE_CHECKING:
    from streamlint.support import notebooks
    from streamlint.support.notebooks import Row
else:
    (notebooks,) = lazy("streamlint.support", "notebooks")


class Cells:
    """Where the rows of notebooks stand. A notebook is read when somebody asks for one of them; ``given`` are those that are no files."""

    def __init__(self, given: Mapping[str, bytes] | None = None) -> None:
        self._given = given or {}
        self._rows: dict[str, tuple[Row, ...]] = {}

    def row(self, file: str, row: int) -> Row | None:
        """Where a row of a notebook's program stands; None for other files, and for what is no notebook."""
        rows = self._rows_of(file)
        return rows[min(row, len(rows)) - 1] if rows else None

    def at(self, file: str, row: int) -> tuple[int | None, int]:
        """The cell of a row and the row in there; None outside of notebooks."""
        found = self.row(file, row)
        return (found.cell, found.row) if found is not None else (None, row)

    def place(self, file: str, row: int, column: int) -> str:
        """``row:column``, in a notebook ``cell number:row:column``."""
        cell, row = self.at(file, row)
        return f"{row}:{column}" if cell is None else f"cell {cell}:{row}:{column}"

    def line(self, file: str, row: int) -> str:
        """The row alone, in a notebook ``cell number:row``."""
        cell, row = self.at(file, row)
        return str(row) if cell is None else f"cell {cell}:{row}"

    def lines(self, file: str, text: str) -> list[str]:
        """The lines of a text as they stand in the file."""
        rows = self._rows_of(file)
        return [row.text for row in rows] if rows else split_lines(text)

    def file_row(self, file: str, cell: int | None, row: int) -> int:
        """The row in the file itself, of a row in a cell; as it is outside of notebooks."""
        if cell is None:
            return row
        return next((one.file_row for one in self._rows_of(file) if (one.cell, one.row) == (cell, row)), 1)

    def program_row(self, file: str, cell: int, row: int) -> int | None:
        """The row of a notebook's program that stands in a row of a cell; None where there is none."""
        return next((number for number, one in enumerate(self._rows_of(file), 1) if (one.cell, one.row) == (cell, row)), None)

    def _rows_of(self, file: str) -> tuple[Row, ...]:
        if not is_notebook(file):
            return ()
        if file not in self._rows:
            try:
                self._rows[file] = notebooks.rows_of(self._given[file] if file in self._given else read_source(file))
            except (Unreadable, notebooks.NotebookError):
                self._rows[file] = ()
        return self._rows[file]
