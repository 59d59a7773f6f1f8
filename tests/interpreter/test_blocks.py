"""Blocks that go back to a pool: the machine by itself, with no code that could hold a reference."""

from __future__ import annotations

import pytest

from streamlint import operations as ops
from streamlint.findings import Span
from streamlint.interpreter.machine import Machine
from streamlint.interpreter.values import Buffer, Event, Storage, Stream
from streamlint.operations import Memory


class Pool:
    """A machine on which streams make, use and drop blocks by name: ``make a x; use b x; drop x; make a y``."""

    def __init__(self, program: str) -> None:
        self.machine = Machine()
        self.buffers: dict[str, Buffer] = {}
        self.streams = {name: Stream(name, "created", name == "x", "torch") for name in "abcx"}
        self.streams["null"] = Stream("null", "null", None, "torch")
        self.event = Event("e")
        for row, step in enumerate(program.split(";"), 1):
            word, *names = step.split()
            getattr(self, word)(Span("p", row, 1, row, 2), *names)

    def make(self, span: Span, stream: str, name: str, nbytes: str = "") -> None:
        self.empty(span, stream, name, nbytes)
        self._launch(span, stream, name, write=True)

    def empty(self, span: Span, stream: str, name: str, nbytes: str = "") -> None:
        storage = Storage(Memory.DEVICE, name, nbytes=int(nbytes) if nbytes else None)
        self.machine.blocks.add(storage, self.streams[stream], span, (), len(self.machine.operations))
        self.buffers[name] = Buffer(storage)

    def use(self, span: Span, stream: str, name: str) -> None:
        self._launch(span, stream, name, write=False)

    def _launch(self, span: Span, stream: str, name: str, write: bool) -> None:
        buffers = (self.buffers[name],)
        reads, writes = ((), buffers) if write else (buffers, ())
        self.machine.launch(ops.Launch(span, stream=self.streams[stream], reads=reads, writes=writes))

    def drop(self, span: Span, name: str) -> None:
        block = self.buffers[name].storage.block
        assert block is not None
        drop = ops.Drop(span, allocated=block.allocated, stream=block.stream)
        self.machine.note(drop)
        self.machine.blocks.drop(block, drop)

    def recorded(self, span: Span, name: str, stream: str) -> None:
        self.machine.blocks.record_use(self.buffers[name].storage.block, self.streams[stream])

    def record(self, span: Span, stream: str) -> None:
        self.machine.record(ops.Record(span, event=self.event, stream=self.streams[stream]))

    def wait(self, span: Span, stream: str, on: str) -> None:
        self.machine.wait(ops.Wait(span, stream=self.streams[stream], on=self.event if on == "e" else self.streams[on]))

    def sync(self, span: Span, stream: str) -> None:
        self.machine.synchronize(ops.Synchronize(span, of=self.streams[stream]))

    @property
    def found(self) -> list[tuple[int, int, int]]:
        """The use, the drop and the next owner of each block that is taken too early, by row."""
        return [(c.first.span.row, c.drop.span.row, c.second.span.row) for c in self.machine.conflicts if c.drop is not None]


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        pytest.param("make a x; wait b a; use b x; drop x; make a y", [(3, 4, 5)], id="taken under a reader"),
        pytest.param("make a x; use a x; drop x; make a y", [], id="one stream"),
        pytest.param("make a x; wait b a; use b x; drop x; make c y", [], id="the pool of a third stream"),
        pytest.param("make a x; wait b a; use b x; make a y; drop x", [], id="the next block was there before"),
        pytest.param("make a x; wait b a; use b x; drop x; empty a y", [], id="allocated, and not touched"),
        pytest.param("make a x; wait b a; use b x; drop x; empty a y; wait a b; use a y", [], id="touched behind a wait"),
        pytest.param("make a x; wait b a; use b x; drop x; empty a y; use b y", [], id="touched by the reader's own stream"),
        pytest.param("make a x; wait b a; use b x; drop x; empty a y; use c y", [(3, 4, 6)], id="touched by a third stream"),
        pytest.param("make a x; wait b a; use b x; wait c a; use c x; wait a b; drop x; make a y", [(5, 7, 8)], id="one of two readers"),
        pytest.param("make a x; wait b a; record b; use b x; wait a e; drop x; make a y", [(4, 6, 7)], id="an event before the use"),
        pytest.param("make a x 4096; wait b a; use b x; drop x; make a y 4194304", [], id="another size class"),
        pytest.param("make a x 4194304; wait b a; use b x; drop x; make a y 2097152", [(3, 4, 5)], id="a part of a large block"),
        pytest.param("make a x; wait b a; recorded x a; use b x; drop x; make a y", [(4, 5, 6)], id="recorded on its own stream"),
        pytest.param("make x x; use null x; drop x; make x y", [], id="the barrier of the null stream"),
    ],
)
def test_taken(program: str, expected: list[tuple[int, int, int]]) -> None:
    assert Pool(program).found == expected


@pytest.mark.parametrize(
    "program",
    [
        "make a x; wait b a; use b x; *wait a b; drop x; make a y",
        "make a x; wait b a; use b x; drop x; *wait a b; make a y",
        "make a x; wait b a; use b x; record b; *wait a e; drop x; make a y",
        "make a x; wait b a; use b x; *sync b; drop x; make a y",
        "make a x; wait b a; use b x; *recorded x b; drop x; make a y",
    ],
)
def test_one_operation_keeps_it(program: str) -> None:
    assert Pool(program.replace("*", "")).found == []
    steps = [step for step in program.split(";") if not step.strip().startswith("*")]
    assert len(Pool(";".join(steps)).found) == 1
