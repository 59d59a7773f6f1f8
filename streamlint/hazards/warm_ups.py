"""What a capture finds made already: an operation that runs once, or once for each request, and that an earlier call has run."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind, behind_copies, unnegated
from streamlint.facts.code.objects import Site
from streamlint.hazards.every_round import EveryRound
from streamlint.hazards.kept_sizes import root_place
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.captures.capture_walk import Refused
from streamlint.ordering.places.leading import leads_to
from streamlint.ordering.places.places import OWN, Place, Places
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.work import is_stream
from streamlint.waits.operands import argument_registers, operand_of
from streamlint.waits.questions import alike, conditions

_DEEPEST = 3
_MOST_CALLERS = 8
_CALLS = (op.CALL, op.INVOKE)
Names = frozenset[Place]


class WarmUps:
    """Answers for what captures refuse."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.places = transfer.one_of(Places, transfer.facts)
        self.rounds = transfer.one_of(EveryRound, transfer, self.places)
        self.requests = SameRequests(transfer, self.rounds)

    def has_run(self, refused: Refused) -> bool:
        """Whether a call before a capture has run a refused operation that runs once, or made the same request of one."""
        chain = (*refused.calls, refused.site)
        begin = refused.capture.begin
        if chain[0].function is not begin.function or len(chain) < 2:
            return False
        return self._has_run_once(chain, begin) or self._has_asked(chain, begin)

    def _has_asked(self, chain: tuple[Site, ...], begin: Site) -> bool:
        """Whether an operation runs for the first request only, and its function has made the same request before the capture."""
        function, captured = chain[0]
        if not any(map(self.rounds.runs_for_first, chain[1:])):
            return False
        read = frozenset(name for site in chain[1:] for name in _members(site.function))
        before = (one for one in function.by_opcode[captured[0]] if one != captured and _precedes(function, one, begin.instruction))
        return any(self.requests.is_same(function, one, captured, read) for one in before)

    def _has_run_once(self, chain: tuple[Site, ...], begin: Site) -> bool:
        if begin.function.is_cpp:
            return False
        last = next((index for index in range(1, len(chain)) if self._runs_once(chain[index])), 0)
        return last > 0 and self._is_run_before(chain[0], chain[1].function, begin, self._hangs_on_arguments(chain[1 : last + 1]), _DEEPEST)

    def _runs_once(self, site: Site) -> bool:
        """Whether an instruction runs in the first call of its function alone."""
        function, one = site
        if function.keeps_results:
            return True
        asked = self.rounds.body(function).conditions
        for guard, after in function.control.controlled_by[function.blocks[one]]:
            end = function.code.blocks[guard][-1]
            register, is_turned = unnegated(function, end[2]) if end[0] == op.BRANCH else (op.NONE, False)
            if register >= 0 and asked.happens_once(register, after, (after == end[4]) != is_turned):
                return True
        return False

    def _hangs_on_arguments(self, sites: tuple[Site, ...]) -> bool:
        """Whether the arguments of calls decide if an instruction is reached by them."""
        if (kept := sites[-1].function).keeps_results and len(kept.code.parameters) > int(kept.has_receiver):
            return True
        for function, one in sites:
            asked = [register for register, _ in conditions(function, function.blocks[one])]
            for each in behind(function, asked, op.reads):
                if each[0] == op.PARAM and not (each[3] == 0 and function.has_receiver):
                    return True
        return False

    def _is_run_before(self, call: Site, callee: Function, before: Site, is_strict: bool, depth: int) -> bool:
        """Whether a call has an equal one before an instruction of its function, or before all calls of that.

        ``is_strict``: its arguments are equal too.
        """
        wanted = self._operands(call, is_strict)
        return wanted is not None and self._is_met(wanted, before, callee, depth)

    def _is_met(self, wanted: list[Names], before: Site, callee: Function, depth: int) -> bool:
        function = before.function
        for earlier in self._calls(function):
            if _precedes(function, earlier, before.instruction) and self._leads(Site(function, earlier), callee, wanted, depth):
                return True
        callers = [Site(*each) for each in self.transfer.callers(function)] if depth else []
        if not 0 < len(callers) <= _MOST_CALLERS:
            return False
        above = [(site, [self._above(function, site, names) for names in wanted]) for site in callers]
        return all(all(names) and self._is_met(names, site, callee, depth - 1) for site, names in above)

    def _leads(self, call: Site, callee: Function, wanted: list[Names], depth: int) -> bool:
        """Whether a call runs a function for some operands, by itself or through another function."""
        edges = [edge.callee for edge in self.transfer.edges(*call) if edge.is_followed and not edge.is_guess]
        if callee in edges:
            given = self._operands(call, len(wanted) > 1)
            return given is not None and len(given) == len(wanted) and all(map(frozenset.intersection, given, wanted))
        for inner in edges if depth else ():
            for each in self._calls(inner):
                if any(edge.callee is callee for edge in self.transfer.edges(inner, each)):
                    given = self._operands(Site(inner, each), len(wanted) > 1) or []
                    outer = [self._above(inner, call, names) for names in given]
                    if len(outer) == len(wanted) and all(map(frozenset.intersection, outer, wanted)):
                        return True
        return False

    def _calls(self, function: Function) -> Iterator[Instruction]:
        for opcode in _CALLS:
            yield from function.by_opcode[opcode]

    def _operands(self, call: Site, is_strict: bool) -> list[Names] | None:
        """The names of what a call calls, and of its arguments if these matter."""
        function, one = call
        if one[0] not in _CALLS:
            return None
        given = [register for _, register in argument_registers(function, one)] if is_strict else []
        called = function.text(one[4]) if one[0] == op.INVOKE else ""
        names = [place.behind(called) if called else place for place in self.places.names(function, one[3])]
        return [frozenset(names), *(frozenset(self.places.names(function, register)) for register in given)]

    def _above(self, function: Function, call: Site, names: Names) -> Names:
        """The names that a caller has for what stands at some places of a function that it calls."""
        found: set[Place] = set()
        for place in names:
            if place.root[0] == "parameter" and isinstance(place.root[1], int):
                given = operand_of(*call, function, place.root[1]) if call.instruction[0] in _CALLS else None
                outer = self.places.names(call.function, given) if given is not None and given >= 0 else ()
                found.update(name.behind(*place.path) for name in outer)
            elif place.root[0] == "global":
                found.add(place)
        return frozenset(found)


