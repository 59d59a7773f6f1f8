"""One file of a program: its roots on their paths, and what the checks say of them."""

from __future__ import annotations

import gc
import itertools
import operator
from collections.abc import Iterable, Iterator

from streamlint import guard
from streamlint.checks.base import Check, registry
from streamlint.findings import Finding, Problem
from streamlint.interpreter.bindings import bindings_of, keeps_gil
from streamlint.interpreter.explore import Explorer
from streamlint.interpreter.facts import FileFacts
from streamlint.interpreter.index import File, Program
from streamlint.interpreter.no_library import NoLibrary
from streamlint.interpreter.own_rows import OwnModels, met_in
from streamlint.interpreter.recursion import deeper
from streamlint.interpreter.roots import Root, is_called_by_python, roots_of
from streamlint.interpreter.run import MAX_STEPS, Coverage, Settings
from streamlint.interpreter.snapshots import snapshots_of
from streamlint.interpreter.stakes import AtStake, Stake, Stakes
from streamlint.interpreter.trace import Trace
from streamlint.operations import Operation
from streamlint.options import Options
from streamlint.precedence import best
from streamlint.program import Call, Statement, walk
from streamlint.record import field, record

_MUCH = 100_000  # objects
_SELDOM = 32  # files
_FRAMES = 4_000  # of Python: each call that is followed takes about 40


@record(slots=True)
class Part:
    """What one file gave. Can be sent between processes."""

    findings: list[Finding] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    coverage: Coverage = field(default_factory=Coverage)
    own_rows: set[str] = field(default_factory=set)  # of the user's models: those that were met


@record(frozen=True, slots=True)
class _Kind:
    """What a check asks of a root. Which roots can matter is never told from words."""

    from_python: bool  # Python calls it

    def is_asked_by(self, check: Check) -> bool:
        """Whether a check is about roots of this kind."""
        return self.from_python or not check.from_python


