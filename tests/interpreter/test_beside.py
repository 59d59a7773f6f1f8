"""What runs beside the path: another thread's operations stay on the path, and leave no access and no order behind."""

from __future__ import annotations

import pytest

from streamlint import operations as ops
from streamlint.engine import analyse
from streamlint.findings import Span
from streamlint.interpreter.machine import Machine
from streamlint.interpreter.values import Buffer, Event, Storage, Stream
from streamlint.operations import Direction, Memory
from streamlint.options import Options, Source

HERE = Span("a.py", 1, 1, 1, 2)
SIDE = Stream("side", "created", False)


def fetch(machine: Machine, buffer: Buffer) -> None:
    """An asynchronous copy from the device into the buffer."""
    machine.copy(
        ops.Copy(HERE, dst=buffer, stream=SIDE, direction=Direction.D2H, asked_async=True, host_memory=Memory.PINNED),
    )


def test_what_was_in_flight_before_is_in_flight_after() -> None:
    machine, home = Machine(), Buffer(Storage(Memory.PINNED))
    fetch(machine, home)
    with machine.aside():
        assert machine.in_flight(home) is None
        machine.host_waits(None)
    assert machine.in_flight(home) is not None


def test_what_the_thread_touched_is_as_before() -> None:
    machine, home = Machine(), Buffer(Storage(Memory.PINNED))
    with machine.aside():
        fetch(machine, home)
        assert machine.in_flight(home) is not None
    assert machine.in_flight(home) is None
    assert machine.pending == {}
    assert [type(operation) for operation in machine.operations] == [ops.Copy]


def test_an_event_of_the_thread_may_stand_for_anything() -> None:
    machine, event = Machine(), Event("e")
    with machine.aside():
        machine.record(ops.Record(HERE, event=event, stream=SIDE))
    assert event.unknown


def test_null_work_of_the_thread_is_beside_nobody() -> None:
    machine = Machine()
    with machine.aside():
        work = ops.Launch(HERE, stream=Stream("null", "null"))
        machine.launch(work)
    machine.launch(ops.Launch(HERE, stream=SIDE))
    assert work.followed_by == ()


PROGRAM = """
import torch
import torch.multiprocessing as mp


def work():
    torch.ones(4, device="cuda").mul_(2.0)


def run(model):
    {setting}
    model.cuda()
    worker = {context}.Process(target=work)
    worker.start()
"""


@pytest.mark.parametrize(
    ("setting", "context", "forked"),
    [
        ("pass", "mp", True),
        ("mp.set_start_method('fork')", "mp", True),
        ("mp.set_start_method('spawn')", "mp", False),
        ("mp.set_start_method(method)", "mp", False),
        ("pass", "mp.get_context('fork')", True),
        ("pass", "mp.get_context(method='forkserver')", False),
        ("pass", "mp.get_context(chosen)", False),
        ("mp.set_start_method('spawn')", "mp.get_context('fork')", True),
        ("mp.set_start_method('spawn')", "mp.get_context()", False),
    ],
)
def test_how_a_process_is_started(setting: str, context: str, forked: bool) -> None:
    text = PROGRAM.format(setting=setting, context=context)
    report = analyse([Source("program.py", text, "python")], Options(codes=frozenset({"SL012"})))
    assert [found.facts["kind"] for found in report.findings] == (["a"] if forked else [])
