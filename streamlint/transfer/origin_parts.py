"""Where the parts of containers and of memory come from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.code.counters import iterable_of
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import uncast
from streamlint.facts.code.objects import Container, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.traits import Trait
from streamlint.transfer.contexts import Known
from streamlint.transfer.origin import DEEPEST_CALLS, Origin, Way, appended
from streamlint.transfer.origin_calls import Made
from streamlint.waits.entered import Context, entered_by, entering, is_running

_PLACES = {"first": 0, "second": 1}
_WORDS = re.compile(r"\w+")


class Parts(Made):
    """Steps back over elements, slices and what picks elements."""

    def part(self, way: Way, one: Instruction) -> Iterator[Origin]:
        """An element of a container, or a part of a tensor."""
        known, base = way.known, one[3]
        is_memory = self.holds_memory(known, base)
        members = self._members(way, one) or self._of_module(way, one)
        if members:
            for member in members:
                yield from self.walk(member)
            return
        made = self.contexts.definition(known._replace(register=base))
        is_made = made is not None and made[0] in (op.CALL, op.INVOKE, op.ATTR, op.PARAM) and one[0] == op.ITEM
        if is_memory or (is_made and self.of(known.function, base, known.context)):
            yield from self._part_of_memory(way, one)
            return
        holder = self.mapping(known.function, one)
        elements = list(self.ways_to_elements(way.at(holder), 0))
        if not elements or None in elements:
            is_given = holder != base and self.of(known.function, holder, known.context)  # a mapping that a call out of view gives
            yield from self.walk(self.viewed(way, one).at(holder)) if is_given else self.kept(way)
            return
        for each in filter(None, elements):
            yield from guarded(self.walk(each), self.said_of(each.known.function, each.known.register))

    def _members(self, way: Way, one: Instruction) -> list[Way]:
        """The ways to what a tuple or a mapping holds at one place; none where that is unknown."""
        known, base = way.known, one[3]
        if one[0] == op.UNPACK:
            made = self.contexts.definition(known._replace(register=base))
            if made is not None and made[0] == op.BUILD and one[6] == op.NONE and len(made) - 4 == one[5]:
                return [way.at(made[4 + one[4]])]
            return [way._replace(known=returned) for returned in self.returned(known, one)]
        key = known.function.constant(one[4]) if one[0] == op.ITEM else None
        return (self._entries(way.at(base), key) if isinstance(key, str) else None) or []

    def _of_module(self, way: Way, one: Instruction) -> list[Way]:
        """Of a loop over the tensors of a module, by their names or without: the way to the module."""
        function = way.known.function
        is_named = one[0] == op.UNPACK and one[4:] == (1, 2, op.NONE)
        over = iterable_of(function, function.definitions[one[3]] if is_named and one[3] >= 0 else one)
        made = function.definitions[over] if over >= 0 else None
        if made is None or made[0] != op.INVOKE or function.text(made[4]) not in self._listing:
            return []
        parts = {call.row.get("part") for call in self.calls(way.known._replace(register=over), made)}
        return [self.viewed(way, one).at(made[3])] if ("named" if is_named else "members") in parts else []

    @cached_property
    def _listing(self) -> frozenset[str]:
        """The last names of what gives the tensors of a module."""
        return self.transfer.names({"view"}, lambda row: row.get("part") in ("named", "members"))

    def _part_of_memory(self, way: Way, one: Instruction) -> Iterator[Origin]:
        known, base = way.known, one[3]
        if one[0] == op.UNPACK and self.is_beside(known, one):
            return
        if one[0] == op.ITEM and not _is_own_key(known.function, one) and self._is_gathered(known, one[4]):
            yield from self.computed(way, [base])
        elif one[0] != op.UNPACK or self.holds_memory(known, one[2]):
            yield from self.walk(self.viewed(way, one).at(base))

    def _entries(self, way: Way, key: str, depth: int = 0) -> list[Way] | None:
        """The ways to what displays hold under a key, over calls and lists that hand them on; None where another key may mean it."""
        one = self.contexts.definition(way.known)
        if one is None or depth > DEEPEST_CALLS:
            return None
        if one[0] == op.DICT:
            return _under(way, one, key)
        is_element = one[0] in (op.ITEM, op.NEXT) and not self.holds_memory(way.known, one[3])
        displays = list(self.ways_to_elements(way.at(one[3]), 0)) if is_element else self._containers(way, one) or []
        found = [self._entries(each, key, depth + 1) if each is not None else None for each in displays]
        return None if None in found else [entry for each in found for entry in each or ()]

    def mapping(self, function: Function, one: Instruction) -> int:
        """What an element is taken from: of a loop over the pairs or values of a mapping, the mapping."""
        taken: Instruction | None = one
        if one[0] == op.UNPACK and one[4] == 1 and one[5] == 2 and one[6] == op.NONE:
            taken = function.definitions[one[3]] if one[3] >= 0 else None
        if taken is None or taken[0] != op.NEXT:
            return one[3]
        over = iterable_of(function, taken)
        made = function.definitions[over] if over >= 0 else None
        trait: Trait = "gives-values" if taken is one else "gives-entries"
        return made[3] if made is not None and len(made) == 6 and function.invokes(made, trait) else one[3]

    def returned(self, known: Known, one: Instruction) -> list[Known]:
        """What a function of the program returns at the place of a tuple or list that is unpacked."""
        function, context = known.function, known.context
        made = function.definitions[one[3]] if one[3] >= 0 else None
        if one[6] != op.NONE or made is None or made[0] not in (op.CALL, op.INVOKE) or len(context) >= DEEPEST_CALLS:
            return []
        edges = [edge for edge in self.transfer.edges(function, made) if edge.is_direct]
        found: list[Known] = []
        for callee in {edge.callee: None for edge in edges if not is_running(context, function, edge.callee)}:
            for end in callee.by_opcode[op.RETURN]:
                built = callee.definitions[end[2]] if end[2] >= 0 else None
                if built is None or built[0] != op.BUILD or len(built) - 4 != one[5]:
                    return []
                found.append(Known(callee, built[4 + one[4]], entering(context, callee, Site(function, made))))
        return found

    def is_beside(self, known: Known, one: Instruction) -> bool:
        """Whether a call gives its memory at another place of the tuple that is unpacked."""
        made = known.function.definitions[one[3]] if one[3] >= 0 else None
        if made is None or made[0] not in (op.CALL, op.INVOKE):
            return False
        places = [call.row.get("result") for call in self.transfer.modelled(known.function, made)]
        return any(place in _PLACES and _PLACES[str(place)] != one[4] for place in places)

    def _is_gathered(self, known: Known, register: int, seen: frozenset[Known] = frozenset()) -> bool:
        """Whether a list, an array or a mask is the index that picks the elements: they go into new memory."""
        index = self.contexts.traced(known._replace(register=register))
        made = self.contexts.definition(index)
        if made is None or made[0] == op.SLICE or index in seen:
            return False
        if made[0] == op.BUILD:
            return index.function.kind_built(made) == "list"
        seen |= {index}
        if made[0] == op.COMPARE:
            return any(self.holds_memory(index, each) for each in made[4:6])
        if made[0] == op.ITEM and (inner := index.function.definitions[made[4]]) is not None and inner[0] == op.SLICE:
            return self._is_gathered(index, made[3], seen)
        if made[0] == op.PHI:
            return any(self._is_gathered(index, each, seen) for each in made[3:])
        if made[0] == op.PARAM and not index.function.is_cpp:
            given = self._is_given_gathered(index, made, seen)
            if given is not None:
                return given
        kinds = {value.kind for value in self.held(index, index.register) if isinstance(value, Container)}
        return "list" in kinds or self.holds_memory(index, index.register)

    def _is_given_gathered(self, known: Known, parameter: Instruction, seen: frozenset[Known]) -> bool | None:
        """Whether a parameter is such an index, by its annotation, or because a caller gives one; None where neither tells."""
        words = _WORDS.findall(known.function.code.parameters[parameter[3]].annotation or "")
        if words:
            return not self.facts.models.known("list-type").isdisjoint(words[:2] + words[-3:]) and "tuple" not in words
        return any(self._is_gathered(each, each.register, seen) for each in self._arguments(known, parameter)) or None

    def _arguments(self, known: Known, parameter: Instruction) -> Iterator[Known]:
        """What callers give for a parameter."""
        for caller, one in self.transfer.callers(known.function):
            given = self.contexts.given(known.function, parameter, Site(caller, one))
            if given is not None and given[0] is caller:
                yield Known(given[0], given[1], known.context)

    def ways_to_elements(self, way: Way, depth: int, seen: set[tuple[Function, int]] | None = None) -> Iterator[Way | None]:
        """The elements of what a register holds, as ways of their own; None where some are unknown.

        A register is looked at once, whichever calls lead to it: what those above it give is the same.
        """
        seen = set() if seen is None else seen
        one = self.contexts.definition(way.known)
        function = way.known.function
        if (function, way.known.register) in seen:
            return
        seen.add((function, way.known.register))
        if one is None or depth > DEEPEST_CALLS:
            yield None
            return
        if one[0] in (op.BUILD, op.DICT):
            yield from _displayed(way, one)
            return
        containers = self._containers(way, one)
        for container in containers or ():
            yield from self.ways_to_elements(container, depth + 1, seen)
        if containers is None:
            is_mapping = one[0] == op.INVOKE and any(call.row.get("part") == "mapping" for call in self.transfer.modelled(function, one))
            yield self.viewed(way, one).at(one[3]) if is_mapping else None

    def _containers(self, way: Way, one: Instruction) -> list[Way] | None:
        """The ways to the containers whose elements are those of what an instruction gives; None where there are none."""
        if one[0] in (op.ITER, op.COPY):
            return [way.at(one[3])]
        if one[0] in (op.CALL, op.INVOKE):
            return list(self._results(way, one)) or None
        if one[0] == op.PARAM and way.known.function.code.parameters[one[3]].kind in ("plain", "keyword"):
            return self._given_by_callers(way, one)
        return None

    def _given_by_callers(self, way: Way, one: Instruction) -> list[Way] | None:
        """What other functions give for a parameter; None where none enters."""
        function, context = way.known.function, way.known.context
        site = entered_by(context, function)
        places = [site] if site is not None else [Site(*place) for place in self.facts.call_places(function)]
        if site is None:
            places = [place for place in places if self.transfer.enters(*place, function)]
        found: list[Way] = []
        for place in places:
            given = self.contexts.given(function, one, place)
            if given is None or place.function is function:
                continue
            passed = way.passed if site is not None else (place, *way.passed)
            entered = context if site is not None else (*context, (function, place))
            found.append(Way(Known(given[0], given[1], entered), passed, way.views))
        return found if places else None

    def _results(self, way: Way, one: Instruction) -> Iterator[Way]:
        """What the functions of the program that a call runs return."""
        function, context = way.known.function, way.known.context
        for edge in self.transfer.edges(function, one):
            callee = edge.callee
            if edge.is_direct and not is_running(context, function, callee) and not callee.by_opcode[op.YIELD]:
                entered = entering(context, callee, Site(function, one))
                for end in callee.by_opcode[op.RETURN]:
                    if end[2] >= 0:
                        yield way._replace(known=Known(callee, end[2], entered))

    def given(self, origin: Origin) -> list[Origin]:
        """Of memory that was computed: the origins of what it was computed from."""
        return self.put_in(origin) if origin.how == "computed" else []

    def put_in(self, origin: Origin) -> list[Origin]:
        """The origins of what the instruction reads that made some memory."""
        site, context = origin.site, origin.known.context
        if site is None:
            return []
        ways = [Known(site.function, register, context) for register in op.reads(site.instruction)]
        ways += [inner for way in ways for inner in self.elements(*way)]
        return [found for way in ways for found in self.of(*way) if found.known != origin.known]

    def elements(self, function: Function, register: int, context: Context) -> list[Known]:
        """The elements of a list that stands there, or that a caller gives; empty where they are unknown."""
        found = list(self.ways_to_elements(Way(Known(function, register, context)), 0))
        return [way.known for way in found if way is not None] if None not in found else []


def _is_own_key(function: Function, one: Instruction) -> bool:
    """``for key in batch: batch[key]``: what is gone through are keys."""
    over = iterable_of(function, function.definitions[uncast(function, one[4])])
    return over >= 0 and uncast(function, over) == uncast(function, one[3])


def _displayed(way: Way, one: Instruction) -> Iterator[Way | None]:
    """The ways to what a list, a tuple or a mapping holds where it is written out, and to what is put behind it."""
    function, put = way.known.function, list[int]()
    if one[0] == op.DICT:
        put += (*one[4::2], *(use[4] for use in function.uses[one[2]] if use[0] == op.PUT and use[2] == one[2]))
    elif function.kind_built(one) in ("list", "tuple"):
        put += (*one[4:], *appended(function, one[2]))
    yield from (way.at(register) for register in put)
    if not put and one[0] == op.BUILD:
        yield None


def _under(way: Way, one: Instruction, key: str) -> list[Way] | None:
    """The ways to what a display of a mapping holds under a key; None where another key may mean it, or nothing is under it."""
    function = way.known.function
    names, uses = one[3::2], function.uses[one[2]]
    if any(name < 0 for name in names) or any(use[0] == op.PUT or (use[0] == op.INVOKE and use[3] == one[2]) for use in uses):
        return None
    pairs = [*zip(names, one[4::2], strict=True), *((use[3], use[4]) for use in uses if use[0] == op.SET_ITEM and use[2] == one[2])]
    return [way.at(value) for name, value in pairs if function.constant(name) == key] or None


def guarded(origins: Iterator[Origin], said: frozenset[str]) -> Iterator[Origin]:
    """What is left of origins where branches have asked for their kind."""
    for origin in origins:
        if "device" in said or ("host" in said and origin.space == "device"):
            continue
        if "host" in said and origin.space == "unknown":
            origin = origin._replace(space="host", pinning="pageable" if origin.how == "computed" else origin.pinning)
        yield origin._replace(pinning="pinned") if "pinned" in said else origin
