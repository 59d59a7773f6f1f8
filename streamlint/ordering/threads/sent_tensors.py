"""SL012: tensors on a device that are sent to another process, and written later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.rounds import next_round
from streamlint.ordering.paths.states import MOST_GUESSES, Answer, State
from streamlint.ordering.places.alternation import Alternation
from streamlint.ordering.places.flow import BUFFER, Tracked
from streamlint.ordering.places.places import register_place, rest_behind
from streamlint.ordering.walk.stepping import Stepping
from streamlint.ordering.walk.walk import ORDERED
from streamlint.transfer.actions import Action, Copied, Lost, Viewed, Written
from streamlint.transfer.channels import Channels, End
from streamlint.transfer.origins import Origins
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.uses import Uses
from streamlint.transfer.work import Worked

_DEEPEST = 3


class LaterWrite(NamedTuple):
    """A write to memory that a put has sent. ``again``: the same memory is put again behind it."""

    put: Site
    write: Site
    calls: tuple[Site, ...]
    again: bool


class LaterWrites(Stepping):
    """Finds writes to what was sent, before the receiver may have answered."""

    hooked = frozenset({op.INVOKE})

    def __init__(self, transfer: Transfer, channels: Channels, uses: Uses) -> None:
        super().__init__(transfer)
        self.channels = channels
        self.uses = uses
        self._alternation = transfer.one_of(Alternation)
        self._put: End
        self._sent: tuple[int, ...] = ()
        self._found: list[LaterWrite] = []

    def find(self, put: End, registers: tuple[int, ...]) -> Iterator[LaterWrite]:
        """The first write to what registers hold behind a put."""
        function, one = put.site.function, put.site.instruction
        self._put, self._sent, self._found = put, registers, []
        tracked = {
            Tracked(BUFFER, place)
            for register in registers
            for shared in self.transfer.shared(function, register)
            for place in self.places.names(function, shared)
        }
        tracked |= set(self.modules.listed(function, registers))
        self.run(self.start(function, one, frozenset(tracked), ()))
        yield from self._found[:1]

    def _entering(self, state: State, block: int) -> Iterator[State]:
        """In the next round a slot has another name, and some rounds later its own again."""
        function = state.frame.function
        loop = next_round(function, state.block, block)
        for after in super()._entering(state, block):
            yield after
            if later := self._alternation.other_names(function, loop, after.tracked) if loop is not None else frozenset():
                yield after._replace(tracked=later)

    def redone(self, state: State, one: Instruction) -> bool:
        """The put of another slot says nothing of this one."""
        return any(self.has(state, BUFFER, register) for register in self._sent)

    def judge(self, state: State, one: Instruction, action: Action) -> Answer:
        if self._found or self._answers(state, one, action):
            return ORDERED
        function = state.frame.function
        if isinstance(action, Viewed) and op.DEFINES[one[0]] and self.has(state, BUFFER, action.register):
            return state.tracked | {Tracked(BUFFER, register_place(one[2]))}
        if isinstance(action, Worked):
            return self._in_work(state, one, action)
        written = action.register if isinstance(action, Written) else action.target if isinstance(action, Copied) else op.NONE
        if written >= 0 and self.has(state, BUFFER, written) and not (isinstance(action, Copied) and written == one[2]):
            self._found.append(LaterWrite(self._put.site, Site(function, one), state.frame.calls, self._is_resent(Site(function, one))))
            return ORDERED
        return None

    def _in_work(self, state: State, one: Instruction, work: Worked) -> str | None:
        """What a kernel writes that the program launches in C++, or an optimizer: the call in Python writes it."""
        if state.doubts > MOST_GUESSES or not self._is_written(state, work):
            return None
        sites = (*state.frame.calls, Site(state.frame.function, one))
        last = max((number for number, site in enumerate(sites) if not site.function.is_cpp), default=len(sites) - 1)
        self._found.append(LaterWrite(self._put.site, sites[last], sites[:last], self._is_resent(sites[last])))
        return ORDERED

    def _is_written(self, state: State, work: Worked) -> bool:
        """Whether work writes what was sent: memory that it is given, or weights of the modules that an optimizer was made with."""
        if any(self.has(state, BUFFER, register) for register in work.writes):
            return True
        return any(self.modules.meets(place, held) for place in self.stepped(state, work) for held in state.tracked)

    def actions(self, function: Function, one: Instruction) -> tuple[Action, ...]:
        """Also what kernels and optimizers write."""
        works = (work for work in self.transfer.works(function, one) if one[0] == op.LAUNCH or work.steps)
        return (*super().actions(function, one), *works)

    def _answers(self, state: State, one: Instruction, action: Action) -> bool:
        """Whether an action may be the word of the receiver that it needs the memory no longer."""
        if not isinstance(action, Lost):
            return False
        return one[0] == op.INVOKE or any(self._is_given(state, register) for register in action.registers)

    def orders(self, state: State, one: Instruction, action: Action) -> bool:
        return False

    def passed(self, state: State, one: Instruction) -> bool:
        """Whether an instruction takes a reply from another channel than the one of the put."""
        if one[0] != op.INVOKE:
            return False
        for call in self.transfer.modelled(state.frame.function, one):
            if call.row.effect == "get" and not call.row.get("local"):
                channel = self.channels.of(state.frame.function, one[3])
                return not (channel & self._put.channel) and not self.channels.replies_often(channel)
        return False

    def _is_resent(self, write: Site) -> bool:
        """Whether the write is followed by a put of the same memory: by the same put in the next round."""
        function = write.function
        if function is not self._put.site.function:
            return False
        graph = function.control
        here, put = function.homes[write.instruction], function.homes[self._put.site.instruction]
        loop = graph.innermost[put[0]]
        return loop >= 0 and here[0] in graph.loops[loop].body

    def _is_given(self, state: State, register: int) -> bool:
        names = self.places.names(state.frame.function, register) if register >= 0 else ()
        return any(rest_behind(place, held.place) is not None for place in names for held in state.tracked)

    def done_where(self, state: State, condition: int) -> bool | None:
        return None

    def derived(self, state: State, one: Instruction) -> frozenset[Tracked]:
        return frozenset()


def _put_later(function: Function, container: int) -> Iterator[int]:
    """What is put into a container once it is made, as a comprehension does."""
    yield from (use[-1] for use in function.uses[container] if use[0] in (op.APPEND, op.PUT) and use[2] == container)


def _is_from_device(transfer: Transfer, function: Function, register: int) -> bool:
    """Whether all that a register may hold was made on a device, or moved there with its module."""
    origins = transfer.one_of(Origins, transfer).of(function, register) if register >= 0 else []
    return bool(origins) and all(origin.space == "device" for origin in origins)


def sent(function: Function, put: End, uses: Uses) -> tuple[int, ...]:
    """The registers of memory of a device among what a put sends: the value, or parts of it."""
    found: list[int] = []
    waiting = [(register, 0) for register in put.call.all("of")]
    while waiting:
        register, depth = waiting.pop()
        one = function.definitions[register] if register >= 0 else None
        if one is not None and one[0] in (op.BUILD, op.DICT):
            if depth < _DEEPEST:
                waiting += ((each, depth + 1) for each in (*one[4 :: 1 if one[0] == op.BUILD else 2], *_put_later(function, one[2])))
        elif uses.on_device(function, register) or _is_from_device(uses.transfer, function, register):
            found.append(register)
    return tuple(found)
