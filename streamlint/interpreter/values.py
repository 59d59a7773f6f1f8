"""What code holds while a path runs: buffers and their storages, streams, events, functions, objects, plain and unknown values.

A path is executed from its start with values of its own, so values are mutable and compare by identity.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from streamlint.cuda_model import Clock, Stamp
from streamlint.findings import Span, Step
from streamlint.operations import Evidence, Memory, Operation
from streamlint.program import Class, Expression, Function, Type
from streamlint.record import field, record

if TYPE_CHECKING:
    from streamlint.interpreter.index import File
    from streamlint.models import Row

# () is the whole; else one entry an axis or step: ("i", term), ("s", low, high), ("b", bytes): so many from the beginning on, ("?", n),
# ("+", atomic operation), ("@", arguments that move a kernel's places)
Part = tuple[Any, ...]


_LONGEST_KEY = 4
_serials = itertools.count(1)
_raw_memory = False


def holds_raw_memory() -> bool:
    """Whether this run has met memory that the driver allocated: without any, nothing is freed by its last reference."""
    return _raw_memory


def restart_serials() -> None:
    """A new run numbers its values from 1: two runs that went the same way so far have the same terms."""
    global _serials, _raw_memory
    _serials, _raw_memory = itertools.count(1), False


def numbering() -> tuple[itertools.count[int], bool]:
    """Where the numbers of this run stand, for another that goes on from here."""
    return _serials, _raw_memory


def resume_numbering(numbers: tuple[itertools.count[int], bool]) -> None:
    global _serials, _raw_memory
    _serials, _raw_memory = numbers


class Numbered:
    """Has a number within its run, given when it is first asked for."""

    __slots__ = ("_serial",)

    @property
    def serial(self) -> int:
        try:
            return self._serial
        except AttributeError:
            self._serial: int = next(_serials)
            return self._serial


class Value(Numbered):
    """Anything a name can hold. ``term`` identifies the value in conditions and indices; equal terms are equal values."""

    __slots__ = ()

    @property
    def term(self) -> str:
        return f"{type(self).__name__}#{self.serial}"


@record(eq=False, slots=True)
class Const(Value):
    """``origin`` is the call that chose the value, where a caller did (a default left out, a literal argument)."""

    value: object
    origin: Span | None = None

    @property
    def term(self) -> str:
        return repr(self.value)


@record(eq=False, slots=True)
class Opaque(Value):
    """A value about which only its origin is known. ``reach`` are values that it may hold. ``type`` is its C++ or annotated type."""

    name: str
    reach: tuple[Value, ...] = ()
    type: str = ""
    attrs: dict[str, Value] = field(default_factory=dict)
    evidence: Evidence = Evidence.NONE
    buffer: Buffer | None = None  # made when it turns out to be memory
    default: Value | None = None  # a parameter's default: not its value, but evidence
    parameter: bool = False
    cpp_type: Type | None = None
    made: Access | None = None  # the work that made it, if it turns out to be memory of a device
    held: bool = False  # it was taken out of a container, and may be one of what it reaches, or a part of that
    module: Value | None = None  # whose parameters or buffers they are, or it is one of
    plain: bool = False  # a number or a text of Python's: to compute with it puts nothing on a device
    there: bool = False  # it is one of several values of which none is None

    @property
    def term(self) -> str:
        return self.name


def is_plain(value: Value) -> bool:
    """Whether a value is a number or a text of Python's own."""
    return isinstance(value, Const) or (isinstance(value, Opaque) and value.plain)


@record(eq=False, slots=True)
class Access:
    """A device-side access to a storage that may still be in flight. ``sure``: the operation is known to make it; ``over``: it is not."""

    operation: Operation
    stamp: Stamp
    part: Part
    sure: bool = True
    over: bool = False


