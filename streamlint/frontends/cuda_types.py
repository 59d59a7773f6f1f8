"""Types and declarators."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from streamlint.frontends import cuda_literals
from streamlint.frontends.cuda_function_pointers import pointer_to_member
from streamlint.frontends.cuda_positions import Places
from streamlint.program import Const, Module, Position, Type

if TYPE_CHECKING:
    from tree_sitter import Node as Syntax


_POINTERS = ("pointer_declarator", "abstract_pointer_declarator")
_REFERENCES = ("reference_declarator", "abstract_reference_declarator")
_ARRAYS = ("array_declarator", "abstract_array_declarator")
_FUNCTIONS = ("function_declarator", "abstract_function_declarator")
_PARENTHESES = ("parenthesized_declarator", "abstract_parenthesized_declarator")
_OTHERS = ("init_declarator", "attributed_declarator", "variadic_declarator", "optional_type_parameter_declaration")
# What stands around a declared name.
_OUTER = frozenset((*_POINTERS, *_REFERENCES, *_ARRAYS, *_FUNCTIONS, *_PARENTHESES, *_OTHERS))


class Declarator(NamedTuple):
    """A declared name with what its declarator adds to the type."""

    name: str
    node: Syntax | None  # the innermost name
    pointers: int = 0
    reference: bool = False
    array: int | None = None
    function: Syntax | None = None  # the function_declarator around the name
    indirect: bool = False  # a pointer to a function: ``(*name)(…)``
    names: tuple[str, ...] = ()  # structured bindings

    def type(self, base: Type) -> Type:
        """``base`` with pointers, reference and array of this declarator."""
        if not (self.pointers or self.reference or self.array is not None):
            return base
        return Type(
            base.name,
            base.args,
            base.pointers + self.pointers,
            base.reference or self.reference,
            self.array if self.array is not None else base.array,
        )


class TypeReader:
    """What every reader of the syntax tree needs, and types."""

    def __init__(self, code: str, places: Places, module: Module) -> None:
        self.code = code
        self.places = places
        self.module = module

    def text(self, node: Syntax) -> str:
        """The text of a node (expanded, comments gone)."""
        return self.code[node.start_byte : node.end_byte]

    def at(self, node: Syntax) -> Position:
        """The place of a node in the file."""
        return self.places.span(node.start_byte, node.end_byte)

    def field(self, node: Syntax, name: str) -> Syntax | None:
        """A child by the name of its field."""
        return node.child_by_field_name(name)

    # --- names

    def name(self, node: Syntax) -> str:
        """A possibly qualified name without template arguments and without a leading ``::``."""
        kind = node.type
        if kind in ("qualified_identifier", "nested_namespace_specifier"):
            return "::".join(part for part in (self.name(child) for child in node.named_children) if part)
        if kind in ("template_type", "template_function", "template_method"):
            inner = self.field(node, "name")
            return self.name(inner) if inner else self.text(node)
        if kind == "dependent_name":
            return self.name(node.named_children[0]) if node.named_children else ""
        if kind == "destructor_name":
            return "~" + "".join(self.name(child) for child in node.named_children)
        if kind in ("operator_name", "operator_cast"):
            return self.operator_name(node)
        if kind in ("ERROR", "comment", "type_qualifier"):
            return ""
        text = self.text(node)
        return "".join(text.split("<")[0].split()) if "<" in text else text

    def operator_name(self, node: Syntax) -> str:
        """``operator()`` and the like."""
        if node.type == "operator_cast":
            inner = self.field(node, "type")
            return "operator " + (self.name(inner) if inner else "")
        return "".join(self.text(node).split())

    def template_arguments(self, node: Syntax) -> tuple[Type | Const, ...]:
        """The template arguments of the last part of a name: types and names, numbers and truth values; an expression keeps its text."""
        if node.type == "qualified_identifier":
            inner = self.field(node, "name")
            return self.template_arguments(inner) if inner else ()
        if node.type == "dependent_name" and node.named_children:
            return self.template_arguments(node.named_children[0])
        if node.type in ("template_type", "template_function", "template_method"):
            arguments = self.field(node, "arguments")
            return tuple(map(self.template_argument, arguments.named_children)) if arguments else ()
        return ()

    def template_argument(self, node: Syntax) -> Type | Const:
        if node.type == "type_descriptor":
            return self.type(node)
        text = " ".join(self.text(node).split())
        number = cuda_literals.number(text) if node.type == "number_literal" else {"true": True, "false": False}.get(node.type)
        return Type(text) if number is None else Const(number, at=self.at(node))

    def specialised_for(self, node: Syntax | None) -> tuple[Type | Const, ...]:
        """The template arguments in the name that a definition has: its own, else those of the class that it names before its own."""
        if node is None:
            return ()
        found = self.template_arguments(node)
        while not found and node.type == "qualified_identifier":
            scope, inner = self.field(node, "scope"), self.field(node, "name")
            found = self.template_arguments(scope) if scope is not None else ()
            if inner is None:
                break
            node = inner
        return found

    def last_part(self, node: Syntax) -> Syntax:
        """The last name in a callee: what findings point at."""
        inner: Syntax | None = node
        while inner is not None:
            node, inner = inner, self.last_below(inner)
        return node

    def last_below(self, node: Syntax) -> Syntax | None:
        """The part of a callee that holds its last name; None where it is that."""
        kind = node.type
        if kind in ("qualified_identifier", "template_function", "template_method", "template_type"):
            return self.field(node, "name")
        if kind == "field_expression":
            return self.field(node, "field")
        if kind in ("parenthesized_expression", "dependent_name") and node.named_children:
            return node.named_children[-1]
        if kind in ("pointer_expression", "subscript_expression"):
            return self.field(node, "argument")
        if kind == "call_expression":
            return self.field(node, "function")
        return self.field(node, "captures") if kind == "lambda_expression" else None

    # --- types

    def type(self, node: Syntax | None) -> Type:
        """A type specifier, or a type_descriptor with its abstract declarator."""
        if node is None:
            return Type("")
        kind = node.type
        if kind == "type_descriptor":
            base = self.type(self.field(node, "type"))
            declarator = self.field(node, "declarator")
            read = self.declarator(declarator) if declarator else Declarator("", None)
            return read.type(self.to_function(base, read.function) if read.function and read.indirect and not base.args else base)
        if kind in ("struct_specifier", "class_specifier", "union_specifier", "enum_specifier"):
            name = self.field(node, "name")
            return self.type(name) if name else Type("")
        if kind in ("placeholder_type_specifier", "decltype"):
            return Type("auto")
        if kind == "dependent_type" and node.named_children:
            return self.type(node.named_children[0])
        if kind == "sized_type_specifier":
            return Type(" ".join(self.text(node).split()))
        return Type(self.name(node), self.type_arguments(node))

    def to_function(self, result: Type, function: Syntax) -> Type:
        """The result of a function that is pointed to, with the types of its parameters; ``void`` for none."""
        given = self.field(function, "parameters")
        parameters = [one for one in given.named_children if one.type == "parameter_declaration"] if given else []
        types = (self.declarator(self.field(one, "declarator")).type(self.type(self.field(one, "type"))) for one in parameters)
        return Type(result.name, tuple(types) or (Type("void"),), result.pointers, result.reference)

    def type_arguments(self, node: Syntax) -> tuple[Type, ...]:
        """The template arguments of a type; what is not a type keeps its text as name."""
        if node.type == "qualified_identifier":
            inner = self.field(node, "name")
            return self.type_arguments(inner) if inner else ()
        arguments = self.field(node, "arguments") if node.type == "template_type" else None
        if arguments is None:
            return ()
        return tuple(
            self.type(child) if child.type == "type_descriptor" else Type(" ".join(self.text(child).split()))
            for child in arguments.named_children
        )

    def declarator(self, node: Syntax | None) -> Declarator:
        """Follow a declarator inwards to its name."""
        pointers, reference, array = 0, False, None
        function: Syntax | None = None
        inside_parentheses = indirect = False
        while node is not None and (kind := node.type) in _OUTER:
            if kind in _POINTERS:
                pointers += 1
                indirect = indirect or (inside_parentheses and function is not None)
            elif kind in _REFERENCES:
                reference = True
            elif kind in _ARRAYS:
                array = self.element_count(self.field(node, "size"))
            elif kind in _FUNCTIONS:
                function = function or node
            elif kind in _PARENTHESES:
                inside_parentheses = True
            node = self.inner_declarator(node)
        if node is not None and node.type == "structured_binding_declarator":
            return Declarator("", node, pointers, reference, array, names=tuple(self.text(child) for child in node.named_children))
        return self.named(Declarator("", node, pointers, reference, array, function, indirect))

    def named(self, found: Declarator) -> Declarator:
        """A declarator with its name: a pointer to a member stands behind the class."""
        member = pointer_to_member(found.node)
        if member is not None:
            found = found._replace(node=member, pointers=found.pointers + 1, indirect=True)
        return found._replace(name=self.name(found.node)) if found.node is not None else found

    def inner_declarator(self, node: Syntax) -> Syntax | None:
        """The next declarator on the way to the name, or the name."""
        inner = None if node.type in _PARENTHESES else self.field(node, "declarator")
        if inner is not None or node.type in (*_POINTERS, *_ARRAYS, *_FUNCTIONS):
            return inner
        passed = ("type_qualifier", "ERROR") if node.type in _REFERENCES else ()
        return next((child for child in node.named_children if child.type not in passed), None)

    def element_count(self, size: Syntax | None) -> int:
        """The number of elements where it is a literal (or a macro that is one), else 0."""
        if size is None:
            return 0
        text = self.text(size).strip("()")
        text = self.module.macros.get(text, text).strip("()uUlL ")
        return int(text) if text.isdigit() else 0
