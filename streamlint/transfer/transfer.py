"""Finds what instructions do: the entry to this package. An instruction is looked at when somebody asks for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from streamlint.facts.call_graph import CallGraph, Edge, LibraryCall
from streamlint.facts.functions import Function
from streamlint.facts.instructions import last_name
from streamlint.facts.language_members import LANGUAGE_MEMBERS
from streamlint.facts.objects import DeviceValue, Elements, Instance, LibraryObject, Memory, Object, Site
from streamlint.facts.program import Unit
from streamlint.facts.rounds import Rounds
from streamlint.facts.scopes import ExternalName
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Models, Row
from streamlint.models.vocabulary import Selector
from streamlint.transfer import (
    collectives,
    copies,
    declared_waits,
    kernel_texts,
    language,
    memory,
    modules,
    numba_kernels,
    order,
    training,
    updates,
    waiting,
    work,
)
from streamlint.transfer.actions import MASKING, VARIABLE, Action, Asked, Copied, Lost, Read, Synchronized, Touched, Viewed
from streamlint.transfer.members import member
from streamlint.transfer.modelled import ModelledCall, operands_of
from streamlint.transfer.partials import prepared_name
from streamlint.transfer.replaced import replaced, replacing
from streamlint.waits import indices
from streamlint.waits.operands import argument_registers, operand_of
from streamlint.waits.tested import is_of_host

Effect = Callable[[ModelledCall], Iterator[Action]]
RowTest = Callable[[Row], bool]
Kind = TypeVar("Kind")
ANY_ROW: RowTest = lambda row: True  # noqa: E731
EFFECTS: dict[str, Effect] = {
    **copies.EFFECTS,
    **order.EFFECTS,
    **memory.EFFECTS,
    **waiting.EFFECTS,
    **work.EFFECTS,
    **updates.EFFECTS,
    **collectives.EFFECTS,
}
"""By the effect of a row: the function that gives its actions."""
CALLING = frozenset({op.CALL, op.INVOKE, op.CONSTRUCT, op.NEW, op.LAUNCH, op.ENTER, op.NEXT, op.EXIT, op.DESTROY, op.DECLARE})


_OF_LANGUAGE = ("builtins.", "elements::")
_OF_PYTHON = frozenset({"next", "iter", "enumerate", "zip", "reversed", "range", "super"})
_PREPARING = frozenset({"functools.partial", "functools.partialmethod"})
"""Functions that keep what they are given for a later call."""
_INSIDE = frozenset({"begin", "end", "cbegin", "cend", "data", "get", "front", "back", "at"})
"""Methods of C++ containers and smart pointers that lead to their memory."""
_NAMED = frozenset({op.CALL, op.INVOKE, op.CONSTRUCT})
_TENSOR_HEADERS = frozenset({"torch", "ATen", "c10"})


class Order(NamedTuple):
    """What orders a pending operation: the operation, the instruction behind which it has ended, and where its stream was made."""

    operation: Site
    by: Site
    action: Action
    stream: frozenset[Site]


class Transfer:
    """The actions of instructions, and the calls that they make."""

    keeps_gil = False
    """Whether the GIL is taken for held where it is let go: to explain why nothing is told."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.facts = graph.facts
        self.rounds = Rounds(graph)
        self._actions: dict[tuple[Function, Instruction], tuple[Action, ...]] = {}
        self._works: dict[tuple[Function, Instruction], tuple[work.Worked, ...]] = {}
        self._libraries: dict[tuple[Function, Instruction], tuple[LibraryCall, ...]] = {}
        self._edges: dict[tuple[Function, Instruction], tuple[Edge, ...]] = {}
        self._callers: dict[Function, tuple[tuple[Function, Instruction], ...]] = {}
        self._unknown: set[tuple[Function, Instruction]] = set()
        self._calls: dict[Unit, dict[str, list[tuple[int, Function, Instruction, bool]]]] = {}
        self._names: dict[tuple[frozenset[str], RowTest], frozenset[str]] = {}
        self._shared: dict[tuple[object, ...], Any] = {}
        self.asked: frozenset[Unit] | None = None
        """The files whose copies and other work are looked at, where not all are: what they meet is looked for in the whole program."""
        self.passed: list[Order] | None = None
        """The orders that walks have passed over: only where silence is explained, else they end there."""

    def one_of(self, kind: Callable[..., Kind], *given: object) -> Kind:
        """The one object of a kind for what it is made from: what it finds out of the program, it finds out once for all rules."""
        key = (kind, *given)
        found: Kind | None = self._shared.get(key)
        if found is None:
            found = self._shared[key] = kind(*given)
        return found

    def of(self, function: Function, one: Instruction) -> tuple[Action, ...]:
        """What an instruction does."""
        key = (function, one)
        found = self._actions.get(key)
        if found is None:
            found = self._actions[key] = tuple(dict.fromkeys(self._find(function, one)))
        return found

    def works(self, function: Function, one: Instruction) -> tuple[work.Worked, ...]:
        """The work on devices that an instruction queues."""
        key = (function, one)
        found = self._works.get(key)
        if found is None:
            actions = self.of(function, one)
            calls = list(self.modelled(function, one)) if one[0] in CALLING else []
            made = [*work.works(self.facts, function, one, calls, actions), *modules.moved(calls), *work.reordered(calls, self.modelled)]
            if one[0] == op.CALL and not made:
                made += numba_kernels.launched(self.facts, self.libraries, function, one)
                made += kernel_texts.launched(self.facts, self.libraries, function, one)
            if not made and any(isinstance(action, Lost) for action in actions) and not self._is_in_view(function, one):
                named = list(self._by_method(function, one))
                made = list(work.works(self.facts, function, one, named, ())) if named else [self._called(function, one)]
            made += training.trained(self.rounds, self.works, function, one, calls)
            found = self._works[key] = tuple(made)
        return found

    def _is_in_view(self, function: Function, one: Instruction) -> bool:
        """Whether a call runs an object of the program for sure."""
        return one[0] == op.CALL and any(edge.is_followed and not (edge.is_guess or edge.is_handed) for edge in self.edges(function, one))

    def _called(self, function: Function, one: Instruction) -> work.Worked:
        """The work of a call out of view."""
        return modules.called(function, one, self.libraries(function, one), self.modelled)

    def _by_method(self, function: Function, one: Instruction) -> Iterator[ModelledCall]:
        """The method that tensors have, of a value of which nothing is known, in a file that uses them."""
        if one[0] != op.INVOKE or function.is_cpp or is_of_host(self.facts, function, one, one[3]):
            return
        for kind, library in self.facts.models.array_types.items():
            row = self.facts.models.method(kind, function.text(one[4]))
            if row is not None and row.names[0].endswith("*") and not self.is_tensor(function, one[3]):
                continue  # any method of a tensor, but this may be none
            if row is not None and self.rounds.is_used_near(function.unit, library):
                yield ModelledCall(self.facts, function, LibraryCall(one, row, row.names[0], None), row)
                return

    def edges(self, function: Function, one: Instruction) -> tuple[Edge, ...]:
        """The functions of the program that an instruction enters."""
        self._resolve(function, one)
        return self._edges[function, one]

    def enters(self, caller: Function, call: Instruction, function: Function) -> bool:
        """Whether a call may run a function in any way: others call something of the same name."""
        return any(edge.callee is function for edge in self.edges(caller, call))

    def runs(self, caller: Function, call: Instruction, function: Function) -> bool:
        """Whether a call runs a function as a part of its own: neither later, nor elsewhere."""
        return any(edge.callee is function and edge.is_followed and not edge.is_handed for edge in self.edges(caller, call))

    def callers(self, function: Function) -> tuple[tuple[Function, Instruction], ...]:
        """The calls that run a function as a part of their own."""
        found = self._callers.get(function)
        if found is None:
            places = self.facts.call_places(function)
            found = self._callers[function] = tuple(place for place in places if self.runs(*place, function))
        return found

    def libraries(self, function: Function, one: Instruction) -> tuple[LibraryCall, ...]:
        """The calls of libraries that an instruction makes."""
        self._resolve(function, one)
        return self._libraries[function, one]

    def modelled(self, function: Function, one: Instruction) -> Iterator[ModelledCall]:
        """The calls of libraries that have rows; of a method of an unknown value, the row that it may be by its name."""
        for call in self.libraries(function, one):
            if call.row is not None:
                yield ModelledCall(self.facts, function, call, call.row)
        if (function, one) in self._unknown and (row := self._row_by_name(function, one)) is not None:
            if one[0] == op.INVOKE and is_of_host(self.facts, function, one, one[3]):
                return
            yield ModelledCall(self.facts, function, LibraryCall(one, row, row.names[0], None), row)

    def is_sure(self, call: ModelledCall) -> bool:
        """Whether a call is one of the library: no method of an unknown value whose name a class of the program has as well."""
        return not self.is_by_name(call) or not self.facts.program.defines(last_name(call.function, call.instruction))

    def is_by_name(self, call: ModelledCall) -> bool:
        """Whether a call is a method of a value of which nothing is known but that name."""
        return (call.function, call.instruction) in self._unknown

    def _resolve(self, function: Function, one: Instruction) -> None:
        key = (function, one)
        if key in self._edges:
            return
        is_operator = function.is_cpp and one[0] == op.ITEM
        if one[0] not in CALLING and not is_operator:
            self._edges[key], self._libraries[key] = (), ()
            return
        if one[0] == op.DECLARE:
            self._edges[key], self._libraries[key] = tuple(self._constructors(function, one)), ()
            return
        if one[0] in (op.EXIT, op.DESTROY):
            self._libraries[key] = ()
            self._edges[key] = tuple(Edge(one, callee) for callee in self.graph.ended(function, one))
            return
        calls = self.graph.calls_at(function, [one])
        self._edges[key] = calls.edges
        self._libraries[key] = tuple({(call.name, _kind_of(call.receiver)): call for call in reversed(calls.libraries)}.values())[::-1]
        if calls.unknown and not any(edge.is_followed for edge in calls.edges):
            self._unknown.add(key)

    def _constructors(self, function: Function, one: Instruction) -> Iterator[Edge]:
        """The constructors of a variable of a class of the program that is declared without arguments."""
        if any(isinstance(value, Instance) for value in self.values(function, one[2])):
            yield from (Edge(one, callee) for callee in self.facts.enters(function, one))

    def _find(self, function: Function, one: Instruction) -> Iterator[Action]:
        finder = _FINDERS.get(one[0])
        if finder is not None:
            yield from finder(self, function, one)
        if one[0] in CALLING:
            yield from self._of_call(function, one)

    def _operator(self, function: Function, one: Instruction) -> Iterator[Action]:
        return language.operator(function, one)

    def _attribute(self, function: Function, one: Instruction) -> Iterator[Action]:
        if function.text(one[4]) in self.view_names or self.is_part(function, one):
            yield Viewed(one[3])
        elif not function.is_cpp and function.text(one[4]) in self._asking:
            yield from self._asked(function, one)
        elif function.is_cpp:
            yield Read(one[3], "member access", False, False, (0, VARIABLE))
            yield from member(self.facts, function, one)

    def _attribute_store(self, function: Function, one: Instruction) -> Iterator[Action]:
        if function.is_cpp:
            yield from member(self.facts, function, one)
        elif function.text(one[3]) in self.replacing:
            yield from replaced(self.facts.models, function, one, self.values)

    def _variable(self, function: Function, one: Instruction) -> Iterator[Action]:
        if function.is_cpp:
            yield Read(one[2], "variable", False, False, (VARIABLE,))

    def _iteration(self, function: Function, one: Instruction) -> Iterator[Action]:
        if function.is_cpp:
            yield Read(one[3], "loop", False)

    def _element(self, function: Function, one: Instruction) -> Iterator[Action]:
        yield from language.element(function, one, self.values, self.is_tensor)
        if function.is_cpp and one[0] == op.ITEM:
            yield Read(one[2], "element", False, False, (VARIABLE,))
        elif one[0] == op.ITEM and indices.is_masked(self.facts, function, one[4]) and self.is_tensor(function, one[3]):
            yield Read(one[3], MASKING)

    def _construction(self, function: Function, one: Instruction) -> Iterator[Action]:
        if any(map(_is_container, self.values(function, one[2]))):
            yield from (Read(register, "copying", False) for register in one[5:])

    def _end_of_scope(self, function: Function, one: Instruction) -> Iterator[Action]:
        if self._is_capture(function, one[3]):
            yield Synchronized(None, "capture")  # what was captured runs when the graph is replayed

    def _of_call(self, function: Function, one: Instruction) -> Iterator[Action]:
        if function.is_cpp and one[0] in (op.CALL, op.INVOKE):
            yield Touched(operands_of(function, one))
        yield from language.filled(function, one)
        if self.facts.program.declares:
            yield from declared_waits.waited(self.facts, function, one, self.edges(function, one))
        modelled = list(self.modelled(function, one))
        for call in modelled:
            effect = EFFECTS.get(call.row.effect)
            if effect is not None and not (call.row.effect == "block" and self.graph.joining.is_end(function, one)):
                yield from effect(call)
        if self._is_inside(function, one):
            if not modelled:
                yield Viewed(one[3])
        elif self._is_lost(function, one, modelled):
            yield Lost(operands_of(function, one), function.text(one[4]) if one[0] == op.INVOKE else "")
            yield from self._given_back(function, one)

    def _given_back(self, function: Function, one: Instruction) -> Iterator[Action]:
        """What a method of a value of which nothing is known gives back of it, if it is one that tensors have."""
        for call in self._by_method(function, one):
            effect = EFFECTS.get(call.row.effect)
            yield from (action for action in effect(call) if isinstance(action, Viewed)) if effect is not None else ()

    def _is_inside(self, function: Function, one: Instruction) -> bool:
        """C++: whether a method of a container or smart pointer leads to its memory."""
        if not function.is_cpp or one[0] != op.INVOKE or len(one) > 6 or function.text(one[4]) not in _INSIDE:
            return False
        return not any(edge.is_followed for edge in self.edges(function, one))

    def _is_lost(self, function: Function, one: Instruction, modelled: Collection[ModelledCall]) -> bool:
        """Whether code out of view may run: a function of a library without a row, a value of which nothing is known."""
        if one[0] == op.INVOKE and function.text(one[4]) in language.OF_RECORDS:
            return False
        edges = self.edges(function, one)
        if any(edge.is_guess or edge.is_handed for edge in edges):
            return True
        if any(edge.is_followed for edge in edges):
            return False
        libraries = self.libraries(function, one)
        if self.is_of_language(function, one):
            return False
        return any(call.row is None for call in libraries) or ((function, one) in self._unknown and not modelled)

    def is_of_language(self, function: Function, one: Instruction) -> bool:
        """Whether a call is one of the language itself, which puts no work on a device: also of the type that a value is found to have."""
        made = function.definitions[one[3]] if one[0] == op.CALL and one[3] >= 0 and not function.is_cpp else None
        if made is not None and made[0] == op.CALL and len(made) == 6 and function.dotted(made[3]) == "type":
            return True
        return any(call.name.startswith(_OF_LANGUAGE) or call.name in _OF_PYTHON | _PREPARING for call in self.libraries(function, one))

    def _is_capture(self, function: Function, register: int) -> bool:
        """Whether a context manager captures what is done in it."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or one[0] not in (op.CALL, op.INVOKE) or last_name(function, one) not in self._capturing:
            return False
        return any(call.row.effect == "capture" for call in self.modelled(function, one))

    @cached_property
    def _capturing(self) -> frozenset[str]:
        return self.names({"capture"})

    # --- methods of unknown values

    @cached_property
    def _methods(self) -> dict[str, list[Row]]:
        """By name: the rows of a method, if the language has none of that name."""
        found: dict[str, list[Row]] = defaultdict(list)
        for name, row in self.facts.models.calls.items():
            owner, _, method = name.rpartition(".")
            if method not in LANGUAGE_MEMBERS and self.facts.models.type_named(owner) is not None:
                found[method].append(row)
        return dict(found)

    def _row_by_name(self, function: Function, one: Instruction) -> Row | None:
        """The row of a method as a library near has it."""
        method = function.text(one[4]) if one[0] == op.INVOKE else ""
        if not method:
            return None
        if function.is_cpp:
            return self.facts.cpp_models.calls.get(f"at::Tensor::{method}") if self._has_tensors(function.unit) else None
        if not self._libraries[function, one] and (meant := self._imported(function, one[3], method)):
            return meant[0]  # the steps of the facts ran out
        rows = self._methods.get(method, ()) or self._rows_with(method, names_given(function, one))
        if rows and self._is_device(function, one[3]):
            rows = [row for row in rows if any(self._is_of_device(name) for name in row.names)]
        return next((row for row in rows if self.rounds.is_used_near(function.unit, row.names[0].partition(".")[0])), None)

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
        found: dict[str, list[Row]] = defaultdict(list)
        for name, row in self.facts.models.calls.items():
            owner, _, last = name.rpartition(".")
            if last in LANGUAGE_MEMBERS and self.facts.models.type_named(owner) is not None:
                found[last].append(row)
        return found

    def _has_tensors(self, unit: Unit) -> bool:
        """C++: whether a file includes PyTorch."""
        return any(include.partition("/")[0] in _TENSOR_HEADERS for include in unit.ir.includes)

    def of_method(self, function: Function, one: Instruction, kind: str) -> Iterator[Action]:
        """What a method call does on a receiver of a library's type."""
        row = self.facts.models.method(kind, function.text(one[4]))
        effect = EFFECTS.get(row.effect) if row is not None else None
        if row is not None and effect is not None:
            yield from effect(ModelledCall(self.facts, function, LibraryCall(one, row, row.names[0], None), row))

    # --- where calls are

    def sites(
        self, effects: Collection[str], key: str = "", where: RowTest = ANY_ROW, among: Collection[Unit] | None = None
    ) -> Iterator[ModelledCall]:
        """The calls of the program whose rows have one of some effects, in the order of files and instructions.

        With the key of a switch only those that may set it: by the row, by its default, or by an argument; ``where`` tells the
        rows that count. Files that name none of these functions are not lowered. ``among``: only of these files.
        """
        for function, one in self.candidates(effects, key, where, among):
            yield from (call for call in self.modelled(function, one) if call.row.effect in effects and where(call.row))

    def candidates(
        self, effects: Collection[str], key: str = "", where: RowTest = ANY_ROW, among: Collection[Unit] | None = None
    ) -> Iterator[tuple[Function, Instruction]]:
        """The calls that have the name of such a function, whatever they call: what they rest on is not solved yet."""
        tables = {is_cpp: self._wanted(effects, key, where, is_cpp) for is_cpp in (False, True)}
        named = (unit for names in tables.values() for name in names for unit in self.facts.program.mentioning(name))
        units = {unit.number: unit for unit in named if among is None or unit in among}
        for _, unit in sorted(units.items()):
            yield from self._candidates_in(unit, tables[unit.is_cpp], key)

    def _candidates_in(self, unit: Unit, wanted: dict[str, list[Row]], key: str) -> Iterator[tuple[Function, Instruction]]:
        calls = self._calls_of(unit)
        others = {other: wanted[name] for other, name in self._renamed(unit, wanted).items() if name in wanted}
        found: dict[int, tuple[Function, Instruction]] = {}
        for name, rows in (*others.items(), *wanted.items()):
            for place, function, one, is_prepared in calls.get(name, ()):
                if one[0] == op.CONSTRUCT and key:
                    continue
                if is_prepared or any(_may_set(function, one, row, key) for row in rows):
                    found[place] = function, one
        yield from (found[place] for place in sorted(found))

    def copies(self) -> Iterator[tuple[ModelledCall, Copied]]:
        """The copies of the files in question that may be asynchronous, each with its call."""
        for call in self.sites({"copy", "transfer"}, "asynchronous", among=self.asked):
            for action in self.of(call.function, call.instruction):
                if isinstance(action, Copied) and action.call == call.call:
                    yield call, action

    def _calls_of(self, unit: Unit) -> dict[str, list[tuple[int, Function, Instruction, bool]]]:
        """The calls of a file by the last parts of the names that they call, in their order; and those of what was prepared."""
        found = self._calls.get(unit)
        if found is None:
            found = self._calls[unit] = defaultdict(list)
            calls = ((function, one) for function in unit.functions for one in function.code.instructions() if one[0] in _NAMED)
            for place, (function, one) in enumerate(calls):
                found[last_name(function, one)].append((place, function, one, False))
                if prepared := prepared_name(function, one):
                    found[prepared].append((place, function, one, True))
        return found

    def _wanted(self, effects: Collection[str], key: str, where: RowTest, is_cpp: bool) -> dict[str, list[Row]]:
        """By the last parts of their names: the rows of a language's functions with some effects that may set a switch."""
        found: dict[str, list[Row]] = defaultdict(list)
        models: Models = self.facts.cpp_models if is_cpp else self.facts.models
        for effect in sorted(effects):
            for name, row in models.with_effect(effect):
                if (not key or row.get(key) not in (None, False)) and where(row):
                    found[name].append(row)
        return dict(found)

    def names(self, effects: Collection[str], where: RowTest = ANY_ROW) -> frozenset[str]:
        """The last parts of the names of functions with some effects."""
        key = (frozenset(effects), where)
        found = self._names.get(key)
        if found is None:
            found = self._names[key] = frozenset(name for is_cpp in (False, True) for name in self._wanted(effects, "", where, is_cpp))
        return found

    def _renamed(self, unit: Unit, names: Iterable[str]) -> dict[str, str]:
        """Other names that a file has for functions that it imports."""
        found: dict[str, str] = {}
        for name in names:
            for function, one in unit.taken.get(name, ()):
                found.update((function.text(use[2]), name) for use in function.uses[one[2]] if use[0] == op.SET_NAME)
        return found

    # --- values

    def values(self, function: Function, register: int) -> tuple[Object, ...]:
        """What a register may hold: what is known now, whatever further questions bring."""
        return tuple(self.facts.values(function, register).values) if register >= 0 else ()

    def is_tensor(self, function: Function, register: int, depth: int = 2) -> bool:
        """Whether a register holds a tensor or an array, or the result of a call that gives some: here or in a caller."""
        if any(isinstance(value, Memory) for value in self.values(function, register)):
            return True
        one = function.definitions[register]
        while one is not None and one[0] in (op.UNPACK, op.ITEM):
            one = function.definitions[one[3]]
        if one is not None and one[0] == op.PARAM and depth:
            places = self.facts.call_places(function)
            given = ((caller, operand_of(caller, call, function, one[3])) for caller, call in places if call[0] in (op.CALL, op.INVOKE))
            return any(each is not None and each >= 0 and self.is_tensor(caller, each, depth - 1) for caller, each in given)
        if one is None or one[0] not in (op.CALL, op.INVOKE):
            return False
        return any(call.row.effect == "compute" and call.row.get("type") for call in self.modelled(function, one))

    @cached_property
    def view_names(self) -> frozenset[str]:
        """Names of attributes that are the same memory."""
        rows = {**self.facts.models.attributes, **self.facts.cpp_models.attributes}
        return frozenset(name.rpartition(".")[2] for name, row in rows.items() if row.effect in ("view", "same"))

    @cached_property
    def _parts(self) -> frozenset[str]:
        """Names of parts of tuples."""
        return frozenset(name for kind in self.facts.models.types.values() if kind.base for name in kind.fields)

    def is_part(self, function: Function, one: Instruction) -> bool:
        """Whether an attribute is a part of a tuple of buffers: ``x.topk(k).values``."""
        name = function.text(one[4])
        held = self.values(function, one[3]) if name in self._parts and not function.is_cpp else ()
        return any(isinstance(value, Memory) and self.facts.models.part_type(value.type, name) is not None for value in held)

    @cached_property
    def _asking(self) -> frozenset[str]:
        """Names of attributes that say whether work is done."""
        return frozenset(name.rpartition(".")[2] for name, row in self.facts.models.attributes.items() if row.effect == "query")

    def _asked(self, function: Function, one: Instruction) -> Iterator[Action]:
        """``event.done``."""
        types = {value.type for value in self.values(function, one[3]) if isinstance(value, LibraryObject)}
        rows = (self.facts.models.member(kind, function.text(one[4])) for kind in sorted(types))
        if any(row is not None and row.effect == "query" for row in rows):
            yield Asked(one[3])

    @cached_property
    def replacing(self) -> frozenset[str]:
        """The names of attributes of which an assignment gives a buffer other memory."""
        return replacing(self.facts.models)

    @cached_property
    def shows(self) -> dict[str, str]:
        """By their names: attributes that hold exactly where the memory is on the host, or on a device."""
        rows = self.facts.models.attributes.items()
        return {name.rpartition(".")[2]: str(row.get("shows")) for name, row in rows if row.get("shows")}

    def shared(self, function: Function, register: int) -> list[int]:
        """A register, and those of which it is a view."""
        found = [register]
        for each in found:
            one = function.definitions[each] if each >= 0 else None
            for action in self.of(function, one) if one is not None else ():
                if isinstance(action, Viewed) and action.register not in found and self.shares(function, one, action.register):
                    found.append(action.register)
        return found

    def shares(self, function: Function, one: Instruction | None, register: int) -> bool:
        """Whether what an instruction gives is memory that a register holds: no copy of it, and no element of a container."""
        if one is None or any(isinstance(action, Copied) and action.target == one[2] for action in self.of(function, one)):
            return False
        return one[0] != op.ITEM or any(isinstance(value, Memory) for value in self.values(function, register))


