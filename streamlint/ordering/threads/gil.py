"""SL009: what waits for a device while Python's GIL is held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant, Elements, Memory, Object, Scalar, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Models, Row, builtin
from streamlint.ordering.places.given import NOTHING, Callables, Given
from streamlint.ordering.streams.reach import Reach
from streamlint.ordering.threads.callbacks import Callbacks
from streamlint.ordering.threads.entries import Entries, Entry
from streamlint.transfer import device
from streamlint.transfer.device import DeviceOperation
from streamlint.transfer.policies import Policies
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.waits.operands import operand_of

FOR_GPU, FOR_DRIVER = "waits for the GPU", "may wait for the driver"
_DEEPEST = 12
MOST_CHAINS = 8
"""Chains of calls to one wait that are looked at for each call of a function."""
Saved = tuple[tuple[int, bool, Site | None], ...]
"""By scope: its register, whether the GIL was held before it, and where the function had acquired that."""


class Taken(NamedTuple):
    """Where a function acquires the GIL, and where it enters a wait while it holds that."""

    acquired: Site
    entered: Site


class Held(NamedTuple):
    """A wait with the GIL held: why, the calls that lead to it, and the host function before it that needs the GIL, if there is one.
    ``target``: the parameter that a copy fills, where it waits if callers give pageable memory for that. ``taken``: where a function
    has acquired the GIL itself; None where it is held from the beginning."""

    operation: DeviceOperation
    site: Site
    why: str
    calls: tuple[Site, ...] = ()
    needing: Site | None = None
    target: int = op.NONE
    taken: Taken | None = None


class _Found:
    """The waits of a function, each with the calls that lead to it: through one call of the function a few chains of calls to each, for
    with each function on the way there may be twice as many."""

    def __init__(self) -> None:
        self.waits: dict[tuple[Site, tuple[Site, ...], str], Held] = {}
        self._chains = Counter[tuple[Site, str, int, tuple[Site, ...]]]()

    def add(self, held: Held) -> None:
        """A wait is found."""
        key, through = (held.site, held.calls, held.why), (held.site, held.why, held.target, held.calls[:1])
        if key not in self.waits and self._chains[through] < MOST_CHAINS:
            self._chains[through] += 1
            self.waits[key] = held


class _At(NamedTuple):
    """A point of a function: whether the GIL is held, what scopes put back, the last host function that needs the GIL, and where the
    function has acquired the GIL itself."""

    block: int
    held: bool
    saved: Saved
    needing: Site | None
    acquired: Site | None = None


class Gil:
    """Finds what waits with the GIL held."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.callbacks = Callbacks(transfer)
        self.operations = self.callbacks.operations
        self.reach: Reach = self.callbacks.reach
        self.callables = Callables(transfer)
        self._known: dict[tuple[Function, bool, bool, Given], tuple[tuple[Held, ...], frozenset[bool]]] = {}
        self._takes: dict[Function, bool] = {}

    @cached_property
    def entries(self) -> list[Entry]:
        """What Python calls."""
        return list(Entries(self.transfer).find())

    @cached_property
    def _entered(self) -> set[Function]:
        """What Python calls in Cython."""
        return {entry.function for entry in self.entries if not entry.function.is_cpp}

    def released(self) -> frozenset[Function]:
        """The functions that some binding lets run without the GIL."""
        return frozenset(Entries(self.transfer).released())

    def find(self) -> Iterator[tuple[Entry, Held]]:
        """The waits of all entries, and those of functions that a binding lets run without the GIL, and that acquire it themselves."""
        released = (Entry(function, None) for function in sorted(self.released(), key=lambda one: one.name))
        for entry, is_held in (*((entry, True) for entry in self.entries), *((entry, False) for entry in released)):
            for held in self.within(entry.function, is_held, False)[0]:
                if held.target == op.NONE:
                    yield entry, held

    def within(
        self, function: Function, held: bool, on_device: bool, depth: int = 0, given: Given = NOTHING
    ) -> tuple[tuple[Held, ...], frozenset[bool]]:
        """The waits of a function that is entered with the GIL held or not, and whether it is held at its end. ``on_device``: its caller
        has chosen a CUDA device for the tensors that it works on; ``given`` are the functions that it gives."""
        key = function, held, on_device, given
        known = self._known.get(key)
        if known is not None:
            return known
        self._known[key] = (), frozenset({held})  # in a cycle, the others tell
        if depth > _DEEPEST:
            return self._known[key]
        found = _Found()
        ends: set[bool] = set()
        on_device = on_device or self._guards_device(function)
        seen: set[_At] = set()
        waiting = [_At(0, held, (), None)]
        while waiting:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            for after in self._block(function, at, on_device, found, depth, given):
                if not self._ends(function, after.block):
                    waiting += (after._replace(block=block) for block in self._next(function, after.block))
                else:
                    ends.add(after.held)
        self._known[key] = tuple(found.waits.values()), frozenset(ends or {held})
        return self._known[key]

    def _ends(self, function: Function, block: int) -> bool:
        return function.code.blocks[block][-1][0] == op.RETURN

    def _next(self, function: Function, block: int) -> list[int]:
        after = list(function.code.successors(block))
        return after[:-1] if block in function.code.handlers else after

    def _block(self, function: Function, at: _At, on_device: bool, found: _Found, depth: int, given: Given) -> Iterator[_At]:
        """Run a block; the states behind it."""
        states = [at]
        for one in function.code.blocks[at.block]:
            part, scope = self._change(function, one)
            if part:
                states = [_changed(state, part, scope, Site(function, one)) for state in states]
                continue
            if one[0] in (op.DESTROY, op.EXIT):
                register = one[2] if one[0] == op.DESTROY else one[3]
                states = [_restored(state, register) for state in states]
            after: list[_At] = []
            for state in states:
                after += self._instruction(function, one, state, on_device, found, depth, given)
            states = list(dict.fromkeys(after))
        yield from states

    def _instruction(
        self, function: Function, one: Instruction, state: _At, on_device: bool, found: _Found, depth: int, given: Given
    ) -> list[_At]:
        site = Site(function, one)
        taken = Taken(state.acquired, site) if state.acquired is not None else None
        for operation in self.operations.of(function, one) if one[0] in CALLING else ():
            if operation.kind == device.CALLBACK and (needing := self._needing(operation, site)) is not None:
                state = state._replace(needing=needing)
            why = self.why(function, operation, on_device) if state.held else ""
            if why:
                found.add(Held(operation, site, why, (), state.needing if why == FOR_GPU else None, taken=taken))
            elif operation.kind == device.SYNCHRONIZE:
                state = state._replace(needing=None)
            elif state.held and (filled := self._filled(function, operation)) != op.NONE:
                found.add(Held(operation, site, FOR_GPU, (), state.needing, filled, taken))
        outs = self._callees(function, one, state, on_device, found, depth, given)
        return [state._replace(held=held) for held in outs] if outs else [state]

    def _callees(
        self, function: Function, one: Instruction, state: _At, on_device: bool, found: _Found, depth: int, given: Given
    ) -> set[bool]:
        """Note what waits in the functions that an instruction runs; whether the GIL is held behind them."""
        site, outs = Site(function, one), set[bool]()
        taken = Taken(state.acquired, site) if state.acquired is not None else None
        edges = self.reach.edges(function).get(one, [])
        for edge in self.callables.narrowed(function, one, edges, given):
            if edge.callee in self._entered:
                continue  # it is reported by itself
            passed = self.callables.given(function, one, edge.callee, given)
            waits, ends = self.within(edge.callee, state.held, on_device, depth + 1, passed)
            outs |= ends
            for each in waits:
                calls, target = (site, *each.calls), self._given_for(function, one, edge.callee, each.target)
                if target is not None:
                    found.add(each._replace(calls=calls, target=target, taken=each.taken or taken))
        return outs

    # --- the GIL

    def _change(self, function: Function, one: Instruction) -> tuple[str, int]:
        """What an instruction does to the GIL, and the register of the scope that ends that."""
        for row in self._rows(function, one):
            if row.effect == "gil" and not (self.transfer.keeps_gil and row.get("part") == "drop"):
                scope = one[2] if row.get("scope") else one[3] if one[0] == op.ENTER else op.NONE
                return str(row.get("part")), scope
        return "", op.NONE

    def _rows(self, function: Function, one: Instruction) -> Iterator[Row]:
        if one[0] in (op.DECLARE, op.CONSTRUCT):
            spelled = function.unit.ir.constants[one[3]]
            row = self.facts.cpp_models.call(str(spelled[0])) if spelled is not None else None
            if row is not None:
                yield row
        elif one[0] in (op.CALL, op.INVOKE):
            yield from (call.row for call in self.transfer.modelled(function, one))
        elif one[0] == op.ENTER:
            name = function.dotted(one[3])
            row = self._cython.attributes.get(name) if not function.is_cpp else None
            if row is not None:
                yield row

    @cached_property
    def _cython(self) -> Models:
        """The rows of Cython's own names."""
        return builtin("cython")

    def _needing(self, operation: DeviceOperation, site: Site) -> Site | None:
        """The registration, if the host function takes the GIL."""
        call = operation.call
        if call is not None and any(self.takes(body) for body in self.callbacks.bodies(call)):
            return site
        return None

    def takes(self, function: Function) -> bool:
        """Whether a function takes the GIL, by itself or in what it calls."""
        if function not in self._takes:
            self._takes[function] = False
            self._takes[function] = any(self._change(function, one)[0] == "take" for one in function.code.instructions()) or any(
                self.takes(edge.callee) for edges in self.reach.edges(function).values() for edge in edges
            )
        return self._takes[function]

    def _guards_device(self, function: Function) -> bool:
        """Whether a function chooses a CUDA device for what it works on."""
        for opcode in (op.CONSTRUCT, op.DECLARE):
            for one in function.by_opcode[opcode]:
                if any(row.get("on_device") is not None for row in self._rows(function, one)):
                    return True
        return False

    # --- waits

    def why(self, function: Function, operation: DeviceOperation, on_device: bool) -> str:
        """What an operation may wait for; "" if nothing."""
        call = operation.call
        if call is not None and call.row.library in call.facts.models.marked("python-calls") and not function.is_cpp:
            return ""  # called as Python would: the library sees to the GIL itself
        if operation.kind == device.OTHERS:
            return f"waits for {operation.memory}"
        if _waits_for_driver(operation):
            return FOR_DRIVER
        return FOR_GPU if self._waits_for_gpu(function, operation, on_device) else ""

    def _waits_for_gpu(self, function: Function, operation: DeviceOperation, on_device: bool) -> bool:
        kind, call = operation.kind, operation.call
        if kind == device.UPLOAD:
            return call is not None and self._is_shown(function, call.result)
        if kind == device.COPY:
            return self._copy_waits(function, operation, on_device)
        if kind == device.READ:
            is_there = self._is_on_device(function, operation) or (on_device and self._may_be_tensor(function, operation))
            return function.is_cpp and is_there
        if kind == device.WORK:
            return operation.waits and self._runs_on_device(operation)
        return kind in (device.SYNCHRONIZE, device.UNREGISTER) or (kind == device.FREE and not operation.cached)

    def _is_on_device(self, function: Function, operation: DeviceOperation) -> bool:
        return any(self._is_shown(function, register) for register in operation.needs or () if register >= 0)

    def _may_be_tensor(self, function: Function, operation: DeviceOperation) -> bool:
        """Whether what is read may be more than a number, a container of the standard library, or memory that was made on the host."""
        read = [self.transfer.values(function, register) for register in operation.needs or () if register >= 0]
        return not read or any(not values or not (all(map(_is_plain, values)) or any(map(_is_of_host, values))) for values in read)

    def _is_shown(self, function: Function, register: int) -> bool:
        """Whether a register is shown to hold memory of a CUDA device: one that is only asked for may be none."""
        return any(
            isinstance(value, Memory) and value.space == "device" and value.evidence != "asked"
            for value in self.transfer.values(function, register)
        )

    def _copy_waits(self, function: Function, operation: DeviceOperation, on_device: bool) -> bool:
        """Whether the host sees a copy end: one that is not asynchronous, or that goes to pageable memory."""
        call = operation.call
        is_torch = operation.library == "torch"
        if operation.direction == "d2h":
            if is_torch and not (on_device or self._is_on_device(function, operation)):
                return False
            target = call.one("dst") if call is not None and call.row.effect == "copy" else None
            return operation.asynchronous is False or (target is not None and self._is_pageable(function, target))
        if operation.direction != "h2d" or operation.asynchronous is not False:
            return False
        if is_torch and call is not None:
            source = call.one("src") if call.row.effect == "copy" else call.one("of", call.receiver)
            return source is not None and call.space(source) == "host"
        return True

    def _filled(self, function: Function, operation: DeviceOperation) -> int:
        """C++: the parameter that an asynchronous copy from the device fills."""
        call = operation.call
        is_fetched = operation.kind == device.COPY and operation.direction == "d2h" and call is not None and call.row.effect == "copy"
        target = call.one("dst") if is_fetched and call is not None else None
        return _parameter(function, target) if function.is_cpp and target is not None else op.NONE

    def _given_for(self, function: Function, one: Instruction, callee: Function, target: int) -> int | None:
        """The parameter of a caller for that of a callee; `NONE` where pageable memory is given for it, None where other memory may be."""
        if target == op.NONE:
            return target
        register = operand_of(function, one, callee, target) if one[0] in (op.CALL, op.INVOKE) else None
        if register is None or register < 0:
            return None
        if self._is_pageable(function, register):
            return op.NONE
        outer = _parameter(function, register)
        return outer if outer != op.NONE else None

    def _is_pageable(self, function: Function, register: int) -> bool:
        """Whether a register points to pageable memory: a variable of the function is that, too."""
        one = function.definitions[register] if register >= 0 else None
        while one is not None and one[0] in (op.CAST, op.COPY):
            one = function.definitions[one[4] if one[0] == op.CAST else one[3]]
        if one is not None and one[0] == op.ADDRESS:
            return True
        values = list(self.transfer.values(function, register))
        return bool(values) and all(isinstance(value, Memory) and value.pinning == "pageable" for value in values)

    def _runs_on_device(self, operation: DeviceOperation) -> bool:
        """Whether an algorithm that takes a policy, or iterators, runs on a device."""
        call = operation.call
        if call is None or not call.row.get("policy"):
            return True
        return Policies(call).waits


