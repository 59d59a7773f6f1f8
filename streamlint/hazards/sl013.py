"""SL013: a stream capture refuses an operation, loses it, or does not contain it."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl013_capture_illegal_call import CaptureIllegalCall
from streamlint.findings import Finding, Step
from streamlint.findings import operations as ops
from streamlint.findings.operations import Direction, Memory, Refusal
from streamlint.hazards.context import Context, span_of
from streamlint.hazards.warm_ups import WarmUps
from streamlint.ordering.captures.capture_walk import Refused
from streamlint.ordering.captures.captures import Captures
from streamlint.transfer import device
from streamlint.transfer.device import DeviceOperation

RULE = CaptureIllegalCall
_MADE = {"pinning-thread": "loader created here"}
"""By the kind of a refusal, what was made elsewhere, where it is no stream."""


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    rule, captures = RULE(), Captures(context.transfer)
    warm_ups = WarmUps(context.transfer)
    for refused in captures.find():
        if not warm_ups.has_run(refused):
            yield rule.report(_operation(context, refused))


def _operation(context: Context, refused: Refused) -> ops.Operation:
    made = (Step(_MADE.get(refused.kind, "stream created here"), span_of(refused.stream)),) if refused.stream is not None else ()
    begin = Step("capture begins here", span_of(refused.capture.begin))
    refusal = Refusal(refused.kind, int(refused.status), begin, made)
    found = _named(refused.operation, context, refused)
    found.refused = refusal
    found.api = refused.operation.library
    return found


def _named(operation: DeviceOperation, context: Context, refused: Refused) -> ops.Operation:
    span, surroundings = span_of(refused.site), context.surroundings(refused.site.function, refused.calls)
    name = operation.name
    if operation.kind in (device.READ, device.COPY):
        to_host = operation.kind == device.READ or operation.direction == "d2h"
        direction = Direction.D2H if to_host else Direction.H2D
        memory = Memory.PAGEABLE if refused.kind == "unpinned" else Memory.UNKNOWN
        return ops.Copy(span, name=name, context=surroundings, direction=direction, host_memory=memory)
    if operation.kind == device.COMPUTE:
        return ops.Launch(span, name=name, context=surroundings, kind="compute")
    if operation.kind == device.KERNEL:
        return ops.Launch(span, name=name, context=surroundings)
    return ops.Operation(span, name=name, context=surroundings)
