"""Lowers expressions. Chains that lean to the left (calls, attributes, subscripts, operators) are lowered in a loop, however long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamlint.ir import opcodes as op
from streamlint.ir.code import TemplateArgument
from streamlint.ir.lowering import PLAIN_NAME, FunctionLowering, template_argument
from streamlint.program import (
    Arg,
    Attr,
    Await,
    Binary,
    Bool,
    Call,
    Collection,
    Compare,
    Conditional,
    Const,
    Expression,
    Format,
    Index,
    Lambda,
    Launch,
    Mapping,
    Name,
    Position,
    Slice,
    Starred,
    Type,
    Unary,
    Unknown,
    Yield,
    called_at,
)

Items = tuple[tuple[Expression | str | None, Expression], ...]
"""Keys, with their values; None for a mapping that is spread."""
_SPREAD = 2
_LEFT: dict[type, str] = {Attr: "value", Call: "function", Index: "value", Binary: "left"}


class ExpressionLowering(FunctionLowering):
    """Lowers expressions to registers."""

    def value(self, node: Expression) -> int:
        """The register that holds the value of an expression."""
        spine: list[Any] = []
        current: Any = node
        while (left := _LEFT.get(current.__class__)) is not None:
            if current.__class__ is Call and is_block(current):
                break
            spine.append(current)
            current = getattr(current, left)
        register = self.leaf(current)
        index = len(spine) - 1
        while index >= 0:
            link = spine[index]
            if link.__class__ is Attr and index and spine[index - 1].__class__ is Call:
                index -= 1
                register = self.invoke(spine[index], link, register)
            else:
                register = self.link(link, register)
            index -= 1
        return register

    def optional(self, node: Expression | None) -> int:
        """The register of an expression that may be absent."""
        return op.NONE if node is None else self.value(node)

    def leaf(self, node: Expression) -> int:
        """An expression that does not lean to the left."""
        return EXPRESSIONS[node.__class__](self, node)

    def link(self, node: Any, left: int) -> int:
        """One more step of a chain."""
        kind = node.__class__
        if kind is Attr:
            return self.emit(op.ATTR, node.at, left, self.k(node.name))
        if kind is Index:
            return self.emit(op.ITEM, node.at, left, self.subscript(node))
        if kind is Binary:
            right = self.value(node.right)
            return right if node.op == "," else self.emit(op.BINARY, node.at, self.k(node.op), left, right)
        return self.call(node, left)

    def subscript(self, node: Index) -> int:
        """What stands in the brackets: one value, or a tuple of one for each axis."""
        if len(node.indices) == 1 and not isinstance(node.indices[0], Starred):
            return self.value(node.indices[0])
        return self.display("tuple", node.indices, node.at)

    # --- calls

    def call(self, node: Call, function: int) -> int:
        """A call of a value."""
        if (items := self._items_given(node)) is not None:
            return self._items(items, called_at(node))
        shape, registers = self.arguments(node.args)
        self.note_template(called_at(node), node.template)
        register = self.emit(op.CALL, called_at(node), function, shape, *registers)
        if not self.is_conversion(node):
            self.rebind(node.args, register, registers)
        return register

    def _items_given(self, node: Call) -> Items | None:
        """Python: the keys and values of a dictionary that is made of them: ``dict(a=x)``, ``dict(zip(("a",), (x,)))``."""
        if not self._is_call_of(node, "dict"):
            return None
        if all(arg.keyword is not None or arg.stars == _SPREAD for arg in node.args):
            return tuple((arg.keyword, arg.value) for arg in node.args)
        return self._pairs_given(node.args[0].value) if len(node.args) == 1 else None

    def _pairs_given(self, pairs: Expression) -> Items | None:
        """Names and values that stand beside each other in a ``zip``."""
        if not isinstance(pairs, Call) or not self._is_call_of(pairs, "zip") or len(pairs.args) != 2:
            return None
        names, values = (_written_out(arg.value) for arg in pairs.args)
        return tuple(zip(names, values, strict=True)) if names and len(names) == len(values) else None

    def _is_call_of(self, node: Call, name: str) -> bool:
        """Whether a call is one of a function of Python's builtins."""
        return not self.is_cpp and isinstance(node.function, Name) and node.function.id == name and self.is_builtin(name)

    def invoke(self, node: Call, method: Attr, receiver: int) -> int:
        """A call of a method."""
        shape, registers = self.arguments(node.args)
        self.note_template(called_at(node), node.template)
        register = self.emit(op.INVOKE, called_at(node), receiver, self.k(method.name), shape, *registers)
        self.rebind(node.args, register, registers)
        return register

    def note_template(self, at: Position, given: tuple[Type | Const, ...]) -> None:
        """C++: keep the template arguments of a call or a name; what names a constant of a function stands for its value."""
        if given:
            self.code.templates[self.builder.place(at)] = tuple(self.as_fixed(template_argument(one)) for one in given)

    def as_fixed(self, argument: TemplateArgument) -> TemplateArgument:
        """C++: a template argument, or what a constant begins with, behind the constants of this function and those around it."""
        if not isinstance(argument, tuple) or argument[1:] != PLAIN_NAME or argument[0] in self.code.template:
            return argument
        variable = self.variable(str(argument[0]))
        return self.fixed.get(variable, argument) if variable in self.locals else self.fixed_outside.get(variable, argument)

    def arguments(self, args: tuple[Arg, ...]) -> tuple[int, list[int]]:
        """The shape of an argument list, and its values."""
        registers = [self.value(arg.value) for arg in args]
        if not any(arg.keyword is not None or arg.stars for arg in args):
            return op.NONE, registers
        return self.k(tuple(arg.stars or arg.keyword for arg in args)), registers

    def is_conversion(self, node: Call) -> bool:
        """C++: whether a call converts to a type of the language, which assigns nothing: ``size_t(i)``."""
        return False

    def rebind(self, args: tuple[Arg, ...], call: int, registers: list[int]) -> None:
        """C++: a variable that is passed by its name may have another value behind the call."""

    def _launch(self, node: Launch) -> int:
        kernel = self.value(node.kernel)
        config = [self.value(one) for one in node.config]
        shape, registers = self.arguments(node.args)
        at = called_at(node)
        return self.emit(op.LAUNCH, at, kernel, shape, len(config), *config, *registers)

    # --- leaves

    def _const(self, node: Const) -> int:
        return self.builder.define(op.CONST, node.at, self.k(node.value))

    def _name(self, node: Name) -> int:
        self.note_template(node.at, node.template)
        return self.read_name(node.id, node.at)

    def _unknown(self, node: Unknown) -> int:
        return self.builder.define(op.UNKNOWN, node.at, *[self.value(part) for part in node.parts])

    def _starred(self, node: Starred) -> int:
        return self.value(node.value)

    def _slice(self, node: Slice) -> int:
        bounds = [self.optional(one) for one in (node.lower, node.upper, node.step)]
        return self.builder.define(op.SLICE, node.at, *bounds)

    def _collection(self, node: Collection) -> int:
        return self.display(node.kind, node.items, node.at)

    def display(self, name: str, items: tuple[Expression, ...], at: Position) -> int:
        """A list, tuple or set of items, some of which may be starred."""
        starred = tuple(index for index, item in enumerate(items) if isinstance(item, Starred))
        kind: object = (name, starred) if starred else name
        return self.builder.define(op.BUILD, at, self.k(kind), *[self.value(item) for item in items])

    def _mapping(self, node: Mapping) -> int:
        return self._items(node.items, node.at)

    def _items(self, items: Items, at: Position) -> int:
        operands: list[int] = []
        for key, value in items:
            named = self.builder.define(op.CONST, value.at, self.k(key)) if isinstance(key, str) else self.optional(key)
            operands += (named, self.value(value))
        return self.builder.define(op.DICT, at, *operands)

    def _format(self, node: Format) -> int:
        return self.builder.define(op.FORMAT, node.at, self.k(node.texts or None), *[self.value(one) for one in node.values])

    def _unary(self, node: Unary) -> int:
        return self.emit(op.UNARY, node.at, self.k(node.op), self.value(node.operand))

    def _compare(self, node: Compare) -> int:
        known = self.compared
        left = known[1] if known is not None and known[0] is node.left else self.value(node.left)
        right = self.value(node.right)
        self.compared = node.right, right
        return self.emit(op.COMPARE, node.at, self.k(node.op), left, right)

    def _await(self, node: Await) -> int:
        return self.emit(op.AWAIT, node.at, self.value(node.value))

    def _yield(self, node: Yield) -> int:
        if node.delegate and node.value is not None:
            return self.emit(op.YIELD_FROM, node.at, self.value(node.value))
        return self.emit(op.YIELD, node.at, self.optional(node.value))

    def _lambda(self, node: Lambda) -> int:
        return self.closure(node.function)

    def closure(self, function: Any) -> int:
        """A function value; its body is lowered as a code of its own."""
        raise NotImplementedError

    # --- conditions

    def _bool(self, node: Bool) -> int:
        """``a and b`` is ``a`` where that decides."""
        chosen, after = self.temporary("bool"), self.builder.new_block()
        for one in node.values[:-1]:
            register = self.value(one)
            self.builder.write(chosen, register)
            more = self.builder.new_block()
            then, otherwise = (more, after) if node.op == "and" else (after, more)
            self.builder.branch(register, then, otherwise, one.at)
            self.builder.start(more)
        self.builder.write(chosen, self.value(node.values[-1]))
        self.builder.jump(after)
        self.builder.start(after)
        return self.builder.read(chosen)

    def _conditional(self, node: Conditional) -> int:
        chosen = self.temporary("if")
        then, otherwise, after = (self.builder.new_block() for _ in range(3))
        self.condition(node.test, then, otherwise)
        for block, value in ((then, node.then), (otherwise, node.otherwise)):
            self.builder.start(block)
            self.builder.write(chosen, self.value(value))
            self.builder.jump(after)
        self.builder.start(after)
        return self.builder.read(chosen)

    def condition(self, node: Expression, then: int, otherwise: int) -> None:
        """Branch on an expression; ``and``, ``or`` and ``not`` become edges."""
        if isinstance(node, Bool):
            for one in node.values[:-1]:
                more = self.builder.new_block()
                self.condition(one, *((more, otherwise) if node.op == "and" else (then, more)))
                self.builder.start(more)
            self.condition(node.values[-1], then, otherwise)
        elif isinstance(node, Unary) and node.op == "not":
            self.condition(node.operand, otherwise, then)
        elif isinstance(node, Const) and not isinstance(node.value, str | bytes):
            self.builder.jump(then if node.value else otherwise, node.at)
        else:
            self.builder.branch(self.value(node), then, otherwise, node.at)


