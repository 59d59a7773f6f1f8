"""Expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from streamlint.frontends import cuda_literals
from streamlint.frontends.cuda_calls import CallReader
from streamlint.program import (
    AddressOf,
    Arg,
    AssignExpr,
    Attr,
    Await,
    Binary,
    Body,
    Bool,
    Call,
    Cast,
    Collection,
    Compare,
    Conditional,
    Const,
    Construct,
    DeleteExpr,
    Deref,
    Expression,
    ExprStatement,
    Function,
    Index,
    Lambda,
    Name,
    New,
    Param,
    Position,
    Starred,
    Statement,
    Unary,
    Unknown,
    Yield,
)

if TYPE_CHECKING:
    from tree_sitter import Node as Syntax

_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_LARGE = 256
_LINKS = ("call_expression", "field_expression", "subscript_expression")  # of chains: a.b(c)[d]


class ExpressionReader(CallReader):
    """Lowers expressions. Bodies of lambdas are read by the subclass."""

    device_lambdas: list[int]
    of_device = False  # the bodies of functions of the device are read, too

    def body(self, node: Syntax | None) -> Body:
        """The statements of a body, without a Block around them."""
        raise NotImplementedError

    def params(self, node: Syntax | None) -> list[Param]:
        """The parameters of a parameter list."""
        raise NotImplementedError

    def statement(self, node: Syntax) -> Body:
        """A statement; declarations may give several."""
        raise NotImplementedError

    def expression(self, node: Syntax | None) -> Expression:
        """Lower an expression; what is not known becomes Unknown with the parts that are."""
        if node is None:
            return Unknown()
        reader = self.readers.get(node.type)
        return reader(self, node) if reader else self.unknown(node)

    def optional(self, node: Syntax | None) -> Expression | None:
        """Lower an expression that may be absent."""
        return None if node is None else self.expression(node)

    def unknown(self, node: Syntax) -> Expression:
        """Keep the calls and launches inside of something that is not understood."""
        parts: list[Expression] = []
        for child in node.named_children:
            if child.type in self.readers:
                parts.append(self.expression(child))
            elif child.type.endswith(("statement", "declaration")) or child.type == "ERROR":
                parts += self.inner_parts(child)
            elif child.named_child_count and child.type not in ("parameter_list", "template_argument_list"):
                parts.append(self.unknown(child))
        return Unknown(tuple(part for part in parts if not isinstance(part, Unknown) or part.parts), at=self.at(node))

    def inner_parts(self, node: Syntax) -> list[Expression]:
        """Statements that stand where an expression should: their expressions, or a lambda that is called."""
        statements = self.statement(node)
        if all(isinstance(statement, ExprStatement) for statement in statements):
            return [statement.value for statement in statements if isinstance(statement, ExprStatement)]
        return [self.in_place(statements, self.at(node))]

    def in_place(self, body: list[Statement], at: Position) -> Call:
        """Statements as an expression: a lambda that is called at once."""
        function = Function("<block>", "<block>", [], body, is_lambda=True, at=at)
        return Call(Lambda(function, at=at), (), at, at=at)

    # --- leaves

    def identifier(self, node: Syntax) -> Expression:
        name = self.name(node)
        if name in ("NULL", "nullptr"):
            return Const(None, at=self.at(node))
        return Name("unsigned" if name == "unsigneD" else name, self.template_arguments(node), at=self.at(node))

    def number(self, node: Syntax) -> Expression:
        value = cuda_literals.number(self.text(node))
        return Unknown(at=self.at(node)) if value is None else Const(value, at=self.at(node))

    def string(self, node: Syntax) -> Expression:
        return Const(cuda_literals.string(self.text(node)), at=self.at(node))

    def strings(self, node: Syntax) -> Expression:
        parts = [cuda_literals.string(self.text(child)) for child in node.named_children if "string" in child.type]
        return Const("".join(parts), at=self.at(node))

    def word(self, node: Syntax) -> Expression:
        value = {"true": True, "false": False}.get(node.type)
        return Const(value, at=self.at(node))

    def this(self, node: Syntax) -> Expression:
        return Name("this", at=self.at(node))

    # --- access

    def chain(self, node: Syntax) -> Expression:
        """Calls of members, members and subscripts lean to the left: they are read in a loop, however many follow each other."""
        links: list[Syntax] = []
        inner: Syntax | None = node
        while inner is not None and (left := self.left_of(inner)):
            links.append(inner)
            inner = self.field(inner, left)
        value = self.call(inner) if inner is not None and inner.type == "call_expression" else self.expression(inner)
        for link in reversed(links):
            value = self.link(link, value)
        return value

    def left_of(self, node: Syntax) -> str:
        """The field in which a link of a chain holds what stands before it; of other nodes nothing."""
        if node.type != "call_expression":
            return "argument" if node.type in _LINKS else ""
        function = self.field(node, "function")
        return "function" if function is not None and function.type in _LINKS and self.launch_of(node) is None else ""

    def link(self, node: Syntax, value: Expression) -> Expression:
        """A call, a member or a subscript of a value."""
        if node.type == "field_expression":
            field = self.field(node, "field")
            operator = self.field(node, "operator")
            name = self.name(field) if field else ""
            return Attr(value, name, operator is not None and operator.type == "->", at=self.at(node))
        if node.type == "subscript_expression":
            indices = self.field(node, "indices")
            found = tuple(self.expression(child) for child in indices.named_children) if indices else ()
            return Index(value, found or (Unknown(at=self.at(node)),), at=self.at(node))
        return self.called(node, value)

    def pointer(self, node: Syntax) -> Expression:
        operator = self.field(node, "operator")
        value = self.expression(self.field(node, "argument"))
        if operator is not None and operator.type == "&":
            return AddressOf(value, at=self.at(node))
        return Deref(value, at=self.at(node))

    def parenthesized(self, node: Syntax) -> Expression:
        inner = [child for child in node.named_children if child.type != "ERROR"]
        if len(inner) == 1:
            return self.expression(inner[0])
        return self.unknown(node)

    # --- operators

    def unary(self, node: Syntax) -> Expression:
        operator = self.operator(node)
        operator = "not" if operator in ("!", "not") else "~" if operator == "compl" else operator
        return Unary(operator, self.expression(self.field(node, "argument")), at=self.at(node))

    def operator(self, node: Syntax) -> str:
        operator = self.field(node, "operator")
        return operator.type if operator else ""

    def update(self, node: Syntax) -> Expression:
        at = self.at(node)
        target = self.expression(self.field(node, "argument"))
        before = node.children[-1].type == self.operator(node)
        return AssignExpr(target, Const(1, at=at), self.operator(node)[:1], before, at=at)

    def assignment(self, node: Syntax) -> Expression:
        target = self.expression(self.field(node, "left"))
        operator = self.operator(node)
        if isinstance(target, Call) and isinstance(target.function, Name) and target.function.id == "std::tie":
            target = Collection("tuple", tuple(one.value for one in target.args), at=target.at)
        value = self.expression(self.field(node, "right"))
        return AssignExpr(target, value, operator[:-1] or None, at=self.at(node))

    def binary(self, node: Syntax) -> Expression:
        """Long chains lean to the left: they are read in a loop."""
        chain = [node]
        left = self.field(node, "left")
        while left is not None and left.type == "binary_expression":
            chain.append(left)
            left = self.field(left, "left")
        value = self.expression(left)
        for link in reversed(chain):
            value = self.combined(link, value)
        return value

    def combined(self, node: Syntax, left: Expression) -> Expression:
        operator, at = self.operator(node), self.at(node)
        right = self.expression(self.field(node, "right"))
        if operator in ("&&", "and"):
            return Bool("and", (left, right), at=at)
        if operator in ("||", "or"):
            return Bool("or", (left, right), at=at)
        if operator in _COMPARISONS:
            return Compare(operator, left, right, at=at)
        return Binary(operator, left, right, at=at)

    def comma(self, node: Syntax) -> Expression:
        return Binary(",", self.expression(self.field(node, "left")), self.expression(self.field(node, "right")), at=self.at(node))

    def conditional(self, node: Syntax) -> Expression:
        test = self.expression(self.field(node, "condition"))
        then = self.optional(self.field(node, "consequence"))
        return Conditional(test, then or test, self.expression(self.field(node, "alternative")), at=self.at(node))

    def cast(self, node: Syntax) -> Expression:
        return Cast(self.type(self.field(node, "type")), self.expression(self.field(node, "value")), at=self.at(node))

    def sizeof(self, node: Syntax) -> Expression:
        at = self.at(node)
        operand = self.field(node, "type") or self.field(node, "value") or next(iter(node.named_children), None)
        value: Expression = Unknown() if operand is None else self.expression(operand)
        name = node.type.removesuffix("_expression")
        return Call(Name(name, at=at), (Arg(value),), at, at=at)

    def type_name(self, node: Syntax) -> Expression:
        found = self.type(node)
        return Name(found.name + "*" * found.pointers, at=self.at(node))

    # --- construction

    def braces(self, node: Syntax) -> Expression:
        items = node.named_children
        if len(items) > _LARGE:
            return Unknown(at=self.at(node))
        parts = tuple(Starred(part.value, at=part.value.at) if part.stars else part.value for part in self.arguments(node))
        return Collection("list", parts, at=self.at(node))

    def construct(self, node: Syntax) -> Expression:
        return Construct(self.type(self.field(node, "type")), self.arguments(self.field(node, "value")), at=self.at(node))

    def new(self, node: Syntax) -> Expression:
        declarator = self.field(node, "declarator")
        count = self.optional(self.field(declarator, "length")) if declarator and declarator.type == "new_declarator" else None
        arguments = self.arguments(self.field(node, "arguments"))
        return New(self.type(self.field(node, "type")), arguments, count, at=self.at(node))

    def delete(self, node: Syntax) -> Expression:
        value = node.named_children[-1] if node.named_children else None
        return DeleteExpr(self.expression(value), any(child.type == "[" for child in node.children), at=self.at(node))

    # --- functions

    def lambda_(self, node: Syntax) -> Expression:
        at = self.at(node)
        declarator = self.field(node, "declarator")
        body = self.field(node, "body")
        parameters = self.field(declarator, "parameters") if declarator else None
        head = body.start_byte if body else node.end_byte
        device = any(node.start_byte <= offset < head for offset in self.device_lambdas)
        statements = [] if device and not self.of_device else self.body(body)
        function = Function("<lambda>", "<lambda>", self.params(parameters), statements, is_lambda=True, at=at)
        function.space = "device" if device else "host"
        captures = [child for child in node.named_children if child.type == "lambda_capture_specifier"]
        function.initialisers = [pair for capture in captures for pair in self.captures(capture)]
        return Lambda(function, at=at)

    def captures(self, node: Syntax) -> list[tuple[str, tuple[Arg, ...]]]:
        """Captures that have an initialiser."""
        pairs = [child for child in node.named_children if child.type == "lambda_capture_initializer"]
        found: list[tuple[str, tuple[Arg, ...]]] = []
        for pair in pairs:
            left, right = self.field(pair, "left"), self.field(pair, "right")
            if left and right:
                found.append((self.text(left), (Arg(self.expression(right)),)))
        return found

    def block(self, node: Syntax) -> Expression:
        return self.in_place(self.body(node), self.at(node))

    def awaited(self, node: Syntax) -> Expression:
        return Await(self.expression(self.field(node, "argument")), at=self.at(node))

    def yielded(self, node: Syntax) -> Expression:
        return Yield(self.optional(next(iter(node.named_children), None)), at=self.at(node))

    def assembly(self, node: Syntax) -> Expression:
        """``asm("griddepcontrol.wait;")`` as a call that is given its text; what it reads and writes stays unknown."""
        at, text = self.at(node), self.field(node, "assembly_code")
        return Call(Name("asm", at=at), (Arg(self.expression(text)),), at, at=at) if text is not None else Unknown(at=at)

    def no_value(self, node: Syntax) -> Expression:
        return Unknown(at=self.at(node))

    readers: ClassVar[dict[str, Callable[[ExpressionReader, Syntax], Expression]]] = {
        **dict.fromkeys(
            (
                "identifier",
                "field_identifier",
                "type_identifier",
                "namespace_identifier",
                "qualified_identifier",
                "primitive_type",
                "template_function",
                "template_method",
                "template_type",
                "dependent_name",
                "destructor_name",
                "operator_name",
                "sized_type_specifier",
            ),
            identifier,
        ),
        **dict.fromkeys(("sizeof_expression", "alignof_expression", "offsetof_expression"), sizeof),
        **dict.fromkeys(("string_literal", "raw_string_literal", "char_literal"), string),
        **dict.fromkeys(("true", "false", "null"), word),
        **dict.fromkeys(("user_defined_literal", "requires_expression"), no_value),
        "gnu_asm_expression": assembly,
        "type_descriptor": type_name,
        "number_literal": number,
        "concatenated_string": strings,
        "this": this,
        **dict.fromkeys(_LINKS, chain),
        "pointer_expression": pointer,
        "parenthesized_expression": parenthesized,
        "unary_expression": unary,
        "update_expression": update,
        "assignment_expression": assignment,
        "binary_expression": binary,
        "comma_expression": comma,
        "conditional_expression": conditional,
        "cast_expression": cast,
        "initializer_list": braces,
        "compound_literal_expression": construct,
        "new_expression": new,
        "delete_expression": delete,
        "lambda_expression": lambda_,
        "compound_statement": block,
        "co_await_expression": awaited,
        "co_yield_statement": yielded,
    }
