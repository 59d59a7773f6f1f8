"""Lowers Python statements and definitions, and with them whole modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import libcst as cst

from streamlint.frontends.python_expressions import BINARY, dotted, expression, optional
from streamlint.frontends.python_lowering import Lowering, define_class, define_function, named_tuple, note_import
from streamlint.frontends.python_patterns import pattern, switch_labels
from streamlint.frontends.python_positions import positions
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


def lower_module(path: str, text: str, tree: cst.Module) -> Module:
    """Lower a parsed file."""
    module = Module(path, "python", [], text)
    low = Lowering(module, positions(tree, text), split_lines(text), [], {})
    module.body = _statements(low, tree.body)
    module.imports = low.inner | module.imports
    return module


def _statements(low: Lowering, nodes: Iterable[cst.CSTNode]) -> Body:
    body: Body = []
    for node in nodes:
        parts = node.body if isinstance(node, cst.SimpleStatementLine) else (node,)
        for part in parts:
            lowered = STATEMENTS.get(type(part), _unknown)(low, part)
            if lowered is not None:
                body.append(lowered)
    return body


def _suite(low: Lowering, node: cst.BaseSuite) -> Body:
    return _statements(low, node.body)


def _otherwise(low: Lowering, node: cst.Else | cst.Finally | None) -> Body:
    return [] if node is None else _suite(low, node.body)


def _unknown(low: Lowering, node: cst.CSTNode) -> Statement | None:
    value = expression(low, node)
    return ExprStatement(value, at=value.at)


# --- small statements ------------------------------------------------------------------------------------------------------------


def _expression(low: Lowering, node: cst.Expr) -> Statement | None:
    value = expression(low, node.value)
    docstring = isinstance(value, Const) and isinstance(value.value, str)
    return None if docstring else ExprStatement(value, at=low.at[node])


def _assign(low: Lowering, node: cst.Assign) -> Statement:
    value = expression(low, node.value)
    if isinstance(value, Call) and len(node.targets) == 1 and isinstance(target := node.targets[0].target, cst.Name):
        made = named_tuple(low, target.value, value, low.at[node])
        if made is not None:
            return made
    return Assign(tuple(expression(low, target.target) for target in node.targets), value, at=low.at[node])


def _annotated(low: Lowering, node: cst.AnnAssign) -> Statement:
    given = annotation(low, node.annotation.annotation)
    return Assign((expression(low, node.target),), optional(low, node.value), annotation=given, at=low.at[node])


def _augmented(low: Lowering, node: cst.AugAssign) -> Statement:
    return Assign((expression(low, node.target),), expression(low, node.value), AUGMENTED[type(node.operator)], at=low.at[node])


def _type_alias(low: Lowering, node: cst.TypeAlias) -> Statement:
    return Assign((expression(low, node.name),), expression(low, node.value), at=low.at[node])


def _return(low: Lowering, node: cst.Return) -> Statement:
    return Return(optional(low, node.value), at=low.at[node])


def _raise(low: Lowering, node: cst.Raise) -> Statement:
    return Raise(optional(low, node.exc), at=low.at[node])


def _assert(low: Lowering, node: cst.Assert) -> Statement:
    return Assert(expression(low, node.test), at=low.at[node])


def _delete(low: Lowering, node: cst.Del) -> Statement:
    target = expression(low, node.target)
    return Delete(target.items if isinstance(target, Collection) else (target,), at=low.at[node])


def _pass(low: Lowering, node: cst.Pass) -> None:
    return None


def _break(low: Lowering, node: cst.Break) -> Statement:
    return Break(at=low.at[node])


def _continue(low: Lowering, node: cst.Continue) -> Statement:
    return Continue(at=low.at[node])


def _global(low: Lowering, node: cst.Global) -> Statement:
    return Scope(tuple(item.name.value for item in node.names), outermost=True, at=low.at[node])


def _nonlocal(low: Lowering, node: cst.Nonlocal) -> Statement:
    return Scope(tuple(item.name.value for item in node.names), outermost=False, at=low.at[node])


# --- imports ---------------------------------------------------------------------------------------------------------------------


def _import(low: Lowering, node: Any) -> Statement:
    names: list[tuple[str, str, str | None]] = []
    for alias in node.names:
        module = dotted(alias.name)
        if alias.asname is None:
            module = module.partition(".")[0]
        local = alias.asname.name.value if alias.asname else module
        names.append((local, module, None))
        note_import(low, local, module)
    return Import(names, at=low.at[node])


def _import_from(low: Lowering, node: Any) -> Statement:
    module = "." * len(node.relative) + (dotted(node.module) if node.module else "")
    if isinstance(node.names, cst.ImportStar):
        return Import([("*", module, "*")], at=low.at[node])
    names: list[tuple[str, str, str | None]] = []
    for alias in node.names:
        local = alias.asname.name.value if alias.asname else alias.name.value
        names.append((local, module, alias.name.value))
        note_import(low, local, module + ("" if module.endswith(".") else ".") + alias.name.value)
    return Import(names, at=low.at[node])


# --- compound statements ----------------------------------------------------------------------------------------------------------


def _if(low: Lowering, node: cst.If) -> Statement:
    test, then = expression(low, node.test), _suite(low, node.body)
    otherwise = _statements(low, [node.orelse]) if isinstance(node.orelse, cst.If) else _otherwise(low, node.orelse)
    return If(test, then, otherwise, at=low.at[node])


def _for(low: Lowering, node: cst.For) -> Statement:
    iterable, target = expression(low, node.iter), expression(low, node.target)
    body = _suite(low, node.body)
    otherwise, is_async = _otherwise(low, node.orelse), node.asynchronous is not None
    return Loop("for", body, target=target, iterable=iterable, otherwise=otherwise, is_async=is_async, at=low.at[node])


def _while(low: Lowering, node: cst.While) -> Statement:
    test, body = expression(low, node.test), _suite(low, node.body)
    return Loop("while", body, test=test, otherwise=_otherwise(low, node.orelse), at=low.at[node])


def _with(low: Lowering, node: cst.With) -> Statement:
    items = tuple((expression(low, item.item), _bound(low, item.asname)) for item in node.items)
    return With(items, _suite(low, node.body), node.asynchronous is not None, at=low.at[node])


def _bound(low: Lowering, node: cst.AsName | None) -> Expression | None:
    return None if node is None else expression(low, node.name)


def _try(low: Lowering, node: cst.Try | cst.TryStar) -> Statement:
    body = _suite(low, node.body)
    handlers = [_handler(low, handler) for handler in node.handlers]
    otherwise, final, group = _otherwise(low, node.orelse), _otherwise(low, node.finalbody), isinstance(node, cst.TryStar)
    return Try(body, handlers, otherwise, final, group, at=low.at[node])


def _handler(low: Lowering, node: cst.ExceptHandler | cst.ExceptStarHandler) -> Handler:
    name = node.name.name.value if node.name and isinstance(node.name.name, cst.Name) else None
    return Handler(optional(low, node.type), name, _suite(low, node.body))


def _match(low: Lowering, node: cst.Match) -> Statement:
    subject = expression(low, node.subject)
    cases: list[tuple[tuple[Expression, ...], Body]] = []
    patterns: list[Case] = []
    for case in node.cases:
        labels, bindings = switch_labels(low, node.subject, case)
        cases.append((labels, [*bindings, *_suite(low, case.body)]))
        guard = optional(low, case.guard)
        patterns.append(Case(pattern(low, case.pattern), guard, len(bindings)))
    return Switch(subject, cases, tuple(patterns), at=low.at[node])


# --- definitions -------------------------------------------------------------------------------------------------------------------


def _function(low: Lowering, node: cst.FunctionDef) -> Statement | None:
    name = node.name.value
    function = Function(
        name,
        low.qualname(name),
        params(low, node.params),
        [],
        decorators=_decorators(low, node.decorators),
        is_async=node.asynchronous is not None,
        annotation=annotation(low, node.returns.annotation) if node.returns else None,
        at=low.at[node],
    )
    return define_function(low, function, lambda: _suite(low, node.body))


def _decorators(low: Lowering, decorators: Sequence[cst.Decorator]) -> tuple[Expression, ...]:
    return tuple(expression(low, decorator.decorator) for decorator in decorators)


def _class(low: Lowering, node: cst.ClassDef) -> Statement | None:
    name = node.name.value
    bases = tuple(_base(low, base) for base in node.bases)
    definition = Class(name, low.qualname(name), bases, {}, decorators=_decorators(low, node.decorators), at=low.at[node])
    definition.keywords = tuple(_keyword(low, one) for one in node.keywords)
    return define_class(low, definition, lambda: _suite(low, node.body))


def _keyword(low: Lowering, node: cst.Arg) -> Arg:
    return Arg(expression(low, node.value), node.keyword.value if node.keyword else None, len(node.star))


def _base(low: Lowering, node: cst.Arg) -> Expression:
    value = expression(low, node.value)
    return Starred(value, at=value.at) if node.star else value


AUGMENTED: dict[type[cst.CSTNode], str] = {getattr(cst, f"{kind.__name__}Assign"): op for kind, op in BINARY.items()}

STATEMENTS: dict[type[cst.CSTNode], Callable[[Lowering, Any], Statement | None]] = {
    cst.AnnAssign: _annotated,
    cst.Assert: _assert,
    cst.Assign: _assign,
    cst.AugAssign: _augmented,
    cst.Break: _break,
    cst.ClassDef: _class,
    cst.Continue: _continue,
    cst.Del: _delete,
    cst.Expr: _expression,
    cst.For: _for,
    cst.FunctionDef: _function,
    cst.Global: _global,
    cst.If: _if,
    cst.Import: _import,
    cst.ImportFrom: _import_from,
    cst.Match: _match,
    cst.Nonlocal: _nonlocal,
    cst.Pass: _pass,
    cst.Raise: _raise,
    cst.Return: _return,
    cst.Try: _try,
    cst.TryStar: _try,
    cst.TypeAlias: _type_alias,
    cst.While: _while,
    cst.With: _with,
}
# Newer than the oldest libcst that will do.
for _kind, _lower in (("LazyImport", _import), ("LazyImportFrom", _import_from)):
    if hasattr(cst, _kind):
        STATEMENTS[getattr(cst, _kind)] = _lower
