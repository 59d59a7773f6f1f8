"""Copies between memory of the host and of devices."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import Selector
from streamlint.transfer.actions import NAMED, NULL, Action, Copied, Read, Viewed
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.updates import launched
from streamlint.waits.operands import is_element_type

_DIRECTIONS = {("host", "device"): "d2h", ("device", "host"): "h2d", ("host", "host"): "h2h", ("device", "device"): "d2d"}


def copy(call: ModelledCall) -> Iterator[Action]:
    """``dst.copy_(src)``, ``cudaMemcpyAsync``."""
    if is_within(call):
        yield from launched(call) if is_algorithm(call) else ()
        return
    target, source = call.one("dst"), call.one("src")
    direction = copied_direction(call, target, source)
    yield _copied(call, op.NONE if target is None else target, op.NONE if source is None else source, direction)
    if direction == "h2h" and source is not None and call.row.library in call.facts.models.marked("computes-on-host"):
        yield Read(source, call.name, False)  # by the host itself, whatever streams do
    if target is not None and call.row.get("result") == "self":
        yield Viewed(target)


def is_within(call: ModelledCall) -> bool:
    """Whether a copy that is one between the host and a device alone is not shown to be that."""
    return bool(call.row.get("across")) and copied_direction(call, call.one("dst"), call.one("src")) not in ("d2h", "h2d")


def is_algorithm(call: ModelledCall) -> bool:
    """Whether a copy is an algorithm as others are, which runs where its policy or its iterators say."""
    return bool(call.row.get("policy")) and is_within(call)


def transfer(call: ModelledCall) -> Iterator[Action]:
    """``x.to(device)``, ``x.cpu()``, ``cupy.asnumpy(x)``: new memory elsewhere, or the same where it is there already."""
    source = call.one("of", call.receiver)
    if source is None:
        return
    out, to = call.one("out"), call.row.get("to")
    target = call.result if out is None else out
    named = call.device_spaces()
    spaces = named or {value.space for value in call.memory(call.result)}
    if to == "host" or (to == "argument" and "host" in spaces and named):
        if not call.is_on_host(source):
            yield _copied(call, target, source, "d2h")
        if "device" in spaces:  # a setting says which of the two it is
            yield _copied(call, target, source, "h2d")
        if call.space(source) != "device":
            yield Viewed(source)
    elif to == "device" or ("device" in spaces and not (to == "argument" and not named and _is_cast(call))):
        yield _copied(call, target, source, "h2d")
    else:
        yield Viewed(source, casts=_is_cast(call))


def _is_cast(call: ModelledCall) -> bool:
    registers = [*call.all("device"), *call.all("dtype")]
    return any(is_element_type(call.facts, call.function, register) for register in registers)


def _copied(call: ModelledCall, target: int, source: int, direction: str) -> Copied:
    flag, asynchronous = call.switch("asynchronous")
    stream = call.stream()
    if call.row.library == "numba" and stream.kind == NULL:
        asynchronous = False
    elif asynchronous is None and flag == op.NONE and stream.kind == NAMED and call.row.get("asynchronous") == call.row.get("stream"):
        asynchronous = True  # it is asynchronous on any stream but the default one
    return Copied(target, source, stream, asynchronous, flag, direction, call.call)


def copied_direction(call: ModelledCall, target: int | None, source: int | None) -> str:
    """``h2d``, ``d2h``, ``d2d``, ``h2h``, ``peer``; where one side is not known, both: ``host<unknown`` is to the host."""
    held = call.row.get("direction")
    said = str(held) if not isinstance(held, Selector) else ""
    if isinstance(held, Selector):
        register = call.given(held)
        said = (call.word(register) if register is not None else held.default) or "infer"
    if said != "infer":
        return said
    sides = ["unknown" if side is None else call.space(side) for side in (target, source)]
    return _DIRECTIONS.get((sides[0], sides[1]), f"{sides[0]}<{sides[1]}")


EFFECTS = {"copy": copy, "transfer": transfer}
