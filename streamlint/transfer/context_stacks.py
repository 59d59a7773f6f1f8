"""Waits of the host where Python leaves a stack of contexts (``contextlib.ExitStack``): the ends of the scopes that were entered by it, and
the functions that it was given to call. ``pop_all`` moves them all to a new stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import arguments_of, last_name
from streamlint.facts.code.objects import External, LibraryObject, Site
from streamlint.facts.files.scopes import ExternalName
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.support.memo import memoized
from streamlint.transfer.actions import NAMED, Stream, Synchronized
from streamlint.transfer.modelled import ModelledCall

_DEEPEST = 5
_SAME = {op.COPY: 3, op.ENTER: 3}
Modelled = Callable[[Function, Instruction], Iterable[ModelledCall]]


class ContextStacks:
    """Answers for the stacks of a program."""

    def __init__(self, facts: Facts, modelled: Modelled) -> None:
        self.facts = facts
        self.modelled = modelled

    def waits(self, function: Function, one: Instruction) -> Iterator[Synchronized]:
        """What the host waits for where an instruction leaves a stack: its own streams by name; of a stack that another function has made,
        or filled in a loop, nobody says which streams these are, and it is taken to wait for all work."""
        if function.is_cpp or not (one[0] == op.EXIT or function.invokes(one, "leaves-contexts")) or not self._are_used:
            return
        for maker in self._makers(function, one[3], _DEEPEST):
            for holder in self._holders(maker):
                yield from self._ends(holder, Site(function, one))

    def _makers(self, function: Function, register: int, depth: int) -> Iterator[Site]:
        """The calls that have made a stack, or have moved what another one holds to it."""
        one = function.definitions[register] if register >= 0 else None
        while one is not None and one[0] in _SAME:
            register = one[_SAME[one[0]]]
            one = function.definitions[register] if register >= 0 else None
        if one is None or one[0] not in (op.CALL, op.INVOKE, op.ATTR) or not depth:
            return
        if function.invokes(one, "moves-contexts") or self._is_stack(function, one):
            yield Site(function, one)
        elif one[0] == op.ATTR:
            owner = function.owner if function.is_parameter(one[3]) else None
            for store in owner.own_stores.get(function.text(one[4]), ()) if owner is not None else ():
                yield from self._makers(store.function, store.value, depth - 1)
        else:
            for callee in self.facts.callee_functions(function, one):
                for end in callee.by_opcode[op.RETURN]:
                    yield from self._makers(callee, end[2], depth - 1)

    @cached_property
    def _are_used(self) -> bool:
        """Whether the program names stacks of contexts."""
        names = {name.rpartition(".")[2] for name in self.facts.models.marked("context-stack")}
        return any(self.facts.program.mentioning(name) for name in sorted(names))

    def _is_stack(self, function: Function, one: Instruction) -> bool:
        stacks = function.unit.models.marked("context-stack")
        if last_name(function, one) not in {name.rpartition(".")[2] for name in stacks}:
            return False
        called = function.dotted(one[3])
        called = f"{called}.{function.text(one[4])}" if one[0] == op.INVOKE else called
        return any(isinstance(each, ExternalName) and each.name in stacks for each in self.facts.scopes.find(function.unit, called))

    def _holders(self, maker: Site) -> Iterator[Site]:
        """The calls that have made what a stack holds: of one to which another one was moved, that one."""
        function, one = maker
        if not function.invokes(one, "moves-contexts"):
            yield maker
            return
        yield from self._makers(function, one[3], _DEEPEST)

    def _ends(self, stack: Site, end: Site) -> Iterator[Synchronized]:
        function, made = stack
        if end.function is function and self._is_moved(stack, end.instruction):
            return
        for put, wait in self._put(function, made):
            is_near = end.function is function and function.runs_before(put, end.instruction)
            yield wait if is_near and function.control.innermost[function.blocks[put]] < 0 else wait._replace(of=None)

    def _is_moved(self, stack: Site, end: Instruction) -> bool:
        """Whether what a stack holds has gone to another one by the time that it is left."""
        function = stack.function
        moves = (one for one in function.by_opcode[op.INVOKE] if function.invokes(one, "moves-contexts") and one is not end)
        return any(function.runs_before(one, end) and stack in self._makers(function, one[3], 1) for one in moves)

    @memoized
    def _put(self, function: Function, made: Instruction) -> list[tuple[Instruction, Synchronized]]:
        """The waits that a stack was given, each with the call that did so."""
        return list(self._find(Site(function, made)))

    def _find(self, stack: Site) -> Iterator[tuple[Instruction, Synchronized]]:
        function = stack.function
        for one in function.by_opcode[op.INVOKE]:
            given = [register for register, kind in arguments_of(function, one) if kind is None]
            if not given or stack not in self._makers(function, one[3], 1):
                continue
            if function.invokes(one, "enters"):
                made = function.definitions[given[0]]
                calls = self.modelled(function, made) if made is not None and made[0] in (op.CALL, op.INVOKE) else ()
                yield from ((one, Synchronized(call.stream(), call.name)) for call in calls if call.row.get("synchronizes"))
            elif function.invokes(one, "defers-calls"):
                yield from ((one, wait) for wait in self._deferred(function, given[0]))

    def _deferred(self, function: Function, register: int) -> Iterator[Synchronized]:
        """What a method of a library waits for that is called later."""
        one = function.definitions[register]
        for value in self.facts.values(function, register).values:
            row = self.facts.models.call(value.name) if isinstance(value, External) else None
            if row is None or row.effect != "synchronize" or not isinstance(value, External):
                continue
            held = value.receiver
            if one is None or one[0] != op.ATTR or not isinstance(held, LibraryObject):
                yield Synchronized(None, value.name)
            else:
                yield Synchronized(Stream(NAMED, one[3], row.library) if held.kind == "stream" else one[3], value.name)
