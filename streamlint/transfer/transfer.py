"""Finds what instructions do: the entry to this package. An instruction is looked at when somebody asks for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property

from streamlint.facts.call_graph import CallGraph, Edge, LibraryCall
from streamlint.facts.functions import Function
from streamlint.facts.members import LANGUAGE_MEMBERS
from streamlint.facts.objects import Memory, Object
from streamlint.facts.program import Unit
from streamlint.facts.rounds import Rounds
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Models, Row
from streamlint.transfer import copies, language, memory, order, work
from streamlint.transfer.actions import Action, Lost, Viewed
from streamlint.transfer.modelled import ModelledCall, operands_of

Effect = Callable[[ModelledCall], Iterator[Action]]
EFFECTS: dict[str, Effect] = {**copies.EFFECTS, **order.EFFECTS, **memory.EFFECTS, **work.EFFECTS}
"""By the effect of a row: the function that gives its actions."""
CALLING = frozenset({op.CALL, op.INVOKE, op.CONSTRUCT, op.NEW, op.LAUNCH, op.ENTER, op.NEXT})
_ARRAYS = (("torch", "torch.Tensor"), ("cupy", "cupy.ndarray"))


class Transfer:
    """The actions of instructions, and the calls that they make."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.facts = graph.facts
        self.rounds = Rounds(graph)
        self._actions: dict[tuple[Function, Instruction], tuple[Action, ...]] = {}
        self._works: dict[tuple[Function, Instruction], tuple[work.Worked, ...]] = {}
        self._libraries: dict[tuple[Function, Instruction], tuple[LibraryCall, ...]] = {}
        self._edges: dict[tuple[Function, Instruction], tuple[Edge, ...]] = {}
        self._unknown: set[tuple[Function, Instruction]] = set()

    def of(self, function: Function, one: Instruction) -> tuple[Action, ...]:
        """What an instruction does."""
        key = (function, one)
        found = self._actions.get(key)
        if found is None:
            found = self._actions[key] = tuple(self._find(function, one))
        return found

    def works(self, function: Function, one: Instruction) -> tuple[work.Worked, ...]:
        """The work on devices that an instruction queues."""
        key = (function, one)
        found = self._works.get(key)
        if found is None:
            actions = self.of(function, one)
            calls = self.modelled(function, one) if one[0] in CALLING else ()
            made = list(work.works(self.facts, function, one, calls, actions))
            if not made and any(isinstance(action, Lost) for action in actions):
                named = list(self._by_method(function, one))
                made = [work.out_of_view(function, one)] if not named else list(work.works(self.facts, function, one, named, ()))
            found = self._works[key] = tuple(made)
        return found

    def _by_method(self, function: Function, one: Instruction) -> Iterator[ModelledCall]:
        """The method that tensors have, of a value of which nothing is known, in a file that uses them."""
        if one[0] != op.INVOKE or function.is_cpp:
            return
        for library, kind in _ARRAYS:
            row = self.facts.models.method(kind, function.text(one[4]))
            if row is not None and row.names[0].endswith("*") and not self.is_tensor(function, one[3]):
                continue  # any method of a tensor, but this may be none
            if row is not None and self.rounds.is_used_near(function.unit, library):
                yield ModelledCall(self.facts, function, LibraryCall(one, row, row.names[0], None), row)
                return

    def all_of(self, function: Function) -> Iterator[tuple[Instruction, Action]]:
        """What all instructions of a function do."""
        for one in function.code.instructions():
            yield from ((one, action) for action in self.of(function, one))

    def edges(self, function: Function, one: Instruction) -> tuple[Edge, ...]:
        """The functions of the program that an instruction enters."""
        self._resolve(function, one)
        return self._edges[function, one]

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
            yield ModelledCall(self.facts, function, LibraryCall(one, row, row.names[0], None), row)

    def _resolve(self, function: Function, one: Instruction) -> None:
        key = (function, one)
        if key in self._edges:
            return
        if one[0] not in CALLING:
            self._edges[key], self._libraries[key] = (), ()
            return
        calls = self.graph.calls_at(function, [one])
        self._edges[key] = calls.edges
        self._libraries[key] = calls.libraries
        if calls.unknown and not any(edge.is_followed for edge in calls.edges):
            self._unknown.add(key)

    def _find(self, function: Function, one: Instruction) -> Iterator[Action]:
        opcode = one[0]
        if opcode in language.OPERATORS:
            yield from language.operator(function, one)
        elif opcode == op.ATTR:
            if function.text(one[4]) in self._views:
                yield Viewed(one[3])
        if opcode in language.ELEMENTS:
            yield from language.element(function, one, self.values, self.is_tensor)
        if opcode not in CALLING:
            return
        yield from language.language_call(function, one)
        modelled = list(self.modelled(function, one))
        for call in modelled:
            effect = EFFECTS.get(call.row.effect)
            if effect is not None:
                yield from effect(call)
        is_entered = any(edge.is_followed and not edge.is_handed for edge in self.edges(function, one))
        is_lost = any(call.row is None for call in self.libraries(function, one)) and not is_entered
        is_lost |= (function, one) in self._unknown and not modelled
        if is_lost or any(edge.is_guess or edge.is_handed for edge in self.edges(function, one)):
            yield Lost(operands_of(function, one), function.text(one[4]) if opcode == op.INVOKE else "")

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
        """The row of a method as a library near has it, if no class of the program has one of the name."""
        method = function.text(one[4]) if one[0] == op.INVOKE else ""
        if function.is_cpp or any(method in unit.methods for unit in self.facts.program.mentioning(method)):
            return None
        rows = self._methods.get(method, ())
        return next((row for row in rows if self.rounds.is_used_near(function.unit, row.names[0].partition(".")[0])), None)

    def of_method(self, function: Function, one: Instruction, kind: str) -> Iterator[Action]:
        """What a method call does on a receiver of a library's type."""
        row = self.facts.models.method(kind, function.text(one[4]))
        effect = EFFECTS.get(row.effect) if row is not None else None
        if row is not None and effect is not None:
            yield from effect(ModelledCall(self.facts, function, LibraryCall(one, row, row.names[0], None), row))

    # --- where calls are

    def sites(self, effects: Collection[str]) -> Iterator[ModelledCall]:
        """The calls of the program whose rows have one of some effects, in the order of files and instructions.

        Files that name none of these functions are not lowered.
        """
        names = self.names(effects)
        units = {unit.number: unit for name in names for unit in self.facts.program.mentioning(name)}
        for _, unit in sorted(units.items()):
            wanted = names | self._renamed(unit, names)
            for function in unit.functions:
                for one in self._calling(function, wanted):
                    yield from (call for call in self.modelled(function, one) if call.row.effect in effects)

    def names(self, effects: Collection[str]) -> frozenset[str]:
        """The last parts of the names of functions with some effects."""
        found: set[str] = set()
        tables: tuple[Models, ...] = (self.facts.models, self.facts.cpp_models)
        for models in tables:
            for name, row in models.calls.items():
                if row.effect in effects:
                    found.add(name.replace("::", ".").rpartition(".")[2])
        return frozenset(found)

    def _renamed(self, unit: Unit, names: frozenset[str]) -> frozenset[str]:
        """Other names that a file has for functions that it imports."""
        found: set[str] = set()
        for name in names:
            for function, one in unit.taken.get(name, ()):
                found.update(function.text(use[2]) for use in function.uses[one[2]] if use[0] == op.SET_NAME)
        return frozenset(found)

    def _calling(self, function: Function, names: Collection[str]) -> Iterator[Instruction]:
        for one in function.code.instructions():
            if one[0] in (op.CALL, op.INVOKE) and last_name(function, one) in names:
                yield one

    # --- values

    def values(self, function: Function, register: int) -> Iterable[Object]:
        """What a register may hold."""
        return self.facts.values(function, register).values if register >= 0 else ()

    def is_tensor(self, function: Function, register: int) -> bool:
        """Whether a register holds a tensor or an array, or the result of a call that gives some."""
        if any(isinstance(value, Memory) for value in self.values(function, register)):
            return True
        one = function.definitions[register]
        while one is not None and one[0] in (op.UNPACK, op.ITEM):
            one = function.definitions[one[3]]
        if one is None or one[0] not in (op.CALL, op.INVOKE):
            return False
        return any(call.row.effect == "compute" and call.row.get("type") for call in self.modelled(function, one))

    @cached_property
    def _views(self) -> frozenset[str]:
        """Names of attributes that are the same memory."""
        rows = {**self.facts.models.attributes, **self.facts.cpp_models.attributes}
        return frozenset(name.rpartition(".")[2] for name, row in rows.items() if row.effect in ("view", "same"))

    def shared(self, function: Function, register: int) -> list[int]:
        """A register, and those of which it is a view."""
        found = [register]
        for each in found:
            one = function.definitions[each] if each >= 0 else None
            for action in self.of(function, one) if one is not None else ():
                if isinstance(action, Viewed) and action.register not in found:
                    found.append(action.register)
        return found


def last_name(function: Function, one: Instruction) -> str:
    """The last part of the name of what a call calls."""
    if one[0] == op.INVOKE:
        return function.text(one[4])
    return function.dotted(one[3]).replace("::", ".").rpartition(".")[2]
