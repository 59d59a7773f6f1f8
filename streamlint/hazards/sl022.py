"""SL022: a small tensor that is new in each round is pinned for a single copy."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property

from streamlint.checks.sl022_pin_then_copy import PinThenCopy
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Memory, Site
from streamlint.findings import Finding, Step
from streamlint.findings.operations import Copy, Direction
from streamlint.hazards.context import Context, span_of
from streamlint.hazards.repetition import DEEPEST, Repetition, Round
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.actions import Copied, Written
from streamlint.transfer.host_copies import COPYING, HostCopies, HostCopy
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.origin import Origin
from streamlint.transfer.origins import Origins
from streamlint.transfer.sizes import Size, Sizes

RULE = PinThenCopy
_COPYING = COPYING - {"module_to"}
"""What copies memory that may have been pinned: modules are moved as they were made."""
_THERE = frozenset({op.PARAM, op.ATTR, op.NAME, op.LOAD})
"""What a function has not made itself."""


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    search = _Search(context)
    reported: set[Site] = set()
    for call in context.transfer.sites(_COPYING, where=lambda row: row.get("to") != "host") if search.pinning else ():
        site = Site(call.function, call.instruction)
        if site not in reported and search.may_be_pinned(call) and search.is_near_pinning(call.function):
            for copy in search.copies.of(call):
                made = search.made(copy)
                if made is not None and site not in reported:
                    reported.add(site)
                    yield search.report(copy, *made)


class _Search:
    """Judges the copies of a program."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.origins = context.transfer.one_of(Origins, context.transfer)
        self.sizes = context.transfer.one_of(Sizes, self.origins)
        self.copies = context.transfer.one_of(HostCopies, self.origins)
        self.repetition = Repetition(context.transfer)
        self._found: dict[Site, dict[Function, set[Instruction]]] = {}
        self._near: dict[Function, bool] = {}

    @cached_property
    def pinning(self) -> frozenset[Function]:
        """The functions from which calls lead to what has the name of a function that pins."""
        candidates = self.context.transfer.candidates
        pins = [*candidates(frozenset({"pin"})), *candidates(frozenset({"factory"}), "pin")]
        return frozenset(function for place in pins for function in self._ways(Site(*place)))

    def may_be_pinned(self, call: ModelledCall) -> bool:
        """Whether the program facts know of pinned memory that a call is given: what they do not know of comes from no pinning in view."""
        values = (value for register in call.operands for value in self.context.transfer.values(call.function, register))
        return any(isinstance(value, Memory) and value.pinning == "pinned" for value in values)

    def is_near_pinning(self, function: Function) -> bool:
        """Whether one function leads to another one and to pinning: else they share no round and no call.

        So it is known of most copies, before anybody asks where their memory comes from, that they are none of this rule's.
        """
        above = {function: None}
        waiting = [function]
        for one in waiting:
            if one in self.pinning or self._near.get(one):
                self._near[function] = True
                return True
            callers = () if one in self._near else dict.fromkeys(caller for caller, _ in self.context.transfer.callers(one))
            waiting += (caller for caller in callers if caller not in above)
            above.update(dict.fromkeys(callers))
        self._near.update(dict.fromkeys(above, False))
        return False

    def made(self, copy: HostCopy) -> tuple[Origin, Size] | None:
        """The new memory that was pinned for a copy alone, in the round of the copy; None where it is another kind of copy."""
        origin, call = copy.origin, copy.call
        pinned = origin.site
        source, filling = self._source(origin) if copy.direction == "h2d" else (op.NONE, ())
        if pinned is None or source < 0:
            return None
        copying = self._ways(Site(call.function, call.instruction))
        copying = {**copying, pinned.function: {*copying.get(pinned.function, ()), *filling}}
        if self._is_elsewhere(call.function) or call.function.code.name == "__init__" or self._is_used(pinned, copying):
            return None
        for made in self.origins.of(pinned.function, source, origin.known.context):
            size = self.sizes.of(made)
            if made.site is not None and (size.bytes is None or size.is_small) and self._is_new(made.site, pinned, copy):
                return made, size
        return None

    def _source(self, origin: Origin) -> tuple[int, tuple[Instruction, ...]]:
        """The register of what was pinned, in the function that did, and what copies it into pinned memory that was made for it."""
        site = origin.site
        if site is None or site.function.is_cpp:
            return op.NONE, ()
        if origin.how == "pinned":
            return site.instruction[3] if site.instruction[0] == op.INVOKE else op.NONE, ()
        if origin.how != "factory" or origin.pinning != "pinned":
            return op.NONE, ()
        new, found = site.instruction[2], dict[Instruction, int]()
        for use in site.function.uses[new]:
            if use[0] == op.SET_ITEM and use[2] == new:
                found[use] = use[4]
            for call in self.context.transfer.modelled(site.function, use) if use[0] in (op.CALL, op.INVOKE) else ():
                if call.row.effect == "copy" and call.one("dst") == new and (source := call.one("src")) is not None:
                    found[use] = source
        return next(iter(found.values()), op.NONE) if len(found) == 1 else op.NONE, tuple(found)

    def _ways(self, site: Site) -> dict[Function, set[Instruction]]:
        """By function: the place itself, and the calls that lead to it."""
        found = self._found.get(site)
        if found is None:
            found = self._found[site] = {}
            waiting = [(site, 0)]
            for each, depth in waiting:
                known = found.setdefault(each.function, set())
                if each.instruction not in known and depth <= DEEPEST:
                    known.add(each.instruction)
                    waiting += [(Site(*place), depth + 1) for place in self.context.transfer.callers(each.function)]
        return found

    def _is_new(self, made: Site, pinned: Site, copy: HostCopy) -> bool:
        """Whether memory is made, pinned and copied in one round of a loop, or in one call of a function that is called repeatedly."""
        if _taken_from(made).instruction[0] in _THERE:
            return False
        site = Site(copy.call.function, copy.call.instruction)
        before = [self._ways(made), self._ways(pinned)]
        rounds: list[Round] = []
        for each in self.repetition.of(*site):
            if any(each.calls[len(each.calls) - len(inner.calls) :] == inner.calls for inner in rounds):
                continue  # it is around a loop that was looked at
            inside = [_holds(each, ways) for ways in before]
            if all(inside):
                return True
            if not inside[1] and not _goes_through(each, copy):
                rounds.append(each)  # what was pinned once may be copied in each round
        shared = [function for function in self._ways(site) if all(function in ways for ways in before)]
        return not rounds and any(map(self._is_called_for_it, shared))

    def _is_called_for_it(self, function: Function) -> bool:
        """Whether the function is an object's ``__call__``: such an object was made to be called repeatedly."""
        owner, name = function.owner, function.code.name
        if owner is None:
            return False
        return name == "__call__" or (name == "forward" and "torch.nn.Module" in self.context.facts.hierarchy.libraries(owner))

    def _is_elsewhere(self, function: Function, depth: int = DEEPEST) -> bool:
        """Whether a thread runs a function, or what calls it."""
        transfer = self.context.transfer
        places = self.context.facts.call_places(function) if depth else ()
        edges = [(caller, edge) for caller, call in places for edge in transfer.edges(caller, call) if edge.callee is function]
        if any(edge.is_elsewhere for _, edge in edges):
            return True
        callers = {caller for caller, edge in edges if edge.is_followed and caller is not function}
        return bool(callers) and all(self._is_elsewhere(caller, depth - 1) for caller in callers)

    def _is_used(self, pinned: Site, copying: Mapping[Function, Collection[Instruction]]) -> bool:
        """Whether what was pinned is kept, or copied or changed elsewhere."""
        transfer, function = self.context.transfer, pinned.function
        for one in function.uses[pinned.instruction[2]]:
            if one in copying.get(function, ()):
                continue
            if one[0] in (op.SET_ATTR, op.SET_ITEM):
                return True
            if any(isinstance(action, (Copied, Written)) for action in transfer.of(function, one)):
                return True
        return False

    def report(self, copy: HostCopy, made: Origin, size: Size) -> Finding:
        """A copy as a finding."""
        call, pinned = copy.call, copy.origin.site
        assert made.site is not None
        assert pinned is not None
        operation = Copy(
            span_of(Site(call.function, call.instruction)),
            call.row.library,
            call.name,
            context=self.context.surroundings(call.function),
            direction=Direction.H2D,
            nbytes=size.bytes,
        )
        trail = (Step("allocated in pageable host memory here", span_of(made.site)), Step("pinned here", span_of(pinned)))
        return RULE().report(operation, trail)


def _holds(each: Round, ways: Mapping[Function, Collection[Instruction]]) -> bool:
    """Whether a loop holds one of the ways to a place."""
    homes = each.function.blocks
    return any(homes[one] in each.loop.body for one in ways.get(each.function, ()))


def _goes_through(each: Round, copy: HostCopy) -> bool:
    """Whether a loop goes through what is copied, one by one."""
    function, register = copy.call.function, copy.host
    one = function.definitions[register] if register >= 0 else None
    while one is not None and one[0] in (op.UNPACK, op.ITEM):
        one = function.definitions[one[3]]
    return one is not None and one[0] == op.NEXT and function is each.function and function.blocks[one] in each.loop.body


def _taken_from(made: Site) -> Site:
    """Where that comes from of which an element was taken."""
    one: Instruction | None = made.instruction
    while one is not None and one[0] == op.ITEM:
        made = Site(made.function, one)
        one = made.function.definitions[one[3]]
    return Site(made.function, one) if one is not None else made
