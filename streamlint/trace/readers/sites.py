"""What a function's source does and in which order: its calls, and the places where Python calls a method by itself.

A profiler names functions and operators, not lines. A `Site` is a place in the source that could have made such an event: a call by the
name it is written with, an operator, a subscript, a truth test, a step of a loop, the two ends of a `with`, a value in an f-string.
Lines are those that a traceback would give (CPython 3.10 to 3.14): of a call on an attribute the line of the attribute's name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from streamlint.support.records import field, record
from streamlint.trace.readers.syntax import BUILTIN, OPERATORS, STEP, TEXT, TRUTH, is_plain, makers, names_called

_COMPREHENSIONS = {ast.ListComp: "<listcomp>", ast.SetComp: "<setcomp>", ast.DictComp: "<dictcomp>", ast.GeneratorExp: "<genexpr>"}


@record(frozen=True, slots=True)
class Site:
    """A place in a function. ``names`` are what could be seen of it; ``opaque`` says that a call's name says nothing of what it calls."""

    line: int
    names: tuple[str, ...]
    opaque: bool = False
    attribute: bool = False  # only a property would be seen
    region: int = 0  # the innermost one around it, an index into the function's regions


@record(slots=True)
class Region:
    """A part of a function that may be passed over: a branch or a loop. Its sites are ``begin`` to ``end`` (exclusive)."""

    begin: int
    parent: int  # -1 of the whole function
    end: int = 0
    loop: bool = False
    choice: int = -1  # branches with the same number exclude each other


@record(frozen=True, slots=True)
class Jump:
    """A `break`, `continue`, `return` or `raise`: it stands before the site of its position."""

    kind: str
    position: int
    region: int


@record(slots=True)
class Body:
    """The sites of a function in the order in which they are reached."""

    name: str  # qualified
    first_line: int
    sites: list[Site] = field(default_factory=list)
    regions: list[Region] = field(default_factory=lambda: [Region(0, -1)])  # the whole function first
    jumps: list[Jump] = field(default_factory=list)
    resumes: bool = False  # a generator or coroutine: it may go on in the middle


def bodies(tree: ast.Module) -> dict[tuple[str, int], Body]:
    """The bodies of a module by the name and first line of their code objects; that of the module itself under line 0.

    A function's first line is that of its first decorator.
    """
    found: dict[tuple[str, int], Body] = {("<module>", 0): _body("<module>", 1, tree.body)}
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, outer = waiting.pop()
        for child in ast.iter_child_nodes(node):
            name, inner = _named(child), outer
            if name:
                first = min([child.lineno, *(one.lineno for one in getattr(child, "decorator_list", ()))])  # type: ignore[attr-defined]
                body = found.setdefault((name, first), _body(outer + name, first, _statements(child)))
                inner = body.name + ("." if isinstance(child, ast.ClassDef) else ".<locals>.")
            waiting.append((child, inner))
    return found


