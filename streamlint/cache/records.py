"""Findings, problems and counts as JSON, and back: exactly, or not at all.

A form says all three of a value: whether a record is one (it may fit its hash, and come from anybody; what does not fit is as good as
absent), the record of it, and what a record was made of.
"""

from __future__ import annotations

from collections.abc import Callable

from streamlint import TYPE_CHECKING
from streamlint.findings import Category, Edit, Finding, Fix, Part, Problem, Span, Step
from streamlint.findings.grounds import Grounds
from streamlint.support.records import names_of

if TYPE_CHECKING:
    from typing import Any

MOST = 1 << 25  # rows and columns: a source has 16 MiB


class Form:
    """``fits`` asks whether a value of JSON is a record, ``of`` makes the record of a value, ``to`` the value of a record."""

    def __init__(self, fits: Callable[[Any], bool], of: Callable[[Any], Any] | None = None, to: Callable[[Any], Any] | None = None) -> None:
        self.fits = fits
        self.of = of or _same
        self.to = to or _same


def _same(value: Any) -> Any:
    return value


def _plain(kind: type) -> Form:
    return Form(lambda value: type(value) is kind)


def _among(*words: str) -> Form:
    return Form(lambda value: isinstance(value, str) and value in words)


def _many(form: Form, kind: Callable[[Any], Any] = tuple) -> Form:
    return Form(
        lambda value: isinstance(value, list) and all(map(form.fits, value)),
        lambda values: [*map(form.of, values)],
        lambda record: kind(map(form.to, record)),
    )


def _row(kind: Callable[..., Any] | None, names: tuple[str, ...], *forms: Form) -> Form:
    """The fields of a class in their order; of a tuple, where there is none."""

    def of(value: Any) -> list[Any]:
        parts = value if kind is None else [getattr(value, name) for name in names]
        return [form.of(part) for form, part in zip(forms, parts, strict=True)]

    def to(record: list[Any]) -> Any:
        parts = (form.to(part) for form, part in zip(forms, record, strict=True))
        return tuple(parts) if kind is None else kind(*parts)

    def fits(value: Any) -> bool:
        return (
            isinstance(value, list) and len(value) == len(forms) and all(form.fits(part) for form, part in zip(forms, value, strict=True))
        )

    return Form(fits, of, to)


def _record(kind: type, *forms: Form) -> Form:
    return _row(kind, names_of(kind), *forms)


def _maybe(form: Form) -> Form:
    """What may be None."""
    return Form(
        lambda value: value is None or form.fits(value),
        lambda value: None if value is None else form.of(value),
        lambda record: None if record is None else form.to(record),
    )


def _keys(**forms: Form) -> Form:
    return Form(lambda value: isinstance(value, dict) and all(key in value and form.fits(value[key]) for key, form in forms.items()))


def _to_coverage(record: dict[str, Any]) -> dict[str, object]:
    return {key: [tuple(item) for item in field] if key == "opaque" else field for key, field in record.items()}


def _is_coverage(read: Any) -> bool:
    return isinstance(read, dict) and _many(_plain(list)).fits(read.get("opaque", []))


def _are_screens(files: Any) -> bool:
    """Of each file: a hash, flags, and the facts of the file. There may be a hundred thousand of them."""
    return isinstance(files, dict) and all(
        type(row) is list and len(row) == 3 and type(row[0]) is str and type(row[1]) is int and type(row[2]) in (list, type(None))
        for row in files.values()
    )


_TEXT, _COUNT, _FLAG, _LIST = _plain(str), _plain(int), _plain(bool), _plain(list)
_NUMBER = Form(lambda value: type(value) is int and 0 <= value < MOST)
_CATEGORY = Form(_among(*(each.value for each in Category)).fits, lambda value: value.value, Category)
COVERAGE = Form(_is_coverage, to=_to_coverage)
SPAN = _record(Span, _TEXT, *[_NUMBER] * 4)
_FIX = _record(Fix, _TEXT, _many(_record(Edit, _TEXT, SPAN)), _among("safe", "unsafe", "display"))
FIX = _maybe(_FIX)
_GROUNDS = _record(Grounds, _FLAG, *[_COUNT] * 6, *[_FLAG] * 3, *[_TEXT] * 4)
GROUNDS = _maybe(_GROUNDS)
PROBLEM = _record(Problem, _TEXT, _TEXT, _NUMBER, _NUMBER, _FLAG, _FLAG)
FINDING = _record(
    Finding,
    *(_TEXT, _TEXT, _CATEGORY, _TEXT, SPAN, _many(_record(Step, _TEXT, SPAN)), _TEXT, FIX, _plain(dict), _TEXT, _many(_TEXT)),
    *(_many(_row(None, (), SPAN, SPAN)), _TEXT, _many(SPAN), _FLAG, GROUNDS),
)
BUILT = Form(_many(_row(None, (), _TEXT, _TEXT, Form(lambda value: True))).fits)
PART = _record(Part, _many(FINDING, list), _many(PROBLEM, list), _COUNT, COVERAGE, _many(_TEXT, list), BUILT)
_REPORT = _keys(files=_COUNT, relevant=_COUNT, coverage=COVERAGE, findings=_many(FINDING), problems=_many(PROBLEM), own_rows=_many(_TEXT))
_RUN = _keys(report=_REPORT, built=BUILT, listed=_TEXT, files=Form(_are_screens), statements=_many(_row(None, (), _TEXT, _COUNT, _TEXT)))


def is_run(record: Any) -> bool:
    """Whether this is the record of a run; what it may hold besides fits, too."""
    fixes = record.get("fixes", {}) if _RUN.fits(record) else None
    return isinstance(fixes, dict) and all(map(FIX.fits, fixes.values()))


def holds(findings: list[Finding]) -> bool:
    """Whether findings come back from their records as they were: facts may hold what JSON does not know."""
    return all(_is_json(value) for finding in findings for value in finding.facts.values())


def _is_json(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_is_json, value))
    if isinstance(value, dict):
        return all(type(key) is str and _is_json(item) for key, item in value.items())
    return value is None or type(value) in (str, int, float, bool)
