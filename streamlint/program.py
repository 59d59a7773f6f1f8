"""The small language that every front end lowers to: expressions, statements, functions, classes, modules.

It is a plain syntax tree that keeps only what the interpreter needs, the same for Python and C++. Nothing in it knows CUDA: what a call
does is said by the rows of ``streamlint/models``, and what happens on the machine by ``cuda_model``. Lowering happens once; the
interpreter then runs a body again in each caller's context.

Positions are ``(row, column, end_row, end_column)``: rows and columns count from 1, columns in code points, ends exclusive.
Nodes compare by identity, so they can be keys.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, Literal

from streamlint.lines import line_starts, position_at
from streamlint.record import field, names_of, record

Position = tuple[int, int, int, int]
LONGEST_LINE = 200  # characters: many functions may stand on one line
NOWHERE: Position = (0, 0, 0, 0)


@record(eq=False, slots=True)
class Node:
    """A piece of code and where it stands."""

    at: Position = field(default=NOWHERE, kw_only=True)


# --- expressions ----------------------------------------------------------------------------------------------------------------


class Expression(Node):
    """Anything that has a value."""

    __slots__ = ()


@record(eq=False, slots=True)
class Const(Expression):
    """A literal: number, str, bytes, bool, None, Ellipsis. C++: ``nullptr`` and ``NULL`` are None, ``true`` is True."""

    value: object


@record(eq=False, slots=True)
class Name(Expression):
    """A plain name. C++: qualified names are one Name with ``::`` kept (``at::cuda::getCurrentCUDAStream``), template arguments cut."""

    id: str


@record(eq=False, slots=True)
class Attr(Expression):
    """``value.name``; in C++ also ``value->name`` (``arrow`` is True then)."""

    value: Expression
    name: str
    arrow: bool = False


@record(eq=False, slots=True)
class Slice(Expression):
    lower: Expression | None = None
    upper: Expression | None = None
    step: Expression | None = None


@record(eq=False, slots=True)
class Index(Expression):
    """``value[a, b:c]``: one index an axis."""

    value: Expression
    indices: tuple[Expression, ...]


@record(eq=False, slots=True)
class Arg:
    """One argument of a call. ``stars`` is 1 for ``*args`` and C++ pack expansions, 2 for ``**kwargs``."""

    value: Expression
    keyword: str | None = None
    stars: int = 0


@record(eq=False, slots=True)
class Call(Expression):
    """``function(args)``. ``name_at`` is the API's own name (the last part of a dotted name): findings point there.

    ``template`` holds the template arguments of a C++ call as text (``f<float, 4>(x)`` gives ``("float", "4")``).
    """

    function: Expression
    args: tuple[Arg, ...] = ()
    name_at: Position = NOWHERE
    template: tuple[str, ...] = ()


@record(eq=False, slots=True)
class Launch(Expression):
    """``kernel<<<config>>>(args)``; ``name_at`` is the kernel's name. ``config`` has two to four expressions as written."""

    kernel: Expression
    config: tuple[Expression, ...]
    args: tuple[Arg, ...] = ()
    name_at: Position = NOWHERE


@record(eq=False, slots=True)
class Unary(Expression):
    """``-x``, ``+x``, ``~x``, ``not x`` (C++ ``!x`` is ``not``). ``++x`` and ``x++`` are AssignExpr."""

    op: str
    operand: Expression


@record(eq=False, slots=True)
class Binary(Expression):
    """Arithmetic and bits: ``+ - * / // % ** @ & | ^ << >>`` (C++ ``/`` stays ``/``), and ``,`` (value of the right)."""

    op: str
    left: Expression
    right: Expression


@record(eq=False, slots=True)
class Compare(Expression):
    """``== != < <= > >= is 'is not' in 'not in'``; a chain of comparisons is a Bool of Compares."""

    op: str
    left: Expression
    right: Expression


@record(eq=False, slots=True)
class Bool(Expression):
    op: Literal["and", "or"]
    values: tuple[Expression, ...]


