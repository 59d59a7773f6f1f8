"""What instructions do, in plain words: the facts of a line."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import uncast
from streamlint.facts.code.objects import LibraryObject
from streamlint.hazards.context import Context, span_at, span_of
from streamlint.hazards.coverage import called_name
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.actions import CURRENT, NULL, Copied, Lost, Read, Recorded, Stream, Synchronized, Viewed
from streamlint.transfer.launch_rows import CURRENT as LIBRARY
from streamlint.transfer.launch_rows import FIXED, GIVEN, OMITTED
from streamlint.transfer.launches import Launches
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import CALLING
from streamlint.transfer.waiting import Waited

UNKNOWN_BODY, UNKNOWN = "whose body is unknown", "unknown"
_COPYING = ("copy", "transfer")
_WAYS = {
    "h2d": "a copy to the device",
    "d2h": "a copy from the device",
    "d2d": "a copy on the device",
    "h2h": "a copy on the host",
    "peer": "a copy between devices",
}
_STREAMS = {CURRENT: "the stream that is current", NULL: "the default stream"}
_QUEUED = {OMITTED: "the default stream", FIXED: "the default stream", LIBRARY: "the stream that is current"}


class Copy:
    """A copy of a line: what is known of it."""

    def __init__(self, context: Context, call: ModelledCall, action: Copied) -> None:
        self._context, self.call, self.action = context, call, action
        self.row = span_at(call.function, call.instruction).row
        way = action.direction
        self.direction = way if way in _WAYS else "d2h" if way.startswith("host<") else "h2d" if way.startswith("device<") else ""
        side = action.source if self.direction != "d2h" else action.target
        if self.direction == "d2h" and call.row.effect == "transfer":
            side = call.one("out", call.result) or op.NONE
        self.host = side

    @property
    def sentence(self) -> str:
        """The predicate of a sentence about its line."""
        what = _WAYS.get(self.direction, "a copy whose direction is unknown")
        waits = self.action.asynchronous
        how = "asynchronous" if waits else "synchronous" if waits is False else "asynchronous if its flag says so"
        memory = "no host memory takes part" if self.direction in ("d2d", "peer") else f"its host memory is {self.memory}{self.named}"
        return f"is {what}, {how} ({self.call.name}), on {stream(self._context, self.call.function, self.action.stream)}; {memory}"

    @property
    def memory(self) -> str:
        """What is known of the memory of the host: ``pageable``, ``pinned``, ``managed`` or ``unknown``."""
        held = self.call.memory(self.host)
        kinds = {one.pinning if one.space == "host" else one.space if one.space == "managed" else UNKNOWN for one in held}
        return kinds.pop() if len(kinds) == 1 else UNKNOWN

    @property
    def named(self) -> str:
        """Where the memory comes from, where that has a name."""
        register = uncast(self.call.function, self.host)
        definition = self.call.function.definitions[register] if register >= 0 else None
        if definition is None:
            return ""
        if definition[0] == op.PARAM:
            return f" (parameter `{self.call.function.code.parameters[definition[3]].name}`)"
        name = self.call.function.dotted(self.host)
        return f" (`{name}`)" if name else f" (from line {self.call.function.code.at(definition[1])[0]})" if definition[1] >= 0 else ""

    @property
    def is_dropped(self) -> bool:
        """Whether nothing uses what it fills."""
        target, function = self.action.target, self.call.function
        if self.call.row.effect != "transfer" or target < 0 or target != self.call.result:
            return False
        return not [use for use in function.uses[target] if use is not self.call.instruction]


def copies(context: Context, function: Function, one: Instruction) -> Iterator[Copy]:
    """The copies that an instruction makes."""
    if one[0] in CALLING:
        for call in context.transfer.modelled(function, one):
            if call.row.effect in _COPYING:
                yield from (Copy(context, call, action) for action in context.transfer.of(function, one) if isinstance(action, Copied))


def sentences(context: Context, queues: Launches, function: Function, one: Instruction) -> Iterator[str]:
    """What an instruction does: predicates of sentences about its line."""
    found = list(copies(context, function, one))
    yield from dict.fromkeys(copy.sentence for copy in found)
    if not found and one[0] in (*CALLING, op.LAUNCH):
        for work in queues.at(function, one):
            if work.kind != "copy":
                yield f"is device work ({work.name}) on {_queued(context, function, work.how, work.operand)}"
    if one[0] in CALLING:
        yield from _called(context, function, one, bool(found))


def _called(context: Context, function: Function, one: Instruction, copies: bool) -> Iterator[str]:
    """What a call does besides work."""
    name = called_name(function, one) if one[0] in (op.CALL, op.INVOKE) else ""
    modelled = list(context.transfer.modelled(function, one))
    for action in context.transfer.of(function, one):
        if isinstance(action, Synchronized):
            yield f"makes the host wait ({action.name}) for {target(context, function, action.of)}"
        elif isinstance(action, Waited):
            yield f"makes {stream(context, function, action.stream)} wait ({name})"
        elif isinstance(action, Recorded):
            yield f"records an event ({name}) on {stream(context, function, action.stream)}"
        elif is_read(action) and name:
            yield f"reads memory on the host ({name.rpartition('.')[2]})"
        elif isinstance(action, Lost) and name and not copies:
            yield f"calls `{name}`, {UNKNOWN_BODY}"
    for call in modelled if not copies and not context.transfer.of(function, one) else ():
        yield f"calls `{call.name}`"


def is_read(action: object) -> bool:
    """Whether the host looks at memory."""
    return (isinstance(action, Read) and action.waits) or (isinstance(action, Viewed) and action.announces)


def _queued(context: Context, function: Function, how: str, operand: int) -> str:
    if how == GIVEN:
        return _made(context, function, operand)
    return _QUEUED.get(how, "the stream of its library's object")


def stream(context: Context, function: Function, named: Stream) -> str:
    """A stream, as far as it is known."""
    return _STREAMS.get(named.kind) or _made(context, function, named.register)


def _made(context: Context, function: Function, register: int) -> str:
    values = context.transfer.values(function, register)
    sites = {value.site for value in values if isinstance(value, LibraryObject) and value.site is not None}
    rows = sorted({span_of(site).row for site in sites if site.function.unit is function.unit})
    if len(rows) == 1:
        return f"the stream made in line {rows[0]}"
    definition = function.definitions[register] if register >= 0 else None
    return "a stream that the caller passes" if definition is not None and definition[0] == op.PARAM else "a stream that is not known"


def target(context: Context, function: Function, of: Stream | int | None) -> str:
    """What is waited for."""
    if of is None:
        return "the whole device"
    return stream(context, function, of) if isinstance(of, Stream) else "an event"
