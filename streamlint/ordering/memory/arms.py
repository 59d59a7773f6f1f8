"""C++: arms of branches that do not run as things are on CUDA: for memory of the host, for other devices, for an option that is off; and
those that a chain of calls never takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import uncast
from streamlint.facts.code.objects import Constant, Site
from streamlint.facts.files.cpp_scopes import scope_of
from streamlint.ir import opcodes as op
from streamlint.ordering.memory.spaces import Spaces
from streamlint.ordering.paths.decided import Link
from streamlint.support.memo import memoized
from streamlint.transfer.transfer import Transfer
from streamlint.waits.options import is_off
from streamlint.waits.questions import conditions

_EQUAL = {"==": True, "!=": False}
_KINDS = {"cpu-device": False, "absent": False, "cuda-device": True}
"""Whether a device that a constant names is one of CUDA."""
_DEEPEST = 3


class Way(Enum):
    """Whether a chain of calls is taken: as things are on CUDA, only for other devices or options that are off, or by nobody."""

    USUAL = "usual"
    ASIDE = "aside"
    NEVER = "never"


class Arms:
    """Which blocks of C++ run only where no CUDA device is meant, or for an option that no known code turns on."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.decided = Spaces(transfer)
        self._conditions: dict[tuple[Function, int], tuple[tuple[int, bool], ...]] = {}

    def way(self, first: Function, binding: Site | None, calls: Sequence[Site], last: Site, needs: Sequence[int] = ()) -> Way:
        """Whether a chain of calls leads to an instruction: of a function that is bound, over calls, to the last place. ``needs`` are the
        registers there of which one has to be on a device."""
        chain = self.decided.chain(first, binding, calls, last)
        ways = {self._of_specialisation(link) for link in chain}
        if Way.NEVER not in ways:
            ways.update(self._of_conditions(link, site) for link, site in zip(chain, (*calls, last), strict=True))
        if needs and last.function.is_cpp and all(self.decided.space(chain[-1], register) == "host" for register in needs):
            ways.add(Way.NEVER)
        return next((way for way in (Way.NEVER, Way.ASIDE) if way in ways), Way.USUAL)

    def _of_specialisation(self, link: Link) -> Way:
        """A specialisation for another device runs for that alone, unless the chain of calls names it."""
        if not link.function.is_cpp:
            return Way.USUAL
        is_chosen = self.decided.is_chosen(link)
        if is_chosen is False:
            return Way.NEVER
        owner = link.function.owner
        own = (*link.function.code.specialised, *(owner.ir.specialised if owner is not None else ()))
        meant = (self.decided.templates.meant(link.function, one) for one in own)
        kinds = (one.held[0] for one in meant if one is not None and one.kind == "constant" and isinstance(one.held, tuple))
        return Way.ASIDE if is_chosen is None and any(_KINDS.get(str(kind)) is False for kind in kinds) else Way.USUAL

    def _of_conditions(self, link: Link, site: Site) -> Way:
        """What the conditions around an instruction say."""
        key = site.function, site.function.blocks[site.instruction]
        if key not in self._conditions:
            self._conditions[key] = tuple(conditions(*key)) if site.function.is_cpp else ()
        found = Way.USUAL
        for condition, holds in self._conditions[key]:
            truth = self.decided.truth(link, condition)
            if truth is not None and truth != holds:
                return Way.NEVER
            if truth is None and self._is_aside(site.function, condition, holds):
                found = Way.ASIDE
        return found

    @memoized
    def _is_aside(self, function: Function, condition: int, holds: bool) -> bool:
        return self._sets_aside(function, condition, holds)

    def _sets_aside(self, function: Function, condition: int, holds: bool) -> bool:
        on_cuda = self._on_cuda(function, condition)
        if on_cuda is not None:
            return on_cuda != holds
        asked = self._behind_getter(function, condition)
        return is_off(self.facts, *asked, holds) or self._is_member_off(*asked, holds)

    def _is_member_off(self, function: Function, register: int, holds: bool) -> bool:
        """Whether a member of an object begins as a truth value against which no known code sets it: what Python may give does."""
        one = function.definitions[register] if register >= 0 else None
        owner = self.facts.member_of(function, function.text(one[3])) if one is not None and one[0] == op.NAME else None
        if one is None or owner is None:
            return False
        name = function.text(one[3])
        values = self.facts.values(function, register).values
        constants = {value.value for value in values if isinstance(value, Constant)}
        return constants == {not holds} and all(map(self._is_given, self._stored(owner, name)))

    def _stored(self, owner: ClassInfo, name: str) -> Iterator[tuple[Function, int]]:
        """What methods of a class set a member to."""
        yield from ((store.function, store.value) for store in owner.own_stores.get(name, ()))
        for method in (method for methods in owner.methods.values() for method in methods):
            yield from ((method, one[3]) for one in method.by_opcode[op.SET_NAME] if method.text(one[2]) == name)

    def _is_given(self, place: tuple[Function, int]) -> bool:
        """Whether a register holds a constant, or a parameter as it was given."""
        function, register = place[0], uncast(*place)
        one = function.definitions[register] if register >= 0 else None
        return one is not None and one[0] in (op.PARAM, op.CONST)

    def _on_cuda(self, function: Function, condition: int) -> bool | None:
        """Whether a condition holds for memory, or for a device, of CUDA; None where it asks for something else."""
        one = function.definitions[condition] if condition >= 0 else None
        if one is None:
            return None
        if one[0] == op.INVOKE and len(one) == 6:
            return self.decided.asking.get(function.text(one[4]))
        if one[0] == op.COMPARE and function.text(one[3]) in _EQUAL:
            kinds = {kind for register in one[4:6] if (kind := self._kind_named(function, register)) is not None}
            return kinds.pop() == _EQUAL[function.text(one[3])] if len(kinds) == 1 else None
        return None

    def _kind_named(self, function: Function, register: int) -> bool | None:
        """Whether a constant names a kind of device that is CUDA's; None where none is named."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or one[0] != op.NAME:
            return None
        words = self.facts.cpp_models.constants
        spelled, prefixes = self.facts.cpp.spellings(function.unit, scope_of(function), function.text(one[3]))
        names = (f"{prefix}::{spelled}" if prefix else spelled for prefix in (*prefixes, ""))
        return next((_KINDS[words[name]] for name in names if words.get(name) in _KINDS), None)

    def _behind_getter(self, function: Function, register: int) -> tuple[Function, int]:
        """What a call gives that does nothing but to give it: a member of an object, most often."""
        for _ in range(_DEEPEST):
            register = uncast(function, register)
            one = function.definitions[register] if register >= 0 else None
            edges = self.transfer.edges(function, one) if one is not None and one[0] in (op.CALL, op.INVOKE) else ()
            ends = edges[0].callee.by_opcode[op.RETURN] if len(edges) == 1 and edges[0].is_followed else ()
            if len(ends) != 1 or ends[0][2] < 0 or any(map(edges[0].callee.by_opcode.__getitem__, (op.CALL, op.INVOKE, op.BRANCH))):
                break
            function, register = edges[0].callee, ends[0][2]
        return function, register
