"""A call of a library with the row that models it: which registers its fields mean, and what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from streamlint.facts.code.functions import Function
from streamlint.facts.code.handing import Called, receiver_of
from streamlint.facts.code.instructions import DICT, behind, behind_copies
from streamlint.facts.code.objects import (
    Address,
    Constant,
    Container,
    CppName,
    DeviceValue,
    External,
    LibraryObject,
    Memory,
    Object,
    Unknown,
    are_plain,
)
from streamlint.facts.graph.call_graph import LibraryCall
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.models.vocabulary import SPACES, Selector
from streamlint.transfer.actions import CURRENT, NAMED, NULL, UNKNOWN, Stream
from streamlint.transfer.partials import called
from streamlint.waits.operands import argument_registers, constants_of, makes_wait, selected_of

_PACKING = frozenset({"factory", "view", "same", "read", "none"})
"""Effects of what makes an array or an address of what it is given."""
_DEFAULTS = {"current": CURRENT, "null": NULL}


class ModelledCall:
    """One call, its row, and questions about its operands. ``result`` is the register of what it gives."""

    __slots__ = ("call", "facts", "function", "instruction", "row")

    def __init__(self, facts: Facts, function: Function, call: LibraryCall, row: Row) -> None:
        self.facts = facts
        self.function = function
        self.call = call
        self.row = row
        self.instruction: Instruction = call.instruction

    @property
    def name(self) -> str:
        """The API's name as modelled."""
        return self.call.name

    @property
    def result(self) -> int:
        return self.instruction[2]

    @property
    def receiver(self) -> int | None:
        """The object of a method call."""
        if self.instruction[0] == op.CALL and self.call.receiver is not None:
            return receiver_of(self.function, self.called.callee)
        return self.instruction[3] if self.instruction[0] == op.INVOKE else None

    @property
    def called(self) -> Called:
        """What the call calls, and its arguments with those that a partial object has."""
        return called(self.function, self.instruction)

    @property
    def is_of_arrays(self) -> bool:
        """Whether it is a function of CuPy, which computes on a device whatever it is given; a method may be that of another object."""
        is_compute = self.row.library == "cupy" and self.row.effect == "compute" and not self.row.get("host")
        return is_compute and not self.name.startswith("cupy.ndarray.")

    @property
    def operands(self) -> tuple[int, ...]:
        """All registers that the call is given, its receiver first."""
        return operands_of(self.function, self.instruction)

    def text(self, key: str) -> str:
        """A field that is a word; "" where it is none."""
        held = self.row.get(key)
        return held if isinstance(held, str) else ""

    def one(self, key: str, otherwise: int | None = None) -> int | None:
        """The register that a field means: the first that is given; ``otherwise`` where the row has no such field."""
        held = self.row.get(key)
        if isinstance(held, tuple):
            return next((one for selector in held if (one := self.given(selector)) is not None), otherwise)
        return self.given(held) if isinstance(held, Selector) else otherwise

    def all(self, key: str) -> list[int]:
        """The registers that a field means."""
        held = self.row.get(key)
        selectors = held if isinstance(held, tuple) else (held,) if isinstance(held, Selector) else ()
        found: list[int] = []
        for selector in selectors:
            if selector.kind == "all":
                found += operands_of(self.function, self.instruction, False)
            elif (register := self.given(selector)) is not None:
                found.append(register)
        return found

    def given(self, selector: Selector) -> int | None:
        """The register of the argument that a selector means; None where it was left out. A pointer stands for what it points to."""
        one = self.instruction
        given = self.called.given if one[0] in (op.CALL, op.INVOKE) else [(None, each) for each in one[5:]]
        if selector.kind == "self":
            receiver = self.receiver
            return receiver if receiver is not None else given[0][1] if given else None
        if selector.kind == "result":
            return one[2]
        register = selected_of(given, selector)
        return put_into(self.function, one, register, selector.field) if selector.field and register is not None else register

    def stream(self, key: str = "stream") -> Stream:
        """The stream that a field means."""
        held = self.row.get(key)
        library = self.row.library
        if held is None:
            return Stream(CURRENT, library=library)
        if not isinstance(held, Selector):
            return Stream(_DEFAULTS.get(str(held), UNKNOWN), library=library)
        register = self.given(held)
        if register is not None:
            return self.stream_in(register)
        return Stream(_DEFAULTS.get(held.default or "", UNKNOWN), library=library)

    def stream_in(self, register: int) -> Stream:
        """The stream that a register holds."""
        return stream_held(self.function, register, list(self.values(register)), self.row.library)

    def switch(self, key: str) -> tuple[int, bool | None]:
        """The register of a flag, and what it says: None, with a register, where callers say both; without one, where nobody knows."""
        held = self.row.get(key)
        if isinstance(held, bool) or held is None:
            return op.NONE, bool(held)
        selectors = held if isinstance(held, tuple) else (held,)
        for selector in selectors:
            assert isinstance(selector, Selector)
            register, known = self._flag(selector)
            if register is None:
                continue
            if selector.negated:
                known = {not truth for truth in known}
            if len(known) == 1:
                return register, known.pop()
            if selector is selectors[-1] or known:
                return register if known else op.NONE, None
        last = selectors[-1]
        assert isinstance(last, Selector)
        return op.NONE, (last.default == "true") != last.negated

    def _flag(self, selector: Selector) -> tuple[int | None, set[bool]]:
        """The register of a flag, and what it is known to be; NONE for one in a mapping that is spread, None where it was left out."""
        register = self.given(selector)
        if register is not None:
            return register, self._truths(self.values(register))
        is_call = selector.keyword is not None and self.instruction[0] in (op.CALL, op.INVOKE)
        for spread in [each for kind, each in self.called.given if kind == DICT] if is_call else []:
            if known := self._truths(self.facts.held_under(self.function, spread, selector.keyword or "").values):
                return op.NONE, known
        return None, set()

    def _truths(self, held: Iterable[Object]) -> set[bool]:
        """What a flag that may have some values is known to be; a stream in its place is true."""
        values = list(held)
        known = {bool(value.value) for value in values if isinstance(value, Constant)}
        if any(isinstance(value, LibraryObject) and value.kind == "stream" for value in values):
            known.add(True)
        return known

    def waits(self, is_shown: Callable[[int], bool]) -> bool:
        """Whether the host waits in the call, by its row; ``is_shown`` says whether a register holds a tensor of the device."""
        return makes_wait(self.row, self.given, partial(constants_of, self.facts, self.function), is_shown)

    def asks_for_size(self) -> bool:
        """Whether a call only says how much memory it would need, and queues no work."""
        register = self.one("size_query")
        return register is not None and is_null(self.function, register, list(self.values(register)))

    def waits_for_result(self) -> bool:
        """Whether the host waits for the work of a launch: not where the result goes to memory of the device."""
        told = self.one("told")
        return bool(self.row.get("waits")) and not (told is not None and self.is_of_device(told))

    def is_of_device(self, register: int) -> bool:
        """Whether a register may hold memory of a device."""
        return any(value.space == "device" for value in self.memory(register))

    # --- what registers hold

    def values(self, register: int) -> Iterable[Object]:
        """What a register may hold."""
        return self.facts.values(self.function, register).values if register >= 0 else ()

    def memory(self, register: int) -> list[Memory]:
        """The memory that a register may hold; of a call that copies lists, the elements of these."""
        held = list(self.values(register))
        if self.row.get("each"):
            held += [each for value in held if isinstance(value, Container) for each in self.facts.elements(value)]
        return [value for value in held if isinstance(value, Memory)]

    def space(self, register: int) -> str:
        """Where the memory in a register is: ``host``, ``device``, ``managed``; ``unknown`` where it is not known or may be either."""
        spaces = {value.space for value in self.memory(register)}
        return spaces.pop() if len(spaces) == 1 and not self.addresses(register) else "unknown"

    def addresses(self, register: int) -> list[Address]:
        """C++: the addresses of variables that a register may hold."""
        return [value for value in self.values(register) if isinstance(value, Address)] if self.function.is_cpp else []

    def is_on_host(self, register: int) -> bool:
        """Whether all that a register may hold is memory of the host."""
        held = list(self.values(register))
        return bool(held) and all(isinstance(value, Memory) and value.space == "host" for value in held)

    def device_spaces(self) -> set[str]:
        """Where the devices are that the field ``device`` names: ``host``, ``device``, ``unknown``."""
        return {space for register in self.all("device") for space in self.spaces_of(self.function, register)}

    def spaces_of(self, function: Function, register: int) -> set[str]:
        """Where the devices are that a register may name."""
        found: set[str] = set()
        for value in self.facts.values(function, register).values if function is not self.function else self.values(register):
            if isinstance(value, DeviceValue):
                found.add(value.space)
            elif isinstance(value, External) and (word := word_of(self.facts, function, register)) in SPACES:
                found.add(SPACES[word])
            elif isinstance(value, Constant) and isinstance(value.value, str):
                begin = value.value.partition(":")[0]
                found.add({"cpu": "host", "cuda": "device"}.get(begin, "unknown"))
            elif isinstance(value, CppName) and (space := SPACES.get(self.facts.word_of(value))) is not None:
                found.add(space)
        return found

    def word(self, register: int) -> str:
        """The word of the models for a constant of the library: ``d2h``, ``success``; "" where it is none."""
        return word_of(self.facts, self.function, register)


