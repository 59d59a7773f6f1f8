"""Which blocks are still referred to: by names, attributes, elements, closures, results, and the graph of a backward pass.

Nothing is counted as the path runs. Once a block is in use on a second stream, what the code at hand can still reach is looked at behind
each statement; what it cannot reach was dropped there.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamlint import operations as ops
from streamlint.findings import Span
from streamlint.interpreter.blocks import conflict_of, open_use
from streamlint.interpreter.gradients import recording
from streamlint.interpreter.reach import contents, reachable
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Buffer, Environment, Series, Storage, Stream, Table, Value

_MOST_VALUES = 8000
_MOST_LOOKS = 1500


def allocated(run: Run, storage: Storage, span: Span, stream: Stream) -> None:
    """Memory that was just made comes from the pool of the stream that is current."""
    if storage.raw or storage.on_host:
        return
    if run.machine.captures.step is not None or run.context.beside is not None:
        return  # a graph has a pool of its own; a thread's path is not this one
    run.machine.blocks.add(storage, stream, span, run.context.calls, len(run.machine.operations))


def may_work(run: Run, target: Storage, operands: Iterable[Buffer], span: Span, name: str, new: bool) -> None:
    """Work on tensors that may be on a device or on the host: if on a device, then on the current stream. ``new``: the target was made."""
    if run.file.is_cuda or target.on_host or target.library not in ("torch", ""):
        return
    machine, stream = run.machine, run.stream_of("torch")
    operands = [b for b in operands if not b.storage.on_host]
    if new:
        allocated(run, target, span, stream)
        target.grad = recording(run) and (not operands or any(b.storage.grad for b in operands))
        target.inputs = tuple(b.storage for b in operands) if target.grad else ()
    work = ops.Launch(span, "torch", name, run.context, len(machine.operations), stream=stream, kind="compute", assumed=True)
    use(run, work, stream, (Buffer(target), *operands))


def use(run: Run, work: ops.Operation, stream: Stream, buffers: Iterable[Buffer]) -> None:
    """Work that stands on no list of operations: all that matters of it is whose memory it uses, and when."""
    machine = run.machine
    stamp = machine.clocks.issue(machine.know(stream).key)
    for buffer in buffers:
        if buffer.storage.block is not None:
            taken = machine.blocks.use(buffer.storage.block, work, stamp, machine.clocks)
            machine.conflicts.extend([taken] if taken is not None else [])


def kept(run: Run, values: Iterable[Value]) -> None:
    """Code out of view has these values, and may keep them."""
    if run.machine.blocks.all:
        for value in reachable(list(values)):
            if isinstance(value, Buffer) and value.storage.block is not None:
                value.storage.block.kept = True


def settle(run: Run, span: Span, *more: Value) -> None:
    """Behind a statement: what nobody can reach any more goes back to its pool."""
    blocks = run.machine.blocks
    if not blocks.crossed:
        return
    blocks.prune(run.machine.clocks)
    if not blocks.crossed or run.looks >= _MOST_LOOKS:
        return
    run.looks += 1
    alive = living(run, more)
    if alive is None:
        return
    for block in list(blocks.crossed):
        if id(block) not in alive:
            drop = ops.Drop(span, block.storage.library, "drop", allocated=block.allocated, calls=block.calls, stream=block.stream)
            run.machine.note(drop)
            blocks.drop(block, drop)


def living(run: Run, more: Iterable[Value] = ()) -> set[int] | None:
    """The blocks that code at hand can reach, by identity; None where there is too much to look at."""
    stack: list[Value] = [*more, *run.rooted, *run.held, *run.globals.values(), *run.memo.values()]
    stack += [scope.names[name] for scope, name in run.statics.values()]
    scopes: set[int] = set()
    for frame in (*run.frames, *run.asleep):
        if frame.this is not None:
            stack.append(frame.this)
        scope: Environment | None = frame.environment
        while scope is not None and id(scope) not in scopes:
            scopes.add(id(scope))
            stack.extend(scope.names.values())
            scope = scope.parent
    seen: set[int] = set()
    alive: set[int] = set()
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if len(seen) > _MOST_VALUES:
            return None
        if isinstance(value, Buffer):
            _held_by(value.storage, alive, seen)
        elif isinstance(value, Series | Table) and value.element is not None:
            stack.append(value.element)
        stack.extend(contents(value))
    return alive


def _held_by(storage: Storage, alive: set[int], seen: set[int]) -> None:
    """A tensor holds its own block, and those that its graph saved for the backward pass."""
    stack = [storage]
    while stack:
        each = stack.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if each.block is not None:
            alive.add(id(each.block))
        stack.extend(each.inputs)


def left(run: Run) -> None:
    """The root has returned. Its caller's stream is where it allocates next: what was dropped there is given out again."""
    machine = run.machine
    machine.blocks.prune(machine.clocks)
    for block in machine.blocks.free:
        use = open_use(block, machine.clocks)
        if use is not None and block.dropped is not None and block.stream.kind in ("ambient", "null"):
            machine.conflicts.append(conflict_of(block, use, block.dropped))


# --- what a backward pass holds ----------------------------------------------------------------------------------------------------------


def computed(run: Run, result: Storage, operands: Iterable[Storage]) -> None:
    """A result of PyTorch's keeps its operands for the backward pass, if any of them may need a gradient."""
    operands = [each for each in operands if each is not result]
    result.grad = result.library != "cupy" and recording(run) and any(each.grad for each in operands)
    if result.grad:
        result.inputs = (*result.inputs, *operands)


def worked_on(run: Run, target: Storage, operands: Iterable[Storage]) -> None:
    """The same for work in place: the target keeps what it had, too."""
    if recording(run):
        others = tuple(each for each in operands if each is not target)
        if any(each.grad for each in others):
            target.grad = True
            target.inputs = (*target.inputs, *others)
