"""Constructors that are run once: the methods of a class begin with the same object, so what made it is kept, and copied for each run.

A copy is made by pickling: values, memory and the machine with all their aliases; code, models and places are shared, and calls out of
view that hold nothing of the path. What was computed from what is copied once somebody asks for it. What cannot be copied (a generator
whose consumer is a closure) is run again each time.
"""

from __future__ import annotations

import copy
import functools
import io
import itertools
import operator
import pickle
import weakref
from collections.abc import Callable, Mapping, Set
from typing import Any

from streamlint import models, operations, program
from streamlint.cuda_model.memory import Direction, Memory
from streamlint.findings import Span, Step
from streamlint.interpreter import file as files
from streamlint.interpreter import index
from streamlint.interpreter.recursion import deeper
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
    | {"handed", "questions", "asked_before", "tested"}
)
# Sets and mappings of what is shared: these are copied as they are.
_FLAT = ("atoms", "decisions", "visits", "ran", "read", "absent", "arms", "known_loops", "raised_in")


@record(slots=True)
class _Seen:
    """What a body finds: its object as it was made, the streams made current, what was asked for or given under modules' names."""

    value: Value
    current: dict[str, Stream]
    globals: dict[tuple[str, str], Value]


@record(slots=True)
class Made:
    """A run up to the object, with the decisions that it met, and those of them that were forced."""

    forced: dict[str, bool]
    flat: dict[str, Any]
    data: bytes
    shared: list[Any]
    steps: int
    linked: tuple[Decision, ...]  # those that go on where another one was turned
    goes_on: bool  # a thread was started

    @property
    def met(self) -> Set[str]:
        """The decisions that it met."""
        return self.flat["decisions"].keys()  # type: ignore[no-any-return]


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
        if value is None:
            value = _restored(run, kept)
        run.made_in = run.steps if run.steps >= FEWEST_STEPS and key not in self._hopeless else 0  # for whoever makes it and who gets it
        return value

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


def _met(forced: Mapping[str, bool], met: Set[str]) -> dict[str, bool]:
    return {atom: arm for atom, arm in forced.items() if atom in met}


def _keep(run: Run, value: Value) -> Made | None:
    """The run as it is now; None where it cannot be copied."""
    if run.reached is not None or not run.machine.captures.idle:
        return None
    state = {name: held for name, held in vars(run).items() if name not in _OWN and name not in _FLAT}
    writer = _Writer()
    try:
        with deeper(_DEEP):
            data = writer.written((state, value, numbering()))
            _Reader(run, writer.shared).read(data)  # what can be written cannot always be read
    except (pickle.PicklingError, AttributeError, TypeError, RecursionError):
        return None
    linked = tuple(decision for decision in run.decisions.values() if decision.link)
    started = any(map(operations.goes_on, run.machine.operations))
    return Made(_met(run.forced, run.decisions.keys()), _flat(vars(run)), data, writer.shared, run.steps, linked, started)


def _flat(held: Mapping[str, Any]) -> dict[str, Any]:
    return {name: copy.copy(held[name]) for name in _FLAT}


def _seen(run: Run, kept: Made) -> _Seen:
    state, value, _ = _Reader(run, kept.shared).read(kept.data)
    current = {library: stream for library, stream in state["current"].items() if stream.kind not in ("ambient", "null")}
    return _Seen(value, current, state["globals"])


def _differences(one: _Seen, other: _Seen) -> tuple[frozenset[str], ...]:
    names = one.globals.keys() & other.globals.keys()
    first, second = ([seen.value, seen.current, *(seen.globals[name] for name in names)] for seen in (one, other))
    return differences(first, second)


def _restored(run: Run, kept: Made | None) -> Value:
    """Bring a run that has done nothing yet to where another one was."""
    assert kept is not None
    state, value, numbers = _Reader(run, kept.shared).read(kept.data)
    vars(run).update(state)
    vars(run).update(_flat(kept.flat))
    resume_numbering(numbers)
    run.machine.context = run.context
    # What goes by identity.
    run.chosen = {id(held): (held, atom) for held, atom in run.chosen.values()}
    run.lent = {id(storage): storage for storage in run.lent.values()}
    run.machine.pending = {id(storage): storage for storage in run.machine.pending.values()}
    assert isinstance(value, Value)
    return value


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
_reading: list[_Reader] = []


class _Reader:
    """Reads what a writer has written of a run."""

    def __init__(self, run: Run, shared: list[Any]) -> None:
        self._run = weakref.ref(run)  # which may hold the reader: it is let go of as soon as nobody looks at it
        self.shared = shared

    @property
    def run(self) -> Run:
        run = self._run()
        assert run is not None
        return run

    def read(self, data: bytes) -> Any:
        """What was written."""
        _reading.append(self)
        try:
            return pickle.loads(data)
        finally:
            _reading.pop()


class _Listed:
    """Objects by number, each once."""

    def __init__(self) -> None:
        self.objects: list[Any] = []
        self._numbers: dict[int, int] = {}

    def number(self, held: object) -> int:
        number = self._numbers.get(id(held))
        if number is None:
            number = self._numbers[id(held)] = len(self.objects)
            self.objects.append(held)
        return number


class _Shared:
    """Stands for the list of what is shared while a run is written."""


_LIST = _Shared()


def _the_list() -> list[Any]:
    return _reading[-1].shared


def _the_run() -> Run:
    return _reading[-1].run


def _counter(held: itertools.count[int]) -> tuple[Any, ...]:
    """A counter by where it stands: from Python 3.14 on they cannot be pickled."""
    return itertools.count, (int(repr(held).removeprefix("count(").removesuffix(")")),)


class _Writer:
    """Pickles what is not shared."""

    def __init__(self) -> None:
        self._shared = _Listed()

    @property
    def shared(self) -> list[Any]:
        return self._shared.objects

    def written(self, held: object) -> bytes:
        """A run's state as data."""
        data = io.BytesIO()
        pickler = pickle.Pickler(data, protocol=5)
        pickler.dispatch_table = self._reducers()
        pickler.dump(held)
        return data.getvalue()

    def _reducers(self) -> dict[type, Callable[[Any], Any]]:
        return {
            **dict.fromkeys(_SHARED, self._by_number),
            operations.Context: self._surroundings,
            operations.Opaque: self._call,
            _Shared: lambda held: (_the_list, ()),
            itertools.count: _counter,
            Run: lambda run: (_the_run, ()),
        }

    def _by_number(self, held: object) -> tuple[Any, ...]:
        return operator.getitem, (_LIST, self._shared.number(held))

    def _surroundings(self, held: operations.Context) -> Any:
        return self._by_number(held) if held.beside is None else held.__reduce_ex__(5)

    def _call(self, held: operations.Opaque) -> Any:
        """What no path changes, and nobody asks for the identity of."""
        stream = held.stream is None or held.stream.kind in ("ambient", "null")
        apart = stream and not (held.on_host or held.refused or held.gil or held.context.beside)
        return self._by_number(held) if apart else held.__reduce_ex__(5)
