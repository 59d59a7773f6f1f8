"""Kernels whose text a library compiles while the program runs (CuPy's RawKernel): what that text says of their arguments."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from streamlint.frontends.cuda_stores import Pointers
from streamlint.interpreter.effects.host import KERNEL, TEXT
from streamlint.interpreter.effects.kernels import Signature
from streamlint.interpreter.values import Const, Handle, Value

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_WORD = re.compile(r"\w+")
_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}


def compiled(kernel: Value | None, count: int) -> Signature:
    """What is known of a kernel with so many arguments. One that is given a single buffer writes it: a kernel is there to write."""
    held = kernel.attrs if isinstance(kernel, Handle) else {}
    text, name = held.get(TEXT), held.get(KERNEL)
    known = None
    if isinstance(text, Const) and isinstance(name, Const) and isinstance(text.value, str) and isinstance(name.value, str):
        known = _of_text(text.value, name.value.partition("<")[0])
    return known if known is not None and known.written is not None and len(known.written) == count else Signature([True] * count)


@functools.lru_cache(maxsize=256)
def _of_text(text: str, name: str) -> Signature | None:
    """What a kernel's declaration and body say: it writes what its body stores through, else what is not constant."""
    text = _COMMENT.sub(" ", text)
    for found in re.finditer(rf"\b{re.escape(name)}\s*\(", text):
        head = text[max(text.rfind(mark, 0, found.start()) for mark in ";}") + 1 : found.start()]
        end = _behind(text, found.end() - 1)
        body = text.find("{", end)
        if "__global__" not in head or body < 0 or text[end:body].strip():
            continue
        params = [param for param in _parts(text[found.end() : end - 1]) if param.strip() not in ("", "void")]
        names = [(_WORD.findall(param.partition("[")[0]) or [""])[-1] for param in params]
        pointers = [n if "*" in param or "[" in param else "" for param, n in zip(params, names, strict=True)]
        stored = Pointers(text[body : _behind(text, body)], pointers).stored()
        if stored:
            return Signature([n in stored for n in pointers], sure=True)
        constant = [_WORD.findall(param.partition("*")[0]).count("const") > 0 for param in params]
        return Signature([bool(n) and not fixed for n, fixed in zip(pointers, constant, strict=True)])
    return None


def _behind(text: str, at: int) -> int:
    """The place behind the bracket that closes the one at a place."""
    opening, closing, depth = text[at], _PAIRS[text[at]], 0
    for place in range(at, len(text)):
        depth += (text[place] == opening) - (text[place] == closing)
        if depth == 0:
            return place + 1
    return len(text)


def _parts(params: str) -> Iterator[str]:
    """A list of parameters, taken apart at its own commas."""
    depth = begin = 0
    for place, mark in enumerate(params):
        depth += (mark in "(<[") - (mark in ")>]")
        if mark == "," and depth == 0:
            yield params[begin:place]
            begin = place + 1
    yield params[begin:]
