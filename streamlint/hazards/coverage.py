"""What was read and understood of a program: the figures of ``--coverage``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from streamlint.config.options import Options, Source
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject, Memory, is_unknown
from streamlint.findings import Reported
from streamlint.hazards.context import Context
from streamlint.hazards.findings import Lowered, context_of
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer import launch_rows, launches
from streamlint.transfer.actions import Lost
from streamlint.transfer.launch_rows import Queued
from streamlint.transfer.launches import Launches
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import EFFECTS

_MOST = 20  # unknown calls that are named
_COPYING = frozenset({"copy", "transfer"})
_NAMED = frozenset({launch_rows.GIVEN, launch_rows.HANDLE, launch_rows.POLICY, launch_rows.CONFIG, launch_rows.OWN})


def find(sources: Sequence[Source], options: Options, lowered: Lowered) -> Reported:
    """The figures of the sources."""
    context = context_of(sources, options, lowered)
    figures = _figures(context)
    return Reported([], context.facts.solver.cut, coverage=figures)


def _figures(context: Context) -> dict[str, object]:
    transfer, queues = context.transfer, Launches(context.transfer)
    operations, copies = set[tuple[Function, Instruction]](), dict[tuple[Function, Instruction], bool]()
    for call in transfer.sites(frozenset(EFFECTS) | launches.WORKING):
        place = call.function, call.instruction
        operations.add(place)
        if call.row.effect in _COPYING:
            copies[place] = is_memory_known(call)
    functions = {function for function, _ in operations}
    functions |= {each for unit in context.program.units.values() if unit.is_cpp for each in unit.functions if each.by_opcode[op.LAUNCH]}
    work = [(function, *each) for function in sorted(functions, key=_order) for each in queues.of(function)]
    known = {(function, one): _is_stream_known(context, function, queued) for function, one, queued in work if queued.kind != "copy"}
    opaque = Counter(name for function in functions for name in _lost(context, function))
    return {
        "functions": sum(len(unit.ir) for unit in context.program.units.values()),
        "operations": len(operations),
        "launches": len(known),
        "launches_known": sum(known.values()),
        "copies": len(copies),
        "copies_known": sum(copies.values()),
        "opaque": sorted(opaque.items(), key=lambda item: (-item[1], item[0]))[:_MOST],
    }


def _order(function: Function) -> tuple[int, int]:
    return function.unit.number, function.code.number


def _is_stream_known(context: Context, function: Function, queued: Queued) -> bool:
    """Whether it is known which stream work is put on."""
    if queued.how not in _NAMED or queued.operand < 0:
        return queued.how not in _NAMED
    held = list(context.transfer.values(function, queued.operand))
    return not is_unknown(held)


def is_memory_known(call: ModelledCall) -> bool:
    """Whether it is known where the memory is that a copy reads and writes, and of the host's whether it is pinned."""
    if call.row.effect == "copy":
        sides = [side for key in ("dst", "src") if (side := call.one(key)) is not None]
    else:
        sides = [side for side in (call.one("of", call.receiver),) if side is not None]
    return bool(sides) and all(_is_known(call, side) for side in sides)


def _is_known(call: ModelledCall, register: int) -> bool:
    held = call.memory(register)
    return bool(held) and all(one.space in ("device", "managed") or (one.space == "host" and one.pinning != "unknown") for one in held)


def _lost(context: Context, function: Function) -> Iterator[str]:
    """The names of the unknown functions that a function passes memory, streams or events."""
    for one in function.code.instructions():
        if one[0] not in (op.CALL, op.INVOKE):
            continue
        for action in context.transfer.of(function, one):
            if isinstance(action, Lost) and any(_is_followed(context, function, register) for register in action.registers):
                yield called_name(function, one)


def _is_followed(context: Context, function: Function, register: int) -> bool:
    held = context.transfer.values(function, register)
    return any(isinstance(value, Memory) or (isinstance(value, LibraryObject) and value.kind in ("stream", "event")) for value in held)


def called_name(function: Function, one: Instruction) -> str:
    """The name of what a call calls, as it is written."""
    if one[0] == op.INVOKE:
        made = function.definitions[one[3]]
        is_given = made is not None and made[0] == op.PARAM
        receiver = function.code.parameters[made[3]].name if made is not None and is_given else function.dotted(one[3])
        return f"{receiver}.{function.text(one[4])}" if receiver else function.text(one[4])
    return function.dotted(one[3]) or "a value"
