"""Code that the tests lint as a whole: examples, the blocks of the rules' documents, and the templates' snippets; with its findings."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

from thorough import count

from streamlint.checks.base import registry
from streamlint.config.options import Options, Source
from streamlint.findings import Finding
from streamlint.runner.engine import analyse
from streamlint.verify.cases import SNIPPETS
from streamlint_docs.programs import blocks

ROOT = Path(__file__).parents[1]
CODES = frozenset(registry())
SUFFIXES = {"python": ".py", "cuda": ".cu"}
LANGUAGES = {".py": "python", ".cu": "cuda"}


def programs() -> Iterator[Source]:
    """The examples and the templates' snippets, each alone."""
    for folder in (ROOT / "examples", ROOT / "examples" / "repaired", SNIPPETS):
        for path in sorted(folder.iterdir()):
            if path.suffix in LANGUAGES:
                yield Source(path.name, path.read_text(encoding="utf-8"), LANGUAGES[path.suffix])


def snippets() -> Iterator[Source]:
    """These, and the blocks of the rules' documents."""
    yield from programs()
    for document in sorted((ROOT / "tests" / "rules").glob("*.md")):
        for number, (language, body) in enumerate(blocks(document.read_text(encoding="utf-8"))):
            yield Source(f"{document.stem}-{number}{SUFFIXES[language]}", body, language)


@functools.cache
def real_findings() -> tuple[Finding, ...]:
    """What all rules together find in the programs and in some blocks. Those of each section, by the rules that are on and its
    document's own, are looked at where the documents are read."""
    some = [*programs(), *list(snippets())[:: count(few=10, many=1)]]
    return tuple(found for source in some for found in analyse([source], Options(codes=CODES)).findings)
