"""Lowers what only C++ has: declarations, references, addresses, destructors, initialisers and values that are copied.

A local is a register like Python's, unless its address is taken or a lambda shares it. A reference to an lvalue is held as its address. A
variable that a call is given as it stands may be another one behind the call, for the parameter may be a reference: `rebind` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from streamlint.ir import opcodes as op
from streamlint.ir.code import Code, DeclarationIR, Parameter, TemplateArgument, TypeTuple
from streamlint.ir.definitions import DefinitionLowering
from streamlint.ir.expressions import EXPRESSIONS, is_block
from streamlint.ir.lowering import PLAIN_NAME, Frame, annotation_text, template_argument, type_tuple
from streamlint.ir.scopes import NameScope, scope_of
from streamlint.ir.statements import STATEMENTS
from streamlint.program import (
    NOWHERE,
    AddressOf,
    Arg,
    AssignExpr,
    Attr,
    Block,
    Body,
    Bool,
    Call,
    Cast,
    Class,
    Collection,
    Compare,
    Const,
    Construct,
    Declare,
    DeleteExpr,
    Deref,
    Expression,
    Field,
    Function,
    Index,
    Lambda,
    Loop,
    Module,
    Name,
    New,
    Param,
    Position,
    Type,
    Unary,
)

PLAIN = frozenset(
    {
        "void", "bool", "char", "short", "int", "long", "float", "double", "unsigned", "signed", "size_t", "std::size_t",
        "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "unsigned int", "long long",
        "unsigned char", "unsigned long", "unsigned long long", "ssize_t", "ptrdiff_t", "dim3",
    }
)  # fmt: skip
"""The language's own arithmetic types: they have no destructor, and copying them changes nothing."""
_LVALUES = (Name, Attr, Index, Deref)


