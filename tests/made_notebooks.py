"""Notebooks that tests write."""

from __future__ import annotations

import json
from typing import Any


def code(source: str | list[str]) -> dict[str, Any]:
    """A code cell."""
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}


def notebook(*cells: dict[str, Any], metadata: dict[str, Any] | None = None) -> bytes:
    """The bytes of a notebook as Jupyter writes them, with sources that are lists of lines."""
    listed = [{**cell, "source": cell["source"].splitlines(True) if isinstance(cell["source"], str) else cell["source"]} for cell in cells]
    told = {"cells": listed, "metadata": metadata or {}, "nbformat": 4, "nbformat_minor": 5}
    return (json.dumps(told, indent=1, ensure_ascii=False) + "\n").encode()


def text_of(data: bytes, cell: int) -> str:
    """The source of a cell, by its index."""
    return "".join(json.loads(data)["cells"][cell]["source"])
