"""Where memory comes from: the places that made what a register holds, by way of views, callers and functions that return it.

A walk goes back over definitions and tells the calls of a function apart. Where a value passes through attributes, containers and globals
the trace of the program facts is taken instead: one way for each kind of memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import behind_copies
from streamlint.facts.code.objects import Instance, LibraryObject, Memory, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.carried import Carried, Carriers
from streamlint.transfer.contexts import Known
from streamlint.transfer.modelled import operands_of
from streamlint.transfer.origin import DEEPEST_CALLS, Origin, Way, as_declared, chosen
from streamlint.transfer.origin_parts import Parts, guarded
from streamlint.transfer.receivers import Receivers
from streamlint.transfer.transfer import Transfer
from streamlint.waits.closures import is_captured, may_be_made_for
from streamlint.waits.entered import Context, entered_by, entering, is_running
from streamlint.waits.operands import spread_for

# What gives one of its operands back, and where that stands.
_PASSED = {op.COPY: -1, op.CAST: -1, op.AWAIT: -1, op.REBIND: 5, op.INPLACE: 4}
_GIVING = frozenset({op.CALL, op.INVOKE, op.ITEM, op.ADDRESS_ITEM, op.BINARY})
_CARRIED = frozenset({op.LOAD, op.ATTR, op.ITEM, op.CALL, op.INVOKE})
"""What gives what was put somewhere: a variable of closures, an attribute, an element, a function's result."""
_FIRST = 5
"""Where the arguments of what makes an object of C++ begin."""
_MOST = 400
"""Steps of one question, and of those that wait for its answer."""
_MOST_IN_ALL = 4_000
"""Steps of a question and of all that it asks on its way: contexts multiply with the depth of calls."""


