"""SL004: host functions that streams run, and what of CUDA they call or wait for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import (
    BoundMethod,
    FunctionObject,
    Instance,
    LibraryObject,
    ModuleObject,
    Object,
    Site,
    without_partials,
)
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import Selector
from streamlint.ordering.streams.reach import Reach, Reached, is_cuda
from streamlint.ordering.threads.late_wakes import LateWakes
from streamlint.ordering.threads.locks import Locks
from streamlint.transfer.device import DeviceOperations
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer

_DEEPEST = 6


class InCallback(NamedTuple):
    """What a callback does, where in its own body, and the call that registers it. ``what`` is the kind of a block; "" for CUDA."""

    registration: Site
    place: Site
    reached: Reached | None
    site: Site
    what: str = ""
    library: str = ""


class Callbacks:
    """The host functions of a program."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.operations = DeviceOperations(transfer)
        self.reach = Reach(transfer, self.operations, is_cuda(self.operations))
        self.locks = Locks(transfer, self.reach)
        self.late_wakes = LateWakes(transfer, self.reach, self.locks)

    def find(self) -> Iterator[InCallback]:
        """What the callbacks of the program must not do."""
        seen: set[Function] = set()
        waiting: list[tuple[Site, Function]] = []
        for call in self.transfer.sites({"callback"}):
            site = Site(call.function, call.instruction)
            waiting += ((site, body) for body in self.bodies(call))
        for registration, body in waiting:
            if body not in seen:
                seen.add(body)
                yield from self._within(registration, body)
                waiting += ((registration, passed) for passed in self._passed_callbacks(body, 0))

    # --- which functions

    def bodies(self, call: ModelledCall) -> Iterator[Function]:
        """The functions of the program that a call registers."""
        selector = call.row.get("function")
        register = call.given(selector) if isinstance(selector, Selector) else None
        if register is None and isinstance(selector, Selector) and selector.position is not None:
            given = call.operands if call.instruction[0] == op.CALL else call.operands[1:]
            register = given[selector.position] if selector.position < len(given) else None
        if register is None:
            return
        if call.row.get("style") == "params":
            yield from self._of_parameters(call.function, register)
        yield from self._functions(call.values(register))

    def _functions(self, values: Iterable[Object]) -> Iterator[Function]:
        for value in values:
            value = without_partials(value)
            if isinstance(value, BoundMethod):
                value = value.method
            if isinstance(value, FunctionObject):
                yield value.function
            elif isinstance(value, Instance):
                found = self.facts.hierarchy.lookup(value.definition, "operator()" if value.definition.unit.is_cpp else "__call__")
                yield from found[1] if found is not None else ()

    def _of_parameters(self, function: Function, register: int) -> Iterator[Function]:
        """The function that a field of a structure names, which the registration is given by its address."""
        definition = function.definitions[register]
        if definition is None or definition[0] != op.ADDRESS:
            return
        for one in function.by_opcode[op.SET_ATTR]:
            held = function.definitions[one[2]]
            if held is not None and held[0] == op.LOAD and held[3] == definition[3] and function.text(one[3]) == "fn":
                yield from self._functions(self.transfer.values(function, one[4]))

    def _passed_callbacks(self, body: Function, depth: int) -> Iterator[Function]:
        """The functions that a callback calls because it was passed them: each of them is a callback's body itself."""
        for one, edges in self.reach.edges(body).items():
            if self._is_parameter_call(body, one):
                yield from (edge.callee for edge in edges)
            elif depth < _DEEPEST:
                for edge in edges:
                    if edge.callee is not body:
                        yield from self._passed_callbacks(edge.callee, depth + 1)

    def _is_parameter_call(self, function: Function, one: Instruction) -> bool:
        """Whether a call calls a value that it was given, under no name of its own."""
        if function.invokes(one, "drops-reference"):
            return False
        if one[0] == op.INVOKE:
            edges = self.reach.edges(function).get(one, ())
            if any(isinstance(value, ModuleObject) for value in self.transfer.values(function, one[3])):
                return False
            if function.is_cpp and self._is_abstract(function, one):
                return True
            return not any(edge.callee.code.name == function.text(one[4]) for edge in edges)
        if one[0] != op.CALL:
            return False
        called = function.definitions[one[3]]
        if called is None or called[0] in (op.PARAM, op.DEREF, op.ITEM, op.LOAD, op.COPY):
            return called is None or called[0] != op.LOAD or function.is_cpp
        return called[0] == op.ATTR and function.is_cpp

    def _is_abstract(self, function: Function, one: Instruction) -> bool:
        """Whether a method is called by a class that declares it alone: what it does is the affair of the object that was passed."""
        name, lookup = function.text(one[4]), self.facts.hierarchy.lookup
        held = [value for value in self.transfer.values(function, one[3]) if isinstance(value, Instance) and not value.exact]
        return bool(held) and all(lookup(value.definition, name) is None for value in held)

    # --- what they do

    def _within(self, registration: Site, body: Function) -> Iterator[InCallback]:
        handing = {one for one in self.reach.edges(body) if self._is_parameter_call(body, one)}
        found = [reached for reached in self.reach.all(body) if not reached.calls or reached.calls[0].instruction not in handing]
        places = [reached.calls[0] if reached.calls else reached.site for reached in found]
        statements = Statements(body)
        first: dict[int, InCallback] = {}
        for place, reached in zip(places, found, strict=True):
            inner = reached.calls
            if any(self._is_parameter_call(call.function, call.instruction) for call in inner):
                continue
            statement = statements.of(place.instruction)
            one = InCallback(registration, place, reached, reached.site)
            if statement not in first or place.at < first[statement].place.at:
                first[statement] = one
        yield from first.values()
        yield from self._blocks(registration, body, ())

    def _blocks(self, registration: Site, body: Function, calls: tuple[Site, ...]) -> Iterator[InCallback]:
        """Waits of a callback for threads that call CUDA, and for locks that are held over waits."""
        for one in body.code.instructions():
            for site, what, library in self._blocking(registration, body, one):
                yield InCallback(registration, calls[0] if calls else site, None, site, what, library)
        if len(calls) < _DEEPEST:
            for one, edges in self.reach.edges(body).items():
                for edge in edges:
                    if edge.callee is not body and not any(call.function is edge.callee for call in calls):
                        yield from self._blocks(registration, edge.callee, (*calls, Site(body, one)))

    def _blocking(self, registration: Site, function: Function, one: Instruction) -> Iterator[tuple[Site, str, str]]:
        lock = self.locks.taken(function, one)
        if lock is not None and self.locks.is_held_over_a_wait(lock):
            yield Site(function, one), "lock", "host-cpp" if function.is_cpp else "python"
        if one[0] not in (op.CALL, op.INVOKE):
            return
        for call in self.transfer.modelled(function, one):
            what = str(call.row.get("what"))
            if call.row.effect != "block" or what == "lock":
                continue
            if self._works_elsewhere(call, what):
                yield Site(function, one), what, call.row.library
            elif self.late_wakes.is_late(registration, call):
                yield Site(function, one), "late", call.row.library

    def _works_elsewhere(self, call: ModelledCall, what: str) -> bool:
        """Whether a thread that a callback waits for calls CUDA: one of the program, or one that wakes what is waited for."""
        return any(
            self.reach.first(function) is not None and (what in ("join", "result") or self._wakes(function, call, set()))
            for function in self._threads
        )

    @cached_property
    def _threads(self) -> list[Function]:
        """The functions of the program that other threads run."""
        found = [body for call in self.transfer.sites({"thread"}) for body in self.bodies(call)]
        for name in self.transfer.names({"thread"}):
            for unit in self.facts.program.mentioning(name):
                for function in unit.functions if unit.is_cpp else ():
                    for one in function.by_opcode[op.CONSTRUCT]:
                        found += self._functions(value for register in one[5:6] for value in self._started(function, one, register))
        return list(dict.fromkeys(found))

    def _started(self, function: Function, one: Instruction, register: int) -> Iterable[Object]:
        """What a thread is made with, if an object that is made is one."""
        spelled = function.unit.ir.constants[one[3]]
        row = self.facts.cpp_models.call(str(spelled[0])) if spelled is not None else None
        return self.transfer.values(function, register) if row is not None and row.effect == "thread" else ()

    def _wakes(self, function: Function, waiting: ModelledCall, seen: set[Function]) -> bool:
        """Whether a function, or one that it calls, wakes who waits for an object."""
        seen.add(function)
        entering = self.reach.edges(function)
        waking = (
            one for one in function.by_opcode[op.INVOKE] if function.text(one[4]) in function.known("wakes") and not entering.get(one)
        )
        if any(self._may_be(function, one[3], waiting.function, waiting.receiver) for one in waking):
            return True
        callees = dict.fromkeys(edge.callee for edges in entering.values() for edge in edges)
        return any(self._wakes(callee, waiting, seen) for callee in callees if callee not in seen)

    def _may_be(self, function: Function, register: int, other: Function, waited: int | None) -> bool:
        """Whether two registers may hold one object: by the variable or member that names it, by its value, or in one file by nothing."""
        if waited is None:
            return True
        named = self.locks.named(function, register), self.locks.named(other, waited)
        if all(named):
            return named[0] == named[1]
        held = [
            {value for value in self.transfer.values(*each) if isinstance(value, LibraryObject)}
            for each in ((function, register), (other, waited))
        ]
        return bool(held[0] & held[1]) if all(held) else function.unit is other.unit


class Statements:
    """The statements of a function, by the registers that lead from one instruction to another: what is bound to a name ends one."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self._bound = {one[3] for opcode in (op.BIND, op.SET_NAME, op.STORE) for one in function.by_opcode[opcode]}

    def of(self, one: Instruction) -> int:
        """The statement of an instruction: the last one that uses its result, and so on."""
        seen = {one}
        while op.DEFINES[one[0]] and one[2] not in self._bound:
            uses = [use for use in self.function.uses[one[2]] if use not in seen and use[0] not in (op.BRANCH, op.PHI, op.REBIND)]
            if not uses:
                break
            one = uses[0]
            seen.add(one)
        return hash(one)