@record(eq=False, slots=True)
class Conditional(Expression):
    test: Expression
    then: Expression
    otherwise: Expression


@record(eq=False, slots=True)
class Lambda(Expression):
    """A Python lambda (its body is one Return) or a C++ lambda (its captures are the whole scope)."""

    function: Function


@record(eq=False, slots=True)
class Collection(Expression):
    """``list``, ``tuple``, ``set`` displays; C++ brace initialisers without a type are ``list``. ``*x`` items are Starred."""

    kind: Literal["list", "tuple", "set"]
    items: tuple[Expression, ...]


@record(eq=False, slots=True)
class Starred(Expression):
    value: Expression


@record(eq=False, slots=True)
class Mapping(Expression):
    """A dict display. A key of None marks ``**value``."""

    items: tuple[tuple[Expression | None, Expression], ...]


@record(eq=False, slots=True)
class Clause:
    """``for target in iterable if test …`` of a comprehension."""

    target: Expression
    iterable: Expression
    tests: tuple[Expression, ...] = ()


@record(eq=False, slots=True)
class Comprehension(Expression):
    """``element`` is a Mapping of one item for dict comprehensions."""

    kind: Literal["list", "set", "dict", "generator"]
    element: Expression
    clauses: tuple[Clause, ...]


@record(eq=False, slots=True)
class Format(Expression):
    """An f-string: the values that are formatted. Plain concatenated strings are Const."""

    values: tuple[Expression, ...]


@record(eq=False, slots=True)
class Await(Expression):
    value: Expression


@record(eq=False, slots=True)
class Yield(Expression):
    value: Expression | None
    delegate: bool = False


@record(eq=False, slots=True)
class AssignExpr(Expression):
    """An assignment with a value: ``:=``, every C++ ``=``, ``+=`` (``op`` is ``+``), ``++x`` (``op`` is ``+``, value Const(1))."""

    target: Expression
    value: Expression
    op: str | None = None


@record(eq=False, slots=True)
class AddressOf(Expression):
    value: Expression


@record(eq=False, slots=True)
class Deref(Expression):
    value: Expression


@record(eq=False, slots=True)
class Cast(Expression):
    """Any C++ cast to ``type`` (C style, static, reinterpret, const, dynamic)."""

    type: Type
    value: Expression


@record(eq=False, slots=True)
class New(Expression):
    """``new T(args)``, or ``new T[count]``; malloc and friends are ordinary calls."""

    type: Type
    args: tuple[Arg, ...] = ()
    count: Expression | None = None


@record(eq=False, slots=True)
class DeleteExpr(Expression):
    """C++ ``delete p`` and ``delete[] p``."""

    value: Expression
    array: bool = False


@record(eq=False, slots=True)
class Construct(Expression):
    """C++ ``T{a, b}`` or ``T(a, b)`` where T is known to be a type from its spelling (braces, or template arguments)."""

    type: Type
    args: tuple[Arg, ...] = ()


@record(eq=False, slots=True)
class Unknown(Expression):
    """What the front end could not lower (a C++ ERROR node, an exotic construct); ``parts`` are sub-expressions that it could."""

    parts: tuple[Expression, ...] = ()


# --- types (C++; Python annotations stay expressions) ------------------------------------------------------------------------------


@record(frozen=True, slots=True)
class Type:
    """A C++ type: ``const std::vector<cudaStream_t>&`` is ``Type("std::vector", (Type("cudaStream_t"),), reference=True)``.

    ``name`` keeps its qualification and loses cv, ``struct``, ``typename`` and template arguments. ``pointers`` counts ``*``.
    ``array`` is the element count of ``T x[4]`` when it is a literal, 0 when it is not, None for no array; ``extent`` is the name of a
    count that has one.
    """

    name: str
    args: tuple[Type, ...] = ()
    pointers: int = 0
    reference: bool = False
    array: int | None = None
    extent: str = ""


# --- statements -----------------------------------------------------------------------------------------------------------------


class Statement(Node):
    """Anything that stands on its own."""

    __slots__ = ()


