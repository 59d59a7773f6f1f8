"""Lowers Python expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import libcst as cst

from streamlint.frontends import python_literals as literals
from streamlint.frontends.python_lowering import Lowering
from streamlint.program import (
    NOWHERE,
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
    Slice,
    Starred,
    Unary,
    Unknown,
    Yield,
)

Handler = Callable[[Lowering, Any], Expression]

CONSTANTS: dict[str, object] = {"None": None, "True": True, "False": False}
UNARY: dict[type[cst.CSTNode], str] = {cst.Minus: "-", cst.Plus: "+", cst.BitInvert: "~", cst.Not: "not"}
BINARY: dict[type[cst.CSTNode], str] = {
    cst.Add: "+",
    cst.Subtract: "-",
    cst.Multiply: "*",
    cst.Divide: "/",
    cst.FloorDivide: "//",
    cst.Modulo: "%",
    cst.Power: "**",
    cst.MatrixMultiply: "@",
    cst.BitAnd: "&",
    cst.BitOr: "|",
    cst.BitXor: "^",
    cst.LeftShift: "<<",
    cst.RightShift: ">>",
}
COMPARE: dict[type[cst.CSTNode], str] = {
    cst.Equal: "==",
    cst.NotEqual: "!=",
    cst.LessThan: "<",
    cst.LessThanEqual: "<=",
    cst.GreaterThan: ">",
    cst.GreaterThanEqual: ">=",
    cst.Is: "is",
    cst.IsNot: "is not",
    cst.In: "in",
    cst.NotIn: "not in",
}


def expression(low: Lowering, node: cst.CSTNode) -> Expression:
    """Lower any expression."""
    return EXPRESSIONS.get(type(node), _unknown)(low, node)


def optional(low: Lowering, node: cst.BaseExpression | None) -> Expression | None:
    """Lower an expression that may be absent."""
    return None if node is None else expression(low, node)


def dotted(node: cst.CSTNode) -> str:
    """The text of a dotted name."""
    names: list[str] = []
    while isinstance(node, cst.Attribute):
        names.append(node.attr.value)
        node = node.value
    return ".".join((node.value if isinstance(node, cst.Name) else "", *reversed(names)))


# --- names, access, calls --------------------------------------------------------------------------------------------------------


def _name(low: Lowering, node: cst.Name) -> Expression:
    if node.value in CONSTANTS:
        return Const(CONSTANTS[node.value], at=low.at[node])
    return Name(node.value, at=low.at[node])


def _chain(low: Lowering, node: cst.CSTNode) -> Expression:
    """Calls, attributes, subscripts and operators lean to the left: they are lowered in a loop, however many follow each other."""
    links: list[cst.CSTNode] = []
    while (left := _LEFT.get(type(node))) is not None:
        links.append(node)
        node = getattr(node, left)
    value = expression(low, node)
    for link in reversed(links):
        value = _LINKS[type(link)](low, link, value)
    return value


def _attribute(low: Lowering, node: cst.Attribute, value: Expression) -> Expression:
    return Attr(value, node.attr.value, at=low.at[node])


def _subscript(low: Lowering, node: cst.Subscript, value: Expression) -> Expression:
    return Index(value, tuple(axis(low, element) for element in node.slice), at=low.at[node])


def axis(low: Lowering, element: cst.SubscriptElement, lower: Handler = expression) -> Expression:
    """One index of a subscript."""
    node = element.slice
    if isinstance(node, cst.Slice):
        return Slice(optional(low, node.lower), optional(low, node.upper), optional(low, node.step), at=low.at[element])
    assert isinstance(node, cst.Index)
    value = lower(low, node.value)
    return Starred(value, at=low.at[element]) if node.star else value


def _call(low: Lowering, node: cst.Call, function: Expression) -> Expression:
    return Call(
        function,
        tuple(_argument(low, argument) for argument in node.args),
        low.at[_last_name(node.func)],
        at=low.at[node],
    )


def _argument(low: Lowering, node: cst.Arg) -> Arg:
    return Arg(expression(low, node.value), node.keyword.value if node.keyword else None, len(node.star))


def _last_name(node: cst.BaseExpression) -> cst.BaseExpression:
    while True:
        if isinstance(node, cst.Attribute):
            return node.attr
        if isinstance(node, cst.Subscript):
            node = node.value
        elif isinstance(node, cst.Call):
            node = node.func
        else:
            return node


# --- literals and displays -------------------------------------------------------------------------------------------------------


def _number(low: Lowering, node: cst.Integer | cst.Float | cst.Imaginary) -> Expression:
    value = literals.number(node.value)
    return Unknown(at=low.at[node]) if value is None else Const(value, at=low.at[node])


def _ellipsis(low: Lowering, node: cst.Ellipsis) -> Expression:
    return Const(..., at=low.at[node])


def _simple_string(low: Lowering, node: cst.SimpleString) -> Expression:
    return Const(literals.string(node), at=low.at[node])


def _concatenated(low: Lowering, node: cst.ConcatenatedString) -> Expression:
    pieces = list(_pieces(node))
    values = [literals.string(piece) for piece in pieces if isinstance(piece, cst.SimpleString)]
    if len(values) < len(pieces):
        parts = [part for piece in pieces for part in getattr(piece, "parts", (piece,))]
        return Format(tuple(_formatted_values(low, parts)), Format.naming(map(_text_of, parts)), at=low.at[node])
    if isinstance(values[0], bytes):
        return Const(b"".join(cast("list[bytes]", values)), at=low.at[node])
    return Const("".join(cast("list[str]", values)), at=low.at[node])


def _pieces(node: cst.BaseString) -> Iterator[cst.BaseString]:
    while isinstance(node, cst.ConcatenatedString):
        yield node.left
        node = node.right
    yield node


def _formatted(low: Lowering, node: Any) -> Expression:
    texts = Format.naming(map(_text_of, node.parts)) if isinstance(node, cst.FormattedString) else ()
    return Format(tuple(_formatted_values(low, node.parts)), texts, at=low.at[node])


def _text_of(part: Any) -> str | None:
    """A text in an f-string, or None for a value that is put there as it is; what is put there in another form is no part of a name."""
    if isinstance(part, cst.FormattedStringExpression):
        return None if part.conversion is None and part.format_spec is None and part.equal is None else " "
    return str(literals.string(part)) if isinstance(part, cst.SimpleString) else part.value


def _formatted_values(low: Lowering, parts: Iterable[Any]) -> Iterator[Expression]:
    """The values of an f-string's parts, those in format specifications included."""
    for part in parts:
        if hasattr(part, "expression"):
            yield expression(low, part.expression)
            yield from _formatted_values(low, part.format_spec or ())


