"""What is at stake on a root: which of its paths can make a check speak that has found nothing to speak of on the likely one.

A check names the operations that a finding of it may begin with, and the literals that stand where code asks for them. Where no path so far
has such an operation, another arm is worth a path only if its text, with that of what it calls, holds one of the literals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from streamlint.interpreter.run import Decision, Run
from streamlint.operations import Operation, goes_on
from streamlint.record import field, record


@record(frozen=True, slots=True)
class Stake:
    """What one check begins with: operations, and literals. Without literals anything may bring them."""

    begins_with: Callable[[Operation], bool]
    signs: tuple[str, ...]


class AtStake:
    """The stakes of some checks together."""

    def __init__(self, stakes: Iterable[Stake] = ()) -> None:
        self.stakes = tuple(stakes)
        self.signs = frozenset(sign for stake in self.stakes for sign in stake.signs)
        self.any = any(not stake.signs for stake in self.stakes)  # whatever it is may bring what one of them begins with

    def begin_with(self, operations: Iterable[Operation]) -> bool:
        """Whether one of the checks begins with one of these operations."""
        return self.any or any(stake.begins_with(operation) for operation in operations for stake in self.stakes)


@record(slots=True)
class Stakes:
    """The stakes of one root. ``asked`` gives those of the checks that want it."""

    asked: Callable[[], AtStake]
    shown: bool = False  # a path had such an operation
    _at_stake: AtStake = field(default_factory=AtStake)

    def look(self, run: Run) -> bool:
        """Whether this path, or one before it, shows what some check begins with."""
        if not self.shown:
            self._at_stake = self.asked()
            self.shown = self._at_stake.begin_with(_of_body(run))
        return self.shown

    def may_show(self, decision: Decision) -> bool:
        """Whether the other arm of a decision may hold what some check begins with."""
        return not decision.arms or any(file.relevance.holds(body, self._at_stake.signs) for file, body in decision.arms)


def _of_body(run: Run) -> Iterator[Operation]:
    """The operations of a root's body. What makes its object is a root itself, and over by then; but for threads, which go on."""
    for number, operation in enumerate(run.machine.operations):
        if number >= run.begun or goes_on(operation):
            yield operation


def everything() -> Stakes:
    """Any path may tell something."""
    return Stakes(AtStake, shown=True)
