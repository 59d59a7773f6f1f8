"""What has a value, and the types of C++. Python's annotations stay expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from streamlint.program.positions import NOWHERE, PACKED, Position
from streamlint.support.records import field, record

if TYPE_CHECKING:
    from streamlint.program.definitions import Function

_NAMING = re.compile(r"[\w./:-]*")
"""Texts that names of members and of modules are made of."""


@record(eq=False, slots=True)
class Node:
    """A piece of code and where it stands."""

    __packed__ = (("at", PACKED),)

    at: Position = field(default=NOWHERE, kw_only=True)


class Expression(Node):
    """Anything that has a value."""

    __slots__ = ()


@record(eq=False, slots=True)
class Const(Expression):
    """A literal: number, str, bytes, bool, None, Ellipsis. C++: ``nullptr`` and ``NULL`` are None, ``true`` is True."""

    value: object


@record(eq=False, slots=True)
class Name(Expression):
    """A plain name. C++: qualified names are one Name with ``::`` kept (``at::cuda::getCurrentCUDAStream``), the template arguments of the
    last part in ``template``."""

    id: str
    template: tuple[Type | Const, ...] = ()


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

    ``template`` holds the template arguments of a C++ call: ``f<float, 4>(x)`` has the type ``float`` and the constant 4. A name may be
    that of a type or of a constant: where it is looked up decides.
    """

    __packed__ = (("name_at", PACKED),)

    function: Expression
    args: tuple[Arg, ...] = ()
    name_at: Position = NOWHERE
    template: tuple[Type | Const, ...] = ()


@record(eq=False, slots=True)
class Launch(Expression):
    """``kernel<<<config>>>(args)``; ``name_at`` is the kernel's name. ``config`` has two to four expressions as written."""

    __packed__ = (("name_at", PACKED),)

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
    is_async: bool = False


@record(eq=False, slots=True)
class Comprehension(Expression):
    """``element`` is a Mapping of one item for dict comprehensions."""

    kind: Literal["list", "set", "dict", "generator"]
    element: Expression
    clauses: tuple[Clause, ...]


@record(eq=False, slots=True)
class Format(Expression):
    """An f-string: the values that are formatted. Plain concatenated strings are Const. ``texts``, of one that may name something: what
    stands before, between and behind the values (``f"on_{event}"``)."""

    values: tuple[Expression, ...]
    texts: tuple[str, ...] = ()

    @staticmethod
    def naming(parts: Iterable[str | None]) -> tuple[str, ...]:
        """The texts around the values of an f-string that may name something; of any other none. ``parts``: its texts, None for a value."""
        found = [""]
        for part in parts:
            if part is None:
                found.append("")
            elif _NAMING.fullmatch(part) is None:
                return ()
            else:
                found[-1] += part
        return tuple(found) if any(found) else ()


@record(eq=False, slots=True)
class Await(Expression):
    value: Expression


@record(eq=False, slots=True)
class Yield(Expression):
    value: Expression | None
    delegate: bool = False


@record(eq=False, slots=True)
class AssignExpr(Expression):
    """An assignment with a value: ``:=``, every C++ ``=``, ``+=`` (``op`` is ``+``), ``++x`` (``op`` is ``+``, value Const(1)).

    ``before`` is set for ``x++``, whose value is the one before.
    """

    target: Expression
    value: Expression
    op: str | None = None
    before: bool = False
    annotation: Expression | None = None  # what a comment declares


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


@record(frozen=True, slots=True)
class Type:
    """A C++ type: ``const std::vector<cudaStream_t>&`` is ``Type("std::vector", (Type("cudaStream_t"),), reference=True)``.

    ``name`` keeps its qualification and loses cv, ``struct``, ``typename`` and template arguments. ``pointers`` counts ``*``.
    ``array`` is the element count of ``T x[4]`` when it is a literal, 0 when it is not, None for no array.
    """

    name: str
    args: tuple[Type, ...] = ()
    pointers: int = 0
    reference: bool = False
    array: int | None = None
