"""One line: what happens there, and what rules lack to speak of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.files.program import Unit
from streamlint.findings import Span
from streamlint.hazards.context import Context, span_at
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.silence import words
from streamlint.silence.answer import Answer
from streamlint.silence.bound import tell_bindings
from streamlint.transfer.launches import Launches
from streamlint.triage.layout import Layout

_MOST_BRANCHES = 4
_QUOTED = 60  # characters
_NEEDS = {"SL001": "pageable", "SL008": "pinned"}
"""Rules about asynchronous copies, by the memory of the host that they ask for."""
_BRANCHING = ("if ", "elif ", "else", "while ", "except", "case ")


@dataclass
class Line:
    """The rows of the statement that is asked about, in a program that was lowered."""

    context: Context
    path: str
    rows: tuple[int, int]
    places: Layout
    texts: list[str]

    def holds(self, span: Span) -> bool:
        return span.file == self.path and self.rows[0] <= span.row <= self.rows[1]

    def quote(self, span: Span) -> str:
        """The statement at a place, in a few words."""
        if span.file != self.path:
            return span.file
        text = " ".join(self.places.statement_text(span.row).split())
        return text if len(text) <= _QUOTED else text[: _QUOTED - 3] + "..."

    @cached_property
    def units(self) -> list[Unit]:
        """The file, and the C++ in its strings."""
        return [unit for unit in self.context.program.units.values() if unit.path == self.path]

    @cached_property
    def instructions(self) -> list[tuple[Function, Instruction]]:
        """What is done at the line."""
        return [(function, one) for function, one in self.all() if self.holds(span_at(function, one))]

    def all(self) -> Iterator[tuple[Function, Instruction]]:
        """What is done in the file."""
        for unit in self.units:
            for function in unit.functions:
                yield from ((function, one) for one in function.code.instructions() if one[1] >= 0)


def dig(answer: Answer, line: Line) -> None:
    """Add what is known of the line to an answer."""
    for unit in line.units:
        if (failure := line.context.program.failing.get(unit)) is not None:
            answer.add("unreached", f"nothing in this file runs: {failure}", "", failure.row)
            return
    tell_bindings(answer, line)
    queues, is_known = Launches(line.context.transfer), False
    for function, one in line.instructions:
        row = span_at(function, one).row
        for sentence in words.sentences(line.context, queues, function, one):
            is_known = True
            answer.add("fact", f"line {row} {sentence}", "", row)
    if not is_known:
        _nothing(answer, line)
        return
    _tell_branches(answer, line)
    for function, one in line.instructions:
        for copy in words.copies(line.context, function, one):
            _tell_copy(answer, copy)
        _tell_read(answer, line, function, one)
    if all(reason.kind == "fact" for reason in answer.reasons):
        answer.add("nothing", "no rule speaks of these operations as they stand, and no single fact would change that")


def _tell_copy(answer: Answer, copy: words.Copy) -> None:
    """What rules about asynchronous copies lack."""
    which, row = f"the copy in line {copy.row}", copy.row
    if copy.direction in ("d2d", "h2h", "peer"):
        return
    for code, memory in _NEEDS.items():
        kind = "facts"
        if copy.action.asynchronous is False:
            needs = f"needs an asynchronous copy; that in line {row} is synchronous: the host waits for it"
        elif copy.memory != memory:
            kind = "memory" if copy.memory == words.UNKNOWN else "facts"
            needs = f"needs {memory} memory; the host memory of {which} is {copy.memory}{copy.named}"
        else:
            continue
        if not any(reason.code == code for reason in answer.reasons):
            answer.add(kind, needs, code, row)
    if copy.action.asynchronous is not False and copy.is_dropped:
        answer.add("order", f"{which}: nothing in view uses the memory behind it", "", row)


def _tell_read(answer: Answer, line: Line, function: Function, one: Instruction) -> None:
    """A read of the host to which no copy leads."""
    row = span_at(function, one).row
    reads = any(words.is_read(action) for action in line.context.transfer.of(function, one))
    if reads and not any(reason.kind == "order" for reason in answer.reasons):
        why = "no path in view leads from an asynchronous copy into this memory to it"
        answer.add("order", f"the read in line {row}: {why}", "", row)


def _tell_branches(answer: Answer, line: Line) -> None:
    """The tests before the line that nobody can decide."""
    functions = dict.fromkeys(function for function, _ in line.instructions)
    ends = [(function, block[-1]) for function in functions for block in function.code.blocks if block and block[-1][0] == op.BRANCH]
    tests = [(function, function.definitions[end[2]]) for function, end in ends]
    spans = {span_at(function, test) for function, test in tests if test is not None and test[0] != op.MORE and test[1] >= 0}
    for span in sorted(span for span in spans if span.row < line.rows[0])[-_MOST_BRANCHES:]:
        answer.add("fact", f"the branch in line {span.row} tests `{line.quote(span)}`: unknown, both ways are followed", "", span.row)


# --- a line without an operation ---------------------------------------------------------------------------------------------------------


def _nothing(answer: Answer, line: Line) -> None:
    if any(reason.kind in ("round", "loop", "cut", "hidden", "given-way", "memory", "facts", "order") for reason in answer.reasons):
        return
    row, text = line.rows[0], line.texts[line.rows[0] - 1].strip()
    before = max((span_at(function, one).row for function, one in line.all() if span_at(function, one).row < row), default=0)
    is_code = text and row not in line.places.comment_rows() and not text.startswith(("#", "//", "@", "class ", "def ", "import ", "from "))
    if line.instructions or not is_code or not before:
        answer.add("nothing", "nothing at this line is an operation that a rule looks at")
        return
    head = _head(line.texts, row)
    if head:
        quoted = line.texts[head - 1].strip()
        answer.add("unreached", f"no path comes here: the branch in line {head} (`{quoted}`) goes the other way", "", head)
    else:
        answer.add("unreached", f"no path comes here: the last line that is run before it is {before}", "", before)


def _head(texts: list[str], row: int) -> int:
    """The row of the branch that a statement of Python stands under; 0 where there is none."""
    depth = len(texts[row - 1]) - len(texts[row - 1].lstrip())
    for above in range(row - 1, 0, -1):
        text = texts[above - 1]
        if text.strip() and len(text) - len(text.lstrip()) < depth:
            return above if text.lstrip().startswith(_BRANCHING) else 0
    return 0