def _named(node: ast.AST) -> str:
    """The name of the code object that a node makes, "" where it makes none."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return node.name
    return "<lambda>" if isinstance(node, ast.Lambda) else _COMPREHENSIONS.get(type(node), "")


def _statements(node: ast.AST) -> Sequence[ast.AST]:
    body = getattr(node, "body", None)
    return body if isinstance(body, list) else [body] if isinstance(body, ast.AST) else [node]


def _body(name: str, first: int, nodes: Iterable[ast.AST]) -> Body:
    body = Body(name, first)
    order = _Order(body)
    for node in nodes:
        if type(node) in _COMPREHENSIONS:
            order.comprehension(node)
        else:
            order.visit(node)
    body.regions[0].end = len(body.sites)
    return body


class _Order:
    """Goes through a function's nodes in the order of evaluation."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.region = 0
        self.made_by: dict[str, tuple[str, ...]] = {}  # by variable: the functions of what was assigned

    def visit(self, node: ast.AST | None) -> None:
        """Take up what a node does, after what its parts do."""
        if node is None:
            return
        special = getattr(self, f"_{type(node).__name__.lower()}", None)
        if special is not None:
            special(node)
        else:
            self.each(ast.iter_child_nodes(node))

    def each(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            self.visit(node)

    def site(self, line: int, *names: str, opaque: bool = False, attribute: bool = False) -> None:
        self.body.sites.append(Site(line, names, opaque, attribute, self.region))

    def begin(self, loop: bool = False, choice: int = -1) -> None:
        """Open a region."""
        self.body.regions.append(Region(len(self.body.sites), self.region, loop=loop, choice=choice))
        self.region = len(self.body.regions) - 1

    def end(self) -> None:
        """Close the region that was opened last."""
        region = self.body.regions[self.region]
        region.end = len(self.body.sites)
        self.region = region.parent

    def maybe(self, nodes: Iterable[ast.AST | None], choice: int = -1) -> None:
        """Nodes that may be passed over."""
        self.begin(choice=choice)
        self.each(nodes)
        self.end()

    def either(self, *branches: Iterable[ast.AST | None]) -> None:
        """Branches of which one is taken."""
        choice = len(self.body.regions)
        for branch in branches:
            self.maybe(branch, choice)

    def truth(self, node: ast.AST) -> None:
        """A test: of each operand of `and` and `or` by itself, as they are compiled."""
        if isinstance(node, ast.BoolOp):
            self.truths(node.values)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.truth(node.operand)
        else:
            self.visit(node)
            if not is_plain(node):
                self.site(node.lineno, *TRUTH)  # type: ignore[attr-defined]

    def truths(self, values: Sequence[ast.AST], last: bool = True) -> None:
        """Operands of `and` or `or`: each is reached through the one before it. ``last``: the last one is tested as well."""
        for number, value in enumerate(values):
            if last or number < len(values) - 1:
                self.truth(value)
            else:
                self.visit(value)
            self.begin()
        for _ in values:
            self.end()

    # Expressions

    def _call(self, node: ast.Call) -> None:
        self.each((node.func, *node.args, *node.keywords))
        function, line = node.func, node.lineno
        if isinstance(function, ast.Attribute):
            self.site(function.end_lineno or line, function.attr, opaque=True)
        elif isinstance(function, ast.Name):
            self.site(line, *names_called(function.id), opaque=function.id not in BUILTIN)
        else:
            self.site(line, opaque=True)

    def _attribute(self, node: ast.Attribute) -> None:
        self.visit(node.value)
        self.site(node.end_lineno or node.lineno, node.attr, attribute=True)

    def _subscript(self, node: ast.Subscript) -> None:
        self.each((node.value, node.slice))
        name = {ast.Load: "getitem", ast.Store: "setitem", ast.Del: "delitem"}[type(node.ctx)]
        self.site(node.lineno, f"__{name}__", "__index__")

    def _binop(self, node: ast.BinOp) -> None:
        self.each((node.left, node.right))
        name = OPERATORS[type(node.op)]
        self.site(node.lineno, f"__{name}__", f"__r{name}__")

    def _unaryop(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self.truth(node.operand)
            return
        self.visit(node.operand)
        if not isinstance(node.operand, ast.Constant):
            self.site(node.lineno, f"__{OPERATORS[type(node.op)]}__")

    def _compare(self, node: ast.Compare) -> None:
        self.visit(node.left)
        for number, (operator, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            self.visit(right)
            if name := OPERATORS.get(type(operator)):
                self.site(node.lineno, f"__{name}__")
            if number < len(node.ops) - 1:
                self.site(node.lineno, *TRUTH)

    def _boolop(self, node: ast.BoolOp) -> None:
        self.truths(node.values, last=False)

    def _ifexp(self, node: ast.IfExp) -> None:
        self.truth(node.test)
        self.either([node.body], [node.orelse])

    def _formattedvalue(self, node: ast.FormattedValue) -> None:
        self.each((node.value, node.format_spec))
        self.site(node.lineno, *TEXT)

    def _lambda(self, node: ast.Lambda) -> None:
        self.each((*node.args.defaults, *node.args.kw_defaults))

    def _yield(self, node: ast.Yield | ast.YieldFrom | ast.Await) -> None:
        self.body.resumes = True
        self.visit(node.value)

    _yieldfrom = _await = _yield

    def _listcomp(self, node: ast.expr) -> None:
        self.site(node.lineno, _COMPREHENSIONS[type(node)])
        self.comprehension(node)

    _setcomp = _dictcomp = _listcomp

    def _generatorexp(self, node: ast.GeneratorExp) -> None:
        self.visit(node.generators[0].iter)  # the rest is code of its own

    def comprehension(self, node: ast.AST) -> None:
        """A comprehension's parts: since Python 3.12 they belong to the function around it."""
        generators: list[ast.comprehension] = node.generators  # type: ignore[attr-defined]
        self.body.resumes |= isinstance(node, ast.GeneratorExp)
        for one in generators:
            self.visit(one.iter)
            self.begin(loop=True)
            self.site(one.iter.lineno, *STEP, *makers(one.iter, self.made_by))
            for test in one.ifs:
                self.truth(test)
        parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)  # type: ignore[attr-defined]
        self.each(parts)
        for _ in generators:
            self.end()

    # Statements

    def _assign(self, node: ast.Assign) -> None:
        self.each((node.value, *node.targets))
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.made_by[target.id] = makers(node.value, self.made_by)

    def _annassign(self, node: ast.AnnAssign) -> None:
        self.each((node.value, node.target))

    def _augassign(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Subscript):
            self.each((target.value, target.slice))
            self.site(target.lineno, "__getitem__", "__index__")
        self.visit(node.value)
        name = OPERATORS[type(node.op)]
        self.site(node.lineno, f"__i{name}__", f"__{name}__", f"__r{name}__")
        if isinstance(target, ast.Subscript):
            self.site(target.lineno, "__setitem__")

    def _tuple(self, node: ast.Tuple | ast.List) -> None:
        if isinstance(node.ctx, ast.Store):
            self.site(node.lineno, "__iter__", "unbind", "__getitem__")
        self.each(node.elts)

    _list = _tuple

    def _if(self, node: ast.If) -> None:
        self.truth(node.test)
        self.either(node.body, node.orelse)

    def _assert(self, node: ast.Assert) -> None:
        self.truth(node.test)
        self.maybe([node.msg])

    def _while(self, node: ast.While) -> None:
        self.begin(loop=True)
        self.truth(node.test)
        self.each(node.body)
        self.end()
        self.maybe(node.orelse)

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self.site(node.iter.lineno, "__iter__")
        self.begin(loop=True)
        self.site(node.iter.lineno, *STEP, "__anext__", *makers(node.iter, self.made_by))
        self.each((node.target, *node.body))
        self.end()
        self.maybe(node.orelse)

    _asyncfor = _for

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        lines = []
        for item in node.items:
            self.visit(item.context_expr)
            lines.append(item.context_expr.lineno)
            self.site(lines[-1], "__enter__", "__aenter__")
            self.visit(item.optional_vars)
        self.each(node.body)
        for line in reversed(lines):
            self.site(line, "__exit__", "__aexit__")

    _asyncwith = _with

    def _try(self, node: ast.Try) -> None:
        self.each(node.body)
        self.either(*([one] for one in node.handlers), node.orelse)
        self.each(node.finalbody)

    _trystar = _try

    def _match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        self.either(*((case.guard, *case.body) for case in node.cases))

    def _jump(self, node: ast.Break | ast.Continue | ast.Return | ast.Raise) -> None:
        self.each(ast.iter_child_nodes(node))
        self.body.jumps.append(Jump(type(node).__name__.lower(), len(self.body.sites), self.region))

    _break = _continue = _return = _raise = _jump

    def _functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.each((*node.decorator_list, *node.args.defaults, *node.args.kw_defaults))

    _asyncfunctiondef = _functiondef

    def _classdef(self, node: ast.ClassDef) -> None:
        self.each((*node.decorator_list, *node.bases, *node.keywords))
        self.site(node.lineno, node.name)  # its body runs here
