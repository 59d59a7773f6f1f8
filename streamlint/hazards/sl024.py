"""SL024: a loop that does nothing but ask whether work of the device is done."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl024_event_spin import EventSpin
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind
from streamlint.facts.code.objects import Site
from streamlint.findings import Finding, Span
from streamlint.findings.operations import Operation
from streamlint.hazards.context import Context, span_of
from streamlint.hazards.repetition import Repetition, Round
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.attributes import attribute_sites
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer

RULE = EventSpin
_QUERY = frozenset({"query"})
_FREE = _QUERY | {"clock"}
"""What costs no time to speak of: a query, and a look at the clock for a deadline."""
_PASSING = frozenset({op.NEXT, op.YIELD, op.APPEND})
"""What goes through several events: inside of the loop, or in a comprehension that its round runs."""
_DOING = frozenset(
    {op.CALL, op.INVOKE, op.LAUNCH, op.CONSTRUCT, op.NEW, op.NEXT, op.ENTER, op.YIELD, op.YIELD_FROM, op.AWAIT, op.DELETE, op.IMPORT}
    | {op.SET_ITEM, op.SET_DEREF, op.APPEND, op.PUT}
)
"""What a loop that only asks has nothing of, queries aside."""

_GET = "std::get"


class Spins:
    """Finds the loops that only ask."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.repetition = Repetition(transfer)
        self._asking: dict[Function, bool] = {}

    def find(self) -> Iterator[tuple[Site, str, str, Round]]:
        """The queries, with the library and the name of the API, and the loops that only make these."""
        for call in self.transfer.sites(_QUERY):
            yield from self._around(Site(call.function, call.instruction), call.row.library, call.name)
        for site, row, name in attribute_sites(self.transfer, _QUERY):
            yield from self._around(site, row.library, name)

    def _around(self, query: Site, library: str, name: str) -> Iterator[tuple[Site, str, str, Round]]:
        for around in self.repetition.of(query.function, query.instruction):
            asked = around.calls[0].instruction if around.calls else query.instruction
            code = around.function.code
            inside = [one for block in sorted(around.loop.body) for one in code.blocks[block]]
            if not all(self._only_asks(around.function, one) or self._is_of_inner(around, one) for one in inside):
                continue
            if self._decides(around, asked):
                yield query, library, name, around
                return

    def _is_of_inner(self, around: Round, one: Instruction) -> bool:
        """Whether an instruction brings the next event to a loop within the round."""
        return one[0] == op.NEXT and next(around.function.control.around(around.function.blocks[one])).header != around.loop.header

    def _only_asks(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction is a query, or nothing that takes time."""
        if one[0] in (op.ITEM, op.DEREF) or self._takes(function, one):  # an event, the status of an answer, data that the loop works on
            is_status = one[0] in (op.ITEM, op.DEREF) and self._is_answer(function, one[3])
            return is_status or all(use[0] in (op.CALL, op.INVOKE, op.REBIND) for use in function.uses[one[2]])
        if one[0] not in _DOING:
            return True
        if one[0] == op.APPEND:
            return self._is_answer(function, one[3])
        if one[0] not in (op.CALL, op.INVOKE):
            return False
        edges = self.transfer.edges(function, one)
        if edges:
            return all(edge.is_followed and not edge.is_higher_order and self._asks(edge.callee) for edge in edges)
        calls = list(self.transfer.modelled(function, one))
        return bool(calls) and all(self._is_free(function, call) for call in calls)

    def _is_free(self, function: Function, call: ModelledCall) -> bool:
        """Whether a call asks or looks at the clock, or says of several answers whether all are, or one is."""
        return call.row.effect in _FREE or (
            call.row.effect == "read" and bool(call.operands) and all(self._is_answer(function, register) for register in call.operands)
        )

    def _is_answer(self, function: Function, register: int) -> bool:
        """Whether a value is what a query gives, or the answers that a comprehension gathers."""
        made = function.definitions[register] if register >= 0 else None
        if made is not None and made[0] == op.BUILD:
            return any(use[0] == op.APPEND and self._is_answer(function, use[3]) for use in function.uses[register])
        return made is not None and made[0] in (op.CALL, op.INVOKE) and self._only_asks(function, made)

    def _takes(self, function: Function, one: Instruction) -> bool:
        """C++: whether a call looks an element of a container up, and no more: ``events.back()``, ``std::get<0>(parts)``."""
        if not function.is_cpp or self.transfer.edges(function, one):
            return False
        return function.invokes(one, "takes-element", "looks-into", "ends") or (one[0] == op.CALL and function.dotted(one[3]) == _GET)

    def _asks(self, function: Function) -> bool:
        """Whether a function asks, and does nothing else."""
        found = self._asking.get(function)
        if found is None:
            self._asking[function] = False
            passing = _PASSING if function.is_generator else frozenset[int]()
            found = all(one[0] in passing or self._only_asks(function, one) for one in function.code.instructions())
            self._asking[function] = found
        return found

    def _decides(self, around: Round, asked: Instruction) -> bool:
        """Whether the loop ends by the answer to its query."""
        code = around.function.code
        tests = [code.blocks[block][-1] for block, _ in around.loop.exits]
        return any(one == asked for test in tests if test[0] == op.BRANCH for one in behind(around.function, [test[2]], op.reads))


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    rule = RULE()
    seen: set[Span] = set()
    for query, library, name, around in Spins(context.transfer).find():
        head = span_of(around.begin)
        if head not in seen:
            seen.add(head)
            spin = Operation(head, library, name.replace("::", "."), context=context.surroundings(around.function))
            yield rule.report(spin, span_of(query))
