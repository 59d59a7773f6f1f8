"""Which names of a function are its own, and which of these closures share: those are cells, all others become registers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from streamlint.program import (
    AddressOf,
    Assign,
    AssignExpr,
    Attr,
    Class,
    ClassDef,
    Collection,
    Comprehension,
    Declare,
    Delete,
    Expression,
    Function,
    FunctionDef,
    Import,
    Index,
    Lambda,
    Loop,
    Name,
    Scope,
    Starred,
    Try,
    With,
    children,
)


class NameScope:
    """The names of one function or class body: those it binds, those it uses, and the scopes inside of it."""

    __slots__ = ("_free", "addressed", "bound", "elsewhere", "inner", "is_class", "is_cpp", "outermost", "used")

    def __init__(self, is_class: bool = False, is_cpp: bool = False) -> None:
        self.is_class = is_class
        self.is_cpp = is_cpp  # only declarations bind
        self.bound: set[str] = set()
        self.used: set[str] = set()
        self.addressed: set[str] = set()  # C++: ``&x``, or ``T& r = x``
        self.outermost: set[str] = set()  # ``global``
        self.elsewhere: set[str] = set()  # ``nonlocal``
        self.inner: list[NameScope] = []
        self._free: set[str] | None = None

    def free(self) -> set[str]:
        """The names that the body, or a scope inside of it, takes from outside."""
        if self._free is None:
            self._free = self._find_free()
        return self._free

    def _find_free(self) -> set[str]:
        wanted = self.used | self.elsewhere
        for scope in self.inner:
            wanted |= scope.free()
        own = set() if self.is_class else self.bound - self.elsewhere
        return (wanted - own if not self.is_class else wanted) - self.outermost

    def shared(self) -> set[str]:
        """The names that must live in memory where they are its own: closures use them, or their address is taken."""
        found: set[str] = set(self.addressed)
        for scope in self.inner:
            found |= scope.free()
        return found


def scope_of(function: Function, cpp: bool) -> NameScope:
    """The scope of a function's parameters and body; a function that another one defines has its scope from there."""
    scope = _SCOPES.pop(id(function), None) or _body_scope(function, cpp)
    if cpp:
        _visit([param.default for param in function.params if param.default is not None], scope)
        if function.class_name and not function.static:
            scope.bound.add("this")
        for _, arguments in function.initialisers:
            _visit(arguments, scope)
    return scope


def _body_scope(function: Function, cpp: bool) -> NameScope:
    scope = NameScope(is_cpp=cpp)
    scope.bound.update(param.name for param in function.params)
    _visit(function.body, scope)
    return scope


def class_scope(definition: Class, cpp: bool) -> NameScope:
    """The scope of a class body: methods do not see its names."""
    scope = _SCOPES.get(id(definition))
    if scope is not None:
        return scope
    scope = _SCOPES[id(definition)] = NameScope(is_class=True, is_cpp=cpp)
    for overloads in definition.methods.values():
        for method in overloads:
            _nested(method, scope)
    for inner in definition.classes.values():
        scope.inner.append(class_scope(inner, cpp))
        _visit(inner.bases, scope)
    _visit(definition.fields, scope)
    _visit(definition.body, scope)
    return scope


def module_scope(body: Iterable[object], cpp: bool) -> NameScope:
    """The scope of statements that stand in a file."""
    scope = NameScope(is_cpp=cpp)
    _visit(body, scope)
    return scope


# Scopes that were read with an enclosing one, by the identity of their function or class; `forget` empties it behind each file.
_SCOPES: dict[int, NameScope] = {}


def forget() -> None:
    """A file is lowered: its scopes are not needed any more."""
    _SCOPES.clear()


def _visit(nodes: Iterable[object], scope: NameScope) -> None:
    stack = list(nodes)
    while stack:
        node = stack.pop()
        kind = node.__class__
        if kind is Name:
            scope.used.add(node.id)  # type: ignore[attr-defined]
            continue
        visit = _VISITS.get(kind)
        below = visit(node, scope) if visit is not None else children(node)
        if below:
            stack.extend(below)