def word_of(facts: Facts, function: Function, register: int) -> str:
    """The word of the models for a constant of a library that a register holds; "" where it is none."""
    models = facts.cpp_models if function.is_cpp else facts.models
    for value in facts.values(function, register).values if register >= 0 else ():
        known = facts.cpp_models if isinstance(value, CppName) else models
        if isinstance(value, External) and (word := known.constants.get(value.name)) is not None:
            return word
    return models.constants.get(function.dotted(register), "")


def operands_of(function: Function, one: Instruction, receiver: bool = True) -> tuple[int, ...]:
    """All registers that an instruction is given."""
    if one[0] not in (op.CALL, op.INVOKE):
        return tuple(op.reads(one))
    given = [register for _, register in argument_registers(function, one)]
    return (one[3], *given) if one[0] == op.INVOKE and receiver else tuple(given)


def listed(function: Function, register: int) -> tuple[int, ...]:
    """The elements of a list or tuple that is written out."""
    one = function.definitions[register] if register >= 0 else None
    return tuple(one[4:]) if one is not None and one[0] == op.BUILD else ()


def packed_arguments(call: ModelledCall) -> list[int]:
    """The arguments of a kernel in an array of their addresses: ``void* given[] = {&rows, &count}``."""
    packed, function = call.one("packed"), call.function
    if packed is None or packed < 0:
        return []
    if function.is_cpp:
        return _built(function, packed)
    if (typed := _typed(call, packed)) is not None:
        return typed
    steps = behind(function, [packed], partial(_packed_in, call))
    return [one[2] for one in steps if one[0] != op.BUILD and not _packed_in(call, one) and call.memory(one[2])]


