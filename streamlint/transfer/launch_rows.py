"""What rows say of a call that queues work: its direction, its stream, its policy."""

from __future__ import annotations

from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import uncast
from streamlint.facts.code.objects import LibraryObject, Object, Site, Unknown
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import Selector
from streamlint.transfer.contexts import Contexts, Known
from streamlint.transfer.copies import copied_direction
from streamlint.transfer.cpp_declared import declared_type
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer

GIVEN, OMITTED, FIXED, CURRENT, HANDLE, POLICY, CONFIG, OWN = "given", "omitted", "fixed", "current", "handle", "policy", "config", "own"
"""Who says which stream: an operand, nobody, the function itself, the library's current stream, a handle, a policy, a field of a struct,
or whoever made the array that is worked on."""
_HOLDING = frozenset({op.PARAM, op.NAME, op.LOAD, op.ATTR, op.ITEM, op.DEREF, op.CALL, op.INVOKE})
"""What reads a variable, a member or an element, or calls: what a stream is passed by."""
MAPPED = frozenset({"d2h", "h2d", "d2d", "peer"})


class Queued(NamedTuple):
    """Work that an instruction puts on a stream. ``operand`` holds what ``how`` speaks of; NONE where there is nothing.

    ``kind`` is kernel, copy, memset or library; ``waits``: the host waits for the work; ``reads`` and ``writes`` are the registers of
    memory, ``is_told`` whether that is known of all of it.
    """

    how: str
    operand: int
    kind: str
    name: str
    library: str
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    direction: str = ""
    waits: bool = False
    is_known: bool = True
    call: ModelledCall | None = None
    kernel: int = op.NONE  # the register of the kernel
    given: tuple[int, ...] = ()  # what the kernel is given
    inner: Site | None = None  # where a function in another language does the work


class LaunchRows:
    """What rows say of calls that queue work."""

    def __init__(self, transfer: Transfer, presumes: bool = False) -> None:
        self.transfer = transfer
        self.presumes = presumes  # tensors of PyTorch of which nothing says where they are count as on a device
        self.facts = transfer.facts
        self._known: dict[Function, list[tuple[Instruction, Queued]]] = {}

    def _direction(self, call: ModelledCall) -> str:
        held = call.row.get("direction")
        if isinstance(held, Selector):
            register = call.given(held)
            word = call.word(register) if register is not None else held.default or ""
            return word if word in MAPPED or word == "h2h" else ""
        if call.row.get("across"):
            return copied_direction(call, call.one("dst"), call.one("src"))
        if call.row.effect == "transfer":
            return {"host": "d2h", "device": "h2d"}.get(str(call.row.get("to")), "")
        return str(held or "")

    def chosen(self, call: ModelledCall) -> tuple[str, int]:
        """Who says which stream a call works on."""
        row = call.row
        held = row.get("stream")
        if row.get("policy") or row.get("context"):
            return self._with_first_or_last(call)
        if held == "handle":
            handle = call.one("handle")
            return HANDLE, op.NONE if handle is None else handle
        if held == "null":
            return FIXED, op.NONE
        if held in (None, "current"):
            return CURRENT, op.NONE
        if not isinstance(held, Selector):
            return "unknown", op.NONE
        if held.kind == "pointee":
            register = call.given(held)
            return CONFIG, op.NONE if register is None else register
        register = self._stream_among(call) if held.kind == "all" else call.given(held)
        if register is not None:
            return GIVEN, register
        if held.default == "own" and (array := call.one("of", call.one("dst", call.receiver))) is not None:
            return OWN, array
        by_default = {"null": OMITTED, "current": CURRENT}
        return by_default.get(held.default or "", "unknown"), op.NONE

    def _with_first_or_last(self, call: ModelledCall) -> tuple[str, int]:
        """The same of a call whose first argument may be a policy, or whose last one is a struct that holds the stream."""
        if call.row.get("context"):
            return (CONFIG, call.operands[-1]) if call.operands else ("unknown", op.NONE)
        policy = self._policy(call)
        return (POLICY, policy) if policy is not None else (OMITTED, op.NONE)

    def _stream_among(self, call: ModelledCall) -> int | None:
        """The argument that is a stream; else the last one, if it may be a stream as far as is known. CUB's overloads have it there, before
        the flag ``debug_synchronous`` of old versions."""
        for register in reversed(call.operands):
            if self._holds_stream(call, register):
                return register
        last = next((each for each in reversed(call.operands) if call.function.truth(each) is None), None)
        return last if last is not None and self._may_be_stream(call, last) else None

    def _may_be_stream(self, call: ModelledCall, register: int) -> bool:
        """Whether nothing is known of what a register holds, and no type that it is declared with says that it is no stream."""
        one = call.function.definitions[register]
        if one is None or one[0] not in _HOLDING or not all(isinstance(value, Unknown) for value in call.values(register)):
            return False
        kind = declared_type(self.transfer.one_of(Contexts, self.transfer), Known(call.function, register, ()))
        return kind is None or str(kind[0]) in self.facts.models.marked("raw-stream")

    def _policy(self, call: ModelledCall) -> int | None:
        """The first argument, if it is an execution policy; one that works on the host is none."""
        given = call.operands
        if not given:
            return None
        first = given[0]
        return first if self._word_of_policy(call, first) else None

    def _word_of_policy(self, call: ModelledCall, register: int) -> str:
        """``policy`` of one that the models know, also with an allocator or a stream, or of a stream."""
        function, register = policy_in(self.transfer, call.function, register)
        while (one := function.definitions[register] if register >= 0 else None) is not None and one[0] in (op.CALL, op.INVOKE):
            register = one[3]
        word = ModelledCall(self.facts, function, call.call, call.row).word(register)
        if word in ("policy", "host-policy"):
            return word
        return "policy" if self._holds_stream(call, call.operands[0]) else ""

    def _holds_stream(self, call: ModelledCall, register: int) -> bool:
        return any(getattr(value, "kind", "") == "stream" for value in call.values(register))


def policy_in(transfer: Transfer, function: Function, register: int) -> tuple[Function, int]:
    """Where a policy is made that a function of the program gives, itself or a copy of it."""
    for _ in range(4):
        register = uncast(function, register)
        one = function.definitions[register] if register >= 0 else None
        edges = transfer.edges(function, one) if one is not None and one[0] in (op.CALL, op.INVOKE) else ()
        ends = [end[2] for edge in edges for end in edge.callee.by_opcode[op.RETURN] if end[2] >= 0]
        if len(edges) != 1 or len(ends) != 1:
            break
        function, register = edges[0].callee, ends[0]
    return function, uncast(function, register)


def is_null_stream(values: list[Object]) -> bool:
    """Whether all of some values are the default stream of a library, which is the null stream."""
    return bool(values) and all(isinstance(value, LibraryObject) and value.detail in ("null", "default") for value in values)
