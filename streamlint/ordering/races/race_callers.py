"""How the work that is followed gets to callers: to those that may come to other work, and those that run its function once more."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.states import State
from streamlint.ordering.places.alternation import Slot, as_next
from streamlint.ordering.places.flow import BUFFER, STREAM, Tracked
from streamlint.ordering.places.meetings import Meeting, Meetings
from streamlint.ordering.places.open_methods import backward_passes, open_methods
from streamlint.ordering.places.places import Place, is_around
from streamlint.ordering.places.settled import Settled
from streamlint.ordering.places.weights import GRADIENTS
from streamlint.ordering.races.apart import Apart
from streamlint.ordering.races.race_orders import RaceOrders
from streamlint.ordering.streams.lanes import AMBIENT, MADE, Lane
from streamlint.ordering.streams.private_hooks import PrivateHooks
from streamlint.ordering.threads.not_inherited import starts_under_stream
from streamlint.transfer.actions import CURRENT, NAMED, UNKNOWN, Stream
from streamlint.transfer.transfer import Transfer


class RaceCallers(RaceOrders):
    """Follows work up, with the streams that are current there or that the calls hand down."""

    runs_hooks = True

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.settled = Settled(transfer, self.places)
        self.apart = Apart(transfer, self.places, self.lanes, self.memory)
        self.hooks = PrivateHooks(transfer, self.apart.map)
        self.is_wide = False  # whether it counts, too, what no known caller connects
        self._meetings = Meetings(self._running, self._repeats)
        self._meeting: Meeting | None = None
        self._left: dict[tuple[Function, tuple[Instruction, ...]], tuple[Function, ...]] = {}
        """By the calls that lead from a function to a caller: the functions up to that."""

    def _running(self, function: Function) -> list[tuple[Function, Instruction]]:
        """The calls that run a function, or what it has registered."""
        return self.callers(function) or backward_passes(self.transfer, function)

    def comes_to(self, function: Function, partners: frozenset[Function] | None) -> bool:
        """Whether a path from a function may come to work of others, to which it is held from here on."""
        self._meeting = self._meetings.of(partners) if partners is not None else None
        return self._meeting is None or self._meeting.is_ahead(function)

    def may_go_up(self, state: State, caller: Function, call: Instruction) -> bool:
        if self.dispatch.is_of_anyone(caller, call):
            return False
        if self._lane.kind == CURRENT and starts_under_stream(self.currents, caller, call):
            return False
        if caller.invokes(call, "hooks-forward") and self.hooks.may_be_awaited(state.frame.function, self._mine(state)):
            return False
        if self._meeting is None or self._meeting.is_behind(caller, call):
            return True
        return self._writes and self.hooks.is_rerun(caller, self._mine(state)) and self._meeting.is_ahead(caller)

    def _repeats(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction stands in a loop of its function."""
        return function.is_repeated(one)

    def _up(self, state: State, register: int) -> Iterator[State]:
        """Callers; what was the ambient stream is the one that is current where they call."""
        yield from self._repeated_invocation(state)
        yield from self._behind_backward(state)
        mine = self._mine(state)
        for up in super()._up(state, register):
            functions = self._functions_left(state, up)
            lane = self.lanes.of(up.frame, up.path[-1], Stream(CURRENT))
            if lane.kind == UNKNOWN and self._lane.kind == CURRENT:
                continue
            if lane.kind == NAMED:
                moved = {held for held in up.tracked if held.place == AMBIENT}
                renamed = {one for held in moved for one in lane.tracked(held.kind)}
                up = up._replace(tracked=(up.tracked - moved) | renamed)
                if mine.kind == CURRENT:
                    self._chosen[up.path] = lane
            if functions is not None and mine.kind == NAMED:
                up = self._passed_down(mine, functions, up)
            yield up

    def _functions_left(self, state: State, up: State) -> tuple[Function, ...] | None:
        """The functions that a path has left by its calls, that of the work first; None where others ran between, called by nobody."""
        home = self._site.function
        left = self._left.get((home, state.path)) if state.path or state.frame.function is not home else (home,)
        if left is not None:
            left = self._left[home, up.path] = (*left, up.frame.function)
        return left

    def _passed_down(self, mine: Lane, functions: tuple[Function, ...], up: State) -> State:
        """A path that has left a function by a call: the stream of the work is the one that this call passes down, of all that calls do;
        it is that of the object whose method the call runs."""
        is_open = mine.blocking is None or AMBIENT in mine.places or _is_one_of(mine)
        if not (is_open or _is_parameter(mine) or (mine.made and mine.owner is None)):
            return up
        given = self._given_by(functions, up)
        if given.kind == CURRENT:  # the call leaves it out
            self._chosen[up.path] = given
            return up._replace(tracked=frozenset(held for held in up.tracked if held.kind != STREAM) | given.tracked(STREAM))
        if given.owner is not None:
            up = up._replace(tracked=frozenset(owned(held, given) for held in up.tracked))
        if not is_open or given.kind != NAMED or given.blocking is None:
            return up
        self._chosen[up.path] = given
        return up._replace(tracked=_without_others(up.tracked, mine, given))

    def _given_by(self, functions: tuple[Function, ...], up: State) -> Lane:
        """The stream of the work as the calls give it by which a path has left functions."""
        frame = Frame(functions[-1], None, None, 0)
        for function, call in zip(reversed(functions[:-1]), reversed(up.path), strict=True):
            frame = Frame(function, frame, call, frame.depth + 1)
        return self.lanes.of(frame, self._site.instruction, self._stream(self._site.function, self._work))

    def _repeated_invocation(self, state: State) -> Iterator[State]:
        """What no known code calls runs once more: a method on the same object, if the stream never leaves that, and a hook."""
        function = state.frame.function
        marker = next(function.code.instructions())
        if not self._writes or marker in state.path:
            return
        mine = frozenset(held for held in state.tracked if _lasts(held.place, function))
        if not any(held.kind == BUFFER for held in mine):
            return
        is_hook = self.hooks.is_rerun(function, self._lane)
        again = [function] if is_hook or self._is_open(function) else []
        again += self.hooks.others(function, self._lane)
        if again and self.is_wide and not is_hook:
            again += open_methods(self.transfer, function)
        mine = self._in_next_call(function, mine) if is_hook else mine
        for method in dict.fromkeys(again):
            path = (*state.path, marker if method is function else next(method.code.instructions()))
            yield State(Frame(method, None, None, 0), 0, 0, 0, mine, state.guesses, frozenset(), frozenset(), path)

    def _in_next_call(self, function: Function, tracked: frozenset[Tracked]) -> frozenset[Tracked]:
        """What is tracked, by the names that the next call of a hook has for it."""
        numbers = self.hooks.counted(function)
        return frozenset(later for held in tracked for later in as_next(held, lambda key: Slot(key) if key[0] in numbers else None))

    def _behind_backward(self, state: State) -> Iterator[State]:
        """What a hook of gradients does that a constructor has registered is under way behind the backward passes of its object."""
        function = state.frame.function
        mine = frozenset(held for held in state.tracked if _lasts(held.place, function) or held.kind == STREAM)
        is_left = any(held.kind == BUFFER and GRADIENTS in held.place.path for held in mine)
        for method, one in backward_passes(self.transfer, function) if is_left else ():
            block, index = method.homes[one]
            if one not in state.path:
                path = (*state.path, one)
                yield State(Frame(method, None, None, 0), block, index + 1, 0, mine, state.guesses, frozenset(), frozenset(), path)

    def _is_open(self, function: Function) -> bool:
        """Whether unknown callers run a method, and cannot wait for the stream of the work."""
        if function.method is not function or not function.has_receiver or any(True for _ in self.facts.call_places(function)):
            return False
        lane = next((place for place in self._lane.places if place.root == ("parameter", 0)), None)
        return self._lane.kind != NAMED or (
            lane is not None and not self.settled.leaves(function, lane) and not self.settled.is_settled(function, lane)
        )


