"""The machine of one path, by litmus programs: operations in, conflicts out, no parser.

A program is a line of operations with ``;`` between them. ``a`` and ``b`` are non-blocking streams, ``x`` and ``y`` blocking ones, ``null``
and ``ptds`` the default streams, ``p`` a stream that came as a parameter, ``?`` one that is not known. ``e`` and ``f`` are events,
``u`` is one from out of view. Copies are asynchronous unless they end in ``!``; memory is ``host`` (pinned), ``page`` (pageable) or
``dev`` (device), with a part in brackets. ``*`` marks the one operation that makes a program right.
"""

from __future__ import annotations

import itertools

import pytest
from litmus_machine import Litmus, conflicts, part, without_order

from streamlint import operations as ops
from streamlint.cuda_model import Stamp
from streamlint.findings import Span
from streamlint.interpreter.machine import Machine
from streamlint.interpreter.unknowns import parts_meet
from streamlint.interpreter.values import Handle, Opaque, Series, Table, Value
from streamlint.operations import Memory

# --- the host reads what a copy is writing ------------------------------------------------------------------------


def test_a_read_after_an_asynchronous_copy_conflicts() -> None:
    machine = Litmus("copy a; read").machine
    [conflict] = machine.conflicts
    assert [conflict.first, conflict.second] == machine.operations
    assert isinstance(conflict.first, ops.Copy)
    assert (conflict.missing, conflict.guesses) == ("host-wait", 0)


@pytest.mark.parametrize("on", ["a", "x", "null", "ptds", "p"])
@pytest.mark.parametrize("into", ["host", "page"])
def test_it_does_on_every_stream_and_into_every_host_memory(on: str, into: str) -> None:
    # Into pageable memory a GPU was seen to wait, but no document promises it.
    assert conflicts(f"copy {on} {into}; read {into}") == [(1, 2)]


@pytest.mark.parametrize("on", ["a", "x", "null", "ptds", "p"])
@pytest.mark.parametrize("into", ["host", "page"])
def test_a_blocking_copy_is_over_when_it_returns(on: str, into: str) -> None:
    assert conflicts(f"copy! {on} {into}; read {into}") == []


@pytest.mark.parametrize("program", ["read; copy a", "copy a; read other", "upload a; read", "kernel a dev; read"])
def test_other_accesses_do_not_conflict(program: str) -> None:
    assert conflicts(program) == []


def test_a_kernel_that_writes_memory_of_both_sides_is_read_too_early() -> None:
    assert conflicts("kernel a managed; read managed") == [(1, 2)]
    assert conflicts("kernel a managed; sync a; read managed") == []


def test_each_copy_is_told_once() -> None:
    assert conflicts("copy a; read; read") == [(1, 2)]
    assert conflicts("copy a; copy b other; read; read other") == [(1, 3), (2, 4)]


def test_the_last_of_several_copies_is_told() -> None:
    assert conflicts("copy a; copy a; read; read") == [(2, 3)]
    assert conflicts("copy a; sync a; copy a; read") == [(3, 4)]


def test_two_streams_that_write_one_buffer_are_two_conflicts() -> None:
    """One of the streams with each other; what the second stream does behind that is told as if it had waited."""
    assert conflicts("copy a; copy b; read; read") == [(1, 2), (2, 3), (1, 4)]
    assert conflicts("copy a; copy b; sync b; read") == [(1, 2)]


def test_host_read_says_whether_the_value_was_in_flight() -> None:
    litmus = Litmus("copy a")
    reads = [ops.HostRead(litmus.span, buffer=litmus.buffer("host")) for _ in range(2)]
    assert [litmus.machine.host_read(read) for read in reads] == [True, False]


def test_a_read_of_something_unknown_is_silent() -> None:
    machine = Litmus("copy a").machine
    assert not machine.host_read(ops.HostRead(Span("litmus", 2, 1, 2, 2)))


# --- what orders, and what does not ------------------------------------------------------------------------

