"""SL008: the host writes, or frees, page-locked memory that an asynchronous copy may still be using."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl008_host_buffer_reused_in_flight import HostBufferReusedInFlight
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Memory as Held
from streamlint.findings import Finding, Step
from streamlint.findings.operations import Conflict, Copy, Direction, Evidence, Free, Memory, Operation
from streamlint.hazards.context import Context, span_of
from streamlint.ordering.memory.kernel_accesses import KERNEL
from streamlint.ordering.races.reuses import Reuse, Reuses

RULE = HostBufferReusedInFlight
_DIRECTIONS = {"d2h": Direction.D2H, KERNEL: Direction.UNKNOWN}


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    rule, reuses = RULE(), Reuses(context.transfer)
    reuses.is_wide = context.options.evidence == "possible"
    for reuse in reuses.find():
        yield _finding(rule, context, reuse)


def _finding(rule: HostBufferReusedInFlight, context: Context, reuse: Reuse) -> Finding:
    function, copied = reuse.copy.function, reuse.copied
    row = copied.call.row
    assert row is not None
    side = copied.target if copied.direction == "d2h" else copied.source
    copy = Copy(
        span_of(reuse.copy),
        row.library,
        copied.call.name,
        trail=tuple(_made(context, function, side)),
        context=context.surroundings(function, reuse.copy_calls),
        direction=_DIRECTIONS.get(copied.direction, Direction.H2D),
        host_memory=Memory.PINNED,
        evidence=Evidence.LITERAL,
    )
    kind = Free if reuse.is_free else Operation
    write = kind(span_of(reuse.write), row.library, reuse.name, context=context.surroundings(reuse.write.function, reuse.write_calls))
    return rule.report(Conflict(copy, write))


def _made(context: Context, function: Function, register: int) -> Iterator[Step]:
    """Where the memory was page-locked."""
    node = context.facts.values(function, register)
    for value in list(node.values):
        if isinstance(value, Held) and value.pinning == "pinned":
            sites = list(node.trace(value))
            if sites:
                yield Step("allocated in pinned host memory here", span_of(sites[-1]))
