"""Where the calls of a program stand, by what the rows of the models say of them: found by names, before anything is solved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.files.program import Unit
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Models, Row
from streamlint.models.vocabulary import Selector
from streamlint.transfer.calls import Calls
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.partials import prepared_name
from streamlint.waits.operands import argument_registers

RowTest = Callable[[Row], bool]
ANY_ROW: RowTest = lambda row: True  # noqa: E731
_NAMED = frozenset({op.CALL, op.INVOKE, op.CONSTRUCT})


class _Wanted(NamedTuple):
    """The rows of a language's functions with some effects, by effect and by the last parts of their names, that may set a switch."""

    tables: list[Mapping[str, Sequence[Row]]]
    key: str
    where: RowTest

    def among(self, names: Set[str]) -> dict[str, list[Row]]:
        """By name: the rows that have one of some names."""
        found: dict[str, list[Row]] = defaultdict(list)
        for table in self.tables:
            for name in sorted(table.keys() & names):
                if rows := [row for row in table[name] if (not self.key or row.get(self.key) not in (None, False)) and self.where(row)]:
                    found[name] += rows
        return found


class CallSites(Calls):
    """Finds the calls of a program."""

    def __init__(self, graph: CallGraph) -> None:
        super().__init__(graph)
        self._calls: dict[Unit, dict[str, list[tuple[int, Function, Instruction, bool]]]] = {}

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
        program = self.facts.program
        named = (unit for wanted in tables.values() for name in wanted.among(program.identifiers) for unit in program.mentioning(name))
        units = {unit.number: unit for unit in named if among is None or unit in among}
        for _, unit in sorted(units.items()):
            yield from self._candidates_in(unit, tables[unit.is_cpp], key)

    def _candidates_in(self, unit: Unit, wanted: _Wanted, key: str) -> Iterator[tuple[Function, Instruction]]:
        calls = self._calls_of(unit)
        found: dict[int, tuple[Function, Instruction]] = {}
        for name, rows in (*_renamed(unit, wanted), *wanted.among(calls.keys()).items()):
            for place, function, one, is_prepared in calls.get(name, ()):
                if one[0] == op.CONSTRUCT and key:
                    continue
                if is_prepared or any(_may_set(function, one, row, key) for row in rows):
                    found[place] = function, one
        yield from (found[place] for place in sorted(found))

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
                if made := self.facts.brace_lists.constructed(function, one):
                    found[made].append((place, function, one, False))
        return found

    def _wanted(self, effects: Collection[str], key: str, where: RowTest, is_cpp: bool) -> _Wanted:
        models: Models = self.facts.cpp_models if is_cpp else self.facts.models
        return _Wanted([models.with_effect(effect) for effect in sorted(effects)], key, where)

    def names(self, effects: Collection[str], where: RowTest = ANY_ROW) -> frozenset[str]:
        """The last parts of the names of functions with some effects; ``where`` is a function of a module."""
        mine = frozenset(effects)
        return self.facts.models.gathered(_names, mine, where) | self.facts.cpp_models.gathered(_names, mine, where)


def _renamed(unit: Unit, wanted: _Wanted) -> Iterator[tuple[str, list[Row]]]:
    """Other names that a file has for functions that it imports."""
    for name, rows in wanted.among(unit.taken.keys()).items():
        for function, one in unit.taken[name]:
            yield from ((function.text(use[2]), rows) for use in function.uses[one[2]] if use[0] == op.SET_NAME)


def _names(models: Models, effects: Collection[str], where: RowTest) -> frozenset[str]:
    return frozenset(name for effect in effects for name, rows in models.with_effect(effect).items() if any(map(where, rows)))


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
