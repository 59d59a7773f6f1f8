"""The calls that train, decode, denoise or serve: by the rows of rounds, also where the class of a value is unknown.

A method of a value whose class is known is decided by the class. Of one that is unknown the method's name decides, if a row is about it, if
files that imports connect with the file use the row's library; or, where the row lists members (``beside``), if one of them is used of the
same value, wherever that is passed to, and files near use a library that has rounds. No name that a user chose counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import behind, selected
from streamlint.facts.files.program import Unit
from streamlint.facts.graph.aliases import Aliases
from streamlint.facts.graph.call_graph import CallGraph, Calls
from streamlint.facts.repetition.trips import Trips
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import led_to
from streamlint.models import Models, RoundRow, StepRow, first_part, last_part
from streamlint.support.memo import memoized

_NO_FUNCTIONS = frozenset({op.CONST, op.UNARY, op.BINARY, op.INPLACE, op.COMPARE, op.BUILD, op.DICT, op.FORMAT, op.SLICE})


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
        self.trips = Trips(graph.facts)
        self.rows = graph.facts.models.rounds
        self._methods = graph.facts.models.gathered(_methods)
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

    def among(self, function: Function, calls: list[Instruction]) -> set[str]:
        """What some calls of a function do of a round."""
        return {one.row.does for one in self._among(function, self.graph.meant(function, calls)[0])}

    def candidates(self, functions: Iterable[Function]) -> dict[Function, list[Instruction]]:
        """By function: the call instructions that have the name of a round's call, also where the function has given it another one, if
        they may be one by what else the program names."""
        found: dict[Function, list[Instruction]] = {}
        for function in functions:
            if not function.called_names.isdisjoint(self._methods):
                calls = [one for one in function.by_opcode[op.INVOKE] if function.text(one[4]) in self._methods]
                calls += [one for one in function.by_opcode[op.CALL] if not self._names(function, one[3]).isdisjoint(self._methods)]
                if calls := [one for one in calls if function.is_cpp or self._may_be(function, one)]:
                    found[function] = calls
        return found

    def _may_be(self, function: Function, one: Instruction) -> bool:
        """Whether a call that has the name of a round's may be one, whatever flows there. To find out what it calls may take the whole
        program, and what a program never names does not flow in it."""
        names = {function.text(one[4])} if one[0] == op.INVOKE else self._names(function, one[3])
        rows = [row for name in names for row in self._methods.get(name, ())]
        if any(self._is_named(name) for row in rows for name in row.names) or any(map(self._is_overridden, names)):
            return True
        return one[0] == op.INVOKE and any(self._may_be_by_method(function, one, row) for row in rows)

    def _may_be_by_method(self, function: Function, one: Instruction, row: RoundRow) -> bool:
        """The same of a method of a value of which the class is unknown."""
        if not row.beside:
            return any(self.is_used_near(function.unit, first_part(name)) for name in row.names)
        return self._shows_itself(function, one, row) or bool(self._given_alone(function, one, row))

    def _shows_itself(self, function: Function, one: Instruction, row: RoundRow) -> bool:
        """Whether a member that a row lists is used of the value of which a call calls a method."""
        members = frozenset(name for name in row.beside if self._is_used(name, row))
        return bool(members) and self.may_have(function.unit) and self.aliases.uses(function, one[3], members)

    @memoized
    def _is_used(self, member: str, row: RoundRow) -> bool:
        """Whether the program uses a member of this name anywhere: calls it, where it is a method."""
        is_method = any(self.facts.models.named(f"{name.rpartition('.')[0]}.{member}") is not None for name in row.names)
        uses = (one for unit in self.facts.program.mentioning(member) for _, one in unit.attribute_uses.get(member, ()))
        return any(not is_method or one[0] == op.INVOKE for one in uses)

    @memoized
    def _is_named(self, name: str) -> bool:
        """Whether the program names all parts of the class that has a function of a round, or what a row says gives objects of it."""
        owner, named = name.rpartition(".")[0], self.facts.program.mentioning
        kind = self.facts.models.types.get(owner)
        ways = (_written(owner), *self.facts.models.gathered(_giving, ".".join(_written(owner))))
        is_everywhere = kind is not None and kind.kind == "buffer"  # tensors come from anything
        return is_everywhere or any(all(map(named, parts)) for parts in ways)

    def _is_overridden(self, name: str) -> bool:
        """Whether a class of the program has a method in place of a library's that makes a round."""
        methods = (one for unit in self.facts.program.mentioning(name) for one in unit.methods.get(name, ()))
        return any(self.implements(method) is not None for method in methods)

    def _names(self, function: Function, register: int) -> set[str]:
        """The last parts of the names by which a value may have been read, in the function and the functions around it."""
        names: set[str] = set()
        waiting, seen = [(function, register)], set[tuple[Function, int]]()
        while waiting:
            place = waiting.pop()
            home, register = place
            made = home.definitions[register] if register >= 0 and place not in seen else None
            seen.add(place)
            if made is None:
                continue
            if made[0] in (op.NAME, op.ATTR):
                names.add(last_part(home.text(made[3 if made[0] == op.NAME else 4])))
            elif made[0] == op.LOAD:
                _, owner = cell = home.unit.ir.constants[made[3]]
                around = home.unit.function(owner)
                waiting += [(around, one[3]) for one in around.by_opcode[op.STORE] if home.unit.ir.constants[one[2]] == cell]
            elif made[0] in (op.PHI, op.COPY, op.CAST):
                waiting += [(home, one) for one in op.reads(made)]
        return names

    def implements(self, function: Function) -> RoundRow | None:
        """The row of the library's method that a method of the program overrides."""
        rows = self._methods.get(function.code.name, ())
        owner = function.owner
        if not rows or owner is None:
            return None
        separator = "::" if function.is_cpp else "."
        names = [f"{library}{separator}{function.code.name}" for library in self._bases(owner)]
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
        entered: dict[Instruction, set[Unit]] = defaultdict(set)
        for edge in calls.edges:
            entered[edge.instruction].add(edge.callee.unit)
        for one in calls.unknown:
            if one[0] == op.INVOKE and not self._is_of_own(entered[one]):
                yield from self._by_method(function, one)
        for edge in calls.edges:
            if (row := self.implements(edge.callee)) is not None:
                yield Round(edge.instruction, row, edge.callee.name)

    def _is_of_own(self, entered: set[Unit]) -> bool:
        """Whether a method is known to be that of a class of the program, in files that import no library with rounds."""
        return bool(entered) and not any(first_part(module) in self.libraries for unit in entered for module, _ in unit.imports)

    def _named(self, name: str) -> RoundRow | None:
        rows = self._methods.get(last_part(name), ())
        return next((row for row in rows if row.covers(name)), None)

    def _by_method(self, function: Function, one: Instruction) -> Iterator[Round]:
        """A method of a value of which the class is unknown."""
        method = function.text(one[4])
        for row in self._methods.get(method, ()):
            if self._is_asked_for_more(function, one, row):
                continue
            if row.beside:  # the value shows itself: that some library has rounds is enough
                is_shown = self._shows_itself(function, one, row) or (
                    self.may_have(function.unit) and self._is_given_pass(function, one, row)
                )
            else:
                is_shown = any(self.is_used_near(function.unit, first_part(name)) for name in row.names)
            if is_shown:
                yield Round(one, row, method)
                return

    def _is_asked_for_more(self, function: Function, one: Instruction, row: RoundRow) -> bool:
        """Whether something works with what a call gives, where the functions of a row give nothing: it is another method of that name."""
        if all(use[0] in (op.RETURN, op.BIND) for use in function.uses[one[2]]):
            return False
        known = [self.facts.models.call(name) for name in row.names]
        return all(each is not None and each.get("result") == "none" for each in known)

    def _is_given_pass(self, function: Function, one: Instruction, row: RoundRow) -> bool:
        """Whether a method is given a function of the program that goes backward, and no more: an optimizer asks it for the loss."""
        nodes = [self.facts.values(function, register) for register in self._given_alone(function, one, row)]
        given = [value.function for node in nodes for value in self.facts.functions_in(node.values)]
        return any(each.row.does == "backward" for callee in led_to(given, self._callees) for each in self.of(callee))

    def _callees(self, function: Function) -> list[Function]:
        return [edge.callee for edge in self.graph.calls(function).edges if edge.is_followed]

    def _given_alone(self, function: Function, one: Instruction, row: RoundRow) -> list[int]:
        """The register of what a method is given and no more, if that may be the function that a row has it run."""
        given = selected(function, one, row.function) if row.function is not None else []
        return given if len(given) == 1 and len(one) <= 7 and self._may_be_function(function, given[0]) else []

    def _may_be_function(self, function: Function, register: int) -> bool:
        """Whether what computes a value may give a function: no constant, operator or display does."""
        sources = behind(function, [register], lambda one: op.reads(one) if one[0] in (op.PHI, op.COPY) else ())
        return any(one[0] not in (op.PHI, op.COPY) and one[0] not in _NO_FUNCTIONS for one in sources)

    # --- which libraries a file can have values of

    def may_have(self, unit: Unit) -> bool:
        """Whether a file, or one that imports lead to or come from, imports a library that a row of a round or a step is about."""
        return any(self.is_used_near(unit, library) for library in self.libraries)

    @cached_property
    def libraries(self) -> tuple[str, ...]:
        """The libraries that rows of rounds and steps are about."""
        return self.facts.models.gathered(_libraries)

    def is_used_near(self, unit: Unit, library: str) -> bool:
        """Whether a file, or one that imports lead to or come from, imports a library; of C++, whether it names its namespace or folder."""
        if unit.is_cpp:
            return unit in self.facts.program.mentioning(library)
        return self.facts.program.is_used_near(unit, library)