GOOD = [
    pytest.param("copy a; *sync a; read", id="stream sync"),
    pytest.param("copy a; *sync device; read", id="device sync"),
    pytest.param("copy a; record e a; *sync e; read", id="event sync"),
    pytest.param("copy a; *record e a; sync e; read", id="event recorded after the copy"),
    pytest.param("record e a; copy a; *record e a; sync e; read", id="event recorded again after the copy"),
    pytest.param("copy a; record e a; *wait b e; sync b; read", id="event awaited by another stream that is synchronized"),
    pytest.param("copy a; record e a; wait b e; *sync b; read", id="the other stream synchronized"),
    pytest.param("copy a; *record e a; wait b e; sync b; read", id="event recorded for the other stream"),
    pytest.param("copy a; *wait b a; sync b; read", id="stream awaited by another stream that is synchronized"),
    pytest.param("copy a; record e a; wait b e; *record f b; wait x f; record e x; sync f; read", id="two events in a chain"),
    pytest.param("copy a; *copy! a other; read", id="blocking copy to pinned memory on the same stream"),
    pytest.param("copy a; *copy! a page; read", id="blocking copy to pageable memory on the same stream"),
    pytest.param("copy a; *upload! a; read", id="blocking upload from pinned memory on the same stream"),
    pytest.param("copy a; *upload! a page; read", id="blocking upload from pageable memory on the same stream"),
    pytest.param("copy a; *kernel! a; read", id="library call that waits, on the same stream"),
    pytest.param("copy a; wait b a; *copy! b other; read", id="blocking copy on a stream that waited"),
    pytest.param("copy x; *sync null; read", id="null-stream sync waits for a blocking stream"),
    pytest.param("copy ptds; *sync null; read", id="null-stream sync waits for the per-thread stream"),
    pytest.param("copy x; *copy! null other; read", id="blocking copy on the null stream waits for a blocking stream"),
    pytest.param("copy x; kernel null; record e null; *sync e; read", id="null-stream work is behind a blocking stream's"),
    pytest.param("copy null; *kernel x; sync x; read", id="a blocking stream's work is behind the null stream's"),
    pytest.param("copy null; *record e x; sync e; read", id="an event on an idle blocking stream covers null-stream work"),
    pytest.param("copy null; record e x; *wait a e; sync a; read", id="an event on an idle blocking stream, through a stream"),
    pytest.param("kernel x; copy null; *record e x; sync e; read", id="an event on a blocking stream whose own work is older"),
    pytest.param("copy null; *kernel x; record e x; sync x; read", id="work that the barrier holds keeps its stream busy"),
    pytest.param("copy null; *kernel ptds; sync ptds; read", id="the per-thread stream's work is behind the null stream's"),
    pytest.param("copy x; *kernel null; kernel y; sync y; read", id="null-stream work between two blocking streams"),
    pytest.param("copy x; kernel null; *kernel y; sync y; read", id="blocking-stream work behind null-stream work"),
    pytest.param("copy a; wait null a; kernel null; *sync null; read", id="the null stream can wait for a non-blocking one"),
    pytest.param("copy p; *sync p; read", id="a parameter's own sync"),
]


@pytest.mark.parametrize("program", GOOD)
def test_ordered_until_the_one_operation_is_removed(program: str) -> None:
    assert conflicts(program) == []
    kept = without_order(program).split(";")
    first = next(place for place, line in enumerate(kept, 1) if line.split()[0] == "copy")
    assert conflicts(";".join(kept)) == [(first, len(kept))]


