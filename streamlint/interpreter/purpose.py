"""What C++ that binds functions for Python says of their purpose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamlint import program as p
from streamlint.interpreter.notes import remembered

if TYPE_CHECKING:
    from streamlint.interpreter.index import File

_A_TEST = re.compile(r"\btest(?:s|ing)?\b(?!\s+(?:whether|if|that|for)\b)", re.IGNORECASE)
_FEWEST = 3  # functions: one alone may test what it is given


def is_for_tests(file: File, within: p.Function) -> bool:
    """Whether a function binds tests and nothing else: the doc string of each function that it binds says so."""
    return within in _of_tests(file)


@remembered(64)
def _of_tests(file: File) -> list[p.Function]:
    if _A_TEST.search(file.module.text) is None:
        return []
    from streamlint.interpreter.bindings import bindings_of

    told: dict[p.Function, list[bool]] = {}
    for binding in bindings_of(file):
        told.setdefault(binding.within, []).append(any(map(_A_TEST.search, _doc_strings(binding.call))))
    return [within for within, said in told.items() if len(said) >= _FEWEST and all(said)]


def _doc_strings(call: p.Call) -> Iterator[str]:
    values = (arg.value for arg in call.args[2:])
    yield from (value.value for value in values if isinstance(value, p.Const) and isinstance(value.value, str))
