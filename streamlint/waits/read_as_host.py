"""Values that are on the host since the program reads their memory there: ``model(x).detach().numpy()`` raises for a tensor of a GPU.

An operator works with tensors of one device. So what such a value was computed from is on the host too, the module that has computed it
is, and so is all that this module computes elsewhere, if nothing moves it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import BoundMethod, External, Instance, Object, Site, is_module
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.graph.unused import Unused
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row, last_part
from streamlint.waits.entered import Context, Held, entered_by
from streamlint.waits.given import Given
from streamlint.waits.moved import Part, before, rows_of
from streamlint.waits.operands import argument_registers, held_in
from streamlint.waits.origins import TENSOR, made_of

_MOST = 200
"""Registers that are looked at for one."""
_COMPUTING = frozenset({op.BINARY, op.INPLACE, op.COMPARE, op.UNARY})
_GIVING = frozenset({op.CALL, op.INVOKE})
_MAKING = frozenset({*_GIVING, op.PARAM, op.UNPACK})
"""What gives an object that may be a module."""
Entered = tuple[Part, Context]
"""A part of a register, and the calls that have entered its function."""
_FORWARD = "forward"
_AT_OPERANDS = frozenset({"compute", "view", "same"})


class ReadAsHost:
    """Answers for the values of a program. ``moved``: for each use of a method that moves modules, those and what they hold."""

    def __init__(self, graph: CallGraph, given: Given, moved: Callable[[], Iterable[list[Object]]]) -> None:
        self.graph = graph
        self._moved = moved
        self.facts = graph.facts
        self._given = given
        models = self.facts.models
        self._unused = self.facts.shared.one_of(Unused, self.facts.program, self.facts.hierarchy)
        self._moving = models.known("places", "host-device")
        self._made_of = models.gathered(made_of)
        self._known: dict[Part, bool | None] = {}

    def gives(self, function: Function, register: int) -> bool:
        """Whether a value is computed, whichever way it comes, from one that is read so, or by a module whose results are."""
        return bool(self._modules or self._values) and self._is_there(Part(function, register, ())) is True

    def _is_there(self, part: Part) -> bool | None:
        """The same of a part of what a register holds; None of numbers, and of what goes round a loop."""
        if part not in self._known:
            self._known[part] = None
            self._known[part] = self._find(part)
        return self._known[part]

    def _find(self, part: Part) -> bool | None:
        function, one = part.function, part.function.definitions[part.register] if part.register >= 0 else None
        if one is None or one[0] == op.CONST:
            return None if one is not None else False
        makers = self._makers(function, one)
        if part in self._values or (makers and all(any(_is_made_by(each, other) for other in self._modules) for each in makers)):
            return True
        if ways := before(self.graph, part, one):
            shown = {way for way in map(self._is_there, ways) if way is not None}
            return all(shown) if shown else None
        return any(map(self._is_there, self._operands(part, one) or ()))

    # --- what is read

    @cached_property
    def _beside_reads(self) -> frozenset[Entered]:
        return frozenset(each for read in self._reads() for each in self.beside(read))

    @cached_property
    def _values(self) -> frozenset[Part]:
        """What is on the host for what is read there, whichever call has entered its function."""
        return frozenset(part for part, context in self._beside_reads if not context)

    def _reads(self) -> Iterator[Part]:
        """What is read as memory of the host, by functions that something runs."""
        rows = self.facts.models.with_effect("view")
        of_tensors = (row.names for name in rows for row in rows[name] if row.get("host_access") and row.names[0].startswith(TENSOR))
        names = sorted({last_part(name) for names in of_tensors for name in names})
        for unit in dict.fromkeys(unit for name in names for unit in self.facts.program.mentioning(name) if not unit.is_cpp):
            for function, one in (use for name in names for use in unit.attribute_uses.get(name, ())):
                if one[0] == op.INVOKE and not argument_registers(function, one) and not self._unused.is_unused(function):
                    yield Part(function, one[3], ())

    def beside(self, read: Part) -> set[Entered]:
        """What is on the host if a value is; nothing where the value may have been copied there just before."""
        start: Entered = (read, ())
        seen, waiting = {start}, [start]
        while waiting:
            part, context = waiting.pop()
            one = part.function.definitions[part.register] if part.register >= 0 else None
            further = self._further(part, one, context) if one is not None else []
            if further is None or len(seen) > _MOST or self._is_moved_beside(part):
                return set()
            waiting += [each for each in further if each not in seen]
            seen.update(further)
        return seen

    def _further(self, part: Part, one: Instruction, context: Context) -> list[Entered] | None:
        """What is where a part is; None where it may have been moved before."""
        if one[0] == op.PARAM:
            given = self._given.before(Held(part.function, part.register, context)) or ()
            return [(Part(each.function, each.register, part.places), each.context) for each in given if each is not None]
        parts = before(self.graph, part, one) or self._operands(part, one)
        if parts is None:
            return None
        running = {part.function, *(callee for callee, _ in context)}
        entered = [each for each in parts if each.function is part.function or each.function not in running]
        call = Site(part.function, one)
        return [(each, context if each.function is part.function else ((each.function, call), *context)) for each in entered]

    def _is_moved_beside(self, part: Part) -> bool:
        uses = part.function.uses[part.register] if part.register >= 0 else ()
        return any(use[0] == op.INVOKE and use[3] == part.register and self._moves(part.function, use) for use in uses)

    def _moves(self, function: Function, one: Instruction) -> bool:
        return one[0] == op.INVOKE and function.text(one[4]) in self._moving

    def _operands(self, part: Part, one: Instruction) -> list[Part] | None:
        """The operands that an operation has on the device of its result; None where it may have moved one."""
        function, opcode = part.function, one[0]
        if opcode in _COMPUTING:
            return [Part(function, each, ()) for each in op.reads(one)]
        if opcode == op.ITEM:
            return [Part(function, one[3], ())]
        if opcode not in _GIVING or part.places:
            return []
        given = [each for _, register in argument_registers(function, one) for each in held_in(function, register)]
        if self._is_of_module(function, one):
            return [Part(function, each, ()) for each in given]
        return self._operands_of_call(part, one, given)

    def _operands_of_call(self, part: Part, one: Instruction, given: list[int]) -> list[Part] | None:
        """The same of a call of a library."""
        function, rows = part.function, self._rows(part.function, one)
        if self._moves(function, one) or any(row is not None and row.effect == "transfer" for row in rows):
            return None
        if last_name(function, one) in function.known("apart") or not self._stays(rows):
            return []
        is_method = one[0] == op.INVOKE and any(row is not None and (row.names[0].startswith(TENSOR) or row.get("made")) for row in rows)
        return [Part(function, each, ()) for each in (*given, *([one[3]] if is_method else ()))]

    def _rows(self, function: Function, call: Instruction) -> list[Row | None]:
        """The rows about what a call calls; None for a function that has none."""
        if call[0] == op.INVOKE:
            return list(rows_of(self.graph, function, call))
        return [one.row for one in self.graph.of_call(function, call).libraries]

    def _stays(self, rows: list[Row | None]) -> bool:
        """Whether all of some calls compute on the device that their operands are on."""
        return bool(rows) and all(row is not None and (row.effect in _AT_OPERANDS or row.get("type") in self._made_of) for row in rows)

    # --- modules

    @cached_property
    def _modules(self) -> frozenset[Held]:
        """What makes the modules that compute what is read."""
        found = {
            maker
            for (function, register, _), context in self._beside_reads
            if register >= 0 and (one := function.definitions[register]) is not None
            for maker in self._makers(function, one, context)
        }
        return frozenset(maker for maker in found if not self._is_moved(maker))

    def _makers(self, function: Function, one: Instruction, context: Context = ()) -> frozenset[Held]:
        """What makes what a call calls, unless that is a function, or is moved on the way."""
        called = called_by(self._given, function, one, context)
        if one[0] == op.INVOKE and not called and function.text(one[4]) == _FORWARD:
            called = [Held(function, one[3], context)]
        return self._made(called)

    def _is_of_module(self, function: Function, one: Instruction) -> bool:
        """Whether a call runs a module of a library."""
        called = self.facts.callees(function, one)
        return any(
            is_module(each.receiver if isinstance(each, (BoundMethod, External)) and each.receiver is not None else each) for each in called
        )

    def _made(self, held: Iterable[Held]) -> frozenset[Held]:
        waiting, found = list(held), set[Held]()
        seen = set(waiting)
        while waiting:
            here = waiting.pop()
            one = here.instruction
            if one is None or self._moves(here.function, one) or len(seen) > _MOST:
                return frozenset()
            behind = [each for each in self._given.before(here) or [here] if each is not None and each != here]
            if not behind and one[0] not in _MAKING:
                return frozenset()
            found.update(() if behind else (here._replace(context=tuple(_calls_to(here))),))
            waiting += [each for each in behind if each not in seen]
            seen.update(behind)
        return frozenset(found)

    def _is_moved(self, maker: Held) -> bool:
        """Whether a use of a method that moves something may be one of what is made there, or of what holds it."""
        values, owner, order = self._objects(maker), maker.function.owner, self.facts.hierarchy.order
        for makers, others in self._uses_that_move:
            if any(_is_made_by(maker, each) or _is_made_by(each, maker) for each in makers):
                return True
            if not makers and not values.isdisjoint(others):
                return True
        moved = (value for each in self._moved() for value in each if isinstance(value, Instance))
        return owner is not None and any(owner in order(value.definition) for value in moved)

    @cached_property
    def _uses_that_move(self) -> list[tuple[frozenset[Held], frozenset[Object]]]:
        """What is moved by each use of a method that does so: what makes it where that is known, and what it is known to be."""
        found = []
        for unit in dict.fromkeys(unit for name in sorted(self._moving) for unit in self.facts.program.mentioning(name) if not unit.is_cpp):
            for function, one in (use for name in sorted(self._moving) for use in unit.attribute_uses.get(name, ())):
                for register in (one[3], *(each for _, each in argument_registers(function, one))):
                    held = Held(function, register)
                    found.append((self._made([held]), self._objects(held)))
        return found

    def _objects(self, held: Held) -> frozenset[Object]:
        values = self.facts.values(held.function, held.register).values if held.register >= 0 else ()
        return frozenset(value for value in values if isinstance(value, Instance) or is_module(value))


def _calls_to(held: Held) -> Iterator[tuple[Function, Site]]:
    """The calls by which the function of a register was entered, of those that are known."""
    function, left = held.function, len(held.context)
    while left and (site := entered_by(held.context, function)) is not None:
        yield function, site
        function, left = site.function, left - 1


def _is_made_by(maker: Held, other: Held) -> bool:
    """Whether what is made somewhere is made there for another one too, of which no more calls are known."""
    return maker[:2] == other[:2] and maker.context[: len(other.context)] == other.context


def called_by(given: Given, function: Function, one: Instruction, context: Context = ()) -> list[Held]:
    """What a call calls: a variable, or what an attribute holds."""
    if one[0] not in _GIVING:
        return []
    called = Held(function, one[3], context)
    return [called] if one[0] == op.CALL else list(given.members.of(called, one[3], function.text(one[4])) or ())