BAD = [
    pytest.param("copy a; wait b a; read", id="a stream's wait is not the host's"),
    pytest.param("copy a; record e a; wait b e; read", id="a stream's wait on an event is not the host's"),
    pytest.param("wait b a; copy a; sync b; read", id="stream awaited before the copy"),
    pytest.param("record e a; copy a; sync e; read", id="event recorded before the copy"),
    pytest.param("record e a; copy a; wait b e; sync b; read", id="event recorded before the copy, through a stream"),
    pytest.param("copy a; record e a; record e b; sync e; read", id="event recorded again elsewhere"),
    pytest.param("copy a; record e b; sync e; read", id="event recorded on another stream"),
    pytest.param("copy a; record e a; wait b e; record f x; sync f; read", id="event of a third stream"),
    pytest.param("copy a; sync e; read", id="event never recorded"),
    pytest.param("copy a; record e a; read", id="event only recorded"),
    pytest.param("copy a; sync b; read", id="another stream"),
    pytest.param("sync a; copy a; read", id="sync before the copy"),
    pytest.param("copy x; sync y; read", id="another blocking stream"),
    pytest.param("copy a; query a; read", id="stream query"),
    pytest.param("copy a; record e a; query e; read", id="event query"),
    pytest.param("copy a; kernel a; read", id="more work"),
    pytest.param("copy a; copy! b other; read", id="blocking copy on another stream"),
    pytest.param("copy a; copy a page; read", id="asynchronous copy to pageable memory"),
    pytest.param("copy a; upload a page; read", id="asynchronous copy from pageable memory"),
    pytest.param("copy a; move! a; read", id="synchronous copy within the device"),
    pytest.param("copy a; free dev; read", id="a free that may synchronize"),
    pytest.param("copy a; sync null; read", id="null-stream sync, non-blocking stream"),
    pytest.param("copy a; copy! null other; read", id="blocking null-stream copy, non-blocking stream"),
    pytest.param("copy a; kernel null; sync null; read", id="null-stream work does not wait for a non-blocking stream"),
    pytest.param("copy null; kernel a; sync a; read", id="a non-blocking stream does not wait for null-stream work"),
    pytest.param("copy null; sync x; read", id="an idle blocking stream"),
    pytest.param("copy null; record e x; sync x; read", id="a blocking stream with nothing but a record"),
    pytest.param("kernel x; copy null; record e x; sync x; read", id="a blocking stream with older work and a record"),
    pytest.param("copy null; record e a; sync e; read", id="event on an idle non-blocking stream"),
    pytest.param("record e x; copy null; sync e; read", id="event on a blocking stream, recorded before the null stream's copy"),
    pytest.param("copy x; kernel y; sync y; read", id="blocking streams do not order each other"),
]


@pytest.mark.parametrize("program", BAD)
def test_not_ordered(program: str) -> None:
    lines = [line.split()[0] for line in program.split(";")]
    assert conflicts(program) == [(lines.index("copy") + 1, len(lines))]


def test_an_event_stands_for_its_record_not_for_its_stream() -> None:
    assert conflicts("copy a; record e a; copy a other; sync e; read; read other") == [(3, 6)]


@pytest.mark.parametrize(
    ("copy", "over"),
    [
        ("copy!", True),
        ("copy! a page", True),
        ("upload!", True),
        ("upload! a page", False),
        ("copy", False),
        ("move!", False),
    ],
)
def test_when_a_copy_itself_is_over(copy: str, over: bool) -> None:
    """API synchronization behavior: a pageable upload returns once its source is staged; the transfer may not have completed."""
    clocks = Litmus(copy if " " in copy else f"{copy} a").machine.clocks
    assert clocks.host_sees(Stamp("a", 1)) is over


# --- unknowns fall silent ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("copy a; sync u; read", id="an event from out of view"),
        pytest.param("copy a; record e ?; sync e; read", id="an event recorded on an unknown stream"),
        pytest.param("copy a; sync ?; read", id="an unknown thing synchronized"),
        pytest.param("copy a; wait b u; sync b; read", id="a stream waits on an event from out of view"),
        pytest.param("copy a; wait b ?; sync b; read", id="a stream waits on something unknown"),
        pytest.param("copy a; record e ?; wait b e; sync b; read", id="a stream waits on an event recorded on an unknown stream"),
        pytest.param("copy ?; read", id="a copy on an unknown stream"),
        pytest.param("kernel ? managed; read managed", id="a kernel on an unknown stream"),
        pytest.param("copy p; sync null; read", id="null-stream sync, stream of unknown kind"),
        pytest.param("copy p; copy! null other; read", id="blocking null-stream copy, stream of unknown kind"),
        pytest.param("copy null; kernel p; sync p; read", id="a stream of unknown kind behind null-stream work"),
        pytest.param("mystery! a; read", id="a synchronous copy in an unknown direction"),
        pytest.param("copy a; mystery! a other; read", id="the same behind a copy"),
    ],
)
def test_unknown_things_order_everything(program: str) -> None:
    assert conflicts(program) == []


def test_they_order_only_what_came_before() -> None:
    assert conflicts("sync u; copy a; read") == [(2, 3)]
    assert conflicts("wait b u; copy a; sync b; read") == [(2, 4)]


