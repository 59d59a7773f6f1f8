"""What stands on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from streamlint.program.expressions import Arg, Expression, Node, Type
from streamlint.program.patterns import Case
from streamlint.support.records import field, record

if TYPE_CHECKING:
    from streamlint.program.definitions import Class, Function


class Statement(Node):
    """Anything that stands on its own."""

    __slots__ = ()


Body = list[Statement]


@record(eq=False, slots=True)
class ExprStatement(Statement):
    value: Expression


@record(eq=False, slots=True)
class Assign(Statement):
    """``targets`` are assigned from left to right; ``op`` is set for augmented assignment. Annotated: ``annotation``, which holds for this
    assignment alone if it is ``commented``."""

    targets: tuple[Expression, ...]
    value: Expression | None
    op: str | None = None
    annotation: Expression | None = None
    commented: bool = False


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
    annotation: Expression | None = None  # what a comment declares


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
    is_async: bool = False


@record(eq=False, slots=True)
class With(Statement):
    """``items`` are (expression, target or None)."""

    items: tuple[tuple[Expression, Expression | None], ...]
    body: Body
    is_async: bool = False


@record(eq=False, slots=True)
class Handler:
    type: Expression | None
    name: str | None
    body: Body


@record(eq=False, slots=True)
class Try(Statement):
    """``group`` is set for ``except*``: each handler takes its share of a group of exceptions."""

    body: Body
    handlers: list[Handler]
    otherwise: Body = field(default_factory=list)
    final: Body = field(default_factory=list)
    group: bool = False


@record(eq=False, slots=True)
class Switch(Statement):
    """C++ ``switch`` and Python ``match``. A case is (labels, body); default has no labels. Fall-through is spelled out.

    ``patterns`` says of each case of ``match`` what it really asks for.
    """

    subject: Expression
    cases: list[tuple[tuple[Expression, ...], Body]]
    patterns: tuple[Case, ...] = ()


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
