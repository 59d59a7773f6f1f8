"""SL034: a graph is replayed after a tensor that its capture read was replaced or lost."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl034_graph_input_replaced import GraphInputReplaced
from streamlint.findings import Finding
from streamlint.findings.operations import Operation
from streamlint.hazards.context import Context, span_of
from streamlint.ordering.captures.replays import Replays

RULE = GraphInputReplaced


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    rule = RULE()
    for lost in Replays(context.transfer).find():
        place = lost.origin if lost.gone is None or lost.kind == "temporary" else lost.gone
        around = context.surroundings(place.function)
        spans = span_of(lost.gone) if lost.gone is not None else None, span_of(lost.capture), span_of(lost.read), span_of(lost.replay)
        yield rule.report(Operation(span_of(place), lost.library, "", context=around), lost.kind, spans)
