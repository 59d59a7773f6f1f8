"""What the rules find in a run's files: the facts of the program are made once for all of them."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol

from streamlint import models
from streamlint.checks.base import Check
from streamlint.facts.program import Program, SourceFile
from streamlint.findings import Finding
from streamlint.hazards.context import Context
from streamlint.ir import ModuleIR
from streamlint.options import Options, Source

Lowered = Callable[[Source], "ModuleIR | None"]


class Hazard(Protocol):
    """A module of this package."""

    RULE: type[Check]

    def find(self, context: Context) -> Iterator[Finding]:
        """The findings of the rule."""


@functools.cache
def registry() -> dict[str, Hazard]:
    """The modules of this package whose names are codes, by code."""
    package = importlib.import_module("streamlint.hazards")
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__) if re.fullmatch(r"sl\d{3}", module.name))
    return {name.upper(): importlib.import_module(f"streamlint.hazards.{name}") for name in names}


def find(sources: Sequence[Source], options: Options, lowered: Lowered) -> list[Finding]:
    """What the rules that are selected tell of the sources. ``lowered`` gives the intermediate representation of a file."""
    rules = [hazard for code, hazard in registry().items() if not options.codes or code in options.codes]
    if not rules:
        return []
    program = Program([SourceFile(one.path, one.language, one.text, partial(lowered, one)) for one in sources])
    context = Context(program, options, models.load("python", options.user_models))
    found = [finding for hazard in rules for finding in hazard.find(context)]
    return sorted(found, key=Finding.sort_key)
