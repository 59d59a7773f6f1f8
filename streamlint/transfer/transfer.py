"""Finds what instructions do: the entry to this package. An instruction is looked at when somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import element_given, last_name, only_source
from streamlint.facts.code.keyword_stores import attributes_of
from streamlint.facts.code.objects import Elements, External, LibraryObject, Memory, Object, Site
from streamlint.facts.files.program import Unit
from streamlint.facts.graph.call_graph import CallGraph, LibraryCall
from streamlint.facts.values.language import MAKING_CONTAINERS, MAKING_ITERATORS
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Models
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
from streamlint.transfer.call_sites import CallSites
from streamlint.transfer.calls import CALLING
from streamlint.transfer.context_stacks import ContextStacks
from streamlint.transfer.members import calls_member_of_others, member
from streamlint.transfer.modelled import DeferredCall, ModelledCall, operands_of
from streamlint.transfer.replaced import replaced, replacing
from streamlint.waits import indices
from streamlint.waits.operands import operand_of
from streamlint.waits.tested import is_of_host

__all__ = ["CALLING", "EFFECTS", "Order", "Transfer"]

Effect = Callable[[ModelledCall], Iterator[Action]]
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


_OF_LANGUAGE = ("builtins.", "elements::")
_OF_PYTHON = frozenset({"next", "iter", "enumerate", "zip", "reversed", "range", "slice", "super", *MAKING_CONTAINERS, *MAKING_ITERATORS})


class Order(NamedTuple):
    """What orders a pending operation: the operation, the instruction behind which it has ended, and where its stream was made."""

    operation: Site
    by: Site
    action: Action
    stream: frozenset[Site]


class Transfer(CallSites):
    """The actions of instructions, and the calls that they make."""

    keeps_gil = False
    """Whether the GIL is taken for held where it is let go: to explain why nothing is reported."""

    def __init__(self, graph: CallGraph) -> None:
        super().__init__(graph)
        self._actions: dict[tuple[Function, Instruction], tuple[Action, ...]] = {}
        self._works: dict[tuple[Function, Instruction], tuple[work.Worked, ...]] = {}
        self.stacks = ContextStacks(self.facts, self.modelled)
        self.asked: frozenset[Unit] | None = None
        """The files whose copies and other work are looked at, where not all are: what they meet is looked for in the whole program."""
        self.passed: list[Order] | None = None
        """The orders that walks have passed over: only where silence is explained, else they end there."""

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
            made = list(kernel_texts.launched(self.facts, self.libraries, function, one))
            if not made:
                made += work.works(self.facts, function, one, calls, actions)
                made += (*modules.moved(calls), *work.reordered(calls, self.modelled))
            if one[0] == op.CALL and not made:
                made += numba_kernels.launched(self.facts, self.libraries, function, one)
            if not made and any(isinstance(action, Lost) for action in actions) and not self._is_in_view(function, one):
                named = list(self._by_method(function, one))
                made = list(work.works(self.facts, function, one, named, ())) if named else [self._called(function, one)]
            made += training.trained(self.rounds, self.works, function, one, calls)
            found = self._works[key] = tuple(made)
        return found

    def _is_in_view(self, function: Function, one: Instruction) -> bool:
        """Whether a call runs an object of the program for sure."""
        return one[0] == op.CALL and any(edge.is_direct for edge in self.edges(function, one))

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

    def _find(self, function: Function, one: Instruction) -> Iterator[Action]:
        finder = _FINDERS.get(one[0])
        if finder is not None:
            yield from finder(self, function, one)
        if one[0] in CALLING:
            yield from self._of_call(function, one)
        if one[0] in _ENDING and not function.is_cpp:
            yield from self._of_threads(function, one)

    def _of_threads(self, function: Function, one: Instruction) -> Iterator[Action]:
        """What the threads have waited for, of a function of a library that they run, for whose end an instruction waits."""
        handing = self.facts.program.handing
        for start in self.graph.joining.ended(function, one) if handing is not None else ():
            bound = handing.of(function, start) if handing is not None else None
            values = self.values(function, bound.callee) if bound is not None and bound.callee >= 0 else ()
            for value in (each for each in values if isinstance(each, External)):
                row = self.facts.row_of(value)
                if row is not None and bound is not None and row.effect == "synchronize":
                    yield from order.synchronize(
                        DeferredCall(self.facts, function, LibraryCall(start, row, value.name, value.receiver), row, bound)
                    )

    def _operator(self, function: Function, one: Instruction) -> Iterator[Action]:
        return language.operator(function, one, work.tensors_in(self.facts, function, one))

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
        if one == element_given(function):
            return
        if function.is_cpp and one[0] == op.DEREF:
            yield from self._behind_reference(function, one)
        if one[0] == op.ITEM and indices.is_gathered(self.facts, function, one):
            yield from (Read(register, "indexing", False) for register in (one[3], *indices.parts_of(function, one[4])))
        else:
            yield from language.element(function, one, self.values, self.is_tensor)
        if function.is_cpp and one[0] == op.ITEM:
            yield Read(one[2], "element", False, False, (VARIABLE,))
        elif one[0] == op.ITEM and indices.is_masked(self.facts, function, one[4]) and self.is_tensor(function, one[3]):
            yield Read(one[3], MASKING)

    def _behind_reference(self, function: Function, one: Instruction) -> Iterator[Action]:
        """C++: what is read of an element to which a method gives back a reference, where its value is used."""
        if one[0] in CALLING:
            entered: Iterable[Function] = (edge.callee for edge in self.edges(function, one) if edge.is_followed)
        else:
            entered = self.facts.callee_functions(function, one) if self.facts.program.defines("operator*") else ()
        given = [element_given(callee) for callee in entered]
        if given and None not in given and any(use[0] in _VALUED for use in function.uses[one[2]]):
            yield Read(one[2], "indexing", False)

    def _construction(self, function: Function, one: Instruction) -> Iterator[Action]:
        made = self.values(function, one[2])
        if any(map(_is_container, made)):
            keeps = any(isinstance(value, Elements) for value in made)  # pointers are elements then, not a range
            kept = [each for each in one[5:] if keeps and language.is_pointer(self.values(function, each))]
            yield from (Read(register, "copying", False) for register in one[5:] if register not in kept)

    def _end_of_scope(self, function: Function, one: Instruction) -> Iterator[Action]:
        if self._is_capture(function, one[3]):
            yield Synchronized(None, "capture")  # what was captured runs when the graph is replayed
        yield from (Synchronized(call.stream(), call.name) for call in self.awaiting(function, one))
        yield from self.stacks.waits(function, one)

    def awaiting(self, function: Function, one: Instruction) -> Iterator[ModelledCall]:
        """The calls that have made a scope at whose end the host waits for a stream, where an instruction is that end."""
        made = function.definitions[one[3]] if one[0] == op.EXIT and one[3] >= 0 else None
        if made is not None and made[0] in (op.CALL, op.INVOKE) and last_name(function, made) in self._awaited:
            yield from (call for call in self.modelled(function, made) if call.row.get("synchronizes"))

    @cached_property
    def _awaited(self) -> frozenset[str]:
        return self.names({"scope"}, lambda row: bool(row.get("synchronizes")))

    def _of_call(self, function: Function, one: Instruction) -> Iterator[Action]:
        if function.is_cpp and one[0] in (op.CALL, op.INVOKE):
            yield Touched(operands_of(function, one))
            yield from self._behind_reference(function, one)
        yield from language.filled(function, one)
        yield from self.stacks.waits(function, one)
        yield from numba_kernels.carried(self.facts, self.libraries, function, one)
        if self.facts.program.declares:
            yield from declared_waits.waited(self.facts, function, one, self.edges(function, one))
        modelled = list(self.modelled(function, one))
        for call in modelled:
            effect = EFFECTS.get(call.row.effect)
            if effect is not None and not (call.row.effect == "block" and self.graph.joining.is_end(function, one)):
                yield from (self._placed(function, action) for action in effect(call))
        if self._is_inside(function, one):
            if not modelled:
                yield Viewed(one[3])
        elif self._is_lost(function, one, modelled):
            is_given = one[0] != op.INVOKE or not calls_member_of_others(self.facts, function, one)
            yield Lost(operands_of(function, one, is_given), self._method_of(function, one))
            yield from self._given_back(function, one)

    def _method_of(self, function: Function, one: Instruction) -> str:
        """The name of the method that a call calls; empty for a function, be it one of a module."""
        is_method = one[0] == op.INVOKE and all(call.receiver is not None for call in self.libraries(function, one))
        return function.text(one[4]) if is_method else ""

    def _placed(self, function: Function, action: Action) -> Action:
        """A copy from what nobody knows starts on the host if that was taken there just before."""
        if isinstance(action, Copied) and action.direction == "host<unknown" and self.is_fetched(function, action.source):
            return action._replace(direction="h2h")
        return action

    def is_fetched(self, function: Function, register: int) -> bool:
        """Whether a register holds, or views, what a call took to the host, whatever it was before."""
        for each in self.shared(function, register):
            made = function.definitions[each] if each >= 0 else None
            actions = self.of(function, made) if made is not None and made[0] in CALLING else ()
            taken = {action.direction for action in actions if isinstance(action, Copied) and action.target == each}
            if taken == {"d2h"}:
                return True
        return False

    def _given_back(self, function: Function, one: Instruction) -> Iterator[Action]:
        """What a method of a value of which nothing is known gives back of it, if it is one that tensors have."""
        for call in self._by_method(function, one):
            effect = EFFECTS.get(call.row.effect)
            yield from (action for action in effect(call) if isinstance(action, Viewed)) if effect is not None else ()

    def _is_inside(self, function: Function, one: Instruction) -> bool:
        """C++: whether a method of a container or smart pointer leads to its memory."""
        if not function.is_cpp or one[0] != op.INVOKE or len(one) > 6 or function.text(one[4]) not in function.known("leads-to-memory"):
            return False
        return not any(edge.is_followed for edge in self.edges(function, one))

    def _is_lost(self, function: Function, one: Instruction, modelled: Collection[ModelledCall]) -> bool:
        """Whether unknown code may run: a function of a library without a row, a value of which nothing is known."""
        if one[0] == op.INVOKE and (function.text(one[4]) in language.OF_RECORDS or attributes_of(function, one[3]) != op.NONE):
            return False
        edges = self.edges(function, one)
        if any(edge.is_guess or edge.is_higher_order for edge in edges):
            return True
        if any(edge.is_followed for edge in edges):
            return False
        libraries = self.libraries(function, one)
        if self.is_of_language(function, one):
            return False
        return any(call.row is None for call in libraries) or (not modelled and self._is_unknown(function, one))

    def is_of_language(self, function: Function, one: Instruction) -> bool:
        """Whether a call is one of the language itself, which puts no work on a device: also of the type that a value is found to have."""
        made = function.definitions[one[3]] if one[0] == op.CALL and one[3] >= 0 and not function.is_cpp else None
        held = function.definitions[one[3]] if one[0] == op.INVOKE and one[3] >= 0 and not function.is_cpp else None
        if held is not None and held[0] == op.ATTR and function.text(held[4]) == "__dict__":
            return True
        if made is not None and made[0] == op.CALL and len(made) == 6 and function.dotted(made[3]) == "type":
            return True
        plain = self.facts.models.marked("binds-arguments") | self.facts.models.marked("passes-objects")
        return any(
            call.name.startswith(_OF_LANGUAGE) or call.name in _OF_PYTHON or not plain.isdisjoint((call.name, call.name.partition(".")[0]))
            for call in self.libraries(function, one)
        )

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

    def of_method(self, function: Function, one: Instruction, kind: str) -> Iterator[Action]:
        """What a method call does on a receiver of a library's type."""
        row = self.facts.models.method(kind, function.text(one[4]))
        effect = EFFECTS.get(row.effect) if row is not None else None
        if row is not None and effect is not None:
            yield from effect(ModelledCall(self.facts, function, LibraryCall(one, row, row.names[0], None), row))

    def copies(self) -> Iterator[tuple[ModelledCall, Copied]]:
        """The copies of the files in question that may be asynchronous, each with its call."""
        for call in self.sites({"copy", "transfer"}, "asynchronous", among=self.asked):
            for action in self.of(call.function, call.instruction):
                if isinstance(action, Copied) and action.call == call.call:
                    yield call, action
        for function, one in self.configured:
            for action in self.of(function, one) if self.asked is None or function.unit in self.asked else ():
                if isinstance(action, Copied) and action.call.row is not None:
                    yield ModelledCall(self.facts, function, action.call, action.call.row), action

    @cached_property
    def configured(self) -> list[tuple[Function, Instruction]]:
        """The calls that may launch a kernel of numba on a stream of their own."""
        units = (unit for unit in self.facts.program.mentioning("numba") if not unit.is_cpp)
        calls = ((function, one) for unit in units for function in unit.functions for one in function.by_opcode[op.CALL])
        return [call for call in calls if (launch := numba_kernels.configured(*call)) is not None and len(launch[1]) > 2]

    # --- values

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
        return self.facts.models.attributes_with("view", "same") | self.facts.cpp_models.attributes_with("view", "same")

    @cached_property
    def _parts(self) -> frozenset[str]:
        """Names of parts of tuples."""
        return self.facts.models.gathered(_parts)

    def is_part(self, function: Function, one: Instruction) -> bool:
        """Whether an attribute is a part of a tuple of buffers: ``x.topk(k).values``."""
        name = function.text(one[4])
        held = self.values(function, one[3]) if name in self._parts and not function.is_cpp else ()
        return any(isinstance(value, Memory) and self.facts.models.part_type(value.type, name) is not None for value in held)

    @cached_property
    def _asking(self) -> frozenset[str]:
        """Names of attributes that say whether work is done."""
        return self.facts.models.attributes_with("query")

    def _asked(self, function: Function, one: Instruction) -> Iterator[Action]:
        """``event.done``."""
        types = {value.type for value in self.values(function, one[3]) if isinstance(value, LibraryObject)}
        rows = (self.facts.models.member(kind, function.text(one[4])) for kind in sorted(types))
        if any(row is not None and row.effect == "query" for row in rows):
            yield Asked(one[3])

    @cached_property
    def replacing(self) -> frozenset[str]:
        """The names of attributes of which an assignment gives a buffer other memory."""
        return self.facts.models.gathered(replacing)

    @cached_property
    def shows(self) -> dict[str, str]:
        """By their names: attributes that hold exactly where the memory is on the host, or on a device."""
        return self.facts.models.gathered(_showing)

    def shared(self, function: Function, register: int) -> list[int]:
        """A register, and those of which it is a view. C++: what the rounds of a loop hand to calls by reference stays what it was."""
        found = [register]
        for each in found:
            one = function.definitions[each] if each >= 0 else None
            if function.is_cpp and one is not None and one[0] == op.PHI and (root := only_source(function, each)) not in found:
                found.append(root)
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
_VALUED = frozenset({op.COPY, op.CAST, op.BINARY, op.COMPARE, op.UNARY, op.BRANCH, op.RETURN, op.STORE, op.SET_ATTR, op.PHI})
"""C++: what uses the value of what a reference leads to."""
_ENDING = frozenset({op.AWAIT, op.EXIT, op.INVOKE})
"""The opcodes of what may wait for threads."""


def _is_container(value: Object) -> bool:
    """C++: whether an object is a container of the standard library: made of another one, it copies the elements."""
    return isinstance(value, Elements) or (isinstance(value, Memory) and value.type.startswith("std::"))


def _parts(models: Models) -> frozenset[str]:
    return frozenset(name for kind in models.types.values() if kind.base for name in kind.fields)


def _showing(models: Models) -> dict[str, str]:
    return {name.rpartition(".")[2]: str(row.get("shows")) for name, row in models.attributes.items() if row.get("shows")}