_FINDERS: dict[int, Callable[[Transfer, Function, Instruction], Iterator[Action]]] = {
    **dict.fromkeys(language.OPERATORS, Transfer._operator),
    **dict.fromkeys(language.ELEMENTS, Transfer._element),
    op.ATTR: Transfer._attribute,
    op.SET_ATTR: Transfer._attribute_store,
    **dict.fromkeys((op.LOAD, op.NAME), Transfer._variable),
    op.ITER: Transfer._iteration,
    op.CONSTRUCT: Transfer._construction,
    op.EXIT: Transfer._end_of_scope,
}
"""By opcode: what finds the actions of an instruction, beside those of a call."""


def _kind_of(receiver: Object | None) -> object:
    """What tells calls of one method apart by the object: what they do to memory is asked of its register, whatever that may hold."""
    return Memory if isinstance(receiver, Memory) else receiver


def _is_container(value: Object) -> bool:
    """C++: whether an object is a container of the standard library: made of another one, it copies the elements."""
    return isinstance(value, Elements) or (isinstance(value, Memory) and value.type.startswith("std::"))


def _may_set(function: Function, one: Instruction, row: Row, key: str) -> bool:
    """Whether a call may set a switch of a row: the row or a default does, or an argument stands where the switch is."""
    held = row.get(key) if key else True
    if isinstance(held, bool) or held is None:
        return bool(held)
    selectors = [each for each in (held if isinstance(held, tuple) else (held,)) if isinstance(each, Selector)]
    last = selectors[-1]
    if (last.default in ("true", "own")) != last.negated:
        return True
    given = argument_registers(function, one)
    if any(kind in (1, 2) for kind, _ in given):
        return True
    by_position = sum(kind is None for kind, _ in given)
    return any(
        (each.position is not None and each.position < by_position) or any(kind == each.keyword for kind, _ in given if kind is not None)
        for each in selectors
    )


def names_given(function: Function, one: Instruction) -> frozenset[str]:
    """The names under which a call gives arguments."""
    return frozenset(kind for kind, _ in argument_registers(function, one) if isinstance(kind, str))


def _keywords(row: Row) -> frozenset[str]:
    """The names of the arguments that a row knows."""
    held = (each for value in row.values.values() for each in (value if isinstance(value, tuple) else (value,)))
    return frozenset(each.keyword for each in held if isinstance(each, Selector) and each.keyword is not None)
