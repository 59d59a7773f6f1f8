"""``streamlint debug ir``: the control-flow graph of functions, in the form that `streamlint.ir.printer` gives it."""

from __future__ import annotations

import os

from streamlint.commands.parser import Parser
from streamlint.frontends import UnreadableSource, cuda, cython, python
from streamlint.ir import ModuleIR
from streamlint.ir.modules import lower
from streamlint.ir.printer import print_module
from streamlint.program import Module
from streamlint.support.errors import PathError, StreamlintError, did_you_mean
from streamlint.support.reading import LANGUAGES, Unreadable, decode, language_of, read_source

EXAMPLES = (
    ("streamlint debug ir model.py", "all functions of a file, its body first"),
    ("streamlint debug ir model.py:Model.forward", "one, by its qualified name"),
    ("streamlint debug ir model.py:forward", "all of that name"),
    ("streamlint debug ir kernels.cu:Buffer::resize", "C++"),
)


def build_parser() -> Parser:
    """The parser of ``debug ir``."""
    about = "Print the control-flow graph of functions: blocks of three-address instructions in SSA form. Nothing is expanded from headers."
    parser = Parser("debug ir", about, EXAMPLES)
    parser.add_argument("place", metavar="FILE[:FUNCTION]", help="a Python, Cython or C++ file, and the name of a function in it")
    return parser


def main(words: list[str]) -> int:
    """Print the functions of a file, or those of a name."""
    path, wanted = split_place(build_parser().read(words).place)
    module = read_module(path)
    if wanted and not any(wanted in one[:2] for one in module.outline):
        known = dict.fromkeys(name for one in module.outline for name in one[:2])
        raise StreamlintError(f"{path}: no function '{wanted}'{did_you_mean(wanted, known)}")
    print(print_module(module, wanted))
    return 0


def split_place(place: str) -> tuple[str, str]:
    """``FILE:FUNCTION`` as path and name; both may hold colons, and the first file that is there counts.

    Raises PathError where none is.
    """
    ends = [index for index, letter in enumerate(place) if letter == ":"]
    for end in (*ends, len(place)):
        if os.path.lexists(place[:end]):
            return place[:end], place[end + 1 :]
    raise PathError(f"{place}: no such file")


def read_module(path: str) -> ModuleIR:
    """A file's intermediate representation. Raises StreamlintError for what is no source, or cannot be read."""
    language = language_of(path)
    if language is None:
        raise StreamlintError(f"{path}: not a source file (its name ends in none of {' '.join(LANGUAGES)})")
    try:
        text, _ = decode(read_source(path), language, path)
        return lower(parsed(path, text, language))
    except Unreadable as error:
        raise StreamlintError(f"{path}: {error}") from None
    except UnreadableSource as error:
        raise StreamlintError(f"{path}:{error}") from None


def parsed(path: str, text: str, language: str) -> Module:
    """The syntax tree of a text. Raises UnreadableSource."""
    if language == "cuda":
        return cuda.lower(path, text)
    return cython.lower(path, text) if language == "cython" else python.lower(path, text)