def test_a_parameter_is_no_other_stream() -> None:
    assert conflicts("copy a; sync p; read") == [(1, 3)]
    assert conflicts("copy p; sync a; read") == [(1, 3)]


# --- calls whose body is not at hand ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("copy a; call a; read", id="the stream"),
        pytest.param("copy a; record e a; call e; read", id="an event behind the copy"),
        pytest.param("copy a; wait b a; call b; read", id="a stream that waited"),
        pytest.param("copy a; call host; read", id="the buffer"),
        pytest.param("copy a; call host[0]; read", id="a part of the buffer"),
        pytest.param("copy a; call b host; read", id="the buffer among others"),
        pytest.param("record e a; copy a; call e; sync e; read", id="it may record the event again"),
    ],
)
def test_an_opaque_call_may_wait_for_what_it_reaches(program: str) -> None:
    assert conflicts(program) == []


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("copy a; call; read", id="nothing"),
        pytest.param("copy a; call b; read", id="another stream"),
        pytest.param("copy a; record e b; call e; read", id="another event"),
        pytest.param("record e a; copy a; call e; read", id="an event before the copy"),
        pytest.param("copy a; call other; read", id="another buffer"),
        pytest.param("copy a; call dev; read", id="the copy's source"),
        pytest.param("call a; copy a; read", id="too early"),
        pytest.param("call host; copy a; read", id="the buffer too early"),
    ],
)
def test_it_silences_nothing_else(program: str) -> None:
    lines = [line.split()[0] for line in program.split(";")]
    assert conflicts(program) == [(lines.index("copy") + 1, len(lines))]


@pytest.mark.parametrize("inside", ["list", "dict", "opaque", "handle", "nested"])
def test_it_reaches_into_what_it_is_given(inside: str) -> None:
    litmus = Litmus("copy a")
    held = litmus.streams["a"]
    holder: dict[str, Value] = {
        "list": Series([held]),
        "dict": Table({"stream": held}),
        "opaque": Opaque("object", (held,)),
        "handle": Handle("cublasHandle_t", "handle", stream=held),
        "nested": Series([Table({"pending": Series([held])})]),
    }
    litmus.machine.opaque(ops.Opaque(litmus.span), [holder[inside]])
    litmus.do("read")
    assert litmus.conflicts == []


def test_what_holds_itself_is_no_obstacle() -> None:
    litmus = Litmus("copy a")
    loop = Series([])
    assert loop.items is not None
    loop.items += [loop, litmus.streams["a"]]
    litmus.machine.opaque(ops.Opaque(litmus.span), [loop])
    litmus.do("read")
    assert litmus.conflicts == []


def test_control_that_leaves_the_code_at_hand_forgets_everything() -> None:
    litmus = Litmus("copy a; copy b other")
    litmus.machine.forget_everything()
    litmus.do("read")
    litmus.do("read other")
    assert litmus.conflicts == []


# --- parts ------------------------------------------------------------------------

MEETING = [
    ("", ""),
    ("", "[0]"),
    ("", "[:n]"),
    ("", "[4:8]"),
    ("", "[?]"),
    ("[0]", "[0]"),
    ("[i]", "[i]"),
    ("[:n]", "[0]"),
    ("[:4]", "[:8]"),
    ("[:n]", "[:n]"),
    ("[4:8]", "[4]"),
    ("[4:8]", "[4:8]"),
    ("[4:]", "[4]"),
    ("[:]", "[7]"),
    ("[:]", "[i]"),
    ("[:]", "[:n]"),
    ("[*]", "[3]"),
    ("[*]", "[4:8]"),
    ("[0]", "[0][5]"),
    ("[0][:n]", "[0][0]"),
    ("[:][1]", "[i][1]"),
]
APART = [
    ("[0]", "[1]"),
    ("[i]", "[j]"),
    ("[0]", "[i]"),
    ("[:n]", "[1]"),
    ("[:n]", "[i]"),
    ("[:4]", "[4:8]"),
    ("[4:8]", "[8]"),
    ("[lo:hi]", "[mid:end]"),
    ("[?]", "[?]"),
    ("[?]", "[0]"),
    ("[0][5]", "[1]"),
    ("[0][5]", "[0][6]"),
    ("[:][1]", "[i][2]"),
]


