"""Actions: what instructions do to streams, events and memory, from the rows of the libraries that they call and from the language."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.call_graph import CallGraph, LibraryCall
from streamlint.facts.functions import Function
from streamlint.facts.members import LANGUAGE_MEMBERS
from streamlint.facts.objects import Constant, DeviceValue, External, LibraryObject, Memory, Object
from streamlint.facts.rounds import Rounds
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.models.vocabulary import Selector
from streamlint.waits.operands import argument_registers

CURRENT, NULL, NAMED, UNKNOWN = "current", "null", "named", "unknown"
DEVICE = "device"
_OF_LANGUAGE = frozenset({op.BINARY, op.INPLACE, op.COMPARE, op.UNARY, op.FORMAT, op.BRANCH})


class Stream(NamedTuple):
    """A stream as an instruction names it: ``current`` of a library, ``null``, ``named`` by a register, or ``unknown``."""

    kind: str
    register: int = op.NONE
    library: str = ""


class Copied(NamedTuple):
    """A copy. ``asynchronous`` is None where that is not known; ``flag`` is the register that decides it. A side of NONE is not at hand."""

    target: int
    source: int
    stream: Stream
    asynchronous: bool | None
    flag: int
    direction: str
    call: LibraryCall


class Synchronized(NamedTuple):
    """The host waits: for a stream, for an event (``of`` is its register), or for the device."""

    of: Stream | int | None
    name: str


class Recorded(NamedTuple):
    """An event, in a register, is recorded on a stream."""

    event: int
    stream: Stream


class Asked(NamedTuple):
    """A query: whether an event or a stream, in a register, is done. ``is_status``: the answer is a status, zero for done."""

    of: int
    is_status: bool = False


class Read(NamedTuple):
    """The host looks at what a register holds. ``waits``: of a value on a device, it waits for the current stream first; ``presumes``: also
    of one that may be there. ``depth``: so many containers down."""

    register: int
    name: str
    waits: bool = True
    presumes: bool = False
    depth: tuple[int, ...] = (0,)


class Written(NamedTuple):
    """The host changes the memory that a register holds."""

    register: int
    name: str


class Viewed(NamedTuple):
    """The result is the same memory, of a type; ``announces``: it is made for the host to look at."""

    register: int
    type: str = ""
    announces: bool = False


class Lost(NamedTuple):
    """A call out of view: it may wait for all that it is given. ``method`` is its name, if a method of an unknown value is called."""

    registers: tuple[int, ...]
    method: str = ""


Action = Copied | Synchronized | Recorded | Asked | Read | Written | Viewed | Lost


class Actions:
    """The actions of functions, by instruction."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.facts = graph.facts
        self.rounds = Rounds(graph)
        self._known: dict[Function, dict[Instruction, list[Action]]] = {}

    def of(self, function: Function) -> dict[Instruction, list[Action]]:
        """What the instructions of a function do."""
        found = self._known.get(function)
        if found is None:
            found = self._known[function] = {}
            for one, action in self._find(function):
                found.setdefault(one, []).append(action)
        return found

    def _find(self, function: Function) -> Iterator[tuple[Instruction, Action]]:
        calls = self.graph.calls(function)
        entered = {edge.instruction for edge in calls.edges if edge.is_followed}
        for call in calls.libraries:
            if call.row is None:
                if call.instruction not in entered:
                    yield call.instruction, Lost(_operands(function, call.instruction))
            else:
                for action in self._by_row(function, call, call.row):
                    yield call.instruction, action
        for one in calls.unknown:
            if one not in entered:
                yield from ((one, action) for action in self._by_method(function, one))
        for edge in calls.edges:
            if edge.is_guess or edge.is_handed:
                yield edge.instruction, Lost(_operands(function, edge.instruction))
        for opcode in _OF_LANGUAGE:
            for one in function.by_opcode[opcode]:
                for action in self._by_language(function, one):
                    yield one, action
        for one in function.by_opcode[op.ATTR]:
            if function.text(one[4]) in self._views:
                yield one, Viewed(one[3])
        for one in function.by_opcode[op.CALL]:
            if function.dotted(one[3]) == "sorted" and not function.is_cpp:
                yield from ((one, Read(register, "sorted", False, False, (1,))) for _, register in argument_registers(function, one))
        for opcode in (op.ITEM, op.DEREF, op.NEXT, op.SET_ITEM, op.SET_DEREF):
            for one in function.by_opcode[opcode]:
                yield from ((one, action) for action in self._element(function, one))

    @cached_property
    def _views(self) -> frozenset[str]:
        """Names of attributes that are the same memory."""
        rows = {**self.facts.models.attributes, **self.facts.cpp_models.attributes}
        return frozenset(name.rpartition(".")[2] for name, row in rows.items() if row.effect in ("view", "same"))

    def shared(self, function: Function, register: int) -> list[int]:
        """A register, and those of which it is a view."""
        found = [register]
        for each in found:
            one = function.definitions[each] if each >= 0 else None
            for action in self.of(function).get(one, ()) if one is not None else ():
                if isinstance(action, Viewed) and action.register not in found:
                    found.append(action.register)
        return found

    # --- methods of unknown values

    @cached_property
    def _methods(self) -> dict[str, list[Row]]:
        """By name: the rows of a method that does something here, if the language has none of that name."""
        found: dict[str, list[Row]] = defaultdict(list)
        for name, row in self.facts.models.calls.items():
            owner, _, method = name.rpartition(".")
            if method not in LANGUAGE_MEMBERS and self.facts.models.type_named(owner) is not None:
                found[method].append(row)
        return dict(found)

    def _by_method(self, function: Function, one: Instruction) -> Iterator[Action]:
        """What a call of an unknown value does: a method as the libraries near have it, if no class of the program has one."""
        method = function.text(one[4]) if one[0] == op.INVOKE else ""
        rows = [row for row in self._methods.get(method, ()) if self.rounds.is_used_near(function.unit, row.names[0].partition(".")[0])]
        if not rows or function.is_cpp or any(method in unit.methods for unit in self.facts.program.mentioning(method)):
            yield Lost(_operands(function, one), method)
            return
        row = rows[0]
        yield from self._by_row(function, LibraryCall(one, row, row.names[0], None), row)

    def of_method(self, function: Function, one: Instruction, kind: str) -> list[Action]:
        """What a method call does on a receiver of a library's type."""
        row = self.facts.models.method(kind, function.text(one[4]))
        return list(self._by_row(function, LibraryCall(one, row, row.names[0], None), row)) if row is not None else []

    # --- rows

    def _by_row(self, function: Function, call: LibraryCall, row: Row) -> Iterator[Action]:
        effect, one = row.effect, call.instruction
        if effect == "copy":
            yield self._copy(function, call, row)
        elif effect in ("transfer", "move"):
            yield from self._transfer(function, call, row)
        elif effect == "synchronize":
            yield self._synchronize(function, call, row)
        elif effect == "record":
            event = self._one(function, call, row, "event")
            yield Recorded(one[2] if event is None else event, self.stream(function, call, row))
        elif effect == "query":
            of = self._one(function, call, row, "of", _receiver(one))
            yield Asked(op.NONE if of is None else of, row.library.startswith("cuda") or ".runtime." in call.name)
        elif effect == "read":
            given = self._all(function, call, row, "of") if row.get("of") is not None else [one[3]]
            if row.get("of") is not None or one[0] == op.INVOKE:
                is_method = _receiver(one) in given
                yield from (Read(register, call.name, True, is_method, (0, 1, 2, 3)) for register in given)
        elif effect == "put" and not row.get("local"):
            yield from (Read(register, call.name, False, False, (0, 1, 2, 3)) for register in self._all(function, call, row, "of"))
        elif effect == "write":
            yield from (Read(register, call.name, False) for register in self._all(function, call, row, "reads"))
            yield from (Written(register, call.name) for register in self._all(function, call, row, "of"))
        elif effect in ("view", "same", "pin"):
            of = self._one(function, call, row, "of", _receiver(one))
            if of is not None:
                yield Viewed(of, str(row.get("type") or ""), bool(row.get("host_access")))
        elif effect == "factory" and row.get("data") is not None:
            yield from self._made(function, call, row)
        elif effect == "compute":
            yield from self._computed(function, call, row)
        elif effect == "unknown":
            yield Lost(_operands(function, one))
        elif effect == "free" and row.library not in ("host-cpp", "numpy", "torch"):
            yield Synchronized(None, call.name)
        elif effect in ("block", "exit"):
            yield Lost(_operands(function, one))

    def _made(self, function: Function, call: LibraryCall, row: Row) -> Iterator[Action]:
        """A factory that is given data reads it, or shares it; the host waits until what is uploaded has arrived."""
        for register in self._all(function, call, row, "data"):
            yield Viewed(register, str(row.get("type") or "")) if row.get("alias") else Read(register, call.name, False)
        if row.get("device") is not None and self._all(function, call, row, "device") and row.library == "torch":
            spaces = {value.space for value in self.values(function, call.instruction[2]) if isinstance(value, Memory)}
            if spaces != {"host"}:
                yield Synchronized(Stream(CURRENT, library=row.library), call.name)

    def _copy(self, function: Function, call: LibraryCall, row: Row) -> Copied:
        target = self._one(function, call, row, "dst")
        source = self._one(function, call, row, "src")
        flag, asynchronous = self._asynchronous(function, call, row)
        stream = self.stream(function, call, row)
        if row.library == "numba" and stream.kind == NULL:
            asynchronous = False
        direction = self._direction(function, call, row, target, source)
        return Copied(
            op.NONE if target is None else target, op.NONE if source is None else source, stream, asynchronous, flag, direction, call
        )

    def _transfer(self, function: Function, call: LibraryCall, row: Row) -> Iterator[Action]:
        one = call.instruction
        source = self._one(function, call, row, "of", _receiver(one))
        if source is None:
            return
        out = self._one(function, call, row, "out")
        held = self.values(function, one[2])
        spaces = {value.space for value in held if isinstance(value, Memory)}
        flag, asynchronous = self._asynchronous(function, call, row)
        stream = self.stream(function, call, row)
        if row.library == "numba" and stream.kind == NULL:
            asynchronous = False
        to = row.get("to")
        if to == "argument" and not spaces:
            spaces = self._named_spaces(function, call, row)
        if to == "host" or (to == "argument" and "host" in spaces and self._is_moved(function, call, row)):
            if not self._is_on_host(function, source):
                yield Copied(one[2] if out is None else out, source, stream, asynchronous, flag, "d2h", call)
            yield Viewed(source)
        elif to == "device" or "device" in spaces:
            yield Copied(one[2] if out is None else out, source, stream, asynchronous, flag, "h2d", call)
        else:
            yield Viewed(source)

    def _named_spaces(self, function: Function, call: LibraryCall, row: Row) -> set[str]:
        """Where the device is to which something unknown is moved."""
        found: set[str] = set()
        for register in self._all(function, call, row, "device"):
            for value in self.values(function, register):
                if isinstance(value, DeviceValue):
                    found.add(value.space)
                elif isinstance(value, Constant) and isinstance(value.value, str):
                    found.add("host" if value.value.startswith("cpu") else "device" if value.value.startswith("cuda") else "unknown")
        return found

    def _is_moved(self, function: Function, call: LibraryCall, row: Row) -> bool:
        """Whether a transfer is given a device."""
        given = self._all(function, call, row, "device")
        return any(isinstance(value, DeviceValue) or _is_text(value) for one in given for value in self.values(function, one))

    def _synchronize(self, function: Function, call: LibraryCall, row: Row) -> Synchronized:
        of = row.get("of")
        if of == DEVICE:
            return Synchronized(None, call.name)
        if of in (CURRENT, NULL):
            return Synchronized(Stream(str(of), library=row.library), call.name)
        register = self._one(function, call, row, "of", _receiver(call.instruction))
        if register is None:
            return Synchronized(None, call.name)
        if self.is_event(function, register, call):
            return Synchronized(register, call.name)
        return Synchronized(self._named(function, register, row.library), call.name)

    def is_event(self, function: Function, register: int, call: LibraryCall) -> bool:
        """Whether a register holds an event, no stream."""
        kinds = {value.kind for value in self.values(function, register) if isinstance(value, LibraryObject)}
        if kinds & {"event", "stream"}:
            return "event" in kinds
        return "vent" in call.name

    def _computed(self, function: Function, call: LibraryCall, row: Row) -> Iterator[Action]:
        one = call.instruction
        given = self._all(function, call, row, "reads") if row.get("reads") is not None else _operands(function, one)
        written = self._all(function, call, row, "writes")
        if row.get("cast") and given:
            yield Viewed(given[0])
            return
        if row.get("named") and len(_operands(function, one)) > 1 and _is_positional(function, one):
            return
        waits = bool(row.get("waits"))
        yield from (Read(register, call.name, waits, waits, (0, 1, 2)) for register in given if register not in written)
        yield from (Written(register, call.name) for register in written)
        if row.get("result") == "self" and written:
            yield Viewed(written[0])

    # --- the language

    def _by_language(self, function: Function, one: Instruction) -> Iterator[Action]:
        if function.is_cpp:
            if one[0] in (op.BINARY, op.INPLACE) and function.text(one[3]) in ("+", "-", "+=", "-="):
                yield from (Viewed(register) for register in one[4:6])
            return
        if one[0] == op.COMPARE and function.text(one[3]) in ("is", "is not"):
            return
        waits = one[0] in (op.FORMAT, op.BRANCH)
        name = {op.FORMAT: "format", op.BRANCH: "bool"}.get(one[0], "arithmetic")
        is_search = one[0] == op.COMPARE and function.text(one[3]) in ("in", "not in")
        yield from (Read(register, name, waits) for register in (one[5:6] if is_search else op.reads(one)))
        if one[0] == op.INPLACE:
            yield Written(one[4], name)
            yield Viewed(one[4])

    def _element(self, function: Function, one: Instruction) -> Iterator[Action]:
        """Elements of arrays and tensors: a part of a tensor is a view, a number of an array or behind a pointer is read."""
        base = one[2] if one[0] in (op.SET_ITEM, op.SET_DEREF) else one[3]
        held = [value for value in self.values(function, base) if isinstance(value, Memory)]
        if one[0] in (op.SET_ITEM, op.SET_DEREF):
            if held or function.is_cpp or (one[0] == op.SET_ITEM and self._is_tensor(function, one[3])):
                yield Written(base, "assignment")
                yield Read(one[-1], "assignment", False)
            return
        if not held and not function.is_cpp:
            return
        if function.is_cpp and all(value.type in ("pointer", "array") for value in held):
            yield Read(base, "indexing", False)
        elif one[0] != op.DEREF and any(value.type.startswith("numpy.") for value in held) and not self._is_slice(function, one):
            yield Read(base, "indexing", False)
        elif one[0] != op.DEREF:
            yield Viewed(base)

    def _is_tensor(self, function: Function, register: int) -> bool:
        """Whether a register holds a tensor or an array, or the result of a call that gives some."""
        if any(isinstance(value, Memory) for value in self.values(function, register)):
            return True
        one = function.definitions[register]
        while one is not None and one[0] in (op.UNPACK, op.ITEM):
            one = function.definitions[one[3]]
        if one is None or one[0] not in (op.CALL, op.INVOKE):
            return False
        rows = [call.row for call in self.graph.calls(function).libraries if call.instruction == one and call.row is not None]
        return any(row.effect == "compute" and row.get("type") for row in rows)

    def _is_slice(self, function: Function, one: Instruction) -> bool:
        index = function.definitions[one[4]] if one[0] == op.ITEM and one[4] >= 0 else None
        return index is not None and index[0] in (op.SLICE, op.BUILD)

    # --- operands

    def values(self, function: Function, register: int) -> Iterable[Object]:
        """What a register may hold."""
        return self.facts.values(function, register).values if register >= 0 else ()

    def _is_on_host(self, function: Function, register: int) -> bool:
        """Whether all that a register may hold is memory of the host."""
        held = list(self.values(function, register))
        return bool(held) and all(isinstance(value, Memory) and value.space == "host" for value in held)

    def given(self, function: Function, call: LibraryCall, key: str) -> list[int]:
        """The registers of a call's arguments that a field of its row means."""
        return self._all(function, call, call.row, key) if call.row is not None else []

    def _all(self, function: Function, call: LibraryCall, row: Row, key: str) -> list[int]:
        held = row.get(key)
        selectors = held if isinstance(held, tuple) else (held,) if isinstance(held, Selector) else ()
        found: list[int] = []
        for selector in selectors:
            if selector.kind == "all":
                found += _operands(function, call.instruction, False)
            elif (register := self.select(function, call, selector)) is not None:
                found.append(register)
        return found

    def _one(self, function: Function, call: LibraryCall, row: Row, key: str, otherwise: int | None = None) -> int | None:
        held = row.get(key)
        if isinstance(held, tuple):
            return next((one for selector in held if (one := self.select(function, call, selector)) is not None), otherwise)
        if not isinstance(held, Selector):
            return otherwise
        return self.select(function, call, held)

    def select(self, function: Function, call: LibraryCall, selector: Selector) -> int | None:
        """The register of the argument that a selector means; None where it was left out."""
        one = call.instruction
        given = argument_registers(function, one) if one[0] in (op.CALL, op.INVOKE) else [(None, each) for each in one[5:]]
        if selector.kind == "self":
            return one[3] if one[0] == op.INVOKE else given[0][1] if given else None
        if selector.kind == "result":
            return one[2]
        by_position: list[int] = []
        for kind, register in given:
            if kind is not None:
                break
            by_position.append(register)
        if selector.position is not None and selector.position < len(by_position):
            return by_position[selector.position]
        return next((register for kind, register in given if isinstance(kind, str) and kind == selector.keyword), None)

    def stream(self, function: Function, call: LibraryCall, row: Row) -> Stream:
        """The stream of an operation."""
        held = row.get("stream")
        if held is None:
            return Stream(CURRENT, library=row.library)
        if not isinstance(held, Selector):
            return Stream(str(held) if held in (CURRENT, NULL) else UNKNOWN, library=row.library)
        register = self.select(function, call, held)
        if register is not None:
            return self._named(function, register, row.library)
        default = held.default or UNKNOWN
        return Stream({"current": CURRENT, "null": NULL}.get(default, UNKNOWN), library=row.library)

    def _named(self, function: Function, register: int, library: str) -> Stream:
        values = list(self.values(function, register))
        if values and all(isinstance(value, Constant) and value.value in (None, 0) for value in values):
            is_current = library in ("torch", "cupy") and all(isinstance(value, Constant) and value.value is None for value in values)
            return Stream(CURRENT if is_current else NULL, library=library)
        kinds = {value.detail for value in values if isinstance(value, LibraryObject) and value.kind == "stream"}
        if kinds == {"current"} or kinds == {"default"}:
            return Stream(CURRENT if kinds == {"current"} else NULL, register, library)
        if kinds == {"null"}:
            return Stream(NULL, register, library)
        return Stream(NAMED, register, library)

    def _asynchronous(self, function: Function, call: LibraryCall, row: Row) -> tuple[int, bool | None]:
        """The register of the flag that makes a copy asynchronous, and what it says."""
        held = row.get("asynchronous")
        if isinstance(held, bool) or held is None:
            return op.NONE, bool(held)
        selectors = held if isinstance(held, tuple) else (held,)
        for selector in selectors:
            assert isinstance(selector, Selector)
            register = self.select(function, call, selector)
            if register is None:
                continue
            known = self._truths(function, register)
            if selector.negated:
                known = {not truth for truth in known}
            if len(known) == 1:
                return register, known.pop()
            if selector is selectors[-1] or known:
                return register if known else op.NONE, None
        last = selectors[-1]
        assert isinstance(last, Selector)
        return op.NONE, (last.default == "true") != last.negated

    def _truths(self, function: Function, register: int) -> set[bool]:
        """What a flag is known to be; a stream in its place is true."""
        values = list(self.values(function, register))
        known = {bool(value.value) for value in values if isinstance(value, Constant)}
        if any(isinstance(value, LibraryObject) and value.kind == "stream" for value in values):
            known.add(True)
        return known

    def _direction(self, function: Function, call: LibraryCall, row: Row, target: int | None, source: int | None) -> str:
        held = row.get("direction")
        said = str(held) if not isinstance(held, Selector) else ""
        if isinstance(held, Selector):
            register = self.select(function, call, held)
            said = self._word(function, register) if register is not None else held.default or "infer"
        if said != "infer":
            return said
        sides = [self._space(function, side) for side in (target, source)]
        return {("host", "device"): "d2h", ("device", "host"): "h2d", ("host", "host"): "h2h", ("device", "device"): "d2d"}.get(
            (sides[0], sides[1]), f"{sides[0]}<{sides[1]}"
        )

    def _word(self, function: Function, register: int) -> str:
        name = function.dotted(register)
        for value in self.values(function, register):
            if isinstance(value, External):
                models = self.facts.cpp_models if function.is_cpp else self.facts.models
                if (word := models.constants.get(value.name)) is not None:
                    return word
        return self.facts.models.constants.get(name, "infer")

    def is_success(self, function: Function, register: int) -> bool:
        """Whether a register holds the status of success."""
        return self._word(function, register) == "success"

    def _space(self, function: Function, register: int | None) -> str:
        """``host``, ``pinned``, ``device``, or ``unknown``."""
        spaces = {value.space for value in self.values(function, -1 if register is None else register) if isinstance(value, Memory)}
        return spaces.pop() if len(spaces) == 1 else "unknown"


def _operands(function: Function, one: Instruction, receiver: bool = True) -> tuple[int, ...]:
    if one[0] not in (op.CALL, op.INVOKE):
        return tuple(op.reads(one))
    given = [register for _, register in argument_registers(function, one)]
    return (one[3], *given) if one[0] == op.INVOKE and receiver else tuple(given)


def _is_positional(function: Function, one: Instruction) -> bool:
    return any(kind is None for kind, _ in argument_registers(function, one))


def _receiver(one: Instruction) -> int | None:
    return one[3] if one[0] == op.INVOKE else None


def _is_text(value: Object) -> bool:
    return isinstance(value, Constant) and isinstance(value.value, str)
