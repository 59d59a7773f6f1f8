"""Follows one pending operation forward over all paths, into calls and back to callers, until something orders it or reaches it.

A state is where the path stands, where the memory, the stream and the events are that matter, and the branches that were taken without
evidence. Paths that agree on all of that are one. Of a branch whose other way would have ordered the operation, or that guards what
reaches it, one may be guessed, not two (`policies`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from streamlint.facts.counters import counts_rounds
from streamlint.facts.functions import Function
from streamlint.facts.instructions import unnegated
from streamlint.facts.objects import Container, Instance, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Loop
from streamlint.ordering.c_api import is_of_c
from streamlint.ordering.conditions import Conditions, Frame, deciding
from streamlint.ordering.dispatch import Classes, Dispatch
from streamlint.ordering.flow import BUFFER, EXACT, Flow, Tracked
from streamlint.ordering.global_names import GlobalNames
from streamlint.ordering.iterated import as_given, iterated
from streamlint.ordering.liveness import Liveness
from streamlint.ordering.made_streams import MadeStreams, as_asked
from streamlint.ordering.meanwhile import Meanwhile
from streamlint.ordering.passages import Passages
from streamlint.ordering.places import ANY, Element, Place, Places, is_own_cell, register_place, rest_behind
from streamlint.ordering.prepared import prepared
from streamlint.ordering.quiet import Quiet
from streamlint.ordering.rounds import again
from streamlint.ordering.spread import spread
from streamlint.ordering.states import Merged, State
from streamlint.ordering.streams import Currents
from streamlint.ordering.topics import implied, topic
from streamlint.ordering.turns import asked_for_none
from streamlint.transfer import carried
from streamlint.transfer.actions import Action, Asked, Read, Stream, Synchronized, Touched, Viewed
from streamlint.transfer.closures import is_captured, may_be_made_for
from streamlint.transfer.transfer import CALLING, Order, Transfer
from streamlint.waits.operands import handed_over, operand_of
from streamlint.waits.questions import Key, alike, asked_by

MOST_STATES = 3_000
"""States of one pending operation that are looked at."""
MOST_GUESSES = 1
_COMPUTED = frozenset({op.ATTR, op.ITEM, op.UNARY, op.BINARY, op.COMPARE, op.CONST})
_LOUD = frozenset({op.YIELD, op.EXIT})
_DEEPEST = 20


ORDERED = "ordered"
_Call = tuple[Function, Instruction, Function]
Judge = Callable[[State, Instruction, Action], "str | frozenset[Tracked] | None"]
"""What an action means for the pending operation: `ORDERED`, what is tracked from here on, or None where it means nothing."""


class Walk:
    """Walks for pending operations of a program. ``ordering`` are the actions for which calls are entered."""

    ordering: tuple[type[object], ...] = (Synchronized,)
    meets_memory = False
    """Whether only what touches memory that is tracked can be met: a call that can name none of it orders, or does nothing."""
    most_states = MOST_STATES
    passive: tuple[type[object], ...] = (Read, Viewed, Touched)
    """Actions that mean nothing where they touch nothing of what is tracked, unless they wait."""
    hooked: frozenset[int] = frozenset()
    """Opcodes that may mean something for what they do not touch."""
    forgets = False
    """Whether memory in registers that nothing names any more is let go."""
    renames = False
    """Whether rounds of loops rename the indices on the way to what is tracked."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.places = transfer.one_of(Places, transfer.facts)
        self.flow = Flow(self.places)
        self.conditions = transfer.one_of(Conditions, transfer)
        self.currents = transfer.one_of(Currents, transfer)
        self.made_streams = transfer.one_of(MadeStreams, transfer, self.places, self.currents)
        self.carriers = transfer.one_of(carried.Carriers, transfer)
        self.dispatch = transfer.one_of(Dispatch, transfer.facts)
        self.meanwhile = transfer.one_of(Meanwhile, transfer)
        self.names = transfer.one_of(GlobalNames, transfer)
        self._asked: dict[Function, dict[int, list[int]]] = {}
        self._waiting: dict[Function, bool] = {}
        self._arguments: dict[_Call, list[tuple[tuple[Place, ...], Place]]] = {}
        self._calling: dict[Function, list[tuple[Function, Instruction]]] = {}
        self._renaming: dict[tuple[_Call, bool], dict[Key, Element]] = {}
        self._meaning: dict[tuple[Function, int], list[tuple[Instruction, tuple[Action, ...], list[Function]]]] = {}
        self._passages = Passages(self)
        self._quiet = Quiet(self)
        self._live = Liveness(self)
        self._run_block: Callable[[State], Iterable[State]] = lambda state: ()
        self.cut = 0  # operations that took more states

    def actions(self, function: Function, one: Instruction) -> tuple[Action, ...]:
        """What an instruction does, in the order in which the judge hears of it."""
        return self.transfer.of(function, one)

    def heard(self, state: State, one: Instruction) -> tuple[Action, ...]:
        """The actions of an instruction on a path that the judge hears of."""
        return self.actions(state.frame.function, one)

    def is_quiet(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction means nothing where it touches nothing of what is tracked."""
        if one[0] in _LOUD or one[0] in self.hooked or any(edge.is_followed for edge in self.transfer.edges(function, one)):
            return False
        if self.meanwhile.lets_go(function, one):
            return False
        return all(self.is_passive(function, action) for action in self.actions(function, one))

    def is_passive(self, function: Function, action: Action) -> bool:
        """Whether an action means nothing where it touches nothing of what is tracked."""
        return isinstance(action, self.passive) and not (isinstance(action, Read) and action.waits and self.may_hold(function, action))

    def may_hold(self, function: Function, action: Read) -> bool:
        """Whether the host may wait for the value that it reads."""
        return True

    def names_of(self, function: Function, register: int) -> tuple[Place, ...]:
        """All places that a path may take for that of a register."""
        return self.places.names(function, register) if register >= 0 else ()

    def start(self, function: Function, one: Instruction, tracked: frozenset[Tracked], decided: Iterable[tuple[Key, bool]]) -> State:
        """The state right behind an instruction, on a path that has come there as its branches say; ``decided`` is what else is known."""
        block, index = function.homes[one]
        frame = Frame(function, None, None, 0)
        ways = (block, *self.currents.ways(function, one))
        known = frozenset((frame, key, holds) for key, holds in (*decided, *(each for way in ways for each in deciding(function, way))))
        state = State(frame, block, index + 1, 0, tracked, 0, frozenset(), known, ())
        return state._replace(chosen=frozenset({function.unit.number}))

    def is_on_other_way(self, state: State, one: Instruction) -> bool:
        """Whether a path has not come through what makes the stream current that is so at an instruction."""
        around = self._made_current(state.frame, one) if state.decided else None
        return around is not None and self._is_other(state, *around)

    def _is_other(self, state: State, frame: Frame, one: Instruction, stream: Stream) -> bool:
        """Whether a path through a frame has another current stream than the one that its function makes current."""
        function = frame.function
        known = {(key, holds) for where, key, holds in state.decided if where == frame}
        if any((key, not holds) in known for way in self.currents.ways(function, one) for key, holds in deciding(function, way)):
            return True
        mine = alike(function, stream.register) if stream.register >= 0 else None
        if any(as_asked(key) == (mine, not holds) for key, holds in known):
            return True
        return not known.isdisjoint(self.made_streams.denied_by(function, stream))

    def run(self, start: State, judge: Judge) -> None:
        """Follow all paths from a state."""
        origin = start.frame.function, (start.block, start.place - 1)
        merged = Merged()
        waiting = deque([start])
        self._quiet.forget()
        self._run_block = lambda state: self._block(state, judge, origin)
        while waiting:
            state = waiting.popleft()
            if self.over(state) or (new := merged.added(state)) is None:
                continue
            if merged.count > self.most_states:
                merged.is_cut = True
                break
            waiting.extend(self._run_block(new))
        self.cut += merged.is_cut

    def _block(self, state: State, judge: Judge, origin: tuple[Function, tuple[int, int]]) -> Iterator[State]:
        """Run the rest of a block; what follows it."""
        function = state.frame.function
        code = function.code.blocks[state.block]
        steps = self._quiet.steps(function, state.block)
        home = origin[1][1] if origin[0] is function and origin[1][0] == state.block else op.NONE
        is_beside = state.frame.depth > 0 and self.meanwhile.is_beside(state.frame)
        for index in range(state.place, len(code)):
            touched = steps[index]
            if is_beside and self.meanwhile.waits(function, code[index]):
                return  # whoever it waits for may have waited for the operation
            if touched is not None and index != home and not self._quiet.heads(state.tracked).are_met(touched):
                continue
            one = code[index]
            if index == home and self.redone(state, one):
                return
            if op.DEFINES[one[0]]:  # made anew
                stale = frozenset(held for held in state.tracked if held.place.root == ("register", one[2]))
                state = state._replace(tracked=state.tracked - stale) if stale else state
            state = self.forgotten(state, one)
            answer = self.arrive(state, one)
            if answer == ORDERED:
                return
            if isinstance(answer, frozenset):
                state = state._replace(tracked=answer)
            for action in self.heard(state, one) if one[1] >= 0 else ():
                if self._is_passed_over(state, one, action, origin):
                    continue
                answer = judge(state, one, action)
                if answer == ORDERED:
                    return
                if isinstance(answer, frozenset):
                    state = state._replace(tracked=answer)
            if self.passed(state, one):
                return
            if one[0] == op.YIELD:
                yield from self._yielded(state._replace(place=index), one)
                return
            entered = list(self._entered(state, one, index))
            if is_started := self.meanwhile.lets_go(function, one):
                yield from (after for after in entered if after.tracked)  # and who has started the thread goes on
            if entered and not is_started:
                yield from (after for after in entered if after.tracked)
                return
            added = state.tracked
            state = state._replace(tracked=self.flow.after(function, one, state.tracked, state.before))
            if op.DEFINES[one[0]]:  # what the actions of this instruction have made of it stays
                state = state._replace(tracked=state.tracked | {held for held in added if held.place.root == ("register", one[2])})
            if one[0] in (op.COMPARE, op.UNARY) and (more := self.derived(state, one)):
                state = state._replace(tracked=state.tracked | more)
            if not state.tracked:
                return
            if one[0] == op.INVOKE and function.text(one[4]) in function.known("queue-put"):
                yield from self._taken(state, one)
        region = self._quiet.region(function, state.block) if code[-1][0] == op.BRANCH and not is_beside else None
        is_home = region is not None and origin[0] is function and origin[1][0] in region.blocks
        if region is None or is_home or self._quiet.heads(state.tracked).are_met(region.touch):
            yield from self._ends(state, code[-1])
        else:
            yield from self._entering(state._replace(block=region.last), region.join)

    def _is_passed_over(self, state: State, one: Instruction, action: Action, origin: tuple[Function, tuple[int, int]]) -> bool:
        """Whether an order is noted, and the path goes on as if it were not there: where silence is explained."""
        if self.transfer.passed is None or not self.is_order(state, one, action):
            return False
        function, (block, index) = origin
        operation = Site(function, function.code.blocks[block][index])
        self.transfer.passed.append(Order(operation, Site(state.frame.function, one), action, state.sites))
        return True

    def is_order(self, state: State, one: Instruction, action: Action) -> bool:
        """Whether an action orders the operation, or may do so out of view."""
        return self.orders(state, one, action)

    def _taken(self, state: State, one: Instruction) -> Iterator[State]:
        """Whoever takes what was put into a queue goes on with it, where one of the two is a thread."""
        function = state.frame.function
        queues = self._queues(function, one[3])
        place = self.places.of(function, one[3])
        moved = list(self.flow.moved(state.tracked, [place], Place(("taken",)), (ANY,))) if queues else []
        is_beside = bool(moved) and self.is_thread(state.frame.root.function)
        for taker, call in self._takers if moved else ():
            if not (is_beside or self.is_thread(taker)) or queues.isdisjoint(self._queues(taker, call[3])):
                continue
            block, index = taker.homes[call]
            tracked = frozenset(held._replace(place=Place(("register", call[2]), held.place.path)) for held in moved)
            tracked |= frozenset(held for held in state.tracked if held.place.root[0] == "global")
            frame = Frame(taker, None, None, 0)
            there = state._replace(frame=frame, block=block, place=index + 1, before=0, tracked=tracked)
            yield there._replace(guards=frozenset(), decided=frozenset(), path=())

    def _queues(self, function: Function, register: int) -> set[tuple[Function, Instruction]]:
        """Where the containers were made that a register may hold."""
        values = self.transfer.values(function, register)
        return {(value.frame.function, value.instruction) for value in values if isinstance(value, Container)}

    @cached_property
    def _takers(self) -> list[tuple[Function, Instruction]]:
        """The calls of the program that may take something out of a queue."""
        found: list[tuple[Function, Instruction]] = []
        for unit in self.facts.program.mentioning("get"):
            for function in unit.functions if not unit.is_cpp else ():
                calls = [
                    one for one in function.by_opcode[op.INVOKE] if function.text(one[4]) in function.known("queue-get") and len(one) < 8
                ]
                found += [(function, one) for one in calls]
        return found

    def is_thread(self, function: Function) -> bool:
        """Whether a function is started in another thread."""
        places = self.facts.call_places(function)
        return any(edge.callee is function and edge.is_elsewhere for place in places for edge in self.transfer.edges(*place))

    def handed(self, function: Function, register: int) -> tuple[Place, ...]:
        """The places of what a function returns."""
        return self.places.names(function, register)

    def redone(self, state: State, one: Instruction) -> bool:
        """Whether a path ends where it has come back to the operation that it follows, which is done anew."""
        return True

    def forgotten(self, state: State, one: Instruction) -> State:
        """The state without names that an instruction ends."""
        return state

    # --- calls

    def _entered(self, state: State, one: Instruction, index: int) -> Iterator[State]:
        """The functions that an instruction enters, if they can mean something."""
        frame = state.frame
        if frame.depth >= _DEEPEST or (one[0] == op.NEXT and self._is_in_hand(state, one[3])):
            return
        if one[0] == op.EXIT:
            yield from self._resumed(state, one)
        edges = self.transfer.edges(frame.function, one)
        units = {edge.callee.unit.number for edge in edges if edge.callee.is_cpp}
        chosen = units & state.chosen if len(units) > 1 else frozenset()
        for edge in edges:
            is_run = edge.is_followed or (not edge.is_guess and self.meanwhile.lets_go(frame.function, one))
            if not is_run or edge.is_handed or frame.runs(edge.callee):
                continue
            if chosen and edge.callee.unit.number not in chosen:
                continue  # of what builds choose from, a path has one
            if len(edges) > 1 and not self._is_closed_over(frame, one, edge.callee):
                continue
            classes = self._narrowed(state, one, edge.callee) if len(edges) > 1 else state.classes
            if classes is None:
                continue
            inner = Frame(edge.callee, frame, one, frame.depth + 1)
            tracked = self._given(state, one, edge.callee)
            own = state.chosen | {edge.callee.unit.number} if len(units) > 1 else state.chosen
            inside = state._replace(frame=inner, block=0, place=0, before=0, tracked=tracked, chosen=own, classes=classes)
            near = (held.place for held in tracked if held.place.root[0] != "aside")
            if any(self._is_named(place, edge.callee) for place in near) or self.may_meet(tracked, edge.callee):
                yield inside
            elif self._orders_inside(edge.callee):
                yield from self._passages.through(state, one, index, inside, self._run_block)

    def _is_named(self, place: Place, callee: Function) -> bool:
        """Whether a function may name what stands at a place, if that matters: some places stand for what has no name."""
        if not self.meets_memory or place.root[0] != "global":
            return True
        return isinstance(place.root[1], int) and self.names.may_touch(callee, place.root)

    def _is_closed_over(self, frame: Frame, one: Instruction, callee: Function) -> bool:
        """Whether a closure that a path has entered may have been made for the function that it calls."""
        if frame.caller is None or frame.call is None or frame.function.is_cpp or not is_captured(frame.function, one):
            return True
        return may_be_made_for(self.transfer, Site(frame.caller.function, frame.call), frame.function, callee)

    def may_meet(self, tracked: frozenset[Tracked], callee: Function) -> bool:
        """Whether a function that has no name for what is tracked may mean something for it."""
        return not self.meets_memory and self._orders_inside(callee)

    def _narrowed(self, state: State, one: Instruction, callee: Function) -> frozenset[tuple[Frame, Classes]] | None:
        """The classes of objects at hand if a call of a method runs a function; None where what a path has run says that it does not."""
        mine = self.dispatch.classes(state.frame.function, one, callee)
        if mine is None:
            return state.classes
        known = next((classes for frame, classes in state.classes if frame == state.frame), None)
        left = mine if known is None else mine & known
        others = frozenset(each for each in state.classes if each[0] != state.frame)
        return others | {(state.frame, left)} if left else None

    def _resumed(self, state: State, one: Instruction) -> Iterator[State]:
        """The rest of a generator that was a context manager, behind what it has yielded."""
        frame = state.frame
        made = scope_call(frame.function, one)
        for edge in self.transfer.edges(frame.function, made) if made is not None else ():
            ends = edge.callee.by_opcode[op.YIELD] if edge.is_followed and not edge.is_handed and not frame.runs(edge.callee) else []
            if len(ends) == 1 and not edge.callee.is_cpp and (self.meets_memory or self._orders_inside(edge.callee)):
                block, index = edge.callee.homes[ends[0]]
                inner = Frame(edge.callee, frame, one, frame.depth + 1)
                tracked = self._given(state, one, edge.callee)
                yield state._replace(frame=inner, block=block, place=index + 1, before=0, tracked=tracked)

    def current_around(self, frame: Frame, one: Instruction) -> object:
        """The stream that is current at a call on a path, and the function that has made it so; None where none has."""
        around = self._made_current(frame, one)
        return (around[0].function, around[2]) if around is not None else None

    def _made_current(self, frame: Frame, one: Instruction) -> tuple[Frame, Instruction, Stream] | None:
        """The stream that is current on a path, with who has made it so, and the instruction or call that runs under it there."""
        outer: Frame | None = frame
        at: Instruction | None = one
        while outer is not None and at is not None:
            found = self.currents.at(outer.function, at)
            if found is not None:
                return outer, at, found
            at, outer = outer.call, outer.caller
        return None

    def _is_in_hand(self, state: State, iterator: int) -> bool:
        """Whether the memory is what a generator has given already: it is not run once more for it."""
        return _has_memory(state, [name.behind(ANY) for name in self.places.names(state.frame.function, iterator)])

    def _given(self, state: State, one: Instruction, callee: Function) -> frozenset[Tracked]:
        """What is tracked, by the names that a callee has for it; the rest is put aside under the caller's names."""
        function = state.frame.function
        one = (scope_call(function, one) if callee.by_opcode[op.YIELD] else None) or one
        found = {held for held in state.tracked if held.place.root[0] in ("global", "cell", "aside")}
        own = state.tracked - found
        if not own:
            return frozenset(found)
        passed = self._given_to(function, one, callee)
        keys = self.keys(function, one, callee, is_down=True)
        for held in own:
            inner = [moved for sources, target in passed for moved in self.flow.moved([held], sources, target)]
            renamed = [self._rekeyed(moved, keys) for moved in inner]
            found.update(renamed)
            pairs = zip(inner, renamed, strict=True)
            is_named = any(moved.place.path and moved.place.path.count(ANY) == name.place.path.count(ANY) for moved, name in pairs)
            if not is_named:  # the callee has no name for it, or not for its index
                found.add(held._replace(place=aside(held.place, state.frame.depth)))
        return frozenset(found)

    def _given_to(self, function: Function, one: Instruction, callee: Function) -> list[tuple[tuple[Place, ...], Place]]:
        """Where a call has what it gives, each with the place that it has in the function that it enters."""
        known = self._arguments.get((function, one, callee))
        if known is None:
            params = range(len(callee.code.parameters))
            known = [(self.sources(function, one, callee, param), Place(("parameter", param))) for param in params]
            known += [((source,), target) for source, target in spread(self.places, function, one, callee) if target.path]
            self._arguments[function, one, callee] = known
        return known

    def sources(self, function: Function, one: Instruction, callee: Function, index: int) -> tuple[Place, ...]:
        """Where the value of a parameter is found in the function that calls."""
        one = (scope_call(function, one) if callee.by_opcode[op.YIELD] else None) or one
        if is_of_c(function, callee):
            wanted = Place(("parameter", index))
            return tuple(source for source, target in spread(self.places, function, one, callee) if target == wanted)
        if one[0] in (op.EXIT, op.DESTROY):
            return self.places.names(function, one[3 if one[0] == op.EXIT else 2]) if index == 0 else ()
        if one[0] == op.NEXT and index == 0 and (iterator := function.definitions[one[3]]) is not None and iterator[0] == op.ITER:
            return self.places.names(function, one[3]) + self.places.names(function, iterator[3])
        if one[0] in (op.ENTER, op.NEXT, op.ITEM):
            return self.places.names(function, one[3 + index]) if index == 0 or (one[0] == op.ITEM and index == 1) else ()
        if index == 0 and callee.has_receiver:
            if arguments := iterated(self.facts, function, one, callee):
                return tuple(name for register in arguments for name in self.places.names(function, register))
            if callee.code.name == "__init__" and not _is_plain_method(function, one):
                return self.places.names(function, one[2])
            if one[0] == op.CALL and any(isinstance(value, Instance) for value in self.transfer.values(function, one[3])):
                return self.places.names(function, one[3])  # an object that is called
            if function.is_cpp and one[0] != op.INVOKE and function.method is function:
                return (Place(("parameter", 0)),)  # a method of the same object
        if one[0] not in (op.CALL, op.INVOKE) and (not function.is_cpp or handed_over(function, one) is None):
            place = 5 + index - (1 if callee.has_receiver else 0)
            return self.places.names(function, one[place]) if 5 <= place < len(one) else ()
        if (held := prepared(self.places, function, one, callee, index)) is not None:
            return held
        register = operand_of(function, one, callee, index)
        if register is None and not callee.is_cpp:
            wanted = Place(("parameter", index))
            return tuple(source for source, target in spread(self.places, function, one, callee) if target == wanted)
        return self.places.names(function, register) if register is not None and register >= 0 else ()

    def _ends(self, state: State, end: Instruction) -> Iterator[State]:
        if end[0] == op.RETURN:
            yield from self._returned(state, end[2])
        elif end[0] == op.JUMP:
            yield from self._entering(state, end[2])
        elif end[0] == op.BRANCH:
            yield from self._branched(state, end)

    def _yielded(self, state: State, one: Instruction) -> Iterator[State]:
        """Whoever takes the values of a generator goes on, one of them in hand; what he does before the next is not known here."""
        generator, call = state.frame.function, state.frame.call
        is_own = state.frame.caller is not None and call is not None
        for back in self._returned(state, one[3]) if is_own else self._up(state, one[3]):
            by = call if is_own and call is not None else back.path[-1]
            yield back._replace(tracked=as_given(self.flow, generator, back.frame.function, by, back.tracked))

    def _returned(self, state: State, register: int) -> Iterator[State]:
        frame, call = state.frame, state.frame.call
        if frame.caller is not None and call is not None and self.meanwhile.lets_go(frame.caller.function, call):
            return  # nobody waits for the end of the thread
        guards = frozenset(guard for guard in state.guards if guard[0] != frame)
        if frame.caller is None or call is None:
            yield from self._up(state._replace(guards=guards), register)
            return
        caller = frame.caller
        tracked = frozenset(
            held._replace(place=inner) for held in state.tracked if (inner := _taken_up(held.place, caller.depth)) is not None
        )
        tracked |= frozenset(self._handed_back(state, register, caller.function, call))
        block, index = caller.function.homes[call]
        decided = frozenset(known for known in state.decided if known[0] != frame)
        yield state._replace(frame=caller, block=block, place=index + 1, tracked=tracked, guards=guards, decided=decided)

    def _handed_back(self, state: State, register: int, caller: Function, call: Instruction) -> Iterator[Tracked]:
        """What is tracked at a function's end, by the names that its caller has for it."""
        function = state.frame.function
        mine = [held for held in state.tracked if held.place.root[0] != "aside"]
        keys = self.keys(caller, call, function, is_down=False)
        if register >= 0 and op.DEFINES[call[0]]:
            given = self.flow.moved(mine, self.handed(function, register), register_place(call[2]))
            yield from (self._rekeyed(held, keys) for held in given)
        for one in function.by_opcode[op.OUT]:  # C++: what a parameter that is a reference holds at the end
            for source in self.sources(caller, call, function, one[2]) if one[3] >= 0 else ():
                yield from self.flow.moved(mine, self.handed(function, one[3]), source)
        for held in mine:
            held = self._rekeyed(held, keys)
            root = held.place.root
            if root[0] == "parameter" and held.place.path and is_of_c(caller, function):
                yield from self._handed_to_c(caller, call, function, held)
            elif root[0] == "parameter" and (held.place.path or state.frame.caller is None or held.kind not in EXACT):
                passed = list(self._passed(caller, call, function, int(str(root[1])), bool(held.place.path)))
                yield from (held._replace(place=source.behind(*held.place.path)) for source in passed)
                yield from self._collected(caller, call, function, held) if not passed and held.place.path else ()
            elif root[0] == "global" or (root[0] == "cell" and not is_own_cell(root, function)):
                yield held

    def _collected(self, caller: Function, call: Instruction, function: Function, held: Tracked) -> Iterator[Tracked]:
        """What ``*args`` or ``**options`` holds, by the names of the arguments."""
        for source, target in spread(self.places, caller, call, function):
            rest = rest_behind(target, held.place) if target.path else None
            if rest is not None:
                yield held._replace(place=source.behind(*rest))

    def _handed_to_c(self, caller: Function, call: Instruction, function: Function, held: Tracked) -> Iterator[Tracked]:
        """What a function of the C API has taken out of its arguments, by the names of these, and of the memory that they lead to."""
        for source, target in spread(self.places, caller, call, function):
            rest = rest_behind(target, held.place)
            names: list[Place] = [source]
            if source.root[0] == "register" and not source.path and not rest:
                for each in self.transfer.shared(caller, int(str(source.root[1]))):
                    names += self.places.names(caller, each)
            yield from (held._replace(place=name.behind(*rest)) for name in names if rest is not None)

    def _passed(self, caller: Function, call: Instruction, function: Function, index: int, is_inside: bool) -> Iterator[Place]:
        """Where a caller has what it passed for a parameter: for what the parameter itself holds, also the memory that it is a view of."""
        sources = self.sources(caller, call, function, index)
        if sources and sources[0].path:  # elements of what is spread
            yield from sources
            return
        if is_inside or not sources or sources[0].root[0] != "register":
            yield from sources[-1:]
            return
        for register in self.transfer.shared(caller, int(str(sources[0].root[1]))):
            yield from self.places.names(caller, register)

    def callers(self, function: Function) -> list[tuple[Function, Instruction]]:
        """The calls that run a function as a part of their own; of C++, also those of Python by its name."""
        known = self._calling.get(function)
        if known is None:
            known = self._calling[function] = [place for place in self._call_places(function) if self.transfer.runs(*place, function)]
        return known

    def _call_places(self, function: Function) -> Iterable[tuple[Function, Instruction]]:
        found = dict.fromkeys(self.facts.call_places(function))
        if function.is_cpp and function.owner is None:
            for unit in self.facts.program.mentioning(function.code.name):
                for caller in unit.functions if not unit.is_cpp else ():
                    found.update(dict.fromkeys((caller, one) for one in _named(caller, function.code.name)))
        return found

    def keys(self, caller: Function, call: Instruction, callee: Function, is_down: bool) -> dict[Key, Element]:
        """What indices of one function are called in the other. It is looked up once, and is nobody's to change."""
        key = (caller, call, callee), is_down
        known = self._renaming.get(key)
        if known is None:
            known = self._renaming[key] = self._keys(caller, call, callee, is_down)
        return known

    def _keys(self, caller: Function, call: Instruction, callee: Function, is_down: bool) -> dict[Key, Element]:
        """What indices of one function are called in the other: arguments are parameters."""
        found: dict[Key, Element] = {}
        for param in callee.by_opcode[op.PARAM]:
            register = operand_of(caller, call, callee, param[3]) if call[0] in (op.CALL, op.INVOKE) else None
            if register is None or register < 0:
                continue
            outer, inner = self.places.element(caller, register), Element(alike(callee, param[2]))
            if is_down and isinstance(outer.key, tuple):
                found[outer.key] = inner
            elif not is_down and isinstance(inner.key, tuple):
                found[inner.key] = outer
        return found

    def _rekeyed(self, held: Tracked, keys: dict[Key, Element]) -> Tracked:
        """Something tracked with indices as another function has them: of what it cannot name, a stream or event is any, memory none."""
        path = tuple(
            renamed(key.key, keys) or (ANY if held.kind not in EXACT else Element(("elsewhere", key.key)))
            if isinstance(key, Element) and isinstance(key.key, tuple) and key.key[:1] != ("elsewhere",)
            else key
            for key in held.place.path
        )
        return held if path == held.place.path else held._replace(place=Place(held.place.root, path))

    def _up(self, state: State, register: int) -> Iterator[State]:
        """The callers of the function with which a path begins."""
        function = state.frame.function
        if len(state.path) >= _DEEPEST:
            return
        callers = self.callers(function)
        if not callers:
            self.left(state, register)
        for caller, call in callers:
            if state.through is not None and state.through[0] is function and not self._may_be_made(caller, call, state.through):
                continue
            back = frozenset(self._handed_back(state, register, caller, call))
            tracked = back.union(*(self._made_of(caller, held) for held in back))
            frame = Frame(caller, None, None, 0)
            decided = self.conditions.above(state.frame, state.decided, frame, call)
            if tracked and decided is not None and self.may_go_up(state, caller, call):
                block, index = caller.homes[call]
                up = state._replace(frame=frame, block=block, place=index + 1, before=0, tracked=tracked, path=(*state.path, call))
                through = (caller, function) if is_captured(caller, call) else None
                yield self.raised(up._replace(guards=frozenset(), decided=decided, through=through), call)

    def _may_be_made(self, caller: Function, call: Instruction, through: tuple[Function, Function]) -> bool:
        """Whether a call may be one of the closure that was made for a function."""
        return may_be_made_for(self.transfer, Site(caller, call), *through)

    def _made_of(self, function: Function, held: Tracked) -> Iterator[Tracked]:
        """What a function knows by the name that it had before it was put into a record or container, if nothing else can be there."""
        root, path = held.place
        if root[0] != "register" or not path or function.is_cpp:
            return
        parts = self.carriers.parts(function, int(str(root[1])), tuple(map(_as_key, path)))
        if len(parts) == 1 and parts[0].function is function:
            yield from (held._replace(place=name) for name in self.places.names(function, parts[0].register))

    def over(self, state: State) -> bool:
        """Whether a path can meet nothing any more."""
        return False

    def passed(self, state: State, one: Instruction) -> bool:
        """Whether a path ends with an instruction, whatever it does."""
        return False

    def may_go_up(self, state: State, caller: Function, call: Instruction) -> bool:
        """Whether a path may come from a call."""
        return True

    def raised(self, state: State, call: Instruction) -> State:
        """A state that went up to a caller, behind a call."""
        return state

    # --- branches

    def _entering(self, state: State, block: int) -> Iterator[State]:
        frame = state.frame
        before = self._edge(frame.function, state.block, block)
        guards = frozenset(guard for guard in state.guards if guard[0] != frame or guard[2] != block)
        decided = state.decided
        loop = again(frame.function, state.block, block) if decided else None
        if loop is not None:  # what a round has computed is computed anew
            decided = frozenset(known for known in decided if known[0] != frame or not self._changes(frame.function, known[1], loop))
        decided = self._live.decided(frame, block, decided) if decided else decided
        tracked = self._live.tracked(frame.function, block, state.tracked) if self.forgets else state.tracked
        if tracked:
            yield state._replace(block=block, place=0, before=before, tracked=tracked, guards=guards, decided=decided)

    def _changes(self, function: Function, key: Key, loop: Loop) -> bool:
        """Whether a condition rests on a register that the rounds of a loop define."""
        if len(key) == 1 and isinstance(key[0], int):
            made = function.definitions[key[0]] if 0 <= key[0] < len(function.definitions) else None
            return made is not None and function.homes[made][0] in loop.body
        return any(self._changes(function, part, loop) for part in key if isinstance(part, tuple))

    def _edge(self, function: Function, block: int, after: int) -> int:
        """The number of the edge by which a block is entered, where that matters: for what meets there, and for the head of a loop."""
        predecessors = function.phi_order[after]
        if len(predecessors) < 2 or (function.code.blocks[after][0][0] != op.PHI and after not in function.loop_heads):
            return 0
        return predecessors.index(block) if block in predecessors else 0

    def _branched(self, state: State, end: Instruction) -> Iterator[State]:
        function, graph = state.frame.function, state.frame.function.control
        condition, turned = unnegated(function, end[2])
        key = alike(function, condition)
        told = {implied(asked, truth, key) for frame, asked, truth in state.decided if frame == state.frame}
        known = {truth for truth in told if truth is not None}
        constant = self.conditions.truth(state.frame, condition)
        if constant is not None:
            known = {constant}
        loop = function.loop_heads.get(state.block)
        is_head = loop is not None
        is_first = loop is not None and self._is_first(state, loop)
        join = graph.post_dominators[state.block]
        done = self.done_where(state, condition)
        done = self._gone_where(state, condition) if done is None else done
        if done is not None:
            other = end[4] if done != turned else end[3]
            yield from self._entering(state, other)
            return
        for taken, block in ((True, end[3]), (False, end[4])):
            holds = taken != turned
            if known and holds not in known:
                continue
            after = state
            if loop is not None and is_first and block not in loop.body:
                if counts_rounds(function, condition) or self.is_bounded(state, condition) or self.meanwhile.is_polling(state.frame, loop):
                    continue  # a loop over elements is looked at as it runs
                after = after._replace(guesses=after.guesses + self._may_order(state, end[4] if taken else end[3], state.block))
            if not known and not is_head:
                other = end[4] if taken else end[3]
                if self._may_order(state, other, join):
                    is_guess = not self.conditions.is_rare(function, state.block, other)
                    after = after._replace(guesses=after.guesses + is_guess)
                elif join != NOBODY and join != block:
                    after = after._replace(guards=after.guards | {(state.frame, state.block, join)})
                if self._is_asked_again(function, key):
                    after = after._replace(decided=after.decided | {(state.frame, key, holds)})
            if after.guesses <= MOST_GUESSES:
                yield from self._entering(after, block)

    def _gone_where(self, state: State, condition: int) -> bool | None:
        """The truth of a condition that says that the memory is gone: what holds it is not None."""
        asked = asked_for_none(state.frame.function, condition)
        return asked[1] if asked is not None and _has_memory(state, self.places.names(state.frame.function, asked[0])) else None

    def _is_first(self, state: State, loop: Loop) -> bool:
        """Whether a path stands at the head of a loop before the first round."""
        before = state.frame.function.phi_order[state.block]
        came = before[state.before] if state.before < len(before) else NOBODY
        return came not in loop.body and len(before) > 1

    def _is_asked_again(self, function: Function, key: Key) -> bool:
        return self.says_more(function, key) or self.conditions.is_given(function, key)

    def says_more(self, function: Function, key: Key) -> bool:
        """Whether the way that a branch takes tells which way another one of its function takes."""
        asked = self._asked.get(function)
        if asked is None:
            asked = self._asked[function] = {}
            for one in function.by_opcode[op.BRANCH]:
                asked.setdefault(hash(topic(asked_by(function, one))), []).append(one[2])
        is_stream = as_asked(key)[0] in self.currents.entered(function) or key in self.made_streams.asked(function)
        return is_stream or len(asked.get(hash(topic(key)), ())) > 1

    def _may_order(self, state: State, block: int, join: int) -> bool:
        """Whether the way that was not taken holds, before both meet, what orders the operation."""
        function = state.frame.function
        seen, waiting = {join}, [block]
        while waiting:
            number = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            for one, actions, entered in self._meant(function, number):
                if any(self.orders(state, one, action) for action in actions):
                    return True
                if any(self._may_order_inside(state, one, callee) for callee in entered):
                    return True
            waiting += function.control.successors[number]
        return False

    def _meant(self, function: Function, block: int) -> list[tuple[Instruction, tuple[Action, ...], list[Function]]]:
        """The instructions of a block that may order something, with what they do and enter."""
        known = self._meaning.get((function, block))
        if known is None:
            known = self._meaning[function, block] = []
            for one in function.code.blocks[block]:
                actions = tuple(action for action in self.actions(function, one) if not isinstance(action, Asked))
                entered = [edge.callee for edge in self.transfer.edges(function, one) if edge.is_followed]
                if actions or entered:
                    known.append((one, actions, entered))
        return known

    def _may_order_inside(self, state: State, one: Instruction, callee: Function) -> bool:
        """Whether a function that an instruction enters may order the operation."""
        return self._orders_inside(callee)

    def may_hold_up(self, action: Action) -> bool:
        """Whether the host may wait in an action."""
        return isinstance(action, self.ordering) or (isinstance(action, Read) and action.waits)

    def _orders_inside(self, function: Function) -> bool:
        """Whether a function waits on the host, by itself or through what it calls."""
        found = self._waiting.get(function)
        if found is None:
            self._waiting[function] = False  # in a cycle, the others tell
            found = self._waiting[function] = any(
                any(map(self.may_hold_up, self.transfer.of(function, one)))
                or any(edge.is_followed and self._orders_inside(edge.callee) for edge in self.transfer.edges(function, one))
                for opcode in CALLING
                for one in function.by_opcode[opcode]
            )
        return found

    def arrive(self, state: State, one: Instruction) -> str | frozenset[Tracked] | None:
        """What an instruction means for the pending operation before its actions do: answers as of a `Judge`."""
        return None

    def left(self, state: State, register: int) -> None:
        """A path leaves the program: its function, which nothing in view calls, gives back what a register holds."""

    def is_bounded(self, state: State, condition: int) -> bool:
        """Whether a loop waits for what is under way by its own measure: that it is entered is taken for granted."""
        return False

    def done_where(self, state: State, condition: int) -> bool | None:
        """The truth of a condition that says that the operation is done; None where it says nothing of it."""
        return None

    def derived(self, state: State, one: Instruction) -> frozenset[Tracked]:
        """What else is tracked behind a comparison or negation: whether it says that the operation is done."""
        return frozenset()

    def orders(self, state: State, one: Instruction, action: Action) -> bool:
        """Whether an action would order the operation that is followed."""
        raise NotImplementedError


def scope_call(function: Function, one: Instruction) -> Instruction | None:
    """The call of a generator that an instruction ends as a context manager."""
    made = function.definitions[one[3]] if one[0] == op.EXIT and one[3] >= 0 and not function.is_cpp else None
    return made if made is not None and made[0] in (op.CALL, op.INVOKE) else None


def _named(caller: Function, name: str) -> Iterator[Instruction]:
    """The calls of a member of a name, by an attribute or by ``getattr``."""
    yield from (one for one in caller.by_opcode[op.INVOKE] if caller.text(one[4]) == name)
    for one in caller.by_opcode[op.CALL]:
        made = caller.definitions[one[3]]
        if made is not None and made[0] == op.CALL and len(made) > 6 and caller.constant(made[6]) == name:
            yield one


def _has_memory(state: State, names: Iterable[Place]) -> bool:
    """Whether memory that is followed stands at, or inside of, one of some places."""
    return any(held.kind == BUFFER and rest_behind(name, held.place) is not None for name in names for held in state.tracked)


def _is_plain_method(function: Function, one: Instruction) -> bool:
    """Whether a constructor is called as a method: ``super().__init__()``, ``Base.__init__(self)``."""
    return one[0] == op.INVOKE and function.text(one[4]) == "__init__"


def aside(place: Place, depth: int) -> Place:
    """A place of a function on the path, as those that it called see it."""
    return place if place.root[0] == "aside" else Place(("aside", depth, place.root), place.path)


def renamed(key: Key, keys: dict[Key, Element]) -> Element | None:
    """What another function has for an index: as a whole, or for all that it is computed from; None where it has no name for it."""
    if key in keys:
        return keys[key]
    if len(key) < 2 or key[0] not in _COMPUTED:
        return None
    found: list[object] = []
    for part in key:
        if isinstance(part, tuple):
            inner = renamed(part, keys)
            if inner is None or not isinstance(inner.key, tuple):
                return None
            part = inner.key
        found.append(part)
    return Element(tuple(found))


def _as_key(key: str | Element) -> carried.Key:
    """A key as it is asked for: an index that is computed may be any."""
    if isinstance(key, str):
        return carried.Key(key, False)
    return carried.Key(key.key if isinstance(key.key, int | str) else None)


def _taken_up(place: Place, depth: int) -> Place | None:
    root = place.root
    if root[0] != "aside":
        return None
    return Place(root[2], place.path) if root[1] == depth else place  # type: ignore[arg-type]
