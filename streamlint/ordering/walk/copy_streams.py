"""The stream of a pending copy: by which names a path knows it, and whether another stream is the same one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject, Object, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.memory.on_device import may_be_anything
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.states import State
from streamlint.ordering.paths.walk_names import aside
from streamlint.ordering.places import rotation
from streamlint.ordering.places.flow import BUFFER, STREAM, Tracked, is_at
from streamlint.ordering.places.places import Place
from streamlint.ordering.streams.lanes import AMBIENT
from streamlint.ordering.streams.streams import sites_of
from streamlint.ordering.walk.holding import Holding
from streamlint.transfer.actions import CURRENT, NAMED, NULL, UNKNOWN, Stream
from streamlint.transfer.transfer import Transfer


class Where(NamedTuple):
    """A stream, and the function in which its register stands: one of the path, or one that stands still between the begin of a scope,
    which the path is in, and its end."""

    frame: Frame
    stream: Stream


class CopyStreams(Holding):
    """Compares streams with that of the copy, by places, by where they were made, and by what is current on the path."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self._ambients: dict[tuple[Function, int], frozenset[Site]] = {}

    def _given_back(self, function: Function, register: int, depth: int = 3) -> Iterator[Place]:
        """The places of an object that a function of the program gives back: a member of its receiver, an argument."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or one[0] not in (op.CALL, op.INVOKE, op.ITEM, op.ENTER, op.ATTR) or depth == 0:
            return
        for edge in self.transfer.edges(function, one):
            callee = edge.callee
            for returned in callee.by_opcode[op.RETURN]:
                for inner in self.transfer.shared(callee, returned[2]) if returned[2] >= 0 else ():
                    places = (self.places.of(callee, inner), *self._given_back(callee, inner, depth - 1))
                    for place in places:
                        if place.root[0] == "parameter":
                            for source in self.sources(function, one, callee, int(str(place.root[1]))):
                                yield source.behind(*place.path)

    def _where(self, frame: Frame, one: Instruction, stream: Stream) -> Where:
        """The stream of an operation; what is current by the scopes of the functions on the path, if it names none."""
        while stream.kind == CURRENT:
            current = self.currents.at(frame.function, one)
            if current is not None:
                return self._within(frame, current) or Where(frame, current)
            if frame.caller is None or frame.call is None:
                break
            one, frame = frame.call, frame.caller
            stream = stream._replace(register=op.NONE)  # the variable was one of the function that was left
        return Where(frame, stream)

    def _within(self, frame: Frame, scope: Stream) -> Where | None:
        """The stream that a function of the program makes current for a scope of the path, as that function names it."""
        function = frame.function
        made = function.definitions[scope.register] if scope.kind == UNKNOWN and scope.register >= 0 else None
        if made is None:
            return None
        is_call = made[0] in (op.CALL, op.INVOKE)
        found = [(callee, stream, made) for callee, stream in (self.currents.yielded(function, made) if is_call else ())]
        for use in function.uses[scope.register] if not found else ():
            found += [(callee, stream, use) for callee, stream in self.currents.entered_by(function, use)]
        if len(found) != 1 or frame.runs(found[0][0]):
            return None
        callee, stream, call = found[0]
        return Where(Frame(callee, frame, call, frame.depth + 1), stream)

    def _on(self, state: State, where: Where) -> State:
        """A state whose copy is on a stream."""
        function, register = where.frame.function, where.stream.register
        tracked = state.tracked
        if register >= 0:
            shared = self.transfer.shared(function, register)
            tracked = tracked | {Tracked(STREAM, place) for each in shared for place in self._names(state.frame, where.frame, each)}
            if where.frame == state.frame:  # a function of the program may have given it back
                tracked = tracked | {Tracked(STREAM, place) for each in shared for place in self._given_back(function, each)}
        values = list(self.transfer.values(function, register))
        made, _ = sites_of(values)
        state = state._replace(is_blocking=self._is_blocking(made, values))
        return state._replace(tracked=tracked, stream=where.stream, sites=made)

    def raised(self, state: State, call: Instruction) -> State:
        """A path goes up to a caller: what is current there is the stream of a copy on the current stream."""
        given = [held for held in state.tracked if held.kind == BUFFER and held.place.root[0] == "register"]
        for held in given:
            kept = self._given_back(state.frame.function, int(str(held.place.root[1])))
            more = {held._replace(place=place.behind(*held.place.path)) for place in kept}
            state = state._replace(tracked=state.tracked | more)
        state = state._replace(tracked=state.tracked | set(rotation.as_elements(self.places, state.frame.function, state.tracked)))
        if state.stream.kind != CURRENT:
            return state
        return self._on(state, self._where(state.frame, call, state.stream._replace(register=op.NONE)))

    def _names(self, frame: Frame, home: Frame, register: int) -> Iterator[Place]:
        """The places of a register of a function that is on the path, as a function that it called sees them."""
        for place in self.places.names(home.function, register):
            if place.root[0] in ("global", "cell"):
                yield place
            elif home.caller is None or home.call is None or frame.runs(home.function):
                yield place if frame == home else aside(place, home.depth)
            elif place.root[0] == "parameter":  # it stands still: by what its call has given
                for source in self.sources(home.caller.function, home.call, home.function, int(str(place.root[1]))):
                    outer = source.behind(*place.path)
                    yield outer if frame == home.caller else aside(outer, home.caller.depth)

    def _is_same_stream(self, state: State, where: Where) -> bool:
        """Whether a stream may be that of the copy; one of which nothing is known is."""
        mine, stream = state.stream, where.stream
        if UNKNOWN in (stream.kind, mine.kind) or is_joined(state, stream):
            return True
        if self._is_known(state, where):
            return True
        if stream.kind != NAMED and mine.kind != NAMED:
            return True  # the null stream, or whatever is current
        if mine.kind == CURRENT:
            made, _ = sites_of(list(self.transfer.values(where.frame.function, stream.register)))
            return bool(made & self._ambient(state.frame.root.function))
        if stream.kind == NULL:
            return state.is_blocking
        if stream.kind != NAMED or mine.kind != NAMED:
            return False
        values = list(self.transfer.values(where.frame.function, stream.register))
        made, _ = sites_of(values)
        if made & state.sites:
            return True
        place = self.places.of(where.frame.function, stream.register)
        return not made and may_be_anything(values) and place.root[0] == "register" and not place.path

    def _is_known(self, state: State, where: Where) -> bool:
        """Whether a stream is that of the copy by one of its names."""
        function, register = where.frame.function, where.stream.register
        if register < 0:
            return False
        held = self.places.of(function, register)  # without casts
        base = int(str(held.root[1])) if held.root[0] == "register" and not held.path else register
        names = {register: None, **dict.fromkeys(self.transfer.shared(function, base))}
        return any(is_at(state.tracked, self._names(state.frame, where.frame, each), STREAM) for each in names)

    def _behind(self, frame: Frame, where: Where) -> Iterator[Tracked]:
        """A stream that has waited for that of the copy, by its names: who waits for it waits for the copy."""
        if where.stream.kind == CURRENT:
            yield Tracked(STREAM, AMBIENT)
        for each in self.transfer.shared(where.frame.function, where.stream.register) if where.stream.register >= 0 else ():
            yield from (Tracked(STREAM, place) for place in self._names(frame, where.frame, each))

    def _ambient(self, function: Function, depth: int = 4) -> frozenset[Site]:
        """Where the streams were made that are current where a function is called."""
        if (function, depth) not in self._ambients:
            self._ambients[function, depth] = frozenset()  # of a cycle
            found: set[Site] = set()
            for caller, call in self.callers(function) if depth else ():
                current = self.currents.at(caller, call)
                if current is None:
                    found |= self._ambient(caller, depth - 1)
                elif current.register >= 0:
                    found |= sites_of(list(self.transfer.values(caller, current.register)))[0]
            self._ambients[function, depth] = frozenset(found)
        return self._ambients[function, depth]

    def _is_blocking(self, made: Iterable[Site], values: Iterable[Object]) -> bool:
        """Whether streams wait for the null stream, and it for them."""
        if any(isinstance(value, LibraryObject) and value.detail == "blocking" for value in values):
            return True
        calls = (call for site in made for call in self.transfer.modelled(site.function, site.instruction) if call.row.effect == "stream")
        return any(not call.function.is_cpp and call.switch("blocking")[1] is True for call in calls)


def is_joined(state: State, stream: Stream) -> bool:
    """Whether a stream is the current one, and that has waited for the stream of the copy."""
    return stream.kind == CURRENT and Tracked(STREAM, AMBIENT) in state.tracked