def _is_parameter(lane: Lane) -> bool:
    """Whether callers hand a stream down."""
    return any(place.root[0] == "parameter" and not place.path for place in lane.places)


def _is_one_of(lane: Lane) -> bool:
    """Whether callers hand one of several streams down."""
    return len(lane.made) > 1 and _is_parameter(lane)


def _without_others(tracked: frozenset[Tracked], mine: Lane, given: Lane) -> frozenset[Tracked]:
    """What is tracked without the streams that the work has by other calls: of several, and the current one."""
    others = {(*MADE, site) for site in mine.made - given.made} if _is_one_of(mine) and given.made < mine.made else set()
    left = frozenset(held for held in tracked if held.kind != STREAM or held.place.root[:3] not in others)
    return left if AMBIENT in given.places else left - {Tracked(STREAM, AMBIENT)}


def owned(held: Tracked, lane: Lane) -> Tracked:
    """A stream that is tracked by where it was made, with its owner, which a caller knows."""
    root = held.place.root
    is_open = held.kind == STREAM and root[:2] == MADE and root[2] in lane.made and root[3] is None
    return held._replace(place=Place((*MADE, root[2], lane.owner))) if is_open else held


def _lasts(place: Place, function: Function) -> bool:
    """Whether a place is there when a function runs once more: of its object, of a variable around it, or of a module."""
    return place.root[0] == "global" or (place.root == ("parameter", 0) and function.has_receiver) or is_around(place.root, function)
