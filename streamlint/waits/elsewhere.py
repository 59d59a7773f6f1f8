"""Rounds on devices of another kind: all that they move and make goes where the program chooses between such a device and the host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.call_graph import CallGraph
from streamlint.facts.functions import Function
from streamlint.facts.instructions import last_name
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.operands import argument_registers, is_element_type, operand_of

_OTHER, _HOST, _UNKNOWN = "other", "host", "unknown"
_DEVICE, _TO = "device", "to"
_MOST = 60
"""Registers that are looked at for one."""
_Place = tuple[Function, int]


class Elsewhere:
    """Answers for the functions of a program."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.facts = graph.facts

    def drives(self, functions: Iterable[Function]) -> bool:
        """Whether some functions put something on a device of another kind, and nothing on one that may be CUDA's."""
        kinds: set[str] = set()
        for function in functions:
            for opcode in (op.CALL, op.INVOKE):
                for one in function.by_opcode[opcode]:
                    kinds |= self._named_by(function, one)
                    if _UNKNOWN in kinds:
                        return False
        return _OTHER in kinds

    def _named_by(self, function: Function, one: Instruction) -> set[str]:
        """The kinds of devices that a call names."""
        name = last_name(function, one)
        if name == "cuda" and one[0] == op.INVOKE:
            return {_UNKNOWN}
        kinds = (None, _DEVICE) if name == _TO and one[0] == op.INVOKE else (_DEVICE,)
        given = (register for kind, register in argument_registers(function, one) if kind in kinds)
        return {kind for register in given for kind in self._kinds(function, register)}

    def _kinds(self, function: Function, register: int) -> Iterator[str]:
        """The kinds of devices that a register may hold; none where that of a tensor is meant, or no device."""
        waiting, seen = [(function, register)], set[_Place]()
        while waiting:
            place = home, held = waiting.pop()
            one = home.definitions[held] if held >= 0 else None
            if place in seen:
                continue
            seen.add(place)
            if one is None or len(seen) > _MOST:
                yield _UNKNOWN
            elif one[0] == op.CONST:
                yield _kind_of(home, home.unit.ir.constants[one[3]])
            elif before := list(self._before(home, one)):
                waiting += before
            elif not (one[0] == op.ATTR and home.text(one[4]) in (_DEVICE, "dtype")) and not is_element_type(self.facts, home, held):
                yield _UNKNOWN

    def _before(self, function: Function, one: Instruction) -> Iterator[_Place]:
        """Where what an instruction gives was before."""
        if one[0] in (op.PHI, op.COPY):
            yield from ((function, each) for each in op.reads(one))
        elif one[0] in (op.CALL, op.INVOKE) and last_name(function, one) == _DEVICE:
            yield from ((function, register) for _, register in argument_registers(function, one)[:1])
        elif one[0] in (op.CALL, op.INVOKE):
            callees = [edge.callee for edge in self.graph.of_call(function, one).edges if edge.is_followed]
            yield from ((callee, end[2]) for callee in callees for end in callee.by_opcode[op.RETURN])
        elif one[0] == op.ATTR and function.owner is not None and function.is_parameter(one[3], 0):
            stores = (each.own_stores.get(function.text(one[4]), ()) for each in self.facts.hierarchy.order(function.owner))
            yield from ((store.function, store.value) for each in stores for store in each)
        elif one[0] == op.NAME:
            yield from function.unit.globals.get(function.text(one[3]), ())
        elif one[0] == op.PARAM:
            places = ((caller, operand_of(caller, call, function, one[3])) for caller, call in self.facts.call_places(function))
            given = [(caller, register) for caller, register in places if register is not None]
            default = function.default_place(one[3])
            yield from (*given, default) if given and default is not None else given


def _kind_of(function: Function, word: object) -> str:
    """The kind of device that a constant names; none names the host's."""
    if word is None or isinstance(word, bool):
        return _HOST
    name, models = (word.partition(":")[0] if isinstance(word, str) else ""), function.unit.models
    return _HOST if name in models.marked("host-device") else _OTHER if name in models.marked("other-device") else _UNKNOWN