def _tuple(low: Lowering, node: cst.Tuple) -> Expression:
    row, column, end_row, end_column = low.at[node]
    if not node.elements:  # libcst leaves the parentheses out, and nothing would be left
        column, end_column = max(column - 1, 1), end_column + 1
    return Collection("tuple", _elements(low, node.elements), at=(row, column, end_row, end_column))


def _list(low: Lowering, node: cst.List) -> Expression:
    return Collection("list", _elements(low, node.elements), at=low.at[node])


def _set(low: Lowering, node: cst.Set) -> Expression:
    return Collection("set", _elements(low, node.elements), at=low.at[node])


def _elements(low: Lowering, elements: Iterable[cst.BaseElement]) -> tuple[Expression, ...]:
    return tuple(expression(low, element.value if type(element) is cst.Element else element) for element in elements)


def _starred(low: Lowering, node: cst.StarredElement) -> Expression:
    return Starred(expression(low, node.value), at=low.at[node])


def _dict(low: Lowering, node: cst.Dict) -> Expression:
    items = (
        (expression(low, element.key) if isinstance(element, cst.DictElement) else None, expression(low, element.value))
        for element in node.elements
    )
    return Mapping(tuple(items), at=low.at[node])


# --- operators -------------------------------------------------------------------------------------------------------------------


def _unary(low: Lowering, node: cst.UnaryOperation) -> Expression:
    return Unary(UNARY[type(node.operator)], expression(low, node.expression), at=low.at[node])


def _binary(low: Lowering, node: cst.BinaryOperation, left: Expression) -> Expression:
    return Binary(BINARY[type(node.operator)], left, expression(low, node.right), at=low.at[node])


def _boolean(low: Lowering, node: cst.BooleanOperation) -> Expression:
    operator = type(node.operator)
    values: list[cst.BaseExpression] = [node.right]
    left = node.left
    while isinstance(left, cst.BooleanOperation) and type(left.operator) is operator:
        values.append(left.right)
        left = left.left
    values.append(left)
    lowered = tuple(expression(low, value) for value in reversed(values))
    return Bool("and" if operator is cst.And else "or", lowered, at=low.at[node])


def _comparison(low: Lowering, node: cst.Comparison) -> Expression:
    left = expression(low, node.left)
    compares: list[Expression] = []
    for target in node.comparisons:
        right = expression(low, target.comparator)
        at = low.at[node] if len(node.comparisons) == 1 else (*left.at[:2], *right.at[2:])
        compares.append(Compare(COMPARE[type(target.operator)], left, right, at=at))
        left = right
    return compares[0] if len(compares) == 1 else Bool("and", tuple(compares), at=low.at[node])


