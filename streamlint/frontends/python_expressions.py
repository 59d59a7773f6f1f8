"""Lowers expressions of Python's own tree."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from streamlint.frontends.python_lowering import Lowering
from streamlint.program import (
    Arg,
    AssignExpr,
    Attr,
    Await,
    Binary,
    Bool,
    Call,
    Clause,
    Collection,
    Compare,
    Comprehension,
    Conditional,
    Const,
    Expression,
    Format,
    Index,
    Mapping,
    Name,
    Position,
    Slice,
    Starred,
    Unary,
    Unknown,
    Yield,
)

Handler = Callable[[Lowering, Any], Expression]

MOST_BITS = 4096  # no larger number counts for anything, and Python refuses to print some
UNARY: dict[type[ast.AST], str] = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not"}
BINARY: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
COMPARE: dict[type[ast.AST], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


def expression(low: Lowering, node: ast.AST) -> Expression:
    """Lower any expression."""
    return EXPRESSIONS[type(node)](low, node)


def optional(low: Lowering, node: ast.AST | None) -> Expression | None:
    """Lower an expression that may be absent."""
    return None if node is None else expression(low, node)


def dotted(node: ast.AST) -> str:
    """The text of a dotted name."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join((node.id if isinstance(node, ast.Name) else "", *reversed(names)))


# --- names, access, calls --------------------------------------------------------------------------------------------------------


def _name(low: Lowering, node: ast.Name) -> Expression:
    return Name(node.id, at=low.at[node])


def _chain(low: Lowering, node: ast.AST) -> Expression:
    """Calls, attributes, subscripts and operators lean to the left: they are lowered in a loop, however many follow each other."""
    links: list[ast.AST] = []
    while (left := _LEFT.get(type(node))) is not None:
        links.append(node)
        node = getattr(node, left)
    value = expression(low, node)
    for link in reversed(links):
        value = _LINKS[type(link)](low, link, value)
    return value


def _attribute(low: Lowering, node: ast.Attribute, value: Expression) -> Expression:
    return Attr(value, node.attr, at=low.at[node])


def _subscript(low: Lowering, node: ast.Subscript, value: Expression) -> Expression:
    return Index(value, tuple(expression(low, index) for index in indices(low, node)), at=low.at[node])


def indices(low: Lowering, node: ast.Subscript) -> list[ast.expr]:
    """One node for each axis of a subscript."""
    inner = node.slice
    return inner.elts if isinstance(inner, ast.Tuple) and not low.at.is_enclosed(inner) else [inner]


def _slice(low: Lowering, node: ast.Slice) -> Expression:
    return Slice(optional(low, node.lower), optional(low, node.upper), optional(low, node.step), at=low.at[node])


def _call(low: Lowering, node: ast.Call, function: Expression) -> Expression:
    return Call(function, tuple(_arguments(low, node)), _name_at(low, node.func, function), at=low.at[node])


def _arguments(low: Lowering, node: ast.Call) -> Iterator[Arg]:
    """The arguments as they stand: Python keeps those with a keyword apart."""
    given: list[Any] = [*node.args, *node.keywords]
    if node.args and node.keywords and _begin(node.args[-1]) > _begin(node.keywords[0]):
        given.sort(key=_begin)
    for one in given:
        if isinstance(one, ast.Starred):
            yield Arg(expression(low, one.value), None, 1)
        elif isinstance(one, ast.keyword):
            yield Arg(expression(low, one.value), one.arg, 0 if one.arg else 2)
        else:
            yield Arg(expression(low, one), None, 0)