@record(eq=False, slots=True)
class Storage(Numbered):
    """A block of memory. ``trail`` says where its facts came from."""

    memory: Memory
    name: str = ""
    nbytes: int | None = None
    extent: str = ""  # the term of its size in bytes, where it was allocated in view
    small: bool = False
    counted: bool = False  # whole numbers, and nothing shows how many: labels, lengths, indices
    width: int | None = None  # bytes of an element of a container, where its type says it
    evidence: Evidence = Evidence.NONE
    trail: tuple[Step, ...] = ()
    library: str = ""
    _raw: bool = False
    allocated: Operation | None = None
    freed: bool = False
    device: int | None = None  # that was current at the allocation
    stream: Stream | None = None  # allocating stream
    writes: list[Access] = field(default_factory=list)
    reads: list[Access] = field(default_factory=list)
    owner: str = ""  # "caller" for a root's parameters
    host: bool = False  # on the host for sure, pinned or not
    by_choice: bool = False  # on the host here, as a condition said or a device that was handed in: where that is CUDA, it is not
    for_device: tuple[str, str] | None = None  # the function that made it, and its parameter that says the device
    fresh: bool = False  # made by computing or gathering, wherever its operands are: on the host it is pageable
    made_in: tuple[Span, ...] | None = None  # the calls in progress when it was made; None for memory from out of view
    made: Access | None = None  # work out of view that wrote it, if it is on a device
    uploaded: bool = False  # moved from the host, or from somewhere unknown
    of_gradient: bool = False  # computed from a gradient that autograd has left
    handed: bool = False  # computed from what came from out of view, wherever that is
    addresses: tuple[Buffer, ...] = ()  # what its numbers point to: the arguments of a kernel

    @property
    def raw(self) -> bool:
        """Allocated by the driver, not by a pool."""
        return self._raw

    @raw.setter
    def raw(self, value: bool) -> None:
        global _raw_memory
        self._raw = value
        _raw_memory = _raw_memory or value

    @property
    def on_device(self) -> bool:
        return self.memory is Memory.DEVICE

    @property
    def on_host(self) -> bool:
        return self.host or self.memory in (Memory.PINNED, Memory.PAGEABLE)


@record(eq=False, slots=True)
class Buffer(Value):
    """A view of a storage: a tensor, an array, a pointer. ``type`` is the library's type. ``leaves`` marks a batch of unknown structure."""

    storage: Storage
    part: Part = ()
    type: str = "pointer"
    gapped: bool = False
    strided: bool = False
    leaves: dict[str, Value] | None = None
    access: Operation | None = None  # the call that announced a host access (Tensor.numpy())
    attrs: dict[str, Value] = field(default_factory=dict)
    element: Type | None = None

    @property
    def term(self) -> str:
        return f"buffer#{self.storage.serial}{self.part}"


@record(eq=False, slots=True)
class Stream(Value):
    """``kind``: null, ptds, ambient, created, parameter, foreign. ``key`` names its clock. ``blocking`` is None where it is not known.

    ``chosen`` is the place where null was chosen: a literal, or a call that left the stream out.
    """

    key: str
    kind: str
    blocking: bool | None = None
    library: str = ""
    type: str = ""
    trail: tuple[Step, ...] = ()
    chosen: Span | None = None
    how: str = ""  # how null was chosen: omitted, literal, handle, policy, default

    @property
    def term(self) -> str:
        return f"stream:{self.key}"


@record(eq=False, slots=True)
class Event(Value):
    """``snapshot`` is None before the first record in view. ``unknown`` events order everything. ``external`` ones are not captured."""

    key: str
    snapshot: Clock | None = None
    unknown: bool = False
    type: str = ""
    recorded: Operation | None = None
    awaited: bool = False  # somebody has waited for the last record, or asked for it
    external: bool = False
    timing: bool | None = None  # whether it was made to measure time; None where that is not known
    timed: bool = False  # the time between it and another was asked for
    trail: tuple[Step, ...] = ()

    @property
    def term(self) -> str:
        return f"event:{self.key}"


@record(eq=False, slots=True)
class Handle(Value):
    """A library handle, or another modelled object. ``stream`` is what it is bound to."""

    type: str
    key: str
    stream: Stream | None = None
    args: dict[str, Value] = field(default_factory=dict)
    attrs: dict[str, Value] = field(default_factory=dict)
    unknown: bool = False  # from outside: may be bound to any stream
    made: bool = False  # by a call in view
    trail: tuple[Step, ...] = ()


@record(eq=False, slots=True)
class Loader(Value):
    """A batch source. ``pinned`` is True, False, or None where it is not known."""

    pinned: bool | None
    trail: tuple[Step, ...] = ()
    type: str = ""
    collate: Value | None = None  # a function or a class at hand that makes the batches
    on_device: bool = False  # whoever made it moves its batches to the device


@record(eq=False, slots=True)
class Device(Value):
    """``space``: device, host, other, or unknown (then ``evidence`` says why it may be CUDA)."""

    space: str
    evidence: Evidence = Evidence.NONE
    text: str = ""
    trail: tuple[Step, ...] = ()
    pinned: bool = False  # tensor options (C++) that ask for pinned memory
    of: Value | None = None  # the value whose place it is, where it was asked for
    told: str = ""  # the condition that said where it is
    library: str = ""  # whose object it is; in CuPy a ``with`` makes it current

    @property
    def term(self) -> str:
        return f"device:{self.text or self.space}"


@record(eq=False, slots=True)
class Series(Value):
    """A list, tuple or set. ``items`` is None where its elements are not known; then ``made`` holds one element an index term."""

    items: list[Value] | None
    made: dict[str, Value] = field(default_factory=dict)
    element: Value | None = None
    name: str = ""
    kind: str = "list"
    holds: Type | None = None  # C++: the type of its elements

    @property
    def term(self) -> str:
        if self.kind == "tuple" and self.items and len(self.items) <= _LONGEST_KEY:
            return f"({', '.join(item.term for item in self.items)})"  # equal tuples are one key
        return f"Series#{self.serial}"

    def all(self) -> Iterator[Value]:
        yield from self.items or ()
        yield from self.made.values()


