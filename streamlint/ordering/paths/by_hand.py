"""Scopes that a function of Python enters by hand: ``scope.__enter__()``, and those that it gives to a stack of contexts to leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject
from streamlint.facts.files.scopes import ExternalName
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import Selector
from streamlint.transfer.actions import NAMED, UNKNOWN, Stream
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import argument_registers

_ENTERING, _LEAVING = "__enter__", "__exit__"


class ByHand:
    """The scopes of a function that make a stream current. ``entered``: by call, the stream that is current from there on."""

    def __init__(self, transfer: Transfer, function: Function) -> None:
        self.transfer = transfer
        self.function = function
        self.entered: dict[Instruction, Stream] = {}
        self._given: Counter[int] = Counter()  # by register of a stack of contexts: the scopes that it leaves
        self._own: set[object] = set()
        if not function.is_cpp and not function.called_names.isdisjoint({_ENTERING, *function.known("enters")}):
            for one in function.by_opcode[op.INVOKE]:
                self._add(one)

    def left(self, one: Instruction) -> int:
        """How many scopes an instruction leaves."""
        if one[0] == op.INVOKE and self._own and self.function.text(one[4]) == _LEAVING:
            return int(self._name(one[3]) in self._own)
        return self._given[one[3]] if one[0] == op.EXIT else 0

    def _add(self, one: Instruction) -> None:
        name = self.function.text(one[4])
        if name == _ENTERING and (stream := self._stream(one[3])) is not None:
            self.entered[one] = stream
            self._own.add(self._name(one[3]))
        elif name in self.function.known("enters") and (holder := self._stack(one[3])) >= 0:
            for _, register in argument_registers(self.function, one)[:1]:
                if (stream := self._stream(register)) is not None:
                    self.entered[one] = stream
                    self._given[holder] += 1

    def _name(self, register: int) -> object:
        """What a scope is called by: an attribute is read anew each time."""
        one = self.function.definitions[register] if register >= 0 else None
        return self.function.dotted(register) or register if one is not None and one[0] == op.ATTR else register

    def _stack(self, register: int) -> int:
        """The register of the stack of contexts that a ``with`` leaves."""
        one = self.function.definitions[register] if register >= 0 else None
        holder = one[3] if one is not None and one[0] == op.ENTER else register
        definition = self.function.definitions[holder] if holder >= 0 else None
        if (
            definition is None
            or definition[0] not in (op.CALL, op.INVOKE)
            or not any(end[3] == holder for end in self.function.by_opcode[op.EXIT])
        ):
            return op.NONE
        called = self.function.dotted(definition[3])
        called = f"{called}.{self.function.text(definition[4])}" if definition[0] == op.INVOKE else called
        meant = self.transfer.facts.scopes.find(self.function.unit, called)
        return (
            holder
            if any(isinstance(each, ExternalName) and each.name in self.function.unit.models.marked("context-stack") for each in meant)
            else op.NONE
        )

    def _stream(self, register: int) -> Stream | None:
        """The stream that a scope makes current."""
        definition = self.function.definitions[register] if register >= 0 else None
        if definition is not None and definition[0] in (op.CALL, op.INVOKE):
            return next(self._of_call(definition), None)
        kinds = {value.kind for value in self.transfer.values(self.function, register) if isinstance(value, LibraryObject)}
        return Stream(UNKNOWN, register) if "scope" in kinds else None

    def _of_call(self, made: Instruction) -> Iterator[Stream]:
        for call in self.transfer.modelled(self.function, made):
            selector = call.row.get("stream")
            register = call.given(selector) if call.row.effect == "scope" and isinstance(selector, Selector) else None
            if register is not None:
                stream = call.stream_in(register)
                yield stream if stream.kind != UNKNOWN else Stream(NAMED, register, call.row.library)
