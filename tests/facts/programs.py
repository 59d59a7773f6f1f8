"""Programs of several files for the tests of program facts."""

from __future__ import annotations

from functools import partial
from textwrap import dedent

from streamlint.facts.code.functions import Function
from streamlint.facts.files.program import Program, SourceFile
from streamlint.facts.graph.facts import Facts
from streamlint.frontends import python
from streamlint.ir import ModuleIR
from streamlint.ir.modules import lower


def facts_of(**files: str) -> Facts:
    """The facts of files by their names."""
    texts = {f"{name}.py": dedent(text) for name, text in files.items()}
    return Facts(Program([SourceFile(name, "python", text, partial(_lowered, name, text)) for name, text in texts.items()]))


def _lowered(name: str, text: str) -> ModuleIR:
    return lower(python.lower(name, text))


def function(facts: Facts, file: str, name: str) -> Function:
    """A function of a file by its qualified name."""
    return next(one for one in facts.program.units[f"{file}.py"].functions if one.name == name)
