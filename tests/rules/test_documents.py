"""The rules' documents: code with the expected findings on its lines.

A document is a Markdown file beside this one. Each ``## section`` holds one or more fenced blocks (``python``, ``cuda``, or any
other language for a file that is only written to disk, such as a CMakeLists.txt). A block may name its file in a first comment:
``# file: name.py``. Marks, in a comment at the end of a line (``//`` in C++); several marks may follow each other:

    # error: [SL001]            this line has exactly these findings
    # error: [SL001] "text"     … and the message contains the text
    # trail: text               some finding's trail has a step on this line that contains the text (which may be empty)
    # orders                    the one operation that makes the section right: a second test deletes this line
    # without-orders: [SL005]   … and then expects this finding as well
    # MISSING: [SL001]          a known limit: should be found, is not
    # SPURIOUS: [SL001]         a known limit: is found, should not be
"""

from __future__ import annotations

import ast
import builtins
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from streamlint.engine import Options, Source, analyse
from streamlint.findings import Finding, Report

CODES = frozenset({"SL001", "SL002", "SL003", "SL004", "SL005"})
DOCUMENTS = sorted(Path(__file__).parent.glob("*.md"))
SUFFIXES = {"python": ".py", "cuda": ".cu"}

_SECTION = re.compile(r"^## (?P<title>.+)$", re.MULTILINE)
_FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"\A(?:#|//) file: (?P<name>\S+)[ \t]*\n")
_WORDS = r"error|trail|orders|without-orders|MISSING|SPURIOUS"
_COMMENT = re.compile(rf"[ \t]*(?:#|//) (?=(?:{_WORDS})(?::|[ \t]*(?:$|#|//)))")
_MARK = re.compile(rf"(?:#|//) (?P<word>{_WORDS})(?P<rest>(?:(?!(?:#|//) (?:{_WORDS})\b).)*)")
_CODES = re.compile(r"^:\s*\[(?P<codes>SL\d{3}(?:\s*,\s*SL\d{3})*)\]\s*(?:\"(?P<text>[^\"]*)\")?\s*$")

Place = tuple[str, int, str]  # file, row, code


@dataclass(frozen=True)
class Mark:
    """One mark on one line; ``code`` is empty for ``trail`` and ``orders``."""

    word: str
    file: str
    row: int
    code: str = ""
    text: str = ""


@dataclass(frozen=True)
class File:
    name: str
    language: str
    text: str  # without marks, row for row


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


SECTIONS = [section for document in DOCUMENTS for section in read(document)]


def lint(folder: Path, files: Iterable[File]) -> Report:
    """Write the files and lint those that are code."""
    sources = []
    for file in files:
        path = folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8")
        if file.language in SUFFIXES:
            sources.append(Source(str(path), file.text, file.language))
    return analyse(sources, Options(codes=CODES))


def places(folder: Path, findings: Iterable[Finding]) -> set[Place]:
    return {(Path(found.span.file).relative_to(folder).as_posix(), found.span.row, found.code) for found in findings}


def expected(marks: Iterable[Mark]) -> set[Place]:
    return {(mark.file, mark.row, mark.code) for mark in marks}


def twice(findings: Iterable[Finding]) -> list[tuple[str, int, int, str]]:
    """Findings that are reported more than once."""
    return [place for place, count in Counter(found.sort_key() for found in findings).items() if count > 1]


