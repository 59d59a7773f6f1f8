"""What instructions ask of the driver and of devices, in one vocabulary for all libraries: copies, work, memory, waits, streams, events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant, Container, Elements, Group, LibraryObject, Memory, Scalar
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.support.memo import memoized
from streamlint.transfer import numba_kernels
from streamlint.transfer.actions import CURRENT, DEVICE, MASKING, NULL, Copied, Read, Stream
from streamlint.transfer.copies import is_algorithm
from streamlint.transfer.language import is_host_comparison
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.order import is_event
from streamlint.transfer.policies import Policies
from streamlint.transfer.transfer import Transfer
from streamlint.waits.indices import is_mask, parts_of
from streamlint.waits.operands import operand_of
from streamlint.waits.origins import TENSOR

COPY, READ, KERNEL, WORK, COMPUTE = "copy", "read", "kernel", "work", "compute"
SYNCHRONIZE, QUERY, RECORD, WAIT = "synchronize", "query", "record", "wait"
ALLOC, FREE, TRIM, REGISTER, UNREGISTER, PIN = "alloc", "free", "trim", "register", "unregister", "pin"
STREAM, EVENT, DESTROY, CALLBACK, UPLOAD = "stream", "event", "destroy", "callback", "upload"
OTHERS, COLLECTIVE = "others", "collective"
"""A wait for somebody else, ``memory`` says for whom; a collective of several processes."""
_CONTAINERS = (Container, Elements, Group)
_OPERATORS = frozenset({op.BINARY, op.INPLACE, op.UNARY, op.COMPARE})
_SOURCES = {op.ITEM: 3, op.COPY: 3, op.UNPACK: 3, op.CAST: 4, op.REBIND: 5}
"""What gives an operand back or takes a part of it, and where that stands."""


class DeviceOperation(NamedTuple):
    """One operation. ``needs`` are the registers of which one must be on a device for it to work there; of ``of`` a wait, query, record or
    free says what it is about. ``cached``: memory of a pool, which the driver does not see as a rule."""

    kind: str
    name: str
    library: str
    stream: Stream | None = None
    of: int = op.NONE
    needs: tuple[int, ...] | None = None
    direction: str = ""
    asynchronous: bool | None = None
    memory: str = ""
    cached: bool = False
    waits: bool = False
    is_event: bool = False
    call: ModelledCall | None = None


class DeviceOperations:
    """The operations of a program's instructions."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self._places: dict[tuple[Function, int], bool] = {}

    @memoized
    def of(self, function: Function, one: Instruction) -> tuple[DeviceOperation, ...]:
        """What an instruction asks of devices."""
        return tuple(self._find(function, one))

    def on_device(self, function: Function, register: int) -> bool:
        """Whether a register is shown to hold memory of a device: by its values, or by how it was computed."""
        key = (function, register)
        found = self._places.get(key)
        if found is None:
            self._places[key] = False  # a cycle of registers shows nothing
            found = self._places[key] = self._on_device(function, register)
        return found

    def _on_device(self, function: Function, register: int) -> bool:
        one = function.definitions[register] if register >= 0 else None
        if one is not None and is_host_comparison(function, one):
            return False
        if any(isinstance(value, Memory) and value.space == "device" for value in self.transfer.values(function, register)):
            return True
        return one is not None and self._made_on_device(function, one)

    def _made_on_device(self, function: Function, one: Instruction) -> bool:
        source = _source(function, one)
        if source is not None:
            return self.on_device(function, source)
        if one[0] in _OPERATORS:
            return not function.is_cpp and self._any(function, op.reads(one))
        if one[0] == op.PARAM:
            return not function.is_cpp and any(self.on_device(*given) for given in self._given(function, one[3]))
        if one[0] == op.LOAD:
            return any(self.on_device(*stored) for stored in stores_of(function, one[3]))
        if one[0] not in (op.CALL, op.INVOKE):
            return False
        calls = list(self.transfer.modelled(function, one))
        if not calls and one[0] == op.INVOKE and self._is_tensor_method(function, one):
            return self.on_device(function, one[3])
        return any(self._gives_device(call) for call in calls)

    def _given(self, function: Function, index: int) -> Iterator[tuple[Function, int]]:
        """What the calls of a function give for a parameter."""
        for caller, call in self.transfer.facts.call_places(function):
            if call[0] in (op.CALL, op.INVOKE) and self.transfer.enters(caller, call, function):
                register = operand_of(caller, call, function, index)
                if register is not None:
                    yield caller, register

    def _is_tensor_method(self, function: Function, one: Instruction) -> bool:
        """Whether a method is one of tensors or arrays that computes, by its name."""
        models = self.transfer.facts.models
        rows = (models.method(kind, function.text(one[4])) for kind in models.array_types)
        return any(row is not None and row.effect in ("compute", "view") for row in rows)

    def _any(self, function: Function, registers: Iterable[int]) -> bool:
        return any(self.on_device(function, register) for register in registers)

    def _gives_device(self, call: ModelledCall) -> bool:
        """Whether the result of a call is on a device, by what the call does."""
        row, function = call.row, call.function
        if row.effect == "transfer":
            return row.get("to") == "device" or (row.get("to") == "argument" and "device" in call.device_spaces())
        if row.effect == "compute" and not row.get("host") and row.get("result") != "scalar":
            return row.library == "cupy" or self._any(function, call.operands)
        if row.effect in ("view", "same"):
            of = call.one("of", call.receiver)
            return of is not None and call.text("type") in ("", TENSOR) and self.on_device(function, of)
        return False

    def _find(self, function: Function, one: Instruction) -> Iterator[DeviceOperation]:
        if one[0] == op.LAUNCH:
            yield self._kernel(function, one)
        for action in self.transfer.of(function, one):
            yield from self._of_action(function, one, action)
        if one[0] in (op.CALL, op.INVOKE, op.CONSTRUCT, op.NEW):
            for call in self.transfer.modelled(function, one):
                yield from self._of_row(call)
            for kernel in numba_kernels.launched(self.transfer.facts, self.transfer.libraries, function, one):
                yield DeviceOperation(KERNEL, kernel.name, kernel.library, kernel.stream)
        elif one[0] == op.SET_ITEM and not function.is_cpp:
            yield from self._stored(function, one)
        elif one[0] == op.ITEM and not function.is_cpp and self._is_masked(function, one[4]):
            yield DeviceOperation(READ, MASKING, "torch", Stream(CURRENT), one[3], (one[3],), waits=True)
        elif one[0] in _OPERATORS and not function.is_cpp and not is_host_comparison(function, one):
            operands = tuple(op.reads(one))
            yield DeviceOperation(COMPUTE, "operator", "", Stream(CURRENT), needs=operands)

    def _kernel(self, function: Function, one: Instruction) -> DeviceOperation:
        launched = function.definitions[one[3]]
        name = function.text(launched[3]) if launched is not None and launched[0] == op.NAME else "the kernel"
        register = one[9] if one[5] > 3 else op.NONE
        stream = Stream(NULL, library="cuda-runtime") if register < 0 else Stream("named", register, "cuda-runtime")
        return DeviceOperation(KERNEL, name, "cuda-runtime", stream)

    def _of_action(self, function: Function, one: Instruction, action: object) -> Iterator[DeviceOperation]:
        if isinstance(action, Copied):
            row = action.call.row
            library = row.library if row is not None else ""
            sides = (action.target, action.source)
            needs = sides if row is not None and row.effect != "copy" and action.direction == "d2h" else None
            call = ModelledCall(self.transfer.facts, function, action.call, row) if row is not None else None
            yield DeviceOperation(
                COPY,
                action.call.name,
                library,
                action.stream,
                action.target,
                needs,
                action.direction,
                action.asynchronous,
                call=call,
            )
        elif (
            isinstance(action, Read)
            and action.waits
            and action.name != MASKING
            and not (one[0] == op.BRANCH and self._is_container(function, action.register))
        ):
            yield DeviceOperation(READ, action.name, "", Stream(CURRENT), action.register, (action.register,), waits=True)

    def _is_container(self, function: Function, register: int) -> bool:
        return any(isinstance(value, _CONTAINERS) for value in self.transfer.values(function, register))

    def _stored(self, function: Function, one: Instruction) -> Iterator[DeviceOperation]:
        """A part of a tensor of the host is set to values of a device."""
        held = [value for value in self.transfer.values(function, one[2]) if isinstance(value, Memory)]
        if self._is_masked(function, one[3]) and self.on_device(function, one[4]):
            yield DeviceOperation(READ, MASKING, "torch", Stream(CURRENT), one[2], (one[2],), waits=True)
        elif held and all(value.space == "host" and value.type == TENSOR for value in held) and self.on_device(function, one[4]):
            yield DeviceOperation(READ, "assignment", "torch", Stream(CURRENT), one[4], (one[4],), waits=True)
        elif held or _is_part(function, one[3]):
            needs = (one[2], one[4]) if held else (one[4],)
            yield DeviceOperation(COMPUTE, "assignment", "", Stream(CURRENT), needs=needs)

    def _is_masked(self, function: Function, index: int) -> bool:
        """Whether an index holds a mask of a device: only the device knows how many elements that are."""
        return any(self.on_device(function, part) and self._is_mask(function, part) for part in parts_of(function, index))

    def _is_mask(self, function: Function, register: int) -> bool:
        if is_mask(self.transfer.facts, function, register):
            return True
        one = function.definitions[register] if register >= 0 else None
        given = self._given(function, one[3]) if one is not None and one[0] == op.PARAM else ()
        return any(is_mask(self.transfer.facts, *each) for each in given)

    def _uploads(self, call: ModelledCall) -> bool:
        """Whether a factory uploads data of the host; C++ fills in one number."""
        for register in call.all("data"):
            for value in call.values(register):
                if isinstance(value, _CONTAINERS) or (isinstance(value, Memory) and value.space == "host"):
                    return True
                if isinstance(value, (Constant, Scalar)) and not call.function.is_cpp and not call.row.get("alias"):
                    return True
        return False

    def _of_row(self, call: ModelledCall) -> Iterable[DeviceOperation]:
        finder = _FINDERS.get(call.row.effect)
        return finder(self, call) if finder is not None else ()

    def _launched(self, call: ModelledCall) -> Iterator[DeviceOperation]:
        kind = "graph" if call.row.get("graph") else WORK
        policy = Policies(call) if call.row.get("policy") else None
        waits = call.waits_for_result() and (policy is None or policy.waits)
        stream = call.stream() if policy is None else policy.stream
        yield DeviceOperation(kind, call.name, call.row.library, stream, waits=waits, call=call)

    def _copied(self, call: ModelledCall) -> Iterator[DeviceOperation]:
        """A copy that an algorithm does; of all others an action tells."""
        yield from self._launched(call) if is_algorithm(call) else ()

    def _computed(self, call: ModelledCall) -> Iterator[DeviceOperation]:
        if call.row.get("host"):
            return
        given = call.all("reads") if call.row.get("reads") is not None else list(call.operands)
        needs = tuple(dict.fromkeys((*given, *call.all("writes"), call.result)))
        waits = call.waits(partial(self.on_device, call.function))
        yield DeviceOperation(COMPUTE, call.name, call.row.library, call.stream(), needs=needs, waits=waits, call=call)

    def _queried(self, call: ModelledCall) -> Iterator[DeviceOperation]:
        of = call.one("of", call.receiver)
        is_of_event = of is not None and is_event(call, of)
        yield DeviceOperation(QUERY, call.name, call.row.library, of=_subject(call), is_event=is_of_event, call=call)

    def _ordered(self, call: ModelledCall) -> Iterator[DeviceOperation]:
        effect = call.row.effect
        of = call.one("event" if effect == RECORD else "on")
        yield DeviceOperation(effect, call.name, call.row.library, call.stream(), call.result if of is None else of, call=call)

    def _waited(self, call: ModelledCall) -> Iterator[DeviceOperation]:
        of = call.row.get("of")
        library = call.row.library
        register = call.one("of", call.receiver) if of not in (CURRENT, NULL, DEVICE) else None
        if of in (CURRENT, NULL):
            yield DeviceOperation(SYNCHRONIZE, call.name, library, Stream(str(of), library=library), waits=True, call=call)
        elif register is None:
            yield DeviceOperation(SYNCHRONIZE, call.name, library, waits=True, call=call)
        elif is_event(call, register):
            yield DeviceOperation(SYNCHRONIZE, call.name, library, of=register, waits=True, is_event=True, call=call)
        else:
            yield DeviceOperation(SYNCHRONIZE, call.name, library, call.stream_in(register), register, waits=True, call=call)

    def _allocated(self, call: ModelledCall) -> Iterator[DeviceOperation]:
        row, effect = call.row, call.row.effect
        memory = call.text("memory") or "device"
        if row.library in call.facts.models.marked("on-host") or memory == "pageable":
            return
        stream = call.stream() if row.get("stream") is not None else None
        of = _subject(call) if effect == FREE else op.NONE
        cached = stream is not None
        yield DeviceOperation(effect, call.name, row.library, stream, of, memory=memory, cached=cached, waits=effect == FREE, call=call)

    def _made(self, call: ModelledCall) -> Iterator[DeviceOperation]:
        row, library, name = call.row, call.row.library, call.name
        space = {value.space for value in call.memory(call.result)}
        if "device" in space and library == "torch" and self._uploads(call):
            yield DeviceOperation(UPLOAD, name, library, Stream(CURRENT), direction="h2d", waits=True, call=call)
        if "device" in space or row.get("space") == "device":
            yield DeviceOperation(
                ALLOC, name, library, needs=(call.result,), memory="device", cached=library in call.facts.models.marked("pooled"), call=call
            )
        elif any(value.pinning == "pinned" for value in call.memory(call.result)):
            yield DeviceOperation(PIN, name, library, memory="pinned", cached=True, call=call)

    def _pinned(self, call: ModelledCall) -> Iterator[DeviceOperation]:
        yield DeviceOperation(PIN, call.name, call.row.library, of=_subject(call), memory="pinned", cached=True, call=call)

    def _other(self, call: ModelledCall) -> Iterator[DeviceOperation]:
        stream = call.stream() if call.row.effect == CALLBACK else None
        yield DeviceOperation(call.row.effect, call.name, call.row.library, stream, call=call)

    def _collective(self, call: ModelledCall) -> Iterator[DeviceOperation]:
        if call.row.get("part") != "wait":
            yield DeviceOperation(COLLECTIVE, call.name, call.row.library, call=call)

    def _awaited(self, call: ModelledCall) -> Iterator[DeviceOperation]:
        if call.text("awaits"):
            yield DeviceOperation(OTHERS, call.name, call.row.library, memory=call.text("awaits"), waits=True, call=call)

    def _destroyed(self, call: ModelledCall) -> Iterator[DeviceOperation]:
        yield DeviceOperation(DESTROY, call.name, call.row.library, of=_subject(call), is_event="vent" in call.name, call=call)

    def kinds(self, function: Function, register: int) -> set[str]:
        """The kinds of library objects that a register may hold: ``stream``, ``event``."""
        return {value.kind for value in self.transfer.values(function, register) if isinstance(value, LibraryObject)}


