"""SL009: a function that Python calls waits for a device with the GIL held."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl009_gil_held_across_cuda_call import GilHeldAcrossCudaCall
from streamlint.facts.code.functions import Function
from streamlint.facts.graph.facts import Facts
from streamlint.findings import Finding, Span
from streamlint.findings import operations as ops
from streamlint.findings.operations import Holding
from streamlint.hazards.context import Context, span_of
from streamlint.hazards.every_round import EveryRound
from streamlint.hazards.once import Once
from streamlint.ir import opcodes as op
from streamlint.models import first_part
from streamlint.ordering.memory.arms import Arms, Way
from streamlint.ordering.null_stream.measuring import Agreements, Measuring
from streamlint.ordering.places.places import Places
from streamlint.ordering.threads.entries import Entry
from streamlint.ordering.threads.gil import FOR_DRIVER, Gil, Held
from streamlint.transfer import device
from streamlint.transfer.device import DeviceOperation

RULE = GilHeldAcrossCudaCall
_WAITS = frozenset({device.SYNCHRONIZE, device.COPY, device.READ, device.WORK})
_NO_OBJECT = ("gil_scoped", "call_guard", "error_already_set")


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule, one for each place: what is shown to wait before what may."""
    rule = RULE()
    gil = Gil(context.transfer)
    measuring, agreements = Measuring(gil.operations), Agreements(gil.operations)
    arms, once = Arms(context.transfer), Once(context.transfer)
    rounds = context.transfer.one_of(EveryRound, context.transfer, context.transfer.one_of(Places, context.facts))
    best: dict[Span, tuple[tuple[bool, bool], Entry, Held]] = {}
    for entry, held in gil.find():
        place = _place(entry, held)
        earlier: tuple[bool, ...] = best[place][0] if place in best else ()
        most = _is_seen(held), held.needing is not None
        if most <= earlier:
            continue
        way = arms.way(entry.function, entry.binding, held.calls, held.site, held.operation.needs or ())
        may_be = most[0] and way is Way.USUAL, most[1]
        if way is Way.NEVER or may_be <= earlier:
            continue
        shown = may_be[0] and _is_for_others(entry, held, once, rounds) and not _is_meant(entry, held, measuring, agreements)
        rank = shown, may_be[1]  # what is shown comes before what may be, a deadlock before a stall
        if rank > earlier and (shown or context.options.evidence == "possible"):
            best[place] = rank, entry, held
    for rank, entry, held in best.values():
        yield _finding(rule, context, entry, held, rank[0])


def _place(entry: Entry, held: Held) -> Span:
    """Where a wait is reported: where the function that acquires the GIL enters what waits, else at the binding, else where the function
    that Python calls does."""
    return span_of(held.taken.entered if held.taken is not None else entry.binding or next(iter(held.calls), held.site))


def _is_for_others(entry: Entry, held: Held, once: Once, rounds: EveryRound) -> bool:
    """Whether others wait as well: a function that runs once holds up nobody, nor does a destructor that only frees what it owns, where
    the device is idle by then, nor what a rare branch leads to, as where a buffer grows or a call fails."""
    if held.needing is not None:
        return True
    only_frees = entry.is_end and held.operation.kind not in _WAITS
    if only_frees or once.is_bound_once(entry.function):
        return False
    return all(rounds.runs(site, None) for site in (*held.calls, held.site))


def _is_meant(entry: Entry, held: Held, measuring: Measuring, agreements: Agreements) -> bool:
    """Whether the wait is meant: the function measures, or ranks agree on something while they are set up."""
    functions = {entry.function, *(call.function for call in held.calls), held.site.function}
    if any(map(measuring.times_repeated_work, functions)):
        return True
    operation = held.operation
    is_copy = operation.kind in (device.COPY, device.READ) and held.site.function.is_cpp
    return is_copy and agreements.is_one(held.site.function, held.site.instruction, operation.direction)


def _finding(rule: GilHeldAcrossCudaCall, context: Context, entry: Entry, held: Held, shown: bool) -> Finding:
    calls = [span_of(call) for call in held.calls]
    span, place = span_of(held.site), _place(entry, held)
    if held.taken is not None:
        holding = Holding("scope", span_of(held.taken.acquired))
        trail = tuple(calls[held.calls.index(held.taken.entered) + 1 :] if held.taken.entered in held.calls else ())
    elif entry.binding is not None:
        handles = _handles_objects(context.facts, entry.function)
        holding = Holding("binding", place, handles_objects=handles)
        trail = tuple(calls)
    else:
        code = entry.function.code
        holding = Holding("function", Span(entry.function.unit.path, *code.at(code.blocks[0][0][1])))
        trail = tuple(calls[1:])
    needing = span_of(held.needing) if held.needing is not None else None
    return rule.report(_named(held.operation, span), held.why, holding, place, trail, shown, needing)


def _is_seen(held: Held) -> bool:
    return held.operation.kind != device.ALLOC or held.why != FOR_DRIVER


def _handles_objects(facts: Facts, function: Function) -> bool:
    """Whether a function is given Python's objects, or names the classes and functions that work with them."""
    names = [str(one.type[0]) for one in function.code.parameters if one.type is not None]
    names += [function.text(one[3]) for one in function.by_opcode[op.NAME]]
    kinds = (function.unit.ir.constants[one[3]] for code in (op.DECLARE, op.CONSTRUCT) for one in function.by_opcode[code])
    names += [str(kind[0]) for kind in kinds if kind is not None]
    full = (facts.cpp.spellings(function.unit, "", name)[0] for name in names if "::" in name)
    return any(
        first_part(name) in function.unit.models.marked("python-object") and not any(word in name for word in _NO_OBJECT) for name in full
    )


def _named(operation: DeviceOperation, span: Span) -> ops.Operation:
    return ops.Operation(span, operation.library, operation.name.replace("::", "."))
