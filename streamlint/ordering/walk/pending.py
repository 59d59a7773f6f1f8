"""A pending copy: which waits of the host end it, by the stream that it is on and the events that are recorded behind it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TypeGuard

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import Constant, Container, External, Memory, Scalar, Site
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.memory.on_device import may_be_there
from streamlint.ordering.memory.parts import Sum
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.on_path import as_passed
from streamlint.ordering.paths.set_flags import SETTING, SetFlags, compared_with_none
from streamlint.ordering.paths.states import Answer, State
from streamlint.ordering.places import rotation
from streamlint.ordering.places.flow import BUFFER, DONE, EVENT, FILLED, LATE, SET, SIGNAL, STATUS, STREAM, Tracked
from streamlint.ordering.places.places import ADDRESS, ANY, Element, Key, Place, is_object, register_place
from streamlint.ordering.streams.streams import sites_of
from streamlint.ordering.walk.copy_streams import CopyStreams
from streamlint.ordering.walk.walk import ORDERED, Walk
from streamlint.transfer.actions import (
    CURRENT,
    NAMED,
    Action,
    Asked,
    Copied,
    Lost,
    Read,
    Recorded,
    Signalled,
    Stream,
    Synchronized,
    Touched,
    Viewed,
)
from streamlint.transfer.modelled import ModelledCall, listed
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.transfer.waiting import Waited
from streamlint.waits.origins import TENSOR
from streamlint.waits.questions import Key as Question
from streamlint.waits.questions import alike

_NO_WAIT = ("h2h", "d2d")


class Pending(CopyStreams):
    """Follows copies that the host has not seen end. A subclass says what reaches them too early (`meets`)."""

    meets_memory = True
    resumes = True
    passive = (*Walk.passive, Lost)
    hooked = SETTING
    flow_of: type[SetFlags] = SetFlags

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.flow = self.flags = self.flow_of(self.places)

    def is_hooked(self, function: Function, one: Instruction) -> bool:
        return super().is_hooked(function, one) and (one[0] not in SETTING or self.flags.sets(function, one))

    def meets(self, state: State, one: Instruction, action: Action) -> bool:
        """Whether an action is what must not come before the copy has ended: it is reported, and the path ends."""
        raise NotImplementedError

    def follow(self, site: Site, copied: Copied, memory: int) -> None:
        """Follow a copy whose memory a register holds."""
        function, one = site.function, site.instruction
        self._origin = site
        decided: set[tuple[Question, bool]] = set()
        if copied.flag != op.NONE and copied.asynchronous is None:
            decided.add((alike(function, copied.flag), True))
        state = self.start(function, one, frozenset(self._memory(function, memory)), decided)
        where = self._where(state.frame, one, copied.stream)
        self.run(self._on(state, where))

    def follow_launch(self, site: Site, memory: frozenset[Tracked], stream: Stream) -> None:
        """Follow a copy that the launch of a graph runs, whose memory is known by its names there."""
        self._origin = site
        state = self.start(site.function, site.instruction, memory, ())
        self.run(self._on(state, self._where(state.frame, site.instruction, stream)))

    def _memory(self, function: Function, target: int) -> Iterator[Tracked]:
        """The memory of a copy, by all its names."""
        for register in self.transfer.shared(function, target):
            kind = next((value.type for value in self.transfer.values(function, register) if isinstance(value, Memory)), TENSOR)
            taken = rotation.elements(self.places, function, register)
            for place in (*self.places.names(function, register), *taken, *self._given_back(function, register)):
                yield Tracked(BUFFER, place, kind)
                yield from (Tracked(BUFFER, other, type_) for other, type_ in self._views(function, place))
                yield from (Tracked(BUFFER, other, kind) for other in self._behind_reference(function, place))
                if any(isinstance(value, Container) for value in self.transfer.values(function, register)):
                    yield Tracked(BUFFER, place.behind(ANY), kind)  # lists, each of whose elements is copied
            for each in listed(function, register):
                yield from (Tracked(BUFFER, place, kind) for place in self.places.names(function, each))
            same = self.places.of(function, register)
            if same.root[0] != "register" or same.path:
                for each, made in enumerate(function.definitions):
                    if made is not None and self.places.of(function, each) == same:
                        yield Tracked(BUFFER, register_place(each), kind)

    def _behind_reference(self, function: Function, place: Place) -> Iterator[Place]:
        """C++: the address of a variable that is a reference parameter is that of what the caller passed."""
        if place.root[0] != "cell" or place.path[-1:] != (ADDRESS,):
            return
        for stored, register in (
            (target, value) for one in function.by_opcode[op.STORE] for target, value in self.places.assigned(function, one)
        ):
            made = function.definitions[register]
            if stored.root == place.root and made is not None and made[0] == op.PARAM:
                yield Place(("parameter", made[3]), (ADDRESS,))

    def _views(self, function: Function, place: Place) -> Iterator[tuple[Place, str]]:
        """Other attributes of the same object that are views of an attribute, or that it is a view of, as its methods set them."""
        owner = function.method.owner if function.method is not None else None
        if owner is None or place.root != ("parameter", 0) or len(place.path) != 1:
            return
        yield from ((other, TENSOR) for one, other in self._mapped.get(owner, ()) if one == place)
        for name, stores in owner.own_stores.items():
            for store in stores:
                shared = self.transfer.shared(store.function, store.value)[1:] if name not in place.path else ()
                if any(self.places.of(store.function, register) == place for register in shared):
                    held = (value.type for value in self.transfer.values(store.function, store.value) if isinstance(value, Memory))
                    yield Place(place.root, (name,)), next(held, TENSOR)
        for store in owner.own_stores.get(str(place.path[0]), ()):
            for register in self.transfer.shared(store.function, store.value)[1:]:
                of = self.places.of(store.function, register)
                if of.root == place.root and len(of.path) == 1 and of != place:
                    yield of, TENSOR

    @cached_property
    def _mapped(self) -> dict[ClassInfo, list[tuple[Place, Place]]]:
        """C++: by class the members that hold a device's and the host's pointer to the same memory, each pair in both orders."""
        found: dict[ClassInfo, list[tuple[Place, Place]]] = defaultdict(list)
        for call in self.transfer.sites({"same"}, "into"):
            function, of, into = call.function, call.one("of"), call.one("into")
            if of is None or into is None or function.method is None or function.method.owner is None:
                continue
            first, second = self.places.of(function, into), self.places.of(function, of)
            first = Place(first.root, first.path[:-1]) if first.path[-1:] == (ADDRESS,) else first
            if is_object(first.root) and is_object(second.root) and len(first.path) == len(second.path) == 1:
                found[function.method.owner] += [(first, second), (second, first)]
        return found

    # --- what actions mean

    def judge(self, state: State, one: Instruction, action: Action) -> Answer:
        if self.orders(state, one, action) or self.meets(state, one, action):
            return ORDERED
        if isinstance(action, Touched):
            return ORDERED if any(self.leads(state, SIGNAL, register) for register in action.registers) else None
        if isinstance(action, Lost):
            return self._lost(state, one, action)
        more = self._joined(state, one, action) if isinstance(action, Waited) else self._passed_on(state, one, action)
        return state.tracked | more if more is not None else None

    def _passed_on(self, state: State, one: Instruction, action: Action) -> frozenset[Tracked] | None:
        """What else is tracked behind an action: records and signals behind the copy, other names of its memory, and answers of queries."""
        function = state.frame.function
        if isinstance(action, Recorded | Signalled):
            is_behind = self._is_same_stream(state, self._where(state.frame, one, action.stream))
            return frozenset(self._marks(function, action)) if is_behind else None
        if not op.DEFINES[one[0]]:
            return None
        result = register_place(one[2])
        if isinstance(action, Copied) and self._is_there_already(state, action):
            held = self.held(state, action.source)
            return frozenset({held._replace(place=result)}) if held is not None else None
        if isinstance(action, Viewed) and (held := self.held(state, action.register)) is not None:
            announced = Site(function, one) if action.announces else held.announced
            return frozenset({Tracked(BUFFER, result, action.type or held.type, announced, self.part_of(function, one, held))})
        if isinstance(action, Asked) and (self.has(state, EVENT, action.of) or self.has(state, STREAM, action.of)):
            kind = STATUS if action.is_status else DONE
            return frozenset({Tracked(kind, result), Tracked(kind, result.behind(Element(0)))})
        return None

    def _joined(self, state: State, one: Instruction, action: Waited) -> frozenset[Tracked]:
        """The stream that waits for that of the copy, or for an event behind it: who waits for this stream waits for the copy."""
        of = self._where(state.frame, one, Stream(NAMED, action.of))
        is_behind = self.has(state, EVENT, action.of) if action.is_event else action.of >= 0 and self._is_same_stream(state, of)
        return frozenset(self._behind(state.frame, self._where(state.frame, one, action.stream))) if is_behind else frozenset()

    def _marks(self, function: Function, action: Recorded | Signalled) -> Iterator[Tracked]:
        """The events and signals by which it is known that the copy is done."""
        if isinstance(action, Recorded):
            yield from (Tracked(EVENT, place) for place in self.known_as(function, action.event))
        else:
            yield from (Tracked(SIGNAL, place) for register in action.registers for place in self.places.names(function, register))

    def known_as(self, function: Function, register: int) -> Iterable[Place]:
        """The places of an event that is recorded: also those where it was put before."""
        held = self._places_of(function, register) if function.is_cpp else []
        taken = rotation.elements(self.places, function, register)
        return (*self.places.names(function, register), *held, *taken, *self._put_away(function, register, (), 3))

    def _put_away(self, function: Function, register: int, path: tuple[Key, ...], depth: int) -> Iterator[Place]:
        """Where a function puts what a register holds, alone or in tuples, lists and dicts."""
        for use in function.uses.get(register, ()) if depth and register >= 0 and not function.is_cpp else ():
            yield from (target.behind(*path) for target, value in self.places.assigned(function, use) if value == register)
            is_put = use[0] == op.INVOKE and register in use[6:] and function.text(use[4]) in function.known("puts", "queue-put")
            if is_put or (use[0] in (op.APPEND, op.PUT) and use[-1] == register):
                yield self.places.of(function, use[3 if is_put else 2]).behind(ANY, *path)
            elif use[0] in (op.BUILD, op.DICT):
                at = use.index(register, 4)
                inside = (Element(at - 4) if use[0] == op.BUILD else self.places.element(function, use[at - 1]), *path)
                yield register_place(use[2]).behind(*inside)
                yield from self._put_away(function, use[2], inside, depth - 1)

    def part_of(self, function: Function, one: Instruction, held: Tracked) -> Sum:
        """How far behind the copied range a view begins that an instruction makes."""
        return held.part

    def _lost(self, state: State, one: Instruction, action: Lost) -> Answer:
        """An unknown call: a method of the memory itself is one of its type; any other may wait for what it is given."""
        function = state.frame.function
        held = self.held(state, one[3]) if action.method else None
        if held is not None:
            for known in self.transfer.of_method(function, one, held.type):
                answer = self.judge(state, one, known)
                if answer is not None:
                    return answer
            return None
        return ORDERED if any(self._is_given(state, register) for register in action.registers) else None

    def is_order(self, state: State, one: Instruction, action: Action) -> bool:
        is_unknown_call = isinstance(action, Lost) and not action.method and any(self._is_given(state, each) for each in action.registers)
        return is_unknown_call or super().is_order(state, one, action)

    def orders(self, state: State, one: Instruction, action: Action) -> bool:
        if isinstance(action, Synchronized):
            if action.of is None:
                return True
            if isinstance(action.of, Stream):  # of a value of which nothing is known: an event has the method, too
                is_event = self.has(state, EVENT, action.of.register)
                return is_event or self._is_same_stream(state, self._where(state.frame, one, action.of))
            return self._is_awaited(state, action.of)
        if isinstance(action, Read) and action.waits:
            return self.held(state, action.register, action.depth) is None and self._may_wait(state, one, action)
        if isinstance(action, Copied) and action.asynchronous is False and action.direction not in _NO_WAIT:
            return not self._is_there_already(state, action) and self._is_same_stream(state, self._where(state.frame, one, action.stream))
        return False

    def _is_there_already(self, state: State, action: Copied) -> bool:
        """Whether the host asks for a tensor to be on the host that is the memory itself: it comes back as it is, and nothing waits."""
        return _is_fetch(action) and self.held(state, action.source) is not None

    def may_hold_up(self, action: Action) -> bool:
        return super().may_hold_up(action) or (
            isinstance(action, Copied) and action.asynchronous is False and action.direction not in _NO_WAIT
        )

    def _may_order_inside(self, state: State, one: Instruction, callee: Function) -> bool:
        """What a function reads of the memory itself orders nothing."""
        if not self._orders_inside(callee):
            return False
        given: set[int] = set()
        for param in callee.by_opcode[op.PARAM]:
            if any(self.held_at(state, (source,)) is not None for source in self.sources(state.frame.function, one, callee, param[3])):
                given.add(param[2])
        for inner in (each for opcode in CALLING for each in callee.by_opcode[opcode]) if given else ():
            if any(edge.is_followed and self._orders_inside(edge.callee) for edge in self.transfer.edges(callee, inner)):
                return True
            if any(self._waits_besides(callee, action, given) for action in self.transfer.of(callee, inner)):
                return True
        return not given

    def _waits_besides(self, function: Function, action: Action, given: set[int]) -> bool:
        """Whether the host may wait in an action for something else than what some registers hold."""
        if not self.may_hold_up(action):
            return False
        used = action.register if isinstance(action, Read) else action.source if _is_fetch(action) else op.NONE
        return used < 0 or given.isdisjoint(self._derived_from(function, used))

    def _derived_from(self, function: Function, register: int, depth: int = 6) -> Iterator[int]:
        """A register, and those that it was computed from."""
        yield register
        one = function.definitions[register] if register >= 0 and depth else None
        for each in op.reads(one) if one is not None and one[0] in (op.CALL, op.INVOKE, op.ATTR, op.ITEM, op.BINARY, op.UNARY) else ():
            yield from self._derived_from(function, each, depth - 1)

    def _is_awaited(self, state: State, event: int) -> bool:
        """Whether a wait for an event waits for the copy: the event was recorded behind it, or nobody knows what it is."""
        function = state.frame.function
        is_tracked = any(self.has(state, EVENT, each) for each in (self.transfer.shared(function, event) if event >= 0 else ()))
        return is_tracked or not self._is_recorded_in_view(function, event)

    def _is_recorded_in_view(self, function: Function, event: int) -> bool:
        made, _ = sites_of(list(self.transfer.values(function, event)))
        places = self._places_of(function, event)
        for call in self._records:
            for action in self.transfer.of(call.function, call.instruction):
                if isinstance(action, Recorded):
                    there = self._places_of(call.function, action.event)
                    if any(self._is_same_place(function, mine, call.function, other) for mine in places for other in there):
                        return True
                    if made & sites_of(list(self.transfer.values(call.function, action.event)))[0]:
                        return True
        return False

    def _places_of(self, function: Function, event: int) -> list[Place]:
        """The places of an event, and of what holds it."""
        return [self.places.of(function, each) for each in (self.transfer.shared(function, event) if event >= 0 else ())]

    def _is_same_place(self, function: Function, place: Place, other: Function, there: Place) -> bool:
        """Whether two functions mean the same by places: of one function, or a member of the object of methods of one class."""
        if function is other:
            return place == there
        if function.method is None or other.method is None or function.method.owner is not other.method.owner:
            return False
        return bool(place.path) and place.path == there.path and is_object(place.root) and is_object(there.root)

    @cached_property
    def _records(self) -> list[ModelledCall]:
        """The records of events in the program."""
        return list(self.transfer.sites(frozenset({"record"})))

    def _may_wait(self, state: State, one: Instruction, action: Read) -> bool:
        """Whether a read of a value waits for its device, on the stream of the copy."""
        if not self.may_hold(state.frame.function, action) or (action.presumes and self._is_number(state.frame, action.register)):
            return False
        values = list(self.transfer.values(state.frame.function, action.register))
        library = "cupy" if any(isinstance(v, Memory) and v.type.startswith("cupy") for v in values) else "torch"
        return self._is_same_stream(state, self._where(state.frame, one, Stream(CURRENT, library=library)))

    def _is_number(self, frame: Frame, register: int) -> bool:
        """Whether a value is a number as a path has come to it: by what callers pass, as one that counts a range, computed from such."""
        frame, register = as_passed(self.transfer, frame, register)
        function, one = frame.function, frame.function.definitions[register] if register >= 0 else None
        values = list(self.transfer.values(function, register))
        if one is None or (values and all(isinstance(value, (Scalar, Constant)) for value in values)):
            return one is not None
        if one[0] in (op.BINARY, op.INPLACE):
            return all(self._is_number(frame, each) for each in one[4:6])
        return one[0] == op.PARAM and any(use[0] == op.CALL and function.dotted(use[3]) == "range" for use in function.uses[register])

    def may_hold(self, function: Function, action: Read) -> bool:
        return may_be_there(list(self.transfer.values(function, action.register)), action.presumes)

    # --- queries

    def derived(self, state: State, one: Instruction) -> frozenset[Tracked]:
        said = self.said(state, one)
        return frozenset() if said is None else frozenset({Tracked(DONE if said else LATE, register_place(one[2]))})

    def said(self, state: State, one: Instruction) -> bool | None:
        """Whether a comparison is true once the work is done, or before; None for anything else."""
        function = state.frame.function
        if one[0] == op.UNARY and function.text(one[3]) in ("not", "!"):
            done = self.done_where(state, one[4])
            return None if done is None else not done
        if one[0] != op.COMPARE or function.text(one[3]) not in ("==", "!=", "is", "is not"):
            return None
        asked_for = compared_with_none(function, one[2])
        if asked_for is not None and any(self.has(state, kind, asked_for[0]) for kind in (EVENT, FILLED, SET)):
            return asked_for[1]  # where the path goes on, the event behind the work is there, or what was put in its place
        equal = (self._is_answer(state, *pair) for pair in (one[4:6], one[5:3:-1]))
        is_equal = next((each for each in equal if each is not None), None)
        return None if is_equal is None else is_equal == (function.text(one[3]) in ("==", "is"))

    def _is_answer(self, state: State, asked: int, other: int) -> bool | None:
        """Whether the answer of a query about the work, as a path knows it, equals another value; None for what is no such answer."""
        function = state.frame.function
        said = function.definitions[other]
        constant = function.unit.ir.constants[said[3]] if said is not None and said[0] == op.CONST else None
        is_done = self.has(state, DONE, asked)
        if isinstance(constant, bool) and (is_done or self.has(state, LATE, asked)):
            return constant == is_done
        return constant == 0 or _is_success(self.facts, function, other) if self.has(state, STATUS, asked) else None

    def done_where(self, state: State, condition: int) -> bool | None:
        if self.has(state, DONE, condition):
            return True
        return False if any(self.has(state, kind, condition) for kind in (STATUS, LATE, SET)) else None


def _is_fetch(action: Action) -> TypeGuard[Copied]:
    """Whether a tensor is asked to be on the host: ``x.cpu()``."""
    row = action.call.row if isinstance(action, Copied) else None
    return isinstance(action, Copied) and action.direction == "d2h" and row is not None and row.effect == "transfer"


def _is_success(facts: Facts, function: Function, register: int) -> bool:
    """Whether a register holds the status of success."""
    models = facts.cpp_models if function.is_cpp else facts.models
    names = {value.name for value in facts.values(function, register).values if isinstance(value, External)}
    return "success" in {models.constants.get(name) for name in (*names, function.dotted(register))}
