"""Functions that are passed to a library, which calls them in each round of a loop of its own: by the rows of handlers.

A function that such a loop runs for each batch is hot if it trains itself; the same loop evaluates otherwise. One that is registered for an
event is hot if the object that it is registered with was made, in the same function, of a function that trains.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import selected
from streamlint.facts.code.objects import External
from streamlint.facts.graph.call_graph import LibraryCall
from streamlint.facts.repetition.rounds import Rounds
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import RoundRow


class Handler(NamedTuple):
    """A function that a library calls in each round, where it is passed, and the row that says so."""

    function: Function
    home: Function
    instruction: Instruction
    row: RoundRow


class Handlers:
    """Finds the functions that are passed to libraries."""

    def __init__(self, rounds: Rounds, trains: Callable[[Function], bool]) -> None:
        self.rounds = rounds
        self.graph = rounds.graph
        self.facts = rounds.facts
        self.trains = trains
        rows = [row for row in self.facts.models.rounds if row.does == "handler" and row.function is not None]
        self.plain = [row for row in rows if row.event is None]
        self.of_events = [row for row in rows if row.event is not None]
        self.callers = [row for row in self.facts.models.rounds if row.does == "caller" and row.function is not None]
        self.methods = {name.rpartition(".")[2]: row for row in self.callers for name in row.names}
        self.names = frozenset(name.rpartition(".")[2] for row in rows for name in row.names)
        self.libraries = {name.partition(".")[0] for row in rows for name in row.names}

    def of(self, function: Function) -> Iterator[Handler]:
        """The functions that a function hands over."""
        if self.names.isdisjoint(function.called_names):
            return
        if not any(self.rounds.is_used_near(function.unit, library) for library in self.libraries):
            return
        for call in self._made(function, (one for opcode in (op.CALL, op.INVOKE) for one in function.by_opcode[opcode])):
            for handler in self._plain(function, call.instruction, call.name):
                if self.trains(handler.function):
                    yield handler
        for row in self.of_events:
            method = row.names[0].rpartition(".")[2]
            for one in function.by_opcode[op.INVOKE]:
                if function.text(one[4]) == method and self._is_each_round(function, one, row) and self._is_of_training(function, one[3]):
                    yield from self._handlers_given(function, one, row)

    def called(self, function: Function) -> Iterator[Handler]:
        """The functions that a function hands over to what calls them in rounds that do not train: a solver, a module with hooks."""
        if not function.called_names.isdisjoint(self.methods) and self.rounds.may_have(function.unit):
            for call in self._made(function, function.by_opcode[op.CALL]):
                row = next((row for row in self.callers if row.covers(call.name)), None)
                yield from self._handlers_given(function, call.instruction, row) if row is not None else ()
            for one in function.by_opcode[op.INVOKE]:
                row = self.methods.get(function.text(one[4]))
                yield from self._handlers_given(function, one, row) if row is not None else ()

    def _made(self, function: Function, calls: Iterable[Instruction]) -> tuple[LibraryCall, ...]:
        return self.graph.meant(function, calls)[0].libraries

    def _plain(self, function: Function, one: Instruction, name: str) -> Iterator[Handler]:
        for row in self.plain:
            if row.covers(name):
                yield from self._handlers_given(function, one, row)

    def _handlers_given(self, function: Function, one: Instruction, row: RoundRow) -> Iterator[Handler]:
        assert row.function is not None
        if row.function.kind == "result":
            uses = [use for use in function.uses[one[2]] if use[0] == op.CALL and use[3] == one[2]]
            registers = [use[5] for use in uses if len(use) > 5]
        else:
            registers = selected(function, one, row.function)
        for register in registers:
            for value in self.facts.functions_in(self.facts.values(function, register).values):
                yield Handler(value.function, function, one, row)

    def _is_each_round(self, function: Function, one: Instruction, row: RoundRow) -> bool:
        """Whether a handler is registered for an event of each round, as it is: ``ITERATION_COMPLETED(every=10)`` is none."""
        assert row.event is not None
        values = [value for register in selected(function, one, row.event) for value in self.facts.values(function, register).values]
        names = [value.name for value in values if isinstance(value, External)]
        return any(fnmatch.fnmatchcase(name, pattern) for name in names for pattern in row.events)

    def _is_of_training(self, function: Function, register: int) -> bool:
        """Whether a library's object was made of a function that trains."""
        one = function.definitions[register]
        if one is None or one[0] not in (op.CALL, op.INVOKE):
            return False
        names = [call.name for call in self._made(function, [one])]
        return any(self.trains(handler.function) for name in names for handler in self._plain(function, one, name))