@record(eq=False, slots=True)
class Table(Value):
    """A dict. ``complete`` is False where it may hold keys that were not seen."""

    items: dict[str, Value] = field(default_factory=dict)
    keys: dict[str, Value] = field(default_factory=dict)
    complete: bool = True
    element: Value | None = None
    factory: Value | None = None  # makes what a key lacks: ``defaultdict(Meter)``


@record(eq=False, slots=True)
class Instance(Value):
    """An object of a class at hand. ``foreign`` objects were made by code not in view: their constructor was run with unknowns."""

    definition: Class
    file: File
    attrs: dict[str, Value] = field(default_factory=dict)
    foreign: bool = False
    name: str = ""
    destroyed: bool = False
    shared: bool = False  # reached through a pointer: leaving a scope does not destroy it
    types: dict[str, Type] = field(default_factory=dict)  # C++: what its class's template parameters stand for
    memory: Buffer | None = None  # C++: its bytes, once its address was used as memory

    @property
    def term(self) -> str:
        return self.name or f"object#{self.serial}"


@record(eq=False, slots=True)
class FunctionValue(Value):
    """A function with its surroundings: closure, receiver, bound arguments."""

    function: Function
    file: File
    closure: Environment | None = None
    receiver: Value | None = None
    bound: tuple[Value, ...] = ()
    keywords: dict[str, Value] = field(default_factory=dict)
    owner: Class | None = None
    bare: bool = False  # without what its decorators make of it

    @property
    def term(self) -> str:
        return f"function:{self.function.qualname}"


@record(eq=False, slots=True)
class ClassValue(Value):
    definition: Class
    file: File
    types: dict[str, Type] = field(default_factory=dict)  # C++: what its template parameters stand for

    @property
    def term(self) -> str:
        return f"class:{self.definition.qualname}"


@record(eq=False, slots=True)
class LibraryName(Value):
    """A dotted name outside the program: a module, a function, a class of a library."""

    name: str

    @property
    def term(self) -> str:
        return self.name


@record(eq=False, slots=True)
class Method(Value):
    """A method of a modelled type, or any attribute of an unknown value, before it is called."""

    receiver: Value
    name: str
    row: Row | None = None


@record(eq=False, slots=True)
class Prepared(Value):
    """What can be called, but is no function at hand, with arguments that wait for the call: ``partial(DataLoader, batch_size=8)``."""

    callee: Value
    bound: tuple[Value, ...]
    keywords: dict[str, Value]


@record(eq=False, slots=True)
class KernelConfig(Value):
    """A kernel of numba or Triton with its launch configuration: ``kernel[grid, block, stream]``, ``kernel[(n,)]``."""

    kernel: FunctionValue | Value
    config: tuple[Value, ...]
    span: Span


@record(eq=False, slots=True)
class GeneratorCall(Value):
    """A call of a generator function whose body has not run yet: it runs with its consumer. ``counted``: where ``enumerate`` begins;
    ``begun``: a value was taken from it by ``next``, up to which the body has run."""

    function: FunctionValue
    environment: Environment
    counted: int | None = None
    call: Span | None = None
    begun: bool = False


@record(eq=False, slots=True)
class ScopeValue(Value):
    """A context manager of the library: enters ``stream`` (None: no change) or registers ``buffer`` while it is open."""

    stream: Stream | None = None
    library: str = ""
    buffer: Buffer | None = None
    value: Value | None = None
    kind: str = "stream"


@record(eq=False, slots=True)
class Reference(Value):
    """The address of a place that can be assigned (C++ ``&x``), as the function that took it sees it."""

    target: Expression
    environment: Environment
    this: Instance | None = None
    file: File | None = None


@record(eq=False, slots=True)
class Environment:
    """Names of a scope. ``addressed`` holds the memory of C++ variables whose address was taken as a buffer."""

    names: dict[str, Value] = field(default_factory=dict)
    parent: Environment | None = None
    types: dict[str, Type] = field(default_factory=dict)
    addressed: dict[str, Buffer] = field(default_factory=dict)
    # Objects that die with this scope, in order of declaration (C++).
    owned: list[Value] = field(default_factory=list)
    declared: dict[int, Span] = field(default_factory=dict)  # where each of them was declared, by identity

    def find(self, name: str) -> Environment | None:
        scope: Environment | None = self
        while scope is not None:
            if name in scope.names:
                return scope
            scope = scope.parent
        return None

    def type_of(self, name: str) -> Type | None:
        scope: Environment | None = self
        while scope is not None:
            if name in scope.types:
                return scope.types[name]
            scope = scope.parent
        return None
