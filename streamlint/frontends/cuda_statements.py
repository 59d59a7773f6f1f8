"""Statements and local declarations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from streamlint.frontends.cuda_cases import breaks, spelled_out
from streamlint.frontends.cuda_expressions import ExpressionReader
from streamlint.frontends.cuda_function_pointers import FunctionPointer, function_pointer
from streamlint.frontends.cuda_preprocess import CHOICE
from streamlint.frontends.cuda_types import Declarator
from streamlint.program import (
    Arg,
    AssignExpr,
    Binary,
    Block,
    Body,
    Break,
    Call,
    Class,
    ClassDef,
    Collection,
    Const,
    Continue,
    Declare,
    Expression,
    ExprStatement,
    Handler,
    If,
    Loop,
    Name,
    Position,
    Raise,
    Return,
    Switch,
    Try,
    Type,
    Unknown,
)

if TYPE_CHECKING:
    from tree_sitter import Node as Syntax

_CLASSES = ("struct_specifier", "class_specifier", "union_specifier")


class StatementReader(ExpressionReader):
    """Lowers statements."""

    def class_(self, node: Syntax, scope: str) -> Class | None:
        """A class definition; None without a body."""
        raise NotImplementedError

    def alias(self, node: Syntax, scope: str = "") -> None:
        """Keep a typedef or using."""
        raise NotImplementedError

    def body(self, node: Syntax | None) -> Body:
        """The statements of a body, without a Block around them."""
        if node is None:
            return []
        if node.type == "compound_statement":
            return self.sequence(node.named_children)
        return self.statement(node)

    def sequence(self, nodes: list[Syntax]) -> Body:
        """Statements one after the other."""
        found: Body = []
        for node in nodes:
            found += self.statement(node)
        return found

    def statement(self, node: Syntax) -> Body:
        """A statement; declarations may give several."""
        reader = self.statements.get(node.type)
        if reader is not None:
            return reader(self, node)
        if node.type in self.readers:
            return [ExprStatement(self.expression(node), at=self.at(node))]
        return self.broken(node) if node.named_child_count else []

    def broken(self, node: Syntax) -> Body:
        """What can be read inside an ERROR node or an unknown construct."""
        self.module.problems.append((self.at(node), "this could not be read in full"))
        found: Body = []
        for child in node.named_children:
            if child.type in self.statements or child.type == "ERROR":
                found += self.statement(child)
            elif child.type in ("call_expression", "assignment_expression", "lambda_expression", "comma_expression"):
                found.append(ExprStatement(self.expression(child), at=self.at(child)))
            elif child.named_child_count:
                value = self.unknown(child)
                if isinstance(value, Unknown) and value.parts:
                    found.append(ExprStatement(value, at=self.at(child)))
        return found

    def nothing(self, node: Syntax) -> Body:
        return []

    def inner(self, node: Syntax) -> Body:
        """The statement behind a label or attributes."""
        children = [child for child in node.named_children if child.type not in ("statement_identifier", "attribute_declaration")]
        return self.sequence(children)

    def block(self, node: Syntax) -> Expression:
        return self.in_place(self.body(node), self.at(node))

    def scope(self, node: Syntax) -> Body:
        return [Block(self.body(node), at=self.at(node))]

    def expression_statement(self, node: Syntax) -> Body:
        found: Body = []
        for child in node.named_children:
            if child.type == "ERROR":
                found += self.broken(child)
            elif (pointer := function_pointer(child)) is not None:
                found.append(self.pointer_to_function(node, pointer))
            elif child.type != "comment":
                found.append(ExprStatement(self.expression(child), at=self.at(node)))
        return found

    def pointer_to_function(self, node: Syntax, parts: FunctionPointer) -> Declare:
        kind = Declarator(self.text(parts.name), parts.name, pointers=1).type(self.type(parts.returns))
        return Declare(self.text(parts.name), kind, self.optional(parts.value), at=self.at(node))

    # --- declarations

    def declaration(self, node: Syntax) -> Body:
        """Every declarator of a declaration; a class defined in it comes first."""
        found: Body = []
        specifier = self.field(node, "type")
        if specifier is not None and specifier.type in _CLASSES:
            found += self.local_class(specifier)
        base = self.type(specifier)
        lasting = (child for child in node.named_children if child.type == "storage_class_specifier")
        static = any(self.text(child) in ("static", "thread_local") for child in lasting)
        declarators = node.children_by_field_name("declarator")
        for declarator in declarators:
            found += self.declared(declarator, base, static, node if len(declarators) == 1 else declarator)
        for child in node.named_children:
            if child.type == "ERROR":
                found += self.broken(child)
        return found

    def local_class(self, specifier: Syntax) -> Body:
        definition = self.class_(specifier, "")
        return [ClassDef(definition, at=definition.at)] if definition else []

    def declared(self, node: Syntax, base: Type, static: bool, whole: Syntax) -> Body:
        """One declarator with its initialiser."""
        parts = self.declarator(node)
        at = self.at(whole)
        kind = parts.type(base)
        if parts.function is not None and node.type != "init_declarator":
            args = self.vexing_arguments(parts)
            return [Declare(parts.name, kind, None, args, static, at=at)] if args is not None or parts.indirect else []
        value, args = self.initialiser(node)
        if not parts.name and not parts.names:
            return []
        return [Declare(parts.name, kind, value, args, static, parts.names, at=at)]

    def initialiser(self, node: Syntax) -> tuple[Expression | None, tuple[Arg, ...] | None]:
        """The value after ``=``, or the arguments in parentheses or braces."""
        value = self.field(node, "value") if node.type == "init_declarator" else None
        if value is None:
            return None, None
        assigned = any(child.type == "=" for child in node.children)
        named = any(child.type == "initializer_pair" for child in value.named_children)  # `T x = {.a = b}` makes an aggregate
        if value.type == "argument_list" or (value.type == "initializer_list" and (named or not assigned)):
            return None, self.arguments(value)
        return self.expression(value), None

    def vexing_arguments(self, parts: Declarator) -> tuple[Arg, ...] | None:
        """``T x(a, *b);`` reads as a function declaration: its arguments, or None if it is one."""
        parameters = self.field(parts.function, "parameters") if parts.function else None
        if parameters is None or parts.indirect or not parameters.named_children:
            return None
        found: list[Arg] = []
        for child in parameters.named_children:
            value = self.vexing_argument(child)
            if value is None:
                return None
            found.append(Arg(value))
        return tuple(found)

    def vexing_argument(self, node: Syntax) -> Expression | None:
        specifier, declarator = self.field(node, "type"), self.field(node, "declarator")
        if node.type != "parameter_declaration" or specifier is None or specifier.type not in _NAMES:
            return None
        if any(child.type == "type_qualifier" for child in node.named_children):
            return None
        left = self.identifier(specifier)
        if declarator is None:
            return left
        inner = next(iter(declarator.named_children), None)
        if declarator.type in ("pointer_declarator", "reference_declarator") and inner is not None:
            return Binary("*" if declarator.type == "pointer_declarator" else "&", left, self.expression(inner), at=self.at(node))
        if declarator.type == "abstract_function_declarator":
            parameters = self.field(declarator, "parameters")
            values = [self.vexing_argument(child) for child in parameters.named_children] if parameters else []
            args = tuple(Arg(value) for value in values if value is not None)
            return Call(left, args, self.name_at(specifier), self.template_arguments(specifier), at=self.at(node))
        return None

    # --- control

    def condition(self, node: Syntax | None) -> tuple[Body, Expression]:
        """The declarations before a condition, and the condition."""
        value = self.field(node, "value") if node is not None and node.type == "condition_clause" else node
        initializer = self.field(node, "initializer") if node is not None else None
        before = self.sequence(initializer.named_children if initializer.type == "init_statement" else [initializer]) if initializer else []
        if value is not None and value.type == "declaration":
            declared = self.condition_declaration(value)
            return [*before, declared], Name(declared.name, at=declared.at)
        return before, self.expression(value)

    def condition_declaration(self, node: Syntax) -> Declare:
        parts = self.declarator(self.field(node, "declarator"))
        return Declare(
            parts.name, parts.type(self.type(self.field(node, "type"))), self.optional(self.field(node, "value")), at=self.at(node)
        )

    def if_(self, node: Syntax) -> Body:
        before, test = self.condition(self.field(node, "condition"))
        then = self.body(self.field(node, "consequence"))
        otherwise = self.alternative(node)
        at = self.at(node)
        if isinstance(test, Name) and test.id == CHOICE:
            return self.choice(then, otherwise, at)
        statement = If(test, then, otherwise, at=at)
        return [Block([*before, statement], at=at)] if before else [statement]

    def alternative(self, node: Syntax) -> Body:
        clause = self.field(node, "alternative")
        if clause is None:
            return []
        return self.sequence(clause.named_children) if not self.single_block(clause) else self.body(clause.named_children[0])

    def single_block(self, clause: Syntax) -> bool:
        return clause.named_child_count == 1 and clause.named_children[0].type == "compound_statement"

    def choice(self, then: Body, otherwise: Body, at: Position) -> Body:
        """Both branches of an ``#if``; the first alone when they declare what comes after."""
        if _declared(then) & _declared(otherwise):
            return then
        return [If(Unknown(at=at), then, otherwise, at=at)]

    def while_(self, node: Syntax) -> Body:
        before, test = self.condition(self.field(node, "condition"))
        body = self.body(self.field(node, "body"))
        at = self.at(node)
        if before and isinstance(before[-1], Declare) and before[-1].value is not None:
            declared = before[-1]
            test = AssignExpr(Name(declared.name, at=declared.at), declared.value or Unknown(), at=declared.at)
            before[-1] = Declare(declared.name, declared.type, at=declared.at)
        loop = Loop("while", body, test=test, at=at)
        return [Block([*before, loop], at=at)] if before else [loop]

    def do(self, node: Syntax) -> Body:
        """``do … while (0)`` is a block, unless something breaks out of it."""
        body = self.body(self.field(node, "body"))
        test = self.expression(self.field(node, "condition"))
        at = self.at(node)
        if isinstance(test, Const) and not test.value and not breaks(body):
            return [Block(body, at=at)]
        return [Loop("do", body, test=test, at=at)]

    def for_(self, node: Syntax) -> Body:
        initializer = self.field(node, "initializer")
        init = self.statement(initializer) if initializer else []
        test = self.optional(self.field(node, "condition"))
        update = self.optional(self.field(node, "update"))
        return [Loop("c-for", self.body(self.field(node, "body")), test=test, init=init, update=update, at=self.at(node))]

    def range_for(self, node: Syntax) -> Body:
        parts = self.declarator(self.field(node, "declarator"))
        at = self.at(parts.node) if parts.node else self.at(node)
        target: Expression = Name(parts.name, at=at)
        if parts.names:
            target = Collection("tuple", tuple(Name(name, at=at) for name in parts.names), at=at)
        iterable = self.expression(self.field(node, "right"))
        initializer = self.field(node, "initializer")
        before = self.sequence(initializer.named_children) if initializer else []
        loop = Loop("for", self.body(self.field(node, "body")), target, iterable, at=self.at(node))
        # The element's type stands in ``init``, as a declaration without a value.
        if parts.name:
            loop.init = [Declare(parts.name, parts.type(self.type(self.field(node, "type"))), at=at)]
        return [Block([*before, loop], at=self.at(node))] if before else [loop]

    def switch(self, node: Syntax) -> Body:
        before, subject = self.condition(self.field(node, "condition"))
        body = self.field(node, "body")
        labels: list[list[Expression] | None] = []
        bodies: list[Body] = []
        labelled = False
        for child in body.named_children if body else []:
            if child.type != "case_statement":
                statements = self.statement(child)
                if not labelled and statements and child.type != "declaration":
                    # A macro that brings its own label: each statement is an arm.
                    labels.append([Unknown(at=self.at(child))])
                    bodies.append([*statements, Break(at=self.at(child))])
                elif bodies:
                    bodies[-1] += statements
                continue
            labelled = True
            value = self.field(child, "value")
            labels.append([self.expression(value)] if value else None)
            bodies.append(self.sequence([inner for inner in child.named_children if inner != value]))
        statement = Switch(subject, spelled_out(labels, bodies), at=self.at(node))
        return [Block([*before, statement], at=self.at(node))] if before else [statement]

    def try_(self, node: Syntax) -> Body:
        handlers = [self.handler(child) for child in node.named_children if child.type == "catch_clause"]
        return [Try(self.body(self.field(node, "body")), handlers, at=self.at(node))]

    def handler(self, node: Syntax) -> Handler:
        parameters = self.field(node, "parameters")
        declaration = (
            next((child for child in parameters.named_children if child.type == "parameter_declaration"), None) if parameters else None
        )
        body = self.body(self.field(node, "body"))
        if declaration is None:
            return Handler(None, None, body)
        specifier = self.field(declaration, "type")
        name = self.declarator(self.field(declaration, "declarator")).name
        return Handler(Name(self.type(specifier).name, at=self.at(specifier)) if specifier else None, name or None, body)

    def return_(self, node: Syntax) -> Body:
        value = next((child for child in node.named_children if child.type not in ("comment", "ERROR")), None)
        return [Return(self.optional(value), at=self.at(node))]

    def throw(self, node: Syntax) -> Body:
        return [Raise(self.optional(next(iter(node.named_children), None)), at=self.at(node))]

    def break_(self, node: Syntax) -> Body:
        return [Break(at=self.at(node))]

    def continue_(self, node: Syntax) -> Body:
        return [Continue(at=self.at(node))]

    def local_alias(self, node: Syntax) -> Body:
        self.alias(node)
        return []

    def local_function(self, node: Syntax) -> Body:
        """A function inside a body is a misread statement (``MACRO(x) { … }``): its block runs in place."""
        block = self.field(node, "body")
        return [Block(self.body(block), at=self.at(node))] if block else []

    def case(self, node: Syntax) -> Body:
        """A case outside of a switch body (inside an error)."""
        value = self.field(node, "value")
        return self.sequence([child for child in node.named_children if child != value])

    statements: ClassVar[dict[str, Callable[[StatementReader, Syntax], Body]]] = {
        **dict.fromkeys(
            (
                "comment",
                "goto_statement",
                "static_assert_declaration",
                "preproc_call",
                "preproc_def",
                "preproc_function_def",
                "preproc_include",
            ),
            nothing,
        ),
        **dict.fromkeys(("labeled_statement", "attributed_statement"), inner),
        **dict.fromkeys(("return_statement", "co_return_statement"), return_),
        **dict.fromkeys(("using_declaration", "alias_declaration", "type_definition", "namespace_alias_definition"), local_alias),
        **dict.fromkeys(_CLASSES, local_class),
        "ERROR": broken,
        "compound_statement": scope,
        "expression_statement": expression_statement,
        "declaration": declaration,
        "if_statement": if_,
        "while_statement": while_,
        "do_statement": do,
        "for_statement": for_,
        "for_range_loop": range_for,
        "switch_statement": switch,
        "case_statement": case,
        "try_statement": try_,
        "throw_statement": throw,
        "break_statement": break_,
        "continue_statement": continue_,
        "function_definition": local_function,
    }


def _declared(body: Body) -> set[str]:
    """The names that the statements of a body declare for what comes behind it."""
    variables = [statement for statement in body if isinstance(statement, Declare)]
    classes = {statement.definition.name for statement in body if isinstance(statement, ClassDef)}
    return classes.union(*((statement.name, *statement.names) if statement.name else statement.names for statement in variables))


_NAMES = ("type_identifier", "qualified_identifier", "template_type")
