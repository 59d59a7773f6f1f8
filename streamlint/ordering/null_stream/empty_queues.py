"""Whether a stream is empty where an operation is put on it: the host has waited for it, and nothing was put there since."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.facts.repetition.effects import Effect, Effects
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Loop
from streamlint.ordering.streams.device_work import Handful
from streamlint.ordering.streams.earlier import Earlier
from streamlint.ordering.streams.queue_waits import Queue, QueueWaits
from streamlint.transfer.actions import NAMED
from streamlint.transfer.modelled import ModelledCall, operands_of
from streamlint.waits.ways import MOST_BRIEF

_DEEPEST = 3
_FEW = 4
"""Callers of a function that are asked for what was before its calls."""
_MOST = 40
"""Functions of a file that are asked for what their calls leave."""


class EmptyQueues:
    """Looks back from operations for waits of the host."""

    def __init__(self, earlier: Earlier) -> None:
        self.earlier = earlier
        self.transfer = earlier.transfer
        self.waits = QueueWaits(earlier)

    def holds(self, call: ModelledCall, source: int, is_condition: bool, passed: tuple[Site, ...] = (), most: int = MOST_BRIEF) -> bool:
        """Whether the stream of an upload is empty.

        An unknown call may have put work there, unless it fills what is uploaded; ``most`` brief operations are no work.
        ``is_condition``: the upload itself is reported under the condition that its device is CUDA, so that a fetch of what may be on one
        counts. Rounds that do not train, and calls of a function that no known code calls, follow one another: the host may have waited
        at the end of the one before.
        """
        site = Site(call.function, call.instruction)
        mine = set(self.transfer.shared(call.function, source))
        return self._is_empty(Queue(site, call.stream(), passed), mine, is_condition, most)

    def _is_empty(self, queue: Queue, mine: set[int], is_condition: bool, most: int) -> bool:
        called = filled = left = False
        is_kept = self.waits.is_kept(queue)
        site, passed = queue.at, queue.passed
        places = {place.function: place for place in (*passed, site)}
        handful = Handful(self.earlier.work, (*passed, site), most)

        def judge(other: Site, at: Site) -> bool | None:
            nonlocal called, filled
            verdict = self._judge(other, at, queue, is_condition, is_kept or not left, handful)
            if verdict:
                return self._is_near(at, places) and (filled or not called)
            if verdict is None and self._may_queue(other, queue):
                called = True
                filled = filled or (other.function is site.function and not mine.isdisjoint(self._given_to(other)))
            return verdict

        def crosses(function: Function, loop: Loop | None) -> bool:
            nonlocal left
            left = left or loop is None
            return self._follow(function, loop) and (loop is not None or self._leaves_empty(function, queue, is_kept))

        is_empty = self.earlier.all_paths(site, judge, passed, crosses=crosses, as_run=True)
        return is_empty or self._is_empty_for_callers(queue, mine, is_condition, most)

    def _is_empty_for_callers(self, queue: Queue, mine: set[int], is_condition: bool, most: int) -> bool:
        """The same, seen from each call that leads there."""
        site, passed = queue.at, queue.passed
        callers = list(self.transfer.callers((*passed, site)[0].function)) if len(passed) < _DEEPEST else []
        return 0 < len(callers) <= _FEW and all(
            self._is_empty(Queue(site, queue.stream, (Site(caller, one), *passed)), mine, is_condition, most)
            for caller, one in callers
            if caller is not site.function
        )

    def _judge(
        self, other: Site, at: Site, queue: Queue, is_condition: bool, awaits: bool = True, handful: Handful | None = None
    ) -> bool | None:
        """Whether the host waits for a stream at an instruction; False where work may be put there, None for neither. ``awaits``: waits for
        the stream itself count, not only fetches. A ``handful`` is no work."""
        if (fetches := self.waits.fetches(*other, is_condition)) is not None:
            return fetches
        if awaits and self.waits.awaits(other, at, queue):
            return True
        if other.instruction[0] == op.YIELD:
            return False
        is_work = self.earlier.queues(*other) and not (handful is not None and handful.takes(other, at))
        return False if is_work else None

    def _may_queue(self, call: Site, queue: Queue) -> bool:
        """Whether an unknown call may put work on a stream. C++: on one that it has to name only if it is handed one, or what keeps it."""
        function, one = call
        if not self.earlier.work.may_queue(function, one):
            return False
        if not function.is_cpp or queue.stream.kind != NAMED:
            return True
        return any(self.waits.leads_to(function, register, queue) for register in operands_of(function, one))

    def _given_to(self, call: Site) -> set[int]:
        """What a call is given, and what that is made from."""
        return {each for register in operands_of(call.function, call.instruction) for each in self._behind(call.function, register)}

    def _behind(self, function: Function, register: int) -> Iterator[int]:
        """A register and, of an attribute, its object."""
        yield from self.transfer.shared(function, register)
        one = function.definitions[register] if register >= 0 else None
        if one is not None and one[0] == op.ATTR:
            yield one[3]

    # --- rounds and calls that follow one another

    def _follow(self, function: Function, loop: Loop | None) -> bool:
        """Whether the rounds of a loop, or the calls of a function, follow one another with nothing in between, and train nothing: reads
        in training are there for logs, and may go."""
        if loop is None and any(True for _ in self.transfer.callers(function)):
            return False
        training = self.transfer.one_of(Effects, self.transfer.graph).leading(Effect.BACKWARD | Effect.OPTIMIZER)
        if loop is None or function not in training:
            return function not in training
        entered = (edge for block in loop.body for one in function.code.blocks[block] for edge in self.transfer.edges(function, one))
        own = self.transfer.one_of(Effects, self.transfer.graph).rounds.of(function)
        return not any(function.blocks[one.instruction] in loop.body for one in own) and training.isdisjoint(
            edge.callee for edge in entered
        )

    def _leaves_empty(self, function: Function, queue: Queue, is_kept: bool) -> bool:
        """C++: whether the stream is one that an object keeps, and no other function of the file that others may call leaves work there. On
        one that is passed in the caller may have put work."""
        if not function.is_cpp or not is_kept:
            return not function.is_cpp
        others = [each for each in function.unit.functions if each is not function and not any(True for _ in self.transfer.callers(each))]

        def judge(other: Site, at: Site) -> bool | None:
            verdict = self._judge(other, at, queue, False)
            return False if verdict is None and self._may_queue(other, queue) else verdict

        return len(others) <= _MOST and not any(self.earlier.last(each, judge).other for each in others)

    def _is_near(self, at: Site, places: dict[Function, Site]) -> bool:
        """Whether a place stands in no other loop of its function than those around the place that the search began at, or was entered
        from, and those in the innermost of these."""
        function, graph = at.function, at.function.control
        if function not in places:
            return True
        homes = [function.blocks[one] for one in (places[function].instruction, at.instruction)]
        around, own = (graph.innermost[home] for home in homes)
        return own == NOBODY or homes[0] in graph.loops[own].body or (around != NOBODY and homes[1] in graph.loops[around].body)
