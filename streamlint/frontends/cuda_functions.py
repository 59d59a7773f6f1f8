"""Heads and bodies of functions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from streamlint.frontends.cuda_positions import Places
from streamlint.frontends.cuda_statements import StatementReader
from streamlint.frontends.cuda_stores import Pointers, symbols
from streamlint.frontends.cuda_types import Declarator
from streamlint.program import Arg, Function, Module, Param, Type
from streamlint.support.lines import split_lines

if TYPE_CHECKING:
    from tree_sitter import Node as Syntax

_PARAMETERS = ("parameter_declaration", "optional_parameter_declaration", "variadic_parameter_declaration")
_MACRO_NAME = re.compile(r"[A-Z][A-Z0-9_]{2,}")


def joined(scope: str, name: str) -> str:
    """``scope::name``, either of which may be empty."""
    return f"{scope}::{name}" if scope and name else scope or name


class FunctionReader(StatementReader):
    """Lowers functions; where they belong is known to the subclass."""

    def __init__(self, code: str, places: Places, module: Module, device_lambdas: list[int]) -> None:
        super().__init__(code, places, module)
        self.device_lambdas = device_lambdas
        self.lines = split_lines(module.text)
        self.namespaces: set[str] = set()
        self.template: tuple[str, ...] = ()
        self.known: dict[str, bool] = {}

    def misread(self, node: Syntax, body: Syntax, scope: str) -> None:
        """Take what reads as a function but is none."""
        raise NotImplementedError

    def defines(self, name: str) -> bool:
        """Whether the file defines a function ``name``."""
        if name not in self.known:
            self.known[name] = bool(re.search(rf"\b{re.escape(name)}\s*\([^;{{}}]*\)\s*(?:noexcept\s*)?\{{", self.code))
        return self.known[name]

    def has_storage(self, node: Syntax, word: str) -> bool:
        return any(child.type == "storage_class_specifier" and self.text(child) == word for child in node.named_children)

    def params(self, node: Syntax | None) -> list[Param]:
        """The parameters of a parameter list."""
        return [self.param(child) for child in node.named_children if child.type in _PARAMETERS] if node else []

    def param(self, node: Syntax) -> Param:
        parts = self.declarator(self.field(node, "declarator"))
        kind: Literal["plain", "star"] = "star" if node.type == "variadic_parameter_declaration" else "plain"
        base = parts.type(self.type(self.field(node, "type")))
        marks = {self.text(child) for child in node.named_children if child.type == "type_qualifier"}
        constant = "const" in marks if "volatile" not in marks else None
        return Param(parts.name, self.optional(self.field(node, "default_value")), None, base, kind, constant)

    def defined(self, node: Syntax, scope: str) -> Function | None:
        """A function with a body; None for defaulted, deleted and misread ones."""
        body = self.field(node, "body") or next((child for child in node.named_children if child.type == "try_statement"), None)
        declarator = self.field(node, "declarator")
        if body is None or declarator is None:
            return None
        parts = self.declarator(declarator)
        if parts.function is None and "operator" not in parts.name:
            self.misread(node, body, scope)
            return None
        function = self.function(node, parts, self.type(self.field(node, "type")), scope)
        if function.space == "host" or self.of_device:
            function.body = self.body(body)
        elif function.space == "kernel":
            pointers = Pointers(self.text(body), (param.name for param in function.params))
            function.stores, function.elements = pointers.stored(), pointers.elements()
            function.accumulates = pointers.accumulated()
            function.placed = pointers.placed()
            function.symbols = symbols(self.text(body), {param.name for param in function.params})
        for child in node.named_children:
            if child.type == "field_initializer_list":
                function.initialisers = self.initialisers(child)
        return function

    def function(self, node: Syntax, parts: Declarator, returns: Type, scope: str) -> Function:
        """The head of a function."""
        declared = parts.name
        owner, _, name = declared.rpartition("::")
        qualname = joined(scope, declared)
        parameters = self.field(parts.function, "parameters") if parts.function else None
        at = self.at(node)
        function = Function(name, qualname, self.params(parameters), [], at=at, returns=parts.type(returns), template=self.template)
        function.specialised = self.specialised_for(parts.node)
        function.space = self.space(node)
        function.static = self.has_storage(node, "static")
        if parts.function is not None:
            self.trailing_return(function, parts.function)
        if self.field(node, "type") is None and _MACRO_NAME.fullmatch(name):
            self.name_macro_parameters(function)
        if owner:
            self.own(function, owner, scope)
        return function

    def own(self, function: Function, owner: str, scope: str) -> None:
        """Note the class of a function that is defined outside of it."""
        if joined(scope, owner) in self.namespaces or owner in self.namespaces:
            return
        function.class_name = joined(scope, owner)
        self.shape_method(function, owner.rpartition("::")[2])

    def shape_method(self, function: Function, class_name: str) -> None:
        """Constructors and destructors get the names that both languages share."""
        if function.name == class_name:
            function.kind, function.name = "constructor", "__init__"
        elif function.name == "~" + class_name:
            function.kind, function.name = "destructor", "__del__"

    def space(self, node: Syntax) -> Literal["host", "device", "kernel"]:
        marks = {self.text(child) for child in node.children if child.type in ("__global__", "__device__", "__host__", "type_qualifier")}
        if "__global__" in marks:
            return "kernel"
        return "device" if "__device__" in marks and "__host__" not in marks else "host"

    def trailing_return(self, function: Function, declarator: Syntax) -> None:
        for child in declarator.named_children:
            if child.type == "trailing_return_type" and child.named_children:
                function.returns = self.type(child.named_children[0])

    def name_macro_parameters(self, function: Function) -> None:
        """``MODULE(name, m) { … }``: what reads as types are names."""
        for param in function.params:
            if not param.name and param.type is not None:
                param.name, param.type = param.type.name, None

    def initialisers(self, node: Syntax) -> list[tuple[str, tuple[Arg, ...]]]:
        """Member initialisers of a constructor."""
        found = []
        for child in node.named_children:
            if child.type == "field_initializer" and child.named_children:
                value = child.named_children[-1]
                found.append((self.name(child.named_children[0]), self.arguments(value) if value.type.endswith("list") else ()))
        return found
