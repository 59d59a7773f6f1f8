"""Instructions that use a CUDA device for sure: work on its memory, transfers to it, calls of the runtime."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind, last_name
from streamlint.facts.code.objects import Constant, External, LibraryObject, Memory, Object, Scalar, Site, Unknown
from streamlint.facts.code.passing import is_put, stored
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.support.truths import Ask, Truths
from streamlint.transfer.actions import CURRENT, NAMED, NULL, Copied, Lost, Stream, Viewed
from streamlint.transfer.carried import Carriers
from streamlint.transfer.carried_calls import COPIED
from streamlint.transfer.copies import is_algorithm
from streamlint.transfer.language import is_host_comparison
from streamlint.transfer.modelled import ModelledCall, operands_of
from streamlint.transfer.numba_kernels import launched
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.work import reordered
from streamlint.waits.operands import operand_of

WORK, OTHER, PIN = "work", "other", "pin"
_RUNTIME = frozenset({"touch", "synchronize", "event", "stream", "record", "wait", "query"})
_QUEUED = frozenset({"launch", "memset"})
_OPERATORS = frozenset({op.BINARY, op.INPLACE, op.UNARY, op.COMPARE})
_PASSED_ON = {op.ITEM: 3, op.COPY: 3, op.AWAIT: 3, op.UNPACK: 3, op.NEXT: 3, op.ITER: 3, op.CAST: 4, op.REBIND: 5, op.DEREF: 3,
              op.ADDRESS_ITEM: 3}  # fmt: skip
"""Where the operand stands that an instruction gives back, or takes a part of."""
_COMPUTING = frozenset({"compute", "view", "same"})
Value = tuple[Function, int]
Given = Mapping[tuple[Function, int], Value]


class Use(NamedTuple):
    """What an instruction does on a device: ``work`` on a stream, ``other`` calls of the runtime, ``pin``. ``given`` are the registers
    of memory that was on the device before."""

    kind: str
    name: str
    library: str
    stream: Stream
    given: tuple[int, ...] = ()


class _Answers(NamedTuple):
    there: Truths[Value]
    uses: dict[tuple[Function, Instruction], tuple[Use, ...]]


def _is_queued(call: ModelledCall) -> bool:
    """Whether a call queues a kernel, or an algorithm."""
    return call.row.effect in _QUEUED or is_algorithm(call)


class Uses:
    """The uses of devices in a program."""

    def __init__(self, transfer: Transfer, scoped: Callable[[Function, Instruction], bool] | None = None) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.scoped = scoped
        self._answers: dict[frozenset[object], _Answers] = {}
        self.under({})

    def under(self, given: Given) -> None:
        """Answer for a thread from now on: by parameter, what its start gives for it."""
        self._started_with = given
        self._known = self._answers.setdefault(frozenset(given.items()), _Answers(Truths(self._is_there), {}))

    def at(self, function: Function, one: Instruction) -> tuple[Use, ...]:
        """What an instruction does on devices, by itself."""
        key = (function, one)
        found = self._known.uses.get(key)
        if found is None:
            found = self._known.uses[key] = tuple(self._find(function, one))
        return found

    def _find(self, function: Function, one: Instruction) -> Iterator[Use]:
        if one[0] == op.LAUNCH:
            yield self._launched(function, one)
        elif one[0] in _OPERATORS and not function.is_cpp:
            given = tuple(register for register in op.reads(one) if self.on_device(function, register))
            if given and not is_host_comparison(function, one):
                yield Use(WORK, "operator", self.library(function, given), Stream(CURRENT), given)
        elif one[0] in (op.CALL, op.INVOKE):
            for call in self.transfer.modelled(function, one):
                yield from self._of_call(call)
            for kernel in launched(self.facts, self.transfer.libraries, function, one):
                given = tuple(each for each in (*kernel.reads, *kernel.writes) if self.on_device(function, each))
                yield Use(WORK, kernel.name, kernel.library, kernel.stream, given)
                return
            is_opaque = self._is_out_of_view(function, one)
            given = tuple(each for each in operands_of(function, one, False) if self.on_device(function, each)) if is_opaque else ()
            if given:  # a call out of view works on what it is given, on the current stream
                name = last_name(function, one)
                yield Use(WORK, name, self.library(function, given), Stream(CURRENT), given)
            elif self._is_module_there(function, one):
                yield Use(WORK, "module", "torch", Stream(CURRENT, library="torch"))

    def _is_out_of_view(self, function: Function, one: Instruction) -> bool:
        """Whether a call may work on what it is given. What functions of the program do that it enters is in view, and what one of Python's
        own library hands on, or a container is given by a method of that name, is the work of whoever gets it."""
        if not any(isinstance(action, Lost) for action in self.transfer.of(function, one)):
            return False
        if any(edge.is_followed for edge in self.transfer.edges(function, one)):
            return False
        if is_put(function, one) and not any(True for _ in self.transfer.modelled(function, one)):
            return False
        names = [call.name for call in self.transfer.libraries(function, one)]
        return not (names and all(self.facts.is_of_host(function, name) for name in names))

    def _launched(self, function: Function, one: Instruction) -> Use:
        """A kernel, on the stream that is given: that may be the current one of PyTorch."""
        name = function.dotted(one[3]).rpartition("::")[2]
        if one[5] <= 3:
            return Use(WORK, name, "cuda-runtime", Stream(NULL, library="cuda-runtime"))
        held = [value for value in self.transfer.values(function, one[9]) if isinstance(value, LibraryObject) and value.kind == "stream"]
        if held and all(value.detail == "current" for value in held):
            return Use(WORK, name, "torch", Stream(CURRENT, one[9], "torch"))
        return Use(WORK, name, "cuda-runtime", Stream(NAMED, one[9], "cuda-runtime"))

    def _of_call(self, call: ModelledCall) -> Iterator[Use]:
        row, effect = call.row, call.row.effect
        if row.library in call.facts.models.marked("on-host"):
            return
        if effect in _RUNTIME:
            if self.transfer.is_by_name(call):  # `query` of a database
                return
            yield Use(OTHER, call.name, row.library, Stream(CURRENT, library=row.library))
        elif _is_queued(call):
            yield Use(WORK, call.name, row.library, call.stream())
        elif effect in ("copy", "transfer"):
            for action in self.transfer.of(call.function, call.instruction):
                if isinstance(action, Copied) and self._is_between(call, action):
                    yield Use(WORK, call.name, row.library, action.stream, self._given(call))
        elif (effect == "load" and call.device_spaces() == {"device"}) or _moves_module(call):
            yield Use(WORK, call.name, row.library, Stream(CURRENT, library=row.library))
        elif self._computes(call):
            yield from self._computed(call)
        elif effect == "pin":
            yield Use(PIN, call.name, row.library, Stream(CURRENT))

    def _computes(self, call: ModelledCall) -> bool:
        """Whether a call makes new values of those that it is given, or lays them out anew."""
        return call.row.effect in ("compute", "factory", "read") or any(True for _ in reordered((call,), self.transfer.modelled))

    def _computed(self, call: ModelledCall) -> Iterator[Use]:
        library = call.row.library
        if call.row.get("alias") and call.row.get("space") == "host":
            return  # what wraps memory of the host is given some
        if call.is_of_arrays or self._given(call) or self.on_device(call.function, call.result):
            yield Use(WORK, call.name, library, Stream(CURRENT, library=library), self._given(call))
        elif call.row.effect == "factory" and self._pins(call):
            yield Use(PIN, call.name, library, Stream(CURRENT))

    def _is_between(self, call: ModelledCall, copied: Copied) -> bool:
        """Whether a copy is to or from a device for sure."""
        if copied.direction == "d2h":
            return self.on_device(call.function, copied.source) or call.row.library not in call.facts.models.marked("tensors")
        if copied.direction in ("h2d", "d2d", "peer"):
            is_named = call.row.effect == "copy" or self._names_device(call)
            return is_named or not self.on_host(call.function, call.result)
        sides = (copied.source, copied.target)
        return any(self.on_device(call.function, side) for side in sides) or (copied.asynchronous is True and self._is_pinned(call, sides))

    def _names_device(self, call: ModelledCall) -> bool:
        """Whether the place that a call is given is a device, whoever calls its function in view."""
        spaces = call.device_spaces()
        if spaces == {"device"}:
            return True
        registers = [each for each in call.all("device") if call.spaces_of(call.function, each)] if "device" in spaces else []
        sources = [source for each in registers for source in self._carriers.sources(call.function, each)]
        return bool(sources) and all(call.spaces_of(source.function, source.register) == {"device"} for source in sources)

    @cached_property
    def _carriers(self) -> Carriers:
        return self.transfer.one_of(Carriers, self.transfer)

    def _is_pinned(self, call: ModelledCall, sides: tuple[int, ...]) -> bool:
        """Whether one of two sides is page-locked: a copy that need not wait has a device on the other one."""
        return any(value.pinning == "pinned" for side in sides if side >= 0 for value in call.memory(side))

    def _given(self, call: ModelledCall) -> tuple[int, ...]:
        return tuple(register for register in call.operands if self.on_device(call.function, register))

    def _pins(self, call: ModelledCall) -> bool:
        return any(value.space == "host" and value.pinning == "pinned" for value in call.memory(call.result))

    def on_device(self, function: Function, register: int) -> bool:
        """Whether a register holds memory of a device for sure, and as far as is known no other."""
        return self._known.there.holds((function, register))

    def _is_there(self, value: Value, asks: Ask[Value]) -> bool:
        function, register = value
        values = list(self.transfer.values(function, register))
        held = [value for value in values if isinstance(value, Memory)]
        if any(value.space == "host" for value in held) or _are_literals(values):
            return False
        if any(value.space == "device" and value.evidence != "asked" for value in held):
            return True
        return self._is_brought(function, register, asks)

    def _is_brought(self, function: Function, register: int, asks: Ask[Value]) -> bool:
        """Whether a register holds what nobody knows, and what was moved to a device all the same: ``x.cuda()``."""
        one = function.definitions[register] if register >= 0 else None
        if one is None:
            return False
        if one[0] == op.ATTR and function.owner is not None and function.is_parameter(one[3]):
            stores = function.owner.own_stores.get(function.text(one[4]), ())
            return bool(stores) and all(asks((store.function, store.value)) for store in stores)
        if one[0] == op.PARAM:
            return self._is_given(function, one[3], asks)
        if one[0] not in (op.CALL, op.INVOKE) or _copies_elements(function, one):
            return any(map(asks, self._passed_on(function, one)))
        if self._is_computed(function, one, asks):
            return True
        lost = any(isinstance(action, Lost) for action in self.transfer.of(function, one))
        return lost and any(asks((function, each)) for each in operands_of(function, one, False))

    def _passed_on(self, function: Function, one: Instruction) -> Iterator[Value]:
        """What an instruction gives back, views, takes a part of, or puts into another container."""
        if one[0] == op.ATTR:
            views = (action for action in self.transfer.of(function, one) if isinstance(action, Viewed))
            yield from ((function, view.register) for view in views)
        elif one[0] == op.CALL:
            yield from ((function, each) for each in op.reads(one))
        else:
            yield from _sources(function, one)

    def _is_computed(self, function: Function, one: Instruction, asks: Ask[Value]) -> bool:
        """Whether a call gives memory of a device, of a library or of the program."""
        calls = self.transfer.modelled(function, one)
        return any(self._gives_there(call, asks) for call in calls) or any(map(asks, self._given_back(function, one)))

    def _given_back(self, function: Function, one: Instruction) -> Iterator[Value]:
        """What the functions of the program give back that a call enters."""
        for edge in self.transfer.edges(function, one):
            ends = edge.callee.by_opcode[op.RETURN] if edge.is_direct else []
            yield from ((edge.callee, end[2]) for end in ends if end[2] >= 0)

    def _gives_there(self, call: ModelledCall, asks: Ask[Value]) -> bool:
        """Whether a call gives memory of a device: it moves it there, or computes with such, or under a stream that was chosen."""
        row = call.row
        if row.effect in ("transfer", "load"):
            if row.get("to") == "device" or call.device_spaces() == {"device"}:
                return True
            source = call.one("of", call.receiver) if row.get("to") == "argument" else None
            return source is not None and self._names_no_device(call) and asks((call.function, source))
        if row.effect not in _COMPUTING:
            return False
        if call.is_of_arrays or (self.scoped is not None and row.effect == "compute" and self.scoped(call.function, call.instruction)):
            return True
        return any(asks((call.function, register)) for register in call.operands)

    def _names_no_device(self, call: ModelledCall) -> bool:
        """Whether no argument of a call may be a device: ``x.to(torch.half)`` changes the type alone."""
        held = [self.transfer.values(call.function, register) for register in call.all("device")]
        return not call.device_spaces() and all(values and not any(map(_may_be_device, values)) for values in map(list, held))

    def _is_given(self, function: Function, index: int, asks: Ask[Value]) -> bool:
        """Whether a parameter is given memory of a device."""
        given = self._started_with.get((function, index))
        if given is not None:
            return asks(given)
        for caller, call in self.facts.call_places(function):
            register = operand_of(caller, call, function, index) if call[0] in (op.CALL, op.INVOKE) else None
            if register is not None and register >= 0 and asks((caller, register)) and self.transfer.enters(caller, call, function):
                return True
        return False

    def on_host(self, function: Function, register: int) -> bool:
        """Whether a register may hold memory of the host, or of a device that nobody knows."""
        values = self.transfer.values(function, register)
        return any(isinstance(value, Memory) and (value.space == "host" or value.evidence == "asked") for value in values)

    def library(self, function: Function, registers: tuple[int, ...]) -> str:
        """The library of what is on a device in some registers."""
        values = (value for register in registers for value in self.transfer.values(function, register))
        return "cupy" if any(isinstance(value, Memory) and value.type.startswith("cupy") for value in values) else "torch"

    def _is_module_there(self, function: Function, one: Instruction) -> bool:
        """Whether a call calls a module of a library that was moved to a device on its way."""
        node = self.transfer.graph.called(function, one)
        self.facts.solver.solve()
        modules = [value for value in list(node.values) if isinstance(value, LibraryObject) and value.kind == "module"]
        return any(site.instruction != one and self._is_moved(site) for value in modules for site in node.trace(value))

    def _is_moved(self, site: Site) -> bool:
        """Whether a call moves a module to a device, or goes on with what such a call gives (``net.to("cuda").eval()``)."""
        function, calling = site.function, (op.CALL, op.INVOKE)
        steps = behind(function, [site.instruction[2]], lambda each: each[3:4] if each[0] == op.INVOKE else ())
        calls = (call for each in steps if each[0] in calling for call in self.transfer.modelled(function, each))
        return site.instruction[0] in calling and any(map(_moves_module, calls))


def _moves_module(call: ModelledCall) -> bool:
    """Whether a call moves a module to a device that it says."""
    to = call.row.get("to") if call.row.effect == "module_to" else None
    return to == "device" or (to == "argument" and call.device_spaces() == {"device"})


def _are_literals(values: Collection[Object]) -> bool:
    """Whether literals are all that is known of a value."""
    known = [value for value in values if not isinstance(value, Unknown)]
    return bool(known) and all(isinstance(value, Constant) for value in known)


def _may_be_device(value: Object) -> bool:
    """Whether an object may be a device, or memory whose device another one follows."""
    return not isinstance(value, (Constant, Scalar, External))


def _sources(function: Function, one: Instruction) -> Iterator[tuple[Function, int]]:
    """The registers that an instruction gives back, takes a part of, or computes with."""
    if one[0] in _PASSED_ON:
        yield function, one[_PASSED_ON[one[0]]]
    elif one[0] == op.PHI:
        yield from ((function, each) for each in one[3:])
    elif one[0] == op.BUILD:
        yield from ((function, each) for each in one[4:])
        yield from ((function, use[3]) for use in function.uses[one[2]] if use[0] == op.APPEND and use[2] == one[2])
    elif one[0] == op.LOAD:
        name, owner = function.unit.ir.constants[one[3]]
        home = function.unit.function(owner)
        yield from ((home, each[3]) for each in home.by_opcode[op.STORE] if home.unit.ir.constants[each[2]] == (name, owner))
    elif one[0] in (op.DECLARE, op.CONSTRUCT):
        yield from ((function, each) for each in (*_put_in(function, one[2]), *one[5 : None if one[0] == op.CONSTRUCT else 5]))
    elif one[0] in _OPERATORS:
        yield from ((function, each) for each in op.reads(one))


def _copies_elements(function: Function, one: Instruction) -> bool:
    """Whether a container is made of another one."""
    return one[0] == op.CALL and not function.is_cpp and function.dotted(one[3]) in COPIED


def _put_in(function: Function, container: int) -> Iterator[int]:
    """C++: what methods put into a container, which may be a cell that lambdas share."""
    cells = {use[2] for use in function.uses[container] if use[0] == op.STORE and use[3] == container}
    held = (container, *(one[2] for one in function.by_opcode[op.LOAD] if one[3] in cells))
    for use in (each for register in held for each in function.uses[register]):
        if use[0] == op.INVOKE and use[3] in held and len(use) > 6 and (register := stored(function, use)) is not None:
            yield register if register != op.NONE else use[6]
