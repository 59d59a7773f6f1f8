"""SL039: the storage of a tensor is released while another stream may still use it."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl039_storage_released_in_flight import StorageReleasedInFlight
from streamlint.findings import Finding, Step
from streamlint.findings.operations import Drop, Launch
from streamlint.hazards.context import Context, span_of
from streamlint.ir import opcodes as op
from streamlint.ordering.races.releases import Releases
from streamlint.ordering.streams.lanes import Lane
from streamlint.transfer.actions import Released

RULE = StorageReleasedInFlight


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    if not _is_released_somewhere(context):
        return
    rule = RULE()
    for release in context.transfer.one_of(Releases, context.transfer).releases():
        if not release.kind:  # SL007
            continue
        library = release.library or "torch"
        use = Launch(span_of(release.use), library, "", context=context.surroundings(release.use.function))
        drop = Drop(
            span_of(release.drop), library, "", allocated=span_of(release.allocation) if release.allocation != release.use else None
        )
        reuse = span_of(release.again) if release.again is not None else None
        yield rule.report(use, drop, release.kind, reuse, _made(release.lane))


def _is_released_somewhere(context: Context) -> bool:
    """Whether the program releases the storage of a tensor at all."""
    transfer = context.transfer
    for call in transfer.sites({"release"}):
        if any(isinstance(action, Released) for action in transfer.of(call.function, call.instruction)):
            return True
    names = transfer.replacing
    units = (unit for name in sorted(names) for unit in context.program.mentioning(name) if not unit.is_cpp)
    stores = ((function, one) for unit in units for function in unit.functions for one in function.by_opcode[op.SET_ATTR])
    return any(
        function.text(one[3]) in names and any(isinstance(action, Released) for action in transfer.of(function, one))
        for function, one in stores
    )


def _made(lane: Lane) -> tuple[Step, ...]:
    """Where a stream is made."""
    return tuple(Step("stream created here", span_of(site)) for site in sorted(lane.made, key=span_of)[:1])
