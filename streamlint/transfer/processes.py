"""What a program runs in other processes and threads, and how processes are started."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import (
    BoundMethod,
    Constant,
    FunctionObject,
    Instance,
    LibraryObject,
    Object,
    given_in_view,
    without_partials,
)
from streamlint.facts.files.program import Unit
from streamlint.facts.graph.call_graph import Edge
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import argument_registers
from streamlint.waits.tested import is_of_other

FORK, DEFAULT, SPAWN = "fork", "default", "spawn"
_CONTEXT = "multiprocessing.context.BaseContext"
_DEEPEST = 6
"""Objects within one another that a callable is looked for in."""
_MOST_CALLS = 12
"""Calls behind one another."""


class Processes:
    """The functions that processes, workers and threads of a program run."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts

    # --- how processes are started

    def method_set(self, unit: Unit) -> str:
        """The start method that a file's program sets for all its processes: the files that imports connect are one program."""
        return SPAWN if self.facts.program.group(unit) in self._spawning else DEFAULT

    @cached_property
    def _spawning(self) -> frozenset[Unit]:
        """The groups of files that set another start method than fork."""
        found = set()
        for call in self.transfer.sites(frozenset({"setting"})):
            register = call.one("value")
            if call.row.get("what") == "start-method" and register is not None:
                said = {value.value for value in call.values(register) if isinstance(value, Constant)}
                if said != {FORK}:
                    found.add(self.facts.program.group(call.function.unit))
        return frozenset(found)

    def method_of(self, function: Function, register: int | None) -> str:
        """How processes are started that a register chooses: a context, or the name of a method. ``spawn`` where that is not known."""
        if register is None:
            return self.method_set(function.unit)
        said: set[str] = set()
        node = self.facts.values(function, register)
        for value in given_in_view(node.values):
            if isinstance(value, Constant):
                said.add(str(value.value) if value.value is not None else self.method_set(function.unit))
            elif isinstance(value, LibraryObject) and value.type == _CONTEXT:
                said |= {
                    self._chosen(site.function, site.instruction)
                    for site in node.trace(value)
                    if self._makes_context(site.function, site.instruction)
                }
            else:
                said.add("")
        return said.pop() if len(said) == 1 and said <= {FORK, DEFAULT} else SPAWN

    def _makes_context(self, function: Function, one: Instruction) -> bool:
        if one[0] not in (op.CALL, op.INVOKE):
            return False
        return any(call.row.get("type") == _CONTEXT for call in self.transfer.modelled(function, one))

    def _chosen(self, function: Function, one: Instruction) -> str:
        given = argument_registers(function, one)
        values = self.transfer.values(function, given[0][1]) if given else ()
        said = {str(value.value) for value in values if isinstance(value, Constant)}
        return said.pop() if len(said) == 1 else "" if given else self.method_set(function.unit)

    # --- what is passed

    def callables(self, function: Function, register: int, methods: tuple[str, ...] = ("__call__",), depth: int = 0) -> Iterator[Function]:
        """The functions that a value stands for: itself, methods of an object, and those that objects of libraries are made of."""
        node = self.facts.values(function, register)
        for value in list(node.values):
            yield from self._of_value(value, methods)
            if isinstance(value, LibraryObject) and depth < _DEEPEST:
                for site in node.trace(value):
                    if site.instruction[0] in (op.CALL, op.INVOKE) and self._is_made(site.function, site.instruction, value):
                        for given in self._held(site.function, site.instruction):
                            yield from self.callables(site.function, given, methods, depth + 1)
        one = function.definitions[register]
        if one is not None and one[0] in (op.UNPACK, op.ITEM) and depth < _DEEPEST:
            yield from self._of_parts(function, one[3], methods, depth + 1)

    def _of_value(self, value: Object, methods: tuple[str, ...]) -> Iterator[Function]:
        value = without_partials(value)
        if isinstance(value, FunctionObject):
            yield value.function
        elif isinstance(value, BoundMethod):
            yield value.method.function
        elif isinstance(value, Instance):
            found = [held for name in methods if (held := self.facts.hierarchy.lookup(value.definition, name)) is not None]
            if not found and "__call__" in methods:
                libraries = self.facts.hierarchy.libraries(value.definition)
                names = dict.fromkeys(self.facts.forwarded(library) for library in libraries)
                found = [held for name in names if name and (held := self.facts.hierarchy.lookup(value.definition, name)) is not None]
            for _, functions in found:
                yield from functions

    def _of_parts(self, function: Function, register: int, methods: tuple[str, ...], depth: int) -> Iterator[Function]:
        """A part of what a library divides: ``random_split``."""
        one = function.definitions[register]
        if (
            one is not None
            and one[0] in (op.CALL, op.INVOKE)
            and any(c.row.effect == "split" for c in self.transfer.modelled(function, one))
        ):
            for _, given in argument_registers(function, one)[:1]:
                yield from self.callables(function, given, methods, depth)

    def _is_made(self, function: Function, one: Instruction, value: LibraryObject) -> bool:
        calls: list[ModelledCall] = list(self.transfer.modelled(function, one))
        return any(call.row.get("type") == value.type or value.type in call.row.names for call in calls)

    def _held(self, function: Function, one: Instruction) -> Iterator[int]:
        """The registers of what a call is given, and of what lists among them hold."""
        for _, register in argument_registers(function, one):
            yield register
            built = function.definitions[register]
            if built is not None and built[0] == op.BUILD:
                yield from built[4:]

    def reached(self, roots: Iterator[Function] | list[Function]) -> Iterator[tuple[Function, tuple[tuple[Function, Instruction], ...]]]:
        """The functions that run as a part of others, each with the calls that lead to it."""
        waiting = [(root, ()) for root in dict.fromkeys(roots)]
        seen = {root for root, _ in waiting}
        found: list[tuple[Function, tuple[tuple[Function, Instruction], ...]]] = list(waiting)
        for function, calls in found:
            yield function, calls
            if len(calls) >= _MOST_CALLS:
                continue
            for edge in self.transfer.graph.calls(function).edges:
                if edge.is_followed and edge.callee not in seen and not self._is_of_other(function, edge):
                    seen.add(edge.callee)
                    found.append((edge.callee, (*calls, (function, edge.instruction))))

    def _is_of_other(self, function: Function, edge: Edge) -> bool:
        """Whether a method is called of what a branch has found to be of a library's type: it is that one's."""
        one, owner = edge.instruction, edge.callee.owner
        return one[0] == op.INVOKE and owner is not None and is_of_other(self.facts, function, one, one[3], owner)
