"""Results that are on the host since a tensor that was made there went into them: PyTorch computes with tensors of one device.

Beside a tensor of the GPU an operator takes one number of the host, which has no dimension. So what has at least one, and is made on the
host, has all that is computed with it there too, and what is computed of that, through calls of the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import Constant, DeviceValue, Memory, Scalar
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row, last_part
from streamlint.waits.operands import argument_registers, operand_of
from streamlint.waits.origins import TENSOR

_FUNCTIONAL = "torch.nn.functional."
"""Functions of this module refuse tensors of different devices, also one number of the host."""
_SAME = frozenset({"view", "same"})
_SPREAD = (1, 2)
_NOT = -1
_MOST = 400
Context = tuple[tuple[Function, Function, Instruction], ...]
"""The calls by which functions were entered, the innermost last: the function, and its caller with the call."""


class _At(NamedTuple):
    """A register of a function that was entered by some calls."""

    function: Function
    register: int
    context: Context

    def at(self, register: int) -> _At:
        return self._replace(register=register)


def makes_elsewhere(graph: CallGraph) -> bool:
    """Whether the program may have factories that name no device make memory elsewhere than on the host."""
    return graph.facts.shared.one_of(_Hosts, graph).makes_elsewhere


def _enters_device(graph: CallGraph, function: Function) -> bool:
    """Whether a function has a scope in which a device is the default: ``with torch.device("cuda"):``."""
    entered = (function.definitions[one[3]] for one in function.by_opcode[op.ENTER])
    scopes = [one for one in entered if one is not None and (one[0] not in (op.CALL, op.INVOKE) or last_name(function, one) == "device")]
    return any(isinstance(value, DeviceValue) for one in scopes for value in graph.facts.values(function, one[2]).values)


def is_beside_host(graph: CallGraph, function: Function, register: int) -> bool:
    """Whether a register holds what is computed with a tensor that is made on the host."""
    return not function.is_cpp and not makes_elsewhere(graph) and graph.facts.shared.one_of(_Hosts, graph).holds(function, register)


class _Hosts:
    """Answers how many dimensions at least a tensor of the host has; less than 0 where nothing shows that it is there."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.facts = graph.facts
        self._known: dict[tuple[Function, int], bool] = {}
        self._ranks: dict[_At, int] = {}
        self._asked: set[_At] = set()
        self._presumed = 0  # how often a loop was met
        self._steps = 0

    @cached_property
    def makes_elsewhere(self) -> bool:
        """Whether factories that name no device may make memory elsewhere than on the host."""
        program = self.facts.program
        functions = (function for unit in program.mentioning("device") if not unit.is_cpp for function in unit.functions)
        return not self.facts.models.known("default-device").isdisjoint(program.identifiers) or any(
            _enters_device(self.graph, each) for each in functions
        )

    def holds(self, function: Function, register: int) -> bool:
        """Whether a register holds what is computed with a tensor of the host."""
        key = (function, register)
        if key not in self._known:
            self._ranks.clear()
            self._steps = 0
            self._known[key] = self._rank(_At(function, register, ())) > _NOT
        return self._known[key]

    def _rank(self, at: _At) -> int:
        one = at.function.definitions[at.register] if at.register >= 0 else None
        if one is None or at in self._ranks:
            return self._ranks.get(at, _NOT)
        self._steps += 1
        if self._steps > _MOST:
            return _NOT
        if at in self._asked:
            self._presumed += 1
            return _MOST  # what goes round a loop is as it was before
        before = self._presumed
        self._asked.add(at)
        found = self._of(at, one)
        self._asked.discard(at)
        if self._presumed == before:
            self._ranks[at] = found
        return found

    def _of(self, at: _At, one: Instruction) -> int:
        function, opcode = at.function, one[0]
        if opcode == op.PHI:
            return min((self._rank(at.at(each)) for each in op.reads(one)), default=_NOT)
        if opcode in (op.COPY, op.UNARY):
            return self._rank(at.at(one[-1]))
        if opcode in (op.BINARY, op.INPLACE, op.COMPARE):
            rank = self._together(at, one[4:6])
            return max(rank - 1, min(rank, 0)) if function.text(one[3]).startswith("@") else rank
        if opcode == op.ITEM:
            return self._part(self._rank(at.at(one[3])), function, one[4])
        if opcode == op.ATTR:
            return self._of_attribute(at, one[3], function.text(one[4]))
        if opcode == op.NAME:
            return self._named(function, function.text(one[3]))
        if opcode == op.PARAM:
            return self._given(at, one)
        if opcode == op.UNPACK:
            return self._unpacked(at, one)
        return self._called(at, one) if opcode in (op.CALL, op.INVOKE) else _NOT

    def _of_attribute(self, at: _At, register: int, name: str) -> int:
        """What an attribute of a tensor gives: ``x.T``, ``x.data``."""
        row = self.facts.models.member(TENSOR, name)
        is_beside = row is not None and (row.effect in _SAME or (row.effect == "factory" and row.get("space") == "like"))
        return self._viewed(at, register, name) if is_beside else _NOT

    def _named(self, function: Function, name: str) -> int:
        """What a file keeps in a name of its own, where nothing gives tensors of the file other memory."""
        made = function.unit.globals.get(name, ()) if not function.unit.attribute_stores.get("data") else ()
        return min((self._rank(_At(home, register, ())) for home, register in made), default=_NOT)

    def _together(self, at: _At, registers: Iterable[int]) -> int:
        """What comes of several values, of which tensors with dimensions are on one device."""
        ranks = {each: self._rank(at.at(each)) for each in registers}
        if max(ranks.values(), default=_NOT) > 0:
            return max(ranks.values())
        others = [each for each, rank in ranks.items() if rank == _NOT]
        return 0 if len(others) < len(ranks) and all(self._is_plain(at, each) for each in others) else _NOT

    def _is_plain(self, at: _At, register: int) -> bool:
        """Whether a register holds a number, or may hold one and is shown to be no tensor."""
        values = list(self.facts.values(at.function, register).values)
        is_number = any(isinstance(one, Scalar) or (isinstance(one, Constant) and one.value is not None) for one in values)
        return is_number and not any(isinstance(one, Memory) for one in values)

    def _part(self, rank: int, function: Function, index: int) -> int:
        """What a place selects: each number takes one dimension."""
        made = function.definitions[index] if index >= 0 else None
        parts = made[4:] if made is not None and made[0] == op.BUILD else (index,)
        kinds = (function.definitions[each] for each in parts if each >= 0)
        taken = sum(kind is None or kind[0] != op.SLICE for kind in kinds)
        return max(rank - taken, min(rank, 0))

    def _viewed(self, at: _At, register: int, name: str) -> int:
        rank = self._rank(at.at(register))
        return rank if name in self.facts.models.known("same-rank") else min(rank, 0)

    # --- calls

    def _given(self, at: _At, one: Instruction) -> int:
        """What the call gives for a parameter by which its function was entered."""
        if not at.context or at.context[-1][0] is not at.function:
            return _NOT
        _, caller, call = at.context[-1]
        register = operand_of(caller, call, at.function, one[3])
        return self._rank(_At(caller, register, at.context[:-1])) if register is not None else _NOT

    def _unpacked(self, at: _At, one: Instruction) -> int:
        """One of the values that a function of the program gives back."""
        made = at.function.definitions[one[3]] if one[3] >= 0 else None
        if made is None or made[0] not in (op.CALL, op.INVOKE, op.BUILD) or one[6] != op.NONE:
            return _NOT
        ends = [at.at(one[3])] if made[0] == op.BUILD else list(self._ends(at, made))
        ranks = [self._rank(each) for end in ends for each in self._inside(end, one[4])]
        return min(ranks) if len(ranks) == len(ends) > 0 else _NOT

    def _inside(self, at: _At, place: int) -> Iterator[_At]:
        one = at.function.definitions[at.register] if at.register >= 0 else None
        if one is not None and one[0] == op.BUILD and 0 <= place < len(one) - 4:
            yield at.at(one[4 + place])

    def _ends(self, at: _At, one: Instruction) -> Iterator[_At]:
        """What the functions of the program give back that a call enters."""
        for edge in self.graph.of_call(at.function, one).edges:
            entered = (edge.callee, at.function, one)
            if edge.is_followed and entered not in at.context:
                yield from (_At(edge.callee, end[2], (*at.context, entered)) for end in edge.callee.by_opcode[op.RETURN])

    def _called(self, at: _At, one: Instruction) -> int:
        calls = self.graph.of_call(at.function, one)
        if any(edge.is_followed for edge in calls.edges):
            return min(map(self._rank, self._ends(at, one)), default=_NOT) if not calls.libraries else _NOT
        rows = [(last_part(call.name), call.row) for call in calls.libraries]
        if not rows and one[0] == op.INVOKE:  # of a tensor of the host, if it is a method at all
            name = at.function.text(one[4])
            rows = [(name, self.facts.models.method(TENSOR, name))]
        ranks = [self._by_row(at, one, name, row) for name, row in rows]
        return min(ranks, default=_NOT)

    def _by_row(self, at: _At, one: Instruction, name: str, row: Row | None) -> int:
        if row is None or row.library != "torch":
            return _NOT
        if row.effect == "factory":
            return self._made(at.function, one, name) if self._stays_on_host(at.function, one) else _NOT
        if row.effect in _SAME:
            return self._of_view(at, one, name, row)
        return self._computed(at, one, name, row) if row.effect == "compute" and name not in self.facts.models.known("apart") else _NOT

    def _of_view(self, at: _At, one: Instruction, name: str, row: Row) -> int:
        if one[0] == op.INVOKE and row.names[0].startswith(TENSOR):
            return self._viewed(at, one[3], name)
        given = argument_registers(at.function, one)
        rank = self._rank(at.at(given[0][1])) if given else _NOT
        return rank if row.effect == "same" else min(rank, 0)

    def _computed(self, at: _At, one: Instruction, name: str, row: Row) -> int:
        given = [register for _, register in argument_registers(at.function, one)]
        is_method = one[0] == op.INVOKE and row.names[0].startswith(TENSOR)
        parts = [part for each in given for part in _elements(at.function, each)]
        if any(register in (op.NONE, None) for register in parts):
            return _NOT
        operands = [*([one[3]] if is_method else []), *parts]
        rank = max(map(self._rank, map(at.at, operands)), default=_NOT)
        if row.names[0].startswith(_FUNCTIONAL) or rank > 0 or len(operands) == 1:
            return rank if name in self.facts.models.known("same-rank") else min(rank, 0)
        return self._together(at, operands)

    def _stays_on_host(self, function: Function, one: Instruction) -> bool:
        """Whether a factory makes memory of the host, and none that is given to an attribute: `w.data = w.data.cuda()`."""
        values = list(self.facts.values(function, one[2]).values)
        is_of_host = bool(values) and all(isinstance(value, Memory) and value.space == "host" for value in values)
        return is_of_host and not any(use[0] == op.SET_ATTR for use in function.uses[one[2]])

    def _made(self, function: Function, one: Instruction, name: str) -> int:
        """How many dimensions at least a factory makes."""
        given = argument_registers(function, one)
        shape = [register for kind, register in given if kind is None]
        if any(kind in _SPREAD for kind, _ in given):
            return 0
        first = function.definitions[shape[0]] if shape and shape[0] >= 0 else None
        if first is not None and first[0] == op.BUILD:
            return max(len(first) - 4, 0) if name not in self.facts.models.known("of-display") else min(len(first) - 4, 1)
        return len(shape) if name not in self.facts.models.known("of-display") else 0


def _elements(function: Function, register: int) -> Iterator[int]:
    """A register, or those of the elements of the display that it holds: ``torch.cat([a, b])``."""
    made = function.definitions[register] if register >= 0 else None
    yield from made[4:] if made is not None and made[0] == op.BUILD else (register,)
