"""Where memory that is followed may cross streams: the functions that its path enters, the blocks that it runs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind_copies
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.states import State
from streamlint.ordering.paths.walk_names import aside
from streamlint.ordering.places.flow import BUFFER, Tracked
from streamlint.ordering.places.places import ANY, ASIDE, Element, Place, Root
from streamlint.ordering.races.beginnings import CHOOSING
from streamlint.ordering.races.races import Races
from streamlint.ordering.streams.near_streams import NearStreams
from streamlint.transfer.actions import NAMED, Viewed
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.work import Worked
from streamlint.waits.operands import operand_of

USED, DROPPED = "used", "dropped"
"""On another stream; and what has referred to the memory last."""
MARK = Place(("global", "used"))
"""Where both are noted."""
_KEEPING = frozenset({"record_use"})
_CROSSING = CHOOSING | _KEEPING
_LENT = Element(("lent",))
_DEEPEST = 12


class Crossing(Races):
    """Follows memory where it may be used on another stream."""

    resumes = False
    ends_alike = False
    judges_by_touch = False

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self._looks = True

    @cached_property
    def _near(self) -> NearStreams:
        return NearStreams(self.transfer, self.callers, _CROSSING, self.beginnings.chosen)

    @cached_property
    def _allocating(self) -> NearStreams:
        """The functions that choose a stream, or allocate where their caller has chosen one."""
        works = (
            (function, work)
            for function, found in self.beginnings.chosen.items()
            for one in found
            for work in self.transfer.works(function, one)
        )
        also = dict.fromkeys(function for function, work in works if work.made >= 0 and self._allocates(function, work))
        return NearStreams(self.transfer, self.callers, _CROSSING, also)

    def _allocates(self, function: Function, work: Worked) -> bool:
        """Whether work makes memory: operators also make numbers."""
        return bool(work.library) or self.memory.is_on_device(function, work.made, work, False)

    def may_go_up(self, state: State, caller: Function, call: Instruction) -> bool:
        """Whether a caller may use the memory on another stream, or let go of it while one does."""
        return caller in self._near or self._is_in_use(state.tracked)

    def _entered(self, state: State, one: Instruction, index: int) -> Iterator[State]:
        self._looks = self._is_in_use(state.tracked)
        if self._looks or one[0] != op.NEXT or not any(is_lent_by(held.place, one[3]) for held in state.tracked):
            yield from super()._entered(state, one, index)  # else the generator has just lent it

    def may_meet(self, tracked: frozenset[Tracked], callee: Function) -> bool:
        """A function that makes a stream current may allocate on that of the pool."""
        is_pool = self._lane.kind == NAMED and self._is_in_use(tracked)
        return super().may_meet(tracked, callee) or (is_pool and self._allocating.leads(callee))

    def sources(self, function: Function, one: Instruction, callee: Function, index: int) -> tuple[Place, ...]:
        """A generator that is resumed is given nothing."""
        if one[0] in (op.NEXT, op.ENTER) and not callee.has_receiver:
            return ()
        return super().sources(function, one, callee, index)

    def _may_order(self, state: State, block: int, *joins: int) -> bool:
        self._looks = self._is_in_use(state.tracked)
        return (self._looks or state.frame.function in self._keeping) and super()._may_order(state, block, *joins)

    @cached_property
    def _keeping(self) -> frozenset[Function]:
        """The functions that tell pools of uses."""
        return frozenset(call.function for call in self.transfer.sites(_KEEPING))

    def _orders_inside(self, function: Function) -> bool:
        """What waits matters once another stream uses the memory."""
        return self._looks and super()._orders_inside(function)

    def _entering(self, state: State, block: int) -> Iterator[State]:
        """A path ends where nothing that follows can use the memory. What guards a path does not matter."""
        for after in super()._entering(state, block):
            if self._is_in_use(after.tracked) or any(self._may_be_used(after, held) for held in after.tracked):
                yield after._replace(guards=frozenset())

    def _may_be_used(self, state: State, held: Tracked) -> bool:
        """Whether a name for the memory may be read from the beginning of a block on."""
        if held.kind != BUFFER or held.place.root[0] != "register":
            return held.kind == BUFFER
        return self._live.is_read(state.frame.function, state.block, int(str(held.place.root[1])))

    def _is_object(self, state: State, register: int, held: Tracked) -> bool:
        """Whether a place holds the tensor itself that a register holds: no view of it, and not what it is a view of. What was computed of
        it may refer to it for the backward pass, but then to the tensor, whatever its storage is."""
        if held.place in self._names_on_path(state.frame, register):
            return True
        frame, inner = frame_of(state, held.place)
        if inner[0] != "register" or held.place.path or frame is None:
            return False
        function, mine = _given(frame, int(str(inner[1])))
        definition = function.definitions[mine]
        if (function, mine) == _given(state.frame, register) or definition is None or definition is self._site.instruction:
            return (function, mine) == _given(state.frame, register)
        is_view = any(isinstance(each, Viewed) for each in self.transfer.of(function, definition))
        return not is_view and bool(self.transfer.works(function, definition))

    def _names_on_path(self, frame: Frame, register: int) -> Iterator[Place]:
        """The names of what a register holds: those of its function, and of the callers that have passed it or its object."""
        depth, places = frame.depth, list(self.places.names(frame.function, register))
        while True:
            yield from (place if frame.depth == depth else aside(place, frame.depth) for place in places)
            function, caller, call = frame.function, frame.caller, frame.call
            if caller is None or call is None or call[0] not in (op.CALL, op.INVOKE):
                return
            above: list[Place] = []
            for root, path in (place for place in places if place.root[0] == "parameter"):
                index = int(str(root[1]))
                is_receiver = index == 0 and function.has_receiver and call[0] == op.INVOKE
                given = call[3] if is_receiver else operand_of(caller.function, call, function, index)
                names = self.places.names(caller.function, given) if given is not None and given >= 0 else ()
                above += [name.behind(*path) for name in names]
            above += [source for place in above for source in self.members.given(caller.function, place)]
            frame, places = caller, above

    def _is_in_use(self, tracked: frozenset[Tracked]) -> bool:
        return any(held.kind == USED for held in tracked)


def _given(frame: Frame, register: int) -> tuple[Function, int]:
    """The register of the function on the path that has given what a register holds."""
    for _ in range(_DEEPEST):
        register = behind_copies(frame.function, register, (op.COPY, op.REBIND))
        made, caller, call = frame.function.definitions[register], frame.caller, frame.call
        if made is None or made[0] != op.PARAM or caller is None or call is None or call[0] not in (op.CALL, op.INVOKE):
            break
        given = operand_of(caller.function, call, frame.function, made[3])
        if given is None or given < 0:
            break
        frame, register = caller, given
    return frame.function, register


def frame_of(state: State, place: Place) -> tuple[Frame | None, Root]:
    """The function on the path that has something tracked, and the beginning of its place there."""
    frame: Frame | None = state.frame
    root = place.root
    while root[0] == ASIDE and frame is not None and frame.depth != root[1]:
        frame = frame.caller
    return frame, root[2] if root[0] == ASIDE and isinstance(root[2], tuple) else root


def is_lent(place: Place) -> bool:
    return place.path[:1] == (_LENT,)


def is_lent_by(place: Place, iterator: int) -> bool:
    """Whether an iterator lends what is at a place."""
    return is_lent(place) and place.root == ("register", iterator)


def as_lent(held: Tracked) -> Tracked:
    """An element of what a generator yields: it keeps none."""
    place = held.place
    if held.kind != BUFFER or place.root[0] != "register" or place.path[:1] != (ANY,):
        return held
    return held._replace(place=Place(place.root, (_LENT, *place.path[1:])))
