"""What is known on the way to a wait: how the conditions come out that lead there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import unnegated
from streamlint.facts.repetition.hot import HotRegions, Region
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.operands import operand_of
from streamlint.waits.questions import EQUAL, compares
from streamlint.waits.steady import steadiness_of

Fact = tuple[object, ...]


class Known:
    """Answers for the waits of hot regions."""

    def __init__(self, hot: HotRegions) -> None:
        self.hot = hot
        self.steadiness = steadiness_of(hot)

    def at(self, function: Function, instruction: Instruction, region: Region) -> dict[Fact, bool]:
        """The conditions under which an instruction is reached: how they come out is known on the way to it, and in its round behind it."""
        body = self.hot.body(function)
        found: dict[Fact, bool] = {}
        seen: set[int] = set()
        home = body.home[instruction]
        waiting = [home]
        while waiting:
            edges = body.graph.controlled_by[waiting.pop()]
            if len(edges) != 1 or edges[0][0] in seen or (region.loop is not None and edges[0][0] == region.loop.header):
                continue
            seen.add(edges[0][0])
            found.update(self.of_edge(function, *edges[0]))
            waiting.append(edges[0][0])
        inner = [loop.body for loop in body.graph.loops if home in loop.body and (region.loop is None or loop.header != region.loop.header)]
        return {fact: truth for fact, truth in found.items() if not any(self.is_made_in(fact, blocks) for blocks in inner)}

    def is_made_in(self, fact: Fact, blocks: Collection[int]) -> bool:
        """Whether a fact is one of a value that some blocks make: if they run once more, nothing is known of the next one."""
        if fact[0] == "attribute" or not isinstance(function := fact[1], Function) or not isinstance(register := fact[2], int):
            return False
        one = function.definitions[register] if register >= 0 else None
        return one is not None and self.hot.body(function).home[one] in blocks

    def of_edge(self, function: Function, before: int, after: int) -> list[tuple[Fact, bool]]:
        """What an edge says of a condition: of a register, and of an attribute of the receiver that rounds do not change; whether it is
        true, or None."""
        end = function.code.blocks[before][-1]
        if end[0] != op.BRANCH or end[3] == end[4]:
            return []
        register, turned = unnegated(function, end[2])
        truth = (after == end[3]) != turned
        found: list[tuple[Fact, bool]] = [(subject, truth) for subject in self._subjects(function, register)]
        compared = compares(function, register)
        if compared is not None and compared[2] is None and compared[0] in EQUAL:
            found += [((*subject, None), truth == EQUAL[compared[0]]) for subject in self._subjects(function, compared[1])]
        elif truth:
            found += [((*subject, None), False) for subject, _ in list(found)]
        return found

    def _subjects(self, function: Function, register: int) -> Iterator[Fact]:
        """What a condition asks for."""
        yield ("register", function, register)
        one = function.definitions[register] if register >= 0 else None
        owner = function.method.owner if function.method is not None else None
        is_own = one is not None and one[0] == op.ATTR and owner is not None and function.is_parameter(one[3], 0)
        if is_own and one is not None and not self.steadiness.is_changed(function, one):
            yield ("attribute", owner, function.text(one[4]))

    def handed_on(self, function: Function, call: Instruction, callee: Function, facts: Mapping[Fact, bool]) -> dict[Fact, bool]:
        """What is known in a function that a call enters: of attributes, and of its parameters."""
        found = {fact: truth for fact, truth in facts.items() if fact[0] == "attribute"}
        if call[0] not in (op.CALL, op.INVOKE):
            return found
        for parameter in callee.by_opcode[op.PARAM]:
            given = operand_of(function, call, callee, parameter[3])
            if given is not None and given >= 0:
                found.update(_of_constant(function, given, callee, parameter[2]))
                for kind in ((), (None,)):
                    if (truth := facts.get(("register", function, given, *kind))) is not None:
                        found[("register", callee, parameter[2], *kind)] = truth
        return found


def _of_constant(function: Function, given: int, callee: Function, register: int) -> Iterator[tuple[Fact, bool]]:
    """What is known of a parameter that is given a constant."""
    one = function.definitions[given]
    if one is not None and one[0] == op.CONST:
        value = function.unit.ir.constants[one[3]]
        yield ("register", callee, register), bool(value)
        yield ("register", callee, register, None), value is None
