"""The format for people: source lines, the place underlined, the trail as further labels, and help."""

from __future__ import annotations

import bisect
import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from streamlint.findings import Finding, Span
from streamlint.findings.confidence import in_words
from streamlint.report import View
from streamlint.report.causes import by_cause
from streamlint.report.entries import costing, evidence_of, page, verified
from streamlint.report.terminal import Paint, line, link, plain, tame, width
from streamlint.support.records import field, record

TAB = "    "
ELLIPSIS = "..."
WHOLE = 1000  # columns of a source line in a log: longer ones were written by programs
LABEL_WIDTH = 50  # what a label that goes over several lines may take


@record(frozen=True, slots=True)
class _Label:
    span: Span
    text: str
    primary: bool


@record(frozen=True, slots=True)
class _Entry:
    """A finding, the further places of its cause, and the other files that it stands for."""

    finding: Finding
    others: tuple[Span, ...]
    copies: list[str] = field(default_factory=list)


@record(frozen=True, slots=True)
class _Line:
    """A source line as it is shown: tabs widened, and cut on both sides where it is too long."""

    cells: tuple[str, ...]  # what each code point becomes
    start: int  # the code points cut before and after
    stop: int

    @classmethod
    def around(cls, raw: str, column: int, room: int) -> _Line:
        """The line, cut so that a column is in view with what follows it."""
        cells, ends = tuple(raw), _ends(raw)
        if "\t" in raw:
            cells = tuple(TAB if sign == "\t" else sign for sign in raw)
        start, stop = 0, len(cells)
        if ends[-1] > room:
            free = room - 2 * len(ELLIPSIS)
            wanted = ends[min(column - 1, len(cells))]
            if wanted > free // 2:
                start = bisect.bisect_left(ends, wanted - free // 3)
            stop = bisect.bisect_right(ends, ends[start] + free) - 1
        return cls(cells, start, stop)

    @property
    def display(self) -> str:
        body = "".join(self.cells[self.start : self.stop])
        return ELLIPSIS * (self.start > 0) + body + ELLIPSIS * (self.stop < len(self.cells))

    def place(self, column: int) -> int:
        """How far right a column stands in the shown line."""
        index = min(max(column - 1, self.start), self.stop)
        return len(ELLIPSIS) * (self.start > 0) + width("".join(self.cells[self.start : index]))


def _ends(raw: str) -> Sequence[int]:
    """Where the columns of each code point of a line begin, and where the last one ends."""
    if raw.isascii() and "\t" not in raw:
        return range(len(raw) + 1)
    return list(itertools.accumulate((len(TAB) if sign == "\t" else width(sign) for sign in raw), initial=0))


@functools.lru_cache(maxsize=4096)  # findings of a rule share most of their words
def _wrapped(text: str, room: int, subsequent_indent: str = "") -> tuple[str, ...]:
    import textwrap  # start-up: nothing to show

    return tuple(textwrap.wrap(text, room, subsequent_indent=subsequent_indent))


def render(view: View) -> str:
    """A block a finding, with a blank line after each. Findings of one cause share a block, and equal ones of files that are equal."""
    lines = {file: view.cells.lines(file, text) for file, text in view.report.texts.items()}
    explained: set[str] = set()  # measurements are shown once a rule; what its own facts showed, with each finding
    blocks = []
    for shown in _with_copies(by_cause(view.report.findings), view.report.texts):
        finding = shown.finding
        own = (evidence_of(finding, view.evidence) or {}).get("level") in ("facts", "template")
        blocks.append(_Block(shown, lines, view, own or finding.code not in explained).render() + "\n")
        if not own:
            explained.add(finding.code)
    return "".join(blocks)


def _with_copies(findings: Iterable[tuple[Finding, tuple[Span, ...]]], texts: Mapping[str, str]) -> Iterable[_Entry]:
    """What gets a block, with the other files that hold the same findings in the same text."""
    blocks: dict[object, _Entry] = {}
    for finding, others in findings:
        file = finding.span.file
        steps = [(step.message, _place(step.span, file)) for step in finding.trail]
        content = (finding.code, finding.message, finding.help, repr(finding.facts), finding.related, finding.fix and finding.fix.message)
        key = (texts.get(file) or file, *content, _place(finding.span, file), *(_place(span, file) for span in others), *steps)
        first = blocks.setdefault(key, _Entry(finding, others))
        if first.finding is not finding:
            first.copies.append(file)
    return blocks.values()


def _place(span: Span, file: str) -> tuple[object, ...]:
    """A span, as somebody sees it who stands in a file."""
    return "" if span.file == file else span.file, span.row, span.column, span.end_row, span.end_column


class _Block:
    """The text of one finding."""

    def __init__(self, shown: _Entry, lines: Mapping[str, list[str]], view: View, measured: bool) -> None:
        finding = self._finding = shown.finding
        self._others, self._copies = shown.others, shown.copies
        self._lines, self._view, self._measured = lines, view, measured
        self._paint = Paint(view.color)
        self._labels = [_Label(finding.span, "", True)]
        for number, step in enumerate(finding.trail, 1):
            mark = f"{number}: " if len(finding.trail) > 1 else ""
            text = mark + line(step.message)
            if step.span == finding.span and not self._labels[0].text:
                self._labels[0] = _Label(finding.span, text, True)  # one underline for both
            else:
                self._labels.append(_Label(step.span, text, False))
        self._gutter = max(len(self._row(label.span.file, label.span.row)) for label in self._labels)
        self._room = view.width - self._gutter - 3
        self._source_room = WHOLE if view.whole_lines else self._room

    def render(self) -> str:
        parts = [*self._head(), *self._sources(), *self._notes()]
        return "".join(tame(part.rstrip()) + "\n" for part in parts)

    def _head(self) -> Iterator[str]:
        finding = self._finding
        severity = finding.severity.value
        shown = f"{severity}: {finding.name} [{finding.code}] "
        first, *rest = _wrapped(
            shown.replace(" ", "\0").removesuffix("\0") + " " + plain(finding.message), self._view.width, subsequent_indent="    "
        )
        name = link(finding.name, page(finding.name)) if self._view.links else finding.name
        painted = f"{self._paint(severity, severity)}: {self._paint(name, 'strong')} [{finding.code}]"
        yield painted + first[len(shown) - 1 :]
        yield from rest

    def _sources(self) -> Iterator[str]:
        parts: dict[object, list[_Label]] = {}  # by file, of a notebook by cell
        for label in self._labels:
            cell, _ = self._view.cells.at(label.span.file, label.span.row)
            parts.setdefault((label.span.file, cell), []).append(label)
        for labels in parts.values():
            file = labels[0].span.file
            first = next((label for label in labels if label.primary), labels[0])
            arrow = "-->" if first.primary else ":::"
            place = f"{line(file)}:{self._view.cells.place(file, first.span.row, first.span.column)}"
            yield f"{' ' * self._gutter}{self._paint(arrow, 'frame')} {place}"
            if not any(self._lines.get(file, ())):
                continue  # a file that could not be read
            yield self._bar()
            yield from self._rows(labels)
            yield self._bar()

    def _rows(self, labels: list[_Label]) -> Iterator[str]:
        before = None
        for row in sorted({label.span.row for label in labels}):
            here = sorted((label for label in labels if label.span.row == row), key=lambda label: not label.primary)
            if before is not None and row > before + 1:
                single = self._line(here[0].span.file, row - 1)
                yield self._numbered(self._row(here[0].span.file, row - 1), single) if row == before + 2 else self._paint(ELLIPSIS, "frame")
            shown = self._line(here[0].span.file, row, min(label.span.column for label in here))
            yield self._numbered(self._row(here[0].span.file, row), shown)
            for label in here:
                yield from self._underline(label, shown)
            before = row

    def _line(self, file: str, row: int, column: int = 1) -> _Line:
        lines = self._lines.get(file, [])
        return _Line.around(plain(lines[row - 1]) if row <= len(lines) else "", column, self._source_room)

    def _row(self, file: str, row: int) -> str:
        """The number of a row as people count it: in a notebook from the beginning of its cell."""
        return str(self._view.cells.at(file, row)[1])

    def _numbered(self, row: str, line: _Line) -> str:
        return f"{self._paint(f'{row:>{self._gutter}} |', 'frame')} {line.display}"

    def _underline(self, label: _Label, line: _Line) -> Iterator[str]:
        span = label.span
        before, after = line.place(span.column), line.place(span.end_column if span.end_row == span.row else len(line.cells) + 1)
        length = max(after - before, 1)
        marks = self._paint(("^" if label.primary else "-") * length, self._finding.severity.value if label.primary else "label")
        if before + length + 1 + width(label.text) <= self._room:
            yield f"{self._bar()} {' ' * before}{marks} {self._paint(label.text, 'label')}"
            return
        yield f"{self._bar()} {' ' * before}{marks}"
        indent = min(before, max(self._room - LABEL_WIDTH, 0))
        for part in _wrapped(label.text, self._room - indent):
            yield f"{self._bar()} {' ' * indent}{self._paint(part, 'label')}"

    def _notes(self) -> Iterator[str]:
        if self._others:
            places = [self._view.cells.place(span.file, span.row, span.column) for span in self._others]
            yield from self._note("also at", ", ".join(places) + " (same cause)")
        if self._finding.help:
            yield from self._note("help", self._finding.help)
        if fix := self._finding.fix:
            yield from self._note("fix", f"{self._view.fix_mark(self._finding)}{fix.message} ({fix.applicability})")
        if self._measured and (evidence := evidence_of(self._finding, self._view.evidence)):
            yield from self._note("verify", verified(self._finding, evidence))
        if self._view.costs and (known := self._view.costs.get(self._finding)):
            yield from self._note("cost", costing(known))
        if self._view.by_confidence:
            yield from self._note("confidence", in_words(self._finding))
        if self._finding.related:
            yield from self._note("related", ", ".join(self._finding.related))
        if self._copies:
            yield from self._note("also in", ", ".join(map(line, self._copies)))

    def _note(self, word: str, text: str) -> Iterator[str]:
        start = " " * self._gutter + " = "
        room = self._view.width - len(start) - len(word) - 2
        lines = [row for part in plain(text).split("\n") for row in (_wrapped(part, room) or [""])]
        for number, row in enumerate(lines):
            head = self._paint(word, "help") + ": " if number == 0 else " " * (len(word) + 2)
            lead = start if number == 0 else " " * len(start)
            yield f"{lead}{head}{row}"

    def _bar(self) -> str:
        return self._paint(f"{' ' * self._gutter} |", "frame")