class Origins(Parts):
    """Finds where memory comes from."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.receivers = Receivers(self.contexts, self.guards)
        self.carriers = transfer.one_of(Carriers, transfer)
        self._seen: set[tuple[Known, bool, int]] = set()
        self._above = 0  # steps of the questions that wait for the one that is asked
        self._spent = 0  # steps since somebody asked from outside
        self._known: dict[Known, list[Origin]] = {}
        self._active: set[Known] = set()
        self._heavy: set[tuple[Function, int]] = set()  # what took more steps in some context is asked without one

    def is_on_device(self, function: Function, register: int) -> bool:
        """Whether a register may hold memory of a device."""
        return any(origin.space == "device" for origin in self.of(function, register))

    def of(self, function: Function, register: int, context: Context = ()) -> list[Origin]:
        """The origins of what a register holds."""
        asked = Known(function, register, context)
        known = self._known.get(asked)
        if known is not None:
            return known
        if asked in self._active:
            return []
        if context and (function, register) in self._heavy:
            return self.of(function, register)
        if not self._active:
            self._spent = 0
        self._active.add(asked)
        kept, self._seen = self._seen, set()
        self._above += len(kept)
        found = list(dict.fromkeys(self.walk(Way(asked))))
        if self._spent <= _MOST_IN_ALL or len(self._active) == 1:
            self._known[asked] = found
        self._above -= len(kept)
        self._seen = kept
        self._active.discard(asked)
        if self._spent > _MOST_IN_ALL and not self._active:
            self._heavy.add((function, register))
        return found

    def of_parts(self, function: Function, register: int) -> list[Origin]:
        """The origins of what an object holds that may be a module: of its tensors."""
        kept, self._seen, self._spent = self._seen, set(), 0
        found = list(dict.fromkeys(self.walk(Way(Known(function, register, ()), is_viewed=True))))
        self._seen = kept
        return found

    def is_asked(self, known: Known, operands: Iterable[int]) -> bool:
        return any(known._replace(register=each) in self._active for each in operands)

    def without_declaration(self, function: Function, register: int) -> list[Origin]:
        """The origins of what a register holds, whatever the user declares of it."""
        way = Way(Known(function, register, ()))
        one = self.contexts.definition(way.known)
        return list(dict.fromkeys(self._found(way, one))) if one is not None else []

    def walk(self, way: Way) -> Iterator[Origin]:
        known = way.known
        place = known, way.is_viewed, len(way.views)
        if place in self._seen or max(len(self._seen), self._above) > _MOST or self._spent > _MOST_IN_ALL:
            return
        self._seen.add(place)
        self._spent += 1
        one = self.contexts.definition(known)
        if one is None:
            return
        if (moved := self.moved_in_place(way)) is not None:
            yield moved
            return
        said = self.facts.declarations.of_register(known.function, known.register) if self.facts.program.declares else None
        yield from self._found(way, one) if said is None else as_declared(said, self._found(way, one), way)

    def _found(self, way: Way, one: Instruction) -> Iterator[Origin]:
        """The origins of what an instruction gives; by the program facts, where it gives something and no step tells what."""
        found = False
        for origin in self._step(way, one):
            found = True
            yield origin
        if not found and one[0] in _GIVING and not self.is_asked(way.known, op.reads(one)):
            yield from self.kept(way)

    def _step(self, way: Way, one: Instruction) -> Iterator[Origin]:
        """The origins of what an instruction gives."""
        step = _STEPS.get(one[0])
        return step(self, way, one) if step is not None else self.kept(way)

    def _shared(self, way: Way, one: Instruction) -> Iterator[Origin]:
        """A variable that closures share: what functions set it to."""
        set_to = self.carriers.before(Carried(way.known.function, one[2]))
        for each in set_to:
            yield from self.walk(way.at(each.register, each.function))
        if not set_to:
            yield from self.kept(way)

    def _passed(self, way: Way, one: Instruction) -> Iterator[Origin]:
        return self.walk(way.at(one[_PASSED[one[0]]]))

    def _attribute(self, way: Way, one: Instruction) -> Iterator[Origin]:
        """A field of a batch, or an attribute."""
        ends = list(self._batches(way.at(one[3])))
        name = way.known.function.text(one[4])
        fields = [(each, field) for each in ends if (field := self.batches.field(each.known, name)) is not None]
        for batch, field in fields:
            yield from self._of_batch(batch, field)
        beside = [] if fields else self._of_gradient(way, one)
        yield from beside
        if not fields and not beside:
            is_view = self._is_view(way.known, one)
            found = self.walk(self.viewed(way, one).at(one[3])) if is_view else self._of_record(way, one) or self.kept(way)
            yield from self._left(found, any(self.batches.is_pinned(each.known, name) for each in ends))

    def _of_record(self, way: Way, one: Instruction) -> Iterator[Origin] | None:
        """C++: the origins of what a record was made with whose member a function reads: by the function itself, else by any."""
        function, name = way.known.function, way.known.function.text(one[4])
        if not function.is_cpp or any(function.text(each[3]) == name for each in function.by_opcode[op.SET_ATTR]):
            return None
        made = function.definitions[behind_copies(function, one[3])]
        members = self.facts.members_given(function, made) if made is not None else []
        given = [(function, each) for member, each in members if member.name == name]
        if not given:
            owners = {value.definition for value in self.held(way.known, one[3]) if isinstance(value, Instance)}
            given = [each for owner in owners for each in self._initial(owner, name)]
        return self._walks(way, given) if given else None

    def _walks(self, way: Way, given: list[tuple[Function, int]]) -> Iterator[Origin]:
        """The origins of several registers."""
        for holder, register in given:
            yield from self.walk(way.at(register, holder)) if register >= 0 else ()

    def _element(self, way: Way, one: Instruction) -> Iterator[Origin]:
        """A part of a container or of memory; of one that an attribute of a batch holds, a loader may have pinned it."""
        function = way.known.function
        holder = self.contexts.definition(way.known._replace(register=self.mapping(function, one)))
        if holder is not None and holder[0] == op.ITER:
            holder = self.contexts.definition(way.known._replace(register=holder[3]))
        is_field = holder is not None and holder[0] == op.ATTR and not function.is_cpp
        name, ends = (function.text(holder[4]), self._batches(way.at(holder[3]))) if is_field and holder is not None else ("", iter(()))
        yield from self._left(self.part(way, one), any(self.batches.is_pinned(each.known, name) for each in ends))

    def _of_gradient(self, way: Way, one: Instruction) -> list[Origin]:
        """Memory of its own that is where its object is, on a device (``x.grad``)."""
        known, name = way.known, way.known.function.text(one[4])
        row = self.facts.models.member("torch.Tensor", name)
        if row is None or row.effect != "factory" or row.get("space") != "like" or self.is_asked(known, one[3:4]):
            return []
        found = self.of(known.function, one[3], known.context)
        is_there = bool(found) and all(origin.space == "device" and origin.type == "torch.Tensor" for origin in found)
        return [Origin(known, "device", "unknown", "torch.Tensor", "none", way.passed, way.views, "computed")] if is_there else []

    def _operation(self, way: Way, one: Instruction) -> Iterator[Origin]:
        """What an operator gives: new memory, but for a pointer that C++ adds to."""
        known, operands = way.known, one[4:6]
        if one[0] != op.BINARY or not known.function.is_cpp:
            return self.computed(way, list(op.reads(one)))
        if any(isinstance(value, Memory) and "Tensor" in value.type for each in operands for value in self.held(known, each)):
            return self.computed(way, list(operands))
        return self._pointed(way, one, operands)

    def _element_address(self, way: Way, one: Instruction) -> Iterator[Origin]:
        return self._pointed(way, one, one[3:4])

    def _pointed(self, way: Way, one: Instruction, operands: tuple[int, ...]) -> Iterator[Origin]:
        """The memory that the one operand points into which is a pointer."""
        known = way.known
        memory = [each for each in operands if self.holds_memory(known, each)]
        memory = memory or [each for each in operands[:1] if self.of(known.function, each, known.context)]
        for each in memory[:1]:
            yield from self.walk(self.viewed(way, one).at(each))
        if not memory:
            yield from self.kept(way)

    def _batches(self, way: Way) -> Iterator[Way]:
        """What may be a batch, of what a register may hold: of a parameter, what callers give."""
        waiting, seen = [way], set[Known]()
        while waiting:
            each = waiting.pop()
            one = self.contexts.definition(each.known)
            if each.known in seen:  # a function that hands its own parameter to itself
                continue
            seen.add(each.known)
            if one is None or one[0] != op.PARAM:
                carried = self.carriers.sources(*each.known) if one is not None and one[0] in _CARRIED else ()
                ends = (Known(*source[:3]) for source in carried)
                yield each
                yield from (each._replace(known=end) for end in ends if end != each.known)
            elif len(each.known.context) < DEEPEST_CALLS:
                is_entered = entered_by(each.known.context, each.known.function) is not None
                given = self._arguments_of(each, one)
                waiting += (_left(outer, each.known.function) for outer in given) if is_entered else given

    def _of_batch(self, way: Way, field: Known) -> Iterator[Origin]:
        """A field of a batch that a loader cannot pin: what a loader collates is on the host."""
        for origin in self.of(*field):
            if origin.space in ("host", "unknown"):
                pinning = "pageable" if origin.how == "computed" else origin.pinning
                known = origin.known._replace(context=(*way.known.context, *origin.known.context))  # by which the copy was entered
                yield origin._replace(known=known, space="host", pinning=pinning, passed=way.passed, views=way.views)

    def _is_view(self, known: Known, one: Instruction) -> bool:
        """Whether an attribute is the memory of its object in another form."""
        for value in self.held(known, one[3]):
            kind = value.type if isinstance(value, (Memory, LibraryObject)) else ""
            row = self.facts.models.member(kind, known.function.text(one[4])) if kind else None
            if row is not None and row.effect in ("view", "same"):
                return True
        return self.transfer.is_part(known.function, one)

    def _member(self, way: Way, one: Instruction) -> Iterator[Origin]:
        """C++: a member that methods of its class set."""
        function = way.known.function
        method = function.method if function.is_cpp else None
        owner = method.owner if method is not None else None
        name, found = function.text(one[3]), False
        set_to = [(store.function, store.value) for store in owner.own_stores.get(name, ())] if owner is not None else []
        for holder, value in set_to or self._initial(owner, name):
            for origin in self.walk(way.at(value, holder)) if value >= 0 else ():
                found = True
                yield from self._entered_on(way, origin)
        if not found:
            yield from self.kept(way)

    def _initial(self, owner: ClassInfo | None, name: str) -> list[tuple[Function, int]]:
        """C++: what a member of objects without a constructor is made with, which nothing sets later."""
        is_record = owner is not None and owner.unit.is_cpp and "__init__" not in owner.methods
        if owner is None or not is_record or self.facts.field_of(owner, name) is None:
            return []
        given = list(self.facts.given_to_member(owner, name))
        makes = {(function, each) for function, one in self.facts.construction_places(owner) for each in one[_FIRST:]}
        return given if makes.issuperset(given) else []

    def _entered_on(self, way: Way, origin: Origin) -> Iterator[Origin]:
        """What a constructor was passed and keeps reaches a method by the calls of that on the new object, not by the construction."""
        count = len(origin.passed) - len(way.passed)
        made = origin.passed[count - 1] if count > 0 else None
        calls: list[Site] = []
        if made is not None and made.instruction[0] == op.CONSTRUCT:
            home, new = made.function, made.instruction[2]
            uses = (use for use in home.uses[new] if use[0] == op.INVOKE and use[3] == new)
            calls = [Site(home, use) for use in uses if self.transfer.runs(home, use, way.known.function)]
        for call in calls:
            yield origin._replace(passed=(*origin.passed[: count - 1], call, *way.passed))
        if not calls:
            yield origin

    # --- parameters, joins, calls of the program

    def _given(self, way: Way, one: Instruction) -> Iterator[Origin]:
        """A parameter: what the callers give; where none does, what is known of it."""
        arguments = list(self._arguments_of(way, one))
        site = entered_by(way.known.context, way.known.function)
        for argument in arguments:
            caller, call = argument.known.function, (site or argument.passed[0]).instruction
            said = self.guards.at(caller, call, argument.known.register) if call in caller.homes else frozenset[str]()
            yield from guarded(self.walk(argument), said)
        if not arguments:
            yield from self.kept(way)

    def _arguments_of(self, way: Way, one: Instruction) -> Iterator[Way]:
        """What the callers give for a parameter; of a function that was entered, the call by which it was."""
        function, context = way.known.function, way.known.context
        site = entered_by(context, function)
        if site is not None:
            given = self.contexts.given(function, one, site)
            if given is not None:
                yield way.at(given[1], given[0])
            return
        for caller, call in self.facts.call_places(function) if len(context) < DEEPEST_CALLS else ():
            edges = self.transfer.edges(caller, call)
            if not any(edge.callee is function and not edge.is_guess for edge in edges):
                continue
            passing = Site(caller, call)
            given = self.contexts.given(function, one, passing)
            if not self.receivers.may_give(context, function, passing):
                continue
            if given is None and (is_captured(caller, call) or any(True for _ in spread_for(caller, call, function, one[3]))):
                yield from self._through(way, one, passing)
            if given is not None and given[0] is caller and caller not in function.below:
                known = Known(given[0], given[1], (*context, (function, passing)))
                yield way._replace(known=known, passed=(passing, *way.passed))

    def _through(self, way: Way, one: Instruction, passing: Site) -> Iterator[Way]:
        """What a function hands on that spreads its arguments, or a closure that was made for another: what those give that call it."""
        function, context = way.known.function, way.known.context
        closure = passing.function
        calls = [Site(*place) for place in self.transfer.callers(closure) if may_be_made_for(self.facts, Site(*place), closure, function)]
        for source in self.carriers.sources(function, one[2], ((function, passing),)):
            if source.function not in (function, closure):
                outer = [call for call in calls if call.function is source.function]
                known = Known(source.function, source.register, (*context, (function, passing)))
                yield way._replace(known=known, passed=(*outer[:1], passing, *way.passed))

    def _joined(self, way: Way, one: Instruction) -> Iterator[Origin]:
        function = way.known.function
        predecessors = function.phi_order[function.blocks[one]]
        for place, register in enumerate(one[3:]):
            said = self.guards.on_edge(function, predecessors[place], one, register) if place < len(predecessors) else frozenset()
            decided = self.guards.excluded(function, predecessors[place], way.known.context) if place < len(predecessors) else False
            if not decided:
                is_left = self.pinnings.is_left(function, one, place, way.known.context)
                yield from self._left(guarded(self.walk(way.at(register)), said), is_left)

    def _left(self, origins: Iterator[Origin], is_left: bool) -> Iterator[Origin]:
        """Origins of what is left as it is where a flag would pin it: whether it is pinned is not known."""
        for origin in origins:
            yield origin._replace(pinning="unknown") if is_left and origin.pinning == "pageable" else origin

    def _called(self, way: Way, one: Instruction) -> Iterator[Origin]:
        function, context = way.known.function, way.known.context
        edges = [edge for edge in self.transfer.edges(function, one) if edge.is_direct]
        callees = [edge.callee for edge in edges if not is_running(context, function, edge.callee) and edge.callee.code.kind != "class"]
        calls = self.calls(way.known, one)
        if len(callees) > 1 and self.may_pin(Site(function, one)):
            yield from self.kept(way)
        elif callees and len(context) < DEEPEST_CALLS:
            yield from self._given_back(way, one, callees)
        elif calls:
            for call in calls:
                yield from self.modelled_by_row(way, call)
        elif one[0] == op.INVOKE and function.is_cpp and self._is_inside(function, one):
            yield from self.walk(self.viewed(way, one).at(one[3]))
        elif not edges and self._is_given_device(way.known, one):
            yield Origin(way.known, "device", "unknown", "torch.Tensor", "none", way.passed, way.views, "computed")
        else:
            yield from self.kept(way)

    def _given_back(self, way: Way, one: Instruction, callees: list[Function]) -> Iterator[Origin]:
        """What functions give back to a call. Of several, which one runs, nothing says."""
        found = [list(self._returned(way, one, callee)) for callee in callees]
        others = {origin.space for each in found for origin in each} - {"host"}
        for origins in found:
            yield from (chosen(each) if others and len(found) > 1 and each.space == "host" else each for each in origins)

    def _returned(self, way: Way, one: Instruction, callee: Function) -> Iterator[Origin]:
        """What a function gives back to a call that enters it."""
        inside = way._replace(known=Known(callee, op.NONE, entering(way.known.context, callee, Site(way.known.function, one))))
        if callee.code.name == "__init__" or callee.by_opcode[op.YIELD]:
            yield from self.kept(way)
            return
        said = self.facts.declarations.of_result(callee) if self.facts.program.declares else None
        if said is not None:
            yield from as_declared(said, self._ends(inside), way)
            return
        yield from self._ends(inside)

    def _ends(self, inside: Way) -> Iterator[Origin]:
        """What the ends of a function give."""
        callee = inside.known.function
        for end in callee.by_opcode[op.RETURN]:
            if end[2] >= 0 and not self.guards.excluded(callee, callee.blocks[end], inside.known.context):
                said = self.guards.at(callee, end, end[2])
                is_left = self.pinnings.is_left_by(callee, end, inside.known.context)
                yield from self._left(guarded(self.walk(inside.at(end[2])), said), is_left)

    def _is_inside(self, function: Function, one: Instruction) -> bool:
        """C++: whether a method of a container or pointer of the standard library gives its memory."""
        rows = (self.facts.cpp_models.method(kind, function.text(one[4]), "::") for kind in ("std::unique_ptr", "std::vector"))
        return any(row is not None and row.effect in ("same", "view") for row in rows)

    def _is_given_device(self, known: Known, one: Instruction) -> bool:
        """Whether a call out of view is given memory of a device: it works there."""
        given = operands_of(known.function, one, False)
        return any(origin.space == "device" for register in given for origin in self.of(known.function, register, known.context))


_STEPS: dict[int, Callable[[Origins, Way, Instruction], Iterator[Origin]]] = {
    op.PARAM: Origins._given,
    op.PHI: Origins._joined,
    **dict.fromkeys(_PASSED, Origins._passed),
    **dict.fromkeys((op.CALL, op.INVOKE), Origins._called),
    **dict.fromkeys((op.NEXT, op.ITEM, op.UNPACK), Origins._element),
    op.ATTR: Origins._attribute,
    op.LOAD: Origins._shared,
    **dict.fromkeys((op.NAME, op.UNDEF), Origins._member),  # a member that a call may change is UNDEF before it
    op.ADDRESS_ITEM: Origins._element_address,
    **dict.fromkeys((op.BINARY, op.UNARY, op.COMPARE), Origins._operation),
}


def _left(way: Way, function: Function) -> Way:
    """A way out of a function by the call that had entered it. A function that calls itself has other callers as well."""
    rest = tuple(entry for entry in way.known.context if entry[0] is not function)
    return way._replace(known=way.known._replace(context=rest))
