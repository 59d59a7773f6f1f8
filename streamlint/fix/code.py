"""Source as a fix sees it: Python or C++, parsed once."""

from __future__ import annotations

import functools

from streamlint.fix.cpp_code import CppCode
from streamlint.fix.python_code import PythonCode

Code = PythonCode | CppCode


def code_of(file: str, text: str, language: str) -> Code:
    """The source of a file, parsed.

    Raises NotThere if it does not parse.
    """
    return _cpp(file, text) if language == "cuda" else _python(file, text)


@functools.lru_cache(maxsize=8)
def _python(file: str, text: str) -> PythonCode:
    return PythonCode(file, text)


@functools.lru_cache(maxsize=8)
def _cpp(file: str, text: str) -> CppCode:
    return CppCode(file, text)
