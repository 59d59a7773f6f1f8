"""What the rules share: the facts of one program, what its instructions do, and places in words of findings."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.facts.call_graph import CallGraph
from streamlint.facts.facts import Facts
from streamlint.facts.functions import Function
from streamlint.facts.objects import Site
from streamlint.facts.program import Program
from streamlint.findings import Span
from streamlint.ir import Instruction
from streamlint.models import Models
from streamlint.operations import Context as Surroundings
from streamlint.options import Options
from streamlint.ordering.walk import Walk
from streamlint.transfer.transfer import Transfer

MOST_STEPS = 40_000
"""Of the solver, for each question: what a value may be that takes more to find out is unknown, beyond what was found."""


class Context:
    """One program, and what is known of it."""

    def __init__(self, program: Program, options: Options, models: Models | None = None, transfer: type[Transfer] = Transfer) -> None:
        self.program = program
        self.options = options
        self.facts = Facts(program, models)
        self.facts.solver.most = MOST_STEPS
        self.graph = CallGraph(self.facts)
        self.transfer = transfer(self.graph)

    def walk(self, kind: type[Walk]) -> Walk:
        """A walk for pending operations."""
        return kind(self.transfer)

    def surroundings(self, function: Function, calls: Iterable[Site] = ()) -> Surroundings:
        """The function of an operation, and the calls that lead to it, the outermost first."""
        return Surroundings(function=function.name, calls=tuple(span_of(site) for site in calls))


def span_of(site: Site) -> Span:
    """The place of an instruction in its file."""
    return span_at(site.function, site.instruction)


def span_at(function: Function, one: Instruction) -> Span:
    """The place of an instruction of a function in its file."""
    return Span(function.unit.path, *function.code.at(one[1]))
