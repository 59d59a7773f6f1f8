"""Effects: what a function may do to devices, streams and threads, by itself and through what it calls.

What a call of a library does is said by its model row. A method of a value whose class is unknown counts by its name where the value may be
of the library: neither the language nor a class of the program has such a method, and files that imports connect with the function's use
the library (`rounds` has rules of its own). Effects are joined over the call graph,
callees first; a strongly connected component has one set.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Set
from functools import cached_property
from typing import Final, NamedTuple

from streamlint.facts.code.components import components
from streamlint.facts.code.functions import Function
from streamlint.facts.code.language_members import LANGUAGE_MEMBERS
from streamlint.facts.code.objects import Instance, LibraryObject, Memory, Object, Unknown
from streamlint.facts.graph.call_graph import CallGraph, LibraryCall
from streamlint.facts.repetition.reaching import above
from streamlint.facts.repetition.rounds import Rounds
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Models, Row, last_part
from streamlint.support.memo import memoized


class Effect(enum.Flag):
    """What a function may do."""

    COPIES = enum.auto()
    LAUNCHES = enum.auto()
    ALLOCATES = enum.auto()
    FREES = enum.auto()
    STREAMS = enum.auto()
    RECORDS = enum.auto()
    WAITS = enum.auto()
    SYNCHRONIZES = enum.auto()
    READS = enum.auto()
    CALLBACKS = enum.auto()
    THREADS = enum.auto()
    CAPTURES = enum.auto()
    GIL = enum.auto()
    BACKWARD = enum.auto()
    OPTIMIZER = enum.auto()
    DECODES = enum.auto()
    DENOISES = enum.auto()
    SERVES = enum.auto()


MEANINGS = {
    Effect.COPIES: "copies",
    Effect.LAUNCHES: "launches work",
    Effect.ALLOCATES: "allocates on a device",
    Effect.FREES: "frees device memory",
    Effect.STREAMS: "creates or switches streams",
    Effect.RECORDS: "records events",
    Effect.WAITS: "has a stream wait",
    Effect.SYNCHRONIZES: "waits on the host",
    Effect.READS: "reads device values on the host",
    Effect.CALLBACKS: "registers callbacks",
    Effect.THREADS: "starts threads",
    Effect.CAPTURES: "captures",
    Effect.GIL: "holds or releases the GIL",
    Effect.BACKWARD: "runs a backward pass",
    Effect.OPTIMIZER: "steps an optimizer",
    Effect.DECODES: "decodes",
    Effect.DENOISES: "denoises",
    Effect.SERVES: "serves requests",
}
NOTHING = Effect(0)
DERIVES: Final = "derive"
"""What loops do that train if they also train otherwise, in a loop inside or by themselves."""
GOES_BACKWARD: Final = frozenset({"backward", DERIVES, "scale"})
"""What calls do that go backward through what was computed, or scale it for that."""
OF_ROUNDS = {
    "backward": Effect.BACKWARD,
    DERIVES: Effect.BACKWARD,
    "optimizer": Effect.OPTIMIZER,
    "decode": Effect.DECODES,
    "denoise": Effect.DENOISES,
    "serve": Effect.SERVES,
}
"""By what a row of a round does."""
_OF_ROWS = {
    "copy": Effect.COPIES,
    "transfer": Effect.COPIES,
    "move": Effect.COPIES,
    "module_to": Effect.COPIES,
    "memset": Effect.LAUNCHES,
    "launch": Effect.LAUNCHES,
    "compute": Effect.LAUNCHES,
    "collective": Effect.LAUNCHES,
    "alloc": Effect.ALLOCATES,
    "factory": Effect.ALLOCATES,
    "free": Effect.FREES,
    "trim": Effect.FREES,
    "stream": Effect.STREAMS,
    "set_stream": Effect.STREAMS,
    "bind_stream": Effect.STREAMS,
    "scope": Effect.STREAMS,
    "event": Effect.RECORDS,
    "record": Effect.RECORDS,
    "wait": Effect.WAITS,
    "synchronize": Effect.SYNCHRONIZES,
    "read": Effect.READS,
    "callback": Effect.CALLBACKS,
    "thread": Effect.THREADS,
    "capture": Effect.CAPTURES,
    "gil": Effect.GIL,
}
_ON_DEVICES = frozenset({"compute", "factory", "read", "transfer"})
"""Effects that are none where all that is known to take part is memory of the host."""
_NUMBERS = frozenset({"float", "int", "bool", "complex", "print"})


class Cause(NamedTuple):
    """An instruction that has an effect by itself, and what it calls."""

    effect: Effect
    instruction: Instruction
    name: str


class Effects:
    """The effects of functions, found when somebody asks for them."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.facts = graph.facts
        self.rounds = Rounds(graph)
        self._all: dict[Function, Effect] = {}
        self._leads: dict[tuple[Function, Effect], bool] = {}

    @memoized
    def own(self, function: Function) -> tuple[Cause, ...]:
        """What a function does by itself."""
        return tuple(dict.fromkeys(self._causes(function)))

    def of(self, function: Function) -> Effect:
        """What a function does, by itself and through those that it calls."""
        if function not in self._all:
            self._join(function)
        return self._all[function]

    @memoized
    def leading(self, effect: Effect) -> frozenset[Function]:
        """The functions that have an effect of few calls, found from these over their callers: what else they call is not solved."""
        return above(self.graph, self._doing(effect))

    def leads(self, function: Function, effect: Effect) -> bool:
        """Whether a function may come to an effect of many calls, by itself or through what it calls: callees are looked at up to the first
        one that has it."""
        names = self.facts.models.gathered(_names_with, effect) | self._names_of_rounds(effect)
        seen = {function: None}
        waiting, found = list(seen), False
        while waiting and not found:
            one = waiting.pop()
            known = self._leads.get((one, effect))
            found = known or (not names.isdisjoint(one.called_names) and any(effect & cause.effect for cause in self.own(one)))
            if known is None and not found:
                more = dict.fromkeys(edge.callee for edge in self.graph.calls(one).edges if edge.is_followed and edge.callee not in seen)
                seen.update(more)
                waiting += more
        self._leads.update(((one, effect), found) for one in ([function] if found else seen))
        return found

    def _doing(self, effect: Effect) -> Iterator[Function]:
        does = _of_rounds(effect)
        for function, calls in self.rounds.candidates(self._naming(self._names_of_rounds(effect))).items():
            if not does.isdisjoint(self.rounds.among(function, calls)):
                yield function
        for function in self._naming(self.facts.models.gathered(_names_with, effect)):
            if any(effect & cause.effect for cause in self.own(function)):
                yield function

    def _names_of_rounds(self, effect: Effect) -> frozenset[str]:
        """The last parts of the names of what does an effect in rounds."""
        does = _of_rounds(effect)
        return frozenset(last_part(name) for row in self.rounds.rows if row.does in does for name in row.names)

    def _naming(self, names: Set[str]) -> Iterator[Function]:
        """The functions that may call something of these names."""
        program = self.facts.program
        units = dict.fromkeys(unit for name in sorted(names & program.identifiers) for unit in program.mentioning(name))
        return (function for unit in units for function in unit.functions if not names.isdisjoint(function.called_names))

    def chain(self, function: Function, effect: Effect) -> list[tuple[Function, Instruction, str]]:
        """The shortest way by which a function comes to an effect: calls, the operation last; empty where it has none."""
        came: dict[Function, tuple[Function, Instruction] | None] = {function: None}
        waiting = deque([function])
        while waiting:
            one = waiting.popleft()
            cause = next((cause for cause in self.own(one) if effect & cause.effect), None)
            if cause is not None:
                return [*_way(came, one), (one, cause.instruction, cause.name)]
            for edge in self.graph.all_calls(one).edges:
                if edge.is_followed and edge.callee not in came:
                    came[edge.callee] = (one, edge.instruction)
                    waiting.append(edge.callee)
        return []

    def _join(self, function: Function) -> None:
        functions = self.graph.reachable([function])

        def after(one: Function) -> Iterable[Function]:
            return [edge.callee for edge in self.graph.all_calls(one).edges if edge.is_followed]

        for component in components(functions, after):
            found = NOTHING
            for one in component:
                for cause in self.own(one):
                    found |= cause.effect
                for callee in after(one):
                    found |= self._all.get(callee, NOTHING)
            self._all.update(dict.fromkeys(component, found))

    # --- methods of unknown values

    @cached_property
    def _methods(self) -> dict[str, list[Row]]:
        """By name: the rows of a method with effects, if the language has none of that name."""
        return self.facts.models.gathered(_methods)

    def _by_method(self, function: Function, one: Instruction) -> Iterable[Cause]:
        """The effects of a method of an unknown value: those of all types of the libraries that it may be of."""
        method = function.text(one[4])
        for row in self._methods.get(method, ()):
            is_near = not row.get("host") and self.rounds.is_used_near(function.unit, row.names[0].partition(".")[0])
            if is_near and not self.facts.program.defines(method):  # a value of unknown class may be one of its objects
                yield Cause(_OF_ROWS[row.effect], one, row.names[0])

    # --- one function

    def _causes(self, function: Function) -> Iterable[Cause]:
        calls = self.graph.all_calls(function)
        for call in calls.libraries:
            effect = self._of_call(function, call)
            if effect:
                yield Cause(effect, call.instruction, call.name)
        for round_ in self.rounds.of(function):
            if round_.row.does in OF_ROUNDS:
                yield Cause(OF_ROUNDS[round_.row.does], round_.instruction, round_.name)
        for one in calls.unknown:
            if one[0] == op.INVOKE:
                yield from self._by_method(function, one)
        for one in function.by_opcode[op.LAUNCH]:
            yield Cause(Effect.LAUNCHES, one, "<<<>>>")
        for one in function.by_opcode[op.BRANCH]:
            if any(isinstance(value, Memory) and value.space in ("device", "managed") for value in self._values(function, one[2])):
                yield Cause(Effect.READS, one, "the truth of a tensor")

    def _of_call(self, function: Function, call: LibraryCall) -> Effect:
        row = call.row
        if row is None:
            return self._of_name(function, call)
        found = _OF_ROWS.get(row.effect, NOTHING)
        if row.effect == "factory" and not self._is_made_on_device(function, call):
            return NOTHING
        if row.effect in _ON_DEVICES and row.effect != "factory":
            if row.get("host") or not self._is_on_device(function, call, True):
                return NOTHING
            if row.effect == "compute" and row.get("waits"):
                found |= Effect.SYNCHRONIZES
        if row.effect == "transfer" and row.get("to") == "host":
            found |= Effect.READS
        if row.effect == "launch" and row.get("waits"):
            found |= Effect.SYNCHRONIZES
        return found

    def _of_name(self, function: Function, call: LibraryCall) -> Effect:
        """The effect of a call that no row describes: a number of what is on a device, or a module that is called."""
        if call.name.removeprefix("builtins.") in _NUMBERS and self._is_on_device(function, call, False):
            return Effect.READS
        is_module = isinstance(call.receiver, LibraryObject) and call.receiver.kind == "module" and call.name.endswith(".__call__")
        return Effect.LAUNCHES if is_module else NOTHING

    def _is_made_on_device(self, function: Function, call: LibraryCall) -> bool:
        result = self._values(function, call.instruction[2])
        return any(isinstance(value, Memory) and value.space not in ("host", "unknown") for value in result)

    def _is_on_device(self, function: Function, call: LibraryCall, otherwise: bool) -> bool:
        """Whether the receiver, an argument or the result may be on a device; ``otherwise`` where nothing is known of any of them."""
        one = call.instruction
        registers = one[6 if one[0] == op.INVOKE else 5 :]
        for register in registers:
            self.facts.solver.demand(self.facts.register(self.facts.base(function), register))
        self.facts.solver.solve()
        given = [self._values(function, register) for register in registers]
        given += [[call.receiver]] if call.receiver is not None else []
        values = [value for values in given for value in values]
        if any(_space(value) in ("device", "managed") for value in (*values, *self._values(function, one[2]))):
            return True
        return otherwise and (
            not all(given) or any(isinstance(value, (Unknown, Instance)) or _space(value) == "unknown" for value in values)
        )

    def _values(self, function: Function, register: int) -> Collection[Object]:
        return self.facts.register(self.facts.base(function), register).values


