"""Fixes: edits that end a finding and bring no new one.

A rule's fix is one module here, named as its check; the folder is the registry. Its ``fixes(finding, code)`` proposes edits, the best
first, from the finding's places and the source alone. Whether a proposal holds is not its business: ``trial`` lints the edited file once
more and keeps the first one that ends the finding, brings none, and parses. So a proposal may be bold where the rules can judge it,
and must see for itself only to what no rule knows: that the names it uses are bound there, and what else could change.

This room knows findings and, for the trial, a function that re-lints; it knows no check, no fact and no model.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from types import ModuleType

from streamlint.findings import Finding, Fix
from streamlint.fix.base import NotThere, only
from streamlint.fix.code import Code, code_of
from streamlint.fix.cython_code import CythonCode

Fixer = Callable[[Finding, Code], Iterator[Fix]]


def fixer_of(code: str) -> Fixer | None:
    """The fix of a rule, if it has one; the others are not imported for it, nor the parsers that they edit with."""
    module = _module(code)
    return module.fixes if module is not None else None


@functools.cache
def _names() -> dict[str, str]:
    return {info.name[:5].upper(): f"{__name__}.{info.name}" for info in pkgutil.iter_modules(__path__) if info.name.startswith("sl")}


@functools.cache
def _module(code: str) -> ModuleType | None:
    """A rule's module of fixes; without the parser that it edits with, the rule has no fix."""
    if code not in _names():
        return None
    try:
        return importlib.import_module(_names()[code])
    except ImportError as error:
        if (error.name or "").startswith("streamlint"):
            raise
        return None


def proposals(finding: Finding, text: str, language: str) -> Iterator[Fix]:
    """What might end a finding, the best first; nothing where its rule has no fix or the source is not what the fix knows."""
    fixer = fixer_of(finding.code)
    if fixer is None:
        return
    try:
        if language == "cython":
            of_cython = getattr(_module(finding.code), "cython_fixes", None)
            yield from of_cython(finding, CythonCode(finding.span.file, text)) if of_cython is not None else ()
            return
        yield from fixer(finding, _code(finding, text, language))
    except (NotThere, RecursionError):  # the latter where code is nested too deeply for the walks of an edit
        return


def _code(finding: Finding, text: str, language: str) -> Code:
    """The source around a finding: of C++ that a Python string holds, that string alone, with its places."""
    file = finding.span.file
    code = code_of(file, text, language)
    if language == "python" and (string := code.string_around(finding.span)):
        return code_of(file, only(text, *string), "cuda")
    return code
