"""How many slots a ring has, and whether a queue with a limit is full once a slot of the ring comes again."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from streamlint.facts.code.counters import iterable_of, range_of
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.constants import constants_of
from streamlint.waits.entered import Held
from streamlint.waits.operands import argument_registers

_RINGS = (op.CALL, op.INVOKE)


class RingSizes:
    """Compares limits of queues with the sizes of rings."""

    def __init__(self, facts: Facts) -> None:
        self.constants = constants_of(facts)
        self.cycles = {name.rpartition(".")[2] for name in facts.models.marked("goes-round")}

    def fills(self, function: Function, limit: int, blocks: Collection[int]) -> bool:
        """Whether some blocks take turns in a ring that has as many slots as a limit, or more. Where only the code that makes an iterator
        that goes round knows its size, it has."""
        limits = self._numbers(Held(function, limit))
        return any(not (limits and sizes and min(limits) > max(sizes)) for sizes in self._sizes(function, blocks, bool(limits)))

    def _sizes(self, function: Function, blocks: Collection[int], is_known: bool) -> Iterator[frozenset[int]]:
        """The numbers of slots of each ring from which some blocks take; none for one of unknown size."""
        for one in function.by_opcode[op.CALL]:
            if function.blocks[one] in blocks and function.dotted(one[3]) == "next" and len(one) > 5:
                for root in self.constants.given.roots(Held(function, one[5])) or ():
                    if (given := self._cycled(root)) is not None:
                        yield self._elements(given)
        for one in function.by_opcode[op.BINARY] if is_known else ():
            if function.blocks[one] in blocks and function.text(one[3]) == "%" and (sizes := self._numbers(Held(function, one[5]))):
                yield sizes

    def _cycled(self, root: Held) -> Held | None:
        """What an iterator goes round."""
        one = root.instruction
        if one is None or one[0] not in _RINGS:
            return None
        name = last_name(root.function, one)
        given = argument_registers(root.function, one)
        return root._replace(register=given[0][1]) if name in self.cycles and given else None

    def _elements(self, held: Held) -> frozenset[int]:
        """How many elements a list may have that is written out, or filled by one loop over a range."""
        found: set[int] = set()
        for root in self.constants.given.roots(held) or ():
            one, function = root.instruction, root.function
            if one is None or one[0] != op.BUILD:
                return frozenset()
            filled = [use for use in function.uses[one[2]] if use[0] == op.APPEND and use[2] == one[2]]
            numbers = self._filled(root, filled) if filled else frozenset({len(one) - 4})
            if not numbers:
                return frozenset()
            found |= numbers
        return frozenset(found)

    def _filled(self, root: Held, filled: list[Instruction]) -> frozenset[int]:
        """The rounds of the loop in which the one call stands that fills a list."""
        function = root.function
        loops = [loop for loop in function.control.loops if function.blocks[filled[0]] in loop.body]
        heads = [one for one in function.by_opcode[op.NEXT] if len(loops) == 1 and function.blocks[one] in loops[0].body]
        given = range_of(function, iterable_of(function, heads[0])) if len(filled) == len(heads) == 1 else ()
        return self._numbers(root._replace(register=given[0])) if len(given) == 1 else frozenset()

    def _numbers(self, held: Held) -> frozenset[int]:
        """The numbers that a register may hold; none where something else may be."""
        values = self.constants.values(*held[:3]) or ()
        numbers = frozenset(value for value in values if isinstance(value, int))
        return numbers if len(numbers) == len(values) else frozenset()