@pytest.mark.parametrize(("one", "other"), MEETING)
def test_parts_that_surely_share_an_element_conflict(one: str, other: str) -> None:
    assert conflicts(f"copy a host{one}; read host{other}") == [(1, 2)]
    assert conflicts(f"copy a host{other}; read host{one}") == [(1, 2)]


@pytest.mark.parametrize(("one", "other"), APART)
def test_parts_that_may_be_apart_do_not(one: str, other: str) -> None:
    assert conflicts(f"copy a host{one}; read host{other}") == []
    assert conflicts(f"copy a host{other}; read host{one}") == []


def test_a_whole_axis_meets_a_slice_of_it() -> None:
    assert conflicts("copy a host[:]; read host[4:8]") == [(1, 2)]


def test_meeting_has_no_direction() -> None:
    parts = [part(text) for text in sorted({text for pair in (*MEETING, *APART) for text in pair})]
    assert all(parts_meet(one, other) == parts_meet(other, one) for one, other in itertools.product(parts, parts))


def test_each_part_has_its_own_order() -> None:
    assert conflicts("copy a host[0]; record e a; copy a host[1]; sync e; read host[0]; read host[1]") == [(3, 6)]
    assert conflicts("copy a host[0]; copy b host[1]; sync a; read host") == [(2, 4)]


# --- the record of the path ------------------------------------------------------------------------


def test_operations_are_kept_in_order_with_their_surroundings() -> None:
    litmus = Litmus("copy a; record e a")
    litmus.machine.context = ops.Context(function="step")
    litmus.machine.guesses = ("flag",)
    litmus.do("sync e")
    litmus.machine.guesses = ("flag", "other")
    assert [operation.index for operation in litmus.machine.operations] == [0, 1, 2]
    assert [operation.context.function for operation in litmus.machine.operations] == ["", "", "step"]
    assert [operation.guesses for operation in litmus.machine.operations] == [(), (), ("flag",)]


def test_every_operation_is_kept() -> None:
    machine = Litmus("copy a; kernel a; record e a; wait b e; query e; write; free dev; call; sync b; read").machine
    for operation in (ops.Alloc(SPAN), ops.Register(SPAN), ops.Create(SPAN), ops.Callback(SPAN)):
        getattr(machine, type(operation).__name__.lower())(operation)
    kinds = [type(operation).__name__ for operation in machine.operations]
    assert kinds == "Copy Launch Record Wait Query HostWrite Free Opaque Synchronize HostRead Alloc Register Create Callback".split()


def test_an_event_knows_its_last_record() -> None:
    litmus = Litmus("record e a; record e b")
    assert litmus.events["e"].recorded is litmus.machine.operations[1]


@pytest.mark.parametrize(
    ("program", "beside"),
    [
        ("kernel a; kernel null", ["a"]),
        ("kernel a; kernel b; kernel x; copy! null", ["a", "b", "x"]),
        ("kernel a; sync a; kernel null", []),
        ("kernel a; kernel b", []),
        ("kernel p; kernel null", ["p"]),
        ("kernel ptds; kernel null; kernel null", []),
    ],
)
def test_null_stream_work_sees_the_streams_beside_it(program: str, beside: list[str]) -> None:
    last = Litmus(program).machine.operations[-1]
    assert isinstance(last, ops.Launch | ops.Copy)
    assert sorted(each.key for each in last.beside) == beside


def test_memory_facts() -> None:
    litmus = Litmus("copy a")
    page, host = litmus.buffer("page"), litmus.buffer("host")
    allocated = ops.Alloc(litmus.span, buffer=page)
    litmus.machine.alloc(allocated)
    litmus.machine.register(ops.Register(litmus.span, buffer=page))
    assert (page.storage.allocated, page.storage.memory) == (allocated, Memory.PINNED)
    litmus.do("free host")
    assert host.storage.freed
    assert not host.storage.writes


def test_fresh_names_differ() -> None:
    machine = Machine()
    assert len({machine.fresh("s") for _ in range(5)}) == 5


SPAN = Span("litmus", 1, 1, 1, 2)
