"""Rounds on devices of another kind: all that they move and make goes where the program chooses between such a device and the host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.constants import constants_of
from streamlint.waits.entered import Held
from streamlint.waits.operands import argument_registers, is_element_type

_OTHER, HOST, _UNKNOWN = "other", "host", "unknown"
_DEVICE, _TO = "device", "to"
_MOST = 60
"""Registers that are looked at for one."""


class Elsewhere:
    """Answers for the functions of a program."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.facts = graph.facts
        self._given = constants_of(graph.facts).given

    def drives(self, functions: Iterable[Function]) -> bool:
        """Whether some functions put something on a device of another kind, and nothing on one that may be CUDA's."""
        kinds: set[str] = set()
        for function in functions:
            for opcode in (op.CALL, op.INVOKE):
                for one in function.by_opcode[opcode]:
                    kinds |= self.named_by(function, one)
                    if _UNKNOWN in kinds:
                        return False
        return _OTHER in kinds

    def named_by(self, function: Function, one: Instruction) -> set[str]:
        """The kinds of devices that a call names: ``host``, ``other``, ``unknown``."""
        name = last_name(function, one)
        if name == "cuda" and one[0] == op.INVOKE:
            return {_UNKNOWN}
        if one[0] == op.INVOKE and name in function.unit.models.marked("host-device"):
            return {HOST}
        kinds = (None, _DEVICE) if name == _TO and one[0] == op.INVOKE else (_DEVICE,)
        given = (register for kind, register in argument_registers(function, one) if kind in kinds)
        return {kind for register in given for kind in self._kinds(function, register)}

    def _kinds(self, function: Function, register: int) -> Iterator[str]:
        """The kinds of devices that a register may hold; none where that of a tensor is meant, or no device."""
        waiting, seen = [Held(function, register)], set[Held]()
        while waiting:
            held = waiting.pop()
            home, one = held.function, held.instruction
            if held in seen:
                continue
            seen.add(held)
            before = self._before(held, one) if one is not None else []
            if one is None or len(seen) > _MOST or None in before:
                yield _UNKNOWN
            elif one[0] == op.CONST:
                yield _kind_of(home, home.unit.ir.constants[one[3]])
            elif before:
                waiting += [each for each in before if each is not None]
            elif not (one[0] == op.ATTR and home.text(one[4]) in (_DEVICE, "dtype")) and not is_element_type(
                self.facts, home, held.register
            ):
                yield _UNKNOWN

    def _before(self, held: Held, one: Instruction) -> list[Held | None]:
        """Where what an instruction gives was before; a device is where its name was."""
        if one[0] in (op.CALL, op.INVOKE) and last_name(held.function, one) == _DEVICE:
            return [held._replace(register=register) for _, register in argument_registers(held.function, one)[:1]]
        return [each for each in self._given.before(held) or [] if each != held]


def _kind_of(function: Function, word: object) -> str:
    """The kind of device that a constant names; none names the host's."""
    if word is None or isinstance(word, bool):
        return HOST
    name, models = (word.partition(":")[0] if isinstance(word, str) else ""), function.unit.models
    return HOST if name in models.marked("host-device") else _OTHER if name in models.marked("other-device") else _UNKNOWN
