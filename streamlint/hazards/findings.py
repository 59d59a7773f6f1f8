"""What the rules find in a run's files: the facts of the program are made once for all of them."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Protocol

from streamlint.checks import catalog
from streamlint.checks.base import Check
from streamlint.config.options import Options, Source
from streamlint.facts.files.neighbours import Neighbours
from streamlint.facts.files.program import Program, SourceFile
from streamlint.facts.graph.grounds import GroundsFinder
from streamlint.findings import Finding, Reported
from streamlint.hazards.context import Context
from streamlint.ir import ModuleIR
from streamlint.transfer.transfer import Transfer

Lowered = Callable[[Source], "ModuleIR | None"]


class Hazard(Protocol):
    """A module of this package."""

    RULE: type[Check]

    def find(self, context: Context) -> Iterator[Finding]:
        """The findings of the rule."""


@functools.cache
def registry() -> frozenset[str]:
    """The codes of the rules that have a module in this package."""
    return frozenset(code for code in catalog.entries() if importlib.util.find_spec(f"streamlint.hazards.{code.lower()}") is not None)


def hazard(code: str) -> Hazard:
    """The module of a rule; the others are not imported for it."""
    module: Hazard = importlib.import_module(f"streamlint.hazards.{code.lower()}")
    return module


def find(
    sources: Sequence[Source],
    options: Options,
    lowered: Lowered,
    breathe: Callable[[], None] = lambda: None,
    asked: Collection[str] | None = None,
) -> Reported:
    """What the rules of this package report of the sources: those of the options, or all. A fault of ours costs the rule that it is in.

    ``lowered`` gives the intermediate representation of a file. ``breathe`` is called before each rule: it raises where the work is no
    longer wanted. ``asked``: the paths of the files whose operations are looked at, where not all are.
    """
    codes = [code for code in sorted(registry()) if not options.codes or code in options.codes]
    if not codes:
        return Reported([])
    context = context_of(sources, options, lowered)
    if asked is not None:
        context.transfer.asked = frozenset(unit for unit in context.program.units.values() if unit.path in asked)
    found: list[Finding] = []
    faults: dict[str, str] = {}
    for code in codes:
        breathe()
        try:
            found += list(hazard(code).find(context))
        except Exception as error:
            faults[code] = f"{type(error).__name__}: {error}"
    cut, grounds = context.facts.solver.cut, GroundsFinder(context.graph)
    found = [one for one in found if grounds.may_run(one)]
    if asked is None:  # behind all rules, for what is asked here must change no finding; a trial of a fix needs none
        found = grounds.grounded(found)
    return Reported(sorted(found, key=Finding.sort_key), cut, faults)


def context_of(sources: Sequence[Source], options: Options, lowered: Lowered, kind: type[Transfer] = Transfer) -> Context:
    """The facts of the sources as one program, and what its instructions do. Files are asked in the order of their paths, however given."""
    return Context(_program(sources, lowered), options, kind)


def neighbours(sources: Sequence[Source], lowered: Lowered) -> Neighbours:
    """The ties between the sources."""
    return Neighbours(_program(sources, lowered))


def _program(sources: Sequence[Source], lowered: Lowered) -> Program:
    ordered = sorted(sources, key=lambda one: one.path)
    return Program([SourceFile(one.path, one.language, one.text, partial(lowered, one)) for one in ordered])
