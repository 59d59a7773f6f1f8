"""Which Python functions and operators were open when a call was made, and what the user's functions did meanwhile."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence

from streamlint.support.records import field, record
from streamlint.trace.model import Call
from streamlint.trace.readers.kineto_events import Spans
from streamlint.trace.readers.signs import BARE, MODULE, OPERATOR, PYTHON, Sign, sign_name
from streamlint.trace.readers.tables import Table

Place = tuple[tuple[int, int], ...]
"""The user's functions around a call, innermost first: an invocation, and the number of its event that the call was made in."""
_INNER = 12  # names of functions that are kept below an event
_DEEPEST = 16  # of the user's functions around a call
_BACKWARD = "run_backward"
_ENGINE = "autograd::engine::"


@record(slots=True)
class Invocation:
    """One call of a user's function: its name's number, and the signs of the events directly below it, in order."""

    function: int
    start: int
    end: int
    signs: array[int] = field(default_factory=lambda: array("i"))
    needed: bool = False  # a call of CUDA was made in it
    open_until: int = -1  # of its latest event
    pending: tuple[str, str] | None = None
    inner: list[str] = field(default_factory=list)


@record(slots=True)
class Nesting:
    """What was open around each call, thread by thread."""

    texts: Sequence[str]  # names, by number
    is_user: Callable[[int], bool]  # whether a name is that of a function of the user's
    signs: Table[Sign] = field(default_factory=Table)
    invocations: list[Invocation] = field(default_factory=list)
    places: dict[int, Place] = field(default_factory=dict)  # by the identity of a call
    backward: list[tuple[int, int, Place]] = field(default_factory=list)  # spans of `backward` in Python, and where

    def thread(self, python: Spans, operators: Spans, calls: Iterable[Call]) -> bool:
        """Go through a thread's spans and calls in time; whether autograd's engine ran it."""
        sweep = _Sweep(self, python, operators)
        calls = sorted(calls, key=lambda one: one.start)
        ordered = (_ordered(_PYTHON, python), _ordered(_OPERATOR, operators), _of_calls(calls))
        for _, _, kind, number in heapq.merge(*ordered):
            if kind == _CALL:
                sweep.call(calls[number])
            elif kind == _PYTHON:
                sweep.python(number)
            else:
                sweep.operator(number)
        sweep.finish()
        return sweep.engine


_PYTHON, _OPERATOR, _CALL = 0, 1, 2


def _ordered(kind: int, spans: Spans) -> Iterator[tuple[int, int, int, int]]:
    """A thread's spans of a kind by start, the longer first."""
    order = sorted(range(len(spans)), key=spans.end.__getitem__, reverse=True)
    order.sort(key=spans.start.__getitem__)
    return ((spans.start[number], -spans.end[number], kind, number) for number in order)


def _of_calls(calls: Iterable[Call]) -> Iterator[tuple[int, int, int, int]]:
    return ((call.start, -call.end, _CALL, number) for number, call in enumerate(calls))


class _Sweep:
    """The open spans of a thread."""

    def __init__(self, nesting: Nesting, python: Spans, operators: Spans) -> None:
        self.nesting, self.spans, self.operators = nesting, python, operators
        self.open: list[tuple[int, Invocation | None]] = []  # ends of open functions, and the invocation where it is the user's
        self.users: list[tuple[int, Invocation]] = []
        self.open_operators: list[tuple[int, str, int]] = []  # ends, names, and how many functions were open
        self.engine = False
        self.latest: Place = ()

    def until(self, time: int) -> None:
        """Close what has ended."""
        while self.open and self.open[-1][0] <= time:
            _, ended = self.open.pop()
            if ended is not None:
                self._close(self.users.pop()[1])
        while self.open_operators and self.open_operators[-1][0] <= time:
            self.open_operators.pop()

    def finish(self) -> None:
        """Close everything."""
        while self.users:
            self._close(self.users.pop()[1])

    def python(self, number: int) -> None:
        """A Python function, builtin or module begins."""
        start, end, name = self.spans.start[number], self.spans.end[number], self.spans.name[number]
        self.until(start)
        text = self.nesting.texts[name]
        sign = sign_name(text)
        if self.users:
            user = self.users[-1][1]
            if self.open[-1][1] is user and not self._in_operator():
                self._begin(user, sign, end)
            elif sign[0] == PYTHON and self.nesting.is_user(name):
                user.inner.insert(0, sign[1])  # what it was called for, if a library's wrapper stands between
            elif sign[0] == PYTHON and len(user.inner) < _INNER and sign[1][:1] not in "_<":
                user.inner.append(sign[1])
        if _BACKWARD in sign[1] and self.users:
            self.nesting.backward.append((start, end, self._place()))
        if sign[0] == PYTHON and self.nesting.is_user(name):
            invocation = Invocation(name, start, end)
            self.users.append((len(self.nesting.invocations), invocation))
            self.nesting.invocations.append(invocation)
            self.open.append((end, invocation))
        else:
            self.open.append((end, None))

    def operator(self, number: int) -> None:
        """An operator of the framework begins."""
        start, end, name = self.operators.start[number], self.operators.end[number], self.operators.name[number]
        self.until(start)
        text = self.nesting.texts[name]
        self.engine |= text.startswith(_ENGINE)
        depth = len(self.open)
        if self.users and self.open[-1][1] is not None and not self._in_operator():
            self._begin(self.users[-1][1], (OPERATOR, text), end)
        self.open_operators.append((end, text, depth))

    def _in_operator(self) -> bool:
        """Whether an operator is open that the innermost function called: what begins now belongs to its event."""
        return bool(self.open_operators) and self.open_operators[-1][2] == len(self.open)

    def call(self, call: Call) -> None:
        """A call of CUDA was made."""
        self.until(call.start)
        depth = len(self.open)
        here = [name for _, name, around in self.open_operators if around == depth] or [name for _, name, _ in self.open_operators]
        call.operator = next((name for name in here if not name.startswith("autograd::") and "::" in name), here[0] if here else "")
        if self.users:
            user = self.users[-1][1]
            if self.open[-1][1] is user and user.open_until <= call.start:
                self._begin(user, (BARE, call.name), call.end)
            self.nesting.places[id(call)] = self._place()

    def _place(self) -> Place:
        found = []
        for number, user in reversed(self.users[-_DEEPEST:]):
            user.needed = True
            found.append((number, len(user.signs)))
        place = tuple(found)
        if place != self.latest:
            self.latest = place
        return self.latest  # one object for all calls of a place

    def _begin(self, user: Invocation, sign: tuple[str, str], end: int) -> None:
        self._end_pending(user)
        user.pending, user.open_until = sign, end

    def _end_pending(self, user: Invocation) -> None:
        if user.pending is not None:
            kind, name = user.pending
            inner = () if kind == MODULE else tuple(dict.fromkeys(user.inner))
            user.signs.append(self.nesting.signs.number(Sign(kind, name, inner)))
            user.pending = None
            user.inner.clear()

    def _close(self, user: Invocation) -> None:
        self._end_pending(user)
        if not user.needed:
            user.signs = array("i")