def _giving(models: Models, path: str) -> list[list[str]]:
    """The names, part by part, of what gives objects of a class, or what it stands in: of a method the last one alone."""
    found: list[list[str]] = []
    for name, row in (*models.calls.items(), *models.attributes.items(), *models.patterns()):
        owner, _, last = name.rpartition(".")
        is_method = models.types.get(owner) is not None
        stated = [value for value in (*row.values.values(), *(() if is_method else row.names[:1])) if isinstance(value, str)]
        if any(value.startswith(path) or path.startswith(f"{value}.") for value in stated):
            found.append(([] if "*" in last else [last]) if is_method else _written(name))
    return found


def _methods(models: Models) -> dict[str, list[RoundRow]]:
    found: dict[str, list[RoundRow]] = {}
    for row in models.rounds:
        for name in row.names:
            found.setdefault(last_part(name), []).append(row)
    return found


def _libraries(models: Models) -> tuple[str, ...]:
    rows: tuple[RoundRow | StepRow, ...] = (*models.rounds, *models.steps)
    return tuple(sorted({first_part(name) for row in rows for name in row.names}))


def _written(name: str) -> list[str]:
    """The parts of a dotted name before the first one that may be any."""
    return name.partition("*")[0].split(".")[:-1] if "*" in name else name.split(".")
