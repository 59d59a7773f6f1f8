"""What instructions call: functions of the program, and functions of libraries with the rows of the models."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.language_members import LANGUAGE_MEMBERS
from streamlint.facts.code.objects import Container, DeviceValue, Instance, LibraryObject, Memory, Object
from streamlint.facts.files.program import Unit
from streamlint.facts.files.scopes import ExternalName
from streamlint.facts.graph.call_graph import CallGraph, Edge, LibraryCall
from streamlint.facts.graph.other_devices import OtherDevices
from streamlint.facts.repetition.rounds import Rounds
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Models, Row
from streamlint.models.vocabulary import Selector
from streamlint.support.shared import Shared
from streamlint.transfer.modelled import ModelledCall
from streamlint.waits.operands import argument_registers, kept_by
from streamlint.waits.tested import is_of_host

_NAMING = frozenset({op.CALL, op.INVOKE, op.CONSTRUCT, op.NEW})
_COMPUTED = {op.ATTR: 4, op.SET_ATTR: 3}
"""Where the name of an attribute stands in what reads or sets it."""
CALLING = frozenset({op.CALL, op.INVOKE, op.CONSTRUCT, op.NEW, op.LAUNCH, op.ENTER, op.NEXT, op.EXIT, op.DESTROY, op.DECLARE, op.INIT})


class Calls:
    """The calls that instructions make."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.facts = graph.facts
        self.rounds = Rounds(graph)
        self.devices = OtherDevices(graph.facts.models, graph.facts.scopes)
        self._libraries: dict[tuple[Function, Instruction], tuple[LibraryCall, ...]] = {}
        self._edges: dict[tuple[Function, Instruction], tuple[Edge, ...]] = {}
        self._callers: dict[Function, tuple[tuple[Function, Instruction], ...]] = {}
        self._registered: dict[Function, tuple[tuple[Function, Instruction], ...]] = {}
        self._open: set[tuple[Function, Instruction]] = set()  # calls of something of which nothing is known, whatever else it may be
        self._by_name: dict[tuple[Function, Instruction], ModelledCall | None] = {}
        self.one_of = Shared().one_of

    def edges(self, function: Function, one: Instruction) -> tuple[Edge, ...]:
        """The functions of the program that an instruction enters."""
        found = self._edges.get((function, one))
        if found is None:
            found = self._edges[function, one] = self._entered(function, one)
        return found

    def enters(self, caller: Function, call: Instruction, function: Function) -> bool:
        """Whether a call may run a function in any way: others call something of the same name."""
        return any(edge.callee is function for edge in self.edges(caller, call))

    def runs(self, caller: Function, call: Instruction, function: Function) -> bool:
        """Whether a call runs a function as a part of its own: neither later, nor elsewhere."""
        return any(edge.callee is function and edge.is_direct for edge in self.edges(caller, call))

    def callers(self, function: Function) -> tuple[tuple[Function, Instruction], ...]:
        """The calls that run a function as a part of their own."""
        found = self._callers.get(function)
        if found is None:
            places = self.facts.call_places(function)
            found = self._callers[function] = tuple(place for place in places if self.runs(*place, function))
        return found

    def registered(self, function: Function) -> tuple[tuple[Function, Instruction], ...]:
        """The calls that have a backward pass run a function, with the tensor that they are called on."""
        found = self._registered.get(function)
        if found is None:
            places = self.facts.call_places(function) if not function.is_cpp else ()
            given = [place for caller, call in places for place in ((caller, call), *_given_on(caller, call))]
            found = tuple(place for place in dict.fromkeys(given) if place[0].invokes(place[1], "hooks-leaf", "hooks-forward"))
            self._registered[function] = found
        return found

    def libraries(self, function: Function, one: Instruction) -> tuple[LibraryCall, ...]:
        """The calls of libraries that an instruction makes."""
        found = self._libraries.get((function, one))
        return found if found is not None else self._name(function, one)

    def modelled(self, function: Function, one: Instruction) -> Iterator[ModelledCall]:
        """The calls of libraries that have rows; of a method of an unknown value, the row that it may be by its name."""
        for call in self.libraries(function, one):
            if call.row is not None:
                yield ModelledCall(self.facts, function, call, call.row)
        if self._is_unknown(function, one):
            if (function, one) not in self._by_name:
                self._by_name[function, one] = self._call_by_name(function, one)
            if (named := self._by_name[function, one]) is not None:
                yield named

    def is_sure(self, call: ModelledCall) -> bool:
        """Whether a call is one of the library: no method of an unknown value whose name a class of the program has as well."""
        return not self.is_by_name(call) or not self.facts.program.defines(last_name(call.function, call.instruction))

    def is_by_name(self, call: ModelledCall) -> bool:
        """Whether a call is a method of a value of which nothing is known but that name."""
        return self._is_unknown(call.function, call.instruction)

    def _is_unknown(self, function: Function, one: Instruction) -> bool:
        """Whether nothing is known of what a call calls, and no function of the program is among it."""
        self.libraries(function, one)
        return (function, one) in self._open and not any(edge.is_followed for edge in self.edges(function, one))

    def _name(self, function: Function, one: Instruction) -> tuple[LibraryCall, ...]:
        """Find out which libraries a call is of. What is given to it and given back matters only for what it enters."""
        key, found = (function, one), tuple[LibraryCall, ...]()
        if one[0] in _NAMING:
            calls = self.graph.named(function, one)
            likely = reversed(_likely(function, calls.libraries))
            found = tuple({(call.name, _kind_of(call.receiver)): call for call in likely}.values())[::-1]
            if calls.unknown:
                self._open.add(key)
        self._libraries[key] = found
        return found

    def _entered(self, function: Function, one: Instruction) -> tuple[Edge, ...]:
        if one[0] not in CALLING and not self._runs_method(function, one):
            return ()
        if one[0] == op.DECLARE:
            return tuple(self._constructors(function, one))
        if one[0] == op.INIT:
            return tuple(Edge(one, callee) for callee in self.graph.initialised(function, one))
        if one[0] in (op.EXIT, op.DESTROY):
            return tuple(Edge(one, callee) for callee in self.graph.ended(function, one))
        edges = self.graph.calls_at(function, [one]).edges
        return self.devices.without(edges) if one[0] == op.INVOKE and len(edges) > 1 else edges

    def _runs_method(self, function: Function, one: Instruction) -> bool:
        """Whether what is no call may run a method: of an element, or of an attribute that some class computes."""
        if one[0] == op.ITEM:
            return function.is_cpp or self.facts.program.defines("__getitem__")
        if one[0] == op.SET_ITEM:
            is_defined = not function.is_cpp and self.facts.program.defines("__setitem__")
            return is_defined and any(isinstance(value, Instance) for value in self.values(function, one[2]))
        return not function.is_cpp and one[0] in _COMPUTED and self.graph.is_computed(function.text(one[_COMPUTED[one[0]]]))

    def _constructors(self, function: Function, one: Instruction) -> Iterator[Edge]:
        """The constructors of a variable of a class of the program that is declared without arguments."""
        if any(isinstance(value, Instance) for value in self.values(function, one[2])):
            yield from (Edge(one, callee) for callee in self.facts.enters(function, one))

    def values(self, function: Function, register: int) -> tuple[Object, ...]:
        """What a register may hold: what is known now, whatever further questions bring."""
        return tuple(self.facts.values(function, register).values) if register >= 0 else ()

    # --- methods of values of which nothing is known

    def _call_by_name(self, function: Function, one: Instruction) -> ModelledCall | None:
        row = self._row_by_name(function, one)
        if row is None or (one[0] == op.INVOKE and is_of_host(self.facts, function, one, one[3])):
            return None
        return ModelledCall(self.facts, function, LibraryCall(one, row, row.names[0], None), row)

    def _row_by_name(self, function: Function, one: Instruction) -> Row | None:
        """The row of a method as a library near has it."""
        method = function.text(one[4]) if one[0] == op.INVOKE else ""
        if not method:
            return None
        if function.is_cpp:
            return self.facts.cpp_models.calls.get(f"at::Tensor::{method}") if self._has_tensors(function.unit) else None
        if not self.libraries(function, one) and (meant := self._imported(function, one[3], method)):
            return meant[0]  # the steps of the facts ran out
        rows = self._methods.get(method, ()) or self._rows_with(method, _names_given(function, one))
        if rows and self._is_device(function, one[3]):
            rows = [row for row in rows if any(self._is_of_device(name) for name in row.names)]
        return next((row for row in rows if self.rounds.is_used_near(function.unit, row.names[0].partition(".")[0])), None)

    @cached_property
    def _methods(self) -> dict[str, list[Row]]:
        """By name: the rows of a method, if the language has none of that name."""
        return self.facts.models.gathered(_methods, False)

    def _imported(self, function: Function, register: int, name: str) -> list[Row]:
        """The rows of a function of a module that a file imports."""
        held = function.definitions[register] if register >= 0 else None
        if held is None or held[0] not in (op.NAME, op.ATTR) or not (dotted := function.dotted(register)):
            return []
        names = (each.name for each in self.facts.scopes.find(function.unit, f"{dotted}.{name}") if isinstance(each, ExternalName))
        return [row for row in map(self.facts.models.call, names) if row is not None]

    def _is_device(self, function: Function, register: int) -> bool:
        """Whether a register holds a device: by its value, or by the call that gives it."""
        if any(isinstance(value, DeviceValue) for value in self.values(function, register)):
            return True
        made = function.definitions[register] if register >= 0 else None
        return made is not None and made[0] in CALLING and any(call.row.effect == "device" for call in self.modelled(function, made))

    def _is_of_device(self, name: str) -> bool:
        kind = self.facts.models.type_named(name.rpartition(".")[0])
        return kind is not None and kind.kind == "device"

    def _rows_with(self, method: str, names: frozenset[str]) -> list[Row]:
        """The rows of a method whose name the language has as well, if a call gives names that are theirs: ``x.get(out=host)``."""
        if not names or method not in LANGUAGE_MEMBERS:
            return []
        return [row for row in self._of_types.get(method, ()) if names <= _keywords(row)]

    @cached_property
    def _of_types(self) -> dict[str, list[Row]]:
        """By name: the rows of methods whose names the language has as well."""
        return self.facts.models.gathered(_methods, True)

    def _has_tensors(self, unit: Unit) -> bool:
        """C++: whether a file includes PyTorch."""
        return any(include.partition("/")[0] in unit.models.marked("tensor-header") for include in unit.ir.includes)


