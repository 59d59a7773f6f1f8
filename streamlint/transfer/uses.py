"""Instructions that use a CUDA device for sure: work on its memory, transfers to it, calls of the runtime."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.functions import Function
from streamlint.facts.objects import LibraryObject, Memory
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.actions import CURRENT, Copied, Stream
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer

WORK, OTHER, PIN = "work", "other", "pin"
_RUNTIME = frozenset({"touch", "synchronize", "event", "stream", "record", "wait", "query"})
_QUEUED = frozenset({"launch", "memset"})
_OPERATORS = frozenset({op.BINARY, op.INPLACE, op.UNARY, op.COMPARE})
_PASSED_ON = frozenset({op.ITEM, op.COPY, op.AWAIT, op.UNPACK, op.NEXT, op.ITER})
_DEEPEST = 4
_ON_HOST = frozenset({"numpy", "python", "host-cpp"})


class Use(NamedTuple):
    """What an instruction does on a device: ``work`` on a stream, ``other`` calls of the runtime, ``pin``. ``given`` are the registers
    of memory that was on the device before."""

    kind: str
    name: str
    library: str
    stream: Stream
    given: tuple[int, ...] = ()


class Uses:
    """The uses of devices in a program."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self._known: dict[tuple[Function, Instruction], tuple[Use, ...]] = {}

    def at(self, function: Function, one: Instruction) -> tuple[Use, ...]:
        """What an instruction does on devices, by itself."""
        key = (function, one)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = tuple(self._find(function, one))
        return found

    def _find(self, function: Function, one: Instruction) -> Iterator[Use]:
        if one[0] == op.LAUNCH:
            stream = Stream("named", one[9], "cuda-runtime") if one[5] > 3 else Stream("null", library="cuda-runtime")
            yield Use(WORK, function.dotted(one[3]).rpartition("::")[2], "cuda-runtime", stream)
        elif one[0] in _OPERATORS and not function.is_cpp:
            given = tuple(register for register in op.reads(one) if self.on_device(function, register))
            if given:
                yield Use(WORK, "operator", self._library(function, given), Stream(CURRENT), given)
        elif one[0] in (op.CALL, op.INVOKE):
            for call in self.transfer.modelled(function, one):
                yield from self._of_call(call)
            if self._is_module_there(function, one):
                yield Use(WORK, "module", "torch", Stream(CURRENT, library="torch"))

    def _of_call(self, call: ModelledCall) -> Iterator[Use]:
        function, row, effect = call.function, call.row, call.row.effect
        if row.library in _ON_HOST:
            return
        if effect in _RUNTIME:
            yield Use(OTHER, call.name, row.library, Stream(CURRENT, library=row.library))
        elif effect in _QUEUED:
            yield Use(WORK, call.name, row.library, call.stream())
        elif effect in ("copy", "transfer", "move"):
            for action in self.transfer.of(function, call.instruction):
                if isinstance(action, Copied) and self._is_between(call, action):
                    yield Use(WORK, call.name, row.library, action.stream, self._given(call))
        elif effect == "module_to" and row.get("to") == "device":
            yield Use(WORK, call.name, row.library, Stream(CURRENT, library=row.library))
        elif effect in ("compute", "factory", "read"):
            if self._given(call) or self.on_device(function, call.result):
                yield Use(WORK, call.name, row.library, Stream(CURRENT, library=row.library), self._given(call))
            elif effect == "factory" and self._pins(call):
                yield Use(PIN, call.name, row.library, Stream(CURRENT))
        elif effect == "pin":
            yield Use(PIN, call.name, row.library, Stream(CURRENT))

    def _is_between(self, call: ModelledCall, copied: Copied) -> bool:
        """Whether a copy is to or from a device for sure."""
        if copied.direction == "d2h":
            return self.on_device(call.function, copied.source) or call.row.library not in ("torch", "cupy")
        if copied.direction in ("h2d", "d2d", "peer"):
            is_named = call.row.effect == "copy" or call.device_spaces() == {"device"}
            return is_named or not self.on_host(call.function, call.result)
        return any(self.on_device(call.function, side) for side in (copied.source, copied.target))

    def _given(self, call: ModelledCall) -> tuple[int, ...]:
        return tuple(register for register in call.operands if self.on_device(call.function, register))

    def _pins(self, call: ModelledCall) -> bool:
        return any(value.space == "host" and value.pinning == "pinned" for value in call.memory(call.result))

    def on_device(self, function: Function, register: int, depth: int = 0) -> bool:
        """Whether a register holds memory of a device for sure, and as far as is known no other."""
        held = [value for value in self.transfer.values(function, register) if isinstance(value, Memory)]
        if held:
            return all(value.space != "host" for value in held) and any(
                value.space == "device" and value.evidence != "asked" for value in held
            )
        return self._is_brought(function, register, depth)

    def _is_brought(self, function: Function, register: int, depth: int) -> bool:
        """Whether a register holds what nobody knows, and what was moved to a device all the same: ``x.cuda()``."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or depth > _DEEPEST:
            return False
        if one[0] in _PASSED_ON:
            return self.on_device(function, one[3], depth + 1)
        if one[0] == op.ATTR and function.owner is not None and function.is_parameter(one[3]):
            stores = function.owner.own_stores.get(function.text(one[4]), ())
            return bool(stores) and all(self.on_device(store.function, store.value, depth + 1) for store in stores)
        if one[0] not in (op.CALL, op.INVOKE):
            return False
        return any(call.row.effect == "transfer" and call.row.get("to") == "device" for call in self.transfer.modelled(function, one))

    def on_host(self, function: Function, register: int) -> bool:
        """Whether a register may hold memory of the host, or of a device that nobody knows."""
        values = self.transfer.values(function, register)
        return any(isinstance(value, Memory) and (value.space == "host" or value.evidence == "asked") for value in values)

    def _library(self, function: Function, registers: tuple[int, ...]) -> str:
        values = (value for register in registers for value in self.transfer.values(function, register))
        return "cupy" if any(isinstance(value, Memory) and value.type.startswith("cupy") for value in values) else "torch"

    def _is_module_there(self, function: Function, one: Instruction) -> bool:
        """Whether a call calls a module of a library that was moved to a device on its way."""
        node = self.transfer.graph.called(function, one)
        self.facts.solver.solve()
        for value in node.values:
            if isinstance(value, LibraryObject) and value.kind == "module":
                for site in node.trace(value):
                    if site.instruction[0] in (op.CALL, op.INVOKE) and site.instruction != one:
                        calls = self.transfer.modelled(site.function, site.instruction)
                        if any(call.row.effect == "module_to" and call.row.get("to") == "device" for call in calls):
                            return True
        return False
