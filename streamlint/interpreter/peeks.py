"""Places where the host waits for the device, as a path meets them; those in hot loops become operations when the path is over."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from streamlint import operations as ops
from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter.at_hand import contains, enclosing
from streamlint.interpreter.guards import called_name, loop_kind
from streamlint.interpreter.hot import has_few_rounds, is_hot
from streamlint.interpreter.idle import computed_after, covers, fetched, hangs_on, queued_before
from streamlint.interpreter.index import walk_module
from streamlint.interpreter.origins import Origin, Settled
from streamlint.interpreter.spelling import says
from streamlint.interpreter.standing import Stand, each_round, way_to
from streamlint.interpreter.uses import is_avoidable, is_constant, is_made_on_host, is_size
from streamlint.interpreter.values import Buffer, Const, Opaque, Series, Value
from streamlint.operations import Context, Evidence
from streamlint.record import record

if TYPE_CHECKING:
    from streamlint.interpreter.run import Frame, Run

# What a wait is for. ``size`` needs the answer on the host for a shape: only with proven CUDA. ``cast`` may meet plain numbers.
# ``number``: a library needs one as an argument, and its result stays on the device.
READ, CAST, SIZE, UPLOAD, DEVICE, CACHE, NUMBER = "read", "cast", "size", "upload", "device", "cache", "number"
_NEEDED = "the round needs the value: a decision, a message or a result depends on it"
Round = tuple[p.Loop, int, ops.LoopFrame]  # a loop, the number of the call frame that it runs in, and its place
_MEASURING = frozenset("test tests benchmark benchmarks bench profile profiles profiler profilers profiling conftest".split())


@record(slots=True)
class Peek:
    """A wait of the host, with its surroundings."""

    what: str
    value: Value | None
    span: Span
    name: str
    api: str
    frames: tuple[Frame, ...]
    context: Context
    stream: str  # that is current: its work is waited for
    queued: int  # how often work may have gone to a stream before
    since: int  # the same, before the value was converted that is fetched
    device: str = ""  # of a wait for a device: what names it
    lead: int = -1  # as ``since``, before the value was computed, where that was the last work
    after: int = -1  # as ``queued``, once the host has the value


def peek(run: Run, what: str, value: Value | None, span: Span, name: str, api: str = "torch", device: str = "") -> None:
    """Remember that the host waits here, if the value is on a device."""
    if api == "torch" and not run.frames[-1].file.is_cuda:
        return  # `waits` tells of PyTorch in Python
    methods = run.settings.all_loops or any("." in frame.qualname for frame in run.frames)
    if run.context.loops or (run.frames[-1].function is not None and methods):
        stream, since = run.stream_of("torch").key, queued_before(run, value)
        run.peeks.append(Peek(what, value, span, name, api, tuple(run.frames), run.context, stream, run.queued, since, device))
        run.peeks[-1].lead = computed_after(run, value, since)
    if what in (READ, CAST):
        fetched(run, value)
        if run.peeks and run.peeks[-1].span == span:
            run.peeks[-1].after = run.queued


def settle(run: Run) -> None:
    """Turn the waits that stand in hot loops, in each of their rounds, into operations at the end of the path."""
    if not run.peeks:
        return
    settled = functools.cache(functools.partial(run.origins.settled, run.settings.all_loops))
    wide = functools.cache(functools.partial(run.origins.settled, wide=True))
    seen: set[tuple[object, ...]] = set()
    told: set[int] = set()  # the numbers of those that are hazards by themselves
    after: defaultdict[int, list[int]] = defaultdict(list)  # by what had been queued: the numbers of those before
    busy: list[tuple[Peek, ops.HostWait]] = []  # the reads that find something to wait for
    needed: list[Peek] = []  # the reads that have to stay
    for number, found in enumerate(run.peeks):
        earlier = [n for n in after[found.since] if covers(run, run.peeks[n], found)]
        after[found.queued].append(number)
        place = (found.span, found.context.calls, found.what)
        if place in seen:
            told.add(number)
            continue
        operation = _judged(run, found, settled)
        if isinstance(operation, str):
            run.passed_over.append((found, operation))
            needed += [found] * (operation == _NEEDED)
            continue
        first = None if any(n in told for n in earlier) else _waited_before(run, found, [run.peeks[n] for n in earlier], wide)
        if first is None:
            seen.add(place)
            told.add(number)
            busy += [(found, operation)] * (found.what in (READ, CAST))
        else:
            operation.behind, operation.rests_on = first
            run.idle.append(operation)
            row = f"line {first[0].row}" if first[0].file == found.span.file else f"{first[0].file}:{first[0].row}"
            run.passed_over.append((found, f"the host has just waited in {row}, and nothing is queued in between"))
        operation.context, operation.index = found.context, len(run.machine.operations)
        run.machine.operations.append(operation)
    for found, operation in busy:
        _compare_with_next(run, found, operation, needed)


def _compare_with_next(run: Run, found: Peek, operation: ops.HostWait, needed: Sequence[Peek]) -> None:
    """A read whose wait only comes forward: right behind it, with nothing queued in between, stands a read that has to stay."""
    loop = _loop_of(run, found)[0]
    stands = _stands(found, loop) if loop is not None else None
    if loop is None or stands is None:
        return
    for later in needed:
        if later.lead - found.after > _asks(later) or run.peeks.index(later) < run.peeks.index(found) or not covers(run, later, found):
            continue
        there = _stands(later, loop) if len(later.frames) > loop[1] and later.frames[loop[1]] is found.frames[loop[1]] else None
        hangs = hangs_on(run, later, there, stands) if there is not None else None
        if hangs is not None:
            operation.behind, operation.rests_on = later.span, hangs
            run.idle.append(operation)
            run.passed_over.append((found, f"the host waits in line {later.span.row} anyway, and nothing is queued in between"))
            return


def _waited_before(run: Run, found: Peek, earlier: Sequence[Peek], settled: Callable[[], Settled]) -> tuple[Span, tuple[str, ...]] | None:
    """The wait right before one, which leaves nothing to wait for, and what it hangs on; None where none of these always is one."""
    loop = _loop_of(run, found)[0] if earlier else None
    stands = _stands(found, loop) if loop is not None else None
    if loop is None or stands is None:
        return None
    for first in reversed(earlier):
        if len(first.frames) <= loop[1] or first.frames[loop[1]] is not found.frames[loop[1]]:
            continue
        origin = settled().origin(first.value) if first.value is not None else None
        there = _stands(first, loop) if first.what == DEVICE or _on_device(first, origin, loop) else None
        hangs = hangs_on(run, first, there, stands) if there is not None else None
        if hangs is not None:
            return first.span, hangs
    return None


def _asks(later: Peek) -> int:
    """How many calls stand in a test itself, if they only ask what its value is like (``torch.isnan(loss)``): work that takes no time."""
    file = later.frames[-1].file
    test = next((node for node in walk_module(file.module) if isinstance(node, p.Call) and node.at == later.span.at), None)
    calls = [node for node in p.walk(test) if isinstance(node, p.Call)] if test is not None else []
    return len(calls) if all(called_name(call.function) in _ASKS for call in calls) else 0


_ASKS = frozenset({"isnan", "isfinite", "isinf", "any", "all"})


def _loop_of(run: Run, found: Peek) -> tuple[Round | None, bool]:
    """The loop whose rounds a wait holds up, and whether it trains."""
    loop = _hot_loop(run, found)
    if loop is None and run.settings.all_loops:
        return _other_loop(run, found), False
    return loop, loop is not None


def _judged(run: Run, found: Peek, settled: Callable[[], Settled]) -> ops.HostWait | str:
    """The wait as an operation; else why it is no hazard."""
    loop, trains = _loop_of(run, found)
    if loop is None:
        return "it stands in no loop that trains"
    if _measures(loop, found):
        return "the code around it tests or measures: waits are its purpose"
    origin: Origin | None = None
    if found.what not in (DEVICE, CACHE):
        origin = settled().origin(found.value) if found.value is not None else None
        if not _on_device(found, origin, loop):
            return "nothing shows that the value is on the device: it comes from no loss, output, parameter or moved batch"
    stands = _stands(found, loop)
    if stands is None:
        return "the way from the loop to it cannot be followed"
    if not all(each_round(stand, loop[0]) for stand in stands):
        return "it is not met in each round: a condition, or a way out of the loop, stands before it"
    if found.what in (READ, CAST) and not is_avoidable(stands, trains, or_stops=not trains and _is_shown(found.value)):
        return _NEEDED
    reason = origin.text if origin is not None else ""
    if found.what == UPLOAD:
        reason = _uploads_needlessly(found, stands[-1], settled)
        if not _uploads_constant(stands[-1]) and not (reason and (run.settings.all_loops or reason == ops.MADE_ON_HOST)):
            return "what is uploaded differs from round to round"
    operation = ops.HostWait(found.span, found.api, found.name, what=found.what, loop=loop[2], origin=reason, trains=trains)
    moves = found.what in (DEVICE, CACHE) and len(stands) > 1
    call = found.frames[loop[1] + 1].call if moves else None
    if call is not None and call.file != found.span.file:  # another file's helper is right, calling it in each round is not
        operation.span, operation.inner = call, found.span
    return operation


def _is_shown(value: Value | None) -> bool:
    """Whether the code at hand puts a value on the device itself."""
    buffer = value.buffer if isinstance(value, Opaque) else value
    return isinstance(buffer, Buffer) and buffer.storage.on_device and buffer.storage.evidence <= Evidence.DEFAULT


def _uploads_constant(stand: Stand) -> bool:
    """``torch.tensor(0.5, device=device)``: what is uploaded is the same in each round."""
    node = stand.node
    if isinstance(node, p.Call) and isinstance(node.function, p.Attr) and node.function.name in ("to", "cuda"):
        node = node.function.value  # `torch.tensor(0.5).to(device)`
    return isinstance(node, p.Call) and bool(node.args) and is_constant(stand, node.args[0].value)


def _uploads_needlessly(found: Peek, stand: Stand, settled: Callable[[], Settled]) -> str:
    """A size, which arithmetic takes as it is, a list of tensors, which ``torch.stack`` joins where they are, or noise and zeros."""
    node = stand.node
    if isinstance(node, p.Call) and isinstance(node.function, p.Attr) and is_made_on_host(node.function.value, stand.file):
        return ops.MADE_ON_HOST
    if isinstance(node, p.Call) and node.args and is_size(node.args[0].value):
        return "a size"
    if isinstance(found.value, Series):
        items = found.value.items or ([found.value.element] if found.value.element is not None else [])
        held = [v for v in items if not isinstance(v, Const)]
        tensors = [v for v in held if (isinstance(v, Buffer) and v.type.startswith("torch.")) or settled().origin(v) is not None]
        return "a list of tensors" if tensors and len(tensors) == len(held) else ""
    return ""


def _on_device(found: Peek, origin: Origin | None, loop: Round) -> bool:
    if found.what == UPLOAD:
        return True
    if found.what == SIZE:
        return _is_shown(found.value)
    return origin is not None and (origin.sure or found.what == READ)


def _owner(frame: Frame) -> p.Class | None:
    return enclosing(frame.file, frame.function)[1] if frame.function is not None else None


def _hot_loop(run: Run, found: Peek) -> Round | None:
    """The innermost hot loop around a wait: its node, the number of the frame that it runs in, and its place."""
    if found.api != "torch":
        return None
    for frame, node, number in _loops_around(run, found):
        file = found.frames[number].file
        if (frame.key in run.heated and not has_few_rounds(node, file)) or is_hot(node, file):
            return node, number, frame
    return None


def _loops_around(run: Run, found: Peek) -> Iterator[tuple[ops.LoopFrame, p.Loop, int]]:
    """The loops around a wait, innermost first, each with the number of the call frame that it runs in."""
    for frame in reversed(found.context.loops):
        node = run.loop_nodes.get(frame.key)
        for number in range(len(found.frames) - 1, -1, -1):
            if node is not None and found.frames[number].file.path == frame.span.file and _within(found.frames[number], node):
                yield frame, node, number
                break


def _other_loop(run: Run, found: Peek) -> Round | None:
    """A loop that only launches."""
    for frame, node, number in _loops_around(run, found) if found.what == DEVICE and found.api != "torch" else ():
        inside = [o for o in run.machine.operations if any(f.key == frame.key for f in o.context.loops)]
        if any(isinstance(o, ops.Launch) for o in inside) and not _host_looks(node, inside):
            return node, number, frame
    return None


def _host_looks(loop: p.Loop, inside: list[ops.Operation]) -> bool:
    """Whether the host reads in the round what the device made: a copy back, or a test of memory that both see."""
    if any(isinstance(o, ops.HostRead) or (isinstance(o, ops.Copy) and o.direction is ops.Direction.D2H) for o in inside):
        return True
    tests = [n.test for s in loop.body for n in p.walk(s) if isinstance(n, p.If | p.Loop | p.Conditional) and n.test is not None]
    return any(isinstance(n, p.Index | p.Deref) for test in tests for n in p.walk(test))


def _within(frame: Frame, node: p.Loop) -> bool:
    return frame.function is None or contains(frame.function.at, node.at)


def _stands(found: Peek, loop: Round) -> tuple[Stand, ...] | None:
    """The bodies from the loop down to the wait; None where the way cannot be followed."""
    node, first, _ = loop
    stands: list[Stand] = []
    for number in range(first, len(found.frames)):
        frame = found.frames[number]
        follows = found.frames[number + 1].call if number + 1 < len(found.frames) else found.span
        if follows is None or follows.file != frame.file.path:
            return None
        body = tuple(node.body) if number == first else tuple(frame.function.body) if frame.function is not None else ()
        way = way_to(body, follows)
        if not way:
            return None
        owner = _owner(frame) or (frame.file.class_named(frame.function.class_name) if frame.function is not None else None)
        stands.append(Stand(frame.file, frame.function, owner, body, node if number == first else None, way))
    return tuple(stands)


def _measures(loop: Round, found: Peek) -> bool:
    """Code that tests or measures: waits are its purpose. A clock, or a new peak of memory, beside a device-wide wait is enough."""
    names = [frame.file.path.replace("\\", "/").rpartition("/")[2] for frame in found.frames[loop[1] :]]
    names += [function for function in found.context.functions if function]
    if any(says(name, _MEASURING) for name in names):
        return True
    called = [frame.function for frame in found.frames[loop[1] + 1 :] if frame.function is not None]
    return found.what in (DEVICE, CACHE) and (loop_kind(loop[0]) == "tuning" or any(map(_looks_at_figures, (loop[0], *called))))


_CLOCKS = ("clock::now", "EventElapsedTime", "EventRecord")
_TIMES = frozenset({"time", "record", "elapsed_time", "tic", "toc", "time_ns", "perf_counter", "process_time"})
_MEASURES = _TIMES | {"reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached"}


def _looks_at_figures(code: p.Node) -> bool:
    for node in p.walk(code):
        if isinstance(node, p.Call):
            called = node.function
            if (isinstance(called, p.Name) and called.id.endswith(_CLOCKS)) or (isinstance(called, p.Attr) and called.name in _MEASURES):
                return True
    return False
