"""Lowers statements and definitions of Python's own tree, and with them whole modules."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from streamlint.frontends.python_expressions import BINARY, expression, optional
from streamlint.frontends.python_lowering import Lowering, define_class, define_function, named_tuple, note_import
from streamlint.frontends.python_patterns import case_of
from streamlint.frontends.python_positions import Places
from streamlint.frontends.python_signatures import annotation, params
from streamlint.program import (
    Arg,
    Assert,
    Assign,
    Body,
    Break,
    Call,
    Case,
    Class,
    Collection,
    Const,
    Continue,
    Delete,
    Expression,
    ExprStatement,
    Function,
    Handler,
    If,
    Import,
    Loop,
    Module,
    Raise,
    Return,
    Scope,
    Starred,
    Statement,
    Switch,
    Try,
    With,
)
from streamlint.support.lines import split_lines

_GROUP = re.compile(r"except\s*\*")


def lower_module(path: str, text: str, read: str, tree: ast.Module) -> Module:
    """Lower a parsed file; ``read`` is its text as the parser read it."""
    module = Module(path, "python", [], text)
    low = Lowering(module, Places(read, split_lines(read)), [], {})
    module.body = _statements(low, tree.body)
    module.imports = low.inner | module.imports
    return module


def _statements(low: Lowering, nodes: Iterable[ast.stmt]) -> Body:
    body: Body = []
    for node in nodes:
        lowered = STATEMENTS[type(node)](low, node)
        if lowered is not None:
            body.append(lowered)
    return body


# --- small statements ------------------------------------------------------------------------------------------------------------


def _expression(low: Lowering, node: ast.Expr) -> Statement | None:
    value = expression(low, node.value)
    docstring = isinstance(value, Const) and isinstance(value.value, str)
    return None if docstring else ExprStatement(value, at=low.at[node])


def _assign(low: Lowering, node: ast.Assign) -> Statement:
    value = expression(low, node.value)
    if isinstance(value, Call) and len(node.targets) == 1 and isinstance(target := node.targets[0], ast.Name):
        definition = named_tuple(low, target.id, value, low.at[node])
        if definition is not None:
            return definition
    return Assign(tuple(expression(low, target) for target in node.targets), value, at=low.at[node])


def _annotated(low: Lowering, node: ast.AnnAssign) -> Statement:
    given = annotation(low, node.annotation)
    return Assign((expression(low, node.target),), optional(low, node.value), annotation=given, at=low.at[node])


def _augmented(low: Lowering, node: ast.AugAssign) -> Statement:
    return Assign((expression(low, node.target),), expression(low, node.value), BINARY[type(node.op)], at=low.at[node])


def _type_alias(low: Lowering, node: Any) -> Statement:
    return Assign((expression(low, node.name),), expression(low, node.value), at=low.at[node])


def _return(low: Lowering, node: ast.Return) -> Statement:
    return Return(optional(low, node.value), at=low.at[node])


def _raise(low: Lowering, node: ast.Raise) -> Statement:
    return Raise(optional(low, node.exc), at=low.at[node])


def _assert(low: Lowering, node: ast.Assert) -> Statement:
    return Assert(expression(low, node.test), at=low.at[node])


def _delete(low: Lowering, node: ast.Delete) -> Statement:
    targets = tuple(expression(low, target) for target in node.targets)
    if len(targets) == 1 and isinstance(targets[0], Collection):
        targets = targets[0].items
    return Delete(targets, at=low.at[node])


def _pass(low: Lowering, node: ast.Pass) -> None:
    return None


def _break(low: Lowering, node: ast.Break) -> Statement:
    return Break(at=low.at[node])


def _continue(low: Lowering, node: ast.Continue) -> Statement:
    return Continue(at=low.at[node])


def _global(low: Lowering, node: ast.Global) -> Statement:
    return Scope(tuple(node.names), outermost=True, at=low.at[node])


def _nonlocal(low: Lowering, node: ast.Nonlocal) -> Statement:
    return Scope(tuple(node.names), outermost=False, at=low.at[node])


# --- imports ---------------------------------------------------------------------------------------------------------------------


def _import(low: Lowering, node: ast.Import) -> Statement:
    names: list[tuple[str, str, str | None]] = []
    for alias in node.names:
        module = alias.name if alias.asname is not None else alias.name.partition(".")[0]
        local = alias.asname or module
        names.append((local, module, None))
        note_import(low, local, module)
    return Import(names, at=low.at[node])


def _import_from(low: Lowering, node: ast.ImportFrom) -> Statement:
    module = "." * node.level + (node.module or "")
    if node.names[0].name == "*":
        return Import([("*", module, "*")], at=low.at[node])
    names: list[tuple[str, str, str | None]] = []
    for alias in node.names:
        local = alias.asname or alias.name
        names.append((local, module, alias.name))
        note_import(low, local, module + ("" if module.endswith(".") else ".") + alias.name)
    return Import(names, at=low.at[node])


# --- compound statements ----------------------------------------------------------------------------------------------------------


def _if(low: Lowering, node: ast.If) -> Statement:
    test, then = expression(low, node.test), _statements(low, node.body)
    return If(test, then, _statements(low, node.orelse), at=low.at.block(node))


def _for(low: Lowering, node: ast.For | ast.AsyncFor) -> Statement:
    iterable, target = expression(low, node.iter), expression(low, node.target)
    body = _statements(low, node.body)
    otherwise, is_async = _statements(low, node.orelse), isinstance(node, ast.AsyncFor)
    return Loop("for", body, target=target, iterable=iterable, otherwise=otherwise, is_async=is_async, at=low.at.block(node))


def _while(low: Lowering, node: ast.While) -> Statement:
    test, body = expression(low, node.test), _statements(low, node.body)
    return Loop("while", body, test=test, otherwise=_statements(low, node.orelse), at=low.at.block(node))


def _with(low: Lowering, node: ast.With | ast.AsyncWith) -> Statement:
    items = tuple((expression(low, item.context_expr), optional(low, item.optional_vars)) for item in node.items)
    return With(items, _statements(low, node.body), isinstance(node, ast.AsyncWith), at=low.at.block(node))


def _try(low: Lowering, node: Any) -> Statement:
    body = _statements(low, node.body)
    handlers = [Handler(optional(low, one.type), one.name, _statements(low, one.body)) for one in node.handlers]
    otherwise, final = _statements(low, node.orelse), _statements(low, node.finalbody)
    # In the text, since a Python that knows no `except*` is given another one.
    group = bool(handlers) and _GROUP.match(low.module.text, low.at.start(node.handlers[0])) is not None
    return Try(body, handlers, otherwise, final, group, at=low.at.block(node))


def _match(low: Lowering, node: ast.Match) -> Statement:
    subject = expression(low, node.subject)
    cases: list[tuple[tuple[Expression, ...], Body]] = []
    patterns: list[Case] = []
    for case in node.cases:
        labels, bindings, pattern = case_of(low, node.subject, case)
        cases.append((labels, [*bindings, *_statements(low, case.body)]))
        patterns.append(pattern)
    return Switch(subject, cases, tuple(patterns), at=low.at.block(node))


# --- definitions -------------------------------------------------------------------------------------------------------------------


def _function(low: Lowering, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Statement | None:
    name = node.name
    function = Function(
        name,
        low.qualname(name),
        params(low, node.args),
        [],
        decorators=_decorators(low, node.decorator_list),
        is_async=isinstance(node, ast.AsyncFunctionDef),
        annotation=annotation(low, node.returns) if node.returns else None,
        at=low.at.block(node),
    )
    return define_function(low, function, lambda: _statements(low, node.body))


def _decorators(low: Lowering, decorators: Sequence[ast.expr]) -> tuple[Expression, ...]:
    return tuple(expression(low, decorator) for decorator in decorators)


def _class(low: Lowering, node: ast.ClassDef) -> Statement | None:
    name = node.name
    bases = tuple(_base(low, base) for base in node.bases)
    definition = Class(name, low.qualname(name), bases, {}, decorators=_decorators(low, node.decorator_list), at=low.at.block(node))
    definition.keywords = tuple(Arg(expression(low, one.value), one.arg, 0 if one.arg else 2) for one in node.keywords)
    return define_class(low, definition, lambda: _statements(low, node.body))


def _base(low: Lowering, node: ast.expr) -> Expression:
    if not isinstance(node, ast.Starred):
        return expression(low, node)
    value = expression(low, node.value)
    return Starred(value, at=value.at)


STATEMENTS: dict[type[ast.AST], Callable[[Lowering, Any], Statement | None]] = {
    ast.AnnAssign: _annotated,
    ast.Assert: _assert,
    ast.Assign: _assign,
    ast.AsyncFor: _for,
    ast.AsyncFunctionDef: _function,
    ast.AsyncWith: _with,
    ast.AugAssign: _augmented,
    ast.Break: _break,
    ast.ClassDef: _class,
    ast.Continue: _continue,
    ast.Delete: _delete,
    ast.Expr: _expression,
    ast.For: _for,
    ast.FunctionDef: _function,
    ast.Global: _global,
    ast.If: _if,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Match: _match,
    ast.Nonlocal: _nonlocal,
    ast.Pass: _pass,
    ast.Raise: _raise,
    ast.Return: _return,
    ast.Try: _try,
    ast.While: _while,
    ast.With: _with,
}
# Newer than the oldest Python that will do.
for _kind, _lower in (("TryStar", _try), ("TypeAlias", _type_alias)):
    if hasattr(ast, _kind):
        STATEMENTS[getattr(ast, _kind)] = _lower
