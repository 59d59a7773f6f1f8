"""Lowers the cases of ``match``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import libcst as cst

from streamlint.frontends.python_expressions import expression
from streamlint.frontends.python_lowering import Lowering
from streamlint.program import NOWHERE, Assign, Attr, Expression, Name, Pattern, Position, Statement, Unknown

Labels = tuple[Expression, ...]

_PATTERNS = (
    cst.MatchPattern,
    cst.MatchSequenceElement,
    cst.MatchStar,
    cst.MatchMappingElement,
    cst.MatchKeywordElement,
    cst.MatchOrElement,
)


def switch_labels(low: Lowering, subject: cst.BaseExpression, case: cst.MatchCase) -> tuple[Labels, list[Statement]]:
    """The labels of one case (none where it takes anything), and assignments for the names that it binds."""
    labels = tuple(_labels(low, case.pattern))
    if case.guard is not None:
        labels = (Unknown((*labels, expression(low, case.guard)), at=low.at[case.guard]),)
    return labels, [_binding(low, subject, case.pattern, name) for name in _names(case.pattern)]


def _labels(low: Lowering, pattern: cst.CSTNode) -> Iterator[Expression]:
    if isinstance(pattern, cst.MatchValue | cst.MatchSingleton):
        yield expression(low, pattern.value)
    elif isinstance(pattern, cst.MatchOr):
        alternatives = [tuple(_labels(low, element.pattern)) for element in pattern.patterns]
        if all(alternatives):
            yield from (label for labels in alternatives for label in labels)
    elif not isinstance(pattern, cst.MatchAs):
        yield Unknown(tuple(_values(low, pattern)), at=low.at.get(pattern, NOWHERE))
    elif pattern.pattern is not None:
        yield from _labels(low, pattern.pattern)


def _values(low: Lowering, pattern: cst.CSTNode) -> Iterator[Expression]:
    """The expressions that a pattern evaluates: values, keys, classes; not the names that it binds."""
    for evaluated in _evaluated(pattern):
        yield expression(low, evaluated)
    for child in _below(pattern):
        yield from _values(low, child)


def _evaluated(pattern: cst.CSTNode) -> tuple[cst.BaseExpression, ...]:
    if isinstance(pattern, cst.MatchValue | cst.MatchSingleton):
        return (pattern.value,)
    if isinstance(pattern, cst.MatchClass):
        return (pattern.cls,)
    return (pattern.key,) if isinstance(pattern, cst.MatchMappingElement) else ()


def _below(pattern: cst.CSTNode) -> tuple[cst.CSTNode, ...]:
    return tuple(child for child in pattern.children if isinstance(child, _PATTERNS))


def _names(pattern: cst.CSTNode) -> Iterator[cst.Name]:
    bound: cst.Name | None = None
    if isinstance(pattern, cst.MatchAs | cst.MatchStar):
        bound = pattern.name
    elif isinstance(pattern, cst.MatchMapping):
        bound = pattern.rest
    for child in _below(pattern):
        yield from _names(child)
    if bound is not None:
        yield bound


def _binding(low: Lowering, subject: cst.BaseExpression, pattern: cst.MatchPattern, name: cst.Name) -> Statement:
    at = low.at[name]
    whole = isinstance(pattern, cst.MatchAs) and pattern.name is name
    value = expression(low, subject) if whole else None
    # Only plain names are said twice: a call would seem to run twice.
    if not isinstance(value, Name | Attr):
        value = Unknown(at=at)
    return Assign((Name(name.value, at=at),), value, at=at)


def pattern(low: Lowering, node: cst.CSTNode) -> Pattern:
    """A pattern as it stands."""
    return _HANDLERS[type(node)](low, node, low.at.get(node, NOWHERE))


def _single(low: Lowering, node: cst.MatchSingleton, at: Position) -> Pattern:
    return Pattern("single", expression(low, node.value), at=at)


def _value(low: Lowering, node: cst.MatchValue, at: Position) -> Pattern:
    return Pattern("value", expression(low, node.value), at=at)


def _or(low: Lowering, node: cst.MatchOr, at: Position) -> Pattern:
    return Pattern("or", items=tuple(pattern(low, one.pattern) for one in node.patterns), at=at)


def _mapping(low: Lowering, node: cst.MatchMapping, at: Position) -> Pattern:
    items = tuple(pattern(low, one.pattern) for one in node.elements)
    keys = tuple(expression(low, one.key) for one in node.elements)
    return Pattern("mapping", items=items, keys=keys, rest=node.rest.value if node.rest else "", at=at)


def _class(low: Lowering, node: cst.MatchClass, at: Position) -> Pattern:
    items = (*(pattern(low, one.value) for one in node.patterns), *(pattern(low, one.pattern) for one in node.kwds))
    return Pattern("class", expression(low, node.cls), items, names=tuple(one.key.value for one in node.kwds), at=at)


def _as(low: Lowering, node: cst.MatchAs, at: Position) -> Pattern:
    found = Pattern("any", at=at) if node.pattern is None else pattern(low, node.pattern)
    if node.name is not None:
        found = Pattern("or", items=(found,), name=node.name.value, at=at) if found.name else found
        found.name = node.name.value
    return found


def _sequence(low: Lowering, node: cst.MatchSequence, at: Position) -> Pattern:
    items: list[Pattern] = []
    star = -1
    for index, element in enumerate(node.patterns):
        if isinstance(element, cst.MatchStar):
            star = index
            name = element.name.value if element.name else ""
            items.append(Pattern("any", name=name, at=low.at.get(element, NOWHERE)))
        else:
            items.append(pattern(low, element.value))
    return Pattern("sequence", items=tuple(items), star=star, at=at)


_HANDLERS: dict[type[cst.CSTNode], Callable[[Lowering, Any, Position], Pattern]] = {
    cst.MatchSingleton: _single,
    cst.MatchValue: _value,
    cst.MatchOr: _or,
    cst.MatchMapping: _mapping,
    cst.MatchClass: _class,
    cst.MatchAs: _as,
    **dict.fromkeys((cst.MatchList, cst.MatchTuple), _sequence),
}
