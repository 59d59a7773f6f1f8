"""The documents of the intermediate representation, read: ``tests/ir/*.md``. A section is a source and what is printed of it.

``python tests/ir/ir_documents.py`` prints all expectations anew; each change is to be read before it is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from streamlint.frontends import cuda, cython, python
from streamlint.ir import Code, ModuleIR
from streamlint.ir import opcodes as op
from streamlint.ir.modules import lower
from streamlint.ir.printer import print_code

DOCUMENTS = sorted(Path(__file__).parent.glob("*.md"))
FRONT_ENDS = {"python": python.lower, "cython": cython.lower, "cuda": cuda.lower}
_SECTION = re.compile(
    r"^## (?P<title>.+)\n(?P<prose>(?:(?!## |```).*\n)*)```(?P<language>\w+)\n(?P<source>(?:(?!```).*\n)*)```\n"
    r"(?:\n```ir(?P<rows> rows)?\n(?P<printed>(?:(?!```).*\n)*)```\n)?",
    re.MULTILINE,
)
_SINCE = re.compile(r"Python 3\.(\d+)")
_DEFINING = frozenset({op.FUNCTION, op.CLASS, op.SET_NAME, op.RETURN})


class Section(NamedTuple):
    """One source and its expectation."""

    document: str
    title: str
    since: tuple[int, int]  # the first Python that takes it
    language: str
    source: str
    rows: bool
    expected: str

    def printed(self) -> str:
        """What is printed of the source now; a module's body that only defines is left out."""
        module = lower(FRONT_ENDS[self.language]("test", self.source))
        shown = [print_code(module, code, self.rows) for code in module.codes() if not _only_defines(module, code)]
        return "\n\n".join(shown) + "\n"


def _only_defines(module: ModuleIR, code: Code) -> bool:
    return code.kind == "module" and len(module) > 1 and all(one[0] in _DEFINING for one in code.instructions())


def read(document: Path) -> Iterator[Section]:
    """The sections of a document."""
    for found in _SECTION.finditer(document.read_text(encoding="utf-8")):
        yield _section(document.stem, found)


def _section(document: str, found: re.Match[str]) -> Section:
    since = _SINCE.match(found["prose"].strip())
    version = (3, int(since[1])) if since else (3, 10)
    return Section(document, found["title"], version, found["language"], found["source"], bool(found["rows"]), found["printed"] or "")


def _anew(found: re.Match[str]) -> str:
    section = _section("", found)
    source = f"## {found['title']}\n{found['prose']}```{found['language']}\n{found['source']}```\n"
    return f"{source}\n```ir{found['rows'] or ''}\n{section.printed()}```\n"


if __name__ == "__main__":
    for path in DOCUMENTS:
        path.write_text(_SECTION.sub(_anew, path.read_text(encoding="utf-8")), encoding="utf-8")
