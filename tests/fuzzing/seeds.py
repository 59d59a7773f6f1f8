"""Real text to begin with: the rules' documents and the examples."""

from __future__ import annotations

import functools
from pathlib import Path

from documents import DOCUMENTS, SUFFIXES, read
from rename import File

EXAMPLES = Path(__file__).parents[2] / "examples"
LANGUAGES = {suffix: language for language, suffix in SUFFIXES.items()} | {".cuh": "cuda", ".cpp": "cuda", ".cc": "cuda", ".h": "cuda"}


@functools.cache
def programs() -> list[tuple[File, ...]]:
    """The code of each section and of each example."""
    found = [tuple(f for f in section.files if f.language in SUFFIXES) for document in DOCUMENTS for section in read(document)]
    examples = sorted(path for path in EXAMPLES.iterdir() if path.suffix in LANGUAGES)
    return [files for files in found if files] + [(file_of(path),) for path in examples]


def file_of(path: Path) -> File:
    return File(path.name, LANGUAGES[path.suffix], path.read_text(encoding="utf-8", errors="surrogateescape"))
