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
from itertools import accumulate
from typing import TYPE_CHECKING

from streamlint.frontends import UnreadableSource
from streamlint.frontends.declarations import attach
from streamlint.frontends.python_comments import comments_of
from streamlint.frontends.python_formatted import place
from streamlint.frontends.python_newer import in_older_grammar
from streamlint.frontends.python_statements import lower_module
from streamlint.program import Module
from streamlint.support.lines import line_starts, place_at

if TYPE_CHECKING:
    import ast

# CPython's own limit for nested brackets.
DEEPEST_BRACKETS = 200
# For the second try, see `_lowered`: room for some 900 chained calls, and little enough to fit small stacks.
DEEPER_RECURSION = 4000
ONLY_PARSE = 0x400  # ast.PyCF_ONLY_AST, without the import
PLACES_F_STRINGS = sys.version_info >= (3, 12)

_FORMATTED = re.compile(r"\b(?:[fF][rR]?|[rR][fF])['\"]")
_BRACKET = re.compile(r"[()\[\]{}]")
_STEPS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
# For so many the parser takes a second; code by hand has tens.
LONGEST_CHAIN = 2400
LONGEST_ELIF = 1000
_IN_SUCCESSION = 250
_BEGINS = tuple("-+*/%|&^.@<>=~'\"#")
_ENDS = (*"-+*/%|&^.@<>=~\\'\"", "and", "or", "if", "else", "not", "in", "is")
_CHAINED = re.compile(
    r"\"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\Z)|'''(?:[^\\]|\\.)*?(?:'''|\Z)|\"(?:[^\\\"\n]|\\.)*\"?|'(?:[^\\'\n]|\\.)*'?|#[^\n]*|\\\r?\n"
    r"|[()\[\]{},;\n]|\*\*|//|<<|>>|[-+*/%|&^.@~]|[<>=!]=?|\b(?:and|or|not|if|in|is|lambda|await)\b",
    re.DOTALL,
)
_FOREIGN = re.compile(r"\w?(?:[^\x00-\x7f\W]|[\u0300-\u036f])+")
_TEXT_OR_BRACKET = re.compile(
    r"\"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\Z)|'''(?:[^\\]|\\.)*?(?:'''|\Z)|\"(?:[^\\\"\n]|\\.)*\"?|'(?:[^\\'\n]|\\.)*'?|#[^\n]*|[()\[\]{}]",
    re.DOTALL,
)


def lower(path: str, text: str) -> Module:
    """Parse and lower one file. Raises `UnreadableSource` for what is not Python, or is nested too deeply."""
    _refuse_null_bytes(text)
    _refuse_deep_brackets(text)
    _refuse_long_chains(text)
    made = _lowered(path, text)
    if "streamlint:" in text:
        attach(made, comments_of(text))
    return made


def tree_of(text: str) -> ast.Module | None:
    """Python's own tree of a file; None where it has none, or with other names than are written."""
    try:
        tree = _parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return None if _spells_names_anew(text, tree) else tree


def _lowered(path: str, text: str) -> Module:
    """A module; once more with a deeper stack where the first does not do."""
    limit = sys.getrecursionlimit()
    for depth in (limit, max(limit, DEEPER_RECURSION)):
        sys.setrecursionlimit(depth)
        try:
            read, tree = _read(text)
            if not PLACES_F_STRINGS and _FORMATTED.search(read) is not None:
                place(tree, read)
            return lower_module(path, text, read, tree)
        except RecursionError:
            pass
        finally:
            sys.setrecursionlimit(limit)
    raise UnreadableSource(1, 1, "left out: code is nested too deeply")


def _read(text: str) -> tuple[str, ast.Module]:
    """A text as this Python reads it, in the same rows and columns, and its tree."""
    if text.startswith("\ufeff"):
        text = "\f" + text[1:]  # a byte order mark, which is no code; a form feed is as wide
    try:
        return text, _parse(text)
    except SyntaxError as error:
        refused = error
    except UnicodeEncodeError as error:
        raise UnreadableSource(*place_at(line_starts(text), error.start), "text is not valid Unicode") from None
    older = in_older_grammar(text)
    try:
        return older, _parse(older)
    except SyntaxError:
        raise UnreadableSource(refused.lineno or 1, max(refused.offset or 1, 1), f"syntax error: {refused.msg}") from None


def _parse(text: str) -> ast.Module:
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


def _refuse_deep_brackets(text: str) -> None:
    steps = map(_STEPS.__getitem__, _BRACKET.findall(text))
    if max(accumulate(steps), default=0) <= DEEPEST_BRACKETS:
        return
    depth = 0
    for found in _TEXT_OR_BRACKET.finditer(text):
        depth = max(depth + _STEPS.get(found[0], 0), 0)
        if depth > DEEPEST_BRACKETS:
            row, column = place_at(line_starts(text), found.start())
            raise UnreadableSource(row, column, "brackets are nested too deeply")


def _refuse_long_chains(text: str) -> None:
    """Operators and trailers that nest without a bracket: the parser takes a minute for 10,000, and more than the memory for 100,000."""
    if len(text) < 2 * LONGEST_CHAIN:
        return
    if text.count("elif") > LONGEST_ELIF:
        _refuse_long_elif(text)
    if not _may_hold_chains(text):
        return
    counts = [0]
    for found in _CHAINED.finditer(text):
        token = found.group()
        if token in "([{":
            counts.append(0)
        elif token in ")]}":
            if len(counts) > 1:
                counts.pop()
            counts[-1] += 1
        elif token in (",", ";") or (token == "\n" and len(counts) == 1):
            counts[-1] = 0
        elif token[0] not in "#\\\n":
            counts[-1] += 1
        if counts[-1] > LONGEST_CHAIN:
            row, column = place_at(line_starts(text), found.start())
            raise UnreadableSource(row, column, f"nested too deeply: more than {LONGEST_CHAIN} operators in a row")


def _refuse_long_elif(text: str) -> None:
    """Each ``elif`` is nested in the one before it."""
    arms: dict[int, int] = {}
    for row, line in enumerate(text.split("\n"), 1):
        body = line.lstrip()
        if body.startswith(("elif", "if")):
            indent = len(line) - len(body)
            arms[indent] = arms.get(indent, 0) + 1 if body.startswith("elif") else 0
            if arms[indent] > LONGEST_ELIF:
                raise UnreadableSource(row, indent + 1, f"nested too deeply: more than {LONGEST_ELIF} times elif")


def _may_hold_chains(text: str) -> bool:
    """Whether a line is long enough for one, or many lines in succession begin or end as parts of one do."""
    lines, run = text.split("\n"), 0
    for line in lines:
        stripped = line.strip()
        run = run + 1 if stripped.startswith(_BEGINS) or stripped.endswith(_ENDS) else run * (not stripped)
        if run > _IN_SUCCESSION or len(line) > LONGEST_CHAIN:
            return True
    return False
