"""Work on devices, by the streams that it is queued on, and waits of streams for one another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Container, External, Instance, LibraryObject, are_plain
from streamlint.facts.files.cpp_scopes import last_part
from streamlint.facts.graph.call_graph import LibraryCall
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.code import Code
from streamlint.models.vocabulary import Selector
from streamlint.transfer.actions import CURRENT, HANDLE, NULL, UNKNOWN, Action, Copied, Stream
from streamlint.transfer.copies import is_algorithm
from streamlint.transfer.language import OPERATORS, is_host_comparison, leaves_out
from streamlint.transfer.memory import is_address
from streamlint.transfer.modelled import ModelledCall, listed, packed_arguments
from streamlint.transfer.policies import Policies
from streamlint.waits.indices import is_gathered, parts_of
from streamlint.waits.operands import argument_registers, held_in, operand_of, selected_of, selectors
from streamlint.waits.questions import alike

_NUMBERS = frozenset({"bool", "char", "double", "float", "half", "int", "long", "long long", "short", "size_t", "unsigned", "unsigned int"})
Modelled = Callable[[Function, Instruction], Iterable[ModelledCall]]
"""The calls of libraries that an instruction makes."""
_DEEPEST = 6
_FIRST = 6
"""Where the configuration of a launch begins among the operands of its instruction."""


class Weights(NamedTuple):
    """The memory that an object leads to by its members, whatever these are: the object is in a register, or an attribute of that."""

    register: int
    name: str = ""


class Worked(NamedTuple):
    """Work that reads and writes the memory in some registers, if that is on a device. ``made``: the register of new memory.
    ``assumed``: the call is out of view, what it is given may not be touched. ``runs`` are modules whose weights are read, ``moves`` the
    registers of those whose weights are written; ``waits``: the host waits for the work. ``leaves`` are modules whose gradients a backward
    pass writes, ``steps`` the registers of optimizers that read them, ``clips`` those of parameters whose gradients are read; ``symbols``
    are the device variables of the file that a kernel writes."""

    stream: Stream
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    name: str
    library: str
    made: int = op.NONE
    assumed: bool = False
    evident: bool = False
    fills: bool = True  # a factory may leave what it makes as it is
    runs: tuple[Weights, ...] = ()
    moves: tuple[int, ...] = ()
    waits: bool = False
    leaves: tuple[Weights, ...] = ()
    steps: tuple[int, ...] = ()
    clips: tuple[int, ...] = ()
    symbols: tuple[str, ...] = ()


class Kept(NamedTuple):
    """The pool is told that a stream uses memory: ``x.record_stream(s)``."""

    register: int
    stream: Stream


def record_use(call: ModelledCall) -> Iterator[Action]:
    """``x.record_stream(s)``: the pool waits for the stream before it gives the memory to others."""
    of = call.one("of", call.receiver)
    if of is not None:
        yield Kept(of, call.stream())


EFFECTS = {"record_use": record_use}


def works(facts: Facts, function: Function, one: Instruction, calls: Iterable[ModelledCall], actions: Iterable[Action]) -> Iterator[Worked]:
    """The work that an instruction queues; ``actions`` are what else it does."""
    yield from _of_instruction(facts, function, one)
    for action in actions:
        if isinstance(action, Copied):
            yield _copied(action)
    for call in calls:
        yield from _WORK[call.row.effect](call) if call.row.effect in _WORK else ()
        if call.row.effect == "transfer" and not any(isinstance(action, Copied) for action in actions):
            yield from _sent(call)


def _of_instruction(facts: Facts, function: Function, one: Instruction) -> Iterator[Worked]:
    """The work that is no call: launches, operators, assignments to elements, text."""
    if one[0] == op.LAUNCH:
        yield from _launched(facts, function, one)
    elif function.is_cpp and one[0] in OPERATORS:
        yield from _of_tensors(facts, function, one)
    elif one[0] in (op.BINARY, op.UNARY, op.COMPARE) and not function.is_cpp:
        if not is_host_comparison(function, one) and not _is_of_containers(function, one):
            yield Worked(Stream(CURRENT), tuple(op.reads(one)), (), "arithmetic", "", one[2])
    elif one[0] == op.INPLACE and not function.is_cpp:
        yield Worked(Stream(CURRENT), tuple(op.reads(one)), (one[4],), "arithmetic", "")
    elif one[0] == op.SET_ITEM and not function.is_cpp and not _is_collection(facts, function, one[2], one[3]):
        yield Worked(Stream(CURRENT), (one[4], *parts_of(function, one[3])), (one[2],), "assignment", "")
    elif one[0] == op.ITEM and is_gathered(facts, function, one):
        yield Worked(Stream(CURRENT), (one[3], *parts_of(function, one[4])), (), "indexing", "", one[2])
    elif one[0] == op.FORMAT:
        yield Worked(Stream(CURRENT), tuple(op.reads(one)), (), "format", "")


def _is_of_containers(function: Function, one: Instruction) -> bool:
    """Whether an operator repeats or joins lists and the like that are written out: ``[None] * 2``."""
    operands = (function.definitions[each] for each in op.reads(one) if each >= 0)
    return one[0] == op.BINARY and any(each is not None and each[0] == op.BUILD for each in operands)


def _of_tensors(facts: Facts, function: Function, one: Instruction) -> Iterator[Worked]:
    """C++: an operator of tensors makes another one, or writes the first."""
    tensors = tensors_in(facts, function, one)
    if tensors and one[0] == op.INPLACE:
        yield Worked(Stream(CURRENT), tensors, tuple(each for each in tensors if each == one[4]), "arithmetic", "torch")
    elif tensors and op.DEFINES[one[0]]:
        yield Worked(Stream(CURRENT), tensors, (), "arithmetic", "torch", one[2])


def tensors_in(facts: Facts, function: Function, one: Instruction) -> tuple[int, ...]:
    """C++: the operands of an operator that hold tensors."""
    if not function.is_cpp or one[0] not in OPERATORS:
        return ()
    return tuple(each for each in op.reads(one) if any(map(facts.is_cpp_tensor, facts.values(function, each).values)))


def _sent(call: ModelledCall) -> Iterator[Worked]:
    """``x.to(place, non_blocking=True)``: to a place that nobody knows without waiting, which only a device asks for. What is on a device
    already is not copied: it is read on the host."""
    of = call.one("of", call.receiver)
    if (
        of is not None
        and call.row.get("to") == "argument"
        and call.switch("asynchronous")[1] is True
        and "host" not in call.device_spaces()
    ):
        yield Worked(call.stream(), (), (), call.name, call.row.library, call.result)


def _is_collection(facts: Facts, function: Function, register: int, key: int) -> bool:
    """Whether an assignment to an element is one to a list or dictionary, or to an object of the program."""
    values = facts.values(function, register).values
    if values and all(isinstance(value, (Container, Instance)) for value in values):
        return True
    if isinstance(function.constant(key), str):
        return True
    named, asked = function.known("shows-mapping"), alike(function, register)
    uses = function.by_opcode[op.INVOKE] if not named.isdisjoint(function.called_names) else ()
    return any(function.text(one[4]) in named and alike(function, one[3]) == asked for one in uses)


def _copied(action: Copied) -> Worked:
    source, _, target = action.direction.partition("2")
    if "<" in action.direction:
        target, _, source = ("h" if side == "host" else "d" for side in action.direction.partition("<"))
    row = action.call.row
    reads = (action.source,) if source != "h" and action.direction != "h2h" else ()
    writes = (action.target,) if target != "h" and action.direction != "h2h" else ()
    made = action.target if writes and row is not None and row.effect != "copy" else op.NONE
    evident = action.direction in ("h2d", "d2d", "peer")
    library = row.library if row is not None else ""
    return Worked(action.stream, reads, writes if made == op.NONE else (), action.call.name, library, made, False, evident)


def _launched(facts: Facts, function: Function, one: Instruction) -> Iterator[Worked]:
    """``kernel<<<…>>>(…)``: a kernel writes what its body stores through, or all that is not constant."""
    configuration, given = one[_FIRST : _FIRST + one[5]], one[_FIRST + one[5] :]
    stream = Stream(NULL, library="cuda-runtime")
    if len(configuration) > 3 and configuration[3] >= 0:
        call = LibraryCall(one, None, "<<<>>>", None)
        stream = ModelledCall(facts, function, call, facts.cpp_models.calls["cudaMemcpyAsync"]).stream_in(configuration[3])
    name = function.dotted(one[3])
    kernel = next((each.code for each in _kernels(facts, function, one[3])), None)
    reads: list[int] = []
    writes: list[int] = []
    for index, register in enumerate(given):
        parameter = kernel.parameters[index] if kernel is not None and index < len(kernel.parameters) else None
        if parameter is not None and parameter.type is not None and not parameter.type[2] and parameter.type[0] in _NUMBERS:
            continue
        if parameter is None and is_number(facts, function, register):
            continue
        is_read = kernel is not None and kernel.stores and parameter is not None and parameter.name not in kernel.stores
        (reads if is_read else writes).append(register)
    symbols = _stored_symbols(function, kernel) if kernel is not None else ()
    yield Worked(stream, tuple(reads), tuple(writes), name, "cuda-runtime", op.NONE, False, True, symbols=symbols)


def _stored_symbols(function: Function, kernel: Code) -> tuple[str, ...]:
    """The variables of a launch's file that a kernel stores to."""
    known = {last_part(each) for each in function.unit.globals} if kernel.symbols else ()
    return tuple(each for each in kernel.symbols if each in known)


