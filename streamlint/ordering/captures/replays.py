"""SL034: what a capture has read is followed to the replays of its graph: whether it is replaced, freed or let go before one.

The pending operation is an input of the capture. Followed are the names of its memory, those of the graph, the names through which the
capture has read it, what may keep it alive in unknown code, and what has become of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import Selector
from streamlint.ordering.captures.captured_names import (
    CAPTURED,
    GRAPH,
    GUARDED,
    LOST,
    MARK,
    MAYBE,
    OPEN,
    OWNED,
    READ,
    STALE,
    STORING,
    UNNAMED,
    is_noted,
    mark_of,
)
from streamlint.ordering.captures.renewed_parts import RenewedParts
from streamlint.ordering.memory.next_owners import NextOwners
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.states import MOST_GUESSES, Answer, State
from streamlint.ordering.places.flow import BUFFER, Tracked
from streamlint.ordering.places.places import Place, is_own_cell, register_place
from streamlint.ordering.walk.lifetimes import made_by, of_result
from streamlint.ordering.walk.walk import ORDERED
from streamlint.transfer.actions import Action, Copied, Released, Viewed
from streamlint.transfer.enlarged import Enlarging
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.transfer.work import Worked

_SAME_VALUES = frozenset({"view", "same", "transfer"})


class Lost(NamedTuple):
    """An input that a replay does not find any more. ``gone`` is None where a function's end lets go of it. ``kind``: rebound, dropped,
    freed, replaced, reused (of a pool), temporary (memory of the capture itself), weights, gradients or state (of modules and
    optimizers)."""

    kind: str
    gone: Site | None
    origin: Site
    capture: Site
    read: Site
    replay: Site
    library: str


class Replays(RenewedParts):
    """Finds replays of graphs whose inputs are lost."""

    meets_memory = True
    most_states = 200  # a capture may have many inputs, and what becomes of one is near
    hooked = CALLING | STORING | {op.BIND, op.UNBIND, op.BINARY, op.INPLACE, op.UNARY}

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.enlarging = transfer.one_of(Enlarging, transfer)
        self._owners = NextOwners(transfer, self.places, self.currents)
        self._found: dict[Site, Lost] = {}

    def find(self) -> Iterator[Lost]:
        """The inputs of the program's graphs that replays do not find any more."""
        for each in (*self.captured.find(), *self.parts.find()):
            self._input = each
            function = each.origin.function if each.calls else each.capture.begin.function
            state = self.start(function, each.start, each.tracked, frozenset())
            if each.start is each.capture.begin.instruction and isinstance(begun := self._begun(state), frozenset):
                state = state._replace(tracked=begun)
            elif each.is_inside:
                graph = self.places.names(function, each.capture.graph) if each.capture.graph >= 0 else ()
                marks = {Tracked(OPEN, MARK), Tracked(CAPTURED, MARK, "", each.origin), *(Tracked(GRAPH, place) for place in graph)}
                state = state._replace(tracked=state.tracked | marks)
            self.run(state)
        yield from self._found.values()

    # --- what instructions mean

    def arrive(self, state: State, one: Instruction) -> Answer:
        if self._is_begin(state, one):
            return self._begun(state)
        function, capture = state.frame.function, self._input.capture
        if one[0] == op.BIND:
            return self._bound(state, one)
        if one[0] == op.UNBIND:
            return self._unnamed(state, function.text(one[2]), op.NONE, one)
        if one[0] in STORING:
            state = state._replace(tracked=self._stored(state, one))
        if is_noted(state, OPEN) and self.captured.is_end(capture, function, one):
            state = state._replace(tracked=frozenset(held for held in state.tracked if held.kind != OPEN) | self._graph_of_end(state, one))
            return state.tracked if is_noted(state, CAPTURED) else ORDERED
        if one[0] in (op.CALL, op.INVOKE):
            for call in self.transfer.modelled(function, one):
                after = self._called(state, one, call)
                if isinstance(after, str):
                    return after
                state = state._replace(tracked=after)
        state = state._replace(tracked=state.tracked | self._changed_hands(state, one))
        return self._worked(state, one) | self._reallocated(state, one) | self._of_parts(state, one)

    def _reallocated(self, state: State, one: Instruction) -> frozenset[Tracked]:
        """Whether an instruction may get the memory, once the last reference is gone and the capture is over."""
        if not is_noted(state, CAPTURED) or is_noted(state, OPEN) or self._alive(state, BUFFER):
            return frozenset()
        lane = self._owners.stream_of(self._input.origin, self._input.capture.call.row.library)
        is_got = lane is not None and self._owners.may_get(state.frame, one, lane)
        return frozenset({Tracked(OWNED, MARK)}) if is_got else frozenset()

    def _is_begin(self, state: State, one: Instruction) -> bool:
        begin = self._input.capture.begin
        return state.frame.function is begin.function and one is begin.instruction

    def _begun(self, state: State) -> str | frozenset[Tracked]:
        """The capture begins, or begins anew: it reads what its names mean now. Another round may capture another graph."""
        capture = self._input.capture
        is_other = not self._is_graph(state, capture.graph) if capture.graph >= 0 else not state.frame.function.is_cpp
        if is_noted(state, CAPTURED) and is_other:
            return state.tracked
        if not any(held.kind == BUFFER for held in state.tracked):
            return ORDERED
        kept = frozenset(held for held in state.tracked if held.kind in (BUFFER, UNNAMED, MAYBE))
        graph = self.places.names(state.frame.function, capture.graph) if capture.graph >= 0 else ()
        return kept | {Tracked(OPEN, MARK)} | {Tracked(GRAPH, place) for place in graph}

    def _graph_of_end(self, state: State, one: Instruction) -> frozenset[Tracked]:
        """The graph that the end of a capture gives."""
        function = state.frame.function
        found: set[Place] = set()
        for call in self.transfer.modelled(function, one) if one[0] in (op.CALL, op.INVOKE) else ():
            held = call.row.get("graph")
            if isinstance(held, Selector) and held.kind == "result":
                found |= {place.behind(*each.path) for place in self.places.names(function, one[2]) for each in of_result(one[2])}
            elif isinstance(held, Selector) and held.kind == "pointee":
                found |= set(self._pointed(call, held))
        return frozenset(Tracked(GRAPH, place) for place in found)

    def _pointed(self, call: ModelledCall, held: Selector) -> Iterator[Place]:
        register = call.given(Selector("argument", held.position))
        for place in self.places.names(call.function, register) if register is not None else ():
            yield place.behind("*")

    def _called(self, state: State, one: Instruction, call: ModelledCall) -> str | frozenset[Tracked]:
        """Calls of libraries that mean something for the graph, or free the memory."""
        row, tracked = call.row, state.tracked
        is_captured = is_noted(state, CAPTURED) and not is_noted(state, OPEN)
        if row.effect == "free" and is_captured and any(self.has(state, BUFFER, register) for register in call.all("of")):
            return tracked | {Tracked(STALE, MARK, "freed", Site(state.frame.function, one))}
        if row.get("new_shape") and is_captured and any(self.has(state, BUFFER, register) for register in call.all("of")):
            stale = frozenset({Tracked(STALE, MARK, "replaced", Site(state.frame.function, one))})
            return tracked | stale if self.enlarging.enlarges(call) else tracked
        if row.effect == "alloc":  # the pointer leads to other memory from here on
            places = made_by(self.places, call)
            return frozenset(held for held in tracked if held.kind != BUFFER or held.place not in places)
        return self._of_graph(state, one, call) if is_captured else tracked

    def _of_graph(self, state: State, one: Instruction, call: ModelledCall) -> str | frozenset[Tracked]:
        """Calls that capture, replay, destroy, copy or change the graph."""
        row, tracked, is_cpp = call.row, state.tracked, state.frame.function.is_cpp
        is_given = any(self._is_graph(state, register) for register in call.operands)
        if row.effect == "capture" and row.get("part") in ("scope", "begin"):
            is_anew = is_given or (row.get("graph") is None and is_cpp)  # Python gets another graph at its end
            return ORDERED if is_anew else tracked
        return self._of_given(state, one, call) if is_given else tracked

    def _of_given(self, state: State, one: Instruction, call: ModelledCall) -> str | frozenset[Tracked]:
        """Calls that are given the graph."""
        row, tracked, is_cpp = call.row, state.tracked, state.frame.function.is_cpp
        if row.effect == "launch" and row.get("graph"):
            return self._replayed(state, one, call)
        if row.effect == "destroy":
            names = {name for register in call.operands for name in self.places.names(state.frame.function, register)}
            return frozenset(held for held in tracked if held.kind != GRAPH or held.place not in names)
        if row.effect == "object":
            return tracked | {Tracked(GRAPH, place) for place in made_by(self.places, call)}
        return ORDERED if is_cpp and row.effect in ("none", "unknown") else tracked  # the graph is changed

    def _is_graph(self, state: State, register: int) -> bool:
        names = self.places.names(state.frame.function, register) if register >= 0 else ()
        return any(held.kind == GRAPH and held.place in names for held in state.tracked)

    # --- work

    def _worked(self, state: State, one: Instruction) -> frozenset[Tracked]:
        """What work does with the memory: the capture reads it; other work fills it with what the replay is to read; somebody keeps it."""
        function, tracked = state.frame.function, state.tracked
        for work in self.transfer.works(function, one):
            holds = self.leads if work.assumed else self.has
            touched = [each for each in (*work.reads, *work.writes) if holds(state, BUFFER, each)]
            if not touched:
                continue
            tracked = self._touched(state, one, work, touched)
            if work.assumed or self._may_keep(state, work):
                tracked |= self._kept(state, one)
            state = state._replace(tracked=tracked)
        copied = self._copied(state, one)
        if not copied:
            return tracked
        return tracked | (self._captured_by(state, one, copied) if is_noted(state, OPEN) else self._reused(state))

    def _touched(self, state: State, one: Instruction, work: Worked, registers: list[int]) -> frozenset[Tracked]:
        """What work that touches the memory means for the capture, for its next owner, or for a replay that reads what it writes."""
        if is_noted(state, OPEN):
            return state.tracked | self._captured_by(state, one, registers)
        if reused := self._reused(state):
            return state.tracked | reused
        if work.assumed or any(self.has(state, BUFFER, each) for each in work.writes):
            return frozenset(held for held in state.tracked if held.kind != STALE or held.type in ("freed", "replaced", "reused"))
        return state.tracked

    def _copied(self, state: State, one: Instruction) -> list[int]:
        """What is copied: the node of a copy reads memory of the host at each replay, too."""
        actions = self.transfer.of(state.frame.function, one)
        return [action.source for action in actions if isinstance(action, Copied) and self.has(state, BUFFER, action.source)]

    def _captured_by(self, state: State, one: Instruction, registers: list[int]) -> frozenset[Tracked]:
        mark = Tracked(CAPTURED, MARK, "", Site(state.frame.function, one))
        return self._read_through(state, registers) | (frozenset() if is_noted(state, CAPTURED) else {mark})

    def _read_through(self, state: State, registers: Iterable[int]) -> frozenset[Tracked]:
        """The names through which registers hold the memory: also those of what they are views of."""
        function = state.frame.function
        buffers = {held.place for held in state.tracked if held.kind == BUFFER}
        names = {
            name for each in registers for shared in self.transfer.shared(function, each) for name in self.places.names(function, shared)
        }
        return frozenset(Tracked(READ, place) for place in names & buffers)

    def _may_keep(self, state: State, work: Worked) -> bool:
        """Whether autograd may hold an operand for the backward pass: there is another one, which may need a gradient."""
        function, memory = state.frame.function, self.captured.memory
        if work.made < 0 or any("no_grad" in each or "inference_mode" in each for each in function.code.decorators):
            return False
        if (work.library or memory.library(function, work.reads)) not in ("", "torch"):
            return False
        return any(memory.may_be_memory(function, each) for each in work.reads if each >= 0 and not self.has(state, BUFFER, each))

    def _kept(self, state: State, one: Instruction) -> frozenset[Tracked]:
        """Unknown code may keep what it is given, in its result, or for good where nobody takes that."""
        function = state.frame.function
        is_taken = op.DEFINES[one[0]] and bool(function.uses.get(one[2]))
        return frozenset({Tracked(MAYBE, register_place(one[2]) if is_taken else MARK)})

    def judge(self, state: State, one: Instruction, action: Action) -> Answer:
        if isinstance(action, Viewed) and op.DEFINES[one[0]]:
            kinds = [kind for kind in (BUFFER, GRAPH) if self.has(state, kind, action.register)]
            if kinds:
                return state.tracked | {Tracked(kind, place) for kind in kinds for place in _results(kind, one[2])}
        if isinstance(action, Released) and self.has(state, BUFFER, action.register):
            return self._replaced(state, one, action)
        if (
            one[0] in (op.CALL, op.INVOKE)
            and any(self.has(state, BUFFER, each) for each in op.reads(one))
            and self._may_be_same(state, one)
        ):
            return state.tracked | {Tracked(MAYBE, register_place(one[2]))}
        return None

    def _replaced(self, state: State, one: Instruction, action: Released) -> Answer:
        """The storage goes, or the tensor that the capture has read gets another one: a view of it alone may do so."""
        if not action.is_shared:
            read = {held.place for held in state.tracked if held.kind == READ}
            is_same = one[0] == op.SET_ATTR and self.has(state, BUFFER, one[4])
            if is_same or (is_noted(state, CAPTURED) and read.isdisjoint(self.places.names(state.frame.function, action.register))):
                return None
        if not is_noted(state, CAPTURED) or is_noted(state, OPEN):
            return ORDERED
        return state.tracked | {Tracked(STALE, MARK, "replaced", Site(state.frame.function, one))}

    def _may_be_same(self, state: State, one: Instruction) -> bool:
        """Whether a call may give back what it is given: ``x.cuda()`` of what is there."""
        calls = self.transfer.modelled(state.frame.function, one)
        return any(call.row.effect in _SAME_VALUES or call.row.get("cast") for call in calls)

    # --- names

    def _is_before(self, state: State) -> bool:
        return not (self._input.is_allocated or is_noted(state, OPEN) or is_noted(state, CAPTURED))

    def _bound(self, state: State, one: Instruction) -> frozenset[Tracked]:
        return self._unnamed(state, state.frame.function.text(one[2]), one[3], one)

    # --- replays

    def _replayed(self, state: State, one: Instruction, call: ModelledCall) -> str | frozenset[Tracked]:
        lost, read = self._loss(state), mark_of(state, CAPTURED)
        if lost is None or read is None or read.announced is None:
            return state.tracked
        origin, begin = self._input.origin, self._input.capture.begin
        kind = "temporary" if self._input.is_inside and lost.type in ("rebound", "dropped") else lost.type
        is_own = self._input.is_allocated and self._owners.stream_of(origin, call.row.library) is not None
        if lost.type == "dropped" and is_own and not is_noted(state, OWNED):
            return state.tracked  # nobody else allocates on that stream
        if state.doubts <= MOST_GUESSES:
            found = Lost(kind, lost.announced, origin, begin, read.announced, Site(state.frame.function, one), call.row.library)
            self._found.setdefault(origin if kind == "temporary" else lost.announced or origin, found)
        return ORDERED

    def _loss(self, state: State) -> Tracked | None:
        """Where the memory that the graph reads went: other memory took its place, or its last reference is gone."""
        stale = mark_of(state, STALE)
        if stale is not None and not (stale.type == "rebound" and self._input.is_inside):
            return stale  # what the graph itself writes nobody puts there for it
        if self._alive(state, BUFFER) or not self._input.is_allocated:
            return None
        gone = mark_of(state, LOST)
        if gone is not None and gone.type == "rebound":
            return gone
        return None if self._alive(state, MAYBE) else gone or Tracked(LOST, MARK, "dropped", None)

    # --- ways

    def over(self, state: State) -> bool:
        """A path ends where the graph is gone, or the memory before it was captured."""
        if is_noted(state, CAPTURED) and not is_noted(state, OPEN):
            return not any(held.kind == GRAPH for held in state.tracked)
        is_let_go = is_noted(state, OPEN) and (bool(self._input.calls) or is_noted(state, STALE))  # by who has made it, or binds its name
        return not is_let_go and not any(held.kind == BUFFER for held in state.tracked)

    def redone(self, state: State, one: Instruction) -> bool:
        """What was captured in the last round is followed on; the name means new memory."""
        return not is_noted(state, CAPTURED)

    def may_go_up(self, state: State, caller: Function, call: Instruction) -> bool:
        return is_noted(state, CAPTURED) and (not self._input.calls or not is_noted(state, OPEN) or Site(caller, call) in self._input.calls)

    def _orders_inside(self, function: Function) -> bool:
        return False

    def _branched(self, state: State, end: Instruction) -> Iterator[State]:
        """A path that has lost the memory ends where the other way captures anew: what decides may say that it is taken then."""
        function = state.frame.function
        is_lost = is_noted(state, CAPTURED) and not is_noted(state, OPEN) and (is_noted(state, STALE) or not self._alive(state, BUFFER))
        join = function.control.post_dominators[state.block]
        is_lost = is_lost and state.block not in function.loop_heads
        for after in super()._branched(state, end):
            other = end[4] if after.block == end[3] else end[3]
            if not is_lost or not self.captured.captures_before(function, other, join):
                yield after

    def _returned(self, state: State, register: int) -> Iterator[State]:
        """A function of Python that shares the memory with closures may leave it to them; in C++ its variables end with it."""
        function = state.frame.function
        is_shared = any(held.kind == BUFFER and is_own_cell(held.place.root, function) for held in state.tracked)
        if is_shared and (function.nested or not function.is_cpp):  # C++: also a variable whose address is taken
            return
        yield from super()._returned(state, register)

    def _yielded(self, state: State, one: Instruction, register: int) -> Iterator[State]:
        if state.frame.caller is not None:
            yield from super()._yielded(state, one, register)

    def _up(self, state: State, register: int) -> Iterator[State]:
        """Callers; without one, the other methods of the object."""
        yield from super()._up(state, register)
        function = state.frame.function
        marker = next(function.code.instructions())
        mine = frozenset(held for held in state.tracked if held.place.root == ("parameter", 0) or held.place.root[0] == "global")
        if function.is_cpp or not function.has_receiver or self.callers(function) or not any(held.kind == GRAPH for held in mine):
            return
        calls = sum(one[0] == op.PARAM for one in state.path)
        if calls > 1 or (calls == 1 and (is_noted(state, GUARDED) or not (is_noted(state, STALE) and self._is_captured_once()))):
            return
        for other in function.unit.functions:
            if other.code.class_name == function.code.class_name and other.method is other and other.code.name != "__init__":
                frame = Frame(other, None, None, 0)
                yield State(frame, 0, 0, 0, mine, state.guesses, frozenset(), frozenset(), (*state.path, marker))

    def _is_captured_once(self) -> bool:
        """Whether constructors alone capture: no other method can do so anew."""
        function = self._input.capture.begin.function
        callers = [caller for caller, _ in self.callers(function)] or [function]
        return all(each.code.name == "__init__" for each in callers)


def _results(kind: str, register: int) -> frozenset[Place]:
    """The places of a result that is what a call was given; of graphs it may be a part of the result."""
    return of_result(register) if kind == GRAPH else frozenset({register_place(register)})