def _written_out(node: Expression) -> tuple[Expression, ...]:
    """The elements of a list or tuple that is written out, none of them starred."""
    is_whole = isinstance(node, Collection) and node.kind in ("tuple", "list") and not any(isinstance(one, Starred) for one in node.items)
    return node.items if isinstance(node, Collection) and is_whole else ()


def is_block(node: Call) -> bool:
    """Whether a call is a sequence of statements that stands where an expression does (a macro's body)."""
    return isinstance(node.function, Lambda) and node.function.function.name == "<block>" and not node.args


EXPRESSIONS: dict[type, Callable[[Any, Any], int]] = {
    Const: ExpressionLowering._const,
    Name: ExpressionLowering._name,
    Unknown: ExpressionLowering._unknown,
    Starred: ExpressionLowering._starred,
    Slice: ExpressionLowering._slice,
    Collection: ExpressionLowering._collection,
    Mapping: ExpressionLowering._mapping,
    Format: ExpressionLowering._format,
    Unary: ExpressionLowering._unary,
    Compare: ExpressionLowering._compare,
    Await: ExpressionLowering._await,
    Yield: ExpressionLowering._yield,
    Lambda: ExpressionLowering._lambda,
    Bool: ExpressionLowering._bool,
    Conditional: ExpressionLowering._conditional,
    Launch: ExpressionLowering._launch,
}
"""By node; other modules of the lowering add theirs."""
