"""SL023: an event that measures time, and whose time nobody asks for."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl023_timing_event_for_sync import TimingEventForSync
from streamlint.facts.code.objects import Constant, LibraryObject
from streamlint.findings import Finding
from streamlint.findings.operations import Operation
from streamlint.hazards.context import Context, span_at, span_of
from streamlint.hazards.event_uses import Events
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer
from streamlint.waits.questions import parts_of

RULE = TimingEventForSync
_UNTIMED = 2
"""The bit of ``cudaEventDisableTiming``."""


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    rule = RULE()
    events = Events(context.transfer)
    for call in context.transfer.sites({"event", "record"}):
        if not _measures(context.transfer, call):
            continue
        uses = events.of(call)
        if uses.is_timed or not uses.orders or (uses.is_lost and events.measures):
            continue
        use = next((site for site, effect in uses.orders if effect != "record"), uses.orders[0][0])
        created = Operation(
            span_at(call.function, call.instruction),
            call.row.library,
            call.name,
            context=context.surroundings(call.function),
        )
        yield rule.report(created, Operation(span_of(use)))


def _measures(transfer: Transfer, call: ModelledCall) -> bool:
    """Whether a call makes an event that measures time, for sure."""
    if call.row.effect == "record" and call.one("event") is not None:
        return False
    if (options := call.one("options")) is not None:
        return _asks_for_time(transfer, call, options)
    if call.row.effect == "record":
        return bool(call.row.get("timing"))
    flags = call.one("flags")
    if flags is None:
        return call.switch("timing")[1] is True
    registers = [one[2] for one in parts_of(call.function, [flags])]
    words = {word for register in registers if (word := call.word(register))}
    numbers = [value.value for value in call.values(flags) if isinstance(value, Constant) and isinstance(value.value, int)]
    if "untimed" in words or any(number & _UNTIMED for number in numbers):
        return False
    return bool(words or numbers)


def _asks_for_time(transfer: Transfer, call: ModelledCall, options: int) -> bool:
    """Whether the options that a call is given say that the event measures time, wherever they are made."""
    node = transfer.facts.values(call.function, options)
    sites = [site for value in list(node.values) if isinstance(value, LibraryObject) for site in list(node.trace(value))[-1:]]
    made = [made.switch("timing")[1] for site in sites for made in transfer.modelled(site.function, site.instruction)]
    return len(node.values) == len(made) > 0 and all(made)