def _precedes(function: Function, first: Instruction, second: Instruction) -> bool:
    """Whether an instruction has run before another one, or a loop around it that has ended then."""
    block, graph = function.blocks[second], function.control
    around = (loop for loop in graph.around(function.blocks[first]) if block not in loop.body)
    return function.runs_before(first, second) or any(graph.dominates(loop.header, block) for loop in around)


class SameRequests:
    """Compares what two calls of a function ask for."""

    def __init__(self, transfer: Transfer, rounds: EveryRound) -> None:
        self.transfer = transfer
        self.places = rounds.places
        self.sizes = rounds.sizes

    def _callees(self, function: Function, one: Instruction) -> set[Function]:
        return {edge.callee for edge in self.transfer.edges(function, one) if edge.is_followed}

    def is_same(self, function: Function, one: Instruction, captured: Instruction, members: frozenset[str]) -> bool:
        """Whether two calls ask one object for the same, and nothing that they read is set in between: of their callees some members."""
        if not self._are_alike(function, one, captured):
            return False
        read = [OWN, *(self.places.of(function, register) for register in op.reads(captured) if register >= 0)]
        between = list(self._set_between(function, one, captured))
        return not any(_is_read(target, place, members) for target in between for place in read)

    def _are_alike(self, function: Function, one: Instruction, other: Instruction) -> bool:
        """Whether two calls enter the same functions and ask for the same."""
        entered, asked = self._callees(function, one), self._asked(function, one)
        return entered == self._callees(function, other) and asked == self._asked(function, other)

    def _asked(self, function: Function, one: Instruction) -> list[object]:
        """What a call asks for, and of which object. A stream is no part of it."""
        given: list[tuple[object, int]] = list(argument_registers(function, one))
        registers = [("receiver", one[3]), *given] if one[0] == op.INVOKE else given
        return [(kind, self._said(function, register)) for kind, register in registers]

    def _said(self, function: Function, register: int) -> object:
        if register < 0 or is_stream(self.transfer.values(function, register)):
            return None
        return alike(function, behind_copies(function, register))

    def _set_between(self, function: Function, first: Instruction, second: Instruction) -> Iterator[Place]:
        """The places that may be set behind one call and before another one; a call like these sets nothing new."""
        for one in function.code.instructions():
            if one in (first, second) or not (leads_to(function, first, one) and leads_to(function, one, second)):
                continue
            yield from (place for place, _ in self.sizes.assigned_at(function, one))
            if one[0] in (op.CALL, op.INVOKE) and not self._are_alike(function, one, second):
                yield from (place for place, _ in self.sizes.assigned(function, one))
            if one[0] == op.INVOKE and not self.transfer.edges(function, one) and not function.invokes(one, "looks-into"):
                yield root_place(self.places.of(function, one[3]))


def _members(function: Function) -> Iterator[str]:
    """The members that a function reads."""
    yield from (function.text(one[4]) for one in function.by_opcode[op.ATTR])
    yield from (function.text(one[3]) for one in function.by_opcode[op.NAME])


def _is_read(target: Place, place: Place, members: frozenset[str]) -> bool:
    """Whether what is set is a place that a call is given, what holds it, or a member of it that the call reads."""
    if target.root != place.root:
        return False
    holder, inner = root_place(place).path, target.path
    return holder[: len(inner)] == inner or (inner[: len(holder)] == holder and inner[-1] in members)
