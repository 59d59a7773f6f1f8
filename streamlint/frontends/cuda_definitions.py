"""Functions, classes and what else stands at file scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlint.frontends import LOST
from streamlint.frontends.cuda_braces import is_torn, lacks_braces, unfinished
from streamlint.frontends.cuda_functions import FunctionReader, joined
from streamlint.frontends.cuda_positions import Places
from streamlint.frontends.cuda_types import Declarator
from streamlint.program import (
    Body,
    Class,
    ClassDef,
    Declare,
    Expression,
    Field,
    Function,
    FunctionDef,
    Lambda,
    Module,
    Name,
    Type,
)

if TYPE_CHECKING:
    from tree_sitter import Node as Syntax


_CLASSES = ("struct_specifier", "class_specifier", "union_specifier")
_CONTAINERS = ("linkage_specification", "declaration_list", "template_declaration", "friend_declaration", "export_declaration")


class DefinitionReader(FunctionReader):
    """Fills a module."""

    def __init__(self, code: str, places: Places, module: Module, device_lambdas: list[int]) -> None:
        super().__init__(code, places, module, device_lambdas)
        self.declarations: list[Function] = []
        self.outside: list[tuple[Function, str]] = []
        self.stray: Body = []
        self.is_open = True  # the file, as it is written, has more opening braces than closing ones
        self.lacks_braces = False  # of the file
        self.is_private = False  # whether members that stand here may be named by functions of their class alone
        self.unnamed = False  # in a namespace without a name: functions are the file's own, as if they were static

    def read(self, root: Syntax) -> None:
        """Lower a whole translation unit; `join` has to follow."""
        self.lacks_braces = root.has_error and self.is_open and lacks_braces(root, self.code)
        self.scope_body(root, "")
        self.flush_stray()

    # --- scopes

    def scope_body(self, node: Syntax, scope: str) -> None:
        for child in node.named_children:
            try:
                self.member_of_scope(child, scope)
            except RecursionError:
                self.module.problems.append((self.at(child), f"{LOST}: it is nested too deeply"))

    def member_of_scope(self, node: Syntax, scope: str) -> None:
        kind = node.type
        if kind == "function_definition":
            self.function_definition(node, scope)
        elif kind == "declaration":
            self.file_declaration(node, scope)
        elif kind == "namespace_definition":
            self.namespace(node, scope)
        elif kind in _CLASSES:
            self.add_class(self.class_(node, scope))
        elif kind == "template_declaration":
            self.templated(node, scope)
        elif kind in _CONTAINERS:
            self.scope_body(node, scope)
        elif kind in ("alias_declaration", "type_definition", "using_declaration", "namespace_alias_definition"):
            self.alias(node, scope)
        elif kind == "ERROR":
            self.broken_scope(node, scope)
        elif (kind in self.statements or kind in self.readers) and not self.is_defaulted(node):
            self.stray += self.statement(node)

    def is_defaulted(self, node: Syntax) -> bool:
        """Whether a statement is the definition of a method by default that the parser takes for an assignment: ``A::~A() = default;``."""
        assigned = node.named_children[0] if node.type == "expression_statement" and node.named_child_count == 1 else None
        value = self.field(assigned, "right") if assigned is not None and assigned.type == "assignment_expression" else None
        return value is not None and self.text(value) == "default"

    def broken_scope(self, node: Syntax, scope: str) -> None:
        """Definitions inside an ERROR are read as such, statements are kept for a function without a name."""
        self.tell_broken(node)
        for child in node.named_children:
            if child.type == "call_expression" or child.type not in self.readers:
                self.member_of_scope(child, scope)

    def tell_broken(self, node: Syntax) -> None:
        """Note what the parser gave up, and whether a function goes with it."""
        opened = unfinished(node) if self.lacks_braces else None
        if opened is None:
            self.module.problems.append((self.at(node), "this could not be read in full"))
        else:
            self.module.problems.append((self.at(opened), f"{LOST}: its braces do not match"))

    def flush_stray(self) -> None:
        """Statements that an error left at file scope become a function of their own."""
        if self.stray:
            at = self.stray[0].at
            function = Function("<unread>", "<unread>", [], self.stray, at=at)
            self.add_function(function)
            self.stray = []

    def namespace(self, node: Syntax, scope: str) -> None:
        name = self.field(node, "name")
        inner = joined(scope, self.name(name)) if name else scope
        self.namespaces.add(inner)
        body = self.field(node, "body")
        if body is not None:
            outer, self.unnamed = self.unnamed, self.unnamed or name is None
            self.scope_body(body, inner)
            self.unnamed = outer

    def templated(self, node: Syntax, scope: str) -> None:
        outer = self.template
        self.template = outer + self.template_names(self.field(node, "parameters"))
        self.scope_body(node, scope)
        self.template = outer

    def template_names(self, parameters: Syntax | None) -> tuple[str, ...]:
        names = []
        for child in parameters.named_children if parameters else []:
            declared = self.field(child, "name") or self.field(child, "declarator") or next(reversed(child.named_children), None)
            if declared is not None:
                names.append(self.declarator(declared).name)
        return tuple(names)

    def alias(self, node: Syntax, scope: str = "") -> None:
        """Keep a typedef, using or namespace alias; what ``scope`` takes in from another namespace is its own as well."""
        if node.type == "type_definition":
            self.typedef(node)
        elif node.type == "alias_declaration":
            name = self.field(node, "name")
            if name is not None:
                self.module.aliases[self.text(name)] = self.type(self.field(node, "type"))
        elif node.type == "namespace_alias_definition":
            name = self.field(node, "name")
            if name is not None:
                self.module.namespaces[self.text(name)] = self.name(node.named_children[-1])
        elif any(child.type == "namespace" for child in node.children):
            self.module.using = (*self.module.using, self.name(node.named_children[-1]))
        elif node.named_children:
            name_ = self.name(node.named_children[-1])
            if "::" in name_:
                own = name_.rsplit("::", 1)[1]
                self.module.aliases[own] = Type(name_)
                if scope:
                    self.module.aliases[joined(scope, own)] = Type(name_)

    def typedef(self, node: Syntax) -> None:
        specifier = self.field(node, "type")
        declarators = [self.declarator(child) for child in node.children_by_field_name("declarator")]
        if specifier is not None and specifier.type in _CLASSES and self.field(specifier, "body") is not None:
            own = self.field(specifier, "name")
            self.add_class(self.class_(specifier, "", "" if own else next((parts.name for parts in declarators), "")))
        base = self.type(specifier)
        for parts in declarators:
            if parts.name and base.name and parts.name != base.name:
                self.module.aliases[parts.name] = parts.type(base)

    # --- declarations

    def file_declaration(self, node: Syntax, scope: str) -> None:
        """Variables become globals; function declarations give their defaults."""
        specifier = self.field(node, "type")
        if specifier is not None and specifier.type in _CLASSES:
            self.add_class(self.class_(specifier, scope))
        base = self.type(specifier)
        static, external = self.has_storage(node, "static"), self.has_storage(node, "extern")
        for declarator in node.children_by_field_name("declarator"):
            parts = self.declarator(declarator)
            if parts.function is not None and not parts.indirect and declarator.type != "init_declarator":
                self.declarations.append(self.of_file(self.function(node, parts, base, scope)))
                continue
            for statement in self.declared(declarator, base, static, node):
                if isinstance(statement, Declare) and external and statement.value is None:
                    self.module.elsewhere[statement.name] = statement.type
                elif isinstance(statement, Declare):
                    statement.name = joined(scope, statement.name) if statement.name else ""
                    if isinstance(statement.value, Lambda):
                        function = statement.value.function
                        function.name, function.qualname, function.static = statement.name.rpartition("::")[2], statement.name, True
                    self.module.globals.append(statement)
                    self.module.body.append(statement)
        for child in node.named_children:
            if child.type == "ERROR":
                self.broken_scope(child, scope)

    def function_definition(self, node: Syntax, scope: str) -> None:
        specifier = self.field(node, "type")
        if specifier is not None and specifier.type in _CLASSES:
            # An error in the class made the grammar take it for the type of a function.
            self.add_class(self.class_(specifier, scope))
        function = self.defined(node, scope)
        if function is None:
            return
        self.tell_if_torn(node)
        self.flush_stray()
        self.add_function(function)

    def tell_if_torn(self, node: Syntax) -> None:
        """Note a function that goes on over those behind it."""
        if self.lacks_braces and is_torn(node):
            self.module.problems.append((self.at(node), f"{LOST}: its braces do not match"))

    def misread(self, node: Syntax, body: Syntax, scope: str) -> None:
        """``class EXPORT Name { … }`` and macros before a block read as functions without parameters."""
        specifier = self.field(node, "type")
        if specifier is not None and specifier.type in _CLASSES:
            self.scope_body(body, scope)
        else:
            self.stray += self.body(body)

    def of_file(self, function: Function) -> Function:
        """A function that stands in no class."""
        function.static = function.static or (self.unnamed and not function.class_name)
        return function

    def add_function(self, function: Function) -> None:
        self.of_file(function)
        self.module.body.append(FunctionDef(function, at=function.at))
        self.module.functions.setdefault(function.qualname, []).append(function)
        if function.class_name:
            self.outside.append((function, function.class_name))

    # --- classes

    def class_(self, node: Syntax, scope: str, given_name: str = "") -> Class | None:
        """A class definition; None without a body."""
        body = self.field(node, "body")
        if body is None:
            return None
        name_node = self.field(node, "name")
        name = self.name(name_node) if name_node else given_name
        bases = self.bases(node)
        definition = Class(name.rpartition("::")[2], joined(scope, name), bases, {}, at=self.at(node), template=self.template)
        definition.specialised = self.template_arguments(name_node) if name_node else ()
        around, self.is_private = self.is_private, node.type == "class_specifier"
        self.members(body, definition)
        self.is_private = around
        if any(child.type == "friend_declaration" for child in body.named_children):
            for one in definition.fields:
                one.private = False
        return definition

    def bases(self, node: Syntax) -> tuple[Expression, ...]:
        clause = next((child for child in node.named_children if child.type == "base_class_clause"), None)
        children = clause.named_children if clause else []
        return tuple(
            Name(self.name(child), at=self.at(child)) for child in children if child.type not in ("access_specifier", "virtual", "comment")
        )

    def members(self, node: Syntax, owner: Class) -> None:
        for child in node.named_children:
            self.class_member(child, owner)

    def class_member(self, node: Syntax, owner: Class) -> None:
        kind = node.type
        if kind == "function_definition":
            self.method(node, owner)
        elif kind in ("field_declaration", "declaration"):
            self.field_declaration(node, owner)
        elif kind == "template_declaration":
            outer = self.template
            self.template = outer + self.template_names(self.field(node, "parameters"))
            self.members(node, owner)
            self.template = outer
        elif kind == "access_specifier":
            self.is_private = self.text(node) == "private"
        elif kind == "friend_declaration":
            self.scope_body(node, owner.qualname.rpartition("::")[0])
        elif kind in ("alias_declaration", "type_definition"):
            self.alias(node)
        elif kind in _CLASSES:
            self.nested(node, owner)
        elif kind == "ERROR":
            self.tell_broken(node)
            self.members(node, owner)

    def method(self, node: Syntax, owner: Class) -> None:
        function = self.defined(node, owner.qualname)
        if function is not None:
            self.tell_if_torn(node)
            function.class_name = owner.qualname
            self.shape_method(function, owner.name)
            owner.methods.setdefault(function.name, []).append(function)

    def nested(self, node: Syntax, owner: Class) -> Class | None:
        definition = self.class_(node, owner.qualname)
        if definition is not None and definition.name:
            owner.classes[definition.name] = definition
        elif definition is not None:
            owner.fields += definition.fields
        return definition

    def field_declaration(self, node: Syntax, owner: Class) -> None:
        specifier = self.field(node, "type")
        if specifier is not None and specifier.type in _CLASSES:
            self.nested(specifier, owner)
        base = self.type(specifier)
        declarators = node.children_by_field_name("declarator")
        default = self.field(node, "default_value")
        for declarator in declarators:
            parts = self.declarator(declarator)
            if parts.function is not None and not parts.indirect:
                self.method_declaration(node, parts, base, owner)
            elif parts.name:
                following = self.default_after(node, declarator) if len(declarators) > 1 else default
                owner.fields.append(self.data_member(node, declarator, parts.type(base), parts.name, following))

    def default_after(self, node: Syntax, declarator: Syntax) -> Syntax | None:
        """The default value that stands behind one of several declarators."""
        children = node.children
        for position, child in enumerate(children):
            if child.type == "," and child.start_byte >= declarator.end_byte:
                return None
            if child.start_byte >= declarator.end_byte and node.field_name_for_child(position) == "default_value":
                return child
        return None

    def data_member(self, node: Syntax, declarator: Syntax, kind: Type, name: str, default: Syntax | None) -> Field:
        static = self.has_storage(node, "static")
        value, args = self.initialiser(declarator)
        if default is not None and default.type == "initializer_list" and "=" not in self.code[declarator.end_byte : default.start_byte]:
            args = self.arguments(default)
        elif default is not None:
            value = self.expression(default)
        return Field(name, kind, value, args, static, at=self.at(declarator), private=self.is_private)

    def method_declaration(self, node: Syntax, parts: Declarator, base: Type, owner: Class) -> None:
        function = self.function(node, parts, base, owner.qualname)
        function.class_name = owner.qualname
        self.shape_method(function, owner.name)
        self.declarations.append(function)

    def add_class(self, definition: Class | None) -> None:
        if definition is not None and definition.name:
            self.module.classes[definition.qualname] = definition
            self.module.body.append(ClassDef(definition, at=definition.at))

    # --- the whole file

    def join(self) -> None:
        """Bring methods to their classes and defaults to their definitions."""
        classes = dict(_all_classes(self.module.classes))
        for function, owner in self.outside:
            found = _resolve(owner, classes)
            if found is not None:
                function.class_name = found.qualname
                found.methods.setdefault(function.name, []).append(function)
        bodies: dict[str, list[Function]] = {}
        for functions in (*self.module.functions.values(), *(each for item in classes.values() for each in item.methods.values())):
            for function in functions:
                bodies.setdefault(function.qualname.rpartition("::")[2], []).append(function)
        for declared in self.declarations:
            self.declare(declared, bodies)

    def declare(self, declared: Function, bodies: dict[str, list[Function]]) -> None:
        """Give a declaration's defaults to its definition, or keep the declaration by itself."""
        for function in bodies.get(declared.qualname.rpartition("::")[2], []):
            same_place = function.qualname == declared.qualname or function.class_name == declared.class_name != ""
            if same_place and len(function.params) == len(declared.params) and not _differ(function, declared):
                for own, other in zip(function.params, declared.params, strict=True):
                    own.default = own.default or other.default
                    own.annotation = own.annotation or other.annotation
                function.annotation, function.waits = function.annotation or declared.annotation, function.waits or declared.waits
                function.static = function.static or declared.static
                return
        declared.kind = "function"
        self.module.functions.setdefault(declared.qualname, []).append(declared)


def _all_classes(classes: dict[str, Class]) -> list[tuple[str, Class]]:
    found: list[tuple[str, Class]] = []
    for definition in classes.values():
        found.append((definition.qualname, definition))
        found += _all_classes(definition.classes)
    return found


def _resolve(name: str, classes: dict[str, Class]) -> Class | None:
    """The class that a qualified name means: as written, or the only one whose name ends so."""
    if name in classes:
        return classes[name]
    ending = [definition for qualname, definition in classes.items() if qualname.endswith("::" + name) or name.endswith("::" + qualname)]
    return ending[0] if len(ending) == 1 else None


def _differ(one: Function, other: Function) -> bool:
    """Whether two functions of as many parameters are overloads of one another."""
    pairs = zip(one.params, other.params, strict=True)
    return any(
        a.type is not None and b.type is not None and a.type.name.rpartition("::")[2] != b.type.name.rpartition("::")[2] for a, b in pairs
    )