def _nested(function: Function, scope: NameScope) -> None:
    inner = _SCOPES[id(function)] = _body_scope(function, scope.is_cpp)
    scope.inner.append(inner)
    outside: list[object] = [*function.decorators]
    for param in function.params:
        outside += [one for one in (param.default, param.annotation) if one is not None]
    for name, arguments in function.initialisers if function.is_lambda else ():  # captures with an initialiser
        inner.bound.add(name)
        outside += arguments
    _visit(outside, scope)


def bound_names(target: object) -> list[str]:
    """The plain names that an assignment target binds."""
    found: list[str] = []
    stack = [target]
    while stack:
        node = stack.pop()
        if isinstance(node, Name):
            found.append(node.id)
        elif isinstance(node, Collection):
            stack.extend(reversed(node.items))
        elif isinstance(node, Starred):
            stack.append(node.value)
    return found


def _bind(target: Expression | None, scope: NameScope) -> None:
    if target is not None:
        scope.bound.update(bound_names(target))


def _assign(node: Assign, scope: NameScope) -> list[object]:
    for target in node.targets:
        _bind(target, scope)
    return children(node)


def _assign_expression(node: AssignExpr, scope: NameScope) -> list[object]:
    if not scope.is_cpp:
        _bind(node.target, scope)
    return children(node)


def _declare(node: Declare, scope: NameScope) -> list[object]:
    names = (node.name,) if node.name else node.names
    scope.bound.update(names)
    if node.type.reference and isinstance(node.value, Name):
        scope.addressed.add(node.value.id)
    return children(node)


def _address(node: AddressOf, scope: NameScope) -> list[object]:
    inner: object = node.value
    while isinstance(inner, Attr | Index) and not (isinstance(inner, Attr) and inner.arrow):
        inner = inner.value
    if isinstance(inner, Name):
        scope.addressed.add(inner.id)
    return children(node)


def _loop(node: Loop, scope: NameScope) -> list[object]:
    _bind(node.target, scope)
    return children(node)


def _with(node: With, scope: NameScope) -> list[object]:
    below: list[object] = list(node.body)
    for manager, target in node.items:
        _bind(target, scope)
        below.append(manager)
        if target is not None:
            below.append(target)
    return below


def _try(node: Try, scope: NameScope) -> list[object]:
    scope.bound.update(handler.name for handler in node.handlers if handler.name)
    return children(node)


def _delete(node: Delete, scope: NameScope) -> list[object]:
    for target in node.targets:
        _bind(target, scope)
    return children(node)


def _import(node: Import, scope: NameScope) -> None:
    scope.bound.update(name for name, _, _ in node.names if name != "*")


def _scope(node: Scope, scope: NameScope) -> None:
    (scope.outermost if node.outermost else scope.elsewhere).update(node.names)


def _function(node: FunctionDef, scope: NameScope) -> None:
    scope.bound.add(node.function.name)
    _nested(node.function, scope)


def _lambda(node: Lambda, scope: NameScope) -> list[object] | None:
    if node.function.name == "<block>":  # statements as an expression run in place
        return list(node.function.body)
    _nested(node.function, scope)
    return None


def _class(node: ClassDef, scope: NameScope) -> list[object]:
    scope.bound.add(node.definition.name)
    scope.inner.append(class_scope(node.definition, scope.is_cpp))
    return [*node.definition.bases, *node.definition.keywords, *node.definition.decorators]


def _comprehension(node: Comprehension, scope: NameScope) -> list[object]:
    """Its targets are names of their own. One that a lambda inside of it uses is shared: the lowering keeps the names apart."""
    inner = NameScope()
    for clause in node.clauses:
        _bind(clause.target, inner)
    below: list[object] = [node.element]
    for clause in node.clauses:
        below += [clause.iterable, *clause.tests]
    _visit(below, inner)
    scope.used |= inner.used - inner.bound
    for one in inner.inner:
        scope.inner.append(one)
    # ``:=`` binds in the function around.
    targets = {name for clause in node.clauses for name in bound_names(clause.target)}
    scope.bound |= inner.bound - targets
    return []


_VISITS: dict[type, Callable[[Any, NameScope], list[object] | None]] = {
    Assign: _assign,
    AssignExpr: _assign_expression,
    Declare: _declare,
    AddressOf: _address,
    Loop: _loop,
    With: _with,
    Try: _try,
    Delete: _delete,
    Import: _import,
    Scope: _scope,
    FunctionDef: _function,
    Lambda: _lambda,
    ClassDef: _class,
    Comprehension: _comprehension,
}
