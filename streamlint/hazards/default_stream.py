"""When work on the default stream matters: beside streams in scope, between the work of several streams, in extensions of PyTorch."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import Constant as ConstantObject
from streamlint.facts.code.objects import Memory, Scalar, Site
from streamlint.facts.graph.call_graph import Edge
from streamlint.facts.values.constructions import is_constructor, is_destructor
from streamlint.findings import Span
from streamlint.hazards.instead import is_chosen_by_branch
from streamlint.hazards.same_memory import SameMemory
from streamlint.hazards.stream_files import StreamFiles, is_cython
from streamlint.hazards.streams import Streams, lexical
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.code import TypeTuple
from streamlint.ir.graph import NOBODY, Graph
from streamlint.models.vocabulary import Selector
from streamlint.ordering.null_stream.at_rest import is_on_stream
from streamlint.ordering.null_stream.found_null import found_null, parameters_in
from streamlint.ordering.places.leading import leads_to
from streamlint.ordering.streams.choice import Choice
from streamlint.ordering.streams.choices import HELD, MADE, NULL, PARAMETER
from streamlint.ordering.streams.concurrent_work import Event
from streamlint.transfer.launch_rows import FIXED, GIVEN, OMITTED, Queued
from streamlint.transfer.modelled import operands_of
from streamlint.transfer.origin import Origin
from streamlint.transfer.origins import Origins
from streamlint.transfer.transfer import CALLING

_LOW_LEVEL = frozenset({"cython", "cuda-runtime", "cuda-driver", "cuda-libraries"})
SAME_MEMORY = "a non-blocking stream works on the same memory"
OVERTAKEN = "a non-blocking stream works on the memory here; the copy may still be filling it"
_DEEPEST = 24
"""Calls between the function that works with streams and work on the null stream."""


class DefaultStream(StreamFiles):
    """Judges work on the null stream."""

    def __init__(self, streams: Streams) -> None:
        super().__init__(streams)
        self.memory = SameMemory(streams)

    # --- what matters

    def reason(self, function: Function, one: Instruction, work: Queued, choice: Choice) -> str:
        """Why work on the null stream matters; empty where it does not."""
        if not choice.at.function.is_cpp and choice.at.function.unit is not function.unit:
            given_by_cython = function.is_cpp and is_cython(choice.at.function.unit)
            crossing = self._reason_cython(work, choice) if given_by_cython else self._reason_crossing(choice)
            if function.is_cpp or crossing:
                return crossing
        if function.is_cpp:
            return self._reason_own(function, one, work, choice)
        return self._reason_python(function, one, work, choice)

    def _reason_own(self, function: Function, one: Instruction, work: Queued, choice: Choice) -> str:
        """Why work of C++ matters whose stream C++, or its own file, has chosen."""
        if self.streams.per_thread(function.unit) is True or self.is_teardown(function) or self._is_made(function, one, work):
            return ""
        if self.is_ordered_on_purpose(function, one) or self._handles_error(function, one):
            return ""
        functions = [function, *(site.function for site in choice.calls)]
        if self.is_extension(function.unit) or self.is_extension(choice.at.function.unit):
            is_alone = any(map(is_constructor, functions)) or self._is_on_own_memory(function, work)
            return "" if is_alone else "torch extensions run on PyTorch's current stream"
        if any(map(is_constructor, functions)) or self._lives_on_null(function.unit) or self._has_one_stream(function.unit):
            return ""
        return self._reason_cpp(function, one, work, choice)

    def _reason_cpp(self, function: Function, one: Instruction, work: Queued, choice: Choice) -> str:
        holder, place = choice.at.function, choice.at.instruction
        if choice.how == "default" and not choice.calls and not self.streams.in_scope.is_given(holder):
            return ""
        if self.memory.overtaking(Site(function, one), work, choice) is not None:
            return OVERTAKEN
        null = found_null(self.streams.choices, holder, place)
        beside = [event for event in self.streams.beside.in_flight(holder, place) if event.choice is None or event.choice.key not in null]
        if self._is_apart(function, holder, place, work, beside):
            return ""
        race = self.is_race(choice.at)
        if not race and (self._is_timed(holder) or self.streams.at_rest.is_ended(holder, place)):
            return ""
        if self._is_in_scope(holder, null) and not is_chosen_by_branch(self.streams.launches, function, one, work):
            return "a stream is in scope"
        if self._is_held_up(holder, place, self.memory.not_joined(Site(function, one), work, choice, beside)):
            return "other streams have work in flight"
        if self.memory.is_raced(Site(function, one), work, choice):
            return SAME_MEMORY
        return "other work in this file uses a stream" if self._is_left_out(holder, work, choice) else ""

    def _is_left_out(self, holder: Function, work: Queued, choice: Choice) -> bool:
        """Whether work names no stream in a file of which almost all work names one."""
        is_left_out = choice.how in (OMITTED, FIXED, "literal") and not (work.kind == "copy" and work.waits)
        return is_left_out and self.own_stream(holder.unit) is not None and not self.streams.in_scope.makes(holder)

    def _is_in_scope(self, holder: Function, null: frozenset[object]) -> bool:
        """Whether a function can name a stream that is not null where the work is."""
        return (self._has_stream_in_scope(holder) and not self._has_only(holder, null)) or self._works_on_another(holder)

    def _is_apart(self, function: Function, holder: Function, place: Instruction, work: Queued, beside: list[Event]) -> bool:
        """Whether no work of another stream runs beside work on the null stream: the device has come to rest, or other work comes later."""
        if self._is_behind_device_wait(holder, place, beside) or self.streams.at_rest.is_alone(holder, place):
            return True
        if self._fetches_at_rest(holder, place, work, beside) and not self._is_of_given_stream(holder, place):
            return True
        if not beside and not self.streams.beside.behind(holder, place) and self._is_brief_at_rest(holder, place, work):
            return True
        is_own = function is holder  # the registers of the work are those of its own function
        return not beside and ((is_own and self._sets_up(holder, place, work)) or self._is_before_streams_work(holder, work))

    def _reason_crossing(self, choice: Choice) -> str:
        """Python hands C++ the null stream, and memory that it works on under a stream of its own."""
        holder, place = choice.at.function, choice.at.instruction
        current = self.streams.choices.currents.of_library(holder, place, "torch")
        if current is None or current.register < 0:
            return ""
        made = self.streams.choices.of_register(holder, current.register, choice.at)
        is_made = any(each.kind == MADE and self.streams.blocking(each) is False for each in made)
        return "other work under this stream" if is_made and self._hands_memory(holder, place) else ""

    def _hands_memory(self, holder: Function, call: Instruction) -> bool:
        for register in operands_of(holder, call, receiver=False):
            one = holder.definitions[register] if register >= 0 else None
            inner = one[3] if one is not None and one[0] == op.INVOKE else register
            if any(isinstance(value, Memory) and value.type.startswith("torch") for value in self.transfer.values(holder, inner)):
                return True
        return False

    def _reason_cython(self, work: Queued, choice: Choice) -> str:
        """The function that Python calls puts other work on a stream: one that it is given, or made."""
        holder, place = choice.at.function, choice.at.instruction
        beside = self.streams.beside.in_flight(holder, place)
        if is_constructor(holder) or self._is_behind_device_wait(holder, place, beside):
            return ""
        if self._fetches_at_rest(holder, place, work, beside):
            return ""
        others = (event.choice for event in self.streams.beside.events(holder) if event.work is not None and event.instruction != place)
        return "a stream is in scope" if any(each is not None and each.kind in (PARAMETER, MADE) for each in others) else ""

    def _reason_python(self, function: Function, one: Instruction, work: Queued, choice: Choice) -> str:
        if work.library in _LOW_LEVEL and not is_constructor(function):
            return self._reason_cython(work, choice)
        if work.library not in self.facts.models.marked("explicit") or is_constructor(function) or function.code.kind == "module":
            return ""
        is_held_up = self._holds_up_streams(choice.at.function, choice.at.instruction)
        return "other streams have work in flight" if is_held_up and self._is_certain(function, one, work) else ""

    def _holds_up_streams(self, holder: Function, place: Instruction) -> bool:
        """Python: whether work on the null stream would hold up that of streams that are ordered with it."""
        beside = self.streams.beside.in_flight(holder, place, self._is_made_blocking)
        is_held_up = bool(beside) and self._is_held_up(holder, place, beside)
        return is_held_up or bool(self.streams.beside.of_earlier_calls(holder, place, self._is_made_blocking))

    def inside(self, function: Function) -> Iterator[Event]:
        """Python: the work on the null stream of functions that are called where it holds up streams, and that know of none."""
        if function.is_cpp or function.code.kind == "module" or is_constructor(function):
            return
        for one in function.code.instructions():
            if one[0] not in CALLING or not self._holds_up_streams(function, one):
                continue
            yield from list(filter(self._is_hidden, self.streams.beside.inside(function, one, _DEEPEST)))[:1]  # one finding a call

    def _is_hidden(self, event: Event) -> bool:
        """Whether it is work of a library of Python on the null stream that nobody on the way has chosen."""
        work, choice = event.work, event.choice
        if (
            work is None
            or choice is None
            or choice.kind != NULL
            or choice.calls
            or work.library not in self.facts.models.marked("explicit")
        ):
            return False
        return self._is_certain(event.at.function, event.at.instruction, work)

    def _is_certain(self, function: Function, one: Instruction, work: Queued) -> bool:
        """Whether it is work of that library whatever the values are: what NumPy may do as well is work on the host where it does."""
        if one[0] not in (op.CALL, op.INVOKE):
            memory = [
                value for register in op.reads(one) for value in self.transfer.values(function, register) if isinstance(value, Memory)
            ]
            return all(value.space == "device" for value in memory)
        rows = [call.row for call in self.transfer.libraries(function, one)]
        return all(row is not None and row.library == work.library for row in rows)

    def _is_made_blocking(self, event: Event) -> bool:
        return event.choice is not None and event.choice.kind == MADE and self.streams.blocking(event.choice) is True

    def _is_held_up(self, holder: Function, place: Instruction, beside: list[Event]) -> bool:
        """Whether the work of several streams, of several rounds, or of a stream behind it is held up."""
        if not beside:
            return False
        keys = keys_of(beside)
        if len(keys) > 1 or holder.is_repeated(place):
            return True
        return bool(keys_of(self.streams.beside.behind(holder, place)) - keys)

    def is_race(self, at: Site) -> bool:
        """Whether work is beside streams that are not ordered with the null stream."""
        if self.is_extension(at.function.unit):
            return True
        beside = self.streams.beside
        events = beside.in_flight(at.function, at.instruction) or beside.behind(at.function, at.instruction)
        return any(event.choice is not None and self.streams.blocking(event.choice) is False for event in events)

    def near(self, at: Site) -> list[Site]:
        """The work of other streams that is in flight where work is queued, or queued behind it."""
        events = self._in_flight(at) + self.streams.beside.behind(at.function, at.instruction)
        return list(dict.fromkeys(event.at for event in events))

    def _in_flight(self, at: Site) -> list[Event]:
        found = self.streams.beside.in_flight(at.function, at.instruction)
        is_python = not (found or at.function.is_cpp)
        return self.streams.beside.of_earlier_calls(at.function, at.instruction, self._is_made_blocking) if is_python else found

    def made_beside(self, at: Site) -> list[Span]:
        """Where streams were made that have work in flight beside the work."""
        events = self._in_flight(at)
        spans = (self.streams.made_at(event.choice) for event in events if event.choice is not None)
        return list(dict.fromkeys(span for span in spans if span is not None))[:2]

    # --- what the surroundings say

    def _has_stream_in_scope(self, holder: Function) -> bool:
        for function in self._choosers(holder):
            if self.streams.in_scope.makes(function):
                return False
            if self.streams.in_scope.is_named(function):
                return True
        return False

    def _has_only(self, holder: Function, null: frozenset[object]) -> bool:
        """Whether all streams that a function is given are among those that are null where the work is."""
        owner = holder.method.owner if holder.method is not None else None
        found = set(parameters_in(null))
        return (
            bool(found)
            and found.issuperset(self.streams.in_scope.given_by(holder))
            and (owner is None or not self.streams.in_scope.has_members(owner))
        )

    def _choosers(self, holder: Function) -> list[Function]:
        """The functions that could have passed a stream: the one that chose, and those of its file that call it; no constructor, whose
        object nobody works with yet."""
        found = lexical(holder)
        for function in found:
            if len(found) > 12:
                break
            for caller, call in self.facts.call_places(function):
                is_near = caller.unit is holder.unit and caller not in found and caller.code.kind != "module" and not is_constructor(caller)
                if is_near and any(edge.callee is function and edge.is_followed for edge in self.transfer.edges(caller, call)):
                    found.append(caller)
        return found

    def _works_on_another(self, holder: Function) -> bool:
        """Whether a function puts other work on a stream that it asks somebody for."""
        return any(
            event.work is not None and event.work.how == GIVEN and event.choice is not None and event.choice.kind == HELD
            for event in self.streams.beside.own(holder)
        )

    def _is_behind_device_wait(self, holder: Function, place: Instruction, beside: list[Event]) -> bool:
        """Whether the host has just waited for the whole device: nothing is there to be held up or to race with."""
        if beside:
            return False
        before = self.streams.beside.before(holder, place)
        return bool(before) and before[-1].work is None and before[-1].choice is None

    def _fetches_at_rest(self, holder: Function, place: Instruction, work: Queued, beside: list[Event]) -> bool:
        """Whether it fetches data, which the host wants now, with nothing in flight beside it but what the data may come from."""
        if work.kind != "copy" or work.direction != "d2h" or not work.waits:
            return False
        if not beside:
            return True
        keys = keys_of(beside)
        alone = len(keys) == 1 and all(self._is_made_blocking(event) for event in beside)
        return alone and not keys_of(self.streams.beside.behind(holder, place)) - keys

    def _is_of_given_stream(self, holder: Function, place: Instruction) -> bool:
        """Whether the function itself takes a stream, and nobody has waited yet."""
        waits = (event for event in self.streams.beside.before(holder, place) if event.work is None)
        return self.streams.in_scope.is_given(holder) and not any(True for _ in waits) and not self._comes_at_rest(holder, place)

    def _is_brief_at_rest(self, holder: Function, place: Instruction, work: Queued) -> bool:
        """Whether the host waits for the work at once, or it fills memory, and all callers have waited; to fill, that it has just waited
        itself, for whichever stream, is enough."""
        if work.kind == "memset":
            last = next(reversed(self.streams.beside.before(holder, place)), None)
            return (last is not None and (last.work is None or last.work.waits)) or self._comes_at_rest(holder, place)
        return work.waits and self._comes_at_rest(holder, place)

    def _comes_at_rest(self, holder: Function, place: Instruction) -> bool:
        """Whether all callers have waited, so that nothing is in flight where the function comes to an instruction."""
        return self.streams.at_rest.comes_at_rest(holder, place, self.streams.in_scope.given_by(holder))

    def _sets_up(self, holder: Function, place: Instruction, work: Queued) -> bool:
        """Whether it fills memory that the function has just made and keeps, before it has any stream."""
        if work.kind not in ("copy", "memset") or self.streams.in_scope.is_given(holder):
            return False
        if not self._fills_kept(holder, work):
            return False
        makers = [each for each in holder.by_opcode[op.CALL] if last_name(holder, each) in self.transfer.names(frozenset({"stream"}))]
        if any(leads_to(holder, each, place) for each in makers):
            return False
        others = [event for event in self.streams.beside.events(holder) if event.work is not None and event.choice is not None]
        return bool(makers) or all(event.choice is not None and event.choice.kind == NULL for event in others)

    def _is_before_streams_work(self, holder: Function, work: Queued) -> bool:
        """Whether it fills memory for callers that have just made the streams, on which nothing was put yet."""
        if work.kind not in ("copy", "memset") or work.direction == "d2h" or any(map(is_on_stream, self.streams.beside.events(holder))):
            return False
        places = list(self.facts.call_places(holder))
        return bool(places) and all(self._has_idle_streams(caller, call) for caller, call in places)

    def _has_idle_streams(self, caller: Function, call: Instruction) -> bool:
        """Whether streams are made before a call, and no work on one comes before it."""
        if any(map(is_on_stream, self.streams.beside.before(caller, call))):
            return False
        made = [one for one in caller.code.instructions() if one[0] in CALLING and any(map(self._makes, self.transfer.edges(caller, one)))]
        return any(leads_to(caller, one, call) for one in made)

    def _makes(self, edge: Edge) -> bool:
        return edge.is_followed and self.streams.in_scope.makes(edge.callee)

    def _is_on_own_memory(self, function: Function, work: Queued) -> bool:
        """Whether all that it works on is memory that the program has from the driver: a program of its own in the extension."""
        origins = self.transfer.one_of(Origins, self.transfer)
        registers = self._worked_on(function, work)
        if not registers or any(self._holds_others(function, register) for register in registers):
            return False
        return all(self._is_from_driver(origins.of(function, register)) for register in registers)

    def _holds_others(self, function: Function, register: int) -> bool:
        """Whether a register may hold memory that no call of the driver made, by the program facts: no walk is needed then."""
        node = self.facts.values(function, register)
        makers = [list(node.trace(value))[-1:] for value in list(node.values) if isinstance(value, Memory)]
        return any(not self._allocates(site) for sites in makers for site in sites)

    def _is_from_driver(self, found: list[Origin]) -> bool:
        return bool(found) and all(origin.site is not None and self._allocates(origin.site) for origin in found)

    def _allocates(self, site: Site) -> bool:
        return any(call.row.effect == "alloc" for call in self.transfer.modelled(site.function, site.instruction))

    def _fills_kept(self, function: Function, work: Queued) -> bool:
        """Whether it works on memory that the function has from the driver, and does not free."""
        allocated, freed = self._allocated(function)
        places = [self._pointer(function, register) for register in self._worked_on(function, work)]
        return bool(places) and all(place in allocated and place not in freed for place in places)

    def _worked_on(self, function: Function, work: Queued) -> list[int]:
        """The registers of the memory of a device that work reads and writes."""
        sides = {"h2d": work.writes, "d2h": work.reads}.get(work.direction, (*work.reads, *work.writes))
        return [register for register in sides if not self._is_number(function, register)]

    def _is_number(self, function: Function, register: int) -> bool:
        """Whether a register holds a number, and no address that is made of one."""
        one = function.definitions[register] if register >= 0 else None
        kind: TypeTuple | None = function.unit.ir.constants[one[3]] if one is not None and one[0] == op.CAST else None
        if kind is not None and kind[2]:
            return False
        values = list(self.facts.values(function, register).values)
        return bool(values) and all(isinstance(value, (Scalar, ConstantObject)) for value in values)

    def _pointer(self, function: Function, register: int) -> object:
        place = self.streams.choices.places.of(function, register)
        return place.root, tuple(key for key in place.path if key not in ("&", "*"))

    def _allocated(self, function: Function) -> tuple[set[object], set[object]]:
        """The variables in which a function stores memory from the driver, and those whose memory it frees."""
        allocated: set[object] = set()
        freed: set[object] = set()
        for one in function.by_opcode[op.CALL]:
            if last_name(function, one) not in self.transfer.names(frozenset({"alloc", "free"})):
                continue
            for call in self.transfer.modelled(function, one):
                into = call.row.get("into")
                register = call.given(into) if isinstance(into, Selector) else call.one("of")
                if register is not None and call.row.effect in ("alloc", "free"):
                    (allocated if call.row.effect == "alloc" else freed).add(self._pointer(function, register))
        return allocated, freed

    def _is_made(self, function: Function, one: Instruction, work: Queued) -> bool:
        """Whether the work is a part of making an object that nothing has used yet."""
        register = work.call.receiver if work.call is not None and work.call.row.get("makes") else None
        made = function.definitions[register] if register is not None and register >= 0 else None
        if made is None or register is None or made[0] != op.DECLARE:
            return False
        return not any(leads_to(function, use, one) for use in function.uses[register] if use[0] != op.BIND)

    def _is_timed(self, holder: Function) -> bool:
        """Whether the function takes the time between two events: it measures, and waits on purpose."""
        names = self.transfer.names(frozenset({"elapsed"}))
        return any(last_name(holder, one) in names for one in (*holder.by_opcode[op.CALL], *holder.by_opcode[op.INVOKE]))

    def is_ordered_on_purpose(self, function: Function, one: Instruction) -> bool:
        """Whether the null stream is made to wait for an event: its place is deliberate."""
        names = self.transfer.names(frozenset({"wait"}))
        for each in (*function.by_opcode[op.CALL], *function.by_opcode[op.INVOKE]):
            if last_name(function, each) not in names:
                continue
            for call in self.transfer.modelled(function, each):
                if call.row.effect == "wait" and (stream := call.stream()).register >= 0:
                    here = Site(function, each)
                    if any(choice.kind == NULL for choice in self.streams.choices.of_register(function, stream.register, here)):
                        return leads_to(function, one, each) or leads_to(function, each, one)
                elif call.row.effect == "wait" and stream.kind == NULL:
                    return True
        return False

    def is_teardown(self, function: Function) -> bool:
        """Whether it is a destructor of a class that owns what it works with; one that is lent a stream ends a scope."""
        if not is_destructor(function):
            return False
        owner = function.method.owner if function.method is not None else None
        if owner is None or not owner.unit.is_cpp or not self.streams.in_scope.has_members(owner):
            return True
        constructors = owner.methods.get("__init__", [])
        return not any(self.streams.in_scope.is_given(one) for one in constructors)

    def _handles_error(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction stands in a handler of exceptions."""
        handlers = set(function.code.handlers.values())
        if not handlers:
            return False
        graph = Graph.of(function.code)
        block = function.homes[one][0]
        while block != NOBODY and block not in handlers:
            block = graph.dominators[block]
        return block != NOBODY

    def is_uncalled(self, function: Function) -> bool:
        """Whether an extension neither binds nor calls a function, and nobody else can."""
        return self.streams.extensions.has(function.unit) and self.streams.extensions.is_uncalled(function, self.facts.exports)


def keys_of(events: list[Event]) -> set[object]:
    """The streams of events."""
    return {event.choice.key for event in events if event.choice is not None}
