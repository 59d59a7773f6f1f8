"""The text of a kernel that a library compiles while the program runs: what its declaration and body say of the arguments."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

from streamlint.frontends.cuda_stores import Pointers

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_WORD = re.compile(r"\w+")
_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}


class Written(NamedTuple):
    """Of each argument, whether the kernel may write what it points to; ``sure``: its body shows which it writes."""

    arguments: tuple[bool, ...]
    sure: bool


@functools.lru_cache(maxsize=256)
def written(text: str, name: str) -> Written | None:
    """What a kernel writes: what its body stores through, else what is not constant. None where the text has no such kernel."""
    kernel = _kernel(_COMMENT.sub(" ", text), name)
    if kernel is None:
        return None
    params, body = kernel
    names = [(_WORD.findall(param.partition("[")[0]) or [""])[-1] for param in params]
    pointers = [n if "*" in param or "[" in param else "" for param, n in zip(params, names, strict=True)]
    stored = Pointers(body, pointers).stored()
    if stored:
        return Written(tuple(n in stored for n in pointers), sure=True)
    constant = ["const" in _WORD.findall(param.partition("*")[0]) for param in params]
    return Written(tuple(bool(n) and not fixed for n, fixed in zip(pointers, constant, strict=True)), sure=False)


def _kernel(text: str, name: str) -> tuple[list[str], str] | None:
    """The parameters and the body of a kernel."""
    for found in re.finditer(rf"\b{re.escape(name)}\s*\(", text):
        head = text[max(text.rfind(mark, 0, found.start()) for mark in ";}") + 1 : found.start()]
        end = _behind(text, found.end() - 1)
        body = text.find("{", end)
        if "__global__" in head and body >= 0 and not text[end:body].strip():
            params = [param for param in _split(text[found.end() : end - 1]) if param.strip() not in ("", "void")]
            return params, text[body : _behind(text, body)]
    return None


def _behind(text: str, at: int) -> int:
    """The place behind the bracket that closes the one at a place."""
    opening, closing, depth = text[at], _PAIRS[text[at]], 0
    for place in range(at, len(text)):
        depth += (text[place] == opening) - (text[place] == closing)
        if depth == 0:
            return place + 1
    return len(text)


def _split(params: str) -> Iterator[str]:
    """A list of parameters, taken apart at its own commas."""
    depth = begin = 0
    for place, mark in enumerate(params):
        depth += (mark in "(<[") - (mark in ")>]")
        if mark == "," and depth == 0:
            yield params[begin:place]
            begin = place + 1
    yield params[begin:]
