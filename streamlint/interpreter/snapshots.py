"""Constructors that are run once: the methods of a class begin with the same object, so what made it is kept, and copied for each run.

A copy is made by pickling: values, memory and the machine with all their aliases; code, models and places are shared. What cannot be
copied (a generator whose consumer is a closure) is run again each time.
"""

from __future__ import annotations

import functools
import io
import itertools
import operator
import pickle
import sys
from collections.abc import Callable, Mapping
from typing import Any

from streamlint import models, operations, program
from streamlint.cuda_model.memory import Direction, Memory
from streamlint.findings import Span, Step
from streamlint.interpreter import file as files
from streamlint.interpreter import index
from streamlint.interpreter.run import Decision, Place, Run
from streamlint.interpreter.sight import differences
from streamlint.interpreter.values import ClassValue, Stream, Value, numbering, resume_numbering
from streamlint.models import vocabulary
from streamlint.record import field, record

FEWEST_STEPS = 150  # a constructor that is over sooner is run again
_MOST_KEPT = 64  # of a class: its constructor on different ways
_DEEP = 20_000  # objects that hold one another
# Of the run that is going on, not of what it has done; or of what is over where the body begins (`Run.begin_body`).
_OWN = frozenset(
    {"program", "forced", "rounds", "coverage", "settings", "calls", "reached", "frames", "file", "stack", "context", "made_from", "sight"}
    | {"peeks", "answered"}
)


@record(slots=True)
class _Seen:
    """What a body finds: its object as it was made, the streams made current, what was asked for or given under modules' names."""

    value: Value
    current: dict[str, Stream]
    globals: dict[tuple[str, str], Value]


@record(slots=True)
class Made:
    """A run up to the object, with the decisions that it met, and those of them that were forced."""

    met: frozenset[str]
    forced: dict[str, bool]
    data: bytes
    shared: list[Any]
    steps: int
    linked: tuple[Decision, ...]  # those that go on where another one was turned
    goes_on: bool  # a thread was started


@record(frozen=True, slots=True)
class Sight:
    """What a body finds in its object: the object as it was on the path before, and the names of the attributes read there.

    Without names, it can notice nothing but a thread that what makes its object has started.
    """

    kept: Made
    read: frozenset[str] | None


class Unnoticed(Exception):
    """Another object was made, in which the body finds what it has found before."""

    def __init__(self, kept: Made) -> None:
        self.kept = kept


@record(slots=True)
class Snapshots:
    """The objects that are kept for the methods of one file."""

    _kept: dict[tuple[int, int, int], list[Made]] = field(default_factory=dict)
    _hopeless: set[tuple[int, int, int]] = field(default_factory=set)
    _differences: dict[tuple[int, int], tuple[frozenset[str], ...]] = field(default_factory=dict)  # of two that are kept

    def clear(self) -> None:
        """The file is done."""
        self._kept.clear()
        self._hopeless.clear()
        self._differences.clear()

    def made(self, run: Run, of: ClassValue, make: Callable[[], Value]) -> Value:
        """The object of a class that ``make`` makes in a run that has done nothing else yet.

        Raises ``Unnoticed`` where it was made another way and looks as it did, if the run says what its body looks at.
        """
        key = (id(of.definition), id(of.file), run.rounds)
        kept, value = next((one for one in self._kept.get(key, ()) if one.forced == _met(run.forced, one.met)), None), None
        if kept is None:
            value = make()
            if run.steps >= FEWEST_STEPS and key not in self._hopeless and len(self._kept.get(key, ())) < _MOST_KEPT:
                kept = _keep(run, value)
                if kept is None:
                    self._hopeless.add(key)
                else:
                    self._kept.setdefault(key, []).append(kept)
        if run.sight is not None and kept is not None and run.forced.keys() <= kept.met and self._shows_the_same(run, run.sight, kept):
            raise Unnoticed(kept)
        run.made_from = kept
        return value if value is not None else _restored(run, kept)

    def _shows_the_same(self, run: Run, sight: Sight, kept: Made) -> bool:
        """Whether a body finds in one object what it has found in the other: how they differ is found once, for all methods."""
        if sight.read is None:
            return not kept.goes_on
        key = id(sight.kept), id(kept)
        if key not in self._differences:
            self._differences[key] = _differences(_seen(run, sight.kept), _seen(run, kept))
        return not any(names <= sight.read for names in self._differences[key])


@functools.lru_cache(maxsize=1)
def snapshots_of(program: index.Program) -> Snapshots:
    """What is kept for a program."""
    return Snapshots()


def _met(forced: Mapping[str, bool], met: frozenset[str]) -> dict[str, bool]:
    return {atom: arm for atom, arm in forced.items() if atom in met}


