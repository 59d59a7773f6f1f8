"""SL036: events whose handle is given away for another process, and that end with the function that made them.

A handle is good for as long as its event lives: what outlives the event is never good. A handle that is returned or kept is opened
later; one that is sent may have been opened if the sender has waited for anybody since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import uncopied
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import Selector
from streamlint.ordering.paths.peers import Peers
from streamlint.ordering.places.places import POINTEE, Place, Places, cell_of
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.waits.operands import operand_of
from streamlint.waits.questions import parts_of

RETURNED, KEPT, SENT, UNKNOWN = "returned", "kept", "sent", "unknown"
_DEEPEST = 6
_ASKED = frozenset({op.BIND, op.COMPARE, op.UNARY, op.BRANCH, op.DESTROY, op.EXIT, op.FORMAT, op.UNBIND})
"""What keeps no reference to what it reads."""
_PASSED = frozenset({op.COPY, op.PHI, op.CAST, op.REBIND})
_GATHERED = frozenset({op.BUILD, op.DICT, op.BINARY, op.INPLACE, op.FORMAT, op.SLICE, op.ITEM, op.UNPACK, op.ATTR})
"""What is made of a handle, or holds it."""
_HARMLESS = frozenset({"record", "wait", "synchronize", "query", "elapsed"})


class Made(NamedTuple):
    """An event by the function that owns it: where it is made, and the calls that lead from its owner to the function that exports it."""

    owner: Function
    site: Site
    made: Instruction  # of the owner, whose result is the event
    calls: tuple[Site, ...]


class Given(NamedTuple):
    """Where a handle goes, and how."""

    site: Site
    how: str


class Export(NamedTuple):
    """A handle of an event that ends too early. ``ended`` is the call that destroys it; None where it ends with its function."""

    call: ModelledCall
    made: Site
    given: Given
    ended: Site | None


class ExportedEvents:
    """Finds the exported events of a program that end before anybody can have opened their handles."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.places = transfer.one_of(Places, transfer.facts)
        self.peers = Peers(transfer)

    def find(self) -> Iterator[Export]:
        """The exports of the program."""
        for call in self.transfer.sites({"unknown"}, where=lambda row: row.get("exports") is not None):
            event = call.one("exports")
            if event is not None and event >= 0:
                found = self._destroyed(call, event) if call.function.is_cpp else self._dropped(call, event)
                if found is not None:
                    yield found

    # --- Python: the last reference goes

    def _dropped(self, call: ModelledCall, event: int) -> Export | None:
        function = call.function
        givens = list(dict.fromkeys(self._given(function, call.result, 0)))
        if not givens or any(given.how == UNKNOWN for given in givens):
            return None
        asked = function.definitions[event]
        if asked is not None and asked[0] == op.ATTR:  # its handle in this process
            event = asked[3]
        for register in self.transfer.shared(function, event):
            for made in self._made(function, register, (), 0):
                given = next((each for each in givens if self._outlives(each, made, made.calls)), None)
                if given is not None:
                    return Export(call, made.site, given, None)
        return None

    def _outlives(self, given: Given, made: Made, calls: tuple[Site, ...]) -> bool:
        """Whether a handle goes where it may be opened once the event is gone. ``calls`` lead to its function from the event's owner."""
        if given.how == RETURNED and calls:
            site = calls[-1]
            onward = list(self._given(site.function, site.instruction[2], 0))
            is_known = all(each.how != UNKNOWN for each in onward)
            return is_known and any(self._outlives(each, made, calls[:-1]) for each in onward)
        if given.how == RETURNED:
            return True
        return all(self.peers.may_end_alone(site, made.made if site.function is made.owner else None) for site in (given.site, *calls))

    def _made(self, function: Function, register: int, calls: tuple[Site, ...], depth: int) -> Iterator[Made]:
        """Where an event is made that a register holds, by functions that let go of it when they end."""
        one = uncopied(function, register)
        if one is None or depth > _DEEPEST or self._escapes(function, one[2], 0):
            return
        if one[0] == op.PARAM:
            for caller, instruction in self.transfer.callers(function):
                given = operand_of(caller, instruction, function, one[3]) if instruction[0] in (op.CALL, op.INVOKE) else None
                if given is not None and given >= 0:
                    yield from self._made(caller, given, (Site(caller, instruction), *calls), depth + 1)
        elif one[0] in (op.CALL, op.INVOKE, op.UNPACK):
            site = self._maker(function, one, 0)
            if site is not None:
                yield Made(function, site, one, calls)

    def _callee(self, function: Function, call: Instruction) -> Function | None:
        """The one function of the program that a call runs."""
        edges = [edge for edge in self.transfer.edges(function, call) if edge.is_direct]
        return edges[0].callee if len(edges) == 1 else None

    def _maker(self, function: Function, one: Instruction, depth: int) -> Site | None:
        """The call that makes the event that a call gives: itself, or in a function of the program that keeps none."""
        part = one[4] if one[0] == op.UNPACK else op.NONE
        call = function.definitions[one[3]] if part != op.NONE else one
        if call is None or call[0] not in (op.CALL, op.INVOKE):
            return None
        events = [each for each in self.transfer.modelled(function, call) if each.row.effect == "event"]
        if events:  # an object, and no handle that something else destroys
            return Site(function, call) if all(self.facts.models.type_named(each.name) for each in events) else None
        callee = self._callee(function, call) if depth <= _DEEPEST else None
        inner = self._returned(callee, part) if callee is not None else None
        if callee is None or inner is None or self._escapes(callee, inner[2], 0, returned=True):
            return None
        return self._maker(callee, inner, depth + 1)

    def _returned(self, function: Function, part: int) -> Instruction | None:
        """What makes the only thing that a function returns, or a part of the tuple that it does."""
        ends = [end for end in function.by_opcode[op.RETURN] if end[2] >= 0]
        register = ends[0][2] if len(ends) == 1 else op.NONE
        built = function.definitions[register] if part != op.NONE and register >= 0 else None
        if part != op.NONE:
            register = built[4 + part] if built is not None and built[0] == op.BUILD and 4 + part < len(built) else op.NONE
        return uncopied(function, register)

    def _escapes(self, function: Function, register: int, depth: int, returned: bool = False) -> bool:
        """Whether something else than names of a function may hold what a register does. ``returned``: it may be returned."""
        seen, waiting = {register}, [register]
        while waiting:
            for use in function.uses[waiting.pop()]:
                if use[0] in _ASKED or (returned and self._is_returned(function, use)):
                    continue
                if use[0] in _PASSED or use[0] == op.ATTR:
                    fresh = {use[2]} - seen
                    seen |= fresh
                    waiting += fresh
                elif use[0] not in (op.CALL, op.INVOKE) or not self._is_lent(function, use, seen, depth):
                    return True
        return False

    def _is_returned(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction returns a value, by itself or in a tuple."""
        uses = function.uses[one[2]] if one[0] == op.BUILD else ()
        return one[0] == op.RETURN or (bool(uses) and all(use[0] == op.RETURN for use in uses))

    def _is_lent(self, function: Function, call: Instruction, registers: set[int], depth: int) -> bool:
        """Whether a call keeps nothing of what it is given."""
        modelled = list(self.transfer.modelled(function, call))
        if modelled:
            return all(one.row.effect in _HARMLESS or one.row.get("exports") is not None for one in modelled)
        edges = self.transfer.edges(function, call)
        if edges and depth < _DEEPEST:
            if not all(edge.is_direct for edge in edges):
                return False
            inner = [(edge.callee, param) for edge in edges for param in self._params(function, call, edge.callee, registers)]
            return bool(inner) and not any(self._escapes(callee, param, depth + 1) for callee, param in inner)
        is_plain = call[0] == op.CALL and self.transfer.is_of_language(function, call)
        return is_plain and not edges and not function.uses[call[2]]

    def _params(self, function: Function, call: Instruction, callee: Function, registers: Iterable[int]) -> Iterator[int]:
        """The registers of a callee's parameters for which it is given one of some registers."""
        for param in callee.by_opcode[op.PARAM]:
            given = operand_of(function, call, callee, param[3])
            if given is not None and given in registers:
                yield param[2]

    # --- Python: where a handle goes

    def _given(self, function: Function, register: int, depth: int) -> Iterator[Given]:
        """Where a value goes, and what holds it."""
        seen, waiting = {register}, [register]
        while waiting:
            held = waiting.pop()
            for use in function.uses[held]:
                onward = self._onward(function, held, use)
                if isinstance(onward, Given):
                    yield onward
                elif onward is not None:
                    waiting += {onward} - seen
                    seen.add(onward)
                elif use[0] in (op.CALL, op.INVOKE):
                    for each in self._called(function, held, use, depth):
                        if isinstance(each, Given):
                            yield each
                        elif each not in seen:
                            seen.add(each)
                            waiting.append(each)

    def _onward(self, function: Function, held: int, use: Instruction) -> Given | int | None:
        """Where an instruction that calls nothing puts a value; the register that holds it then."""
        site = Site(function, use)
        if use[0] == op.RETURN:
            return Given(site, RETURNED)
        if use[0] in _PASSED or use[0] in _GATHERED:
            return use[2]
        if use[0] in (op.SET_ATTR, op.SET_ITEM) and use[4] == held:
            return self._holder(function, use[2], site)
        if use[0] in _ASKED or use[0] in (op.CALL, op.INVOKE, op.SET_ATTR, op.SET_ITEM, op.ITER):
            return None
        return Given(site, UNKNOWN)

    def _holder(self, function: Function, register: int, site: Site) -> Given | int:
        """What is put into an object: it goes with that, if the function has made it; else it is kept."""
        one = uncopied(function, register)
        is_own = one is not None and one[0] in (op.BUILD, op.DICT, op.CALL)
        return register if is_own else Given(site, KEPT)

    def _called(self, function: Function, held: int, call: Instruction, depth: int) -> Iterator[Given | int]:
        """Where a call leaves what it is given."""
        site, modelled = Site(function, call), list(self.transfer.modelled(function, call))
        if any(one.row.effect == "put" for one in modelled):
            yield Given(site, SENT)
            return
        edges = [edge for edge in self.transfer.edges(function, call) if edge.is_direct]
        if len(edges) == 1 and not edges[0].is_guess and depth < _DEEPEST:
            yield from self._inside(function, held, call, edges[0].callee, depth)
        elif (
            call[0] == op.INVOKE
            and function.text(call[4]) in function.known("puts", "extends", "puts-if-absent")
            and held != call[3]
            and self.transfer.is_of_language(function, call)
        ):
            yield self._holder(function, call[3], site)
        elif self.transfer.is_of_language(function, call) or (call[0] == op.INVOKE and call[3] == held) or self._is_record(function, call):
            yield call[2]
        else:
            yield Given(site, UNKNOWN)

    def _is_record(self, function: Function, call: Instruction) -> bool:
        """Whether a call makes a plain record of what it is given."""
        return bool(self.places.records.of(function, call))

    def _inside(self, function: Function, held: int, call: Instruction, callee: Function, depth: int) -> Iterator[Given | int]:
        params = list(self._params(function, call, callee, {held}))
        if not params:
            yield Given(Site(function, call), UNKNOWN)
        for param in params:
            for each in self._given(callee, param, depth + 1):
                if each.how == RETURNED or (each.how == KEPT and callee.code.name == "__init__"):
                    yield call[2]
                elif each.how in (SENT, KEPT) and self.peers.may_end_alone(each.site, None):
                    yield Given(Site(function, call), each.how)
                elif each.how == UNKNOWN:
                    yield each

    # --- C++: the event is destroyed

    def _destroyed(self, call: ModelledCall, event: int) -> Export | None:
        function = call.function
        into = call.row.get("into")
        target = call.given(Selector("argument", into.position)) if isinstance(into, Selector) else None
        given = self._given_in_cpp(function, call, target) if target is not None else None
        place = self.places.of(function, event)
        creation = next((site for site in self._events_of(function, place)), None)
        if given is None or creation is None:
            return None
        for end in self._ends(function, place):
            if self.peers.comes_alone(Site(function, call.instruction), end) and not self._is_failure(call, end):
                return Export(call, creation, given, Site(function, end))
        return None

    def _is_failure(self, call: ModelledCall, end: Instruction) -> bool:
        """Whether an event is destroyed because of what the export has returned."""
        function = call.function
        branches = [function.code.blocks[block][-1] for block, _ in function.control.controlled_by[function.homes[end][0]]]
        return any(one == call.instruction for branch in branches for one in parts_of(function, [branch[2]]))

    def _given_in_cpp(self, function: Function, call: ModelledCall, target: int) -> Given | None:
        """A handle that is written where the caller finds it, returned, or sent."""
        place = self.places.of(function, target).behind(POINTEE)
        if place.root[0] in ("parameter", "global", "this"):
            return Given(Site(function, call.instruction), KEPT)
        for end in function.by_opcode[op.RETURN]:
            if end[2] >= 0 and self.places.of(function, end[2]).root == place.root:
                return Given(Site(function, end), RETURNED)
        sent = next(self._sends(function, place, 0), None)
        return Given(Site(function, sent), SENT) if sent is not None else None

    def _sends(self, function: Function, place: Place, depth: int) -> Iterator[Instruction]:
        """C++: the calls that send what is at a place, by themselves or in a function that they hand it to."""
        for one in (*function.by_opcode[op.CALL], *function.by_opcode[op.INVOKE]):
            if not any(self._is_at(function, register, place) for register in op.reads(one) if register >= 0):
                continue
            puts = [call for call in self.transfer.modelled(function, one) if call.row.effect == "put"]
            if any(self._is_at(function, register, place) for call in puts for register in call.all("of") if register >= 0):
                yield one
            for edge in self.transfer.edges(function, one) if depth < _DEEPEST else ():
                inner = self._inner(function, one, edge.callee, place) if edge.is_direct else ()
                yield from (one for each in inner for _ in self._sends(edge.callee, each, depth + 1))

    def _inner(self, function: Function, call: Instruction, callee: Function, place: Place) -> Iterator[Place]:
        """C++: where a function that a call enters has what is at a place."""
        for param in callee.by_opcode[op.PARAM]:
            given = operand_of(function, call, callee, param[3])
            if given is not None and given >= 0 and self._is_at(function, given, place):
                yield from _places_of(callee, param)

    def _is_at(self, function: Function, register: int, place: Place) -> bool:
        """C++: whether a register holds what is at a place, or a pointer to it."""
        held = self.places.of(function, register)
        return place in (held, held.behind(POINTEE))

    def _events_of(self, function: Function, place: Place) -> Iterator[Site]:
        for one in function.by_opcode[op.CALL]:
            for call in self.transfer.modelled(function, one):
                into = call.row.get("into")
                if call.row.effect == "event" and isinstance(into, Selector) and into.kind == "pointee":
                    register = call.given(Selector("argument", into.position))
                    if register is not None and self.places.of(function, register).behind(POINTEE) == place:
                        yield Site(function, one)

    def _ends(self, function: Function, place: Place) -> Iterator[Instruction]:
        for opcode in CALLING:
            for one in function.by_opcode[opcode]:
                for call in self.transfer.modelled(function, one) if one[0] in (op.CALL, op.INVOKE) else ():
                    register = call.one("of") if call.row.effect == "destroy" else None
                    if register is not None and self.places.of(function, register) == place:
                        yield one


def _places_of(function: Function, param: Instruction) -> Iterator[Place]:
    """C++: where a function has a parameter, what that points to, and a variable that it is copied to."""
    yield from (Place(("parameter", param[3])), Place(("parameter", param[3]), (POINTEE,)))
    yield from (cell_of(function, one[2]) for one in function.by_opcode[op.STORE] if one[3] == param[2])
