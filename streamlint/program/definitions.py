"""Functions, classes, and the module that holds them."""

from __future__ import annotations

from typing import Literal

from streamlint.program.expressions import Arg, Const, Expression, Node, Type
from streamlint.program.positions import NOWHERE, PACKED, Position
from streamlint.program.statements import Body, Declare
from streamlint.support.lines import line_starts, position_at
from streamlint.support.records import field, record

HOLDS_CPP = ("load_inline", "<<<", "cudaMemcpyAsync", "cudaLaunch")
"""Words of which one stands in a Python file whose strings hold C++ that works on the device."""


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
    annotation: Expression | None = None  # Python return annotation; C++: what a comment declares of the result
    waits: bool = False  # a comment declares that it waits for its stream
    space: Literal["host", "device", "kernel"] = "host"  # __global__ is "kernel"; __device__ alone is "device"
    stores: frozenset[str] = frozenset()  # of a kernel: the parameters that its body plainly stores through
    symbols: frozenset[str] = frozenset()  # of a kernel: the names of the file that its body stores to, as far as its text tells
    accumulates: dict[str, str] = field(default_factory=dict)  # of a kernel: those that one kind of atomic operation alone touches
    # of a kernel: the parameters of which its body names no more than elements of fixed number, or members of them, and these
    elements: dict[str, tuple[str, ...]] = field(default_factory=dict)
    placed: dict[str, frozenset[str]] = field(default_factory=dict)  # of a kernel: those whose every place other parameters move, and these
    static: bool = False
    kind: Literal["function", "constructor", "destructor"] = "function"
    initialisers: list[tuple[str, tuple[Arg, ...]]] = field(default_factory=list)  # C++ member initialisers, and delegated bases
    class_name: str = ""  # qualified name of the class that a method belongs to, also when it is defined outside of it
    template: tuple[str, ...] = ()  # names of template parameters
    specialised: tuple[Type | Const, ...] = ()  # C++: the template arguments that it, or the class around it, is specialised for


@record(eq=False, slots=True)
class Field:
    """A C++ data member, or an annotated name in a Python class body (``value`` is its default)."""

    __packed__ = (("at", PACKED),)

    name: str
    type: Type | None = None
    value: Expression | None = None
    args: tuple[Arg, ...] | None = None
    static: bool = False
    annotation: Expression | None = None
    at: Position = NOWHERE
    private: bool = False  # C++: only functions of its class may name it, which has no friends


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
    keywords: tuple[Arg, ...] = ()  # Python: ``metaclass=M``, and what ``__init_subclass__`` is given
    specialised: tuple[Type | Const, ...] = ()  # C++: the template arguments that it is specialised for


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

    def position(self, start: int, end: int) -> Position:
        """Rows and columns of a stretch, by its offsets."""
        return position_at(line_starts(self.text), start, end)
