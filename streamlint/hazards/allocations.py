"""Allocations that reach the driver: where they are made, what frees them, and the loops whose rounds do both."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import External, FunctionObject, Memory, Site
from streamlint.hazards.churn import Churn, Churning, entering
from streamlint.hazards.context import Context
from streamlint.hazards.driver_memory import DriverMemory
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Models, Row
from streamlint.ordering.places.places import register_place
from streamlint.ordering.walk.lifetimes import Held, made_by, of_result, type_name
from streamlint.transfer.contexts import Known
from streamlint.transfer.modelled import ModelledCall
from streamlint.waits.entered import Context as Calling

MAKING = frozenset({"alloc", "factory", "transfer", "register"})
DEVICE, PINNED, MANAGED, REGISTERED = "device", "pinned", "managed", "registered"
_FEW = 4
_MOST = 40
"""Values of a variable that are looked at."""
_FREEING = frozenset({"free", "unregister"})


class Allocation(NamedTuple):
    """An allocation. ``by`` is the library; ``bytes`` is None where the number is not written out."""

    held: Held
    memory: str
    by: str
    name: str
    bytes: int | None = None

    @property
    def site(self) -> Site:
        return Site(self.held.function, self.held.instruction)


class Allocations(Churning):
    """Finds memory that is allocated and freed repeatedly."""

    def __init__(self, context: Context) -> None:
        super().__init__(context.transfer, self._freed, _FEW)
        self.facts = context.facts
        self.driver = DriverMemory(context.transfer)
        self._launches: set[Site] = set()  # of kernels that may be given arrays of the host

    def find(self) -> list[tuple[Allocation, Churn]]:
        """The allocations that a round frees, but those of loops that keep others: these set things up."""
        found: list[tuple[Allocation, Churn]] = []
        for allocation in self._made():
            found += ((allocation, churn) for churn in self.follow(allocation.held, allocation.memory == DEVICE))
        return [(allocation, churn) for allocation, churn in found if (churn.function, churn.loop) not in self.kept]

    # --- allocations

    def _made(self) -> Iterator[Allocation]:
        """The allocations of the program that reach the driver."""
        for call in self.transfer.sites(MAKING, where=self._may_reach):
            allocation = self._of_call(call)
            if allocation is not None:
                yield allocation
        yield from self._of_computations()
        yield from self._of_types()
        yield from self._of_kernels()

    def _may_reach(self, row: Row) -> bool:
        """Whether a call with a row may ask the driver for memory: no call of plain memory, or of a pool."""
        if row.effect == "alloc":
            return row.get("memory") != "pageable" and row.get("stream") is None
        return row.effect == "register" or bool(row.get("raw")) or row.library in self.driver.libraries

    def _of_call(self, call: ModelledCall) -> Allocation | None:
        row, function, one = call.row, call.function, call.instruction
        if row.effect == "register":
            return self._registered(call)
        memory = str(row.get("memory") or DEVICE)
        if row.effect == "alloc":
            held, size = Held(function, one, made_by(self.places, call), bool(row.get("owned"))), call.one("bytes")
            number = function.constant(size) if size is not None else None
            return Allocation(held, memory, row.library, call.name, number if isinstance(number, int) else None)
        spaces = {value.space for value in call.memory(call.result)}
        if row.get("raw"):
            if self.driver.has_allocator(row.library) or call.one("out") is not None:
                return None
            memory = PINNED if spaces == {"host"} else MANAGED if row.get("space") == MANAGED else DEVICE
        elif not (spaces == {"device"} and self.driver.serves(row.library, function.unit)) or call.all("out"):
            return None
        return Allocation(Held(function, one, of_result(one[2]), True), memory, row.library, call.name)

    def _registered(self, call: ModelledCall) -> Allocation | None:
        of = call.one("of")
        if of is None:
            return None
        function, one = call.function, call.instruction
        shared = self.transfer.shared(function, of)
        places = frozenset(name for register in shared for name in self.places.names(function, register))
        scoped = any(use[0] == op.ENTER for use in function.uses[one[2]])
        places |= {register_place(one[2])} if scoped else frozenset()
        return Allocation(Held(function, one, places, False, is_given=True), REGISTERED, call.row.library, call.name)

    def _of_computations(self) -> Iterator[Allocation]:
        """Without a pool: what is computed is put into memory of its own, unless an array is given for it."""
        for unit in self.driver.units():
            for function in unit.functions:
                for one in (*function.by_opcode[op.CALL], *function.by_opcode[op.INVOKE]):
                    made = (call for call in self.transfer.modelled(function, one) if call.row.effect == "compute")
                    yield from (each for call in made if (each := self._of_call(call)) is not None)

    def _of_types(self) -> Iterator[Allocation]:
        """C++: containers that allocate with the driver."""
        models = self.facts.cpp_models
        units = {unit.number: unit for name in models.gathered(_raw_types) for unit in self.facts.program.mentioning(name)}
        for _, unit in sorted(units.items()):
            for function in unit.functions if unit.is_cpp else ():
                for one in (*function.by_opcode[op.CONSTRUCT], *function.by_opcode[op.DECLARE]):
                    row = models.type_named(type_name(function, one[3]))
                    if row is not None and row.raw and (one[0] == op.DECLARE or len(one) > 5):
                        memory = MANAGED if row.space == "managed" else PINNED if row.memory == "pinned" else DEVICE
                        held = Held(function, one, frozenset({register_place(one[2])}), True)
                        yield Allocation(held, memory, row.library, row.name)

    def _of_kernels(self) -> Iterator[Allocation]:
        """numba: a kernel that is given arrays of the host has memory allocated for them, and freed behind it."""
        for unit in self.facts.program.mentioning("numba"):
            for function in unit.functions if not unit.is_cpp else ():
                for one in function.by_opcode[op.CALL]:
                    configured = function.definitions[one[3]]
                    if configured is None or configured[0] != op.ITEM or not self._is_kernel(function, configured[3]):
                        continue
                    if self._is_given_host(Site(function, one), ()) and not self.driver.has_allocator("numba"):
                        self._launches.add(Site(function, one))
                        yield Allocation(Held(function, one, frozenset(), True), DEVICE, "numba", "numba.cuda.to_device")

    def _is_given_host(self, launch: Site, context: Calling) -> bool:
        """Whether a kernel may be given an array of the host in a context."""
        return any("host" in spaces for spaces in self._given_spaces(launch, context))

    def is_shown(self, made: tuple[Site, ...]) -> bool:
        """Whether an allocation is made for sure: a kernel is given an array that nothing shows to be on a device already."""
        launch = made[-1]
        return launch not in self._launches or any(spaces == {"host"} for spaces in self._given_spaces(launch, entering(made)))

    def _given_spaces(self, launch: Site, context: Calling) -> Iterator[set[str]]:
        """Where the arrays may be that a kernel is given in a context: ``host`` for those of NumPy, ``device``."""
        function = launch.function
        for given in launch.instruction[5:]:
            waiting, spaces = [(function.blocks[launch.instruction], given)], set[str]()
            for block, register in waiting:
                one = function.definitions[register] if register >= 0 else None
                if one is not None and one[0] == op.PHI and len(waiting) < _MOST:
                    waiting += zip(function.phi_order[function.blocks[one]], one[3:], strict=False)
                    continue
                held = [value for value in self.guards.contexts.values(Known(function, register, context)) if isinstance(value, Memory)]
                spaces |= {"device" for value in held if value.space == "device"}
                if not self.guards.is_no_host_type(function, block, register):
                    spaces |= {"host" for value in held if value.space == "host" and value.type == "numpy.ndarray"}
            yield spaces

    def _is_left_out(self, made: tuple[Site, ...]) -> bool:
        return super()._is_left_out(made) or (made[-1] in self._launches and not self._is_given_host(made[-1], entering(made)))

    def _is_kernel(self, function: Function, register: int) -> bool:
        """Whether a register holds a function that is compiled for the device."""
        for value in self.transfer.values(function, register):
            parent = value.function.parent if isinstance(value, FunctionObject) else None
            if isinstance(value, FunctionObject) and parent is not None:
                makers = [parent.definitions[call[3]] for call in value.function.decorations]
                calls = [*value.function.decorations, *(one for one in makers if one is not None and one[0] in (op.CALL, op.INVOKE))]
                callees = [callee for call in calls for callee in self.facts.callees(parent, call)]
                if any(isinstance(callee, External) and callee.name in self.facts.models.marked("makes-kernel") for callee in callees):
                    return True
        return False

    # --- frees

    @cached_property
    def _freeing(self) -> frozenset[str]:
        return self.transfer.names(_FREEING, _is_of_driver)

    def _freed(self, function: Function, one: Instruction) -> Iterator[int]:
        """The memory that an instruction frees, or unlocks."""
        if one[0] == op.EXIT:
            yield one[3]
        if one[0] not in (op.CALL, op.INVOKE):
            return
        name = function.text(one[4]) if one[0] == op.INVOKE else function.dotted(one[3]).rpartition(".")[2]
        if name.rpartition("::")[2] not in self._freeing and name not in self._freeing:
            return
        for call in self.transfer.modelled(function, one):
            if call.row.effect in _FREEING and _is_of_driver(call.row):
                of = call.one("of", call.receiver)
                if of is not None:
                    yield from self.transfer.shared(function, of) if call.row.effect == "unregister" else (of,)


def _is_of_driver(row: Row) -> bool:
    """Whether a call with a row has the driver free memory at once."""
    return row.get("memory") != "pageable" and row.get("stream") is None


def _raw_types(models: Models) -> frozenset[str]:
    return frozenset(row.name.rpartition("::")[2] for row in models.types.values() if row.raw)
