"""Waits and marks that order nothing: a stream waits for itself, and memory is marked as used on the stream that it was made on.

Which stream an instruction means is known by where the code has it (a register, a member, a variable), not by where it was made: two
streams of one factory are two. A stream that was current when a function was entered is that of each call which enters it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind_copies
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import Element, Place, Places
from streamlint.ordering.streams.last_records import LastRecords
from streamlint.ordering.streams.streams import Currents
from streamlint.transfer.actions import CURRENT, NAMED, NULL, Stream
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.waiting import Waited
from streamlint.transfer.work import Kept
from streamlint.waits.operands import argument_registers, operand_of

ITSELF, EVENT, DEFAULT, MARK = "itself", "event", "default", "mark"
_DEEPEST = 3
"""Calls between what is asked and where its streams are named."""
_STABLE = ("register", "parameter", "cell", "global", "this")


class Meant(NamedTuple):
    """A stream as a function names it: at a place, in a register; None: the one that was current when the function was entered."""

    place: Place | None
    switched: Site | None = None
    """Where it was made current, if it is the current one."""
    register: int = op.NONE


class VoidWait(NamedTuple):
    """A wait or mark that orders nothing, why, where the stream was made current, and the calls that lead to it, the outermost first.

    ``taken`` is where a current or default stream, or an event, was taken that is not taken in the wait itself."""

    at: Site
    why: str
    switched: Site | None
    taken: Site | None = None
    calls: tuple[Site, ...] = ()


class SameStreamWaits:
    """Finds such waits."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.places = transfer.one_of(Places, transfer.facts)
        self.currents = transfer.one_of(Currents, transfer)
        self.last = transfer.one_of(LastRecords, transfer)

    def waits(self) -> Iterator[VoidWait]:
        """Waits of a stream for itself, for an event of its own, and for the default stream, which may be right."""
        for call in self.transfer.sites(frozenset({"wait"})):
            function, one = call.function, call.instruction
            for action in self.transfer.of(function, one):
                if not isinstance(action, Waited) or action.of < 0:
                    continue
                if action.is_event:
                    found = self._of_event(function, one, action)
                else:
                    awaited = call.stream_in(action.of)
                    found = self._of_stream(function, one, action, awaited)
                if found is not None:
                    yield found

    def _of_stream(self, function: Function, one: Instruction, action: Waited, awaited: Stream) -> VoidWait | None:
        here = Site(function, one)
        taken = self._taken(function, awaited.register, one)
        if awaited.kind == NULL:
            return VoidWait(here, DEFAULT, None, taken)
        first = self.meant(function, one, action.stream)
        second = self.meant(function, one, awaited)
        calls = self._same(function, first, second, _DEEPEST)
        if calls is None:
            return None
        switched = next((each.switched for each in (first, second) if each is not None and each.switched is not None), None)
        if switched is None and calls:
            switched = self._switched(calls[0].function, calls[0].instruction)
        is_named = first is not None and second is not None and None not in (first.place, second.place)
        return VoidWait(here, ITSELF, switched, taken, calls) if switched is not None or is_named else None

    def _of_event(self, function: Function, one: Instruction, action: Waited) -> VoidWait | None:
        """A wait for an event whose last records are all on the waiting stream."""
        mine = self.meant(function, one, action.stream)
        records = self.last.before(function, one, action.of) if mine is not None else []
        theirs = [self.meant(function, at, recorded.stream) for at, recorded in records]
        if mine is None or not records or any(each is None or each.place != mine.place for each in theirs):
            return None
        if not self._stays(function, mine.place):
            return None
        return VoidWait(Site(function, one), EVENT, mine.switched, Site(function, records[0][0]))

    # --- marks

    def marks(self) -> Iterator[VoidWait]:
        """Memory that is marked as used on the stream that it was made on, and then leaves the function or the stream."""
        for call in self.transfer.sites(frozenset({"record_use"})):
            function, one = call.function, call.instruction
            for action in self.transfer.of(function, one):
                if isinstance(action, Kept) and (found := self._of_mark(function, one, action)) is not None:
                    yield found

    def _of_mark(self, function: Function, one: Instruction, action: Kept) -> VoidWait | None:
        creations = self._made(function, one, action.register)
        marked = self.meant(function, one, action.stream)
        if creations is None or marked is None or action.stream.kind == NULL:
            return None
        home = self.meant(function, creations, Stream(CURRENT, library=action.stream.library))
        calls = self._same(function, home, marked, _DEEPEST)
        if calls is None or home is None:
            return None
        switched = home.switched
        if switched is None:
            found = next(self._entered_with(function, _DEEPEST), None)
            if found is None:
                return None
            switched, calls = found
        if not self._leaves(function, creations):
            return None
        return VoidWait(Site(function, one), MARK, switched, Site(function, creations), calls)

    def _made(self, function: Function, one: Instruction, register: int) -> Instruction | None:
        """The call that makes new memory on the current stream, which its function marks later: by itself, or by where it puts it."""
        definition = function.definitions[behind_copies(function, register)]
        if definition is not None and definition[0] == op.ATTR:
            place = self.places.of(function, register)
            stores = (each for each in reversed(function.by_opcode[op.SET_ATTR]) if function.runs_before(each, one))
            put = (each[4] for each in stores if any(target == place for target, _ in self.places.assigned(function, each)))
            definition = next((function.definitions[behind_copies(function, each)] for each in put), None)
        if definition is None or definition[0] not in (op.CALL, op.INVOKE):
            return None
        for call in self.transfer.modelled(function, definition):
            if call.row.effect == "transfer":  # what may be there already stays what it is; whoever asks not to wait expects a copy
                return definition if call.switch("asynchronous")[0] >= 0 else None
        works = self.transfer.works(function, definition)
        is_new = any(work.made == definition[2] and not work.assumed and work.stream.kind == CURRENT for work in works)
        return definition if is_new else None

    def _leaves(self, function: Function, made: Instruction) -> bool:
        """Whether memory is used under another current stream than it was made, or outlives its function."""
        home = self.currents.at(function, made)
        for use in function.uses[made[2]]:
            if use[0] in (op.RETURN, op.YIELD, op.SET_ATTR, op.SET_ITEM, op.STORE, op.SET_NAME, op.BUILD):
                return True
            if self.currents.at(function, use) != home or (use[0] in (op.PHI, op.COPY) and self._leaves(function, use)):
                return True
        return False

    def _entered_with(self, function: Function, left: int) -> Iterator[tuple[Site, tuple[Site, ...]]]:
        """Where callers have made a stream current for a function, and the calls from there."""
        for caller, call in self.transfer.callers(function) if left else ():
            switched = self._switched(caller, call)
            if switched is not None:
                yield switched, (Site(caller, call),)
                return
            for found, calls in self._entered_with(caller, left - 1):
                yield found, (*calls, Site(caller, call))

    # --- which stream is meant

    def meant(self, function: Function, one: Instruction, stream: Stream, depth: int = 4) -> Meant | None:
        """The stream that an instruction means; None where it is not known."""
        if depth == 0:
            return None
        if stream.kind == CURRENT:
            at = one
            if stream.register >= 0:
                definition = function.definitions[behind_copies(function, stream.register)]
                if definition is None or definition[0] not in (op.CALL, op.INVOKE) or not self._is_getter(function, definition):
                    return None
                at = definition
            around = self.currents.of_library(function, at, stream.library)
            if around is None:
                return Meant(None)
            switched, inner = self._switched(function, at), self.meant(function, at, around, depth - 1)
            return inner._replace(switched=switched) if inner is not None and switched is not None else None
        if stream.kind != NAMED or stream.register < 0:
            return None
        register = behind_copies(function, stream.register)
        place = self.places.of(function, register)
        is_known = place.root[0] in _STABLE and not any(isinstance(key, Element) and not _is_constant(key.key) for key in place.path)
        return Meant(place, None, register) if is_known else None

    def _is_getter(self, function: Function, made: Instruction) -> bool:
        """Whether a call gives the stream that is current on the current device: one that is given a device may mean another one."""
        of_device = any(register >= 0 for _, register in argument_registers(function, made))
        return not of_device and any(call.row.effect == "stream_of" for call in self.transfer.modelled(function, made))

    def _same(self, function: Function, first: Meant | None, second: Meant | None, left: int) -> tuple[Site, ...] | None:
        """The calls behind which two streams are one; None where they may be two. Each known call has to make them one."""
        if first is None or second is None:
            return None
        if first.place is not None and second.place is not None:
            return () if first.place == second.place and self._stays(function, first.place) else None
        if first.place is None and second.place is None:
            return ()
        place = first.place if first.place is not None else second.place
        assert place is not None
        calls = list(self.transfer.callers(function)) if left else []
        found: tuple[Site, ...] | None = None
        for caller, call in calls:
            named = self._in_caller(caller, call, function, place)
            around = self.meant(caller, call, Stream(CURRENT, library="torch"))
            inner = self._same(caller, named, around, left - 1)
            if inner is None:
                return None
            found = found or (*inner, Site(caller, call))
        return found

    def _in_caller(self, caller: Function, call: Instruction, function: Function, place: Place) -> Meant | None:
        """A stream of a function as one of its callers has it."""
        if place.root[0] in ("cell", "global"):
            return Meant(place)
        if place.root[0] != "parameter" or call[0] not in (op.CALL, op.INVOKE):
            return None
        index = place.root[1]
        assert isinstance(index, int)
        given = call[3] if index == 0 and function.has_receiver and call[0] == op.INVOKE else operand_of(caller, call, function, index)
        if given is None or given < 0:
            return None
        return Meant(self.places.of(caller, behind_copies(caller, given)).behind(*place.path))

    def _stays(self, function: Function, place: Place | None) -> bool:
        """Whether a function does not put another stream at a place meanwhile."""
        if place is None or (place.root[0] in ("register", "parameter") and not place.path):
            return True
        setting = (one for opcode in (op.SET_ATTR, op.STORE, op.SET_NAME, op.SET_ITEM) for one in function.by_opcode[opcode])
        puts = [value for one in setting for put, value in self.places.assigned(function, one) if put == place]
        definitions = [function.definitions[each] for each in puts if each >= 0]
        anew = sum(each is None or each[0] not in (op.REBIND, op.DECLARE) for each in definitions)  # C++: what a call may have changed
        return anew <= (place.root[0] in ("cell", "global"))

    def _switched(self, function: Function, one: Instruction) -> Site | None:
        """Where the stream was made current that is so at an instruction."""
        stream = self.currents.at(function, one)
        if stream is None:
            return None
        scopes = [call for call in self.transfer.sites(frozenset({"scope", "set_stream"})) if call.function is function]
        for call in scopes:
            if call.one("stream") == stream.register:
                is_always = call.row.effect == "scope" or function.runs_before(call.instruction, one)
                return Site(function, call.instruction) if is_always else None
        return next((Site(function, each) for each in function.by_opcode[op.ENTER] if each[3] == stream.register), None)

    def _taken(self, function: Function, register: int, one: Instruction) -> Site | None:
        """Where a stream was asked for, if not in the row of the wait."""
        definition = function.definitions[behind_copies(function, register)] if register >= 0 else None
        is_here = (
            definition is None
            or definition[0] not in (op.CALL, op.INVOKE)
            or function.code.at(definition[1])[0] == function.code.at(one[1])[0]
        )
        return Site(function, definition) if definition is not None and not is_here else None


def _is_constant(key: object) -> bool:
    """Whether an index is the same whenever it is computed: ``0``, ``-1``."""
    if isinstance(key, tuple):
        return key[:1] in ((op.CONST,), (op.UNARY,)) and all(_is_constant(part) for part in key if isinstance(part, tuple))
    return isinstance(key, int | str) and not isinstance(key, bool)
