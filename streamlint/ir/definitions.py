"""Lowers definitions: functions, lambdas, generator expressions and classes, each to a code of its own."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.ir import opcodes as op
from streamlint.ir.addresses import AddressLowering
from streamlint.ir.code import ClassIR, Code, FieldIR, Parameter
from streamlint.ir.lowering import annotation_text, template_argument, type_tuple
from streamlint.ir.scopes import NameScope, bound_names, class_scope, scope_of
from streamlint.ir.statements import STATEMENTS
from streamlint.program import (
    Arg,
    Class,
    ClassDef,
    Comprehension,
    Expression,
    Field,
    Function,
    FunctionDef,
    Name,
    Param,
    Position,
    Starred,
    walk,
)


class DefinitionLowering(AddressLowering):
    """Lowers what defines something."""

    def nested(self, code: Code, scope: NameScope) -> DefinitionLowering:
        """The lowering of a code that is defined here: it sees the cells of this one."""
        inner = type(self)(self.module, code, scope, self.is_cpp)
        outside = scope.free()
        if self.code.kind == "class":
            inner.free = {name: cell for name in outside if (cell := self.free.get(name)) is not None}
        else:
            inner.free = {name: cell for name in outside if (cell := self.visible(name)) is not None}
        return inner

    # --- functions

    def _function(self, node: FunctionDef) -> None:
        self.define_function(node.function)

    def define_function(self, function: Function) -> None:
        """A ``def``: closure, decorators, name."""
        decorators = [self.value(one) for one in function.decorators]
        value = self.decorated(self.closure(function), decorators, function.decorators)
        self.write_name(function.name, value, function.at)

    def decorated(self, value: int, decorators: list[int], nodes: tuple[Expression, ...]) -> int:
        """The value behind its decorators, the innermost applied first."""
        for decorator, node in zip(reversed(decorators), reversed(nodes), strict=True):
            value = self.emit(op.CALL, node.at, decorator, op.NONE, value)
        return value

    def closure(self, function: Function) -> int:
        """A function value. Python evaluates defaults where it is defined, C++ where it is called."""
        known = self.module.numbers.get(function)
        if known is not None:
            if self.code.kind == "class":
                self.methods.append((function.name, known))
            return self.builder.define(op.FUNCTION, function.at, known)
        kind = "lambda" if function.is_lambda else "function"
        scope = scope_of(function, self.is_cpp)
        captured = [name for name, _ in function.initialisers] if function.is_lambda else []
        scope.bound.update(captured)
        code = self.module.new_code(function.name, function.qualname, kind, function.at[0], self.code.number)
        self.module.numbers[function] = code.number
        if self.code.kind == "class" and not function.is_lambda:
            self.methods.append((function.name, code.number))
        self.describe(code, function)
        inner = self.nested(code, scope)
        defaults: list[int] = []
        if not self.is_cpp:
            defaults = [self.value(param.default) for param in function.params if param.default is not None]
        elif captured:
            defaults = [self.value(arguments[0].value) for _, arguments in function.initialisers]
        inner.function_body(function, captured)
        return self.builder.define(op.FUNCTION, function.at, code.number, *defaults)

    def describe(self, code: Code, function: Function) -> None:
        """What the head of a function says of its code."""
        code.class_name = function.class_name
        code.flags = _flags(function)
        code.decorators = tuple(annotation_text(one) for one in function.decorators)
        code.template, code.stores = function.template, tuple(sorted(function.stores))
        code.symbols = tuple(sorted(function.symbols))
        code.parts = _parts(function)
        code.specialised = tuple(map(template_argument, function.specialised))
        code.returns = type_tuple(function.returns) if function.returns else annotation_text(function.annotation)
        if self.is_cpp and function.annotation is not None:
            code.declared[op.NONE] = annotation_text(function.annotation)

    def function_body(self, function: Function, captured: Iterable[str] = ()) -> None:
        """Parameters, then the statements."""
        self.parameters(function.params, captured)
        self.body(function.body)
        self.finish(function.at)

    def parameters(self, params: list[Param], captured: Iterable[str] = ()) -> None:
        """Each parameter's first value."""
        described = [self.parameter(param) for param in params]
        described += [Parameter(name, "captured", True, "", None) for name in captured]
        self.code.parameters = tuple(described)
        for index, param in enumerate(described):
            value = self.builder.define(op.PARAM, self.builder_at, index)
            if param.name:
                self.write_name(param.name, value, self.builder_at)

    @property
    def builder_at(self) -> Position:
        """Where parameters stand: on the function's first row."""
        return self.code.first_row, 1, self.code.first_row, 1

    def parameter(self, param: Param) -> Parameter:
        """What is known of a parameter before anybody calls."""
        return Parameter(param.name, param.kind, param.default is not None, annotation_text(param.annotation), type_tuple(param.type))

    def finish(self, at: Position) -> None:
        """The end of the body is a return, and the code is complete."""
        if not self.builder.ended:
            self.leave_to(0, lambda: self.end(op.NONE, at))
        self.builder.finish()
        self.code.cells = tuple(self.named_cells)

    # --- generator expressions

    def target_names(self, target: Expression) -> list[str]:
        return bound_names(target)

    def generator(self, node: Comprehension) -> int:
        """A generator of its own; the first iterable is evaluated here, and so are the local variables that it reads."""
        first = self.value(node.clauses[0].iterable)
        scope = _generator_scope(node)
        read = sorted(name for name in scope.used - scope.bound if self.variable(name) in self.locals - self.cells)
        scope.bound.update((".0", *read))
        code = self.module.new_code("<genexpr>", f"{self.code.qualname}.<genexpr>", "generator", node.at[0], self.code.number)
        code.class_name = self.code.class_name
        code.flags = frozenset({"generator"})
        values = [self.read_name(name, node.at) for name in read]
        self.nested(code, scope).generator_body(node, read)
        function = self.builder.define(op.FUNCTION, node.at, code.number, *values)
        return self.emit(op.CALL, node.at, function, op.NONE, first)

    def generator_body(self, node: Comprehension, captured: list[str]) -> None:
        """The loops of a generator expression around its ``yield``."""
        self.parameters([Param(".0")], captured)
        first = self.source_of(self.read_name(".0", node.at), node.clauses[0].iterable.at)
        self.clauses(node.clauses, lambda: self.yield_element(node), first)
        self.finish(node.at)

    def yield_element(self, node: Comprehension) -> None:
        """One element."""
        self.emit(op.YIELD, node.element.at, self.value(node.element))

    # --- classes

    def _class(self, node: ClassDef) -> None:
        self.define_class(node.definition)

    def define_class(self, definition: Class) -> None:
        """A class: bases, body, decorators, name."""
        decorators = [self.value(one) for one in definition.decorators]
        given = [Arg(base, None, int(isinstance(base, Starred))) for base in definition.bases]
        shape, bases = self.arguments((*given, *definition.keywords))
        number = self.class_body(definition)
        value = self.builder.define(op.CLASS, definition.at, number, shape, *bases)
        value = self.decorated(value, decorators, definition.decorators)
        self.write_name(definition.name, value, definition.at)

    def class_body(self, definition: Class) -> int:
        """The code of a class's body, and what is known of the class without running it."""
        number = self.module.reserve_class()
        code = self.module.new_code(definition.name, definition.qualname, "class", definition.at[0], self.code.number)
        code.class_name = definition.qualname
        inner = self.nested(code, class_scope(definition, self.is_cpp))
        inner.class_statements(definition)
        self.module.classes[number] = ClassIR(
            number,
            definition.name,
            definition.qualname,
            code.number,
            self.code.number,
            tuple(annotation_text(base) for base in definition.bases),
            tuple(inner.methods),
            tuple(map(_field, definition.fields)),
            definition.template,
            definition.at[0],
            tuple(annotation_text(one) for one in definition.decorators),
            tuple((one.keyword or "", annotation_text(one.value)) for one in definition.keywords),
            tuple(map(template_argument, definition.specialised)),
        )
        return number

    def class_statements(self, definition: Class) -> None:
        """The members of a class in the order in which they stand."""
        members: list[Function | Class | Field] = [*definition.fields, *definition.classes.values()]
        for overloads in definition.methods.values():
            members += overloads
        members = list(dict.fromkeys(members))  # Cython: one may have two names
        rest = [(statement.at, statement) for statement in definition.body]
        ordered = sorted([*((one.at, one) for one in members), *rest], key=lambda pair: pair[0][:2])
        known: tuple[Expression | None, int] = None, op.NONE  # ``a = b = f()``: a field each, of one value
        for _, member in ordered:
            if isinstance(member, Function):
                self.define_function(member)
            elif isinstance(member, Class):
                self.define_class(member)
            elif isinstance(member, Field):
                known = self.field(member, known)
            else:
                self.body([member])
        self.finish(definition.at)

    def field(self, member: Field, known: tuple[Expression | None, int]) -> tuple[Expression | None, int]:
        """A class attribute with a value; ``known`` is the value of the one before, and the register that holds it."""
        if member.value is None:
            return known
        value = known[1] if member.value is known[0] else self.value(member.value)
        self.write_name(member.name, value, member.at)
        return member.value, value