def _begin(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _name_at(low: Lowering, node: ast.expr, called: Expression) -> Position:
    """Where the last name stands of what is called. What a call gives, or an element of it, has that call's, which is known."""
    while isinstance(node, ast.Subscript) and isinstance(called, Index):
        node, called = node.value, called.value
    if isinstance(called, Call):
        return called.name_at
    return low.at.last(node, node.attr) if isinstance(node, ast.Attribute) else expression_at(low, node)


def expression_at(low: Lowering, node: ast.expr) -> Position:
    """The position of an expression, where its own parentheses do not count."""
    if isinstance(node, ast.GeneratorExp):
        clause = node.generators[-1]
        return low.at.within(node, clause.ifs[-1] if clause.ifs else clause.iter)
    if isinstance(node, ast.Tuple) and node.elts and low.at.is_enclosed(node):
        return low.at.within(node, node.elts[-1])
    return low.at[node]


# --- literals and displays -------------------------------------------------------------------------------------------------------


def _constant(low: Lowering, node: ast.Constant) -> Expression:
    value = node.value
    if type(value) is int and value.bit_length() > MOST_BITS:
        return Unknown(at=low.at[node])
    return Const(value, at=low.at[node])


def _formatted(low: Lowering, node: Any) -> Expression:
    texts = Format.naming(map(_text_of, node.values)) if isinstance(node, ast.JoinedStr) else ()
    return Format(tuple(_formatted_values(low, node.values)), texts, at=low.at[node])


def _text_of(part: Any) -> str | None:
    """A text in an f-string, or None for a value that is put there as it is; what is put there in another form is no part of a name."""
    if isinstance(part, ast.Constant):
        return str(part.value)
    return None if part.conversion == -1 and part.format_spec is None else " "


def _formatted_values(low: Lowering, parts: Iterable[Any]) -> Iterator[Expression]:
    """The values of an f-string's parts, those in format specifications included."""
    for part in parts:
        if hasattr(part, "format_spec"):
            yield expression(low, part.value)
            if part.format_spec is not None:
                yield from _formatted_values(low, part.format_spec.values)


def _tuple(low: Lowering, node: ast.Tuple) -> Expression:
    return Collection("tuple", _elements(low, node), at=expression_at(low, node))


def _list(low: Lowering, node: ast.List) -> Expression:
    return Collection("list", _elements(low, node), at=low.at[node])


def _set(low: Lowering, node: ast.Set) -> Expression:
    return Collection("set", _elements(low, node), at=low.at[node])


def _elements(low: Lowering, node: ast.Tuple | ast.List | ast.Set) -> tuple[Expression, ...]:
    return tuple(expression(low, element) for element in node.elts)


def _starred(low: Lowering, node: ast.Starred) -> Expression:
    return Starred(expression(low, node.value), at=low.at[node])


def _dict(low: Lowering, node: ast.Dict) -> Expression:
    items = ((optional(low, key), expression(low, value)) for key, value in zip(node.keys, node.values, strict=True))
    return Mapping(tuple(items), at=low.at[node])


# --- operators -------------------------------------------------------------------------------------------------------------------


def _unary(low: Lowering, node: ast.UnaryOp) -> Expression:
    return Unary(UNARY[type(node.op)], expression(low, node.operand), at=low.at[node])


def _binary(low: Lowering, node: ast.BinOp, left: Expression) -> Expression:
    return Binary(BINARY[type(node.op)], left, expression(low, node.right), at=low.at[node])


def _boolean(low: Lowering, node: ast.BoolOp) -> Expression:
    values, operator = node.values, type(node.op)
    while isinstance(first := values[0], ast.BoolOp) and type(first.op) is operator:  # in parentheses
        values = [*first.values, *values[1:]]
    lowered = tuple(expression(low, value) for value in values)
    return Bool("and" if operator is ast.And else "or", lowered, at=low.at[node])


def _comparison(low: Lowering, node: ast.Compare) -> Expression:
    left = expression(low, node.left)
    compares: list[Expression] = []
    for operator, comparator in zip(node.ops, node.comparators, strict=True):
        right = expression(low, comparator)
        at = low.at[node] if len(node.ops) == 1 else (*left.at[:2], *right.at[2:])
        compares.append(Compare(COMPARE[type(operator)], left, right, at=at))
        left = right
    return compares[0] if len(compares) == 1 else Bool("and", tuple(compares), at=low.at[node])


def _conditional(low: Lowering, node: ast.IfExp) -> Expression:
    test = expression(low, node.test)
    return Conditional(test, expression(low, node.body), expression(low, node.orelse), at=low.at[node])


def _walrus(low: Lowering, node: ast.NamedExpr) -> Expression:
    return AssignExpr(expression(low, node.target), expression(low, node.value), at=low.at[node])


def _await(low: Lowering, node: ast.Await) -> Expression:
    return Await(expression(low, node.value), at=low.at[node])


def _yield(low: Lowering, node: ast.Yield) -> Expression:
    if low.scopes:
        low.scopes[-1].yields = True
    return Yield(optional(low, node.value), at=low.at[node])


def _yield_from(low: Lowering, node: ast.YieldFrom) -> Expression:
    if low.scopes:
        low.scopes[-1].yields = True
    return Yield(expression(low, node.value), delegate=True, at=low.at[node])


# --- comprehensions -------------------------------------------------------------------------------------------------------------


def _generator(low: Lowering, node: ast.GeneratorExp) -> Expression:
    return Comprehension("generator", expression(low, node.elt), _clauses(low, node), at=expression_at(low, node))


def _list_comprehension(low: Lowering, node: ast.ListComp) -> Expression:
    return Comprehension("list", expression(low, node.elt), _clauses(low, node), at=low.at[node])


def _set_comprehension(low: Lowering, node: ast.SetComp) -> Expression:
    return Comprehension("set", expression(low, node.elt), _clauses(low, node), at=low.at[node])


def _dict_comprehension(low: Lowering, node: ast.DictComp) -> Expression:
    key = expression(low, node.key)
    value: Expression | None = optional(low, node.value)
    pair = (None, key) if value is None else (key, value)  # Python 3.15: ``**element``
    element = Mapping((pair,), at=(*key.at[:2], *pair[1].at[2:]))
    return Comprehension("dict", element, _clauses(low, node), at=low.at[node])


def _clauses(low: Lowering, node: ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp) -> tuple[Clause, ...]:
    clauses = []
    for clause in node.generators:
        tests = tuple(expression(low, test) for test in clause.ifs)
        clauses.append(Clause(expression(low, clause.target), expression(low, clause.iter), tests, bool(clause.is_async)))
    return tuple(clauses)


# What leans to the left, with the field that holds its left side, and what is made of both.
_LEFT: dict[type[ast.AST], str] = {ast.Attribute: "value", ast.BinOp: "left", ast.Call: "func", ast.Subscript: "value"}
_LINKS: dict[type[ast.AST], Callable[[Lowering, Any, Expression], Expression]] = {
    ast.Attribute: _attribute,
    ast.BinOp: _binary,
    ast.Call: _call,
    ast.Subscript: _subscript,
}
EXPRESSIONS: dict[type[ast.AST], Handler] = {
    ast.Attribute: _chain,
    ast.Await: _await,
    ast.BinOp: _chain,
    ast.BoolOp: _boolean,
    ast.Call: _chain,
    ast.Compare: _comparison,
    ast.Constant: _constant,
    ast.Dict: _dict,
    ast.DictComp: _dict_comprehension,
    ast.GeneratorExp: _generator,
    ast.IfExp: _conditional,
    ast.JoinedStr: _formatted,
    ast.List: _list,
    ast.ListComp: _list_comprehension,
    ast.Name: _name,
    ast.NamedExpr: _walrus,
    ast.Set: _set,
    ast.SetComp: _set_comprehension,
    ast.Slice: _slice,
    ast.Starred: _starred,
    ast.Subscript: _chain,
    ast.Tuple: _tuple,
    ast.UnaryOp: _unary,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
}
if hasattr(ast, "TemplateStr"):  # Python 3.14
    EXPRESSIONS[ast.TemplateStr] = _formatted