def _keep(run: Run, value: Value) -> Made | None:
    """The run as it is now; None where it cannot be copied."""
    if run.reached is not None or not run.machine.captures.idle:
        return None
    state = {name: held for name, held in vars(run).items() if name not in _OWN}
    writer = _Writer()
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _DEEP))
    try:
        data = writer.written((state, value, numbering()))
        _read(run, data, writer.shared)  # what can be written cannot always be read
    except (pickle.PicklingError, AttributeError, TypeError, RecursionError):
        return None
    finally:
        sys.setrecursionlimit(limit)
    met = frozenset(run.decisions)
    linked = tuple(decision for decision in run.decisions.values() if decision.link)
    started = any(map(operations.goes_on, run.machine.operations))
    return Made(met, _met(run.forced, met), data, writer.shared, run.steps, linked, started)


def _seen(run: Run, kept: Made) -> _Seen:
    state, value, _ = _read(run, kept.data, kept.shared)
    current = {library: stream for library, stream in state["current"].items() if stream.kind not in ("ambient", "null")}
    return _Seen(value, current, state["globals"])


def _differences(one: _Seen, other: _Seen) -> tuple[frozenset[str], ...]:
    names = one.globals.keys() & other.globals.keys()
    first, second = ([seen.value, seen.current, *(seen.globals[name] for name in names)] for seen in (one, other))
    return differences(first, second)


def _restored(run: Run, kept: Made | None) -> Value:
    """Bring a run that has done nothing yet to where another one was."""
    assert kept is not None
    state, value, numbers = _read(run, kept.data, kept.shared)
    vars(run).update(state)
    run.copied_steps = kept.steps
    resume_numbering(numbers)
    run.machine.context = run.context
    # What goes by identity.
    run.chosen = {id(held): (held, atom) for held, atom in run.chosen.values()}
    run.lent = {id(storage): storage for storage in run.lent.values()}
    run.converted = {id(held[0]): held for held in run.converted.values()}
    run.machine.pending = {id(storage): storage for storage in run.machine.pending.values()}
    run.origins.known = {id(link.result) for link in run.origins.links}
    assert isinstance(value, Value)
    return value


def _read(run: Run, data: bytes, shared: list[Any]) -> tuple[dict[str, Any], Value, tuple[Any, bool]]:
    _reading.append((run, shared))
    try:
        state, value, numbers = pickle.loads(data)
    finally:
        _reading.pop()
    return state, value, numbers


# --- what is shared ------------------------------------------------------------------------------------------------------------------


def _types_of(*modules: Any) -> set[type]:
    kinds = [kind for module in modules for kind in vars(module).values() if isinstance(kind, type)]
    found = {kind for kind in kinds if "__dataclass_fields__" in vars(kind)}
    return {kind for kind in found if kind.__module__ in {module.__name__ for module in modules}}


_SHARED = frozenset(
    {
        *_types_of(program, models, vocabulary, index, files),
        *(Span, Step, Place, Decision, operations.Guard, operations.LoopFrame),
        *(Memory, Direction, operations.Evidence),
    }
)
_reading: list[tuple[Run, list[Any]]] = []


class _Shared:
    """Stands for the list of what is shared while a run is written."""


_LIST = _Shared()


def _the_list() -> list[Any]:
    return _reading[-1][1]


def _the_run() -> Run:
    return _reading[-1][0]


def _counter(held: itertools.count[int]) -> tuple[Any, ...]:
    """A counter by where it stands: from Python 3.14 on they cannot be pickled."""
    return itertools.count, (int(repr(held).removeprefix("count(").removesuffix(")")),)


class _Writer:
    """Pickles what is not shared."""

    def __init__(self) -> None:
        self.shared: list[Any] = []
        self._numbers: dict[int, int] = {}

    def written(self, held: object) -> bytes:
        file = io.BytesIO()
        pickler = pickle.Pickler(file, protocol=5)
        pickler.dispatch_table = dict.fromkeys(_SHARED, self._by_number)
        pickler.dispatch_table[operations.Context] = self._surroundings
        pickler.dispatch_table[_Shared] = lambda held: (_the_list, ())
        pickler.dispatch_table[itertools.count] = _counter
        pickler.dispatch_table[Run] = lambda run: (_the_run, ())
        pickler.dump(held)
        return file.getvalue()

    def _by_number(self, held: object) -> tuple[Any, ...]:
        number = self._numbers.get(id(held))
        if number is None:
            number = self._numbers[id(held)] = len(self.shared)
            self.shared.append(held)
        return operator.getitem, (_LIST, number)

    def _surroundings(self, held: operations.Context) -> Any:
        return self._by_number(held) if held.beside is None else held.__reduce_ex__(5)
