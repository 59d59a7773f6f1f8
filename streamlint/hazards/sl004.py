"""SL004: a host function that a stream runs calls CUDA, or waits for someone who does."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl004_cuda_call_in_host_callback import CudaCallInHostCallback
from streamlint.findings import Finding, Span, Step
from streamlint.findings import operations as ops
from streamlint.hazards.context import Context, span_of
from streamlint.ordering.threads.callbacks import Callbacks, InCallback
from streamlint.transfer import device
from streamlint.transfer.device import DeviceOperation

RULE = CudaCallInHostCallback


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    rule = RULE()
    reported = set()
    for one in Callbacks(context.transfer).find():
        place = one.place.function.unit.path, *one.place.at
        if place not in reported:
            reported.add(place)
            yield _finding(rule, one)


def _finding(rule: CudaCallInHostCallback, one: InCallback) -> Finding:
    registration = Step("registered as a host callback here", span_of(one.registration))
    place, span = span_of(one.place), span_of(one.site)
    reached = one.reached
    steps = [Step("reached through this call", span_of(call)) for call in (reached.calls if reached is not None else ())]
    trail = (registration, *steps, Step("the blocking call" if reached is None else "the CUDA operation", span))
    if reached is None:
        return rule.report(ops.Block(span, api=one.library, what=one.what), place, trail)
    return rule.report(_named(reached.operation, span), place, trail)


def _named(operation: DeviceOperation, span: Span) -> ops.Operation:
    library, name = operation.library, operation.name
    if operation.kind == device.COMPUTE:
        return ops.Launch(span, library, name, kind="compute")
    if operation.kind == device.KERNEL:
        return ops.Launch(span, library, name)
    if operation.kind in (device.COPY, device.READ):
        return ops.Copy(span, library or "torch", name)
    return ops.Operation(span, library, name)
