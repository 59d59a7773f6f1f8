"""What the host does with memory: reading, writing, views, factories that are given data, and computing where the memory is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.objects import Constant
from streamlint.ir import opcodes as op
from streamlint.transfer.actions import CURRENT, Action, Read, Released, Stream, Synchronized, Viewed, Written
from streamlint.transfer.modelled import ModelledCall, listed
from streamlint.transfer.waiting import exchange
from streamlint.waits.operands import argument_registers

DEEP = (0, 1, 2, 3)
"""How many containers around memory a library looks into."""


def read(call: ModelledCall) -> Iterator[Action]:
    """``x.item()``, ``print(x)``, ``numpy.save(f, x)``."""
    if call.row.get("of") is None and call.receiver is None:
        return
    given = call.all("of") if call.row.get("of") is not None else [call.instruction[3]]
    if is_address(call, given):
        yield from (Viewed(register) for register in given)  # an address as a number
        return
    waits = call.row.library not in call.facts.models.marked("reads-pointers")
    yield from (Read(register, call.name, waits, call.receiver in given, DEEP) for register in given)


def is_address(call: ModelledCall, given: Iterable[int]) -> bool:
    """Whether a call takes the address of memory as a number, and looks at nothing in it."""
    return call.name.rpartition(".")[2] == "int" and any(held.type == "pointer" for register in given for held in call.memory(register))


def put(call: ModelledCall) -> Iterator[Action]:
    """A queue between processes pickles what it is given."""
    if not call.row.get("local"):
        yield from (Read(register, call.name, False, False, DEEP) for register in call.all("of"))


def release(call: ModelledCall) -> Iterator[Action]:
    """``x.untyped_storage().resize_(0)``, ``x.set_(other)``."""
    is_shared = call.row.get("size") is not None
    size = call.one("size")
    if is_shared and (size is None or {value.value for value in call.values(size) if isinstance(value, Constant)} != {0}):
        return
    yield from (Released(register, call.name, is_shared) for register in call.all("of"))


def write(call: ModelledCall) -> Iterator[Action]:
    yield from (Read(register, call.name, False) for register in call.all("reads"))
    yield from (Written(register, call.name) for register in call.all("of"))


def view(call: ModelledCall) -> Iterator[Action]:
    """The same memory: ``x.view(…)``, ``x.numpy()``, ``x.pin_memory()`` of what is pinned."""
    yield from exchange(call)
    of = call.one("of", call.receiver)
    if of is not None:
        yield Viewed(of, call.text("type"), bool(call.row.get("host_access")))


def extension(call: ModelledCall) -> Iterator[Action]:
    """Memory as C sees it: ``ffi.from_buffer("float[]", x)``."""
    if call.row.get("part") == "memory" and call.operands:
        yield Viewed(call.operands[-1])


def factory(call: ModelledCall) -> Iterator[Action]:
    """A factory that is given data reads it, or shares it; PyTorch's waits until what it uploads has arrived. Some fill a buffer."""
    for register in call.all("out"):
        yield from (Written(register, call.name), Viewed(register))
    for register in call.all("data"):
        yield Viewed(register, call.text("type")) if call.row.get("alias") else Read(register, call.name, False)
    uploads = call.all("data") and call.all("device") and call.row.library == "torch"
    if uploads and {value.space for value in call.memory(call.result)} != {"host"}:
        yield Synchronized(Stream(CURRENT, library="torch"), call.name)


def compute(call: ModelledCall) -> Iterator[Action]:
    """Work where the operands are: on the host it reads them at once."""
    given = call.all("reads") if call.row.get("reads") is not None else list(call.operands)
    out = call.all("out")
    written = [*out, *call.all("writes")]
    if call.row.get("cast") and given:
        yield Viewed(given[0], casts=True)
        return
    one = call.instruction
    if call.row.get("named") and one[0] == op.INVOKE and any(kind is None for kind, _ in argument_registers(call.function, one)):
        return  # ``x.clone(False)``: no tensor has that
    waits = call.waits(call.is_of_device)
    yield from (Read(register, call.name, waits, waits, DEEP[:2]) for register in given if register not in written)
    yield from (Written(register, call.name) for each in written for register in (each, *listed(call.function, each)))
    if out or (call.row.get("result") == "self" and written):
        yield Viewed(written[0])


EFFECTS = {
    "read": read,
    "put": put,
    "write": write,
    "release": release,
    "view": view,
    "same": view,
    "move": view,
    "pin": view,
    "extension": extension,
    "factory": factory,
    "compute": compute,
}
