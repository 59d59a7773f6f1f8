"""Abstract objects: what a value of the program may be.

Objects are interned: two equal ones are the same Python object, so sets of them are compared by identity. A tensor or array is known by
its kind (`Memory`), not by its allocation: where it was allocated is in the provenance of each value (`nodes.Node.values`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from streamlint.support.records import record

if TYPE_CHECKING:
    from streamlint.facts.code.functions import ClassInfo, Function
    from streamlint.facts.files.program import Unit
    from streamlint.facts.values.frames import Arguments, Frame
    from streamlint.facts.values.nodes import Node
    from streamlint.ir import Instruction
    from streamlint.program import Position

Key = str | int
"""A constant index of a container."""


class Affixes(NamedTuple):
    """What a key begins and ends with that is put together of texts: ``f"loss/{name}"``."""

    before: str
    after: str

    def fits(self, key: object) -> bool:
        """Whether a constant may be such a key."""
        is_long = isinstance(key, str) and len(key) >= len(self.before) + len(self.after)
        return is_long and isinstance(key, str) and key.startswith(self.before) and key.endswith(self.after)


Name = Key | Affixes | None
"""What is known of the key under which something is put: all of it, its ends, or nothing."""


def may_be_under(name: Name, key: object) -> bool:
    """Whether what is put under one key may be asked for under another; None is a key that is not known."""
    return name is None or key is None or name == key or (isinstance(name, Affixes) and name.fits(key))


@record(frozen=True, slots=True, eq=False)
class Object:
    """Anything that a value may be."""


@record(frozen=True, slots=True, eq=False)
class Constant(Object):
    """A literal: None, a bool, a number, a string."""

    value: object


@record(frozen=True, slots=True, eq=False)
class Scalar(Object):
    """A number, text or truth value of the host that is not known; ``many`` where it is one of many constants."""

    many: bool = False


@record(frozen=True, slots=True, eq=False)
class Text(Scalar):
    """Text of which only the beginning is known."""

    prefix: str = ""


@record(frozen=True, slots=True, eq=False)
class Unknown(Object):
    """Nothing is known, for this reason: ``caller`` (called from outside of the program), ``external`` (the result of code that is
    not part of it), ``budget``, ``dynamic``. It stands beside known objects and deletes none of them."""

    reason: str


@record(frozen=True, slots=True, eq=False)
class Memory(Object):
    """A tensor, an array or a pointer to data.

    ``space`` is ``host``, ``device``, ``managed`` or ``unknown``; ``pinning``, of host memory, ``pageable``, ``pinned`` or ``unknown``;
    ``evidence`` says what shows the device: ``literal``, ``asked`` (a device that the program names without saying which) or ``none``.
    """

    space: str
    pinning: str
    type: str
    evidence: str = "none"


@record(frozen=True, slots=True, eq=False)
class DeviceValue(Object):
    """A device: ``device`` (CUDA), ``host``, ``pinned`` (options in C++ for page-locked memory), or ``unknown``."""

    space: str


@record(frozen=True, slots=True, eq=False)
class LibraryObject(Object):
    """An object of a library's type: a stream, an event, a module, a loader. ``site`` tells several of a type apart where that matters."""

    type: str
    kind: str
    detail: str = ""
    site: Site | None = None


@record(frozen=True, slots=True, eq=False)
class External(Object):
    """A name of a library or of the language: a function, a class, a module. ``receiver`` is set for a method that was looked up."""

    name: str
    receiver: Object | None = None


@record(frozen=True, slots=True, eq=False)
class CppName(External):
    """C++: a name that no file of the program defines."""


@record(frozen=True, slots=True, eq=False)
class Address(Object):
    """C++: a pointer or reference to a place that holds what a node does."""

    place: Node


@record(frozen=True, slots=True, eq=False)
class Elements(Object):
    """C++: an array, vector, map or other container. ``home`` says whose: the frame and the instruction that made it, or the class and
    the member, or the variable."""

    kind: str
    home: tuple[Any, ...]


@record(frozen=True, slots=True, eq=False)
class FunctionObject(Object):
    """A function of the program; ``frame`` is where it was defined, if it uses variables from there."""

    function: Function
    frame: Frame | None


@record(frozen=True, slots=True, eq=False)
class BoundMethod(Object):
    """A method and its receiver."""

    method: FunctionObject
    receiver: Object


@record(frozen=True, slots=True, eq=False)
class ClassObject(Object):
    """A class of the program."""

    definition: ClassInfo


@record(frozen=True, slots=True, eq=False)
class SomeClass(ClassObject):
    """A class of the program, or one that derives from it: the class of an object, ``cls`` of a class method."""


