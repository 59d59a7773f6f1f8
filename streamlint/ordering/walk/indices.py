"""Memory in containers that functions share: by an index as each function names it, arguments being parameters, parts of tuples too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import External, Memory, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.states import State
from streamlint.ordering.paths.turns import Turns
from streamlint.ordering.places.constant_indices import by_parameters
from streamlint.ordering.places.flow import BUFFER, EXACT, Tracked
from streamlint.ordering.places.places import Element, Place
from streamlint.ordering.places.rotation import EARLIER
from streamlint.ordering.walk.updating import Updating
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import argument_registers, operand_of
from streamlint.waits.questions import Key, alike

MADE_WITH = "made with"
_SHARED = ("global", "cell")
_DEEPEST = 3


class Indexed(Updating):
    """Follows memory into and out of functions that look it up by an index."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.turns = Turns()
        self._site: Site

    # --- indices

    def _keys(self, caller: Function, call: Instruction, callee: Function, is_down: bool) -> dict[Key, Element]:
        """What indices of one function are called in the other; an attribute of memory is what the memory was made with."""
        found = super()._keys(caller, call, callee, is_down)
        for param in callee.by_opcode[op.PARAM] if call[0] in (op.CALL, op.INVOKE) else ():
            asked = [use for use in callee.uses[param[2]] if use[0] == op.ATTR and not (callee.has_receiver and param[3] == 0)]
            register = operand_of(caller, call, callee, param[3]) if asked else None
            for use in asked if register is not None and register >= 0 else ():
                made, inner = self._made_with(caller, register or 0, callee.text(use[4])), alike(callee, use[2])
                if made is not None:
                    found.update({made: Element(inner)} if is_down else {inner: Element(made)})
        return found

    def _made_with(self, function: Function, register: int, name: str) -> Key | None:
        """What the memory in a register was given as an argument of some name where it was made, a type of elements for example."""
        one = function.definitions[register]
        node = self.facts.values(function, register)
        memory = [value for value in node.values if isinstance(value, Memory)]
        if one is None or one[0] in (op.PARAM, op.PHI) or len(memory) != 1:
            return None
        for site in list(node.trace(memory[0]))[-1:]:
            made = argument_registers(site.function, site.instruction) if site.instruction[0] in (op.CALL, op.INVOKE) else ()
            for kind, given in made:
                values = [value for value in self.transfer.values(site.function, given) if kind == name]
                if len(values) == 1 and isinstance(values[0], External):
                    return MADE_WITH, values[0].name
        return None

    def _rekeyed(self, held: Tracked, keys: dict[Key, Element]) -> Tracked:
        """Indices are renamed part by part; one that goes round means the same slot again, whichever function uses it."""
        lasting: dict[Key, Element] = {}
        names: dict[object, object] = {key: element.key for key, element in keys.items()}
        for key in held.place.path if held.kind in EXACT else ():
            if is_named(key) and isinstance(key, Element) and isinstance(key.key, tuple):
                known = renamed(key.key, names)
                if known is not None:
                    lasting[key.key] = Element(known)
                elif self.turns.returns(self._site.function, key.key):
                    lasting[key.key] = key
        return super()._rekeyed(held, {**keys, **lasting})

    def _given(self, state: State, one: Instruction, callee: Function) -> frozenset[Tracked]:
        """What containers of modules and closures hold is renamed as well; what a constant leads to, the parameter that it is leads to."""
        found = super()._given(state, one, callee)
        function = state.frame.function
        keys = self.keys(function, one, callee, is_down=True)
        shared = {held for held in found if held.place.root[0] in _SHARED and held.kind in EXACT and held.place.path}
        known = {self._rekeyed(held, keys) for held in shared}
        constants = self.constants(function, one, callee)
        return frozenset((found - shared).union(known, *(by_parameters(held, constants) for held in known)))

    # --- functions that give out what they keep

    def known_as(self, function: Function, register: int) -> Iterable[Place]:
        return (*super().known_as(function, register), *self._returned_from(function, register))

    def _returned_from(self, function: Function, register: int) -> Iterator[Place]:
        """Where a function of the program keeps what it gives back, alone or in a tuple."""
        yield from self._given_back(function, register)
        call, path = self.origins.call_of(function, register)
        for edge in self.transfer.edges(function, call) if call is not None else ():
            for returned in edge.callee.by_opcode[op.RETURN]:
                inner = self.origins.inside(edge.callee, returned[2], path)
                if call is not None and inner is not None and inner >= 0:
                    kept = self._kept(edge.callee, inner, _DEEPEST)
                    yield from self._outward(function, call, edge.callee, kept)

    def _outward(self, function: Function, call: Instruction, callee: Function, kept: Iterable[Place]) -> Iterator[Place]:
        """Places of a callee, by the names that the function has for them that calls it."""
        keys = self.keys(function, call, callee, is_down=False)
        for place in kept:
            path = self._rekeyed(Tracked(BUFFER, place), keys).place.path
            if place.root[0] == "parameter":
                yield from (source.behind(*path) for source in self.sources(function, call, callee, int(str(place.root[1]))))
            elif place.root[0] == "global":
                yield Place(place.root, path)

    def _looked_up(self, function: Function, one: Instruction) -> Iterator[Place]:
        """The element that a method of a container looks up."""
        given = argument_registers(function, one)
        if one[0] == op.INVOKE and function.text(one[4]) in function.known("looks-up") and given:
            yield self.places.of(function, one[3]).behind(self.places.element(function, given[0][1]))

    def _kept(self, function: Function, register: int, depth: int) -> set[Place]:
        """Where a function keeps what a register holds, whichever way it came there."""
        found: set[Place] = set()
        for each in self.transfer.shared(function, register):
            one = function.definitions[each] if each >= 0 else None
            found.update(self.places.names(function, each)[1:])
            found.update(target for use in function.uses[each] for target, value in self.places.assigned(function, use) if value == each)
            if one is None or depth == 0:
                continue
            if one[0] == op.PHI:
                found |= set.intersection(*(self._kept(function, source, depth - 1) for source in one[3:]))
            elif one[0] in (op.CALL, op.INVOKE):
                found.update(self._looked_up(function, one))
                for edge in self.transfer.edges(function, one):
                    for returned in edge.callee.by_opcode[op.RETURN]:
                        kept = self._kept(edge.callee, returned[2], depth - 1) if returned[2] >= 0 else ()
                        found.update(self._outward(function, one, edge.callee, kept))
        return {place for place in found if place.root[0] in ("parameter", "global")}


def is_named(key: object) -> bool:
    """Whether a key is an expression of a known function, no constant."""
    return isinstance(key, Element) and isinstance(key.key, tuple) and key.key[:1] != (EARLIER,)


def renamed(key: object, names: Mapping[object, object]) -> object | None:
    """An index by the names of another function; None where it has none for it. Constants stay."""
    if not isinstance(key, tuple):
        return key
    if key in names:
        return names[key]
    if len(key) < 2 or key[0] == EARLIER:
        return None
    parts = tuple(renamed(part, names) for part in key)
    return None if None in parts else parts


def is_range(function: Function, key: int) -> bool:
    """Whether a key means many elements: what is stored there is copied, not held."""
    one = function.definitions[key] if key >= 0 else None
    if one is None:
        return False
    if one[0] == op.BUILD:
        return any(is_range(function, each) for each in one[4:])
    return one[0] == op.SLICE or (one[0] == op.CONST and function.unit.ir.constants[one[3]] is Ellipsis)
