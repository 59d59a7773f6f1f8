"""Copies from memory at hand to memory at hand: their direction, and what is known of their host side."""

from __future__ import annotations

import functools
from collections.abc import Callable

from streamlint import operations as ops
from streamlint import program as p
from streamlint.interpreter.effects import Call, buffer_of
from streamlint.interpreter.effects.host import host_write, read_values
from streamlint.interpreter.effects.sizes import becomes_whole, beginning, bytes_held, bytes_told, is_of_array, is_small
from streamlint.interpreter.effects.streams import stream_argument
from streamlint.interpreter.file import File
from streamlint.interpreter.gradients import is_gradient
from streamlint.interpreter.handed import passed_at, presumed
from streamlint.interpreter.run import Run, family
from streamlint.interpreter.values import Buffer, Const, Opaque, Series, Storage, Stream, Value
from streamlint.models.vocabulary import Selector
from streamlint.operations import Direction, Evidence, Memory


def _copy(call: Call) -> Value:
    run = call.run
    dst = beginning(_side(call, "dst"), call.value("bytes"))
    src = beginning(_side(call, "src"), call.value("bytes"))
    direction = _direction(call, dst, src)
    if direction is Direction.UNKNOWN and _downloads(call, dst) and src is not None and presumed(run, src) is not None:
        direction = Direction.D2H
    if direction is Direction.UNKNOWN and _takes_gradient(call, dst, src):
        direction = Direction.D2D
    asked = _asked(call, dst, src) if direction is Direction.UNKNOWN else None
    if asked is not None:
        direction = asked
        made = dst.storage.made if dst is not None and asked is Direction.H2D else None
        if dst is not None and made is not None and not isinstance(made.operation, ops.Entry):
            presumed(run, dst)
    else:
        _settle_place(dst, src, direction)
    if direction is Direction.H2H:
        _host_copy(call, dst, src)
        return call.receiver or call.status()
    stream = stream_argument(call)
    asynchronous = call.switch("asynchronous")
    nbytes = bytes_told(call.value("bytes"))
    on_device = src if direction is Direction.D2H else dst
    evidence = on_device.storage.evidence if on_device is not None and on_device.storage.on_device else Evidence.NONE
    if run.file.is_cuda or call.library in ("cuda_python", "cupy", "numba"):
        evidence = Evidence.LITERAL
    if asked is not None:
        evidence = Evidence.ASKED
    issue_copy(
        call, dst, src, direction, asynchronous=is_asynchronous(call, asynchronous, stream), stream=stream, evidence=evidence, nbytes=nbytes
    )
    return call.receiver if call.receiver is not None and not run.file.is_cuda else call.status()


def _downloads(call: Call, dst: Buffer | None) -> bool:
    """PyTorch: page-locked memory is filled without blocking; from the host nobody asks for that."""
    return dst is not None and dst.storage.memory is Memory.PINNED and call.library == "torch" and call.switch("asynchronous") is True


def _takes_gradient(call: Call, dst: Buffer | None, src: Buffer | None) -> bool:
    """PyTorch: between memory of a device and a gradient. Gradients are where the model is, and who trains on the host has no device."""
    if call.library != "torch":
        return False
    return any(
        _place(one) is True and other is not None and _place(other) is None and value is not None and is_gradient(value)
        for one, other, value in ((dst, src, call.value("src")), (src, dst, call.value("dst")))
    )


def _asked(call: Call, dst: Buffer | None, src: Buffer | None) -> Direction | None:
    """PyTorch: a copy that must not block, with the host on one side and what is not known on the other: from host to host nobody asks.

    Code for any device does, where that is the CPU: but where one function was handed the devices of both sides, and tells them apart.
    """
    if call.library != "torch" or call.switch("asynchronous") is not True:
        return None
    chosen = any(side is not None and side.storage.by_choice for side in (dst, src))
    if chosen and not (dst is not None and src is not None and _told_apart(dst.storage, src.storage)):
        return None
    if _place(dst) is False:
        return Direction.D2H
    return Direction.H2D if src is not None and _place(src) is False and not _has_come(call.run, src) else None


def _told_apart(one: Storage, other: Storage) -> bool:
    """Whether two memories were made in one function for two devices that it was handed."""
    first, second = one.for_device, other.for_device
    return first is not None and second is not None and first[0] == second[0] and first[1] != second[1]


def _has_come(run: Run, buffer: Buffer) -> bool:
    """Whether the function at hand has just brought it to the host: who does that sends it elsewhere than back."""
    calls = run.context.calls
    fetched = (o for o in run.machine.operations if isinstance(o, ops.Copy) and o.direction is Direction.D2H and o.context.calls == calls)
    return any(copy.dst is not None and copy.dst.storage is buffer.storage for copy in fetched)


def is_asynchronous(call: Call, asynchronous: bool | None, stream: Stream | None) -> bool:
    """Whether a copy was asked to be asynchronous. numba: it is wherever a stream other than 0 is given."""
    if asynchronous is True and call.library == "numba":
        return stream is not None and stream.kind != "null"
    return asynchronous is True


def _side(call: Call, name: str) -> Buffer | None:
    value = call.value(name)
    if isinstance(value, Series | Const) and not call.run.file.is_cuda:
        return Buffer(call.run.storage(Memory.PAGEABLE, "literal", small=True), type="numpy.ndarray")
    takes_addresses = not call.run.file.is_cuda and call.row.get("bytes") is not None
    if isinstance(value, Opaque) and value.buffer is None and takes_addresses:
        value.made = None  # an address is a number: to compute it is no work of the device
    return buffer_of(call.run, value)