def _waits_for_driver(operation: DeviceOperation) -> bool:
    kind = operation.kind
    return kind == device.CALLBACK or (kind == device.ALLOC and not operation.cached) or (kind == device.DESTROY and operation.is_event)


def _parameter(function: Function, register: int) -> int:
    """The parameter that a register holds, behind casts."""
    one = function.definitions[register] if register >= 0 else None
    while one is not None and one[0] in (op.CAST, op.COPY):
        one = function.definitions[one[4] if one[0] == op.CAST else one[3]]
    return one[3] if one is not None and one[0] == op.PARAM else op.NONE


def _changed(state: _At, part: str, scope: int, site: Site) -> _At:
    """The GIL is let go (``drop``), taken, or put back as it was."""
    if part == "back":
        _, held, acquired = state.saved[-1] if state.saved else (op.NONE, True, None)
        return state._replace(held=held, saved=state.saved[:-1], acquired=acquired)
    saved = (*state.saved, (scope, state.held, state.acquired))
    if part != "take":
        return state._replace(held=False, saved=saved, acquired=None)
    return state._replace(held=True, saved=saved, acquired=state.acquired if state.held else site)


def _restored(state: _At, register: int) -> _At:
    """A scope ends."""
    for place, (scope, held, acquired) in enumerate(state.saved):
        if scope == register and scope >= 0:
            return state._replace(held=held, saved=state.saved[:place], acquired=acquired)
    return state


def _is_plain(value: Object) -> bool:
    """Whether a value is a number, or a container of C++'s own library."""
    return isinstance(value, (Elements, Scalar, Constant)) or (isinstance(value, Memory) and value.type.startswith("std::"))


def _is_of_host(value: Object) -> bool:
    return isinstance(value, Memory) and value.space == "host"
