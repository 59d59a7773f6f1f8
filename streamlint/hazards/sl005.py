"""SL005: the host reads memory that an asynchronous copy from the device may still be filling."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl005_d2h_read_before_sync import D2hReadBeforeSync
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Memory as Held
from streamlint.facts.code.objects import Site
from streamlint.findings import Finding
from streamlint.findings.operations import Conflict, Copy, Direction, Evidence, HostRead, Memory
from streamlint.hazards.context import Context, span_of
from streamlint.ir import opcodes as op
from streamlint.ordering.memory.kernel_accesses import KERNEL
from streamlint.ordering.races.early_reads import EarlyRead, EarlyReads
from streamlint.transfer.actions import Copied

RULE = D2hReadBeforeSync


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    rule = RULE()
    reads = EarlyReads(context.transfer)
    reported: set[tuple[Site, str, int]] = set()
    for read in reads.find():
        finding = _finding(rule, context, read, reads.memory(read.copy.function, read.copied.target))
        statement = read.copy, finding.span.file, finding.span.row  # the arms of one may read each for itself
        if statement not in reported and (finding.shown or context.options.evidence == "possible"):
            reported.add(statement)
            yield finding


def _finding(rule: D2hReadBeforeSync, context: Context, read: EarlyRead, held: list[Held]) -> Finding:
    function, copied = read.copy.function, read.copied
    row = copied.call.row
    assert row is not None
    made = function.definitions[copied.target] if copied.target >= 0 else None
    is_variable = made is not None and made[0] in (op.ADDRESS, op.ADDRESS_ATTR)  # on the stack
    pageable = is_variable or (bool(held) and all(value.pinning == "pageable" for value in held))
    is_locked = any(value.pinning == "pinned" for value in held)
    is_kernel = copied.direction == KERNEL
    on_device = row.library != "torch" or _is_on_device(context, function, copied.source)
    copy = Copy(
        span_of(read.copy),
        row.library,
        copied.call.name,
        context=context.surroundings(function, read.copy_calls),
        direction=Direction.UNKNOWN if is_kernel else Direction.D2H,
        host_memory=Memory.PAGEABLE if pageable else Memory.PINNED if is_locked else Memory.UNKNOWN,
        evidence=Evidence.LITERAL if on_device else Evidence.SCOPE,
    )
    looked = HostRead(
        span_of(read.accessor or read.read),
        row.library,
        read.name,
        context=context.surroundings(read.read.function, read.read_calls),
        asked=span_of(read.read) if read.accessor is not None else None,
    )
    shown = not pageable and not is_uncalled(context, read.read.function)
    return rule.report(Conflict(copy, looked), shown)


def _is_on_device(context: Context, function: Function, register: int) -> bool:
    """Whether a register is sure to hold memory of a device: by its value, or because it was copied there."""
    if any(isinstance(value, Held) and value.space == "device" for value in context.facts.values(function, register).values):
        return True
    made = function.definitions[register] if register >= 0 else None
    actions = context.transfer.of(function, made) if made is not None else ()
    return any(isinstance(action, Copied) and action.target == register and action.direction == "h2d" for action in actions)


def is_uncalled(context: Context, function: Function) -> bool:
    """Whether nothing calls a method, and nobody outside can: its class, and those that it derives from, are private."""
    owner = function.owner
    if owner is None or function.is_cpp or function.code.name.startswith("__"):
        return False
    if not all(one.ir.name.startswith("_") for one in context.facts.hierarchy.order(owner)) or context.facts.hierarchy.libraries(owner):
        return False
    return not any(context.transfer.enters(*place, function) for place in context.facts.call_places(function))
