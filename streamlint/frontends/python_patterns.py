"""Lowers the cases of ``match``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from streamlint.frontends.python_expressions import expression, optional
from streamlint.frontends.python_lowering import Lowering
from streamlint.program import Assign, Attr, Case, Const, Expression, Name, Pattern, Position, Statement, Unknown


def case_of(low: Lowering, subject: ast.expr, case: ast.match_case) -> tuple[tuple[Expression, ...], list[Statement], Case]:
    """The labels of one case (none where it takes anything), assignments for the names that it binds, and the case as it stands."""
    labels = tuple(_labels(low, case.pattern))
    if case.guard is not None:
        labels = (Unknown((*labels, expression(low, case.guard)), at=low.at[case.guard]),)
    bindings = [_binding(low, subject, case.pattern, *found) for found in _names(low, case.pattern)]
    guard = optional(low, case.guard)
    return labels, bindings, Case(_pattern(low, case.pattern), guard, len(bindings))


def _labels(low: Lowering, node: ast.pattern) -> Iterator[Expression]:
    if isinstance(node, ast.MatchValue | ast.MatchSingleton):
        yield from _evaluated(low, node)
    elif isinstance(node, ast.MatchOr):
        alternatives = [tuple(_labels(low, one)) for one in node.patterns]
        if all(alternatives):
            yield from (label for labels in alternatives for label in labels)
    elif not isinstance(node, ast.MatchAs):
        yield Unknown(tuple(_evaluated(low, node)), at=low.at[node])
    elif node.pattern is not None:
        yield from _labels(low, node.pattern)


def _evaluated(low: Lowering, node: ast.AST) -> Iterator[Expression]:
    """The expressions that a pattern evaluates: values, keys, classes; not the names that it binds."""
    if isinstance(node, ast.MatchSingleton):
        yield Const(node.value, at=low.at[node])
    elif isinstance(node, ast.expr):
        yield expression(low, node)
    elif isinstance(node, ast.MatchMapping):
        for pair in zip(node.keys, node.patterns, strict=True):
            yield from (found for one in pair for found in _evaluated(low, one))
    else:
        for one in ast.iter_child_nodes(node):
            yield from _evaluated(low, one)


def _names(low: Lowering, node: ast.pattern) -> Iterator[tuple[ast.pattern, str, Position]]:
    """The names that a pattern binds, from the inside out, each with the pattern that does and its place."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.pattern):
            yield from _names(low, child)
    if isinstance(node, ast.MatchAs | ast.MatchStar) and node.name is not None:
        yield node, node.name, low.at.last(node, node.name)
    elif isinstance(node, ast.MatchMapping) and node.rest is not None:
        yield node, node.rest, low.at.named(node, node.rest)


def _binding(low: Lowering, subject: ast.expr, whole: ast.pattern, pattern: ast.pattern, name: str, at: Position) -> Statement:
    value = expression(low, subject) if pattern is whole and isinstance(whole, ast.MatchAs) else None
    # Only plain names are said twice: a call would seem to run twice.
    if not isinstance(value, Name | Attr):
        value = Unknown(at=at)
    return Assign((Name(name, at=at),), value, at=at)


def _pattern(low: Lowering, node: ast.pattern) -> Pattern:
    """A pattern as it stands."""
    at = low.at[node]
    match node:
        case ast.MatchSingleton():
            return Pattern("single", Const(node.value, at=at), at=at)
        case ast.MatchValue():
            return Pattern("value", expression(low, node.value), at=at)
        case ast.MatchOr():
            return Pattern("or", items=_patterns(low, node.patterns), at=at)
        case ast.MatchMapping():
            keys = tuple(expression(low, key) for key in node.keys)
            return Pattern("mapping", items=_patterns(low, node.patterns), keys=keys, rest=node.rest or "", at=at)
        case ast.MatchClass():
            items = _patterns(low, [*node.patterns, *node.kwd_patterns])
            return Pattern("class", expression(low, node.cls), items, names=tuple(node.kwd_attrs), at=at)
        case ast.MatchSequence():
            star = next((index for index, one in enumerate(node.patterns) if isinstance(one, ast.MatchStar)), -1)
            return Pattern("sequence", items=_patterns(low, node.patterns), star=star, at=at)
        case ast.MatchAs(pattern=None, name=name) | ast.MatchStar(name=name):
            return Pattern("any", name=name or "", at=at)
        case ast.MatchAs(pattern=ast.pattern() as inner, name=str(name)):
            found = _pattern(low, inner)
            found = Pattern("or", items=(found,), at=at) if found.name else found
            found.name = name
            return found
    raise AssertionError(node)


def _patterns(low: Lowering, nodes: list[ast.pattern]) -> tuple[Pattern, ...]:
    return tuple(_pattern(low, node) for node in nodes)
