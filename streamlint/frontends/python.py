"""The Python front end: Python's own parser reads a file, `python_statements` lowers its tree to `streamlint.program`.

Before 3.12 Python does not know where the parts of f-strings stand; `python_formatted` finds them. What is newer than the running Python
is rewritten for it (`python_newer`).
"""

from __future__ import annotations

import re
import sys
import unicodedata
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamlint.frontends import UnreadableSource
from streamlint.frontends.declarations import attach
from streamlint.frontends.python_comments import comments_of
from streamlint.frontends.python_formatted import place
from streamlint.frontends.python_newer import in_older_grammar
from streamlint.frontends.python_statements import lower_module
from streamlint.program import Module
from streamlint.support.lines import line_starts, place_at
from streamlint.support.recursion import deeper

if TYPE_CHECKING:
    import ast

FRAMES = 4000  # room for some 900 chained calls, and little enough to fit small stacks
ONLY_PARSE = 0x400  # ast.PyCF_ONLY_AST, without the import
PLACES_F_STRINGS = sys.version_info >= (3, 12)

_FORMATTED = re.compile(r"\b(?:[fF][rR]?|[rR][fF])['\"]")
_FOREIGN = re.compile(r"\w?(?:[^\x00-\x7f\W]|[\u0300-\u036f])+")


def lower(path: str, text: str) -> Module:
    """Parse and lower one file. Raises `UnreadableSource` for what is not Python, or is nested too deeply."""
    _refuse_null_bytes(text)
    try:
        with deeper(FRAMES):
            read, tree = _read(text)
            if not PLACES_F_STRINGS and _FORMATTED.search(read) is not None:
                place(tree, read)
            module = lower_module(path, text, read, tree)
    except RecursionError:
        raise UnreadableSource(1, 1, "left out: code is nested too deeply") from None
    if "streamlint:" in text:
        attach(module, comments_of(text))
    return module


def tree_of(text: str) -> ast.Module | None:
    """Python's own tree of a file; None where it has none, or with other names than are written."""
    try:
        tree = parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return None if _spells_names_anew(text, tree) else tree


def _read(text: str) -> tuple[str, ast.Module]:
    """A text as this Python reads it, in the same rows and columns, and its tree."""
    if text.startswith("\ufeff"):
        text = "\f" + text[1:]  # a byte order mark, which is no code; a form feed is as wide
    try:
        return text, parse(text)
    except SyntaxError as error:
        refused = error
    except UnicodeEncodeError as error:
        raise UnreadableSource(*place_at(line_starts(text), error.start), "text is not valid Unicode") from None
    older = in_older_grammar(text)
    try:
        return older, parse(older)
    except SyntaxError:
        raise UnreadableSource(refused.lineno or 1, max(refused.offset or 1, 1), f"syntax error: {refused.msg}") from None


def parse(text: str) -> ast.Module:
    """Python's own tree of a text. Raises RecursionError for what is nested too deeply, and what else `compile` raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree: ast.Module = compile(text, "<source>", "exec", flags=ONLY_PARSE, dont_inherit=True)
        except MemoryError:  # what the parser raises when its own stack is full
            raise RecursionError from None
    return tree


def _spells_names_anew(text: str, tree: ast.Module) -> bool:
    """Whether Python read a name as another one than is written (``µ`` as ``μ``): an edit of the text would not find it."""
    if text.isascii():
        return False
    if unicodedata.is_normalized("NFKC", text):
        return False  # then each part of it is
    anew = {unicodedata.normalize("NFKC", found) for found in _FOREIGN.findall(text) if not unicodedata.is_normalized("NFKC", found)}
    names = "\n".join(_names(tree)) if anew else ""
    return any(one in names for one in anew)


def _names(tree: ast.Module) -> Iterator[str]:
    """All names in a tree, dotted ones by their parts."""
    waiting: list[object] = [tree]
    while waiting:
        node = waiting.pop()
        for field in getattr(node, "_fields", ()):
            value = getattr(node, field)
            for one in value if isinstance(value, list) else (value,):
                if isinstance(one, str):
                    yield from one.split(".")
                elif hasattr(one, "_fields"):
                    waiting.append(one)


def _refuse_null_bytes(text: str) -> None:
    offset = text.find("\0")
    if offset >= 0:
        row, column = place_at(line_starts(text), offset)
        raise UnreadableSource(row, column, "source holds a null byte; is this a binary file?")
