"""Frees that find nothing to wait for: the host has waited for the work of their round, or does so next."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.code.objects import Site
from streamlint.hazards.churn import Churn
from streamlint.hazards.context import Context
from streamlint.hazards.every_round import EveryRound
from streamlint.hazards.streams import Streams
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.null_stream.drained import Death, Drained
from streamlint.ordering.streams.choice import Choice
from streamlint.ordering.streams.choices import AMBIENT, NULL, PARAMETER
from streamlint.ordering.streams.concurrent_work import Event, waits_for
from streamlint.ordering.streams.earlier import Earlier, Life
from streamlint.ordering.streams.last_records import LastRecords
from streamlint.transfer.actions import Synchronized
from streamlint.transfer.launch_rows import OMITTED
from streamlint.transfer.origins import Origins

_DEEPEST = 5
"""Calls from a loop to the work of its rounds."""
_MOST = 20
"""Waits behind one another that are looked at."""


class IdleFrees:
    """Judges the frees of rounds."""

    def __init__(self, context: Context, rounds: EveryRound) -> None:
        self.context = context
        self.transfer = context.transfer
        self.rounds = rounds
        self.earlier = Earlier(self.transfer.one_of(Origins, self.transfer))
        self.drained = Drained(self.earlier)

    @cached_property
    def _streams(self) -> Streams:
        return Streams(self.context, deepest=_DEEPEST)

    @cached_property
    def _records(self) -> LastRecords:
        return LastRecords(self.transfer)

    def is_idle(self, churn: Churn) -> bool:
        """Whether a free finds nothing of what its round has queued."""
        death = self.drained.reached(_death(churn))
        if self.drained.has_emptied(death):
            return True
        waits = self.drained.waits(death)
        return bool(waits) and self._is_waited_for(churn, death, waits)

    def _is_waited_for(self, churn: Churn, death: Death, waits: frozenset[Site]) -> bool:
        """Whether the host has waited for all streams that a round of a loop puts work on, at some waits and those right before them."""
        blocks, homes = self.rounds.blocks(churn.function, churn.loop), churn.function.blocks
        events = [event for event in self._streams.beside.events(churn.function) if homes[event.instruction] in blocks]
        queued = [event for event in events if event.work is not None and not event.work.waits]
        needed = {choice for event in queued if (choice := _as_null(event.choice)) is not None}
        waiting = [(wait, frozenset(needed)) for wait in waits]
        for number, (wait, left) in enumerate(waiting):
            left = self._left(events, wait, left)
            if not left:
                continue
            open_ = {event.at for event in queued if (choice := _as_null(event.choice)) is None or choice in left}
            awaited = {event.at for event in queued} - open_
            calls = death.calls_to(wait.function)
            before = self.drained.waits_before(wait, calls, awaited=awaited) if number < _MOST else frozenset[Site]()
            if not before:
                return False
            waiting += ((each, left) for each in before)
        return True

    def _left(self, events: list[Event], wait: Site, choices: frozenset[Choice]) -> frozenset[Choice]:
        """The streams of some that a wait does not wait for."""
        reached = [event for event in events if event.at == wait] or list(self._deeper(wait))
        here = [one._replace(choice=_as_null(one.choice)) for event in reached for one in self._waited(event)]
        return frozenset(choice for choice in choices if not any(waits_for(one, choice) for one in here))

    def _deeper(self, wait: Site) -> Iterator[Event]:
        """A wait that is further from the loop than its work is looked for, for a stream that its function knows by itself."""
        own = (event for event in self._streams.beside.own(wait.function) if event.instruction == wait.instruction)
        return (event for event in own if event.choice is None or (event.choice.kind != PARAMETER and not event.choice.calls))

    def _waited(self, event: Event) -> Iterator[Event]:
        """A wait for each stream that it waits for: that of an event's last record, or the one that a fetch works on."""
        function, one = event.at
        if event.work is not None:
            yield event._replace(work=None)
            return
        for action in self.transfer.of(function, one):
            if isinstance(action, Synchronized) and isinstance(action.of, int):
                for choice in self._recorded(event.at, action.of):
                    if choice is None or not event.via or choice.kind != PARAMETER:
                        yield event._replace(choice=choice)
                return
        yield event

    def _recorded(self, wait: Site, event: int) -> Iterator[Choice | None]:
        """The streams whose work an event marks, if it was recorded behind all of it; None for any of them where others may record it."""
        function = wait.function
        records = self._records.before(function, wait.instruction, event)
        marks = {one for one, _ in records}
        if not records:
            yield None
        elif not self.earlier.all_paths(wait, lambda other, at: self._is_mark(other, marks)):
            return
        for one, record in records:
            here = Site(function, one)
            if record.stream.register >= 0:
                yield from self._streams.choices.of_register(function, record.stream.register, here)
            else:
                yield Choice(NULL if record.stream.kind == NULL else AMBIENT, OMITTED, here)

    def _is_mark(self, site: Site, marks: set[Instruction]) -> bool | None:
        """Whether an instruction is one of some records; False where it starts work."""
        if site.instruction in marks:
            return True
        return False if self.earlier.queues(site.function, site.instruction) else None


def _as_null(choice: Choice | None) -> Choice | None:
    """The current stream of a library is the null stream where nobody has set another one."""
    if choice is None or choice.kind != AMBIENT:
        return choice
    return Choice(NULL, choice.how, choice.at, choice.calls)


def _death(churn: Churn) -> Death:
    """Where the object of a round ends: at a free, behind the last instruction of a function that drops it, or of the round."""
    count = len(churn.ended)
    made = churn.made[count] if count and churn.made[:count] == churn.ended and len(churn.made) > count else churn.made[0]
    if not count:
        made = next(site for site in churn.made if site.function is churn.held.function)
    registers = frozenset(int(str(one.root[1])) for one in churn.held.places if one.root[0] == "register" and not one.path)
    life = Life(made, registers if churn.held.function is made.function else frozenset())
    if not count and made.function is churn.function:
        blocks = churn.function.code.blocks
        return Death(tuple(Site(churn.function, blocks[number][-1]) for number in churn.loop.latches), (), life)
    if made is not churn.made[0]:
        passed = churn.ended or churn.made[: churn.made.index(made)]
        return Death(tuple(Site(made.function, end) for end in made.function.by_opcode[op.RETURN]), passed, life)
    return Death(churn.ended[-1:], churn.ended[:-1], life)
