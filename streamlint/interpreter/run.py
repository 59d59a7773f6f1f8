"""One run of one path: the state that the evaluators share, and the ways to enter and leave scopes, calls, loops and guards."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from streamlint.findings import Span, Step
from streamlint.interpreter.index import File, Program
from streamlint.interpreter.machine import Machine
from streamlint.interpreter.values import (
    Buffer,
    Const,
    Environment,
    Event,
    FunctionValue,
    Instance,
    Opaque,
    Reference,
    Storage,
    Stream,
    Value,
    restart_serials,
)
from streamlint.operations import Conflict, Context, Evidence, Guard, LoopFrame, Memory
from streamlint.program import NOWHERE, Class, Expression, Function, Node, Position
from streamlint.record import field, names_of, record, replace

if TYPE_CHECKING:
    from streamlint.interpreter.narrowing import Range
    from streamlint.interpreter.snapshots import Made, Sight

_AROUND = names_of(Context)
_PLACE = {name: place for place, name in enumerate(_AROUND)}
_around = attrgetter(*_AROUND)
MAX_DEPTH = 24
MAX_LAMBDAS = 12  # that are called in the bodies that hold them
MAX_STEPS = 24_000  # of one path


# The type of a library's current stream, whose methods it has.
STREAM_TYPES = {"torch": "torch.cuda.Stream", "cupy": "cupy.cuda.Stream", "numba": "numba.cuda.cudadrv.driver.Stream"}


def family(library: str) -> str:
    """Whose streams and copies a library uses: PyTorch's kin (a user's model of ``torchvision``) have none of their own."""
    return "torch" if library.startswith("torch") else library


class Signal(Exception):
    """Control that leaves a statement list."""


class ReturnSignal(Signal):
    def __init__(self, value: Value) -> None:
        self.value = value


class BreakSignal(Signal):
    pass


class ContinueSignal(Signal):
    pass


class RaiseSignal(Signal):
    """An exception, or a call that does not return."""


class OutOfBudget(Exception):
    """The path was longer than its budget; what it found so far stands."""


@record(frozen=True, slots=True)
class Place:
    """A body in progress, and the call in its caller that entered it."""

    function: Function | None
    file: File
    call: Span | None


Arms = tuple[tuple[File, Sequence[Node]], ...]


@record(frozen=True, eq=False, slots=True)
class Decision:
    """An atom that was decided without evidence: which arm was taken, and after how many operations."""

    atom: str
    arm: bool
    index: int
    span: Span
    worth: bool = True  # whether its other arm can show anything new
    loose: bool = False  # it was made inside an expression whose values show nothing: worth it if an `if` that matters asks the same
    orders: bool = False  # it is a query's answer: one of the two says that the device is done
    link: str = ""  # the atom that was false right before: with it, this is one choice among several (`else if`, `case`)
    setup: bool = False  # of a constructor that made what the root was given: looked at last
    depth: int = 0  # calls in progress: what a body that is called decides is looked at for its own sake where that body is a root
    way: tuple[Place, ...] = ()  # the bodies in progress, where it was made before the root's own body began
    arms: Arms | None = ()  # what is run on its other arm only, where that is all that can be new; None where it is not


@record(eq=False, slots=True)
class Frame:
    """A call in progress. ``on_yield`` runs the consumer of a generator or the body of a ``with``.

    ``taken_in`` is the loop that takes a generator's values: the generator's loops are in its rounds, the rest of its body runs once.
    """

    function: Function | None
    file: File
    environment: Environment
    this: Instance | None = None
    on_yield: Callable[[Value], Value] | None = None
    qualname: str = ""
    call: Span | None = None
    taken_in: LoopFrame | None = None


@record(slots=True)
class Coverage:
    """What was understood, counted over all runs: for ``--coverage``."""

    launches: dict[tuple[Span, str], bool] = field(default_factory=dict)
    copies: dict[tuple[Span, str], bool] = field(default_factory=dict)
    opaque: Counter[str] = field(default_factory=Counter)
    roots: int = 0
    runs: int = 0
    over_budget: int = 0
    failures: list[str] = field(default_factory=list)

    def merge(self, other: Coverage) -> None:
        """Add what another process counted."""
        self.launches.update(other.launches)
        self.copies.update(other.copies)
        self.opaque.update(other.opaque)
        self.roots += other.roots
        self.runs += other.runs
        self.over_budget += other.over_budget
        self.failures.extend(other.failures)

    def summary(self) -> dict[str, object]:
        """The figures of ``--coverage``."""
        return {
            "roots": self.roots,
            "runs": self.runs,
            "over_budget": self.over_budget,
            "launches": len(self.launches),
            "launches_known": sum(self.launches.values()),
            "copies": len(self.copies),
            "copies_known": sum(self.copies.values()),
            "opaque": self.opaque.most_common(20),
            "failures": self.failures,
        }


@record(eq=False, slots=True)
class Settings:
    """What the user decided that changes a run."""

    default_stream: str = "auto"
    target_device: str = "maybe"
    hidden_sync: str = "hot-loops"

    @property
    def all_loops(self) -> bool:
        """Whether loops that do not train are looked at as well."""
        return self.hidden_sync == "all-loops"


class _Surroundings:
    """A stretch of a run with changed surroundings: entered for each call, branch and loop, so no generator."""

    __slots__ = ("_before", "_changes", "_late", "_run")

    def __init__(self, run: Run, changes: dict[str, Any]) -> None:
        self._run = run
        self._changes = changes

    def __enter__(self) -> None:
        run, changes = self._run, self._changes
        self._before, self._late = before, _ = run.context, run.late
        for name, value in changes.items():
            if getattr(before, name) is not value:
                values = list(_around(before))
                for changed, now in changes.items():
                    values[_PLACE[changed]] = now
                run.context = run.machine.context = Context(*values)
                return

    def __exit__(self, *_: object) -> None:
        run = self._run
        run.context = run.machine.context = self._before
        run.late = self._late


class _Entered:
    """A call in progress."""

    __slots__ = ("_around", "_call", "_frame", "_run")

    def __init__(self, run: Run, frame: Frame, call: Span | None) -> None:
        self._run = run
        self._frame = frame
        self._call = call

    def __enter__(self) -> None:
        run, frame, call = self._run, self._frame, self._call
        context = run.context
        calls = (*context.calls, call) if call is not None else context.calls
        functions = (*context.functions, frame.qualname)
        frame.call = call
        run.frames.append(frame)
        run.file = frame.file
        run.stack.append(id(frame.function))
        run.ran.add(id(frame.function))
        self._around = _Surroundings(run, {"calls": calls, "functions": functions, "function": frame.qualname})
        self._around.__enter__()

    def __exit__(self, *_: object) -> None:
        self._around.__exit__()
        run = self._run
        run.frames.pop()
        run.stack.pop()
        if run.frames:
            run.file = run.frames[-1].file


class Run:
    """State of one path through a root."""

    def __init__(self, program: Program, forced: dict[str, bool], rounds: int, coverage: Coverage, settings: Settings) -> None:
        restart_serials()
        self.program = program
        self.forced = forced
        self.most_rounds = rounds
        self.counts_rounds = False  # something was run once for each of them
        self.coverage = coverage
        self.settings = settings
        self.machine = Machine()
        self.decisions: dict[str, Decision] = {}
        self.atoms: dict[str, bool] = {}
        self.latest = ""  # the atom that was asked for last
        self.link = ""  # the last atom of the conditions before this one in a chain of `else if` or `case`
        self.frames: list[Frame] = []
        self.file: File  # of the innermost frame
        self.stack: list[int] = []  # functions in progress, by identity
        self.context = Context()
        self.current: dict[str, Stream] = {}
        self.globals: dict[tuple[str, str], Value] = {}
        self.memo: dict[str, Value] = {}
        self.absent: set[str] = set()  # attributes that no method is known to set
        self.lines: dict[str, list[tuple[Class, File]]] = {}  # classes with their bases
        self.visits: defaultdict[int, int] = defaultdict(int)
        self.steps = 0
        self.made_in = 0  # steps of a constructor that is run once for all methods
        self.raised_in: set[str] = set()  # decisions whose arm ended in an exception
        self.in_prelude = False  # what runs now only makes the root's receiver and parameters
        self.begun = 0  # so many operations were issued before the root's body, or that of a method that was called before
        # What the root's own body asked for: attributes of objects, and conditions.
        self.read: set[str] = set()
        self.questions: set[str] = set()
        self.asked_before: frozenset[str] = frozenset()  # conditions of what makes the root's parameters
        self.made_from: Made | None = None  # what is kept of the run that has made its object
        self.sight: Sight | None = None  # what its body found on the path before, where it is not to be run if it finds the same
        self.statics: dict[int, tuple[Environment, str]] = {}  # C++: where a static variable was in use last, by declaration
        # Values under construction, which no name holds yet: they are not dropped meanwhile.
        self.rooted: list[Value] = []
        self.device: int | None = None  # C++: the current one, where it was set in view
        self.calls = 1  # of the root, one after the other
        self.between: list[Conflict] = []  # whose first access one of these calls has made, and another the second
        self.lent: dict[int, Storage] = {}  # storages, by identity, that the allocator was told of as used on the current stream
        self.zeroed: set[str] = set()  # unknown values that were told to set gradients to zero, by term: optimizers, as a rule
        self.beside: dict[int, Callable[[], object]] = {}  # threads and processes that were started: runs the body once more
        self.waiting: dict[str, list[int]] = {}  # by channel: those that found it empty
        self.takers: dict[str, int | None] = {}  # by channel: the thread that takes from it; None once it was shown what comes back
        self.passing: tuple[str, Value] | None = None  # what such a thread is given, with the work on it still under way
        self.carried: Collection[Storage] = ()  # what the code in progress, that of a thread, was given with work on it under way
        self.ring = 0  # places that a counter goes round through: a loop meets the first again in the round behind them
        self.known_loops: set[int] = set()  # loops whose number of rounds was known
        self.discarded: Expression | None = None  # the call whose result nobody takes
        self.initializing: set[str] = set()  # static members of C++ classes whose initializers are being evaluated
        self.tested: list[str] = []  # the atoms that were asked for, each time
        self.chosen: dict[int, tuple[Value, str]] = {}  # constants that a decision chose, by identity
        self.late = 0  # loops in progress that are past their first round
        self.ranges: dict[str, Range] = {}  # by term: what an unknown value can still be
        self.asked = False  # a condition is being evaluated whose arms matter
        self.ran: set[int] = set()  # functions that were entered, by identity
        self.arms: set[tuple[str, Position]] = set()  # arms of conditions that were run in the root's own body and what it calls
        self.handed: list[tuple[FunctionValue, str]] = []  # functions that were given to code out of view, and to which
        self.only: dict[int, Instance] = {}  # by class: the object that it keeps, and gives to whoever makes one
        self.reached: set[tuple[str, int]] | None = None  # rows of the statements that were run, where somebody asks

    @property
    def rounds(self) -> int:
        """How often loops run whose number of rounds is not known."""
        self.counts_rounds = True
        return self.most_rounds

    # --- where we are -----------------------------------------------------------------------------------------------------------

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    def span(self, at: Position) -> Span:
        spans = self.file.spans
        found = spans.get(at)
        if found is None:
            found = spans[at] = Span(self.file.path, *at)
        return found

    def node_span(self, node: Node) -> Span:
        return self.span(node.at)

    def step(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise OutOfBudget

    def visit_key(self, node: object) -> str:
        """A name for the value of a place that is met once more: the place and how often it was met."""
        count = self.visits[id(node)]
        self.visits[id(node)] += 1
        at: Position = getattr(node, "name_at", NOWHERE) or NOWHERE
        if at == NOWHERE:
            at = getattr(node, "at", NOWHERE)
        return f"@{self.file.path}:{at[0]}:{at[1]}" + (f"#{count}" if count else "")

    # --- surroundings --------------------------------------------------------------------------------------------------------------

    def within(self, **changes: Any) -> contextlib.AbstractContextManager[None]:
        """Run with changed surroundings (see ``Context``)."""
        return _Surroundings(self, changes)

    def within_loop(self, frame: LoopFrame) -> contextlib.AbstractContextManager[None]:
        around, taker = self.context.loops, self.frame.taken_in if self.frames else None
        if taker is not None and taker not in around:
            around = (*around, taker)
        return self.within(loops=(*around, frame))

    def within_guard(self, guard: Guard) -> contextlib.AbstractContextManager[None]:
        return self.within(guards=(*self.context.guards, guard))

    def entered(self, frame: Frame, call: Span | None) -> contextlib.AbstractContextManager[None]:
        """Push a call frame."""
        return _Entered(self, frame, call)

    @contextlib.contextmanager
    def consuming(self, caller: Frame, around: Context) -> Iterator[None]:
        """The consumer of a generator runs, in ``caller`` and what was around it; the generator's own frames and loops wait."""
        frames = self.frames
        kept = frames.index(caller) + 1
        self.frames = frames[:kept]
        self.file = self.frames[-1].file
        try:
            with self.within(calls=around.calls, functions=around.functions, function=around.function, loops=around.loops):
                yield
        finally:
            self.frames = frames
            self.file = self.frames[-1].file

    @contextlib.contextmanager
    def seen_from(self, reference: Reference) -> Iterator[None]:
        """Names mean what they mean where the address was taken."""
        frame = self.frame
        held = frame.environment, frame.this, frame.file
        frame.environment, frame.this = reference.environment, reference.this
        self.file = frame.file = reference.file or frame.file
        try:
            yield
        finally:
            frame.environment, frame.this, frame.file = held
            self.file = self.frames[-1].file

    def at(self, reference: Reference) -> Value:
        """What stands at an address."""
        with self.seen_from(reference):
            return self.evaluate(reference.target)

    def address(self, target: Expression) -> Reference:
        """The address of a place, taken here."""
        frame = self.frame
        return Reference(target, frame.environment, frame.this, frame.file)

    def can_enter(self, function: Function) -> bool:
        if id(function) in self.stack:
            return False
        if len(self.frames) <= MAX_DEPTH:
            return True
        # A lambda that its own body calls (dispatch macros nest them) is no step further away.
        lambdas = sum(frame.function is not None and frame.function.is_lambda for frame in self.frames)
        return lambdas <= MAX_LAMBDAS and len(self.frames) - lambdas <= MAX_DEPTH

    @contextlib.contextmanager
    def current_stream(self, stream: Stream | None, library: str) -> Iterator[None]:
        """Work of ``library`` goes to ``stream`` in here; None is no change."""
        before = self.current.get(library)
        if stream is not None:
            self.current[library] = stream
        try:
            yield
        finally:
            if stream is not None:
                if before is None:
                    self.current.pop(library, None)
                else:
                    self.current[library] = before

    def stream_of(self, library: str) -> Stream:
        """The library's current stream. At a root torch's is ambient: the default stream, unless a caller shown switched it."""
        if library not in self.current:
            kind = "ambient" if library == "torch" else "null"
            self.current[library] = Stream("null", kind, None, library, STREAM_TYPES.get(library, ""))
        return self.current[library]

    def begin_body(self) -> None:
        """What the root's body needs is made: it begins now."""
        self.in_prelude = False
        self.handed.clear()  # by a constructor: they are run with it, where it is the root
        self.read.clear()
        self.asked_before = frozenset(self.questions)
        self.questions.clear()

    # --- decisions -------------------------------------------------------------------------------------------------------------------

    def decide(self, atom: str, default: bool, span: Span) -> bool:
        """An atom's truth on this path: as before, as forced, or by default. Its second test gives the same answer."""
        negated = atom.startswith("not ")
        key = atom[4:] if negated else atom
        self.questions.add(key)
        self.latest = key
        self.tested.append(key)
        if key not in self.atoms:
            arm = self.forced.get(key, default != negated)
            self.atoms[key] = arm
            way = tuple(Place(frame.function, frame.file, frame.call) for frame in self.frames) if self.in_prelude else ()
            index = len(self.machine.operations)
            depth = len(self.frames)
            self.decisions[key] = Decision(key, arm, index, span, link=self.link, setup=self.context.setup, depth=depth, way=way)
            self.machine.guesses = (*self.machine.guesses, key)
        return self.atoms[key] != negated

    def weigh(self, decision: Decision, worth: bool, loose: bool, arms: Arms | None) -> None:
        """What is known now of the other arm of a decision."""
        self.decisions[decision.atom] = replace(decision, worth=worth, loose=loose, arms=arms)

    def leave_open(self, atom: str) -> None:
        """The other arm of a decision may lead to anything."""
        self.decisions[atom] = replace(self.decisions[atom], worth=True, arms=None)

    # --- values ----------------------------------------------------------------------------------------------------------------------

    def opaque(self, name: str, *reach: Value, type: str = "") -> Opaque:
        return Opaque(name, tuple(value for value in reach if not isinstance(value, Const)), type)

    def remembered(self, name: str, make: Callable[[], Value]) -> Value:
        """The value of a term: made once a path, so that equal terms are one value."""
        if name not in self.memo:
            self.memo[name] = make()
        return self.memo[name]

    def storage(self, memory: Memory, name: str = "", **facts: Any) -> Storage:
        """New memory, made by the code in progress."""
        return Storage(memory, name, made_in=self.context.calls, **facts)

    def unknown_buffer(self, name: str, type: str = "torch.Tensor", evidence: Evidence = Evidence.NONE, owner: str = "") -> Buffer:
        return Buffer(Storage(Memory.UNKNOWN, name=name, evidence=evidence, owner=owner), type=type)

    def new_event(self, type: str, unknown: bool = False, *trail: Step) -> Event:
        return Event(self.machine.fresh("event"), unknown=unknown, type=type, trail=trail)

    def evaluate(self, node: Expression) -> Value:
        """The value of an expression: done by ``expressions``, which names itself here when it is imported."""
        raise NotImplementedError
