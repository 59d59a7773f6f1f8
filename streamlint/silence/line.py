"""One line on the paths of the roots that reach it: what happens there, and what each check lacks to speak of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from streamlint import program as p
from streamlint.checks.base import Check, registry
from streamlint.findings import Finding, Span
from streamlint.interpreter.explore import MOST_RUNS, MOST_STEPS, Explorer
from streamlint.interpreter.facts import FileFacts
from streamlint.interpreter.index import File, Program
from streamlint.interpreter.roots import Root, roots_of
from streamlint.interpreter.run import MAX_STEPS, Coverage, Run, Settings
from streamlint.interpreter.trace import Trace
from streamlint.layout import Layout
from streamlint.operations import Conflict, Copy, HostRead, HostWrite, Operation, Work
from streamlint.options import Options
from streamlint.silence import words
from streamlint.silence.answer import Answer
from streamlint.silence.bound import tell_bindings
from streamlint.silence.lacks import Lack, lacks, touched
from streamlint.silence.runs import Rerun, Supposed, rerun

_MOST_PATHS = 3  # of a root, to look for what is lacking
_MOST_ROOTS = 4
_MOST_BRANCHES = 4


@dataclass(slots=True)
class Line:
    """The rows of the statement that is asked about, in a program that was lowered."""

    program: Program
    options: Options
    path: str
    rows: tuple[int, int]
    places: Layout
    settings: Settings = field(init=False)
    checks: list[Check] = field(init=False)

    def __post_init__(self) -> None:
        self.settings = Settings(self.options.default_stream, self.options.target_device, self.options.hidden_sync)
        self.checks = [check() for check in registry().values()]

    def holds(self, span: Span) -> bool:
        return span.file == self.path and self.rows[0] <= span.row <= self.rows[1]

    def quote(self, span: Span) -> str:
        """The statement at a place, in a few words."""
        if span.file != self.path:
            return span.file
        text = " ".join(self.places.statement_text(span.row).split())
        return text if len(text) <= 60 else text[:57] + "..."


@dataclass(slots=True)
class Visit:
    """A root that meets the line: its paths, and the operations there."""

    root: Root
    explorer: Explorer
    runs: list[Run]
    facts: FileFacts

    def here(self, line: Line, run: Run) -> list[Operation]:
        return [o for o in run.machine.operations if line.holds(o.span)]


def dig(answer: Answer, line: Line) -> None:
    """Add what the paths tell to an answer."""
    tell_bindings(answer, line)
    visits = list(_visits(line))
    met = [(visit, run) for visit in visits for run in visit.runs if visit.here(line, run)]
    _tell_cuts(answer, visits)
    if not met:
        _nothing(answer, line, visits)
        return
    for visit, run in met[:1]:
        for operation in visit.here(line, run):
            row = operation.span.row
            answer.add("fact", f"line {row} {words.sentence(operation)}", "", row)
        _tell_branches(answer, line, visit, run)
        _tell_partners(answer, line, visit, run)
    best: dict[str, Lack] = {}
    for visit in list({id(visit): visit for visit, _ in met}.values())[:_MOST_ROOTS]:
        for path in [run for other, run in met if other is visit][:_MOST_PATHS]:
            _tell_settled(answer, line, visit, path)
            for lack in lacks(line, visit.root, visit.facts, path, visit.explorer.pinned_places()):
                if lack.code not in best or lack.weight < best[lack.code].weight:
                    best[lack.code] = lack
    for lack in sorted(best.values(), key=lambda lack: (lack.weight, lack.code)):
        answer.add(lack.kind, lack.message, lack.code, *lack.rows)
    if not best and not any(reason.kind not in ("fact",) for reason in answer.reasons):
        answer.add("nothing", "no rule would speak of these operations, even if what is not known of them were otherwise")


def _visits(line: Line) -> Iterator[Visit]:
    """The roots of the file that hold the line, then those that call what holds it."""
    for file in [f for f in line.program.files.values() if f.path == line.path]:
        roots = list(roots_of(file))
        holders = [root for root in roots if root.function is not None and _covers(root.function, line)]
        callers = [root for root in roots if root not in holders and _calls(root, holders, file)]
        modules = [root for root in roots if root.function is None]
        facts = FileFacts(file)
        for root in dict.fromkeys((*holders, *(() if holders else modules), *callers[:_MOST_ROOTS])):
            explorer = Explorer(line.program, root, Coverage(), line.settings)
            yield Visit(root, explorer, list(explorer.paths()), facts)


def _covers(function: p.Function, line: Line) -> bool:
    return function.at[0] <= line.rows[0] and line.rows[1] <= function.at[2]


def _calls(root: Root, holders: list[Root], file: File) -> bool:
    wanted = {id(holder.function) for holder in holders}
    if root.function is None:
        names = {holder.function.name for holder in holders if holder.function is not None}
        nodes = (node for s in file.module.body if not isinstance(s, p.FunctionDef | p.ClassDef) for node in p.walk(s))
        return any((isinstance(n, p.Name) and n.id in names) or (isinstance(n, p.Attr) and n.name in names) for n in nodes)
    return any(id(callee) in wanted for callee in file.relevance.callees(root.function))


# --- what the run itself says ----------------------------------------------------------------------------------------------------------


def _tell_cuts(answer: Answer, visits: list[Visit]) -> None:
    for visit in visits:
        explorer = visit.explorer
        if any(run.steps > MAX_STEPS for run in explorer.runs.values()):
            answer.add("cut", f"`{visit.root.qualname}` was cut: its budget of {MAX_STEPS:,} steps is spent")
        elif explorer.coverage.over_budget and explorer.steps >= MOST_STEPS:
            answer.add("cut", f"`{visit.root.qualname}` has spent its {MOST_STEPS:,} steps: some branches were not tried")
        elif explorer.coverage.over_budget and len(visit.runs) >= MOST_RUNS:
            answer.add("cut", f"`{visit.root.qualname}` has more than the {MOST_RUNS} paths that are run: some branches were not tried")


def _tell_branches(answer: Answer, line: Line, visit: Visit, run: Run) -> None:
    """The tests before the line that nobody could decide."""
    first = visit.here(line, run)[0]
    before = [d for d in run.decisions.values() if d.index <= first.index and d.span.file == line.path]
    for decision in before[-_MOST_BRANCHES:]:
        row, word = decision.span.row, "true" if decision.arm else "false"
        answer.add("fact", f"the branch in line {row} tests `{line.quote(decision.span)}`: unknown, taken as {word} here", "", row)


def _tell_partners(answer: Answer, line: Line, visit: Visit, run: Run) -> None:
    """Where the memory of an operation has no second access in view: an order needs two."""
    for operation in visit.here(line, run):
        row, mine = operation.span.row, [buffer.storage for buffer in touched(operation)]
        others = [o for o in run.machine.operations if o.span != operation.span and any(b.storage in mine for b in touched(o))]
        if isinstance(operation, HostRead | HostWrite) and mine and not any(isinstance(o, Work) for o in others):
            why = "no device work on the memory is in view before it; a function is taken to begin with nothing in flight"
            answer.add("order", f"{words.short(operation)} in line {row}: {why}", "", row)
        elif isinstance(operation, Copy) and operation.asked_async and not any(o.index > operation.index for o in others):
            answer.add("order", f"{words.short(operation)} in line {row}: nothing in view uses the memory behind it", "", row)


def _tell_settled(answer: Answer, line: Line, visit: Visit, run: Run) -> None:
    """Conflicts of a path that fell when they were tested."""
    budget = visit.explorer.budget()
    for conflict in run.machine.conflicts:
        if not (line.holds(conflict.first.span) or line.holds(conflict.second.span)):
            continue
        found = _of_conflict(line, visit, run, conflict)
        if found and visit.explorer.settled(run, conflict, budget) is None:
            between = [d.span.row for d in run.decisions.values() if conflict.first.index < d.index <= conflict.second.index]
            why = "is gone when loops run once more"
            if len(between) > 1:
                why = f"rests on several branches that nobody decided (lines {', '.join(map(str, between))})"
            answer.add("order", f"the conflict of lines {conflict.first.span.row} and {conflict.second.span.row} {why}", found[0].code)


def _of_conflict(line: Line, visit: Visit, run: Run, conflict: Conflict) -> list[Finding]:
    trace = Trace(run.machine.operations, run.machine.conflicts, visit.facts)
    return [f for check in line.checks for f in check.on_conflict(conflict, trace)]


# --- a line without an operation ---------------------------------------------------------------------------------------------------------


def _nothing(answer: Answer, line: Line, visits: list[Visit]) -> None:
    if any(reason.kind in ("round", "cut", "hidden", "given-way", "facts") for reason in answer.reasons):
        return
    if not visits:
        answer.add("place", "nothing at this line is run: it stands in no function, method or statement of a module")
        return
    reached: set[int] = set()
    for visit in visits:
        for run in visit.runs:
            done: Rerun = rerun(line.program, visit.root, line.settings, run.forced, Supposed())
            reached |= {row for file, row in done.reached if file == line.path}
    if any(line.rows[0] <= row <= line.rows[1] for row in reached) or not _statement(visits, line):
        answer.add("nothing", "nothing at this line is an operation that a rule looks at")
        return
    _unreached(answer, line, visits, reached)


def _statement(visits: list[Visit], line: Line) -> bool:
    """Whether a statement of code begins in the rows."""
    return any(line.rows[0] <= node.at[0] <= line.rows[1] for visit in visits for node in _statements(visit.root))


def _statements(root: Root) -> Iterator[p.Statement]:
    body = root.function.body if root.function is not None else root.file.module.body
    for statement in body:
        for node in p.walk(statement):
            if isinstance(node, p.Statement):
                yield node


def _unreached(answer: Answer, line: Line, visits: list[Visit], reached: set[int]) -> None:
    """No path comes here: the branch that keeps it away, or the function that nobody enters."""
    row = line.rows[0]
    branches = [n for visit in visits for n in _statements(visit.root) if isinstance(n, p.If) and n.at[0] < row <= n.at[2]]
    shut = [node for node in branches if node.at[0] in reached]
    if shut:
        test = max(shut, key=lambda node: node.at[0])
        quoted = line.quote(Span(line.path, *test.at))
        answer.add(
            "unreached", f"no path that was run comes here: the branch in line {test.at[0]} (`{quoted}`) went the other way", "", test.at[0]
        )
        return
    before = max((r for r in reached if r < row), default=0)
    if before:
        answer.add("unreached", f"no path that was run comes here: the last line that was run before it is {before}", "", before)
    else:
        answer.add("unreached", "no path that was run comes here: nothing that was run calls the code around it")
