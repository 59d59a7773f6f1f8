"""The calls that train, decode, denoise or serve: by the rows of rounds, also where the class of a value is unknown.

A method of a value whose class is known is decided by the class. Of one that is unknown the method's name decides, if a row is about it, if
files that imports connect with the file use the row's library; or, where the row lists members (``beside``), if one of them is used of the
same value, wherever that is handed to, and files near use a library that computes on devices. No name that a user chose counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.aliases import Aliases
from streamlint.facts.call_graph import CallGraph, Calls
from streamlint.facts.functions import ClassInfo, Function
from streamlint.facts.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import RoundRow


class Round(NamedTuple):
    """A call that does what a row of a round says."""

    instruction: Instruction
    row: RoundRow
    name: str


class Rounds:
    """Finds the calls of rounds."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.facts = graph.facts
        self.aliases = Aliases(graph)
        self.rows = graph.facts.models.rounds
        self._methods: dict[str, list[RoundRow]] = defaultdict(list)
        for row in self.rows:
            for name in row.names:
                self._methods[name.rpartition(".")[2]].append(row)
        self._found: dict[Function, tuple[Round, ...]] = {}

    def of(self, function: Function) -> tuple[Round, ...]:
        """The calls of rounds that a function makes by itself."""
        found = self._found.get(function)
        if found is None:
            self._found[function] = ()
            found = self._found[function] = tuple(dict.fromkeys(self._among(function, self.graph.calls(function))))
        return found

    @property
    def names(self) -> frozenset[str]:
        """The last parts of the names of all rows: what does not say one of them makes no call of a round."""
        return frozenset(self._methods)

    def is_among(self, function: Function, calls: list[Instruction]) -> bool:
        """Whether one of some calls of a function is that of a round."""
        return any(True for _ in self._among(function, self.graph.calls_at(function, calls)))

    def named(self, function: Function) -> list[Instruction]:
        """The call instructions of a function that have the name of a round's call, or none."""
        found = [one for one in function.by_opcode[op.INVOKE] if function.text(one[4]) in self._methods]
        return found + [one for one in function.by_opcode[op.CALL] if self._may_be_named(function, one[3])]

    def _may_be_named(self, function: Function, register: int) -> bool:
        made = function.definitions[register]
        if made is None or made[0] not in (op.NAME, op.ATTR):
            return True
        return function.text(made[3 if made[0] == op.NAME else 4]) in self._methods

    def implements(self, function: Function) -> RoundRow | None:
        """The row of the library's method that a method of the program overrides."""
        rows = self._methods.get(function.code.name, ())
        owner = function.owner
        if not rows or owner is None:
            return None
        names = [f"{library}.{function.code.name}" for library in self._bases(owner)]
        return next((row for row in rows for name in names if row.covers(name)), None)

    def _bases(self, owner: ClassInfo) -> Iterator[str]:
        for library in self.facts.hierarchy.libraries(owner):
            yield library
            if (row := self.facts.models.call(library)) is not None and row.effect == "object":
                yield str(row.get("type") or library)

    def _among(self, function: Function, calls: Calls) -> Iterator[Round]:
        for call in calls.libraries:
            named = self._named(call.name)
            if named is not None:
                yield Round(call.instruction, named, call.name)
            elif call.row is None and call.instruction[0] == op.INVOKE:
                yield from self._by_method(function, call.instruction)
        for one in calls.unknown:
            if one[0] == op.INVOKE:
                yield from self._by_method(function, one)
        for edge in calls.edges:
            if (row := self.implements(edge.callee)) is not None:
                yield Round(edge.instruction, row, edge.callee.name)

    def _named(self, name: str) -> RoundRow | None:
        rows = self._methods.get(name.rpartition(".")[2], ())
        return next((row for row in rows if row.covers(name)), None)

    def _by_method(self, function: Function, one: Instruction) -> Iterator[Round]:
        """A method of a value of which the class is unknown."""
        method = function.text(one[4])
        for row in self._methods.get(method, ()):
            if row.beside:  # the value shows itself: that some library computes on devices is enough
                packages = self.facts.models.packages
                is_shown = any(self.is_used_near(function.unit, package) for package in packages)
                is_shown = is_shown and self.aliases.uses(function, one[3], frozenset(row.beside))
            else:
                is_shown = any(self.is_used_near(function.unit, name.partition(".")[0]) for name in row.names)
            if is_shown:
                yield Round(one, row, method)
                return

    # --- which libraries a file can have values of

    def is_used_near(self, unit: Unit, library: str) -> bool:
        """Whether a file, or one that imports lead to or come from, imports a library."""
        return library in self._libraries[unit]

    @cached_property
    def _libraries(self) -> dict[Unit, set[str]]:
        """By file: the packages that it, and the files connected with it by imports, import."""
        groups: dict[Unit, Unit] = {}

        def leader(unit: Unit) -> Unit:
            while groups.setdefault(unit, unit) is not unit:
                groups[unit] = groups[groups[unit]]
                unit = groups[unit]
            return unit

        own: dict[Unit, set[str]] = {}
        for unit in self.facts.program.units.values():
            own[unit] = set()
            for target, package in self._imported(unit):
                if target is not None:
                    groups[leader(unit)] = leader(target)
                else:
                    own[unit].add(package)
        joined: dict[Unit, set[str]] = defaultdict(set)
        for unit, packages in own.items():
            joined[leader(unit)] |= packages
        return {unit: joined[leader(unit)] for unit in own}

    def _imported(self, unit: Unit) -> Iterable[tuple[Unit | None, str]]:
        program = self.facts.program
        for module, taken in unit.imports:
            target = program.imported(module, unit)
            yield target, module.partition(".")[0]
            if taken not in (None, "*"):
                inner = program.imported(f"{module}.{taken}" if not module.endswith(".") else f"{module}{taken}", unit)
                if inner is not None:
                    yield inner, ""
