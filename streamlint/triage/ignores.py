"""``--add-ignore``: suppression comments written into sources."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence

from streamlint.checks.catalog import UNREADABLE
from streamlint.findings import Finding
from streamlint.support.reading import language_of
from streamlint.support.records import replace
from streamlint.triage.layout import layout
from streamlint.triage.rewriting import rewrite
from streamlint.triage.suppress import OWN, UNTIL, suppress

OURS = re.compile(r"(?:#|//) streamlint: ignore\[[^\r\n]*")


def add_to_files(findings: Iterable[Finding], reason: str, texts: Mapping[str, str]) -> int:
    """Write comments for findings into their files, which were read as ``texts``; how many are hidden now."""
    hidden = 0
    by_file: dict[str, list[Finding]] = {}
    for finding in findings:
        by_file.setdefault(finding.span.file, []).append(finding)
    for file, mine in by_file.items():
        text, count = add_ignores(file, texts[file], language_of(file) or "python", mine, reason)
        if count:
            rewrite(file, texts[file], text)
        hidden += count
    return hidden


def add_ignores(file: str, text: str, language: str, findings: Sequence[Finding], reason: str = "") -> tuple[str, int]:
    """The text with comments that hide the findings of one file, and how many of them they hide.

    A comment goes to the end of the statement, else above it: wherever it hides its findings and changes no code.
    """
    hidden = 0
    rows: dict[int, list[Finding]] = {}
    for finding in findings:
        if finding.code == UNREADABLE:
            continue  # the configuration alone ignores that
        rows.setdefault(finding.span.row, []).append(finding)
    for row in sorted(rows, reverse=True):  # from below, so that the rows above stay
        codes = list(dict.fromkeys(finding.code for finding in rows[row]))
        for candidate, moved in _candidates(text, language, row, codes, reason):
            if _hides(file, candidate, language, rows[row], moved) and _same_code(text, candidate, language):
                text, hidden = candidate, hidden + len(rows[row])
                break
    return text, hidden


def _candidates(text: str, language: str, row: int, codes: list[str], reason: str) -> Iterable[tuple[str, int]]:
    """Texts with the comment, and by how many lines each moves the finding."""
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)
    places = layout(text, language)
    first, last = places.statement_at(row)
    top = first  # the comments above a statement count for it
    while top - 1 in places.comment_rows():
        top -= 1
    for own in range(top, last + 1):
        if (found := OWN.search(_body(lines[own - 1]))) and (own >= first or (found["form"] == "ignore" and _ended(found["reason"]))):
            yield _with(lines, own, _joined(lines[own - 1], codes, reason)), 0
    marks = ("//",) if language == "cuda" else ("#", "//")  # a string may hold C++
    for mark in marks:
        comment = f"{mark} streamlint: ignore[{', '.join(codes)}]" + f" {reason}".rstrip()
        for place in dict.fromkeys((last, row)):
            body, end = _split(lines[place - 1])
            if not body.endswith("\\"):
                yield _with(lines, place, f"{body}  {comment}{end}"), 0
        head = lines[first - 1]
        if first == 1 or not _body(lines[first - 2]).endswith("\\"):
            indent = head[: len(head) - len(head.lstrip())]
            yield _with(lines, first, f"{indent}{comment}{_split(head)[1] or chr(10)}{head}"), 1


def _joined(line: str, codes: list[str], reason: str) -> str:
    """A line whose comment names further codes; one that has ended loses its date, and takes the new reason if there is one."""

    def more(match: re.Match[str]) -> str:
        known = [word.strip() for word in (match["codes"] or "").split(",") if word.strip()]
        listed = ", ".join([*known, *(code for code in codes if code not in known)])
        given = match["reason"]
        if (ends := UNTIL.search(given)) and _ended(given):
            kept, close = given[: ends.start()].rstrip(" ,;:-"), given[ends.end() :].rstrip()
            given = (f" {reason}" if reason else kept) + (f" {close.lstrip()}" if close else "")
        elif reason and not given.strip():
            given = f" {reason}"
        head = match[0][: len(match[0]) - len(match["reason"])]
        return head.replace(f"[{match['codes']}]", f"[{listed}]", 1) + given

    return OWN.sub(more, line)


def _ended(reason: str) -> bool:
    """Whether the words behind a comment's codes name a day that has come."""
    ends = UNTIL.search(reason)
    try:
        return ends is not None and datetime.date.today() >= datetime.date.fromisoformat(ends[1])
    except ValueError:
        return False


def _with(lines: Sequence[str], row: int, line: str) -> str:
    return "".join([*lines[: row - 1], line, *lines[row:]])


def _split(line: str) -> tuple[str, str]:
    body = _body(line)
    return body, line[len(body) :]


def _body(line: str) -> str:
    return line.rstrip("\r\n")


def _hides(file: str, text: str, language: str, findings: Sequence[Finding], moved: int) -> bool:
    there = [replace(f, span=replace(f.span, row=f.span.row + moved)) for f in findings]
    return not suppress(file, text, language, there).findings


def _same_code(before: str, after: str, language: str) -> bool:
    one, two = (_code(text, language) for text in (before, after))
    return one == two


def _code(text: str, language: str) -> list[str]:
    """The lines without comments; of comments in C++ that a string holds, without ours."""
    lines = [OURS.sub("", line).rstrip() for line in layout(text, language).code]
    return [line for line in lines if line]
