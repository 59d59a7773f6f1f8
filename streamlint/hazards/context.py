"""What the rules share: the facts of one program, what its instructions do, and places in words of findings."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.config.options import Options
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.facts.files.program import Program
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.graph.facts import Facts
from streamlint.findings import Span
from streamlint.findings.operations import Context as Surroundings
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import with_user_rows
from streamlint.ordering.walk.walk import Walk
from streamlint.support.records import replace
from streamlint.transfer.transfer import Transfer

MOST_STEPS = 40_000
"""Of the solver, for each question: what a value may be that takes more to find out is unknown, beyond what was found."""
FREE_STEPS = 300_000
"""Of all questions together, before the first one is bounded: SL001 reports 26 copies of gpu4pyscf 1.9.0 so, two of them labelled, and 10
where four questions were cut. With 1.5 million steps it reports 28, but dlib takes over four times as long, and of 20 findings that
warp-lang and others gain a reader judged 18 wrong."""


class Context:
    """One program, and what is known of it."""

    def __init__(self, program: Program, options: Options, transfer: type[Transfer] = Transfer) -> None:
        self.program = program
        self.options = options
        own = (
            with_user_rows("cuda", options.user_models) if options.user_models else None
        )  # those that are shipped are read when they are asked
        self.facts = Facts(program, with_user_rows("python", options.user_models), own)
        self.facts.solver.most, self.facts.solver.free = MOST_STEPS, FREE_STEPS
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


def made_at(site: Site) -> Span:
    """The place where an object of C++ is made: the first row, where it is given a lambda whose body covers rows of its own."""
    span, function, one = span_of(site), site.function, site.instruction
    given = (function.definitions[register] for register in op.reads(one) if register >= 0)
    if one[0] != op.CONSTRUCT or span.row == span.end_row or not any(each is not None and each[0] == op.FUNCTION for each in given):
        return span
    rows = function.unit.source.text.split("\n")
    end = len(rows[span.row - 1].rstrip()) + 1 if span.row <= len(rows) else 0
    return replace(span, end_row=span.row, end_column=end) if end > span.column else span
