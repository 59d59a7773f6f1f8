"""What the lowering of one function knows: its builder, its names, and what leaving a scope has to do first."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from streamlint.ir import opcodes as op
from streamlint.ir.builder import Builder, Constants
from streamlint.ir.code import Code, TemplateArgument, TypeTuple
from streamlint.ir.scopes import NameScope
from streamlint.program import NOWHERE, Attr, Call, Const, Expression, Index, Name, Position, Type
from streamlint.support.declared_words import METADATA

if TYPE_CHECKING:
    from streamlint.ir.modules import ModuleLowering

Cleanup = Callable[[], object]
_RAISING = op.RAISING | {op.INPLACE, op.COMPARE, op.UNARY, op.FORMAT}


class Frame:
    """A construct that a ``return``, ``break``, ``continue`` or exception has to leave in order.

    ``leave`` emits what happens on the way out (a context manager's exit, destructors). A ``finally`` instead takes control over:
    ``divert`` is given what comes behind it. ``handler`` gives the block that exceptions go to.
    """

    __slots__ = ("after", "divert", "handler", "leave", "next_round", "pad")

    def __init__(
        self,
        leave: Cleanup | None = None,
        divert: Callable[[Cleanup], None] | None = None,
        handler: Callable[[], int] | None = None,
        after: int = op.NONE,
        next_round: int = op.NONE,
    ) -> None:
        self.leave = leave
        self.divert = divert
        self.handler = handler
        self.after = after  # of a loop: where ``break`` goes
        self.next_round = next_round  # of a loop: where ``continue`` goes
        self.pad: int | None = None  # where exceptions land that leave this frame on their way to a handler further out


class FunctionLowering:
    """The lowering of one body."""

    def __init__(self, module: ModuleLowering, code: Code, scope: NameScope, is_cpp: bool) -> None:
        self.module = module
        self.code = code
        self.is_cpp = is_cpp
        self.builder = Builder(code, module.constants, code.first_row)
        self.constants: Constants = module.constants
        self.scope = scope
        self.shared = scope.shared()
        self.locals = set() if scope.is_class else scope.bound - scope.outermost - scope.elsewhere
        self.cells = self.locals & self.shared
        self.renamed: list[dict[str, str]] = [{}]  # C++ blocks and comprehensions: names that hide outer ones
        self.free: dict[str, tuple[str, int]] = {}  # names of enclosing codes: the cell's variable and its owner
        self.aliases: set[str] = set()  # C++ references to an lvalue: read and written through their address
        self.named_cells: dict[tuple[str, int], None] = {}
        self.frames: list[Frame] = []
        self.catching = 0  # frames whose handler sees the exceptions of calls
        self.raised = op.NONE  # what a ``raise`` without operand re-raises
        self.compared: tuple[Expression, int] | None = None  # the right side of the last comparison: a chain evaluates it once
        self.declared_types: dict[str, Type] = {}
        self.references: list[tuple[int, str]] = []  # C++ reference parameters
        self.temporaries = 0
        self.methods: list[tuple[str, int]] = []  # of a class's body: names and codes
        self.fixed: dict[str, TemplateArgument] = {}  # C++: variables that begin as a constant, which template arguments may name
        self.fixed_outside: dict[str, TemplateArgument] = {}
        self.declaring = ""  # what a comment declares of the current assignment

    # --- names

    def variable(self, name: str) -> str:
        """The variable that a name means here: a scope inside of the body may have one of its own."""
        for scope in reversed(self.renamed):
            if name in scope:
                return scope[name]
        return name

    def k(self, value: Any) -> int:
        """The number of a constant."""
        return self.constants.number(value)

    def hide(self, name: str) -> str:
        """Give a name a variable of its own in the innermost scope."""
        self.temporaries += 1
        own = f"{name}'{self.temporaries}"
        self.renamed[-1][name] = own
        self.locals.add(own)
        if name in self.shared:
            self.cells.add(own)
        return own

    def temporary(self, hint: str) -> str:
        """A variable that no source names."""
        self.temporaries += 1
        return f"%{hint}{self.temporaries}"

    def read_name(self, name: str, at: Position) -> int:
        """The value of a name."""
        variable = self.variable(name)
        if variable in self.locals:
            if variable in self.cells:
                value = self.builder.define(op.LOAD, at, self.cell(variable, self.code.number))
            else:
                value = self.builder.read(variable)
            return self.builder.define(op.DEREF, at, value) if variable in self.aliases else value
        outer = self.free.get(name)
        if outer is not None:
            return self.builder.define(op.LOAD, at, self.cell(*outer))
        return self.builder.define(op.NAME, at, self.k(name))

    def is_builtin(self, name: str) -> bool:
        """Whether a name of Python's builtins means that here: neither this body, nor one around it, nor the file binds it."""
        return self.variable(name) not in self.locals and name not in self.free and name not in self.module.bound

    def write_name(self, name: str, value: int, at: Position) -> None:
        """Bind a name."""
        variable = self.variable(name)
        if (self.code.number, variable) in self.module.annotations and value >= 0:
            self.code.declared.setdefault(value, self.module.annotations[self.code.number, variable])
        if variable in self.aliases:
            self.builder.add(op.SET_DEREF, at, self.builder.read(variable), value)
        elif variable in self.locals:
            if variable in self.cells:
                self.builder.add(op.STORE, at, self.cell(variable, self.code.number), value)
            else:
                self.builder.write(variable, value)
                self.builder.add(op.BIND, at, self.k(name), value)
        elif name in self.free:
            self.builder.add(op.STORE, at, self.cell(*self.free[name]), value)
        else:
            self.builder.add(op.SET_NAME, at, self.k(name), value)

    def delete_name(self, name: str, at: Position) -> None:
        """``del name``."""
        variable = self.variable(name)
        cell = self.visible(name)
        if cell is not None:
            self.builder.add(op.STORE, at, self.cell(*cell), self.builder.define(op.UNDEF, at, self.k(name)))
        elif variable in self.locals:
            self.builder.add(op.UNBIND, at, self.k(name))
            self.builder.write(variable, self.builder.define(op.UNDEF, at, self.k(name)))
        else:
            self.builder.add(op.DEL_NAME, at, self.k(name))

    def cell(self, name: str, owner: int) -> int:
        """The constant that names a cell: its variable and the code that owns it."""
        self.named_cells[name, owner] = None
        return self.k((name, owner))

    def visible(self, name: str) -> tuple[str, int] | None:
        """The cell that a name means for a function defined here; None for names of the module and beyond."""
        variable = self.variable(name)
        if variable in self.cells:
            return variable, self.code.number
        return None if variable in self.locals else self.free.get(name)

    # --- instructions

    def emit(self, opcode: int, at: Position, *operands: int) -> int:
        """Add an instruction that defines a register, with the edge to its handler where it may raise inside of ``try``."""
        register = self.builder.define(opcode, at, *operands)
        if self.catching and opcode in _RAISING:
            self.may_raise()
        return register

    # --- leaving

    def leave_to(self, depth: int, then: Cleanup) -> None:
        """Leave all frames above ``depth``, innermost first, and then go on with ``then``."""
        frames = self.frames
        while len(self.frames) > depth:
            frame = self.frames[-1]
            self.frames = self.frames[:-1]
            if frame.divert is not None:
                frame.divert(lambda: self.leave_to(depth, then))
                self.frames = frames
                return
            if frame.leave is not None:
                frame.leave()
        then()
        self.frames = frames

    def raise_to(self) -> int | None:
        """The block that an exception goes to from here, if anything in this function sees it."""
        for depth in range(len(self.frames) - 1, -1, -1):
            handler = self.frames[depth].handler
            if handler is not None:
                return self.pad(depth, handler())
        return None

    def pad(self, depth: int, handler: int) -> int:
        """Where an exception lands on its way to the handler of a frame: what the frames above leave behind is done first."""
        if all(frame.leave is None for frame in self.frames[depth + 1 :]):
            return handler
        top = self.frames[-1]
        if top.pad is None:
            block = self.builder.block
            top.pad = self.builder.new_block()
            self.builder.start(top.pad, sealed=False)
            raised = self.builder.define(op.CAUGHT, NOWHERE)
            self.leave_to(depth + 1, lambda: None)
            self.builder.handlers[self.builder.block] = handler
            self.builder.edge(handler)
            self.builder.add(op.RAISE, NOWHERE, raised)
            self.builder.block = block
        return top.pad

    def may_raise(self) -> None:
        """The instruction just added may raise."""
        if not self.builder.ended and (handler := self.raise_to()) is not None:
            self.builder.unwind_to(handler)

    # --- types

    def type_constant(self, kind: Type | None) -> int:
        """The constant that spells a C++ type."""
        return self.k(type_tuple(kind))


PLAIN_NAME: TypeTuple = ((), 0, False, None)
"""What a type has beside its name that is nothing but a name."""


def type_tuple(kind: Type | None) -> TypeTuple | None:
    """A C++ type as a plain tuple."""
    if kind is None:
        return None
    return (kind.name, tuple(type_tuple(one) for one in kind.args), kind.pointers, kind.reference, kind.array)


def template_argument(argument: Type | Const) -> TemplateArgument:
    """A template argument as plain data."""
    if isinstance(argument, Const):
        return argument.value if isinstance(argument.value, (bool, int, float, str)) else None
    return type_tuple(argument)


def annotation_text(node: Expression | None) -> str:
    """An annotation as text, without blanks: names, attributes, subscripts, and ``|``; anything else is left out."""
    if isinstance(node, Name):
        return node.id
    if isinstance(node, Const):
        return node.value if isinstance(node.value, str) else repr(node.value)
    if isinstance(node, Attr):
        return f"{annotation_text(node.value)}.{node.name}"
    if isinstance(node, Index):
        return _subscript_text(node)
    if isinstance(node, Call):
        return annotation_text(node.function)
    left, right, items = getattr(node, "left", None), getattr(node, "right", None), getattr(node, "items", None)
    if left is not None and right is not None:
        return f"{annotation_text(left)}|{annotation_text(right)}"
    if isinstance(items, tuple) and all(isinstance(one, Expression) for one in items):
        return f"[{','.join(annotation_text(one) for one in items)}]"
    return ""


def _subscript_text(node: Index) -> str:
    head, parts = annotation_text(node.value), [annotation_text(one) for one in node.indices]
    if head.endswith(METADATA):  # the words of its metadata are no names
        texts = [one.value if isinstance(one, Const) else None for one in node.indices]
        parts[1:] = [repr(text) if isinstance(text, str) else part for text, part in zip(texts[1:], parts[1:], strict=True)]
    return f"{head}[{','.join(parts)}]"