def _flags(function: Function) -> frozenset[str]:
    named = {"async": function.is_async, "generator": function.is_generator, "static": function.static, "waits": function.waits}
    return frozenset(name for name, is_set in named.items() if is_set) | ({function.space} - {"host"})


def _generator_scope(node: Comprehension) -> NameScope:
    """The names of a generator expression; what nested functions in it share is found as in any body."""
    scope = NameScope()
    for clause in node.clauses:
        scope.bound.update(bound_names(clause.target))
    first = node.clauses[0]
    below: list[object] = [node.element, *first.tests]
    for clause in node.clauses[1:]:
        below += [clause.iterable, *clause.tests]
    for root in below:
        scope.used.update(one.id for one in walk(root) if isinstance(one, Name))
    return scope


STATEMENTS[FunctionDef] = DefinitionLowering._function
STATEMENTS[ClassDef] = DefinitionLowering._class


def _parts(function: Function) -> dict[str, tuple[str, ...]]:
    """What a kernel touches of its pointers: elements by name, what atomic operations of one kind add to, what arguments move."""
    found = {name: ("placed", *sorted(movers)) for name, movers in function.placed.items()}
    found.update({name: ("adds", kind) for name, kind in function.accumulates.items()})
    found.update({name: ("elements", *elements) for name, elements in function.elements.items()})
    return found


def _field(one: Field) -> FieldIR:
    return FieldIR(one.name, annotation_text(one.annotation), type_tuple(one.type), one.static, one.private)
