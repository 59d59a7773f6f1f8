"""Where a path goes by calls: into functions and out of them, up to callers, to who takes a value from a generator or a queue."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Container, Site
from streamlint.facts.graph.call_graph import Edge
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.called_arguments import CalledArguments
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.deciding import deciding
from streamlint.ordering.paths.dispatch import Classes, Dispatch
from streamlint.ordering.paths.fixed_names import Decided
from streamlint.ordering.paths.generators import IN_HAND, STILL, Generators, taking
from streamlint.ordering.paths.kept_members import KeptMembers
from streamlint.ordering.paths.passages import Passages
from streamlint.ordering.paths.states import State
from streamlint.ordering.paths.walk_names import scope_call
from streamlint.ordering.places.flow import BUFFER, EVENT, STREAM, Tracked, leads_to
from streamlint.ordering.places.global_names import GlobalNames
from streamlint.ordering.places.iterated import as_given
from streamlint.ordering.places.places import ANY, ASIDE, OWN, Place, in_lambdas, register_place
from streamlint.ordering.walk.woken import Woken
from streamlint.transfer.actions import Stream
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.waits.closures import is_captured, may_be_made_for
from streamlint.waits.questions import alike, asked_by

_DEEPEST = 20
_MOST_FILES = 20
"""Files that mention a property, beyond which only those that read it where it stands count."""


class Calls(Woken):
    """Follows paths through calls. ``runs_hooks``: a function that a library calls runs behind where it is registered."""

    runs_hooks = False

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.dispatch = transfer.one_of(Dispatch, transfer.facts)
        self.names = transfer.one_of(GlobalNames, transfer)
        self.members = transfer.one_of(KeptMembers, transfer, self.places)
        self._waiting: dict[Function, bool] = {}
        self._calling: dict[Function, list[tuple[Function, Instruction]]] = {}
        self._passages = Passages(self)
        self.generators = Generators(self)
        self.called = transfer.one_of(CalledArguments, transfer.facts)
        self._run_block: Callable[[State], Iterable[State]] = lambda state: ()

    def _entered(self, state: State, one: Instruction, index: int) -> Iterator[State]:
        """The functions that an instruction enters, if they can mean something."""
        frame = state.frame
        taken, left = self.generators.known(state, one) if self.resumes else (None, [])
        if frame.depth >= _DEEPEST or (one[0] == op.NEXT and not left and self._is_in_hand(state, one[3])):
            return
        if taken is not None and left:
            if one[0] == op.YIELD_FROM and any(mark.type == IN_HAND for mark in left):
                yield from self._delegated(state._replace(place=index), one, left)
            yield from self.generators.resumed(state, taken, (mark for mark in left if mark.type != IN_HAND))
            return
        if one[0] == op.EXIT:
            yield from self._resumed(state, one)
        edges = self.transfer.edges(frame.function, one)
        for chosen, callee in self._run_by(state, one, edges):
            classes = self._narrowed(state, one, callee) if len(edges) > 1 else state.classes
            if classes is not None:
                yield from self._inside(state._replace(chosen=chosen, classes=classes), one, index, callee)

    def _run_by(self, state: State, one: Instruction, edges: Collection[Edge]) -> Iterator[tuple[frozenset[int], Function]]:
        """The functions that a path may enter, each with the files that it has chosen then: of what builds choose from, it has one."""
        units = {edge.callee.unit.number for edge in edges if edge.callee.is_cpp}
        among = units if len(units) > 1 else set()
        chosen = state.chosen & among
        for callee in (edge.callee for edge in edges if self._is_run(state.frame, one, edge)):
            if not chosen or callee.unit.number in chosen:
                yield state.chosen | ({callee.unit.number} if among else set()), callee

    def _is_run(self, frame: Frame, one: Instruction, edge: Edge) -> bool:
        """Whether a path goes by an edge of the call graph, on which it is not in the callee already."""
        is_run = edge.is_followed or (not edge.is_guess and self.meanwhile.lets_go(frame.function, one))
        return is_run and not edge.is_higher_order and frame.may_enter(edge.callee)

    def _inside(self, state: State, one: Instruction, index: int, callee: Function) -> Iterator[State]:
        """The beginning of a function, or what is behind its call if all that it can do is to order the operation."""
        frame = Frame(callee, state.frame, one, state.frame.depth + 1)
        tracked = self._given(state, one, callee)
        classes = self.dispatch.inside(state.classes, state.frame, one, frame)
        inside = state._replace(frame=frame, block=0, place=0, before=0, tracked=tracked, classes=classes)
        near = (held.place for held in tracked if held.place.root[0] != ASIDE)
        if any(self._is_named(place, callee) for place in near) or self.may_meet(tracked, callee):
            yield inside
        elif self._orders_inside(callee):
            yield from self._passages.through(state, one, index, inside, self._run_block)

    def _is_named(self, place: Place, callee: Function) -> bool:
        """Whether a function may name what stands at a place, if that matters: some places stand for what has no name."""
        if not self.meets_memory or place.root[0] != "global":
            return True
        return isinstance(place.root[1], int) and self.names.may_touch(callee, place.root)

    def given_to(self, state: State, one: Instruction, callee: Function) -> frozenset[Tracked]:
        """What is tracked, by the names that a function has for it that an instruction enters."""
        return self._given(state, one, callee)

    def may_order(self, function: Function) -> bool:
        """Whether a function waits on the host, by itself or through what it calls."""
        return self._orders_inside(function)

    def may_meet(self, tracked: frozenset[Tracked], callee: Function) -> bool:
        """Whether a function that has no name for what is tracked may mean something for it."""
        return not self.meets_memory and self._orders_inside(callee)

    def _is_closed_over(self, frame: Frame, one: Instruction, callee: Function) -> bool:
        """Whether a closure that a path has entered may have been made for the function that it calls."""
        if frame.caller is None or frame.call is None or frame.function.is_cpp or not is_captured(frame.function, one):
            return True
        return may_be_made_for(self.facts, Site(frame.caller.function, frame.call), frame.function, callee)

    def _narrowed(self, state: State, one: Instruction, callee: Function) -> frozenset[tuple[Frame, Classes]] | None:
        """The classes of known objects if a call runs one of several functions; None where what a path has run says that it does not."""
        if not self._is_closed_over(state.frame, one, callee) or not self.called.may_run(state.frame, one, callee):
            return None
        mine = self.dispatch.classes(state.frame.function, one, callee)
        if mine is None:
            return state.classes
        known = next((classes for frame, classes in state.classes if frame == state.frame), None)
        left = mine if known is None else mine & known
        for name in {str(held.place.path[0]) for held in state.tracked if held.place.root == ("parameter", 0) and held.place.path}:
            holding = self.dispatch.with_member(state.frame.function, name)
            left = left if holding is None else left & holding
        others = frozenset(each for each in state.classes if each[0] != state.frame)
        return others | {(state.frame, left)} if left else None

    def _resumed(self, state: State, one: Instruction) -> Iterator[State]:
        """The rest of a generator that was a context manager, behind what it has yielded."""
        frame = state.frame
        scope = scope_call(frame.function, one)
        for edge in self.transfer.edges(frame.function, scope) if scope is not None else ():
            ends = edge.callee.by_opcode[op.YIELD] if edge.is_direct and not frame.runs(edge.callee) else []
            if len(ends) == 1 and not edge.callee.is_cpp and (self.meets_memory or self._orders_inside(edge.callee)):
                block, index = edge.callee.homes[ends[0]]
                inner = Frame(edge.callee, frame, one, frame.depth + 1)
                lent = (self._lent(state, frame.function, one, each) for each in self.transfer.shared(edge.callee, ends[0][3]))
                tracked = self._given(state, one, edge.callee).union(*lent)
                yield state._replace(frame=inner, block=block, place=index + 1, before=0, tracked=tracked)

    def _lent(self, state: State, function: Function, end: Instruction, yielded: int) -> frozenset[Tracked]:
        """What a scope has named that ends, as the generator knows it that has yielded it, or a view of it."""
        named = [name for use in function.uses[end[3]] if use[0] == op.ENTER for name in self.places.names(function, use[2])]
        return frozenset(self.flow.moved(state.tracked, named, register_place(yielded)) if named and yielded >= 0 else ())

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
        return leads_to(state.tracked, [name.behind(ANY) for name in self.places.names(state.frame.function, iterator)], BUFFER)

    def _yielded(self, state: State, one: Instruction, register: int) -> Iterator[State]:
        """Whoever takes the values of a generator goes on, one of them in hand; there it stands still until the next is taken."""
        generator, call = state.frame.function, state.frame.call
        is_own = state.frame.caller is not None and call is not None
        up = state._replace(tracked=state.tracked | {STILL}) if self.resumes else state
        for back in self._returned(state, register) if is_own else self._up(up, register):
            back = back._replace(tracked=back.tracked - {STILL})
            by = call if is_own and call is not None else back.path[-1]
            caller = back.frame.function
            taken = taking(caller, by) if self.resumes else None
            is_delegated = taken is not None and by[0] == op.YIELD_FROM
            tracked = back.tracked if is_delegated else as_given(self.flow, generator, caller, by, back.tracked)
            if self.resumes:
                tracked = tracked.union(self.generators.left(one, state, taken.iterator if taken is not None else by[2], taken is None))
            back = back._replace(tracked=tracked)
            if is_delegated:
                yield from self._yielded(back._replace(place=back.place - 1), by, by[2])
            else:
                yield back

    def _delegated(self, state: State, one: Instruction, left: Iterable[Tracked]) -> Iterator[State]:
        """What a generator has in hand of another one, it gives on."""
        names = self.places.names(state.frame.function, one[3])
        given = self.flow.moved(state.tracked, names, register_place(one[2]), (ANY,))
        yield from self._yielded(state._replace(tracked=self.generators.in_hand(state.tracked.union(given), left)), one, one[2])

    def _returned(self, state: State, register: int) -> Iterator[State]:
        """The state behind the call that has entered the function, or in its callers."""
        frame, call = state.frame, state.frame.call
        if frame.caller is not None and call is not None and self.meanwhile.lets_go(frame.caller.function, call):
            return  # nobody waits for the end of the thread
        guards = frozenset(guard for guard in state.guards if guard[0] != frame)
        if frame.caller is None or call is None:
            yield from self._up(state._replace(guards=guards), register)
            return
        tracked = self._behind_return(state, register, frame.caller, call)
        block, index = frame.caller.function.homes[call]
        decided = frozenset(known for known in state.decided if known[0] != frame)
        decided |= self.conditions.kept_flags.behind(frame, state.decided, frame.caller, call)
        decided = self._answered(decided, frame, register, call)
        back = state._replace(frame=frame.caller, block=block, place=index + 1, tracked=tracked, guards=guards, decided=decided)
        yield back._replace(classes=self.dispatch.behind(state.classes, frame))
        yield from self.woken(back, call)

    def _answered(self, decided: Decided, frame: Frame, register: int, call: Instruction) -> Decided:
        """What a path has decided, with the truth of what a call gives, where a branch of the caller asks that and the path has ended in
        a constant."""
        caller = frame.caller
        if caller is None or call[0] not in (op.CALL, op.INVOKE):
            return decided
        key, ends = alike(caller.function, call[2]), caller.function.by_opcode[op.BRANCH]
        answer = self.conditions.truth(frame, register) if any(key == asked_by(caller.function, end) for end in ends) else None
        if answer is None:
            return decided
        return frozenset(known for known in decided if known[:2] != (caller, key)) | {(caller, key, answer)}

    def callers(self, function: Function) -> list[tuple[Function, Instruction]]:
        """The calls that run a function as a part of their own; of C++, also those of Python by its name."""
        known = self._calling.get(function)
        if known is None:
            known = self._calling[function] = [place for place in self._call_places(function) if self.transfer.runs(*place, function)]
            if not known and self.runs_hooks:
                known += self.transfer.registered(function)
        return known

    def _call_places(self, function: Function) -> Iterable[tuple[Function, Instruction]]:
        found = dict.fromkeys(self.facts.call_places(function))
        found.update(dict.fromkeys(self._reading_places(function)))
        if function.is_cpp and function.owner is None:
            for unit in self.facts.program.mentioning(function.code.name):
                for caller in unit.functions if not unit.is_cpp else ():
                    found.update(dict.fromkeys((caller, one) for one in _named(caller, function.code.name)))
        return found

    def _reading_places(self, function: Function) -> Iterator[tuple[Function, Instruction]]:
        """Where a property is read: of each object that may have it."""
        is_plain = function.method is function and function.has_receiver and len(function.code.parameters) == 1 and not function.is_cpp
        units = self.facts.program.mentioning(function.code.name) if is_plain and function.code.decorators else ()
        for unit in units if len(units) <= _MOST_FILES else [function.unit]:
            yield from ((user, one) for user, one in unit.attribute_uses.get(function.code.name, ()) if one[0] == op.ATTR)

    def _up(self, state: State, register: int) -> Iterator[State]:
        """The callers of the function with which a path begins."""
        function = state.frame.function
        if len(state.path) >= _DEEPEST:
            return
        callers = self.callers(function)
        if not callers:
            self.left(state, register)
        for caller, call in callers:
            if not self._may_be_made(function, Site(caller, call), state.through):
                continue
            back = frozenset(self._passed_back(state, register, caller, call))
            tracked = back.union(*(self._made_of(caller, held) for held in back))
            tracked |= {
                held._replace(place=place)
                for held in tracked
                if held.kind in (BUFFER, EVENT, STREAM)
                for place in self._in_members(caller, held, call)
            }
            for frame in self.called.above(caller, call, function) or [Frame(caller, None, None, 0)]:
                yield from self._behind_call(state, frame, call, tracked.union(self._by_arguments(frame, tracked)))

    def _called_next(self, state: State, methods: Iterable[Function]) -> Iterator[State]:
        """The state where unknown callers call methods of the object behind the one with which a path begins: the object is still known."""
        mine = frozenset(held for held in state.tracked if held.place.root == OWN.root)
        for method in methods if any(held.kind == BUFFER for held in mine) else ():
            path = (*state.path, next(method.code.instructions()))
            begun = state._replace(frame=Frame(method, None, None, 0), block=0, place=0, before=0, tracked=mine, path=path)
            yield begun._replace(guards=frozenset(), decided=frozenset())

    def _behind_call(self, state: State, frame: Frame, call: Instruction, tracked: frozenset[Tracked]) -> Iterator[State]:
        """The state in a caller of the function with which a path begins."""
        caller = frame.function
        decided = self.conditions.above(state.frame, state.decided, frame, call)
        classes = self.dispatch.above(state.classes, state.frame, frame, call)
        if tracked and decided is not None and classes is not None and self.may_go_up(state, caller, call):
            block, index = caller.homes[call]
            decided |= {(frame, key, holds) for key, holds in deciding(caller, block) if self.conditions.is_given(caller, key)}
            decided |= self.fixed.kept(state.decided) | self.fixed.said(caller, block)
            up = state._replace(frame=frame, block=block, place=index + 1, before=0, tracked=tracked, path=(*state.path, call))
            up = up._replace(classes=classes)
            through = (caller, state.frame.function) if is_captured(caller, call) else None
            after = self.raised(up._replace(guards=frozenset(), decided=decided, through=through), call)
            yield self.generators.begun(after) if self.resumes else after

    def _by_arguments(self, frame: Frame, tracked: frozenset[Tracked]) -> Iterator[Tracked]:
        """What is tracked that a closure shares with the function around it, by the names of what that has passed with the closure."""
        outer, call = frame.caller, frame.call
        if outer is None or call is None:
            return
        shared = {held for held in tracked if held.place.root[0] in ("global", "cell", "this")}
        own = in_lambdas(outer.function).root
        shared |= {held._replace(place=OWN.behind(*held.place.path)) for held in shared if held.place.root == own}
        for held in shared.union(self._by_arguments(outer, tracked)):
            for sources, target in self._given_to(outer.function, call, frame.function):
                yield from self.flow.moved([held], sources, target)

    def _in_members(self, caller: Function, held: Tracked, call: Instruction) -> Iterator[Place]:
        """The members of other objects that a caller has made of what is tracked, before a call; C++: what an object was made of."""
        sources = [held.place, *(self.members.given(caller, held.place) if caller.is_cpp else ())]
        yield from sources[1:]
        for source in sources:
            yield from self.members.of_place(caller, source, call)

    def _may_be_made(self, function: Function, call: Site, through: tuple[Function, Function] | None) -> bool:
        """Whether a call may be one of the closure through which a path has come to a function."""
        return through is None or through[0] is not function or may_be_made_for(self.facts, call, *through)

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


def _named(caller: Function, name: str) -> Iterator[Instruction]:
    """The calls of a member of a name, by an attribute or by ``getattr``."""
    yield from (one for one in caller.by_opcode[op.INVOKE] if caller.text(one[4]) == name)
    for one in caller.by_opcode[op.CALL]:
        definition = caller.definitions[one[3]]
        if definition is not None and definition[0] == op.CALL and len(definition) > 6 and caller.constant(definition[6]) == name:
            yield one
