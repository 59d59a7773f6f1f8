"""Blocks of memory that a pool takes back at the last reference and hands out again on the stream that they were allocated on.

PyTorch's caching allocator and CuPy's pool keep a free list a stream: a block may be given to the stream's next allocation at once,
whatever other streams still do with it. ``record_stream`` makes PyTorch wait for that stream. This module knows clocks and no references:
what is still referred to is told by ``holding``.
"""

from __future__ import annotations

from streamlint import operations as ops
from streamlint.cuda_model import Clocks, Stamp, covers
from streamlint.findings import Span
from streamlint.interpreter.values import Buffer, Storage, Stream
from streamlint.record import field, record

SMALL = 1 << 20  # PyTorch has pools of their own for blocks of up to 1 MB (CUDACachingAllocator.cpp, kSmallSize)


@record(eq=False, slots=True)
class Block:
    """A block in use. ``uses`` is the last use on each stream other than its own."""

    stream: Stream
    storage: Storage
    allocated: Span
    calls: tuple[Span, ...]
    born: int  # operations of the path before it
    uses: dict[str, tuple[ops.Operation, Stamp]] = field(default_factory=dict)
    recorded: set[str] = field(default_factory=set)  # streams that the allocator waits for
    kept: bool = False  # code out of view may have a reference
    touched: bool = False
    dropped: ops.Drop | None = None


class Blocks:
    """The blocks of a path: those in use on a second stream (``crossed``), and those that went back to their stream's free list."""

    def __init__(self) -> None:
        self.all: list[Block] = []
        self.crossed: list[Block] = []
        self.free: list[Block] = []
        self.recorded_at: set[Span] = set()  # allocations whose memory was recorded on another stream

    def add(self, storage: Storage, stream: Stream, span: Span, calls: tuple[Span, ...], born: int) -> None:
        storage.block = Block(stream, storage, span, calls, born)
        self.all.append(storage.block)

    def record_use(self, block: Block | None, stream: Stream | None) -> None:
        """``record_stream``; of memory that is not followed it may be for any block."""
        for each in [block] if block is not None else self.all:
            if stream is None:
                each.kept = True
            else:
                each.recorded.add(stream.key)
            self.recorded_at.add(each.allocated)

    def use(self, block: Block, operation: ops.Operation, stamp: Stamp, clocks: Clocks) -> ops.Conflict | None:
        """A device access to the block; the first one tells whether it was behind what others still do with a block that is free."""
        if isinstance(operation, ops.Copy) and operation.direction is ops.Direction.H2D and not block.storage.on_device:
            return None  # what goes to the device was not there
        if stamp.stream != block.stream.key:
            block.uses[stamp.stream] = (operation, stamp)
            if block.dropped is None and all(block is not other for other in self.crossed):
                self.crossed.append(block)
        if block.touched:
            return None
        block.touched = True
        return self._taken(block, operation, stamp, clocks) if self.free else None

    def _taken(self, new: Block, operation: ops.Operation, stamp: Stamp, clocks: Clocks) -> ops.Conflict | None:
        clock = clocks.of(stamp.stream)
        for old in self.free:
            if old.dropped is None or old.stream.key != new.stream.key or new.born < old.dropped.index or not _may_fit(old, new):
                continue
            for key, (use, used) in old.uses.items():
                if key not in old.recorded and not covers(clock, used) and not clocks.host_sees(used):
                    self.free.remove(old)
                    return conflict_of(old, use, operation)
        return None

    def prune(self, clocks: Clocks) -> None:
        """Forget uses that the block's own stream is behind: whatever is allocated there comes after them."""
        self.crossed = [block for block in self.crossed if open_use(block, clocks) is not None]
        self.free = [block for block in self.free if open_use(block, clocks) is not None]

    def drop(self, block: Block, operation: ops.Drop) -> None:
        """The last reference is gone."""
        self.crossed = [other for other in self.crossed if other is not block]
        block.dropped = operation
        self.free.append(block)


def open_use(block: Block, clocks: Clocks) -> ops.Operation | None:
    """A use on another stream that neither the block's stream, nor the host, nor the allocator waits for."""
    if block.kept:
        return None
    for key, (use, stamp) in block.uses.items():
        if key not in block.recorded and not clocks.ordered(stamp, block.stream.key):
            return use
    return None


def conflict_of(block: Block, use: ops.Operation, second: ops.Operation) -> ops.Conflict:
    return ops.Conflict(use, second, "lifetime", 0, True, Buffer(block.storage), block.dropped)


def _may_fit(old: Block, new: Block) -> bool:
    """Whether the one can be given out for the other: blocks of the two size classes never are."""
    one, two = old.storage.nbytes, new.storage.nbytes
    return one is None or two is None or (one <= SMALL) == (two <= SMALL)
