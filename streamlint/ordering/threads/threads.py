"""Threads that a program starts: what they run, what goes on beside them, and where somebody waits for their end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import Constant, Container, FunctionObject, Instance, LibraryObject, Site
from streamlint.facts.graph.call_graph import LibraryCall
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.ordering.threads.chosen_devices import STREAMS, ChosenDevices
from streamlint.support.memo import memoized
from streamlint.transfer.guards import Guards
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer

Judge = Callable[[Function, Instruction], bool]
_MOST_FUNCTIONS = 80
_MOST = 300


class Started(NamedTuple):
    """Threads that a call starts: the functions that they run. ``several``: it starts more than one at a time; ``awaited``: whoever
    starts it does nothing else meanwhile."""

    call: ModelledCall
    body: tuple[Function, ...]
    several: bool
    awaited: bool

    @property
    def site(self) -> Site:
        """Where they are started, or the object was made that is."""
        return Site(self.call.function, self.call.instruction)


class Threads:
    """The threads of a program."""

    def __init__(self, transfer: Transfer, guards: Guards) -> None:
        self.transfer = transfer
        self.guards = guards

    @cached_property
    def started(self) -> list[Started]:
        """All that start threads."""
        return list(self._started())

    def begun(self, started: Started) -> list[Site]:
        """Where threads begin to run: the calls that start the object which was made for them, or the call itself."""
        return self._begun.get(started.site) or [started.site]

    @cached_property
    def _begun(self) -> dict[Site, list[Site]]:
        found: dict[Site, list[Site]] = {}
        for call in self.transfer.sites(frozenset({"start"})):
            site = Site(call.function, call.instruction)
            node = self.transfer.facts.values(call.function, call.receiver) if call.receiver is not None else None
            for value in node.values if node is not None else ():
                for made in list(node.trace(value))[-1:] if node is not None and isinstance(value, LibraryObject) else ():
                    found.setdefault(made, []).append(site)
        return found

    def _started(self) -> Iterator[Started]:
        for call in self.transfer.sites(frozenset({"thread", "start"})):
            if call.row.effect == "start" and not isinstance(call.call.receiver, Instance):
                continue  # what its constructor was given
            edges = self.transfer.edges(call.function, call.instruction)
            entries = [edge.callee for edge in edges if edge.is_elsewhere]
            if entries and self._is_thread(call):
                body = tuple(self.closure(entries))
                several = not self._is_single(call) and (call.row.get("style") == "each" or self._is_repeated(call))
                yield Started(call, body, several, bool(call.row.get("awaited")))

        yield from self._members()

    def _members(self) -> Iterator[Started]:
        """C++: threads that are members, and that the initialiser of a constructor starts."""
        facts = self.transfer.facts
        for unit in facts.program.mentioning("thread"):
            for function in unit.functions if unit.is_cpp else ():
                for one in function.by_opcode[op.INIT]:
                    call = self._initialised(function, one)
                    held = facts.values(function, one[5]).values if call is not None and len(one) > 5 else ()
                    entries = [value.function for value in held if isinstance(value, FunctionObject)]
                    if call is not None and entries:
                        yield Started(call, tuple(self.closure(entries)), False, False)

    def _initialised(self, function: Function, one: Instruction) -> ModelledCall | None:
        """The constructor of a thread that an initialiser of a member calls."""
        owner = function.owner
        fields = owner.ir.fields if owner is not None else ()
        kind = next((field.type for field in fields if field.name == function.text(one[3])), None)
        row = self.transfer.facts.cpp_models.call(str(kind[0])) if kind is not None else None
        if row is None or row.effect != "thread":
            return None
        return ModelledCall(self.transfer.facts, function, LibraryCall(one, row, row.names[0], None), row)

    def _is_thread(self, call: ModelledCall) -> bool:
        """Whether a thread runs the function, no process."""
        if call.row.get("kind") == "process":
            return False
        pool = call.one("pool")
        kinds = [value.type for value in call.values(pool) if isinstance(value, LibraryObject)] if pool is not None else []
        return not any("Process" in kind or kind.startswith("multiprocessing.pool.Pool") for kind in kinds)

    def _is_single(self, call: ModelledCall) -> bool:
        """Whether the pool has one thread: what it runs comes one after the other."""
        pool = call.one("pool")
        one = call.function.definitions[pool] if pool is not None and pool >= 0 else None
        if one is not None and one[0] == op.ENTER:
            one = call.function.definitions[one[3]]
        if one is None or one[0] not in (op.CALL, op.INVOKE):
            return False
        for made in self.transfer.modelled(call.function, one):
            register = made.one("workers")
            if register is not None and {value.value for value in made.values(register) if isinstance(value, Constant)} == {1}:
                return True
        return False

    def _is_repeated(self, call: ModelledCall) -> bool:
        """Whether the call is reached again before anybody waits for the end of the thread."""
        return self.comes_behind(call.function, call.instruction, call.instruction)

    def closure(self, entries: list[Function]) -> list[Function]:
        """Functions and all that they run, as far as they are known."""
        found = list(dict.fromkeys(entries))
        for function in found:
            if len(found) > _MOST_FUNCTIONS:
                break
            for opcode in (op.CALL, op.INVOKE, op.CONSTRUCT):
                for one in function.by_opcode[opcode]:
                    for edge in self.transfer.edges(function, one):
                        if edge.is_followed and edge.callee not in found:
                            found.append(edge.callee)
        return found

    def ends(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction waits for the end of threads: a join, a result, the end of a pool's scope."""
        if one[0] == op.EXIT:
            held = self.transfer.values(function, one[3])
            return any(isinstance(value, LibraryObject) and ("Executor" in value.type or "Pool" in value.type) for value in held)
        if one[0] not in (op.CALL, op.INVOKE) or last_name(function, one) not in self._ending:
            return False
        rows = [call.row for call in self.transfer.modelled(function, one)]
        return any(row.effect == "block" and _is_end(row) for row in rows or self._of_container(function, one))

    def _of_container(self, function: Function, one: Instruction) -> list[Row]:
        """The rows of a method of what the program facts know as a container: a queue's, by what made it."""
        facts, name = self.transfer.facts, last_name(function, one)
        held = self.transfer.values(function, one[3]) if one[0] == op.INVOKE and not function.is_cpp else ()
        creations = ((value.frame.function, value.instruction) for value in held if isinstance(value, Container))
        kinds = {str(row.get("type", "")) for home, at in creations if at[0] in (op.CALL, op.INVOKE) for row in facts.rows(home, at)}
        return [row for kind in kinds if (row := facts.models.method(kind, name)) is not None]

    def _leads_to_end(self, function: Function, one: Instruction) -> bool:
        """Whether a call of the program's own leads to where somebody waits for the end of threads."""
        is_scope = one[0] == op.EXIT and not function.is_cpp  # the end of one leads behind the pause of a generator, or to a method
        call = function.definitions[one[3]] if is_scope and one[3] >= 0 else one
        edges = self.transfer.edges(function, call) if call is not None and call[0] in (op.CALL, op.INVOKE) else ()
        entered = [edge.callee for edge in edges if edge.is_direct and not edge.is_elsewhere]
        owners = [value.definition for value in self.transfer.values(function, one[3]) if isinstance(value, Instance)] if is_scope else []
        entered += [method for owner in owners for method in owner.methods.get("__exit__", ())]
        return any(map(self._has_end_below, entered))

    @memoized
    def _has_end_below(self, function: Function) -> bool:
        return any(map(self._has_end, self.closure([function])))

    @memoized
    def _has_end(self, function: Function) -> bool:
        calls = (one for opcode in (op.CALL, op.INVOKE, op.EXIT) for one in function.by_opcode[opcode])
        return any(self.ends(function, one) for one in calls)

    @cached_property
    def _ending(self) -> frozenset[str]:
        return self.transfer.names({"block"}, _is_end)

    def comes_behind(self, function: Function, first: Instruction, second: Instruction) -> bool:
        """Whether an instruction of a function is reached behind another one before anybody waits for the end of threads.

        What calls lead to is asked only on the ways between the two: most threads are started outside of loops.
        """
        graph = function.control
        (home, place), (other, index) = function.homes[first], function.homes[second]
        if not (home == other and place < index) and other not in graph.reach(graph.successors[home]):
            return False
        between = frozenset(block for block in graph.reach([home]) if other in graph.reach([block]))
        return self._reached_in(function, first, lambda _, one: one is second, between)[0] is not None

    def reached(self, function: Function, one: Instruction, judge: Judge, goes_up: bool, depth: int = 0) -> Site | None:
        """The first instruction behind another one that is looked for, before anybody waits for the end of threads."""
        found, returns = self._reached_in(function, one, judge)
        if found is not None or not (returns and goes_up) or depth > 2:
            return found
        for caller, call in self.transfer.callers(function):
            found = self.reached(caller, call, judge, True, depth + 1)
            if found is not None:
                return found
        return None

    def _reached_in(
        self, function: Function, one: Instruction, judge: Judge, within: frozenset[int] | None = None
    ) -> tuple[Site | None, bool]:
        """The same in the function itself, or in some of its blocks, and whether the function returns before that."""
        graph, blocks = function.control, function.code.blocks
        home = function.blocks[one]
        waiting, seen = [(home, blocks[home].index(one) + 1)], set[int]()
        returns = False
        while waiting and len(seen) < _MOST:
            block, begin = waiting.pop(0)
            ended = False
            for each in blocks[block][begin:]:
                if judge(function, each):
                    return Site(function, each), returns
                if self.ends(function, each) or self._leads_to_end(function, each):
                    ended = True
                    break
                returns |= each[0] in (op.RETURN, op.YIELD)
            if not ended:
                waiting += [(after, 0) for after in graph.successors[block] if after not in seen and (within is None or after in within)]
                seen.update(graph.successors[block])
        return None, returns

    def chooses_device(self, started: Started) -> bool:
        """Whether the threads make a device current: of two that do, each has its own, unless both name the same one."""
        return any(self._is_own_device(call) for function in started.body for call in self._devices.calls(function))

    @cached_property
    def _devices(self) -> ChosenDevices:
        return ChosenDevices(self.transfer)

    def _is_own_device(self, call: ModelledCall) -> bool:
        """Whether a call makes a device current, and no constant says which."""
        register = self._devices.device(call) if call.row.effect not in STREAMS else None
        if register is None:
            return call.row.effect not in STREAMS
        names = set(self._devices.named(call.function, register))
        return ... in names or len(names) != 1


def _is_end(row: Row) -> bool:
    """Whether a call that blocks waits for the end of threads."""
    return row.get("what") in ("join", "result")
