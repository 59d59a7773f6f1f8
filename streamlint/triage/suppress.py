"""Suppression comments: ``streamlint: ignore[…]``, ``streamlint: ignore-file[…]``, and ``noqa: SL…``."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Sequence

from streamlint import TYPE_CHECKING
from streamlint.checks.catalog import UNUSED, code_of
from streamlint.findings import Finding, Problem, Span
from streamlint.support.declared_words import VOCABULARY, words_in
from streamlint.support.errors import did_you_mean
from streamlint.support.lazy import lazy
from streamlint.support.records import field, record, replace
from streamlint.triage.layout import Comment, Layout, layout

if TYPE_CHECKING:
    from streamlint.checks import rules
else:
    (rules,) = lazy("streamlint.checks", "rules")

OWN = re.compile(r"streamlint:\s*(?P<form>ignore(?:-file)?)\b(?![\w-])\s*(?:\[(?P<codes>[^\]]*)\])?(?P<reason>[^\r\n]*)")
NOQA = re.compile(r"noqa:\s*(?P<codes>[A-Za-z]+\d+(?:[,\s]+[A-Za-z]+\d+)*)(?P<reason>[^\r\n]*)", re.IGNORECASE)
UNTIL = re.compile(r"\buntil=(\S+)")
FIRST_LINES = 10
_FORMS = ("ignore", "ignore-file")
_EITHER = "'ignore[…]' or 'ignore-file[…]'"
_LISTED = ", ".join(VOCABULARY)


@record(slots=True)
class Suppression:
    """One comment: the codes that it hides, where, and until when."""

    comment: Comment
    codes: tuple[str, ...]
    whole_file: bool
    reason: str
    until: datetime.date | None = None
    used: set[str] = field(default_factory=set)


@record(slots=True)
class Outcome:
    """What is left of a file's findings, and what is wrong with its suppressions."""

    findings: list[Finding]
    problems: list[Problem]
    suppressions: list[Suppression]


def suppress(
    file: str, text: str, language: str, findings: Sequence[Finding], *, require_reasons: bool = False, today: datetime.date | None = None
) -> Outcome:
    """The findings of one file that no comment hides.

    A comment that lacks a reason though reasons are required, or whose day has come, hides nothing, and the finding's help says so.
    """
    places = layout(text, language)
    suppressions, problems = _parse(file, places)
    today = today or datetime.date.today()
    kept = []
    for finding in findings:
        why_not = ""
        for suppression in suppressions:
            if finding.code in suppression.codes and _covers(suppression, finding, places):
                suppression.used.add(finding.code)
                why_not = _void(suppression, require_reasons, today)
                if not why_not:
                    break
        else:
            kept.append(_with_help(finding, why_not))
    return Outcome(kept, problems, suppressions)


def unused(file: str, suppressions: Iterable[Suppression], ran: frozenset[str]) -> list[Finding]:
    """``SL900`` for the codes of comments that hid nothing, among the rules that ran."""
    rule = rules.UnusedSuppression
    findings = []
    for suppression in suppressions:
        codes = [code for code in suppression.codes if code in ran and code not in suppression.used]
        if codes:
            comment = suppression.comment
            span = Span(file, comment.row, comment.column, comment.row, comment.column + len(comment.text.splitlines()[0]))
            message = f"suppression of {', '.join(codes)} hides nothing"
            findings.append(Finding(UNUSED, rule.name, rule.category, message, span, help="delete it, or the codes named here"))
    return findings


def _void(suppression: Suppression, require_reasons: bool, today: datetime.date) -> str:
    """Why a suppression does not count; "" if it does."""
    if suppression.until and today >= suppression.until:
        return f"its suppression ended on {suppression.until}"
    if require_reasons and not suppression.reason:
        return "its suppression gives no reason, and `require-reasons` asks for one"
    return ""


def _with_help(finding: Finding, note: str) -> Finding:
    return replace(finding, help="; ".join(filter(None, (finding.help, note)))) if note else finding


def _covers(suppression: Suppression, finding: Finding, places: Layout) -> bool:
    if suppression.whole_file:
        return True
    first, last = places.statement_at(finding.span.row)
    row = suppression.comment.row
    if first <= row <= last:
        return True
    return suppression.comment.alone and row < first and set(range(row, first)) <= places.comment_rows()


def _parse(file: str, places: Layout) -> tuple[list[Suppression], list[Problem]]:
    suppressions, problems = [], []
    first_code = places.statements[0][0] if places.statements else len(places.code)
    for comment in places.comments:
        problems += [Problem(file, fault, comment.row, comment.column) for fault in _misspelled(comment)]
        for pattern in (OWN, NOQA):
            if not (match := pattern.search(comment.text)):
                continue
            suppression, faults = _read(comment, match, pattern is NOQA)
            if suppression and suppression.whole_file and comment.row > max(FIRST_LINES, first_code):
                faults.append(f"`ignore-file` counts only in the first {FIRST_LINES} lines, or before the first statement")
            elif suppression:
                suppressions.append(suppression)
            problems += [Problem(file, fault, comment.row, comment.column) for fault in faults]
    return suppressions, problems


def _misspelled(comment: Comment) -> Iterator[str]:
    """What is wrong with the words that a comment declares."""
    words = words_in(comment.text) if "streamlint:" in comment.text else []
    for word in [word.partition("[")[0] for word in words if word not in VOCABULARY][:1]:
        near = did_you_mean(word, (*VOCABULARY, *_FORMS))
        yield f"unknown comment 'streamlint: {word}'{near or f'; it is {_EITHER}, or declares one of {_LISTED}'}"


def _read(comment: Comment, match: re.Match[str], is_noqa: bool) -> tuple[Suppression | None, list[str]]:
    """One comment, and what is wrong with it."""
    words = [word for word in re.split(r"[,\s]+", match["codes"] or "") if word]
    form = "ignore" if is_noqa else match["form"]
    if not words:
        return None, [f"'streamlint: {form}' names no rule; write '{form}[SL001]'"]
    known = code_of()
    faults = [f"suppression of an unknown rule '{word}'" for word in words if word not in known and (not is_noqa or word.startswith("SL"))]
    reason = match["reason"].partition("# streamlint:")[0].strip().removesuffix("*/").strip(" -:#")
    until = None
    if ends := UNTIL.search(reason):
        reason = reason[: ends.start()].strip(" -:;,")
        try:
            until = datetime.date.fromisoformat(ends[1])
        except ValueError:
            return None, [*faults, f"'until={ends[1]}' is no date; write until=2027-03-01"]
    codes = tuple(dict.fromkeys(known[word] for word in words if word in known))
    return (Suppression(comment, codes, form == "ignore-file", reason, until) if codes else None), faults