@record(frozen=True, slots=True, eq=False)
class Instance(Object):
    """An object of a class of the program; of one of its subclasses, too, unless ``exact``."""

    definition: ClassInfo
    exact: bool = True


@record(frozen=True, slots=True, eq=False)
class SuperObject(Object):
    """``super()``: members are looked up behind ``after`` in the order of the receiver's classes."""

    after: ClassInfo
    receiver: Object


@record(frozen=True, slots=True, eq=False)
class ModuleObject(Object):
    """A file of the program, as a module."""

    unit: Unit


@record(frozen=True, slots=True, eq=False)
class Container(Object):
    """A list, tuple, set, dict or queue made at one place. ``frame`` is the frame in which it was made."""

    kind: str
    frame: Frame
    instruction: Instruction


@record(frozen=True, slots=True, eq=False)
class Group(Object):
    """A tuple whose elements are nodes (``tuple``), or an iterable whose elements come from each of them (``iterable``)."""

    kind: str
    nodes: tuple[Node, ...]
    depth: int = 0  # views of views: `x.items()` of `x.items()`


@record(frozen=True, slots=True, eq=False)
class Varargs(Object):
    """The rest of the arguments of a call: ``*args`` (``first`` is the first position) or ``**kwargs``."""

    arguments: Arguments
    first: int
    named: frozenset[str] | None


@record(frozen=True, slots=True, eq=False)
class Rest(Object):
    """The rest of the arguments that all calls of a function give: what ``*args`` or ``**kwargs`` holds in the frame of all calls."""

    frame: Frame
    index: int


@record(frozen=True, slots=True, eq=False)
class PartialObject(Object):
    """``functools.partial``: a callable and some of its arguments."""

    callee: Object
    arguments: Arguments


def without_partials(value: Object) -> Object:
    """What a call of a value calls: of a partial object, its callable."""
    while isinstance(value, PartialObject):
        value = value.callee
    return value


@record(frozen=True, slots=True, eq=False)
class PartialMethod(Object):
    """``functools.partialmethod`` in the body of a class: a function and some of its arguments, behind the object."""

    callee: Object
    arguments: Arguments


@record(frozen=True, slots=True, eq=False)
class BoundPartial(PartialObject):
    """What ``functools.partialmethod`` gives of an object: its method, and some of the arguments of that."""


@record(frozen=True, slots=True, eq=False)
class Chosen(PartialObject):
    """A function that a generic one runs for some classes of the first argument, or the generic one's own body: ``callee``."""


@record(frozen=True, slots=True, eq=False)
class Many(Object):
    """One of many functions, methods or classes of a file, of a folder or of the program: `joins.Joins.members` has them."""

    kind: str
    of: object


@record(frozen=True, slots=True, eq=False)
class Activation(Object):
    """A generator, coroutine or context manager that calling ``frame``'s function has given."""

    frame: Frame
    kind: str


class Site(NamedTuple):
    """A place in a function: where an object was made, or a call stands."""

    function: Function
    instruction: Instruction

    @property
    def at(self) -> Position:
        """Its place in the file's text: lines and columns, from 1."""
        return self.function.code.at(self.instruction[1])

    @property
    def row(self) -> int:
        """The line, from 1."""
        return self.at[0]

    def __str__(self) -> str:
        return f"{self.function.unit.path}:{self.row}"


Kind = TypeVar("Kind", bound=Object)


class Objects:
    """The objects of one analysis, each made once."""

    def __init__(self) -> None:
        self._made: dict[Any, Any] = {}

    def __call__(self, kind: type[Kind], *parts: Any) -> Kind:
        """The object of these parts."""
        key = (kind, *parts) if kind is not Constant else (kind, type(parts[0]), *parts)  # 1, 1.0 and True are equal
        found: Kind | None = self._made.get(key)
        if found is None:
            found = self._made[key] = kind(*parts)
        return found


def is_module(value: Object) -> bool:
    """Whether a value is a module, or a list of modules."""
    return (isinstance(value, LibraryObject) and value.kind == "module") or (isinstance(value, Container) and value.kind == "modules")


def are_plain(values: Collection[Object]) -> bool:
    """Whether something is known of a value, and it is nothing but numbers and texts."""
    return bool(values) and all(isinstance(value, (Constant, Scalar)) for value in values)


def is_unknown(values: Iterable[Object]) -> bool:
    """Whether nothing is known of a value."""
    return all(isinstance(value, Unknown) for value in values)


def given_in_view(values: Iterable[Object]) -> list[Object]:
    """A value without what callers out of view may give for it; all of it where no caller in view gives anything."""
    held = list(values)
    return [value for value in held if not (isinstance(value, Unknown) and value.reason == "caller")] or held
