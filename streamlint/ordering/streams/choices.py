"""Who chose the stream of an operation: the null stream, one that was made, a parameter, the current one; here, or in a caller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import COPIES
from streamlint.facts.code.objects import Instance, LibraryObject, Object, Site, Unknown
from streamlint.facts.files.cpp_scopes import scope_of
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY
from streamlint.models.vocabulary import Selector
from streamlint.ordering.paths.called_arguments import CalledArguments
from streamlint.ordering.paths.fields import Fields
from streamlint.ordering.paths.packs import expanded, expands
from streamlint.ordering.places.first_rounds import FirstRounds
from streamlint.ordering.places.lent_variables import LentVariables
from streamlint.ordering.places.places import Place, Places
from streamlint.ordering.streams.array_streams import streams_of
from streamlint.ordering.streams.choice import Choice, default_is_null
from streamlint.ordering.streams.entered import Entered
from streamlint.ordering.streams.handles import Handles
from streamlint.ordering.streams.streams import OF_THREAD, Currents
from streamlint.transfer.actions import Stream, Viewed
from streamlint.transfer.launch_rows import CONFIG, CURRENT, FIXED, GIVEN, HANDLE, OMITTED, OWN, POLICY, Queued, policy_in
from streamlint.transfer.modelled import ModelledCall, is_null
from streamlint.transfer.transfer import Transfer
from streamlint.waits.constants import constants_of
from streamlint.waits.entered import Held
from streamlint.waits.operands import bound_of, given_to, spread_for

NULL, PTDS, AMBIENT, MADE, PARAMETER, HELD = "null", "ptds", "current", "made", "parameter", "held"
"""What a stream is. ``held``: some stream that is found in an object, or that an unknown function gives."""
IN_VIEW = frozenset({NULL, AMBIENT, MADE, PTDS})
"""Those of which it is known what they are."""
_DETAILS = {"null": NULL, "default": NULL, "ptds": PTDS, "per-thread": PTDS, "current": AMBIENT}
_MADE = frozenset({"blocking", "non-blocking", "created", "pool"})
_DEEPEST = 4
"""Calls between work and where its stream is looked for."""


class Choices:
    """Asks for the streams of operations."""

    def __init__(self, transfer: Transfer, places: Places, currents: Currents) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.places = places
        self.currents = currents
        self.entered = Entered(transfer, currents)
        self.called = transfer.one_of(CalledArguments, transfer.facts)
        self.handles = Handles(transfer, places)
        self.first = transfer.one_of(FirstRounds, transfer)
        self.lent = transfer.one_of(LentVariables, transfer)
        self.fields = transfer.one_of(Fields, transfer, places)
        self.constants = constants_of(transfer.facts)
        self._variables: dict[tuple[Function, int], LibraryObject | None] = {}
        self._known: dict[tuple[Function, Instruction, Queued], list[Choice]] = {}

    def of(self, function: Function, one: Instruction, work: Queued) -> list[Choice]:
        """The streams that a piece of work may go to."""
        key = (function, one, work._replace(call=None))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = list(dict.fromkeys(self._of(function, one, work)))
        return found

    def _of(self, function: Function, one: Instruction, work: Queued) -> Iterator[Choice]:
        here = Site(function, one)
        if work.how in (OMITTED, FIXED):
            yield Choice(NULL, work.how, here)
        elif work.how == CURRENT:
            yield from self._current(function, one, work)
        elif work.how == HANDLE:
            yield from self._of_handle(function, one, work)
        elif work.how == CONFIG:
            context = work.call.text("context") if work.call is not None else ""
            field = context or ("hStream" if work.library == "cuda-driver" else "stream")
            yield from self.of_field(function, work.operand, field, here, ())
        elif work.how == POLICY:
            yield from self._of_policy(function, work, here)
        elif work.how == OWN:
            yield from self._of_array(function, work.operand, here)
        elif work.how == GIVEN:
            yield from self.of_register(function, work.operand, here)

    def _of_array(self, function: Function, register: int, here: Site) -> Iterator[Choice]:
        """The stream that an array was made with; the null stream where none was named."""
        for holder, given in streams_of(self.transfer, function, register):
            yield from self.of_register(holder, given, here)
            return
        yield Choice(NULL, OMITTED, here)

    def _current(self, function: Function, one: Instruction, work: Queued) -> Iterator[Choice]:
        here = Site(function, one)
        stream = self.currents.of_library(function, one, work.library)
        if stream is not None:
            yield from self._of_current(function, stream, here, ())
            return
        entries = self.entered.of(function, work.library)
        for entry in entries:
            if entry.stream is not OF_THREAD:
                yield from self._of_current(entry.calls[0].function, entry.stream, entry.calls[0], entry.calls)
        if not self.entered.is_always(function, work.library) or any(entry.stream is OF_THREAD for entry in entries):
            yield Choice(NULL if work.library in function.unit.models.marked("device-alone") else AMBIENT, OMITTED, here)

    def _of_current(self, function: Function, stream: Stream, at: Site, calls: tuple[Site, ...]) -> Iterator[Choice]:
        if stream.register >= 0:
            yield from self.of_register(function, stream.register, at, calls)
        else:
            yield Choice(HELD if stream.kind != NULL else NULL, GIVEN, at, calls)

    # --- registers

    def of_register(
        self, function: Function, register: int, at: Site, calls: tuple[Site, ...] = (), is_up: bool = True
    ) -> Iterator[Choice]:
        """The streams that a register may hold; of a parameter also what callers give for it, if these are asked (``is_up``)."""
        waiting, seen = [register], set[int]()
        block = function.homes[at.instruction][0] if at.function is function else NOBODY
        while waiting:
            register = waiting.pop()
            one = function.definitions[register] if register >= 0 else None
            if one is None or register in seen:
                continue
            seen.add(register)
            if one[0] in COPIES:
                waiting.append(one[COPIES[one[0]]])
            elif one[0] == op.PHI:
                waiting += self.first.operands(function, one, block)
            elif one[0] == op.PARAM:
                yield from self._of_parameter(function, one[3], at, calls, is_up)
            elif not function.is_cpp and (inner := self._viewed(function, one)) is not None:
                waiting.append(inner)
            elif one[0] == op.NAME and not function.is_cpp and (stored := self._made_into(function, one)) is not None:
                yield Choice(MADE, GIVEN, at, calls, frozenset({stored}), self.places.of(function, register))
            elif one[0] == op.ATTR and self._is_parameter(function, one[3]) and function.is_cpp:
                yield from self.of_field(function, one[3], function.text(one[4]), at, calls, is_up)
            else:
                yield from self._by_values(function, register, one, at, calls)

    def _made_into(self, function: Function, one: Instruction) -> LibraryObject | None:
        """Cython: the stream that a call has made into the variable of a name (``cudaStreamCreate(&stream)``)."""
        key = (function, one[3])
        if key not in self._variables:
            self._variables[key] = None
            addresses = [each for each in function.by_opcode[op.ADDRESS_NAME] if each[3] == one[3]]
            for address, use in ((each, use) for each in addresses for use in function.uses[each[2]]):
                for call in self.transfer.modelled(function, use) if use[0] in (op.CALL, op.INVOKE) else ():
                    into = call.row.get("into") if call.row.effect == "stream" else None
                    if isinstance(into, Selector) and call.given(into) == address[2]:
                        self._variables[key] = LibraryObject("cudaStream_t", "stream", "created", Site(function, use))
        return self._variables[key]

    def _viewed(self, function: Function, one: Instruction) -> int | None:
        """Python: the stream whose handle this is (``stream.cuda_stream``, ``ffi.cast("void *", …)``)."""
        if one[0] not in (op.ATTR, op.CALL, op.INVOKE):
            return None
        return next((action.register for action in self.transfer.of(function, one) if isinstance(action, Viewed)), None)

    def _is_parameter(self, function: Function, register: int) -> bool:
        one = function.definitions[register] if register >= 0 else None
        return one is not None and one[0] == op.PARAM and not (one[3] == 0 and function.has_receiver)

    def _by_values(self, function: Function, register: int, one: Instruction, at: Site, calls: tuple[Site, ...]) -> Iterator[Choice]:
        node = self.facts.values(function, register)
        values = list(node.values)
        place = self.places.of(function, register)
        if is_null(function, register, values):
            yield Choice(NULL, "literal", at, calls)
            return
        if not function.is_cpp and not values and one[0] == op.CONST:
            return
        streams = _streams_of(values)
        kinds = {_DETAILS[value.detail] for value in streams if value.detail in _DETAILS}
        created = frozenset(value for value in streams if value.detail in _MADE)
        current = self._other_current(function, register, one, streams) if kinds == {AMBIENT} and not created else None
        if current is not None:
            yield from self.of_register(function, current, at, calls)
            return
        if created:
            yield Choice(MADE, GIVEN, at, calls, created, place)
        elif len(kinds) == 1 and _are_literal(streams) and (kinds != {NULL} or self._is_surely_null(function, one, values)):
            yield Choice(kinds.pop(), "literal", at, calls, frozenset(), place, _last_call(node.trace(streams[0])))
        else:
            yield self._held(function, register, one[3] if one[0] == op.INVOKE and not streams else register, at, calls)

    def _is_surely_null(self, function: Function, one: Instruction, values: list[Object]) -> bool:
        return not (any(isinstance(value, Unknown) for value in values) or self.lent.is_given(function, one))

    def _held(self, function: Function, register: int, holder: int, at: Site, calls: tuple[Site, ...]) -> Choice:
        """The choice of a stream that an object holds, or of one of which nothing is known."""
        inner = self._stream_inside(function, holder)
        kind, named = (MADE, holder) if inner else (HELD, register)
        return Choice(kind, GIVEN, at, calls, inner, self.places.of(function, named))

    def _other_current(self, function: Function, register: int, one: Instruction, streams: list[LibraryObject]) -> int | None:
        """Python: the register of the stream that a function has made current for a library, if it is not the one that is asked for."""
        current = self.currents.of_library(function, one, streams[0].type.partition(".")[0]) if not function.is_cpp else None
        return current.register if current is not None and current.register >= 0 and current.register != register else None

    def _stream_inside(self, function: Function, register: int) -> frozenset[LibraryObject]:
        """The streams that an object's class makes or holds: it converts to one."""
        found: set[LibraryObject] = set()
        for value in list(self.facts.values(function, register).values):
            if isinstance(value, LibraryObject) and value.kind == "stream":
                found.add(value)
            elif isinstance(value, Instance) and value.definition.unit.is_cpp:
                found |= self._streams_of_class(value)
        return frozenset(one for one in found if one.detail in _MADE)

    def _streams_of_class(self, value: Instance) -> set[LibraryObject]:
        """The streams that the methods of an object give."""
        methods = (method for each in value.definition.methods.values() for method in each)
        given = ((method, end[2]) for method in methods for end in method.by_opcode[op.RETURN] if end[2] >= 0)
        held = (one for method, register in given for one in self.facts.values(method, register).values)
        return {one for one in held if isinstance(one, LibraryObject) and one.kind == "stream"}

    # --- parameters

    def _of_parameter(self, function: Function, index: int, at: Site, calls: tuple[Site, ...], is_up: bool) -> Iterator[Choice]:
        yield Choice(PARAMETER, GIVEN, at, calls, frozenset(), Place(("parameter", index)))
        if not is_up or len(calls) >= _DEEPEST:
            return
        for caller, call in self.facts.call_places(function):
            edges = self.transfer.edges(caller, call)
            if not any(edge.callee is function and not edge.is_guess for edge in edges) or Site(caller, call) in calls:
                continue
            if not self.fits(caller, call, function):
                continue
            inner = (Site(caller, call), *calls)
            if expands(caller, call, function):
                yield from self._of_pack(caller, call, function, index, inner)
                continue
            given = given_to(caller, call, function, index)
            if given is None and not caller.is_cpp and any(True for _ in spread_for(caller, call, function, index)):
                yield from self._of_spread(function, index, inner)
            elif given is None:
                yield from self._left_out(function, index, inner)
            elif given >= 0:
                yield from self.of_register(caller, given, Site(caller, call), inner)

    def _of_spread(self, function: Function, index: int, calls: tuple[Site, ...]) -> Iterator[Choice]:
        """Python: what a parameter is that a call may give by what it spreads."""
        parameter = next((one[2] for one in function.by_opcode[op.PARAM] if one[3] == index), op.NONE)
        for part in self.constants.given.before(Held(function, parameter, ((function, calls[0]),))) or ():
            if part is not None and (part.function, part.register) == function.default_place(index):
                yield from self._left_out(function, index, calls)
            elif part is not None:
                passing = next((use for use in part.function.uses[part.register] if use[0] in (op.CALL, op.INVOKE)), None)
                above = (Site(part.function, passing), *calls) if passing is not None and part.function is not calls[0].function else calls
                yield from self.of_register(part.function, part.register, above[0], above)

    def _left_out(self, function: Function, index: int, calls: tuple[Site, ...]) -> Iterator[Choice]:
        """What a parameter is where a call leaves it out."""
        if default_is_null(function, index):
            yield Choice(NULL, "default", calls[0], calls)
        elif (left := function.default_place(index)) is not None:
            yield from self.of_register(*left, calls[0], calls, False)

    def _of_pack(self, caller: Function, call: Instruction, function: Function, index: int, calls: tuple[Site, ...]) -> Iterator[Choice]:
        """C++: what a call gives for a parameter that expands a pack, as the callers above have given that."""
        place = index - bound_of(caller, call, function)
        for one in expanded(self.called, caller, call, function):
            holder, register = one.arguments[place] if 0 <= place < len(one.arguments) else (caller, op.NONE)
            above = (*one.calls, *calls)
            if register >= 0:
                at = next((site for site in above if site.function is holder), above[0])
                yield from self.of_register(holder, register, at, above)
            elif default_is_null(function, index):
                yield Choice(NULL, "default", above[0], above)

    def fits(self, caller: Function, call: Instruction, callee: Function) -> bool:
        """C++: whether the arguments of a call fit an overload: an object is no stream, and a stream no object."""
        for index, parameter in enumerate(callee.code.parameters if callee.is_cpp else ()):
            given = given_to(caller, call, callee, index)
            if given is None or given < 0 or parameter.type is None or parameter.name == "this":
                continue
            kind = str(parameter.type[0])
            if kind not in callee.code.template and not self._fits(caller, call, callee, kind, given):
                return False
        return True

    def _fits(self, caller: Function, call: Instruction, callee: Function, kind: str, given: int) -> bool:
        """Whether an argument fits a parameter of a type."""
        wants = self.facts.cpp_models.type_named(kind)
        wants_stream = wants is not None and wants.kind == "stream"
        wants_class = self.facts.program.cpp.find_class(callee.unit, scope_of(callee), kind) is not None
        if wants_stream and _is_untyped(caller, given):
            return False
        values = list(self.facts.values(caller, given).values)
        kinds = {type(value) for value in values if not isinstance(value, Unknown)}
        is_stream = bool(_streams_of(values))
        if is_stream and (wants_class or (not wants_stream and self._goes_elsewhere(caller, call, callee, given))):
            return False
        if kinds != {Instance}:
            return True
        if wants_stream and not self._stream_inside(caller, given):
            return False
        return not wants_class or self._is_one_of(values, callee, kind)

    def _goes_elsewhere(self, caller: Function, call: Instruction, callee: Function, given: int) -> bool:
        """Whether another overload takes as a stream what this one takes as something else."""
        others = [edge.callee for edge in self.transfer.edges(caller, call) if edge.callee is not callee]
        for other in others:
            for index, parameter in enumerate(other.code.parameters):
                kind = self.facts.cpp_models.type_named(parameter.type[0]) if parameter.type is not None else None
                if kind is not None and kind.kind == "stream" and given_to(caller, call, other, index) == given:
                    return True
        return False

    def _is_one_of(self, values: list[Object], callee: Function, name: str) -> bool:
        """Whether one of the objects may be of a class of the program."""
        wanted = self.facts.program.cpp.find_class(callee.unit, scope_of(callee), name)
        objects = [value for value in values if isinstance(value, Instance)]
        order = self.facts.hierarchy.order
        return wanted is None or any(wanted in order(one.definition) or one.definition in order(wanted) for one in objects)

    # --- fields of structs

    def of_field(
        self, function: Function, register: int, field: str, at: Site, calls: tuple[Site, ...], is_up: bool = True
    ) -> Iterator[Choice]:
        """A member of an object that is passed: what whoever made the object has put there."""
        held = self.fields.behind(function, register)
        one = function.definitions[held] if held >= 0 else None
        if one is not None and one[0] == op.DEREF:
            pointer = self.fields.behind(function, one[3])
            one = function.definitions[pointer] if pointer >= 0 else None
        if one is not None and one[0] == op.PARAM:
            yield from self._field_of_parameter(function, one[3], field, at, calls, is_up)
            return
        given, made = self.fields.given(function, register, field)
        if given:
            for value in given:
                yield from self.of_register(function, value, at, calls, is_up)
        elif made is not None and self._has_null_default(function, held, field) and not self.fields.is_filled(function, register, field):
            how = OMITTED if not calls and self.fields.is_default_made(function, register, made) else "default"
            yield Choice(NULL, how, Site(function, made) if calls else at, calls)
        else:
            yield Choice(HELD, GIVEN, at, calls)

    def _field_of_parameter(
        self, function: Function, index: int, field: str, at: Site, calls: tuple[Site, ...], is_up: bool
    ) -> Iterator[Choice]:
        yield Choice(PARAMETER, GIVEN, at, calls, frozenset(), Place(("parameter", index), (field,)))
        for caller, call in self.facts.call_places(function) if is_up and len(calls) < _DEEPEST else ():
            given = given_to(caller, call, function, index)
            if given is not None and given >= 0 and Site(caller, call) not in calls:
                yield from self.of_field(caller, given, field, Site(caller, call), (Site(caller, call), *calls))

    def _has_null_default(self, function: Function, register: int, field: str) -> bool:
        values = self.facts.values(function, register).values
        for value in values:
            if isinstance(value, Instance):
                for stored in value.definition.assigned.get(field, ()):
                    return is_null(value.definition.body, stored, [])
                return False
        return field in ("stream", "hStream")

    # --- handles and policies

    def _of_policy(self, function: Function, work: Queued, here: Site) -> Iterator[Choice]:
        assert work.call is not None
        maker, register = policy_in(self.transfer, function, work.operand)
        while (one := maker.definitions[register] if register >= 0 else None) is not None and one[0] in (op.CALL, op.INVOKE):
            if one[0] == op.INVOKE and maker.text(one[4]) == "on" and len(one) > 6:
                yield from self.of_register(maker, one[6], here)
                return
            register = one[3]
        word = ModelledCall(self.facts, maker, work.call.call, work.call.row).word(register)
        if word == "policy" or self.facts.cpp_models.call(maker.dotted(register)) is not None:
            yield Choice(NULL, "policy", here)
        elif word != "host-policy":
            yield from self.of_register(function, work.operand, here)

    def _of_handle(self, function: Function, one: Instruction, work: Queued) -> Iterator[Choice]:
        here = Site(function, one)
        values = list(self.facts.values(function, work.operand).values) if work.operand >= 0 else []
        if any(isinstance(value, LibraryObject) and value.kind == "stream" for value in values):
            yield Choice(AMBIENT, GIVEN, here)
            return
        bound = list(self.handles.bindings(function, work.operand))
        if bound:
            for call in bound:
                register = call.one("stream")
                for each in self.of_register(call.function, register, here) if register is not None else ():
                    is_theirs = each.kind == PARAMETER and call.function is not function  # of which no caller here knows
                    kind, place = (HELD, None) if is_theirs else (HELD if each.kind == NULL else each.kind, each.place)
                    yield each._replace(kind=kind, place=place, at=here, calls=())
        elif work.operand < 0:
            yield Choice(NULL, OMITTED, here)
        elif self.handles.is_made_in_view(function, work.operand):
            yield Choice(NULL, HANDLE, here)
        else:
            yield Choice(HELD, GIVEN, here)


def kind_of(stream: LibraryObject) -> str:
    """What a stream is; held where that is not known."""
    return MADE if stream.detail in _MADE else _DETAILS.get(stream.detail, HELD)


def _streams_of(values: Iterable[Object]) -> list[LibraryObject]:
    """The streams among values."""
    return [value for value in values if isinstance(value, LibraryObject) and value.kind == "stream"]


def _last_call(trace: Iterable[Site]) -> Site | None:
    """The last place of a trace, if it is a call."""
    last = next(iter([*trace][-1:]), None)
    return last if last is not None and last.instruction[0] in (op.CALL, op.INVOKE) else None


def _are_literal(streams: Iterable[LibraryObject]) -> bool:
    """Whether code names all streams, and makes none."""
    return all(value.detail in _DETAILS for value in streams)


def _is_untyped(function: Function, register: int) -> bool:
    """Whether a register holds a parameter that is declared as ``void*``, which C++ takes for no other pointer."""
    one = function.definitions[register]
    kind = function.code.parameters[one[3]].type if one is not None and one[0] == op.PARAM else None
    return kind is not None and kind[0] == "void" and kind[2] == 1
