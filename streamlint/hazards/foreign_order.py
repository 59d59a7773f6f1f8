"""Python: whether anything orders work of two libraries: waits of the host and of streams, here and in the functions that are called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import LibraryObject, Site
from streamlint.hazards.streams import Streams
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.leading import leads_to
from streamlint.ordering.streams.choice import Choice
from streamlint.ordering.streams.choices import AMBIENT, HELD, IN_VIEW, MADE, NULL
from streamlint.ordering.streams.concurrent_work import WAITING, Event
from streamlint.transfer.actions import Stream, Synchronized
from streamlint.transfer.carried import Carriers
from streamlint.transfer.launch_rows import GIVEN
from streamlint.transfer.transfer import CALLING

_MOST_INSIDE = 100
"""Functions below one that are looked at for waits."""
Chain = tuple[Site, ...]


class Wait(NamedTuple):
    """A wait: the calls that lead to it and itself, and the stream whose work has ended behind it; None where all has."""

    chain: Chain
    choice: Choice | None


class ForeignOrder:
    """What is ordered."""

    def __init__(self, streams: Streams, deepest: int) -> None:
        self.streams = streams
        self.transfer = streams.transfer
        self.deepest = deepest
        self.carriers = streams.transfer.one_of(Carriers, streams.transfer)
        self._known: dict[Function, list[Wait]] = {}

    def is_unordered(self, function: Function, first: Event, second: Event) -> bool:
        """Whether a path of a function leads from one piece of work to another one, past nothing that orders them."""
        assert first.choice is not None
        assert second.choice is not None
        if not self._is_apart(first.choice, second.choice):
            return False
        stops: set[Instruction] = set()
        for wait in self._waits(function):
            if wait.choice is not None and not self._is_same(wait.choice, first.choice):
                continue
            here = wait.chain[0].instruction
            if here == second.instruction and len(wait.chain) > 1:
                if _is_before(wait.chain, (*second.via, second.at)):
                    return False
            elif here == first.instruction and len(wait.chain) > 1:
                if _is_behind((*first.via, first.at), wait.chain):
                    return False
            else:
                stops.add(here)
        return leads_to(function, first.instruction, second.instruction, frozenset(stops))

    def _is_apart(self, first: Choice, second: Choice) -> bool:
        """Whether two streams are not ordered with one another by themselves: one at least is non-blocking."""
        made = [choice for choice in (first, second) if choice.kind == MADE]
        if not made or (len(made) == 2 and made[0].key == made[1].key):
            return False
        return any(self.streams.blocking(choice) is False for choice in made) or len(made) == 2

    def _is_same(self, one: Choice, other: Choice) -> bool:
        if one.kind == other.kind == MADE:
            return bool(one.made & other.made)
        return one.kind == other.kind or (one.kind, other.kind) in ((NULL, AMBIENT), (AMBIENT, NULL)) or HELD in (one.kind, other.kind)

    # --- waits

    def _waits(self, function: Function) -> list[Wait]:
        """The waits of a function, with those of the functions that it calls."""
        found = self._known.get(function)
        if found is None:
            found = self._known[function] = [wait for holder, via in self._entered(function) for wait in self._of(holder, via)]
        return found

    def _entered(self, function: Function) -> Iterator[tuple[Function, Chain]]:
        """A function and those that it calls, each by the calls that lead there."""
        waiting: list[tuple[Function, Chain]] = [(function, ())]
        for count, (holder, via) in enumerate(waiting):
            yield holder, via
            for one in holder.code.instructions() if len(via) < self.deepest and count < _MOST_INSIDE else ():
                for edge in self.transfer.edges(holder, one) if one[0] in CALLING else ():
                    is_new = edge.callee is not function and not any(site.function is edge.callee for site in via)
                    if edge.is_followed and not edge.is_higher_order and is_new:
                        waiting.append((edge.callee, (*via, Site(holder, one))))

    def _of(self, function: Function, via: Chain) -> Iterator[Wait]:
        """The waits of a function's own instructions."""
        names = self.transfer.names(WAITING)
        for one in (*function.by_opcode[op.CALL], *function.by_opcode[op.INVOKE]):
            if last_name(function, one) in names:
                yield from self._of_call(function, one, via)

    def _of_call(self, function: Function, one: Instruction, via: Chain) -> Iterator[Wait]:
        here = Event(one, Site(function, one), None, None, via)
        chain = (*via, here.at)
        for action in self.transfer.of(function, one):
            if isinstance(action, Synchronized) and isinstance(action.of, Stream) and action.of.register >= 0:
                yield from (Wait(chain, choice) for choice in self._choices(here, action.of.register))
            elif isinstance(action, Synchronized):
                is_null = isinstance(action.of, Stream) and action.of.kind == NULL
                yield Wait(chain, Choice(NULL, GIVEN, here.at) if is_null else None)
        for call in self.transfer.modelled(function, one):
            register = call.one("on") if call.row.effect == "wait" else None
            if register is not None:
                choices = self._choices(here, register) if call.stream_in(register).register >= 0 else []
                yield Wait(chain, choices[0] if choices and choices[0].kind in IN_VIEW else None)

    def _choices(self, here: Event, register: int) -> list[Choice]:
        """The streams that a register holds in functions that calls lead to."""
        if not here.via:
            return list(self.streams.choices.of_register(here.at.function, register, here.at))
        held = self.carriers.values(here.at.function, register, here.context)
        made = frozenset(value for value in held if isinstance(value, LibraryObject) and value.kind == "stream" and value.site is not None)
        if made and len(made) == len(held):
            return [Choice(MADE, GIVEN, here.at, (), made)]
        return list(self.streams.choices.of_register(here.at.function, register, here.at))


def _parted(first: Chain, second: Chain) -> tuple[Site, Site] | None:
    """The instructions of one function at which two ways part; None where they do not."""
    for one, other in zip(first, second, strict=False):
        if one != other:
            return (one, other) if one.function is other.function else None
    return None


def _is_before(wait: Chain, work: Chain) -> bool:
    """Whether each path to work in the functions that a call enters goes past a wait in them."""
    parted = _parted(wait, work)
    return parted is not None and parted[0].function.runs_before(parted[0].instruction, parted[1].instruction)


def _is_behind(work: Chain, wait: Chain) -> bool:
    """Whether each path behind work in the functions that a call enters goes past a wait in them."""
    parted = _parted(work, wait)
    return parted is not None and parted[0].function.is_followed_by(parted[0].instruction, parted[1].instruction)
