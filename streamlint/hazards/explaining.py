"""Why rules are silent: what they would report if nothing were ordered, or if copies were asynchronous, and what stands against it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from streamlint.config.options import Options, Source
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.facts.files.program import Unit
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.findings import Finding, Span
from streamlint.hazards.context import Context, span_of
from streamlint.hazards.findings import Lowered, context_of, hazard, registry
from streamlint.ir import Instruction
from streamlint.support.records import replace
from streamlint.transfer.actions import Action, Copied, Lost, Read, Stream, Synchronized
from streamlint.transfer.call_sites import ANY_ROW, RowTest
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Order, Transfer
from streamlint.transfer.waiting import Exchanged, Waited
from streamlint.transfer.work import Worked

RELEASED = "the GIL is not held at the wait of the host"
SYNCHRONOUS = "the copy is synchronous: the host waits for it"


class Silenced(NamedTuple):
    """A finding that is not reported, the operation that it follows, and what stands against it: an order at a place, or (at the place of
    the operation itself) that a copy is synchronous, or that the GIL is let go there."""

    finding: Finding
    operation: Span
    by: Span
    why: str


class _Asynchronous(Transfer):
    """What instructions do if each copy were asynchronous."""

    def __init__(self, graph: CallGraph) -> None:
        super().__init__(graph)
        self.changed: set[Site] = set()  # the copies that are not

    def of(self, function: Function, one: Instruction) -> tuple[Action, ...]:
        found = super().of(function, one)
        if not any(isinstance(action, Copied) and action.asynchronous is False for action in found):
            return found
        self.changed.add(Site(function, one))
        return tuple(action._replace(asynchronous=True) if isinstance(action, Copied) else action for action in found)

    def sites(
        self, effects: Collection[str], key: str = "", where: RowTest = ANY_ROW, among: Collection[Unit] | None = None
    ) -> Iterator[ModelledCall]:
        return super().sites(effects, "" if key == "asynchronous" else key, where, among)


class _Holding(Transfer):
    """What instructions do if the GIL were never let go."""

    keeps_gil = True


def silenced(sources: Sequence[Source], options: Options, lowered: Lowered) -> Iterator[Silenced]:
    """What the rules that are answered here would report of the sources, and why they do not."""
    options = replace(options, evidence="possible")  # another place reports what lacks only evidence
    plain = context_of(sources, options, lowered)
    reported = {(one.code, one.span) for code in sorted(registry()) for one in hazard(code).find(plain)}
    for kind in (Transfer, _Asynchronous):
        context = context_of(sources, options, lowered, kind)
        context.transfer.passed = []
        for code in sorted(registry()):
            context.transfer.passed.clear()
            for finding in hazard(code).find(context):
                if (finding.code, finding.span) not in reported:
                    reported.add((finding.code, finding.span))
                    yield from _reasons(context, finding)
            yield from _barriers(context, code)
    for code in sorted(code for code in registry() if hazard(code).RULE.from_python):
        for finding in hazard(code).find(context_of(sources, options, lowered, _Holding)):
            if (finding.code, finding.span) not in reported:
                wait = finding.trail[-1].span if finding.trail else finding.span
                yield Silenced(finding, wait, wait, RELEASED)


def _barriers(context: Context, code: str) -> Iterator[Silenced]:
    """Work that the default stream orders, whether a finding rests on it alone or not."""
    for one in dict.fromkeys(each for each in context.transfer.passed or () if isinstance(each.action, Worked)):
        finding = hazard(code).RULE().finding_at(span_of(one.by), _words(one))
        yield Silenced(finding, span_of(one.operation), span_of(one.by), _words(one))


def _reasons(context: Context, finding: Finding) -> Iterator[Silenced]:
    """What stands against a finding."""
    named = {finding.span, *(step.span for step in finding.trail)}
    orders = [one for one in context.transfer.passed or () if span_of(one.operation) in named]
    for one in dict.fromkeys(orders):
        yield Silenced(finding, span_of(one.operation), span_of(one.by), _words(one))
    changed = context.transfer.changed if isinstance(context.transfer, _Asynchronous) else set()
    for span in sorted({span_of(site) for site in changed} & named):
        yield Silenced(finding, span, span, SYNCHRONOUS)


def _words(order: Order) -> str:
    """What an instruction does that orders an operation."""
    action = order.action
    if isinstance(action, Lost):
        return "is out of view, receives what would tell that the work is done, and may wait for it"
    if isinstance(action, (Waited, Exchanged)):
        return "makes a stream wait for the work"
    if isinstance(action, Worked):
        return "is on the default stream, which waits for the streams around it, and they for it"
    if isinstance(action, Synchronized) and action.of is None:
        return "makes the host wait for the whole device"
    if isinstance(action, Synchronized) and isinstance(action.of, Stream):
        rows = sorted({span_of(site).row for site in order.stream if site.function.unit is order.by.function.unit})
        return "makes the host wait for the stream" + (f" made in line {rows[0]}" if len(rows) == 1 else "")
    if isinstance(action, Synchronized):
        return "makes the host wait for an event that was recorded behind it"
    return "makes the host wait for a value" if isinstance(action, Read) else "orders it"
