"""Tokens of Python and C++, and the places between statements: enough to rewrite code that parses."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from fuzzing.places import starts

_CPP = re.compile(
    r"""
    (?P<directive>^[ \t]*\#(?:[^\\\n/]|\\.|/(?![*])|/\*.*?\*/)*)
  | (?P<comment>//(?:[^\\\n]|\\.)*|/\*.*?\*/)
  | (?P<string>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"|(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<number>\.?\d(?:[eEpP][+-]|[\w.]|'(?=\w))*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<space>(?:(?!^[ \t]*\#)\s)+)
  | (?P<sign><<<|>>>|<<=|>>=|\.\.\.|->\*|->|::|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|\#\#|.)
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_OPEN, _CLOSE = "([{", ")]}"
_BEFORE_A_BLOCK = {")", "else", "do", "try", ";", "{", "}", ":", "const", "noexcept", "override"}
_NOT_A_START = {"else", "while", "catch", "case", "default", "elif", "except", "finally", "@"}


@dataclass(frozen=True)
class Token:
    kind: str  # name, sign, string, number, comment, space, directive; of Python also newline and indent
    start: int
    end: int
    text: str
    depth: int = 0  # brackets around it


def tokens(text: str, language: str) -> list[Token]:
    """The tokens of a text that parses."""
    return list(_python(text) if language == "python" else _cpp(text))


def words(text: str) -> list[str]:
    """The pieces of any text, which need not be code."""
    return re.findall(r"\w+|\s+|<<<|>>>|::|->|\"\"\"|.", text, re.DOTALL)


def _cpp(text: str) -> Iterator[Token]:
    depth = 0
    for found in _CPP.finditer(text):
        kind, word = found.lastgroup or "sign", found.group()
        if found["mark"] is not None:
            kind = "string"
        depth -= word in (")", "]") and kind == "sign"
        yield Token(kind, found.start(), found.end(), word, max(depth, 0))
        depth += word in ("(", "[") and kind == "sign"


_KINDS = {
    tokenize.NAME: "name",
    tokenize.NUMBER: "number",
    tokenize.STRING: "string",
    tokenize.COMMENT: "comment",
    tokenize.NEWLINE: "newline",
    tokenize.NL: "space",
    tokenize.INDENT: "indent",
    tokenize.DEDENT: "indent",
    tokenize.ENDMARKER: "space",
}


def _python(text: str) -> Iterator[Token]:
    begins = starts(text)
    depth = inside = begun = 0
    for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
        start, end = begins[token.start[0] - 1] + token.start[1], min(begins[min(token.end[0], len(begins)) - 1] + token.end[1], len(text))
        name = tokenize.tok_name[token.type]
        if name == "FSTRING_START":  # one piece, as before Python 3.12
            begun, inside = (start if not inside else begun), inside + 1
        elif name == "FSTRING_END":
            inside -= 1
            if not inside:
                yield Token("string", begun, end, text[begun:end], depth)
        elif not inside:
            depth -= token.string in _CLOSE and token.type == tokenize.OP
            yield Token(_KINDS.get(token.type, "sign"), start, end, token.string, depth)
            depth += token.string in _OPEN and token.type == tokenize.OP


def statement_starts(text: str, language: str) -> list[tuple[int, str]]:
    """Where a statement may be put in, and how lines there are indented."""
    found = tokens(text, language)
    return list(_python_starts(text, found) if language == "python" else _cpp_starts(found))


def _python_starts(text: str, found: list[Token]) -> Iterator[tuple[int, str]]:
    fresh, decorated = True, False
    for token in found:
        if token.kind == "newline":
            fresh = True
        elif fresh and token.kind not in ("space", "comment", "indent"):
            fresh = False
            line = text.rfind("\n", 0, token.start) + 1
            indent = text[line : token.start]
            if not indent.strip() and not decorated and token.text not in _NOT_A_START:
                yield line, indent
            decorated = token.text == "@"


def _cpp_starts(found: list[Token]) -> Iterator[tuple[int, str]]:
    code = [token for token in found if token.kind not in ("space", "comment", "directive")]
    blocks: list[bool] = []
    for before, token, after in zip([None, *code], code, [*code[1:], None], strict=False):
        if token.text == "{":
            blocks.append(
                token.depth == 0 and before is not None and before.text in _BEFORE_A_BLOCK and (any(blocks) or before.text != ":")
            )
            if before is not None and before.text in ("{", "}", ";", ":"):
                blocks[-1] = blocks[-1] and any(blocks[:-1])
        elif token.text == "}" and blocks:
            blocks.pop()
        ends = token.text in ("{", "}") or (token.text == ";" and token.depth == 0)
        if (
            ends
            and blocks
            and blocks[-1]
            and token.depth == 0
            and after is not None
            and after.text not in _NOT_A_START | {",", ")", ";", "."}
        ):
            yield token.end, ""