def _conditional(low: Lowering, node: cst.IfExp) -> Expression:
    test = expression(low, node.test)
    return Conditional(test, expression(low, node.body), expression(low, node.orelse), at=low.at[node])


def _walrus(low: Lowering, node: cst.NamedExpr) -> Expression:
    return AssignExpr(expression(low, node.target), expression(low, node.value), at=low.at[node])


def _await(low: Lowering, node: cst.Await) -> Expression:
    return Await(expression(low, node.expression), at=low.at[node])


def _yield(low: Lowering, node: cst.Yield) -> Expression:
    if low.scopes:
        low.scopes[-1].yields = True
    if isinstance(node.value, cst.From):
        return Yield(expression(low, node.value.item), delegate=True, at=low.at[node])
    return Yield(optional(low, node.value), at=low.at[node])


# --- comprehensions -------------------------------------------------------------------------------------------------------------


def _generator(low: Lowering, node: cst.GeneratorExp) -> Expression:
    return Comprehension("generator", expression(low, node.elt), _clauses(low, node.for_in), at=low.at[node])


def _list_comprehension(low: Lowering, node: cst.ListComp) -> Expression:
    return Comprehension("list", expression(low, node.elt), _clauses(low, node.for_in), at=low.at[node])


def _set_comprehension(low: Lowering, node: cst.SetComp) -> Expression:
    return Comprehension("set", expression(low, node.elt), _clauses(low, node.for_in), at=low.at[node])


def _dict_comprehension(low: Lowering, node: Any) -> Expression:
    key = optional(low, getattr(node, "key", None))
    value = expression(low, node.value)
    first = value if key is None else key
    element = Mapping(((key, value),), at=(*first.at[:2], *value.at[2:]))
    return Comprehension("dict", element, _clauses(low, node.for_in), at=low.at[node])


def _clauses(low: Lowering, node: cst.CompFor | None) -> tuple[Clause, ...]:
    clauses = []
    while node is not None:
        tests = tuple(expression(low, condition.test) for condition in node.ifs)
        clauses.append(Clause(expression(low, node.target), expression(low, node.iter), tests, node.asynchronous is not None))
        node = node.inner_for_in
    return tuple(clauses)


# --- the rest ------------------------------------------------------------------------------------------------------------------------


def _unknown(low: Lowering, node: cst.CSTNode) -> Expression:
    return Unknown(tuple(_parts(low, node)), at=low.at.get(node, NOWHERE))


def _parts(low: Lowering, node: cst.CSTNode) -> Iterator[Expression]:
    for child in node.children:
        if type(child) in EXPRESSIONS:
            yield expression(low, child)
        else:
            yield from _parts(low, child)


# What leans to the left, with the field that holds its left side, and what is made of both.
_LEFT: dict[type[cst.CSTNode], str] = {cst.Attribute: "value", cst.BinaryOperation: "left", cst.Call: "func", cst.Subscript: "value"}
_LINKS: dict[type[cst.CSTNode], Callable[[Lowering, Any, Expression], Expression]] = {
    cst.Attribute: _attribute,
    cst.BinaryOperation: _binary,
    cst.Call: _call,
    cst.Subscript: _subscript,
}
EXPRESSIONS: dict[type[cst.CSTNode], Handler] = {
    cst.Attribute: _chain,
    cst.Await: _await,
    cst.BinaryOperation: _chain,
    cst.BooleanOperation: _boolean,
    cst.Call: _chain,
    cst.Comparison: _comparison,
    cst.ConcatenatedString: _concatenated,
    cst.Dict: _dict,
    cst.DictComp: _dict_comprehension,
    cst.Ellipsis: _ellipsis,
    cst.Float: _number,
    cst.FormattedString: _formatted,
    cst.GeneratorExp: _generator,
    cst.IfExp: _conditional,
    cst.Imaginary: _number,
    cst.Integer: _number,
    cst.List: _list,
    cst.ListComp: _list_comprehension,
    cst.Name: _name,
    cst.NamedExpr: _walrus,
    cst.Set: _set,
    cst.SetComp: _set_comprehension,
    cst.SimpleString: _simple_string,
    cst.StarredElement: _starred,
    cst.Subscript: _chain,
    cst.Tuple: _tuple,
    cst.UnaryOperation: _unary,
    cst.Yield: _yield,
}
# Newer than the oldest libcst that will do.
for _kind, _handler in (("TemplatedString", _formatted), ("StarredDictComp", _dict_comprehension)):
    if hasattr(cst, _kind):
        EXPRESSIONS[getattr(cst, _kind)] = _handler