class Analysis:
    """The checks that were asked for, ready to run over the files of a program."""

    def __init__(self, program: Program, options: Options) -> None:
        self.program = program
        # What is run, and on which paths, hangs on every check: so one that is asked alone finds what it finds among the others.
        self._every: list[Check] = [check() for check in registry().values()]
        self.checks = [check for check in self._every if not options.codes or check.code in options.codes]
        self.settings = Settings(options.default_stream, options.target_device, options.hidden_sync)
        self._no_library = NoLibrary(program)
        self._on_operations = [check for check in self.checks if type(check).on_operation is not Check.on_operation]
        self._on_conflicts = [check for check in self.checks if type(check).on_conflict is not Check.on_conflict]
        self._on_paths = [check for check in self._every if _is_on_paths(type(check))]
        self._known_stakes: dict[_Kind, AtStake] = {}
        self._asking: dict[tuple[type[Operation], ...], list[tuple[Check, tuple[type[Operation], ...]]]] = {}
        self.possible = options.evidence == "possible"
        self.coverage = Coverage()
        self._counts = options.coverage  # what was understood is counted for each root
        # Without one of these nothing is run, and nothing is known of the user's rows.
        self._runs_bodies = bool(self._on_operations or self._on_conflicts)
        self._cut_short: list[Problem] = []  # of the file at hand: functions that are not followed to their end

    def check(self, name: str) -> Part:
        """Run the checks over one file of the program."""
        file = self.program.files[name]
        guard.at(file.path)
        try:
            return self._check(file)
        except RecursionError:
            return self.lose(name, "left out: code is nested too deeply")
        except Exception as error:
            return self.lose(name, f"left out: internal error: {type(error).__name__}: {error}")
        finally:
            guard.at("")

    def lose(self, name: str, why: str) -> Part:
        """What is told of a file whose analysis did not come to its end."""
        return Part(problems=[Problem(self.program.files[name].path, why, lost=True)])

    def _check(self, file: File) -> Part:
        with deeper(_FRAMES):
            return self._check_deep(file)

    def _check_deep(self, file: File) -> Part:
        part = Part()
        self._cut_short = part.problems
        facts = FileFacts(file)
        for check in self.checks:
            part.findings.extend(check.on_map(facts))
        for root in self.roots(file):
            part.coverage.roots += 1
            try:
                part.findings.extend(self._check_root(root, facts, part.coverage))
            except Exception as error:
                _tell_fault(part, file, root, error)
            _sweep(0)
        if part.coverage.roots:
            snapshots_of(self.program).clear()
            self.program.next_turn()
            _sweep(2 if self.program.turn % _SELDOM == 0 else 1)
        if isinstance(file.models, OwnModels):
            part.own_rows = met_in(file) if self._runs_bodies else file.models.every()
        found = sorted(best(part.findings), key=Finding.sort_key)
        part.findings = [f for check in self.checks for f in check.fold([f for f in found if f.code == check.code], facts)]
        return part

    def roots(self, file: File) -> Iterator[Root]:
        """The roots of a file: what it binds to Python, its functions and its statements. None, if no check asks what they do."""
        if self._runs_bodies:
            yield from (Root(file, one.thunk, None, one) for one in bindings_of(file) if keeps_gil(file, one))
            yield from roots_of(file)

    def _check_root(self, root: Root, facts: FileFacts, coverage: Coverage) -> Iterator[Finding]:
        if not self._counts and self._is_quiet(root):
            return
        explorer = Explorer(self.program, root, coverage, self.settings, Stakes(lambda: self._at_stake(root)))
        runs = list(explorer.paths())
        pinned, waited = explorer.pinned_places(), explorer.waited_places()
        if explorer.cut_short and _is_too_long(root):
            row, column = root.function.at[:2] if root.function is not None else (1, 1)
            text = f"{root.qualname} is too long: it is looked at for {MAX_STEPS} steps, and no further"
            self._cut_short.append(Problem(root.file.path, text, row, column))
        told, budgets = set[tuple[object, ...]](), {check.code: explorer.budget() for check in self._on_conflicts}
        for run in runs:
            trace = Trace(run.machine.operations, run.machine.conflicts, facts, pinned, waited)
            for check, operations in self._looked_at(trace.operations, root):
                yield from self._told(itertools.chain.from_iterable(check.on_operation(operation, trace) for operation in operations))
            for conflict in list(trace.conflicts) if root.binding is None else ():
                for check in self._on_conflicts:
                    # More paths are run to test a conflict: only where a check would tell something that was not told yet.
                    if not told.issuperset(map(_place, self._told(check.on_conflict(conflict, trace)))):
                        settled = explorer.settled(run, conflict, budgets[check.code])
                        for finding in self._told(check.on_conflict(settled, trace)) if settled is not None else ():
                            told.add(_place(finding))
                            yield finding

    def _looked_at(self, operations: list[Operation], root: Root) -> Iterator[tuple[Check, list[Operation]]]:
        """The checks that ask for operations, each with those of a path that it looks at."""
        held: dict[type[Operation], list[Operation]] = {}
        for operation in operations:
            held.setdefault(operation.__class__, []).append(operation)
        for check, kinds in self._asking_for(tuple(held)):
            if root.binding is not None and not check.from_python:
                continue
            if len(kinds) == len(held):
                yield check, operations
            elif len(kinds) == 1:
                yield check, held[kinds[0]]
            else:
                yield check, sorted(itertools.chain(*(held[kind] for kind in kinds)), key=operator.attrgetter("index"))

    def _asking_for(self, kinds: tuple[type[Operation], ...]) -> list[tuple[Check, tuple[type[Operation], ...]]]:
        """The checks that look at operations of some of these kinds, and at which; those that look at all are asked in any case."""
        if kinds not in self._asking:
            looks = [(check, tuple(kind for kind in kinds if issubclass(kind, check.looks_at or object))) for check in self._on_operations]
            self._asking[kinds] = [(check, among) for check, among in looks if among or not check.looks_at]
        return self._asking[kinds]

    def _at_stake(self, root: Root) -> AtStake:
        """What the checks begin with that ask for a root, whether they were asked for or not."""
        kind = self._kind(root)
        if kind not in self._known_stakes:
            asking = (check for check in self._on_paths if kind.is_asked_by(check))
            self._known_stakes[kind] = AtStake(Stake(check.begins_with, check.signs) for check in asking)
        return self._known_stakes[kind]

    def _is_quiet(self, root: Root) -> bool:
        """Whether nothing that a check begins with can come of a function: no path of it is run."""
        if root.binding is not None or root.file.is_cuda:
            return False
        if self._comes_to_no_library(root):
            return True
        if root.function is None or root.definition is not None:
            return False
        stake = self._at_stake(root)
        return not stake.any and root.file.relevance.is_quiet(root.function, stake.signs)

    def _comes_to_no_library(self, root: Root) -> bool:
        """Whether nothing that a root runs can come to a device. Whether a row of the user's is met is told by running all."""
        if self.settings.all_loops or isinstance(root.file.models, OwnModels):
            return False
        return self._no_library.holds(root.file) and (root.home is None or self._no_library.holds(root.home))

    def _kind(self, root: Root) -> _Kind:
        return _Kind(root.binding is not None or is_called_by_python(root))

    def _told(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """What is not shown to cost anything is told where it was asked for."""
        return (finding for finding in findings if finding.shown or self.possible)


def _is_on_paths(check: type[Check]) -> bool:
    return check.on_operation is not Check.on_operation or check.on_conflict is not Check.on_conflict


def _sweep(oldest: int) -> None:
    """What paths leave behind refers to itself. It is collected once there is much of it, and only what is young is looked at:
    what outlives a root (0) or a file (1) belongs to the program, as a rule."""
    if gc.get_count()[0] > _MUCH:
        gc.collect(oldest)


def _place(finding: Finding) -> tuple[object, ...]:
    return finding.code, finding.span, finding.pairs


def _is_too_long(root: Root) -> bool:
    """Whether a body alone, without what it calls, has more parts than one path may have steps."""
    body = root.function.body if root.function is not None else root.file.module.body
    parts = (node for statement in body for node in walk(statement) if isinstance(node, Statement | Call))
    return sum(1 for _ in parts) > MAX_STEPS


def _tell_fault(part: Part, file: File, root: Root, error: Exception) -> None:
    """A fault of ours costs one root, never the run."""
    row, column = root.function.at[:2] if root.function is not None else (1, 1)
    what = f"internal error in {root.qualname}: {type(error).__name__}: {error}"
    if isinstance(error, RecursionError):
        what = f"{root.qualname} is left out: code is nested too deeply"
    part.coverage.failures.append(f"{file.path}:{row}: {what}")
    part.problems.append(Problem(file.path, what, row, column))