def differences(section: Section, files: Iterable[File], found: set[Place], wanted: set[Place]) -> str:
    """What is wrong, line by line; empty where all is right."""
    texts = {file.name: file.text.split("\n") for file in files}
    spurious = expected(section.marked("SPURIOUS"))
    limits = expected(section.marked("MISSING"))
    report = []
    for title, places_of in (("not found", wanted - found), ("unexpected", found - wanted)):
        for file, row, code in sorted(places_of):
            note = ""
            if title == "not found" and (file, row, code) in spurious:
                note = " (a known limit is mended: remove SPURIOUS)"
            if title == "unexpected" and (file, row, code) in limits:
                note = " (a known limit is mended: write error instead of MISSING)"
            report.append(f"{title}: {file}:{row} {code}{note}\n    {texts[file][row - 1].strip()}")
    return "\n".join(report)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder whose name says nothing of tests, which rules may treat with indulgence."""
    return tmp_path_factory.mktemp("project").resolve()


def ids(sections: Iterable[Section]) -> list[str]:
    return [section.id for section in sections]


@pytest.mark.parametrize("section", SECTIONS, ids=ids(SECTIONS))
def test_document(section: Section, folder: Path) -> None:
    report = lint(folder, section.files)
    assert not report.problems
    assert not twice(report.findings)
    wrong = differences(section, section.files, places(folder, report.findings), expected(section.marked("error", "SPURIOUS")))
    assert not wrong, f"{section.id}\n{wrong}"
    for mark in section.marked("error"):
        messages = [f.message for f in report.findings if f.span.row == mark.row and f.code == mark.code]
        assert any(mark.text in message for message in messages), f"line {mark.row}: {mark.text!r} is in none of {messages}"
    steps = [step for found in report.findings for step in found.trail]
    for mark in section.marked("trail"):
        here = [s.message for s in steps if s.span.row == mark.row and Path(s.span.file).name == Path(mark.file).name]
        assert any(mark.text in message for message in here), f"line {mark.row}: no trail step says {mark.text!r}, only {here}"


PYTHON = [section for section in SECTIONS if any(file.language == "python" for file in section.files)]


@pytest.mark.parametrize("section", PYTHON, ids=ids(PYTHON))
def test_names_mean_nothing(section: Section, folder: Path) -> None:
    """A rule that went by the names of variables would change its mind."""
    files = rename(section.files)
    report = lint(folder, files)
    wrong = differences(section, files, places(folder, report.findings), expected(section.marked("error", "SPURIOUS")))
    assert not wrong, f"{section.id}\n{wrong}"


ORDERED = [section for section in SECTIONS if section.marked("orders")]


@pytest.mark.parametrize("section", ORDERED, ids=ids(ORDERED))
def test_without_order(section: Section, folder: Path) -> None:
    """Deleting the one operation that orders a good section makes it bad."""
    gone = {(mark.file, mark.row) for mark in section.marked("orders")}
    files = [
        File(f.name, f.language, "\n".join("" if (f.name, row) in gone else line for row, line in enumerate(f.text.split("\n"), 1)))
        for f in section.files
    ]
    report = lint(folder, files)
    wanted = expected(section.marked("error", "SPURIOUS", "without-orders"))
    wrong = differences(section, files, places(folder, report.findings), wanted)
    assert not wrong, f"{section.id}\n{wrong}"


def test_ids_are_unique() -> None:
    assert not [name for name, count in Counter(ids(SECTIONS)).items() if count > 1]


def test_orders_come_in_pairs() -> None:
    wrong = [s.id for s in SECTIONS if bool(s.marked("orders")) != bool(s.marked("without-orders"))]
    assert not wrong


@pytest.mark.parametrize("section", PYTHON, ids=ids(PYTHON))
def test_snippets_parse(section: Section) -> None:
    """As they stand, renamed, and without the line that orders."""
    gone = {(mark.file, mark.row) for mark in section.marked("orders")}
    for before, after in zip(section.files, rename(section.files), strict=True):
        if before.language == "python":
            ast.parse(before.text)
            assert len(before.text.split("\n")) == len(after.text.split("\n"))
            lines = after.text.split("\n")
            ast.parse("\n".join(lines))
            ast.parse("\n".join("" if (before.name, row) in gone else line for row, line in enumerate(lines, 1)))


# Renaming ---------------------------------------------------------------------------------------------------------------------


@dataclass
class Names:
    """What the Python files of a section call things, and where a name is not free to change."""

    variables: set[str]
    attributes: set[str]  # of self
    fixed: set[str]
    foreign: set[str]  # attributes of objects other than self and imported modules


def collect(trees: Iterable[ast.Module]) -> Names:
    names = Names(set(), set(), {"self", "cls", "_", *dir(builtins)}, set())
    modules: set[str] = set()
    outside: list[tuple[str, str]] = []
    parameters: set[str] = set()
    keywords: set[str] = set()
    for tree in trees:
        for node in ast.walk(tree):
            match node:
                case ast.Import() | ast.ImportFrom():
                    modules |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    names.fixed.add(node.name)
                case ast.ClassDef():
                    names.fixed.add(node.name)
                    names.fixed |= {name for field in node.body for name in fields(field)}
                case ast.arg():
                    parameters.add(node.arg)
                case ast.keyword(arg=str(keyword)):
                    keywords.add(keyword)
                case ast.Name(ctx=ast.Store()):
                    names.variables.add(node.id)
                case ast.ExceptHandler(name=str(name)):
                    names.variables.add(name)
                case ast.Attribute(value=ast.Name(id="self")):
                    if isinstance(node.ctx, ast.Store):
                        names.attributes.add(node.attr)
                case ast.Attribute():
                    outside.append((root(node), node.attr))
    names.foreign |= {attribute for name, attribute in outside if name not in modules}
    names.variables |= parameters
    names.fixed |= modules | (parameters & keywords)
    return names


def fields(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement of a class body assigns."""
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def root(node: ast.expr) -> str:
    """The name that a chain of attributes starts with."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def rename(files: Iterable[File]) -> list[File]:
    """The files with variables, parameters and attributes of self called v0, v1, …; rows stay."""
    files = list(files)
    python = [file for file in files if file.language == "python"]
    names = collect([ast.parse(file.text) for file in python])
    free = names.variables - names.fixed
    if len(python) > 1:
        free -= names.foreign
    new = {name: f"v{i}" for i, name in enumerate(sorted(free))}
    of_self = {name: f"a{i}" for i, name in enumerate(sorted(names.attributes - names.fixed - names.foreign))}
    return [File(f.name, f.language, renamed(f.text, new, of_self)) if f.language == "python" else f for f in files]


def renamed(text: str, new: dict[str, str], of_self: dict[str, str]) -> str:
    arguments = {(n.lineno, n.col_offset) for n in ast.walk(ast.parse(text)) if isinstance(n, ast.keyword) and n.arg}
    lines = text.split("\n")
    before: list[str] = ["", ""]
    edits: list[tuple[int, int, int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        (row, column), word = token.start, token.string
        replacement = None
        if token.type == tokenize.NAME and before[-1] == ".":
            replacement = of_self.get(word) if before[-2] == "self" else None
        elif token.type == tokenize.NAME and (row, column) not in arguments:
            replacement = new.get(word)
        elif token.type == tokenize.STRING and "f" in word[: re.search(r"['\"]", word).start()].lower():  # type: ignore[union-attr]
            replacement = in_fields(word, new, of_self)
        if replacement is not None and token.end[0] == row:
            edits.append((row, column, token.end[1], replacement))
        if token.type not in {tokenize.NL, tokenize.COMMENT}:
            before = [before[-1], word]
    for row, start, end, replacement in reversed(edits):
        lines[row - 1] = lines[row - 1][:start] + replacement + lines[row - 1][end:]
    return "\n".join(lines)


def in_fields(literal: str, new: dict[str, str], of_self: dict[str, str]) -> str:
    """Before Python 3.12 an f-string is one token: rename inside its braces."""

    def word(match: re.Match[str]) -> str:
        if match["attribute"]:
            return "self." + of_self.get(match["attribute"], match["attribute"])
        return new.get(match.group(), match.group())

    def field(match: re.Match[str]) -> str:
        expression, colon, form = match[1].partition(":")
        expression = re.sub(r"\bself\.(?P<attribute>\w+)|(?<![\w.'\"])[A-Za-z_]\w*(?![\w'\"])", word, expression)
        return "{" + expression + colon + form + "}"

    return re.sub(r"\{([^{}]*)\}", field, literal)
