"""Where memory comes from: the places that made what a register holds, by way of views, callers and functions that return it.

A walk goes back over definitions and tells the calls of a function apart. Where a value passes through attributes, containers and globals
the trace of the program facts is taken instead: one way for each kind of memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.call_graph import LibraryCall
from streamlint.facts.functions import Function
from streamlint.facts.nodes import Node
from streamlint.facts.objects import Constant, Container, External, LibraryObject, Memory, Object, Site, Unknown
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.batches import Batches
from streamlint.transfer.contexts import UNMOVED, Context, Contexts, Known, entered_by
from streamlint.transfer.cpp_declared import declared_type, is_plain_container
from streamlint.transfer.cpp_options import option
from streamlint.transfer.guards import Guards
from streamlint.transfer.modelled import ModelledCall, operands_of
from streamlint.transfer.transfer import Transfer

_PASSED = frozenset({op.COPY, op.CAST, op.AWAIT})
_GIVING = frozenset({op.CALL, op.INVOKE, op.ITEM, op.ADDRESS_ITEM, op.BINARY})
_MOST = 400
_MAKING = frozenset({"factory", "transfer", "compute", "pin"})
_DEEPEST_CALLS = 6
_PLACES = {"first": 0, "second": 1}
_WORDS = re.compile(r"\w+")


class Origin(NamedTuple):
    """Memory and the place that made it. ``space`` and ``pinning`` as in `objects.Memory`. ``passed``: the calls by which callers handed
    it to the function that asks, the outermost first; ``views``: the instructions that took a part or another form of it."""

    known: Known
    space: str
    pinning: str
    type: str
    evidence: str = "none"
    passed: tuple[Site, ...] = ()
    views: tuple[Site, ...] = ()
    how: str = "factory"  # factory, alloc, computed, fetched, pinned, loader, kept

    @property
    def site(self) -> Site | None:
        one = self.known.function.definitions[self.known.register] if self.known.register >= 0 else None
        return Site(self.known.function, one) if one is not None else None


class Way(NamedTuple):
    """A register on the way back, and what was passed on the way."""

    known: Known
    passed: tuple[Site, ...] = ()
    views: tuple[Site, ...] = ()

    def at(self, register: int, function: Function | None = None) -> Way:
        return self._replace(known=self.known._replace(register=register, function=function or self.known.function))

    def seen_as(self, one: Instruction) -> Way:
        return self._replace(views=(*self.views, Site(self.known.function, one)))


def appended(function: Function, register: int) -> Iterator[int]:
    """The registers that are put behind a list."""
    for use in function.uses[register]:
        if use[0] == op.APPEND and use[2] == register:
            yield use[3]
        elif use[0] == op.INVOKE and use[3] == register and function.text(use[4]) == "append" and len(use) == 7:
            yield use[6]


class Origins:
    """Finds where memory comes from."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.contexts = Contexts(transfer)
        self.guards = Guards(transfer)
        self._seen: set[tuple[Known, int]] = set()
        self.batches = Batches(transfer)
        self._known: dict[Known, list[Origin]] = {}
        self._active: set[Known] = set()

    def of(self, function: Function, register: int, context: Context = ()) -> list[Origin]:
        """The origins of what a register holds."""
        asked = Known(function, register, context)
        known = self._known.get(asked)
        if known is not None:
            return known
        if asked in self._active:
            return []
        self._active.add(asked)
        kept, self._seen = self._seen, set()
        found = self._known[asked] = list(dict.fromkeys(self._walk(Way(asked))))
        self._seen = kept
        self._active.discard(asked)
        return found

    def _walk(self, way: Way) -> Iterator[Origin]:
        known = way.known
        if (known, len(way.views)) in self._seen or len(self._seen) > _MOST:
            return
        self._seen.add((known, len(way.views)))
        one = self.contexts.definition(known)
        if one is None:
            return
        found = False
        for origin in self._step(way, one):
            found = True
            yield origin
        if not found and one[0] in _GIVING:
            yield from self._kept(way)

    def _step(self, way: Way, one: Instruction) -> Iterator[Origin]:
        """The origins of what an instruction gives."""
        known = way.known
        opcode = one[0]
        if opcode == op.PARAM:
            yield from self._given(way, one)
        elif opcode == op.PHI:
            yield from self._joined(way, one)
        elif opcode in _PASSED:
            yield from self._walk(way.at(one[-1]))
        elif opcode == op.REBIND:
            yield from self._walk(way.at(one[5]))
        elif opcode == op.INPLACE:
            yield from self._walk(way.at(one[4]))
        elif opcode in (op.CALL, op.INVOKE):
            yield from self._called(way, one)
        elif opcode in (op.NEXT, op.ITEM, op.UNPACK):
            yield from self._part(way, one)
        elif opcode == op.ATTR and (batch := self.batches.field(known, one)) is not None:
            yield from self._of_batch(way, batch)
        elif opcode == op.ATTR and self._is_view(known, one):
            yield from self._walk(way.seen_as(one).at(one[3]))
        elif opcode == op.NAME and known.function.is_cpp:
            yield from self._member(way, one)
        elif opcode in (op.ADDRESS_ITEM,) or (opcode == op.BINARY and known.function.is_cpp):
            operands = one[3:4] if opcode == op.ADDRESS_ITEM else one[4:6]
            memory = [each for each in operands if any(isinstance(value, Memory) for value in self._held(known, each))]
            memory = memory or [each for each in operands[:1] if self.of(known.function, each, known.context)]
            for each in memory[:1]:
                yield from self._walk(way.seen_as(one).at(each))
            if not memory:
                yield from self._kept(way)
        elif opcode in (op.BINARY, op.UNARY, op.COMPARE):
            yield from self._computed(way, list(op.reads(one)))
        else:
            yield from self._kept(way)

    def _of_batch(self, way: Way, field: Known) -> Iterator[Origin]:
        """A field of a batch that a loader cannot pin: what a loader collates is on the host."""
        for origin in self.of(*field):
            if origin.space in ("host", "unknown"):
                pinning = "pageable" if origin.how == "computed" else origin.pinning
                yield origin._replace(space="host", pinning=pinning, views=way.views)

    def _is_view(self, known: Known, one: Instruction) -> bool:
        """Whether an attribute is the memory of its object in another form."""
        for value in self._held(known, one[3]):
            kind = value.type if isinstance(value, (Memory, LibraryObject)) else ""
            row = self.facts.models.member(kind, known.function.text(one[4])) if kind else None
            if row is not None and row.effect in ("view", "same"):
                return True
        return False

    def _member(self, way: Way, one: Instruction) -> Iterator[Origin]:
        """C++: a member that methods of its class set."""
        function = way.known.function
        method = function.method
        owner = method.owner if method is not None else None
        stores = owner.own_stores.get(function.text(one[3]), []) if owner is not None else []
        found = False
        for store in stores:
            if store.value >= 0:
                for origin in self._walk(way.at(store.value, store.function)):
                    found = True
                    yield origin
        if not found:
            yield from self._kept(way)

    def _held(self, known: Known, register: int) -> list[Object]:
        return list(self.contexts.values(known._replace(register=register)))

    # --- parameters, joins, calls of the program

    def _given(self, way: Way, one: Instruction) -> Iterator[Origin]:
        """A parameter: what the callers give; where none does, what is known of it."""
        function, context = way.known.function, way.known.context
        site = entered_by(context, function)
        if site is not None:
            given = self.contexts.given(function, one, site)
            if given is not None:
                yield from self._walk(way.at(given[1], given[0]))
            else:
                yield from self._kept(way)
            return
        found = False
        for caller, call in self.facts.call_places(function) if len(context) < _DEEPEST_CALLS else ():
            edges = self.transfer.edges(caller, call)
            if not any(edge.callee is function and not edge.is_guess for edge in edges):
                continue
            passing = Site(caller, call)
            given = self.contexts.given(function, one, passing)
            if given is not None and given[0] is caller and caller not in function.below:
                found = True
                known = Known(given[0], given[1], (*context, (function, passing)))
                yield from self._walk(way._replace(known=known, passed=(passing, *way.passed)))
        if not found:
            yield from self._kept(way)

    def _joined(self, way: Way, one: Instruction) -> Iterator[Origin]:
        function = way.known.function
        home = self.guards.home(function, one)
        predecessors = function.code.predecessors()[home]
        for place, register in enumerate(one[3:]):
            said = self.guards.at_end(function, predecessors[place], register) if place < len(predecessors) else frozenset()
            decided = self.guards.excluded(function, predecessors[place], way.known.context) if place < len(predecessors) else False
            if not decided:
                yield from self._guarded(self._walk(way.at(register)), said)

    def _guarded(self, origins: Iterator[Origin], said: frozenset[str]) -> Iterator[Origin]:
        """What is left of origins where branches have asked for their kind."""
        for origin in origins:
            if "device" in said:
                continue
            if "host" in said and origin.space == "unknown":
                origin = origin._replace(space="host", pinning="pageable" if origin.how == "computed" else origin.pinning)
            if "host" in said and origin.space == "device":
                continue
            yield origin._replace(pinning="pinned") if "pinned" in said else origin

    def _called(self, way: Way, one: Instruction) -> Iterator[Origin]:
        function, context = way.known.function, way.known.context
        edges = [edge for edge in self.transfer.edges(function, one) if edge.is_followed and not edge.is_handed]
        entered = [edge for edge in edges if entered_by(context, edge.callee) is None and edge.callee.code.kind != "class"]
        calls = self.calls(way.known, one)
        if entered and len(context) < _DEEPEST_CALLS:
            for edge in entered:
                callee = edge.callee
                inside = way._replace(known=Known(callee, op.NONE, (*context, (callee, Site(function, one)))))
                if callee.code.name == "__init__" or callee.by_opcode[op.YIELD]:
                    yield from self._kept(way)
                    continue
                for end in callee.by_opcode[op.RETURN]:
                    if end[2] >= 0 and not self.guards.excluded(callee, self.guards.home(callee, end), inside.known.context):
                        said = self.guards.at(callee, end, end[2])
                        yield from self._guarded(self._walk(inside.at(end[2])), said)
        elif calls:
            for call in calls:
                yield from self._modelled(way, call)
        elif one[0] == op.INVOKE and function.is_cpp and self._is_inside(function, one):
            yield from self._walk(way.seen_as(one).at(one[3]))
        elif not edges and self._is_given_device(way.known, one):
            yield Origin(way.known, "device", "unknown", "torch.Tensor", "none", way.passed, way.views, "computed")
        else:
            yield from self._kept(way)

    def _is_inside(self, function: Function, one: Instruction) -> bool:
        """C++: whether a method of a container or pointer of the standard library gives its memory."""
        rows = (self.facts.cpp_models.method(kind, function.text(one[4]), "::") for kind in ("std::unique_ptr", "std::vector"))
        return any(row is not None and row.effect in ("same", "view") for row in rows)

    def _is_given_device(self, known: Known, one: Instruction) -> bool:
        """Whether a call out of view is given memory of a device: it works there."""
        given = operands_of(known.function, one, False)
        return any(origin.space == "device" for register in given for origin in self.of(known.function, register, known.context))

    # --- library calls

    def calls(self, known: Known, one: Instruction) -> list[ModelledCall]:
        """The calls of libraries that an instruction makes; of a method whose receiver only a walk tells, by what that says."""
        function = known.function
        held = self._held(known, one[3]) if one[0] == op.INVOKE else []
        if one[0] == op.INVOKE and not any(isinstance(value, (Memory, LibraryObject, External)) for value in held):
            models = self.facts.cpp_models if function.is_cpp else self.facts.models
            for origin in self.of(function, one[3], known.context):
                separator = "::" if function.is_cpp else "."
                row = models.method(origin.type or "torch.Tensor", function.text(one[4]), separator) if function.is_cpp else None
                row = row or (models.method(origin.type or "torch.Tensor", function.text(one[4])) if not function.is_cpp else None)
                if row is not None:
                    return [ModelledCall(self.facts, function, LibraryCall(one, row, row.names[0], None), row)]
        return list(self.transfer.modelled(function, one))

    def _modelled(self, way: Way, call: ModelledCall) -> Iterator[Origin]:
        row, one = call.row, call.instruction
        effect = row.effect
        kind = str(row.get("type", ""))
        if effect in ("view", "same", "move") and (of := call.one("of", call.receiver)) is not None and kind != "element":
            if kind == "numpy.ndarray" and any(isinstance(value, (LibraryObject, Container)) for value in self._held(way.known, of)):
                yield Origin(way.known, "host", "pageable", kind, "none", way.passed, way.views, "computed")
            else:
                if not (row.get("moves") and self._is_kept_by_module(way.known.function, one)):
                    yield from self._walk((way.seen_as(one) if effect == "view" else way).at(of))
        elif effect == "pin":
            yield Origin(way.known, "host", "pinned", kind, "none", way.passed, way.views, "pinned")
        elif effect == "transfer":
            yield from self._transferred(way, call)
        elif effect == "factory":
            yield from self._made(way, call)
        elif effect == "compute":
            yield from self._by_compute(way, call)
        elif effect == "alloc" and row.get("into") is None:
            memory = str(row.get("memory", "device"))
            space = memory if memory in ("device", "managed") else "host"
            yield Origin(way.known, space, memory, "pointer", "literal", way.passed, way.views, "alloc")
        else:
            yield from self._kept(way)

    def _is_kept_by_module(self, function: Function, one: Instruction) -> bool:
        """Whether a module keeps what a call gives: it goes where the module goes."""
        owner = function.owner
        if owner is None or "torch.nn.Module" not in self.facts.hierarchy.libraries(owner):
            return False
        return any(use[0] == op.SET_ATTR and use[4] == one[2] for use in function.uses[one[2]])

    def _by_compute(self, way: Way, call: ModelledCall) -> Iterator[Origin]:
        row = call.row
        given = call.all("out")
        if given:
            yield from self._walk(way.at(given[0]))
        elif row.get("result") == "self" and call.receiver is not None:
            yield from self._walk(way.at(call.receiver))
        elif row.get("host"):
            yield Origin(way.known, "host", "pageable", str(row.get("type", "")), "none", way.passed, way.views, "computed")
        else:
            yield from self._computed(way, list(call.operands))

    def _computed(self, way: Way, operands: list[int]) -> Iterator[Origin]:
        """New memory where the operands are."""
        spaces: dict[str, str] = {}
        known = way.known
        for register in operands:
            held = self._held(known, register)
            if not any(isinstance(value, (Constant,)) for value in held) or len(held) > 1:
                ways = [Known(known.function, register, known.context), *self.elements(known.function, register, known.context)]
                for origin in (each for way_ in ways for each in self.of(*way_)):
                    spaces.setdefault(origin.space, origin.type)
        types = [value for value in self._held(known, known.register) if isinstance(value, Memory)]
        if not spaces or set(spaces) == {"unknown"}:
            spaces = {value.space: value.type for value in types} or spaces
        for space, kind in spaces.items():
            pinning = "pageable" if space == "host" else "unknown"
            yield Origin(known, space, pinning, kind, "none", way.passed, way.views, "computed")
        if not spaces:
            yield Origin(known, "unknown", "unknown", "", "none", way.passed, way.views, "computed")

    def _made(self, way: Way, call: ModelledCall) -> Iterator[Origin]:
        row = call.row
        data = call.one("data")
        if row.get("alias") and data is not None and not call.all("device"):
            found = list(self._walk(way.seen_as(call.instruction).at(data)))
            yield from found or self._kept(way)
            return
        kind = str(row.get("type", "torch.Tensor"))
        spaces = self._of_asked(call) or self.contexts.spaces(call, way.known.context)
        if spaces is None and row.get("space") == "like":
            like = call.one("like", call.receiver)
            held = self._held(way.known, like) if like is not None else []
            spaces = {value.space: value.evidence for value in held if isinstance(value, Memory)} or {"unknown": "none"}
        elif spaces is None:
            space = str(row.get("space", "host"))
            spaces = {"host" if space == "argument" else space: "none"}
        pinned = self.contexts.truth(call, "pin", way.known.context)
        if call.function.is_cpp:
            found_options = [option(self.contexts, way.known._replace(register=each)) for each in call.all("device")]
            options = [each for each in found_options if each is not None]
            named = next((each.space for each in options if each.space), "")
            pinned = next((each.pinned for each in options if each.pinned is not False), pinned)
            if row.get("space") == "argument" or named:
                spaces = {named or "host": "literal"}
        for space, evidence in spaces.items():
            memory = "pinned" if pinned else "unknown" if pinned is None else str(row.get("memory", "pageable"))
            if space != UNMOVED:
                yield Origin(way.known, space, memory, kind, evidence, way.passed, way.views)

    def _of_asked(self, call: ModelledCall) -> dict[str, str] | None:
        """``device=x.device`` behind a branch that has asked where ``x`` is."""
        for register in call.all("device")[:1]:
            one = call.function.definitions[register] if register >= 0 else None
            if one is not None and one[0] == op.ATTR and call.function.text(one[4]) == "device":
                said = self.guards.at(call.function, call.instruction, one[3]) & {"host", "device"}
                if said:
                    return dict.fromkeys(said, "literal")
        return None

    def _transferred(self, way: Way, call: ModelledCall) -> Iterator[Origin]:
        row = call.row
        source, out, to = call.one("of", call.receiver), call.one("out"), row.get("to")
        if out is not None:
            yield from self._walk(way.at(out))
            return
        spaces = {str(to): "literal"} if to in ("host", "device") else self.contexts.spaces(call, way.known.context)
        if spaces is None or source is None or set(spaces) <= {UNMOVED}:
            yield from self._walk(way.at(source if source is not None else call.result))
            return
        kind = str(row.get("type", "torch.Tensor"))
        for space, evidence in spaces.items():
            if space == "host":
                flag = self.contexts.truth(call, "asynchronous", way.known.context)
                to_pinned = row.get("host_memory") == "pinned-if-asynchronous"
                pinning = "pageable" if not to_pinned or flag is False else "pinned" if flag else "unknown"
                sources = self.of(way.known.function, source, way.known.context)
                if any(origin.space == "host" for origin in sources):
                    yield from self._walk(way.at(source))
                if not sources or any(origin.space != "host" for origin in sources):
                    yield Origin(way.known, "host", pinning, kind, "none", way.passed, way.views, "fetched")
            elif space != UNMOVED:
                yield Origin(way.known, space, "unknown", kind, evidence, way.passed, way.views, "moved")

    # --- parts and containers

    def _part(self, way: Way, one: Instruction) -> Iterator[Origin]:
        """An element of a container, or a part of a tensor."""
        base = one[3]
        held = self._held(way.known, base)
        made = self.contexts.definition(way.known._replace(register=base))
        if one[0] == op.UNPACK and made is not None and made[0] == op.BUILD and one[6] == op.NONE and len(made) - 4 == one[5]:
            yield from self._walk(way.at(made[4 + one[4]]))
            return
        is_made = made is not None and made[0] in (op.CALL, op.INVOKE, op.ATTR) and one[0] == op.ITEM
        if any(isinstance(value, Memory) for value in held) or (is_made and self.of(way.known.function, base, way.known.context)):
            if one[0] == op.UNPACK and self.is_beside(way.known, one):
                return
            if one[0] == op.ITEM and self._is_gathered(way.known, one):
                yield from self._computed(way, [base])
            elif one[0] != op.UNPACK or any(isinstance(value, Memory) for value in self._held(way.known, one[2])):
                yield from self._walk(way.seen_as(one).at(base))
            return
        elements = list(self._elements(way.at(base), 0))
        if elements and all(each is not None for each in elements):
            for each in elements:
                assert each is not None
                yield from self._walk(each)
            return
        yield from self._kept(way)

    def is_beside(self, known: Known, one: Instruction) -> bool:
        """Whether a call gives its memory at another place of the tuple that is unpacked."""
        made = known.function.definitions[one[3]] if one[3] >= 0 else None
        if made is None or made[0] not in (op.CALL, op.INVOKE):
            return False
        places = [call.row.get("result") for call in self.transfer.modelled(known.function, made)]
        return any(place in _PLACES and _PLACES[str(place)] != one[4] for place in places)

    def _is_gathered(self, known: Known, one: Instruction) -> bool:
        """Whether a list, an array or a mask picks the elements: they go into new memory."""
        index = self.contexts.traced(known._replace(register=one[4]))
        made = self.contexts.definition(index)
        if made is None or made[0] == op.SLICE:
            return False
        if made[0] == op.BUILD:
            return index.function.kind_built(made) == "list"
        if made[0] in (op.COMPARE,):
            return any(isinstance(value, Memory) for each in made[4:6] for value in self._held(index, each))
        if made[0] == op.ITEM and (inner := index.function.definitions[made[4]]) is not None and inner[0] == op.SLICE:
            return self._is_gathered(known._replace(function=index.function), (*one[:4], made[3]))
        if made[0] == op.PHI:
            return any(self._is_gathered(known, (*one[:4], each)) for each in made[3:] if each != one[4])
        if made[0] == op.PARAM and not index.function.is_cpp:
            words = _WORDS.findall(index.function.code.parameters[made[3]].annotation or "")
            return bool({"list", "List", "ndarray", "NDArray"} & set(words[:2] + words[-3:])) and "tuple" not in words
        return any(isinstance(value, Container) and value.kind == "list" for value in self._held(index, index.register)) or any(
            isinstance(value, Memory) for value in self._held(index, index.register)
        )

    def _elements(self, way: Way, depth: int) -> Iterator[Way | None]:
        """The elements of what a register holds, as ways of their own; None where some are not to be told."""
        one = self.contexts.definition(way.known)
        function, context = way.known.function, way.known.context
        if one is None or depth > _DEEPEST_CALLS:
            yield None
        elif one[0] in (op.ITER, op.COPY):
            yield from self._elements(way.at(one[3]), depth + 1)
        elif one[0] == op.BUILD and function.kind_built(one) in ("list", "tuple"):
            added = list(appended(function, one[2]))
            yield from (way.at(register) for register in (*one[4:], *added))
            if not one[4:] and not added:
                yield None
        elif one[0] == op.DICT:
            yield from (way.at(register) for register in one[4::2])
        elif one[0] == op.PARAM and function.code.parameters[one[3]].kind in ("plain", "keyword"):
            site = entered_by(context, function)
            places = [site] if site is not None else [Site(*place) for place in self.facts.call_places(function)]
            for place in places:
                given = self.contexts.given(function, one, place)
                if given is None or place.function is function:
                    continue
                passed = way.passed if site is not None else (place, *way.passed)
                entered = context if site is not None else (*context, (function, place))
                yield from self._elements(Way(Known(given[0], given[1], entered), passed, way.views), depth + 1)
            if not places:
                yield None
        else:
            yield None

    def given(self, origin: Origin) -> list[Origin]:
        """Of memory that was computed: the origins of what it was computed from."""
        site, context = origin.site, origin.known.context
        if site is None or origin.how != "computed":
            return []
        ways = [Known(site.function, register, context) for register in op.reads(site.instruction)]
        ways += [inner for way in ways for inner in self.elements(*way)]
        return [found for way in ways for found in self.of(*way) if found.known != origin.known]

    def elements(self, function: Function, register: int, context: Context) -> list[Known]:
        """The elements of a list that stands there, or that a caller gives; empty where they are not to be told."""
        found = list(self._elements(Way(Known(function, register, context)), 0))
        return [way.known for way in found if way is not None] if None not in found else []

    # --- by program facts

    def _kept(self, way: Way) -> Iterator[Origin]:
        """What the program facts know: for each kind of memory the place that it came from."""
        known = way.known
        node = self.facts.values(known.function, known.register)
        if not any(isinstance(value, Memory) for value in node.values):
            if known.function.is_cpp and is_plain_container(self.facts, known.function, declared_type(self.contexts, known)):
                yield Origin(known, "host", "pageable", "std::vector", "none", way.passed, way.views, "kept")
            else:
                yield from self._by_unknown(way, node)
            return
        for value in list(node.values):
            if not isinstance(value, Memory):
                continue
            sites = list(node.trace(value))
            last = sites[-1] if sites else None
            here = Origin(known, value.space, value.pinning, value.type, value.evidence, way.passed, way.views, "kept")
            one = self.contexts.definition(known)
            if self._is_moved_elsewhere(sites):
                yield here._replace(space="device", pinning="unknown")
                continue
            if one is not None and one[0] == op.ATTR and self._is_other_memory(known, one):
                yield here._replace(pinning="unknown")
                continue
            if last is None or not op.DEFINES[last.instruction[0]] or last.instruction is one:
                yield self._of_loader(here, one)
                continue
            passed = tuple(reversed([site for site in sites if self._enters(site, known.function)]))
            behind = Way(Known(last.function, last.instruction[2], known.context), (*passed, *way.passed), way.views)
            found = [origin for origin in self._walk(behind) if (origin.space, origin.pinning) == (value.space, value.pinning)]
            yield from found or [here._replace(known=behind.known, passed=behind.passed)]

    def _is_moved_elsewhere(self, sites: list[Site]) -> bool:
        """Whether a framework, or a module that keeps it, moves a value on its way."""
        for site in sites:
            made: Instruction | None = site.instruction
            if made is not None and made[0] == op.UNPACK:
                made = site.function.definitions[made[3]]
            for call in self.transfer.modelled(site.function, made) if made is not None else ():
                if call.row.effect == "prepare" or (call.row.get("moves") and self._is_kept_by_module(site.function, site.instruction)):
                    return True
        return False

    def _is_other_memory(self, known: Known, one: Instruction) -> bool:
        """Whether an attribute of a tensor is memory of its own, which whoever sets it has made (``x.grad``)."""
        kinds = {value.type for value in self._held(known, one[3]) if isinstance(value, Memory)}
        rows = [self.facts.models.member(kind, known.function.text(one[4])) for kind in kinds]
        return any(row is not None and row.effect == "factory" for row in rows)

    def _by_unknown(self, way: Way, node: Node) -> Iterator[Origin]:
        """Of what the facts do not know: the call on its way that the row of a method by its name models."""
        known = way.known
        for value in list(node.values):
            for site in node.trace(value) if isinstance(value, Unknown) else ():
                one = site.instruction
                if one[0] == op.PARAM and site.function is not known.function and not site.function.is_cpp:
                    yield from self._walk(way._replace(known=Known(site.function, one[2], ())))
                    return
                if one[0] not in (op.CALL, op.INVOKE) or (site.function is known.function and one[2] == known.register):
                    continue
                if any(call.row.effect in _MAKING for call in self.transfer.modelled(site.function, one)):
                    yield from self._walk(way._replace(known=Known(site.function, one[2], ())))
                    return

    def _enters(self, site: Site, function: Function) -> bool:
        if site.instruction[0] not in (op.CALL, op.INVOKE):
            return False
        return any(edge.callee is function for edge in self.transfer.edges(site.function, site.instruction))

    def _of_loader(self, origin: Origin, one: Instruction | None) -> Origin:
        """The batches of a loader: where the loader was made."""
        known = origin.known
        for _ in range(4):
            if one is None or one[0] not in (op.NEXT, op.UNPACK, op.ITEM, op.ITER, op.INVOKE, op.CALL):
                break
            if any(call.row.effect == "prepare" for call in self.transfer.modelled(known.function, one)):
                return origin._replace(space="device", pinning="unknown")
            register = one[3] if one[0] not in (op.CALL,) else one[-1]
            node = self.facts.values(known.function, register)
            for value in node.values:
                if isinstance(value, LibraryObject) and value.kind == "loader":
                    sites = [site for site in node.trace(value) if op.DEFINES[site.instruction[0]]]
                    if any(
                        call.row.effect == "prepare" for site in sites for call in self.transfer.modelled(site.function, site.instruction)
                    ):
                        return origin._replace(space="device", pinning="unknown")
                    if sites:
                        last = sites[-1]
                        return origin._replace(known=Known(last.function, last.instruction[2], known.context), how="loader")
            one = known.function.definitions[register] if register >= 0 else None
        return origin