Body = list[Statement]


@record(eq=False, slots=True)
class ExprStatement(Statement):
    value: Expression


@record(eq=False, slots=True)
class Assign(Statement):
    """``targets`` are assigned from left to right; ``op`` is set for augmented assignment. Annotated: ``annotation``."""

    targets: tuple[Expression, ...]
    value: Expression | None
    op: str | None = None
    annotation: Expression | None = None


@record(eq=False, slots=True)
class Declare(Statement):
    """A C++ variable. ``args`` is set for ``T x(a, b)`` and ``T x{a, b}`` (empty for ``T x{}``), ``value`` for ``T x = e``.

    ``auto`` is Type("auto"). Structured bindings have their names in ``names`` (then ``name`` is "").
    """

    name: str
    type: Type
    value: Expression | None = None
    args: tuple[Arg, ...] | None = None
    static: bool = False
    names: tuple[str, ...] = ()


@record(eq=False, slots=True)
class If(Statement):
    test: Expression
    then: Body
    otherwise: Body = field(default_factory=list)


@record(eq=False, slots=True)
class Loop(Statement):
    """``for``: target and iterable (Python ``for``, C++ range-for). ``while``/``do``: test. C++ ``for(;;)`` is ``c-for``.

    ``head_at`` is the loop's keyword.
    """

    kind: Literal["for", "while", "do", "c-for"]
    body: Body
    target: Expression | None = None
    iterable: Expression | None = None
    test: Expression | None = None
    init: Body = field(default_factory=list)
    update: Expression | None = None
    otherwise: Body = field(default_factory=list)


@record(eq=False, slots=True)
class With(Statement):
    """``items`` are (expression, target or None)."""

    items: tuple[tuple[Expression, Expression | None], ...]
    body: Body


@record(eq=False, slots=True)
class Handler:
    type: Expression | None
    name: str | None
    body: Body


@record(eq=False, slots=True)
class Try(Statement):
    body: Body
    handlers: list[Handler]
    otherwise: Body = field(default_factory=list)
    final: Body = field(default_factory=list)


@record(eq=False, slots=True)
class Switch(Statement):
    """C++ ``switch`` and Python ``match``. A case is (labels, body); default has no labels. Fall-through is spelled out."""

    subject: Expression
    cases: list[tuple[tuple[Expression, ...], Body]]


@record(eq=False, slots=True)
class Return(Statement):
    value: Expression | None = None


@record(eq=False, slots=True)
class Raise(Statement):
    """``raise`` and ``throw``; also calls that do not return (``abort``, ``exit``) may be lowered so."""

    value: Expression | None = None


@record(eq=False, slots=True)
class Break(Statement):
    pass


@record(eq=False, slots=True)
class Continue(Statement):
    pass


@record(eq=False, slots=True)
class Delete(Statement):
    """Python ``del``."""

    targets: tuple[Expression, ...]


@record(eq=False, slots=True)
class Assert(Statement):
    test: Expression


@record(eq=False, slots=True)
class Block(Statement):
    """A C++ scope of its own: objects declared in it die at its end."""

    body: Body


@record(eq=False, slots=True)
class Scope(Statement):
    """Python ``global`` or ``nonlocal``."""

    names: tuple[str, ...]
    outermost: bool


@record(eq=False, slots=True)
class Import(Statement):
    """``import a.b as c`` is ``[("c", "a.b", None)]``; ``from a import b as c`` is ``[("c", "a", "b")]``; ``from a import *`` has name "*".

    Relative imports keep their leading dots in the module.
    """

    names: list[tuple[str, str, str | None]]


@record(eq=False, slots=True)
class FunctionDef(Statement):
    function: Function


@record(eq=False, slots=True)
class ClassDef(Statement):
    definition: Class


# --- definitions ----------------------------------------------------------------------------------------------------------------