class CppLowering(DefinitionLowering):
    """Lowers C++ bodies."""

    # --- scopes

    def block(self, node: Block) -> None:
        self.scoped(lambda: self.body(node.body))

    def scoped(self, inner: Callable[[], None]) -> None:
        """Statements with names of their own; objects declared in them end with them, the last one first."""
        self.renamed.append({})
        depth = len(self.frames)
        inner()
        self.close(depth)
        self.renamed.pop()

    def body(self, body: Body) -> None:
        """Statements of one scope."""
        depth = len(self.frames)
        super().body(body)
        self.close(depth)

    def loop(self, node: Loop) -> None:
        self.renamed.append({})
        depth = len(self.frames)
        if node.kind == "for":
            self.for_loop(node)
        else:
            for statement in node.init:
                STATEMENTS[statement.__class__](self, statement)
            self.while_loop(node)
        self.close(depth)
        self.renamed.pop()

    def loop_target(self, node: Loop, element: int) -> None:
        assert node.target is not None
        declared = node.init[0].type if node.init and isinstance(node.init[0], Declare) else Type("auto", reference=True)
        for name in self.target_names(node.target):
            self.declare_local(name, declared)
        owned = isinstance(node.target, Name) and has_destructor(declared)
        at = node.target.at
        self.assign(node.target, self.builder.define(op.COPY, at, element) if owned else element, at)
        if isinstance(node.target, Name) and owned:
            self.ends_with_scope(self.variable(node.target.id), at)

    # --- declarations

    def declare_local(self, name: str, kind: Type | None) -> None:
        """A name of the innermost scope; one that hides another gets a variable of its own."""
        if self.code.kind in ("module", "class"):
            return
        if name in self.declared_types:
            self.hide(name)
        self.locals.add(self.variable(name))
        if name in self.shared:
            self.cells.add(self.variable(name))
        self.declared_types[self.variable(name)] = kind or Type("auto")

    def _declare(self, node: Declare) -> None:
        value = self.initial(node)
        if not node.name:
            parts = tuple(Name(name, at=node.at) for name in node.names)
            for name in node.names:
                self.declare_local(name, None)
            self.unpack(Collection("tuple", parts, at=node.at), value, node.at)
            return
        begun = self.constant_given(node.value)
        self.declare_local(node.name, node.type)
        variable = self.variable(node.name)
        if begun is not None:
            self.fixed[variable] = begun
        if node.annotation is not None:
            self.module.annotate(self.code, variable, annotation_text(node.annotation))
        if node.type.reference and isinstance(node.value, _LVALUES) and self.code.kind not in ("module", "class"):
            self.cells.discard(variable)
            self.builder.write(variable, value)
            self.aliases.add(variable)
            self.builder.add(op.BIND, node.at, self.k(node.name), value)
            return
        self.write_name(node.name, value, node.at)
        if node.static:
            self.code.statics = (*self.code.statics, value)
        if not node.static and self.code.kind != "module" and has_destructor(node.type) and not is_number_or_pointer(node.value):
            self.ends_with_scope(variable, node.at)

    def constant_given(self, node: Expression | None) -> TemplateArgument:
        """The number or the name that a variable begins with, if it is no more than that."""
        while isinstance(node, Cast):
            node = node.value
        if isinstance(node, Const):
            return template_argument(node)
        return self.as_fixed((node.id, *PLAIN_NAME)) if isinstance(node, Name) and not node.template else None

    def nested(self, code: Code, scope: NameScope) -> DefinitionLowering:
        inner = super().nested(code, scope)
        inner.fixed_outside = {**self.fixed_outside, **self.fixed}
        for renamed in self.renamed:
            inner.fixed_outside.update((name, self.fixed[own]) for name, own in renamed.items() if own in self.fixed)
        return inner

    def ends_with_scope(self, variable: str, at: Position) -> None:
        """A variable's object is destroyed on each way out of the current scope."""
        self.frames.append(Frame(leave=lambda: self.destroy(variable, at)))

    def destroy(self, variable: str, at: Position) -> None:
        """An object ends with its scope."""
        if variable in self.cells:
            value = self.builder.define(op.LOAD, at, self.cell(variable, self.code.number))
        else:
            value = self.builder.read(variable)
        self.builder.add(op.DESTROY, at, value)

    def initial(self, node: Declare) -> int:
        """The first value of a variable."""
        if node.value is not None:
            if node.type.reference and isinstance(node.value, _LVALUES):
                return self.address(node.value, node.at)
            if isinstance(node.value, Collection) and is_class(type_tuple(node.type)):
                return self.initialised(self.type_constant(node.type), node.value)
            if (made := self.converted(node.type, node.value, node.at)) is not None:
                return made
            value = self.rvalue(node.value)
            if node.type.name == "auto" or node.type.reference:
                return value
            return self.builder.define(op.CAST, node.at, self.type_constant(node.type), value) if node.type.name else value
        kind = self.type_constant(node.type)
        if node.args is None:
            return self.emit(op.DECLARE, node.at, kind)
        shape, registers = self.arguments(node.args)
        return self.emit(op.CONSTRUCT, node.at, kind, shape, *registers)

    def assigned(self, node: AssignExpr) -> int:
        kind = self.declared_types.get(self.variable(node.target.id)) if isinstance(node.target, Name) else None
        made = self.converted(Type(kind.name, kind.args, kind.pointers), node.value, node.at) if kind is not None else None
        return super().assigned(node) if made is None else made

    def converted(self, kind: Type, node: Expression, at: Position) -> int | None:
        """An object of a class template that is made of a variable of another one; None for what may be a copy, or no object."""
        held = self.declared_types.get(self.variable(node.id)) if isinstance(node, Name) else None
        if held is None or not (held.args and kind.args) or held.name == kind.name or held.pointers or held.array is not None:
            return None
        return self.emit(op.CONSTRUCT, at, self.type_constant(kind), op.NONE, self.value(node)) if is_class(type_tuple(kind)) else None

    def returned(self, node: Expression) -> int:
        kind = self.code.returns
        if isinstance(node, Collection) and isinstance(kind, tuple) and is_class(kind):
            return self.initialised(self.k(kind), node)
        return super().returned(node)

    def initialised(self, kind: int, node: Collection) -> int:
        """An object that a list in braces initialises."""
        return self.emit(op.CONSTRUCT, node.at, kind, op.NONE, *[self.value(one) for one in node.items])

    def rvalue(self, node: Expression) -> int:
        value = self.value(node)
        if not isinstance(node, _LVALUES) or self.is_plain(node):
            return value
        return self.builder.define(op.COPY, node.at, value)

    def is_plain(self, node: Expression) -> bool:
        """Whether an lvalue is a local of a type whose copy is the same value."""
        kind = self.declared_types.get(self.variable(node.id)) if isinstance(node, Name) else None
        return kind is not None and (kind.pointers > 0 or kind.name in PLAIN)

    # --- calls

    def is_conversion(self, node: Call) -> bool:
        return isinstance(node.function, Name) and (node.function.id in PLAIN or node.function.id == "sizeof")

    def rebind(self, args: tuple[Arg, ...], call: int, registers: list[int]) -> None:
        for index, arg in enumerate(args):
            node = arg.value
            if not isinstance(node, Name) or node.id == "this" or self.is_plain_pointer(node):
                continue
            variable = self.variable(node.id)
            if variable in self.locals and variable not in self.aliases:
                after = self.builder.define(op.REBIND, node.at, call, index, registers[index])
                if variable in self.cells:
                    self.builder.add(op.STORE, node.at, self.cell(variable, self.code.number), after)
                else:
                    self.builder.write(variable, after)

    def is_plain_pointer(self, node: Name) -> bool:
        """Whether a local is a pointer: references to pointers are rare, and such a parameter is seldom assigned."""
        kind = self.declared_types.get(self.variable(node.id))
        return kind is not None and kind.pointers > 0

    # --- expressions

    def _construct(self, node: Construct) -> int:
        shape, registers = self.arguments(node.args)
        return self.emit(op.CONSTRUCT, node.at, self.type_constant(node.type), shape, *registers)

    def _new(self, node: New) -> int:
        kind = self.type_constant(node.type)
        if node.count is not None:
            return self.emit(op.NEW_ARRAY, node.at, kind, self.value(node.count))
        shape, registers = self.arguments(node.args)
        return self.emit(op.NEW, node.at, kind, shape, *registers)

    def _delete_expression(self, node: DeleteExpr) -> int:
        value = self.value(node.value)
        self.builder.add(op.DELETE, node.at, value, int(node.array))
        return value

    def leaf(self, node: Expression) -> int:
        if isinstance(node, Call):
            self.in_place(node)
            return self.builder.constant(None, node.at)
        return super().leaf(node)

    def in_place(self, node: Call) -> bool:
        if not is_block(node) or not isinstance(node.function, Lambda):
            return False
        block = node.function.function.body
        self.scoped(lambda: self.body(block))
        if self.builder.ended:
            self.builder.start(self.builder.new_block())
        return True

    # --- functions and classes

    def function_body(self, function: Function, captured: Iterable[str] = ()) -> None:
        params = list(function.params)
        if "this" in self.scope.bound:
            params.insert(0, Param("this", type=Type(function.class_name, pointers=1)))
        for param in params:
            self.declared_types[param.name] = param.type or Type("auto")
            if param.type is not None and param.type.reference and param.constant is False:
                self.references.append((params.index(param), param.name))
        self.parameters(params, captured)
        self.initialise(function)
        super(DefinitionLowering, self).body(function.body)
        self.close(0)
        self.finish(function.at)

    def parameter(self, param: Param) -> Parameter:
        default: bool | int = False
        if param.default is not None:
            code = self.module.new_code(param.name, f"{self.code.qualname}.{param.name}", "default", self.code.first_row, self.code.number)
            holder = Function(param.name, code.qualname, [], [], at=param.default.at)
            inner = self.nested(code, scope_of(holder, True))
            inner.end(inner.value(param.default), param.default.at)
            inner.finish(param.default.at)
            default = code.number
        annotation = annotation_text(param.annotation)
        return Parameter(param.name, param.kind, default, annotation, type_tuple(param.type), param.constant is True)

    def declaration(self, function: Function) -> DeclarationIR:
        """A function without a body."""
        parameters = tuple(self.parameter(param) for param in function.params)
        said = annotation_text(function.annotation)
        return DeclarationIR(function.qualname, function.class_name, function.static, parameters, said, function.waits)

    def initialise(self, function: Function) -> None:
        """A constructor's member initialisers."""
        if function.is_lambda or "this" not in self.scope.bound:
            return
        for name, args in function.initialisers:
            shape, registers = self.arguments(args)
            this = self.read_name("this", function.at)
            at = args[0].value.at if args else function.at
            self.builder.add(op.INIT, at, this, self.k(name), shape, *registers)

    def end(self, value: int, at: Position) -> None:
        for index, name in self.references:
            self.builder.add(op.OUT, NOWHERE, index, self.read_name(name, NOWHERE))
        self.builder.add(op.RETURN, at, value)

    def loose_classes(self, module: Module) -> None:
        """Classes of the file; the statements of a C++ file do not hold them."""
        known = {one.qualname for one in self.module.classes if one is not None}
        for definition in module.classes.values():
            if definition.qualname not in known:
                self.define_class(definition)
                known.add(definition.qualname)

    def define_class(self, definition: Class) -> None:
        number = self.class_body(definition)
        value = self.builder.define(op.CLASS, definition.at, number, op.NONE)
        self.builder.add(op.SET_NAME, definition.at, self.k(definition.name), value)

    def field(self, member: Field, known: tuple[Expression | None, int]) -> tuple[Expression | None, int]:
        """A member's own initialiser, which constructors without one for it use."""
        if member.value is None and member.args is None:
            return known
        declared = Declare(member.name, member.type or Type("auto"), member.value, member.args, at=member.at)
        self.builder.add(op.SET_NAME, member.at, self.k(member.name), self.initial(declared))
        return known

    def define_function(self, function: Function) -> None:
        value = self.closure(function)
        self.builder.add(op.SET_NAME, function.at, self.k(function.qualname), value)


def has_destructor(kind: Type) -> bool:
    """Whether an object of a type may do something where it ends."""
    return not (kind.pointers or kind.reference or kind.name in PLAIN)


def is_class(kind: TypeTuple | None) -> bool:
    """Whether a type may be a class of the program, which a list in braces makes an object of: none of the language or its library."""
    if kind is None:
        return False
    name, _, pointers, reference, array = kind
    return not (pointers or reference or array is not None or name in PLAIN or name in ("", "auto") or name.startswith("std::"))


def is_number_or_pointer(node: Expression | None) -> bool:
    """Whether an expression plainly has a value that needs no destructor: what ``auto`` is deduced from."""
    if isinstance(node, Cast):
        return not has_destructor(node.type)
    return isinstance(node, Const | AddressOf | New | Compare | Bool) or (isinstance(node, Unary) and node.op == "not")


EXPRESSIONS[Construct] = CppLowering._construct
EXPRESSIONS[New] = CppLowering._new
EXPRESSIONS[DeleteExpr] = CppLowering._delete_expression
STATEMENTS[Declare] = CppLowering._declare