def _built(function: Function, register: int) -> list[int]:
    """C++: the elements of the array that a register holds, by a variable that is assigned once."""
    one = function.definitions[register]
    if one is not None and one[0] == op.LOAD:
        stored = [function.definitions[each[3]] for each in function.by_opcode[op.STORE] if each[2] == one[3]]
        one = stored[0] if len(stored) == 1 else None
    while one is not None and one[0] in (op.CAST, op.COPY):
        one = function.definitions[one[4 if one[0] == op.CAST else 3]]
    return list(one[4:]) if one is not None and one[0] == op.BUILD else []


def _packed_in(call: ModelledCall, one: Instruction) -> list[int]:
    """Python: the registers that a display holds, an array is made of, or whose address is taken."""
    function, opcode = call.function, one[0]
    if opcode == op.BUILD:
        return [*one[4:], *(use[3] for use in function.uses[one[2]] if use[0] == op.APPEND and use[2] == one[2])]
    if opcode in (op.NEXT, op.ITER, op.COPY):
        return [one[3]]
    if opcode == op.ATTR:
        return [one[3]] if call.memory(one[3]) else []
    if opcode not in (op.CALL, op.INVOKE) or not any(row.effect in _PACKING for row in call.facts.rows(function, one)):
        return []
    return list(operands_of(function, one, receiver=False))