def _of_rounds(effect: Effect) -> set[str]:
    """What rows of rounds do that have an effect."""
    return {word for word, one in OF_ROUNDS.items() if one & effect}


def _space(value: Object) -> str:
    return value.space if isinstance(value, Memory) else ""


def _way(came: dict[Function, tuple[Function, Instruction] | None], last: Function) -> list[tuple[Function, Instruction, str]]:
    found: list[tuple[Function, Instruction, str]] = []
    at = came[last]
    callee = last
    while at is not None:
        found.append((*at, callee.name))
        callee = at[0]
        at = came[callee]
    return found[::-1]


def words(effect: Effect) -> list[str]:
    """The parts of a set in words, in their order."""
    return [meaning for one, meaning in MEANINGS.items() if one & effect]


def _methods(models: Models) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for name, row in models.calls.items():
        owner, _, method = name.rpartition(".")
        if row.effect in _OF_ROWS and method not in LANGUAGE_MEMBERS and models.type_named(owner) is not None:
            found.setdefault(method, []).append(row)
    return found


def _names_with(models: Models, effect: Effect) -> frozenset[str]:
    """The last parts of the names of functions that have an effect."""
    return frozenset(last_part(name) for name, row in models.calls.items() if effect & _OF_ROWS.get(row.effect, NOTHING))