@record(eq=False, slots=True)
class Param:
    """``kind``: ``plain``, ``star`` (``*args``), ``double`` (``**kwargs``), ``keyword`` (keyword-only)."""

    name: str
    default: Expression | None = None
    annotation: Expression | None = None
    type: Type | None = None
    kind: Literal["plain", "star", "double", "keyword"] = "plain"
    constant: bool | None = False  # C++: nothing is written through it; None of what is volatile


@record(eq=False, slots=True)
class Function(Node):
    """A body with parameters. ``qualname`` is dotted in Python (``Class.method``), ``::``-joined in C++."""

    name: str
    qualname: str
    params: list[Param]
    body: Body
    decorators: tuple[Expression, ...] = ()
    is_async: bool = False
    is_generator: bool = False
    is_lambda: bool = False
    # C++ only
    returns: Type | None = None
    annotation: Expression | None = None  # Python return annotation
    space: Literal["host", "device", "kernel"] = "host"  # __global__ is "kernel"; __device__ alone is "device"
    stores: frozenset[str] = frozenset()  # of a kernel: the parameters that its body plainly stores through
    accumulates: dict[str, str] = field(default_factory=dict)  # of a kernel: those that one kind of atomic operation alone touches
    # of a kernel: the parameters of which its body names no more than elements of fixed number, or members of them, and these
    elements: dict[str, tuple[str, ...]] = field(default_factory=dict)
    placed: dict[str, frozenset[str]] = field(default_factory=dict)  # of a kernel: those whose every place other parameters move, and these
    static: bool = False
    kind: Literal["function", "constructor", "destructor"] = "function"
    initialisers: list[tuple[str, tuple[Arg, ...]]] = field(default_factory=list)  # C++ member initialisers, and delegated bases
    class_name: str = ""  # qualified name of the class that a method belongs to, also when it is defined outside of it
    template: tuple[str, ...] = ()  # names of template parameters
    line_text: str = ""  # text of the definition's first line, as far as LONGEST_LINE


@record(eq=False, slots=True)
class Field:
    """A C++ data member, or an annotated name in a Python class body (``value`` is its default)."""

    name: str
    type: Type | None = None
    value: Expression | None = None
    args: tuple[Arg, ...] | None = None
    static: bool = False
    annotation: Expression | None = None
    at: Position = NOWHERE


@record(eq=False, slots=True)
class Class(Node):
    """``bases`` are expressions in Python and Names in C++. ``body`` holds a Python class's other statements."""

    name: str
    qualname: str
    bases: tuple[Expression, ...]
    methods: dict[str, list[Function]]  # overloads share a name; the constructor is "__init__", the destructor "__del__", both languages
    fields: list[Field] = field(default_factory=list)
    body: Body = field(default_factory=list)
    decorators: tuple[Expression, ...] = ()
    classes: dict[str, Class] = field(default_factory=dict)
    template: tuple[str, ...] = ()  # C++: names of template parameters


@record(frozen=True, slots=True)
class Defined:
    """A C++ macro's definition: the offset of its name, and how many includes stand above it."""

    name: str
    offset: int
    includes_above: int


