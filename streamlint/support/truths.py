"""Questions of yes or no that lead to each other, cycles included: the least fixpoint, of any depth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Generic, TypeVar

Question = TypeVar("Question")
Ask = Callable[[Question], bool]


class Truths(Generic[Question]):
    """Answers such questions, each once. ``rule`` asks others for one; a yes of these never makes its own yes a no."""

    def __init__(self, rule: Callable[[Question, Ask[Question]], bool]) -> None:
        self._rule = rule
        self._known: dict[Question, bool] = {}
        self._asking: defaultdict[Question, dict[Question, None]] = defaultdict(dict)  # what may change with the answer to one
        self._waiting: list[Question] = []

    def holds(self, question: Question) -> bool:
        """The answer: yes, where the rule shows it by others that hold without it."""
        self._begin(question)
        while self._waiting:
            one = self._waiting.pop()
            if not self._known[one] and self._rule(one, lambda other, by=one: self._ask(other, by)):  # type: ignore[misc]
                self._known[one] = True
                self._waiting += self._asking.pop(one, ())
        return self._known[question]

    def _begin(self, question: Question) -> None:
        if question not in self._known:
            self._known[question] = False
            self._waiting.append(question)

    def _ask(self, question: Question, by: Question) -> bool:
        self._begin(question)
        if not self._known[question]:
            self._asking[question][by] = None
        return self._known[question]