_FINDERS: dict[str, Callable[[DeviceOperations, ModelledCall], Iterator[DeviceOperation]]] = {
    **dict.fromkeys(("launch", "memset"), DeviceOperations._launched),
    COPY: DeviceOperations._copied,
    COMPUTE: DeviceOperations._computed,
    SYNCHRONIZE: DeviceOperations._waited,
    QUERY: DeviceOperations._queried,
    **dict.fromkeys((RECORD, WAIT), DeviceOperations._ordered),
    **dict.fromkeys((ALLOC, FREE), DeviceOperations._allocated),
    "factory": DeviceOperations._made,
    PIN: DeviceOperations._pinned,
    **dict.fromkeys((TRIM, REGISTER, UNREGISTER, STREAM, EVENT, CALLBACK), DeviceOperations._other),
    COLLECTIVE: DeviceOperations._collective,
    **dict.fromkeys(("unknown", "communicator"), DeviceOperations._awaited),
    DESTROY: DeviceOperations._destroyed,
}
"""By the effect of a row: what finds the operations of a call."""


def _subject(call: ModelledCall) -> int:
    """The register of what a call is about."""
    of = call.one("of", call.receiver)
    return op.NONE if of is None else of


def _source(function: Function, one: Instruction) -> int | None:
    """The register that an instruction gives back, or takes a part of."""
    built = function.definitions[one[3]] if one[0] == op.UNPACK else None
    if built is not None and built[0] == op.BUILD and one[4] + 4 < len(built):
        return built[4 + one[4]]
    return one[_SOURCES[one[0]]] if one[0] in _SOURCES else None


def _is_part(function: Function, register: int) -> bool:
    """Whether an index means a part of an array: no list, dict or other container is indexed so and given an array."""
    one = function.definitions[register] if register >= 0 else None
    return one is not None and (one[0] == op.SLICE or (one[0] == op.CONST and function.unit.ir.constants[one[3]] is Ellipsis))


def stores_of(function: Function, cell: int) -> Iterator[tuple[Function, int]]:
    """What a function and those around it store in a cell: the function and the register."""
    name = function.unit.ir.constants[cell]
    holder: Function | None = function
    while holder is not None:
        for one in holder.by_opcode[op.STORE]:
            if holder.unit.ir.constants[one[2]] == name:
                yield holder, one[3]
        holder = holder.parent
