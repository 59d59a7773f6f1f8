"""The user's frames of each call of a Kineto trace, with the line in progress or the lines of which one was."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping

from streamlint.support.records import field, record
from streamlint.trace.model import Call, Frame, Trace
from streamlint.trace.readers.aligning import Alignment, Lines
from streamlint.trace.readers.kineto_events import Events, Spans, Thread
from streamlint.trace.readers.nesting import Nesting, Place
from streamlint.trace.readers.signs import python_function
from streamlint.trace.readers.sites import Body
from streamlint.trace.readers.sources import Function, Source, Sources
from streamlint.trace.readers.tables import Table

_EDGE = 200_000  # ns: functions that begin this soon after the first, or end so late, were open when the recording began or ended


@record(slots=True)
class Users:
    """Which recorded functions are of the user's files."""

    sources: Sources
    texts: list[str]
    _functions: dict[str, list[Function]] = field(default_factory=dict)
    _known: dict[int, Source | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for text in self.texts:
            if found := python_function(text):
                self._functions.setdefault(found[0], []).append((found[2], found[1]))

    def source(self, name: int) -> Source | None:
        """The user's file of a function, by the number of its name."""
        if name not in self._known:
            found = python_function(self.texts[name])
            self._known[name] = self.sources.find(found[0], self._functions[found[0]]) if found else None
        return self._known[name]

    def changed(self) -> list[str]:
        """Files in which no recorded function of theirs begins on its line any more."""
        by_path: dict[str, list[Function]] = defaultdict(list)
        held: dict[str, Source] = {}
        for name, source in self._known.items():
            found = python_function(self.texts[name])
            if source is not None and found is not None and not found[2].startswith("<"):
                by_path[source.path].append((found[2], found[1]))
                held[source.path] = source
        return sorted(path for path, functions in by_path.items() if not held[path].has(functions))


def attribute(trace: Trace, events: Events, sources: Sources) -> Users:
    """Give each call its operator and the user's frames around it. ``trace.calls`` are the outermost ones."""
    users = Users(sources, events.names.all)
    nesting = Nesting(events.names.all, lambda name: users.source(name) is not None)
    by_thread: dict[Thread, list[Call]] = defaultdict(list)
    for call in trace.calls:
        by_thread[call.process, call.thread].append(call)
    engine: set[Thread] = set()
    backward: dict[int, list[tuple[int, int, Place]]] = {}
    none = Spans()
    for thread in sorted({*events.python, *events.operators, *by_thread}):
        nesting.backward = backward.setdefault(thread[0], [])
        if nesting.thread(events.python.get(thread, none), events.operators.get(thread, none), by_thread.get(thread, ())):
            engine.add(thread)
    for thread in engine:
        _follow_backward(nesting, by_thread.get(thread, ()), sorted(backward[thread[0]]))
    _frames(trace, nesting, users)
    return users


def _follow_backward(nesting: Nesting, calls: Iterable[Call], spans: list[tuple[int, int, Place]]) -> None:
    """Calls of autograd's threads belong to the call of `backward` that was open meanwhile, below what frames of their own they have."""
    starts = [start for start, _, _ in spans]
    for call in calls:
        at = bisect_right(starts, call.start) - 1
        while at >= 0 and spans[at][1] <= call.start:
            at -= 1
        if at >= 0:
            own = nesting.places.get(id(call), ())
            if not own or own[-1] != spans[at][2][-1]:
                nesting.places[id(call)] = own + spans[at][2]


def _frames(trace: Trace, nesting: Nesting, users: Users) -> None:
    """Place the events of all invocations that calls were made in, and give each call its stack."""
    lines = _lines(nesting, users)
    frames: dict[tuple[int, Lines], Frame] = {}
    stacks = Table(trace.stacks)
    of_place: dict[Place, int] = {}
    for call in trace.calls:
        place = nesting.places.get(id(call), ())
        if place not in of_place:
            of_place[place] = stacks.number(tuple(_frame(nesting, users, lines, frames, one) for one in place))
        call.stack = of_place[place]


def _frame(
    nesting: Nesting, users: Users, lines: Mapping[int, list[Lines]], made: dict[tuple[int, Lines], Frame], one: tuple[int, int]
) -> Frame:
    invocation = nesting.invocations[one[0]]
    found = lines[one[0]]
    fitting = found[one[1]] if one[1] < len(found) else ()
    key = invocation.function, fitting
    if key not in made:
        _, first, name = python_function(users.texts[invocation.function]) or ("", 0, "")
        source = users.source(invocation.function)
        body = source.body(name, first) if source else None
        line, several = fitting[0] if fitting else 0, fitting if len(fitting) > 1 else ()
        made[key] = Frame(source.path if source else "", line, body.name if body else name, body.first_line if body else first, several)
    return made[key]


def _lines(nesting: Nesting, users: Users) -> dict[int, list[Lines]]:
    """The lines of each event of each needed invocation."""
    of_function: dict[int, list[int]] = defaultdict(list)
    for number, invocation in enumerate(nesting.invocations):
        if invocation.needed:
            of_function[invocation.function].append(number)
    first, last = min((one.start for one in nesting.invocations), default=0), max((one.end for one in nesting.invocations), default=0)
    found: dict[int, list[Lines]] = {}
    for function, numbers in of_function.items():
        body = _body(users, function)
        if body is None:
            found.update((number, []) for number in numbers)
            continue
        seen = {sign for number in numbers for sign in nesting.invocations[number].signs}
        alignment = Alignment(body, (nesting.signs.all[sign] for sign in sorted(seen)))
        done = _aligned(nesting, alignment, numbers, (first + _EDGE, last - _EDGE))
        if alignment.doubts:
            alignment.confirm_places()
            done = _aligned(nesting, alignment, numbers, (first + _EDGE, last - _EDGE))
        found |= done
    return found


def _aligned(nesting: Nesting, alignment: Alignment, numbers: Iterable[int], inside: tuple[int, int]) -> dict[int, list[Lines]]:
    """The lines of each event of a function's invocations; those that begin or end outside of a time may not be whole."""
    known: dict[tuple[bytes, bool, bool], list[Lines]] = {}
    found: dict[int, list[Lines]] = {}
    for number in numbers:
        one = nesting.invocations[number]
        whole = not alignment.body.resumes  # else it may begin and end at any of its `yield`
        key = one.signs.tobytes(), whole and one.start > inside[0], whole and one.end < inside[1]
        if key not in known:
            known[key] = alignment.lines([nesting.signs.all[sign] for sign in one.signs], *key[1:])
        found[number] = known[key]
    return found


def _body(users: Users, function: int) -> Body | None:
    source, found = users.source(function), python_function(users.texts[function])
    return source.body(found[2], found[1]) if source and found else None
