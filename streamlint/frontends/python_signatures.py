"""Lowers Python parameters and annotations, and lambdas, which have the former."""

from __future__ import annotations

import libcst as cst

from streamlint.frontends.python_expressions import BINARY, EXPRESSIONS, axis, dotted, expression, optional
from streamlint.frontends.python_lowering import Lowering, lambda_at
from streamlint.program import Binary, Const, Expression, Index, Param, Position


def params(low: Lowering, node: cst.Parameters) -> list[Param]:
    """The parameters of a function or lambda, in order."""
    result = [_param(low, param) for param in (*node.posonly_params, *node.params)]
    if isinstance(node.star_arg, cst.Param):
        result.append(_param(low, node.star_arg))
        result[-1].kind = "star"
    for param in node.kwonly_params:
        result.append(_param(low, param))
        result[-1].kind = "keyword"
    if node.star_kwarg is not None:
        result.append(_param(low, node.star_kwarg))
        result[-1].kind = "double"
    return result


def _param(low: Lowering, node: cst.Param) -> Param:
    given = node.annotation.annotation if node.annotation else None
    return Param(node.name.value, optional(low, node.default), annotation(low, given) if given else None)


def annotation(low: Lowering, node: cst.BaseExpression) -> Expression:
    """Lower an annotation; strings in it are read as the code that they hold."""
    if isinstance(node, cst.SimpleString | cst.ConcatenatedString):
        return _quoted(low, expression(low, node))
    if isinstance(node, cst.BinaryOperation):
        return Binary(BINARY[type(node.operator)], annotation(low, node.left), annotation(low, node.right), at=low.at[node])
    if isinstance(node, cst.Subscript) and dotted(node.value).rpartition(".")[2] not in ("Literal", "Annotated"):
        indices = tuple(axis(low, element, annotation) for element in node.slice)
        return Index(expression(low, node.value), indices, at=low.at[node])
    return expression(low, node)


def _quoted(low: Lowering, text: Expression) -> Expression:
    if not isinstance(text, Const) or not isinstance(text.value, str):
        return text
    try:
        parsed = cst.parse_expression(text.value.strip())
    except (cst.ParserSyntaxError, cst.CSTValidationError, UnicodeEncodeError):
        return text
    outside, low.at = low.at, _Everywhere(text.at)
    try:
        return annotation(low, parsed)
    finally:
        low.at = outside


class _Everywhere(dict[cst.CSTNode, Position]):
    """Positions of code inside of a string: all of it stands where the string does."""

    def __init__(self, at: Position) -> None:
        self.at = at

    def __missing__(self, node: cst.CSTNode) -> Position:
        return self.at


def _lambda(low: Lowering, node: cst.Lambda) -> Expression:
    return lambda_at(low, low.at[node], params(low, node.params), lambda: expression(low, node.body))


# Registered from here: parameters need expressions, and a lambda needs both.
EXPRESSIONS[cst.Lambda] = _lambda
