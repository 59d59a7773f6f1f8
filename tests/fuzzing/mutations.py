"""Real text changed at random: bytes, tokens and lines gone, doubled, exchanged, put in, cut off."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuzzing.lexing import words
from hypothesis import strategies as st

PIECES = (
    *(
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "<",
        ">",
        "<<<",
        ">>>",
        "::",
        "->",
        ";",
        ",",
        ":",
        "=",
        "*",
        "&",
        "~",
        "!",
        "@",
        "\\",
        "\\\n",
        "#",
        "$",
        "`",
    ),
    *(
        '"',
        "'",
        '"""',
        "'''",
        "f'{",
        'R"(',
        "/*",
        "*/",
        "//",
        "\n",
        "\r",
        "\r\n",
        "\t",
        "\f",
        "\0",
        "\ufeff",
        "\u2028",
        "é",
        "\U0001d4b3",
        "\x1a",
    ),
    *("0", "1", "-1", "1e999", "0x", "1" * 30, "0b2", "1_000", "1'000", "nullptr", "None", "True", "self", "this", "x", "_"),
    *(
        "if ",
        "else ",
        "elif ",
        "for ",
        "while ",
        "with ",
        "async ",
        "await ",
        "yield ",
        "return ",
        "lambda: ",
        "def f(): ",
        "class ",
        "del ",
        "match x:\n",
    ),
    *(
        "case ",
        "import ",
        "from . import *",
        "global ",
        "nonlocal ",
        "not ",
        "in ",
        "is ",
        "*",
        "**",
        ":= ",
        "template<",
        "typename ",
        "operator",
        "auto ",
    ),
    *(
        "goto x;",
        "switch (",
        "do {",
        "struct ",
        "namespace ",
        "using ",
        "typedef ",
        'extern "C" {',
        "co_await ",
        "requires ",
        "static ",
        "virtual ",
    ),
    *(
        "#if 0\n",
        "\n#endif\n",
        "\n#else\n",
        "\n#define f(x) x x\n",
        "\n#define torch\n",
        '\n#include "a.cu"\n',
        "#undef ",
        "##",
        "__VA_ARGS__",
    ),
    *(
        "torch.cuda.synchronize()",
        "cudaStreamSynchronize(",
        "stream",
        "cudaMemcpyAsync",
        ".to('cuda', non_blocking=True)",
        "__global__ ",
        "PYBIND11_MODULE(",
    ),
)
Mutation = tuple[int, int, int, int]  # which, where, how much, and what
COUNT = 12


def mutations(most: int = 6) -> st.SearchStrategy[list[Mutation]]:
    """A list of changes; numbers are taken modulo what there is."""
    large = st.integers(0, 1 << 20)
    return st.lists(st.tuples(st.integers(0, COUNT - 1), large, st.integers(1, 40), large), min_size=1, max_size=most)


def mutated(text: str, changes: Sequence[Mutation], other: str = "") -> bytes:
    """The text changed; some changes splice in another one, some leave no text at all."""
    parts: list[str] = []
    raw: list[Mutation] = []
    for which, where, much, what in changes:
        if which >= 10:
            raw.append((which, where, much, what))
            continue
        split: Callable[[str], list[str]] = words if which < 6 else _lines
        parts = split(text)
        at = where % (len(parts) + 1)
        parts = _changed(parts, which, at, much, what, other)
        text = "".join(parts)
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for which, where, much, what in raw:
        at = where % (len(data) + 1)
        data[at : at + (much if which == 10 else 1)] = bytes([what % 256]) if which == 11 else b""
    return bytes(data)


def _changed(parts: list[str], which: int, at: int, much: int, what: int, other: str) -> list[str]:
    before, part, after = parts[:at], parts[at : at + much], parts[at + much :]
    if which in (0, 6):  # gone
        return before + after
    if which in (1, 7):  # doubled
        return before + part + part + after
    if which in (2, 8):  # exchanged
        return [*parts[:at], *parts[at + 1 : at + 2], *parts[at : at + 1], *parts[at + 2 :]]
    if which == 3:  # put in
        return [*parts[:at], PIECES[what % len(PIECES)], *parts[at:]]
    if which == 4:  # in place of another
        return [*parts[:at], PIECES[what % len(PIECES)], *parts[at + 1 :]]
    if which == 5:  # cut off
        return before if what % 4 == 0 else parts
    pieces = _lines(other)  # spliced
    begin = what % (len(pieces) + 1)
    return [*parts[:at], *pieces[begin : begin + much], *parts[at:]]


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
