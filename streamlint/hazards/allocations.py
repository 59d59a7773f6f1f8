"""Allocations that reach the driver: where they are made, what frees them, and the loops whose rounds do both."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.functions import Function
from streamlint.facts.objects import Constant, External, FunctionObject, LibraryObject, Memory, Site, Unknown
from streamlint.hazards.context import Context
from streamlint.hazards.every_round import EveryRound
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop
from streamlint.models.vocabulary import Selector
from streamlint.ordering.lifetimes import End, Held, Lifetimes, of_result, pointees, type_name
from streamlint.ordering.places import Place, Places, register_place
from streamlint.transfer.modelled import ModelledCall

MAKING = frozenset({"alloc", "factory", "transfer", "register"})
DEVICE, PINNED, MANAGED, REGISTERED = "device", "pinned", "managed", "registered"
_FEW = 4


class Allocation(NamedTuple):
    """An allocation. ``by`` is the library."""

    held: Held
    memory: str
    by: str
    name: str

    @property
    def site(self) -> Site:
        return Site(self.held.function, self.held.instruction)


class Churn(NamedTuple):
    """An allocation that each round of a loop makes and frees. ``made`` and ``ended`` are the instructions of the loop's function, and
    the calls that lead on from there; no end is named where the last reference goes."""

    allocation: Allocation
    function: Function
    loop: Loop
    made: tuple[Site, ...]
    ended: tuple[Site, ...]

    @property
    def place(self) -> Site:
        """What stands in the loop."""
        return self.made[0]


class Allocations:
    """Finds what is allocated and freed again and again."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.facts = context.facts
        self.transfer = context.transfer
        self.places = Places(context.facts)
        self.lifetimes = Lifetimes(context.transfer, self.places, self._freed)
        self.rounds = EveryRound(context.transfer, self.places)
        self._kept: set[tuple[Function, Loop]] = set()

    def find(self) -> list[Churn]:
        """The allocations that a round frees, but those of loops that keep others: these set things up."""
        found: list[Churn] = []
        for allocation in self._made():
            found += self._follow(allocation)
        return [one for one in found if (one.function, one.loop) not in self._kept]

    # --- allocations

    def _made(self) -> Iterator[Allocation]:
        """The allocations of the program that reach the driver."""
        for call in self.transfer.sites(MAKING):
            allocation = self._of_call(call)
            if allocation is not None:
                yield allocation
        yield from self._of_types()
        yield from self._of_kernels()

    def _of_call(self, call: ModelledCall) -> Allocation | None:
        row, function, one = call.row, call.function, call.instruction
        if row.effect == "register":
            return self._registered(call)
        memory = str(row.get("memory") or DEVICE)
        if row.effect == "alloc":
            if memory == "pageable" or row.get("stream") is not None:
                return None
            into = row.get("into")
            held = call.given(Selector("argument", into.position)) if isinstance(into, Selector) and into.kind == "pointee" else None
            places = pointees(self.places, function, held) if held is not None else of_result(one[2])
            return Allocation(Held(function, one, places, bool(row.get("owned"))), memory, row.library, call.name)
        spaces = {value.space for value in call.memory(call.result)}
        if row.get("raw"):
            if self._has_allocator(row.library) or call.one("out") is not None:
                return None
            memory = PINNED if spaces == {"host"} else MANAGED if row.get("space") == MANAGED else DEVICE
        elif not (row.library == "cupy" and spaces == {"device"} and self._is_unpooled):
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
        return Allocation(Held(function, one, places, False), REGISTERED, call.row.library, call.name)

    @cached_property
    def _settings(self) -> list[ModelledCall]:
        return [call for call in self.transfer.sites({"setting"}) if call.row.get("what") == "allocator"]

    def _has_allocator(self, library: str) -> bool:
        """Whether the program gives a library another allocator."""
        return any(call.row.library == library for call in self._settings)

    @cached_property
    def _is_unpooled(self) -> bool:
        """Whether CuPy's pool is switched off: its allocator is none, or a function that asks the driver."""
        for call in self._settings:
            register = call.one("value") if call.row.library == "cupy" else None
            for value in call.values(register) if register is not None else ():
                if isinstance(value, Constant) and value.value is None:
                    return True
                if isinstance(value, External) and (row := self.facts.row_of(value)) is not None and row.effect == "alloc":
                    return True
        return False

    def _of_types(self) -> Iterator[Allocation]:
        """C++: containers that allocate with the driver."""
        models = self.facts.cpp_models
        names = {row.name.rpartition("::")[2] for row in models.types.values() if row.raw}
        units = {unit.number: unit for name in names for unit in self.facts.program.mentioning(name)}
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
        for unit in self.facts.program.mentioning("jit"):
            for function in unit.functions if not unit.is_cpp else ():
                for one in function.by_opcode[op.CALL]:
                    configured = function.definitions[one[3]]
                    if configured is None or configured[0] != op.ITEM or not self._is_kernel(function, configured[3]):
                        continue
                    held = [value for each in one[5:] for value in self.transfer.values(function, each) if isinstance(value, Memory)]
                    if any(value.space == "host" and value.type == "numpy.ndarray" for value in held) and not self._has_allocator("numba"):
                        yield Allocation(Held(function, one, frozenset(), True), DEVICE, "numba", "numba.cuda.to_device")

    def _is_kernel(self, function: Function, register: int) -> bool:
        for value in self.transfer.values(function, register):
            kernel = value.function if isinstance(value, FunctionObject) else None
            for call in kernel.decorations if kernel is not None and kernel.parent is not None else ():
                callees = self.facts.callees(kernel.parent, call)
                made = kernel.parent.definitions[call[3]]
                if made is not None and made[0] in (op.CALL, op.INVOKE):
                    callees = [*callees, *self.facts.callees(kernel.parent, made)]
                if any(isinstance(each, External) and each.name == "numba.cuda.jit" for each in callees):
                    return True
        return False

    # --- frees

    @cached_property
    def _freeing(self) -> frozenset[str]:
        return self.transfer.names({"free", "unregister"})

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
            if call.row.effect in ("free", "unregister") and call.row.get("stream") is None:
                of = call.one("of", call.receiver)
                if of is not None:
                    yield from self.transfer.shared(function, of) if call.row.effect == "unregister" else (of,)

    # --- loops

    def _follow(self, allocation: Allocation) -> Iterator[Churn]:
        """The loops that make and free an allocation in their rounds."""
        waiting, seen = [allocation.held], set[tuple[Function, Instruction]]()
        for held in waiting:
            if (held.function, held.instruction) in seen:
                continue
            seen.add((held.function, held.instruction))
            held = self.lifetimes.spread(held)
            made = (Site(held.function, held.instruction), *held.calls[1:], *((allocation.site,) if held.calls else ()))
            loops = list(self._loops(held.function, held.instruction))
            ends = [end for end in self.lifetimes.ends(held) if end.instruction != held.instruction or not held.is_owned]
            if ends:
                yield from self._paired(allocation, held, made, loops, ends)
            elif held.is_owned and loops:
                yield from self._dropped(allocation, held, made, loops)
            elif held.is_owned and not self._leaves(held):
                yield from self._repeated(allocation, held.function, made, ())
            else:
                if allocation.memory == DEVICE:
                    self._kept.update((held.function, loop) for loop in loops)
                waiting += self.lifetimes.outside(held)

    def _loops(self, function: Function, one: Instruction) -> Iterator[Loop]:
        body = self.rounds.body(function)
        index = body.graph.innermost[body.home[one]]
        while index >= 0:
            yield body.graph.loops[index]
            index = body.graph.loops[index].parent

    def _paired(self, allocation: Allocation, held: Held, made: tuple[Site, ...], loops: list[Loop], ends: list[End]) -> Iterator[Churn]:
        home = self.rounds.body(held.function).home
        for loop in loops:
            inside = [end for end in ends if home[end.instruction] in loop.body]
            for end in inside:
                ended = (Site(held.function, end.instruction), *end.calls)
                if self._is_churn(held.function, loop, made, ended):
                    yield Churn(allocation, held.function, loop, made, ended)
                    return
            if inside:
                return
        end = ends[0]
        if not loops:
            yield from self._repeated(allocation, held.function, made, (Site(held.function, end.instruction), *end.calls))

    def _dropped(self, allocation: Allocation, held: Held, made: tuple[Site, ...], loops: list[Loop]) -> Iterator[Churn]:
        """What no round keeps ends with the round."""
        loop = loops[0]
        if self._outlives(held, loop):
            if allocation.memory == DEVICE:
                self._kept.add((held.function, loop))
        elif self._is_churn(held.function, loop, made, ()):
            yield Churn(allocation, held.function, loop, made, ())

    def _outlives(self, held: Held, loop: Loop) -> bool:
        """Whether a place that is not made in the round holds the object."""
        function, home = held.function, self.rounds.body(held.function).home
        for place in held.places:
            if place.root[0] == "register":
                one = function.definitions[int(str(place.root[1]))]
                if one is None or home[one] not in loop.body:
                    return True
                if one[0] == op.PHI and home[one] == loop.header:
                    return True
            elif place.root[0] != "cell" or place.path:
                return True
        return self._is_returned(held)

    def _is_returned(self, held: Held) -> bool:
        returned = {end[2] for end in held.function.by_opcode[op.RETURN]}
        return any(register_place(register) in held.places for register in returned if register >= 0)

    def _leaves(self, held: Held) -> bool:
        """Whether an object leaves the function that made it."""
        return self._is_returned(held) or any(self._is_outside(place) for place in held.places)

    def _is_outside(self, place: Place) -> bool:
        return place.root[0] in ("global", "this") or (place.root[0] == "parameter" and bool(place.path))

    def _repeated(self, allocation: Allocation, function: Function, made: tuple[Site, ...], ended: tuple[Site, ...]) -> Iterator[Churn]:
        """The loops around the calls of a function that allocates and frees."""
        waiting = [(function, made, ended)]
        seen = {function}
        for where, first, last in waiting:
            if len(first) > 6:
                continue
            for caller, call in self.lifetimes.starts(where):
                before = (Site(caller, call), *first), (Site(caller, call), *last)
                loop = next(self._loops(caller, call), None)
                if loop is None:
                    if caller not in seen:
                        seen.add(caller)
                        waiting.append((caller, *before))
                elif self._is_churn(caller, loop, *before):
                    yield Churn(allocation, caller, loop, *before)

    def _is_churn(self, function: Function, loop: Loop, made: tuple[Site, ...], ended: tuple[Site, ...]) -> bool:
        if self.rounds.is_special(function, loop, _FEW):
            return False
        is_new = False
        for number, site in enumerate(made):
            if number and made[number - 1].instruction[0] in (op.CONSTRUCT, op.NEW, op.DECLARE):
                is_new = True
            if not self.rounds.runs(site, loop if number == 0 else None, is_new):
                return False
        if ended and not self.rounds.runs(ended[0], loop):
            return False
        return not self._in_some_rounds(function, loop, made[0])

    def _in_some_rounds(self, function: Function, loop: Loop, site: Site) -> bool:
        """Whether a condition on what differs from round to round guards it, and the loop's own work goes on without it."""
        guards = self.rounds.guards(site, loop)
        changing = {guard for guard in guards if self.rounds.changes(function, guard, loop)}
        if not changing:
            return False
        return any(not changing.intersection(self.rounds.guards(work, loop)) for work in self.work(function, loop))

    def work(self, function: Function, loop: Loop) -> Iterator[Site]:
        """Launches and copies of a loop."""
        for block in sorted(loop.body):
            for one in function.code.blocks[block]:
                if one[0] == op.LAUNCH:
                    yield Site(function, one)
                elif one[0] in (op.CALL, op.INVOKE):
                    if any(call.row.effect in ("launch", "copy", "memset", "transfer") for call in self.transfer.modelled(function, one)):
                        yield Site(function, one)


__all__ = ["Allocation", "Allocations", "Churn", "LibraryObject", "Unknown"]