@record(eq=False, slots=True)
class Module:
    """One file. ``body`` holds everything in order, FunctionDef and ClassDef included (C++: namespaces are dissolved into qualnames)."""

    path: str
    language: Literal["python", "cuda"]
    body: Body
    text: str
    functions: dict[str, list[Function]] = field(default_factory=dict)  # by qualname; top level and, for C++, methods defined outside
    classes: dict[str, Class] = field(default_factory=dict)  # by qualname
    imports: dict[str, str] = field(
        default_factory=dict
    )  # Python: local name -> dotted name ("np" -> "numpy", "DataLoader" -> "torch.utils.data.DataLoader")
    includes: tuple[str, ...] = ()  # C++: as written, without <> or ""
    included_at: tuple[tuple[int, int], ...] = ()  # C++: the offsets of each of them
    defined: tuple[Defined, ...] = ()  # C++: macros in the branches that are compiled, in order
    aliases: dict[str, Type] = field(default_factory=dict)  # C++: typedef and using
    namespaces: dict[str, str] = field(default_factory=dict)  # C++: namespace aliases ("py" -> "pybind11")
    using: tuple[str, ...] = ()  # C++: using namespace X
    macros: dict[str, str] = field(default_factory=dict)  # C++: object-like and function-like macros by name -> body text
    globals: list[Declare] = field(default_factory=list)  # C++: variables of file or namespace scope
    elsewhere: dict[str, Type] = field(default_factory=dict)  # C++: variables that are declared here and defined in another file
    problems: list[tuple[Position, str]] = field(default_factory=list)  # what could not be read, with its place
    inline: list[Module] = field(default_factory=list)  # C++ held in Python strings
    bound: frozenset[str] = frozenset()  # C++ in a Python string: the functions that `load_inline` makes known to Python
    dialect: str = ""  # "cython" where it was translated from it
    c_names: dict[str, str] = field(default_factory=dict)  # Cython: names that `cdef extern` brings from C++, as they are spelled there

    def position(self, start: int, end: int) -> Position:
        """Rows and columns of a stretch, by its offsets."""
        return position_at(line_starts(self.text), start, end)


_NODES = (Node, Arg, Clause, Handler, Param, Field)
# By class: what reads the fields that may hold nodes.
_FIELDS: dict[type, Callable[[Any], tuple[Any, ...]]] = {}
# By class of a field's value.
_NODE, _MANY, _OTHER = 1, 2, 3
_KINDS: dict[type, int] = {}
# Fields that never hold nodes; walking them would be lost time.
_PLAIN = frozenset(
    {"at", "name_at", "id", "name", "op", "kind", "keyword", "stars", "qualname", "template", "line_text", "type", "arrow", "names"}
)


def children(node: object) -> list[object]:
    """The nodes directly below ``node``, in source order where the fields stand so."""
    cls = node.__class__
    held = _FIELDS.get(cls)
    if held is None:
        held = _FIELDS[cls] = _reader(tuple(name for name in names_of(cls) if name not in _PLAIN))
    found: list[object] = []
    for value in held(node):
        kind = _KINDS.get(value.__class__) or _kind(value.__class__)
        if kind == _NODE:
            found.append(value)
        elif kind == _MANY:
            _add_inside(value, found)
    return found


def _reader(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return (lambda node: (getattr(node, names[0]),)) if names else lambda node: ()


def _kind(cls: type) -> int:
    kind = _KINDS[cls] = _NODE if issubclass(cls, _NODES) else _MANY if issubclass(cls, (list, tuple)) else _OTHER
    return kind


def _add_inside(values: list[Any] | tuple[Any, ...], found: list[object]) -> None:
    for value in values:
        kind = _KINDS.get(value.__class__) or _kind(value.__class__)
        if kind == _NODE:
            found.append(value)
        elif kind == _MANY:
            _add_inside(value, found)


def functions_of(module: Module) -> Iterator[tuple[Function, Class | None]]:
    """The methods of a module's classes, each with its class, then its functions; overloads and declarations included."""
    for definition in dict.fromkeys(module.classes.values()):
        for overloads in definition.methods.values():
            for function in overloads:
                yield function, definition
    for overloads in module.functions.values():
        for function in overloads:
            yield function, None


def walk(node: object) -> Iterator[object]:
    """``node`` and everything below it, nested functions and classes included. A function's nodes are kept: much is asked of each."""
    return iter(_nodes_in(node)) if node.__class__ is Function else _walk(node)


@functools.lru_cache(maxsize=4096)
def _nodes_in(function: object) -> tuple[object, ...]:
    return tuple(_walk(function))


def _walk(node: object) -> Iterator[object]:
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        kind = current.__class__
        if kind is Name or kind is Const:  # half of all nodes, with nothing below
            continue
        if kind is Class:
            stack.extend(method for overloads in current.methods.values() for method in overloads)  # type: ignore[attr-defined]
            stack.extend(current.classes.values())  # type: ignore[attr-defined]
        if below := children(current):
            below.reverse()
            stack += below