_DIRECTIONS = {"h2d": Direction.H2D, "d2h": Direction.D2H, "d2d": Direction.D2D, "h2h": Direction.H2H, "peer": Direction.PEER}


def _direction(call: Call, dst: Buffer | None, src: Buffer | None) -> Direction:
    field = call.row.get("direction")
    word = field if isinstance(field, str) else None
    if isinstance(field, Selector):
        value = call.given(field)
        word = _direction_word(call.run, value) if value is not None else field.default or "infer"
    if word in _DIRECTIONS:
        return _DIRECTIONS[word]
    to_device, from_device = _place(dst), _place(src)
    if to_device and from_device:
        return Direction.D2D
    if to_device and from_device is False:
        return Direction.H2D
    if to_device is False and from_device:
        return Direction.D2H
    if to_device is False and from_device is False:
        return Direction.H2H
    if word == "infer" and call.run.file.is_cuda and call.switch("asynchronous"):
        # Between host and host nobody would ask for a stream.
        if to_device is False:
            return Direction.D2H
        if from_device is False:
            return Direction.H2D
    return Direction.UNKNOWN


def _direction_word(run: Run, value: Value) -> str | None:
    if isinstance(value, Const):
        numbers: dict[object, str] = {0: "h2h", 1: "h2d", 2: "d2h", 3: "d2d"}
        return value.value if isinstance(value.value, str) else numbers.get(value.value)
    last = value.term.rpartition("::")[2].rpartition(".")[2]
    return run.file.models.constants.get(last) or run.file.models.constants.get(value.term)


def _place(buffer: Buffer | None) -> bool | None:
    if buffer is None or (buffer.storage.memory in (Memory.UNKNOWN, Memory.MANAGED) and not buffer.storage.host):
        return None
    return buffer.storage.on_device


def _settle_place(dst: Buffer | None, src: Buffer | None, direction: Direction) -> None:
    """A copy's direction says where pointers point that nothing was known of."""
    for buffer, on_device in (
        (dst, direction in (Direction.H2D, Direction.D2D, Direction.PEER)),
        (src, direction in (Direction.D2H, Direction.D2D, Direction.PEER)),
    ):
        if buffer is not None and buffer.storage.memory is Memory.UNKNOWN and on_device:
            buffer.storage.memory = Memory.DEVICE
            buffer.storage.evidence = Evidence.DERIVED


def _host_copy(call: Call, dst: Buffer | None, src: Buffer | None) -> None:

    if src is not None:
        read_values(call.run, [src], call.span, call.name)
    if dst is not None:
        host_write(call.run, dst, call.span, call.name)


def issue_copy(
    call: Call,
    dst: Buffer | None,
    src: Buffer | None,
    direction: Direction,
    *,
    asynchronous: bool,
    stream: Stream | None,
    evidence: Evidence,
    nbytes: int | None = None,
) -> None:
    """Put a copy on the path, with what is known of its host side."""
    host = src if direction is Direction.H2D else dst if direction is Direction.D2H else None
    storage = host.storage if host is not None else None
    small = storage is not None and storage.small
    size = nbytes if nbytes is not None else bytes_held(host)
    memory = storage.memory if storage is not None else Memory.UNKNOWN
    # A gapped source is made contiguous in new pageable memory first (Copy.cu).
    gapped = host is not None and host.gapped and memory is Memory.PINNED and family(call.library) == "torch"
    effective = Memory.PAGEABLE if gapped else memory
    if memory is Memory.DEVICE or memory is Memory.MANAGED:
        effective = Memory.UNKNOWN
    if storage is not None and storage.fresh and memory is Memory.UNKNOWN and (storage.host or call.row.get("direction") == "h2d"):
        effective = Memory.PAGEABLE
    of_array = is_of_array(call.value("bytes"))
    operation = ops.Copy(
        call.span,
        call.library,
        call.name,
        dst=dst,
        src=src,
        stream=stream,
        direction=direction,
        asked_async=asynchronous,
        nbytes=size,
        known_small=small or is_small(size),
        counted=size is None and not of_array and storage is not None and (storage.counted or becomes_whole(call)),
        of_array=of_array,
        evidence=evidence,
        host_memory=effective,
        host_gapped=gapped,
        pinning_asked=asks_for_pinning(call.run.frames[-1].function, call.run.file),
        host_passed_at=passed_at(call.run, storage) if storage is not None else None,
        trail=storage.trail if storage is not None else (),
    )
    call.run.machine.copy(operation)
    if direction is Direction.H2D and not asynchronous and stream is not None and family(call.library) == "torch":
        # CUDAFunctions.h, memcpy_and_sync: the stream is synchronized behind the copy, which is more than cudaMemcpy does.
        call.run.machine.host_waits(stream)
    within = direction in (Direction.D2D, Direction.PEER)
    call.run.coverage.copies[(call.span, call.name)] = within or (storage is not None and memory is not Memory.UNKNOWN)


def asks_for_pinning(function: p.Function | None, file: File) -> bool:
    """Whether a function asks if memory is pinned: what it then copies from pageable memory it copies knowingly."""
    if function is None or not (file.is_cuda or file.mentions("is_pinned")):  # in C++ a macro may hold the word
        return False
    return _asks_for_pinning(function)


@functools.lru_cache(maxsize=4096)
def _asks_for_pinning(function: p.Function) -> bool:
    return any(isinstance(node, p.Attr) and node.name == "is_pinned" for statement in function.body for node in p.walk(statement))


EFFECTS: dict[str, Callable[[Call], Value]] = {
    "copy": _copy,
}
