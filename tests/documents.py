"""The rules' documents, read: ``tests/rules/*.md``. How they are written stands in ``tests/rules/test_documents.py``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from rename import File

from streamlint.checks.base import registry
from streamlint.config.options import Options

ON = frozenset(code for code, check in registry().items() if check.default == "on")
DOCUMENTS = sorted((Path(__file__).parent / "rules").glob("*.md"))
SUFFIXES = {"python": ".py", "cuda": ".cu", "cython": ".pyx"}

_SECTION = re.compile(r"^## (?P<title>.+)$", re.MULTILINE)
_FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_FENCE_LINE = re.compile(r"^```(?P<rest>.*)$", re.MULTILINE)
_FILE = re.compile(r"\A(?:#|//) file: (?P<name>\S+)[ \t]*\n")
_WORDS = r"error|trail|orders|without-orders|MISSING|SPURIOUS"
_COMMENT = re.compile(rf"[ \t]*(?:#|//) (?=(?:{_WORDS})(?::|[ \t]*(?:$|#|//)))")
_MARK = re.compile(rf"(?:#|//) (?P<word>{_WORDS})(?P<rest>(?:(?!(?:#|//) (?:{_WORDS})\b).)*)")
_CODES = re.compile(r"^:\s*\[(?P<codes>SL\d{3}(?:\s*,\s*SL\d{3})*)\]\s*(?:\"(?P<text>[^\"]*)\")?\s*$")


@dataclass(frozen=True)
class Mark:
    """One mark on one line; ``code`` is empty for ``trail`` and ``orders``."""

    word: str
    file: str
    row: int
    code: str = ""
    text: str = ""


@dataclass(frozen=True)
class Section:
    document: str
    title: str
    files: tuple[File, ...]
    marks: tuple[Mark, ...]

    @property
    def id(self) -> str:
        return f"{self.document}: {self.title}"

    def marked(self, *words: str) -> list[Mark]:
        return [mark for mark in self.marks if mark.word in words]


def read(document: Path) -> Iterator[Section]:
    """The sections of a document that hold code."""
    text = document.read_text(encoding="utf-8")
    heads = list(_SECTION.finditer(text))
    for head, end in zip(heads, [*(head.start() for head in heads[1:]), len(text)], strict=True):
        refuse_unclosed(document, text, head.end(), end)
        files: list[File] = []
        marks: list[Mark] = []
        for fence in _FENCE.finditer(text, head.end(), end):
            language, body = fence["language"], fence["body"]
            named = _FILE.match(body)
            name = named["name"] if named else f"snippet{SUFFIXES[language]}"
            lines, found = strip(body, name)
            files.append(File(name, language, "\n".join(lines)))
            marks += found
        if files:
            yield Section(document.stem, head["title"].strip(), tuple(files), tuple(marks))


def refuse_unclosed(document: Path, text: str, start: int, end: int) -> None:
    """A fence that the section does not close would hide its file, and the marks in it."""
    lines = list(_FENCE_LINE.finditer(text, start, end))
    for opening, closing in zip_longest(lines[::2], lines[1::2]):
        row = text.count("\n", 0, opening.start()) + 1
        if not re.fullmatch(r"\w+", opening["rest"]):
            raise ValueError(f"{document}:{row}: a fence opens with its language alone, not with {opening.group()!r}")
        if closing is None or closing["rest"]:
            raise ValueError(f"{document}:{row}: the fence is not closed in its section")


def strip(body: str, name: str) -> tuple[list[str], list[Mark]]:
    """The lines of a block without marks, and the marks."""
    lines: list[str] = []
    marks: list[Mark] = []
    for row, line in enumerate(body.split("\n"), 1):
        comment = _COMMENT.search(line)
        if comment is None:
            lines.append(line)
            continue
        lines.append(line[: comment.start()])
        marks += parse(line[comment.start() :], name, row)
    return lines, marks


def parse(comment: str, name: str, row: int) -> Iterator[Mark]:
    for mark in _MARK.finditer(comment):
        word, rest = mark["word"], mark["rest"].strip()
        if word == "orders" and not rest:
            yield Mark(word, name, row)
        elif word == "trail" and rest.startswith(":"):
            yield Mark(word, name, row, text=rest[1:].strip())
        elif word not in {"orders", "trail"} and (codes := _CODES.match(rest)):
            for code in re.split(r"\s*,\s*", codes["codes"]):
                yield Mark(word, name, row, code, codes["text"] or "")
        else:
            raise ValueError(f"{name}:{row}: cannot read the mark {mark.group()!r}")


def options_of(document: str) -> Options:
    """The rules that are on, and the document's own; one on all loops, or on what is possible, asks for them."""
    loops = "all-loops" if document.endswith("all_loops") else "hot-loops"
    own = {document.upper()[:5]} & set(registry())
    evidence = "possible" if document.endswith("possible") else "shown"
    return Options(codes=ON | own, hidden_sync=loops, evidence=evidence)
