"""Jupyter notebooks as programs: the text of their code cells in, the places and the bytes of the notebook out.

The code cells are joined to one Python text. Between two cells stands a line of form feeds, which says nothing in Python and outlives each
edit, so a changed text still falls into its cells. Lines for IPython become ``pass`` and come back the same way (`magics`).
"""

from streamlint.support.notebooks.document import NotebookError
from streamlint.support.notebooks.program import (
    Row,
    changed_cells,
    foreign_language,
    program_of,
    rewritten,
    rows_of,
    same_cells,
    sources_of,
)

__all__ = ["NotebookError", "Row", "changed_cells", "foreign_language", "program_of", "rewritten", "rows_of", "same_cells", "sources_of"]