def _likely(function: Function, calls: tuple[LibraryCall, ...]) -> tuple[LibraryCall, ...]:
    """The calls of a method, where a receiver may be memory or an object that is known to have it (``event.synchronize()``), or a
    dictionary (``held.update(…)``): memory of which all methods are told alike has none of that name."""
    of_dicts = function.known("extends", "looks-up", "pops-key")
    is_known = any(
        call.name.rpartition(".")[2] in of_dicts
        if isinstance(call.receiver, Container)
        else isinstance(call.receiver, LibraryObject) and not _is_unnamed(call)
        for call in calls
    )
    return tuple(call for call in calls if not (is_known and isinstance(call.receiver, Memory) and _is_unnamed(call)))


def _is_unnamed(call: LibraryCall) -> bool:
    return call.row is None or call.name not in call.row.names


def _kind_of(receiver: Object | None) -> object:
    """What tells calls of one method apart by the object: what they do to memory is asked of its register, whatever that may hold."""
    return Memory if isinstance(receiver, Memory) else receiver


def _keywords(row: Row) -> frozenset[str]:
    """The names of the arguments that a row knows."""
    held = (each for value in row.values.values() for each in (value if isinstance(value, tuple) else (value,)))
    return frozenset(each.keyword for each in held if isinstance(each, Selector) and each.keyword is not None)


def _names_given(function: Function, one: Instruction) -> frozenset[str]:
    """The names under which a call gives arguments."""
    return frozenset(kind for kind, _ in argument_registers(function, one) if isinstance(kind, str))


def _methods(models: Models, of_language: bool) -> dict[str, list[Row]]:
    """By name: the rows of methods whose names the language has as well, or has not."""
    found: dict[str, list[Row]] = {}
    for name, row in models.calls.items():
        owner, _, method = name.rpartition(".")
        if (method in LANGUAGE_MEMBERS) == of_language and models.type_named(owner) is not None:
            found.setdefault(method, []).append(row)
    return found


def _given_on(function: Function, made: Instruction) -> Iterator[tuple[Function, Instruction]]:
    """The calls that are given a partial object by the function that makes it."""
    if made[0] in (op.CALL, op.INVOKE) and kept_by(function, made) is not None:
        yield from ((function, use) for use in function.uses[made[2]] if use[0] in (op.CALL, op.INVOKE))