def _typed(call: ModelledCall, packed: int) -> list[int] | None:
    """Python: the pointers in a tuple of values and a tuple of their types; a type of None stands for that of the value."""
    function = call.function
    pair = function.definitions[packed] if packed >= 0 else None
    parts = [function.definitions[each] for each in pair[4:]] if pair is not None and pair[0] == op.BUILD else []
    if len(parts) != 2 or any(each is None or each[0] != op.BUILD for each in parts):
        return None
    values, types = (each[4:] for each in parts if each is not None)
    return [value for value, kind in zip(values, types, strict=False) if _is_pointer(call, value, kind)]


def _is_pointer(call: ModelledCall, value: int, kind: int) -> bool:
    if call.memory(value):
        return True
    named = [one for one in call.values(kind) if isinstance(one, External)]
    return any(one.name.rpartition(".")[2] == "c_void_p" for one in named) and not are_plain(list(call.values(value)))


class DeferredCall(ModelledCall):
    """A call of a library that a thread does, which was passed the function and its arguments: what it gives is in no register."""

    __slots__ = ("bound",)

    def __init__(self, facts: Facts, function: Function, call: LibraryCall, row: Row, bound: Called) -> None:
        super().__init__(facts, function, call, row)
        self.bound = bound

    @property
    def result(self) -> int:
        return op.NONE

    @property
    def receiver(self) -> int | None:
        return receiver_of(self.function, self.bound.callee) if self.call.receiver is not None else None

    @property
    def called(self) -> Called:
        return self.bound


def put_into(function: Function, call: Instruction, pointer: int, field: str) -> int | None:
    """What a function has put last, before a call, into a field of a variable of its own to which the call is given a pointer; None where
    it may have put something else there."""
    address = function.definitions[behind_copies(function, pointer)] if pointer >= 0 else None
    if address is None or address[0] != op.ADDRESS:
        return None
    stores: list[Instruction] = []
    for one in function.by_opcode[op.SET_ATTR] if function.is_cpp else ():
        held = function.definitions[one[2]]
        if held is not None and held[0] == op.LOAD and held[3] == address[3] and function.text(one[3]) == field:
            stores.append(one)
    if not stores or not all(function.runs_before(one, call) for one in stores):
        return None
    return next(one for one in stores if all(other is one or function.runs_before(other, one) for other in stores))[4]


def stream_held(function: Function, register: int, values: list[Object], library: str) -> Stream:
    """The stream that a register holds which may have some values, as a call of a library takes it."""
    if _are_all(values, None) or _are_all(values, 0):
        is_current = library in function.unit.models.marked("tensors") and _are_all(values, None)
        return Stream(CURRENT if is_current else NULL, library=library)
    kinds = {value.detail for value in values if isinstance(value, LibraryObject) and value.kind == "stream"}
    has_unknown = any(isinstance(value, Unknown) for value in values)
    one = function.definitions[register] if register >= 0 and has_unknown else None
    if kinds == {"current"} and not (one is not None and one[0] == op.ITEM):  # another element may be any stream
        return Stream(CURRENT, register, library)
    if kinds and kinds <= {"default", "null"} and not has_unknown:
        return Stream(NULL, register, library)
    return Stream(NAMED, register, library)


def _are_all(values: list[Object], constant: object) -> bool:
    return bool(values) and all(isinstance(value, Constant) and value.value == constant for value in values)


def is_null(function: Function, register: int, values: list[Object]) -> bool:
    """Whether a register holds a null pointer or zero for sure."""
    one = function.definitions[register] if register >= 0 else None
    while one is not None and one[0] == op.CAST:
        one = function.definitions[one[4]]
    if one is not None and one[0] == op.CONST:
        return function.unit.ir.constants[one[3]] in (None, 0)
    constants = [value.value for value in values if isinstance(value, Constant)]
    return bool(values) and len(constants) == len(values) and all(value in (None, 0) for value in constants)
