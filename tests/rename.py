"""Code with other names: what tests rename to show that the linter does not go by the names of variables.

``tests/conftest.py`` puts this folder on the path, so that a test anywhere below may say ``from rename import rename``.
"""

from __future__ import annotations

import ast
import builtins
import io
import itertools
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class File:
    """One file of a snippet."""

    name: str
    language: str
    text: str


@dataclass
class Names:
    """What the Python files of a section call things, and where a name is not free to change."""

    variables: set[str]
    attributes: set[str]  # of self
    fixed: set[str]
    foreign: set[str]  # attributes of objects other than self and imported modules


def collect(trees: Iterable[ast.Module]) -> Names:
    names = Names(set(), set(), {"self", "cls", "_", "__all__", *dir(builtins)}, set())
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


# Each holds a word of the engine's lists, and is another one.
MISLEADING = (
    "sentiment sometimes everywhere latest teststep contest catalog streamer upstreaming syncopate eventual deviceful Factory Maker "
    "unpinnedly pinning revalidated exportee onnxish weighty steeplechase thresher oversample infernal profiled agile recorder"
).split()


def misled(files: Iterable[File]) -> list[File]:
    """The files as `rename` leaves them, with misleading names in place of ``v0``, ``a0`` and so on."""
    renamed = rename(files)
    found = sorted({name for file in renamed if file.language == "python" for name in re.findall(r"\b[va]\d+\b", file.text)})
    rounds = itertools.count()
    new = {name: f"{word}{n // len(MISLEADING) or ''}" for name, word, n in zip(found, itertools.cycle(MISLEADING), rounds, strict=False)}
    return [File(f.name, f.language, re.sub(r"\b[va]\d+\b", lambda m: new[m[0]], f.text)) if f.language == "python" else f for f in renamed]
