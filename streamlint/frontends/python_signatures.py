"""Lowers parameters and annotations of Python's own tree, and lambdas, which have the former."""

from __future__ import annotations

import ast

from streamlint.frontends.python_expressions import BINARY, EXPRESSIONS, dotted, expression, indices, optional
from streamlint.frontends.python_lowering import Lowering, lambda_at
from streamlint.frontends.python_positions import Quoted
from streamlint.program import Binary, Const, Expression, Index, Param


def params(low: Lowering, node: ast.arguments) -> list[Param]:
    """The parameters of a function or lambda, in order."""
    plain = [*node.posonlyargs, *node.args]
    defaults = [*[None] * (len(plain) - len(node.defaults)), *node.defaults]
    result = [_param(low, param, default) for param, default in zip(plain, defaults, strict=True)]
    if node.vararg is not None:
        result.append(_param(low, node.vararg, None))
        result[-1].kind = "star"
    for param, default in zip(node.kwonlyargs, node.kw_defaults, strict=True):
        result.append(_param(low, param, default))
        result[-1].kind = "keyword"
    if node.kwarg is not None:
        result.append(_param(low, node.kwarg, None))
        result[-1].kind = "double"
    return result


def _param(low: Lowering, node: ast.arg, default: ast.expr | None) -> Param:
    return Param(node.arg, optional(low, default), annotation(low, node.annotation) if node.annotation else None)


def annotation(low: Lowering, node: ast.expr) -> Expression:
    """Lower an annotation; strings in it are read as the code that they hold."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _quoted(low, node, node.value)
    if isinstance(node, ast.BinOp):
        return Binary(BINARY[type(node.op)], annotation(low, node.left), annotation(low, node.right), at=low.at[node])
    if isinstance(node, ast.Subscript) and dotted(node.value).rpartition(".")[2] not in ("Literal", "Annotated"):
        return Index(expression(low, node.value), tuple(_axis(low, index) for index in indices(low, node)), at=low.at[node])
    return expression(low, node)


def _axis(low: Lowering, node: ast.expr) -> Expression:
    return expression(low, node) if isinstance(node, ast.Slice | ast.Starred) else annotation(low, node)


def _quoted(low: Lowering, node: ast.Constant, text: str) -> Expression:
    text = text.strip()
    try:
        parsed = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Const(node.value, at=low.at[node])
    outside, low.at = low.at, Quoted(text, low.at[node])
    try:
        return annotation(low, parsed)
    finally:
        low.at = outside


def _lambda(low: Lowering, node: ast.Lambda) -> Expression:
    return lambda_at(low, low.at[node], params(low, node.args), lambda: expression(low, node.body))


# Registered from here: parameters need expressions, and a lambda needs both.
EXPRESSIONS[ast.Lambda] = _lambda