def is_number(facts: Facts, function: Function, register: int, depth: int = 4) -> bool:
    """Whether an argument is a number, no pointer, by its declaration or by how it is computed."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or depth == 0:
        return False
    if one[0] == op.CONST:
        return True
    if one[0] == op.PARAM:
        declared = function.code.parameters[one[3]].type if one[3] < len(function.code.parameters) else None
        return declared is not None and not declared[2] and declared[0] in _NUMBERS
    if one[0] == op.BINARY:
        return all(is_number(facts, function, each, depth - 1) for each in one[4:6])
    if one[0] == op.ADDRESS:  # of a variable, in an array of addresses
        return _is_number_at(function, one[3])
    return are_plain(facts.values(function, register).values)


def _is_number_at(function: Function, cell: int) -> bool:
    """Whether a variable holds a number, by the types with which it is declared."""
    made = [function.definitions[each[3]] for each in function.by_opcode[op.STORE] if each[2] == cell]
    own = [one for one in made if one is None or one[0] != op.REBIND]
    return bool(own) and all(one is not None and _is_of_number(function, one) for one in own)


def _is_of_number(function: Function, one: Instruction) -> bool:
    kind = function.unit.ir.constants[one[3]] if one[0] == op.CAST else None
    if one[0] == op.PARAM:
        kind = function.code.parameters[one[3]].type
    return kind is not None and not kind[2] and kind[0] in _NUMBERS


def _kernels(facts: Facts, function: Function, register: int) -> Iterator[Function]:
    for value in list(facts.values(function, register).values):
        found = getattr(value, "function", None)
        if isinstance(found, Function):
            yield found


def _compute(call: ModelledCall) -> Iterator[Worked]:
    """Work on the current stream; the result is new memory, unless it is what was given."""
    row = call.row
    if row.get("host") or row.get("cast"):
        return
    out = call.all("out")
    writes = tuple(_with_elements(call.function, (*call.all("writes"), *out)))
    reads = tuple(call.all("reads")) if row.get("reads") is not None else call.operands
    is_new = row.get("result") not in ("self", "none", "scalar") and not writes
    yield Worked(call.stream(), reads, writes, call.name, row.library, call.result if is_new else op.NONE)


def _with_elements(function: Function, registers: Iterable[int]) -> Iterator[int]:
    """Registers, and those of the elements where one is a list that is written out."""
    for register in registers:
        yield from (register, *listed(function, register))


def reordered(calls: Iterable[ModelledCall], modelled: Modelled) -> Iterator[Worked]:
    """``x.transpose(0, 1).contiguous()``, ``x[:, 1:].contiguous()``: what may be a view is a copy where the strides say so."""
    for call in calls:
        of = call.one("of", call.receiver)
        if call.row.get("part") == "contiguous" and of is not None and _is_strided(call.facts, call.function, of, modelled):
            yield Worked(Stream(CURRENT, library=call.row.library), (of,), (), call.name, call.row.library, call.result)


def _is_strided(facts: Facts, function: Function, register: int, modelled: Modelled, depth: int = _DEEPEST) -> bool:
    """Whether the elements of a view do not lie side by side, whichever way has led to it, and whoever gives it."""
    one = function.definitions[register] if register >= 0 and depth else None
    if one is None:
        return False
    if one[0] == op.PHI:
        ways = [each for each in one[3:] if not _is_undefined(function, each)]
        return all(each != register and _is_strided(facts, function, each, modelled, depth - 1) for each in ways)
    if one[0] == op.PARAM:
        given = _given(facts, function, one[3])
        return bool(given) and all(each is not None and _is_strided(facts, caller, each, modelled, depth - 1) for caller, each in given)
    if one[0] == op.ITEM:
        index = function.definitions[one[4]]
        return index is not None and index[0] == op.BUILD and leaves_out(function, index)
    return any(each.row.get("part") == "strided" for each in modelled(function, one))


def _is_undefined(function: Function, register: int) -> bool:
    one = function.definitions[register] if register >= 0 else None
    return one is not None and one[0] == op.UNDEF


def _given(facts: Facts, function: Function, index: int) -> list[tuple[Function, int | None]]:
    """What the calls of a function give for a parameter."""
    calls = [place for place in facts.call_places(function) if place[1][0] in (op.CALL, op.INVOKE)]
    return [(caller, operand_of(caller, call, function, index)) for caller, call in calls]


def _factory(call: ModelledCall) -> Iterator[Worked]:
    """A factory fills what it makes, if that is not on the host; one that may give back what it is given does so on a device, of what is
    no memory there."""
    if out := call.all("out"):
        yield Worked(Stream(CURRENT, library=call.row.library), (), tuple(out), call.name, call.row.library)
        return
    made = list(call.memory(call.result))
    if made and all(value.space == "host" for value in made):
        return
    is_there = any(value.space == "device" for value in made)
    given = call.one("data")
    if not call.row.get("alias") or (is_there and given is not None and not call.memory(given)):
        stream = Stream(CURRENT, library=call.row.library)
        yield Worked(stream, (), (), call.name, call.row.library, call.result, fills="empty" not in call.name)


def _written(call: ModelledCall) -> Iterator[Worked]:
    yield Worked(call.stream(), tuple(call.all("reads")), tuple(call.all("of")), call.name, call.row.library)


def _memset(call: ModelledCall) -> Iterator[Worked]:
    given = call.all("of") or call.all("dst") or list(call.operands[:1])
    yield Worked(call.stream(), (), tuple(given), call.name, call.row.library, op.NONE, False, True)


def _free(call: ModelledCall) -> Iterator[Worked]:
    """Memory goes back to the pool in the order of a stream."""
    if call.row.get("stream") is not None:
        yield Worked(call.stream(), (), tuple(call.all("of")), call.name, call.row.library, op.NONE, False, True)


def _read(call: ModelledCall) -> Iterator[Worked]:
    """``x.item()``: the host fetches a value."""
    given = call.all("of") if call.row.get("of") is not None else [call.receiver] if call.receiver is not None else []
    if not is_address(call, given):
        yield Worked(Stream(CURRENT, library=call.row.library), tuple(given), (), call.name, call.row.library, waits=True)


def _collective(call: ModelledCall) -> Iterator[Worked]:
    """A collective works behind the current stream, which does not wait for it by itself if it is asynchronous."""
    if call.row.get("part") is None:
        stream = Stream(CURRENT, library=call.row.library)
        yield Worked(stream, call.operands, tuple(call.all("writes")), call.name, call.row.library, evident=True)


def received(call: ModelledCall) -> Iterator[int]:
    """What the functions write that a batch starts, of objects that hold one and its arguments: ``P2POp(dist.irecv, tensor, peer)``."""
    function, batch = call.function, call.one("batch")
    if batch is None or batch < 0:
        return
    put = [use[-1] for use in function.uses[batch] if use[0] == op.APPEND or function.invokes(use, "puts")]
    for register in (*held_in(function, batch), *put):
        made = function.definitions[register]
        given = argument_registers(function, made) if made is not None else []
        for each in given:
            names = {value.name for value in call.values(each[1]) if isinstance(value, External)}
            row = function.unit.models.call(names.pop()) if len(names) == 1 else None
            if row is not None and row.effect == "collective":
                others = [other for other in given if other is not each]
                yield from (held for selector in selectors(row, "writes") if (held := selected_of(others, selector)) is not None)
                break


def _launch(call: ModelledCall) -> Iterator[Worked]:
    """A library queues work, or a kernel."""
    row = call.row
    if call.asks_for_size():
        return
    given = tuple(call.all("given"))
    reads, writes = tuple(call.all("reads")), tuple(call.all("writes"))
    if row.get("given") is not None:
        reads, writes = (*reads, *given), writes
    held = row.get("stream")
    if row.get("packed") is not None and not (isinstance(held, Selector) and held.kind == "pointee"):
        inner, packed = packed_arguments(call), call.one("packed")  # not of a launch whose stream is a field of its configuration
        is_written = packed in writes
        if call.function.is_cpp:  # a kernel that is given one pointer writes there
            inner = [each for each in inner if not is_number(call.facts, call.function, each)]
            is_written = is_written or len(inner) == 1
        writes = (*writes, *(inner if is_written else ()))
        reads = (*reads, *inner)
    if row.get("policy"):
        yield _by_policy(call)
        return
    handle = call.one("handle") if row.get("stream") == HANDLE else None
    stream = Stream(HANDLE, handle, row.library) if handle is not None else call.stream()
    yield Worked(stream, reads, writes, call.name, row.library, op.NONE, False, row.library in call.facts.models.marked("device-memory"))


def _moved(call: ModelledCall) -> Iterator[Worked]:
    """A copy that an algorithm does; of all others an action tells."""
    if is_algorithm(call):
        yield _by_policy(call)


def _by_policy(call: ModelledCall) -> Worked:
    """An algorithm: on the null stream, or on that of its policy. It reads what its iterators lead to; the host waits, as a rule."""
    given, policies = call.operands, Policies(call)
    first = given[0] if given else op.NONE
    stream, waits = Stream(NULL, library=call.row.library), bool(call.row.get("waits"))
    if not call.memory(first):
        is_stream = any(isinstance(value, LibraryObject) and value.kind == "stream" for value in call.values(first))
        unknown = Stream(UNKNOWN, library=call.row.library)
        stream = call.stream_in(first) if is_stream else policies.stream if policies.is_known else unknown
        waits = waits and policies.waits
        given = given[1:]
    written = given[:1] if call.row.get("in_place") else ()
    return Worked(stream, given, written, call.name, call.row.library, op.NONE, False, True, waits=waits)


_WORK = {
    "compute": _compute,
    "factory": _factory,
    "write": _written,
    "memset": _memset,
    "read": _read,
    "free": _free,
    "launch": _launch,
    "copy": _moved,
    "collective": _collective,
}


def is_stream(values: Iterable[object]) -> bool:
    """Whether a value is a stream."""
    return any(isinstance(value, LibraryObject) and value.kind == "stream" for value in values)
