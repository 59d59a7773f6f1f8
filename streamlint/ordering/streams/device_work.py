"""Whether an instruction puts work on a device: for sure, or perhaps, as unknown code that is given what leads to one."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant, External, FunctionObject, LibraryObject, Memory, Object, Scalar, Site
from streamlint.facts.repetition.effects import Effect, Effects
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.cpp import PLAIN
from streamlint.transfer.modelled import operands_of
from streamlint.transfer.origins import Origins
from streamlint.waits.quiet import Quiet
from streamlint.waits.ways import MOST_BRIEF

_WORK = frozenset({"launch", "memset", "collective", "callback"})
_COPIES = frozenset({"copy", "transfer", "module_to"})
_OPERATORS = frozenset({op.BINARY, op.INPLACE, op.UNARY})
_DEEPEST = 6
"""Computations that are gone back over for a number."""


class DeviceWork:
    """Answers for the instructions of a program. Functions of the program that one enters are looked at by whoever asks."""

    def __init__(self, origins: Origins) -> None:
        self.origins = origins
        self.transfer = origins.transfer

    def works(self, function: Function) -> bool:
        """Whether a function may put work on a device, by itself or through what it calls."""
        return self.transfer.one_of(Effects, self.transfer.graph).leads(function, Effect.LAUNCHES | Effect.COPIES)

    def is_on_device(self, function: Function, register: int) -> bool:
        """Whether a register may hold memory of a device."""
        return self.origins.is_on_device(function, register)

    def queues(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction puts work on a device, copies aside."""
        if one[0] == op.LAUNCH:
            return True
        if one[0] in _OPERATORS:
            return any(self._is_computed_there(function, register) for register in op.reads(one))
        return one[0] in (op.CALL, op.INVOKE) and self._call_queues(function, one)

    def is_brief(self, site: Site) -> bool:
        """Whether the device is done with what an instruction puts there as soon as the host has started it: a pass over the elements of
        tensors."""
        return bool(self.transfer.one_of(Quiet, self.transfer.graph).brief(*site))

    def may_queue(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction calls unknown code which may put work on a device: it is given something that leads to one.

        Python: a value of which nothing is known may hold by itself what it works on."""
        if not self.is_unknown_code(function, one):
            return False
        if one[0] == op.CALL and not function.is_cpp and not self.transfer.libraries(function, one):
            return True
        return any(self.leads(function, register) for register in operands_of(function, one))

    def _call_queues(self, function: Function, one: Instruction) -> bool:
        """Whether a call puts work on a device: by its row, as a module that runs, or on operands that are there."""
        effects = {call.row.effect for call in self.transfer.modelled(function, one)}
        if not effects.isdisjoint(_WORK):
            return True
        if not effects.isdisjoint(_COPIES):
            return False
        callee = self.transfer.values(function, one[3]) if one[0] == op.CALL else ()
        if any(isinstance(value, LibraryObject) and value.kind == "module" for value in callee):
            return True
        if ("compute" not in effects) if effects else any(edge.is_followed for edge in self.transfer.edges(function, one)):
            return False
        if called := self._called(function, one):
            return any(map(self.works, called))
        is_of_host = self.transfer.is_of_language(function, one) or self._is_of_host(function, one)
        return not is_of_host and any(self.is_on_device(function, each) for each in operands_of(function, one))

    def _is_of_host(self, function: Function, one: Instruction) -> bool:
        """Whether the method that is called is one of arrays of the host, which what else may be there does not have."""
        receivers = [call.receiver for call in self.transfer.libraries(function, one) if call.row is not None]
        return bool(receivers) and all(isinstance(each, Memory) and each.space == "host" for each in receivers)

    def _called(self, function: Function, one: Instruction) -> list[Function]:
        """The functions of the program that a call is known to be of, where it can be of nothing else."""
        values = self.transfer.values(function, one[3]) if one[0] == op.CALL else ()
        found = [value.function for value in values if isinstance(value, FunctionObject)]
        return found if len(found) == len(values) else []

    def _is_computed_there(self, function: Function, register: int) -> bool:
        """Whether an operator on what a register holds runs on a device: on a pointer of C++ it computes an address."""
        if not function.is_cpp:
            return self.is_on_device(function, register)
        return any(origin.space == "device" and origin.type != "pointer" for origin in self.origins.of(function, register))

    # --- unknown code

    def is_unknown_code(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction calls code of which neither a row nor the program says what it does, nor its library that it only works
        on the host."""
        if one[0] not in (op.CALL, op.INVOKE) or any(edge.is_followed for edge in self.transfer.edges(function, one)):
            return False
        if any(True for _ in self.transfer.modelled(function, one)) or self.transfer.is_of_language(function, one):
            return False
        if called := self._called(function, one):
            return any(map(self.works, called))
        libraries = self.transfer.libraries(function, one)
        if not libraries or any(call.row is None and not self.transfer.facts.is_of_host(function, call.name) for call in libraries):
            return True
        return self.transfer.facts.hands_function(function, operands_of(function, one))

    def leads(self, function: Function, register: int, depth: int = _DEEPEST) -> bool:
        """Whether a register may hold, or lead to, memory of a device, or what works there."""
        if register < 0:
            return False
        one = function.definitions[register]
        if one is not None and one[0] in (op.BUILD, op.DICT) and depth:
            return any(self.leads(function, part, depth - 1) for part in op.reads(one))
        values = list(self.transfer.values(function, register))
        if values:
            return any(self._leads(function, value) for value in values)
        return not self._is_plain(function, register, depth)

    def _leads(self, function: Function, value: Object) -> bool:
        if isinstance(value, Memory):
            return value.space != "host"
        if isinstance(value, LibraryObject):
            return value.kind != "object" or not self.transfer.facts.is_of_host(function, value.type)
        if isinstance(value, External):
            return value.receiver is not None and self._leads(function, value.receiver)
        return not isinstance(value, (Constant, Scalar))

    def _is_plain(self, function: Function, register: int, depth: int) -> bool:
        """Whether what is not known otherwise is a number or a text, by how it is declared or computed."""
        one = function.definitions[register]
        if one is None or not depth:
            return False
        if one[0] == op.PARAM:
            declared = function.code.parameters[one[3]].type if one[3] < len(function.code.parameters) else None
            if declared is None or declared[1] or declared[2] or declared[4] is not None:
                return False
            return declared[0] in PLAIN or (function.is_cpp and self.transfer.facts.is_of_host(function, str(declared[0])))
        if one[0] in (op.PHI, op.COPY, op.CAST, op.COMPARE, *_OPERATORS):
            return not any(self.leads(function, each, depth - 1) for each in op.reads(one) if each != register)
        return one[0] in (op.CONST, op.FORMAT)


class Handful:
    """Brief operations on the ways from or to an operation: so many at most, which no loop repeats but those around its ``places``."""

    def __init__(self, work: DeviceWork, places: Iterable[Site], most: int = MOST_BRIEF) -> None:
        self._work = work
        self._places = {place.function: place for place in places}
        self._most = most
        self._taken = set[Site]()

    def takes(self, site: Site, through: Site) -> bool:
        """Whether an operation is one of them. ``through`` is the call in whose course it runs."""
        is_single = all(_is_alongside(each, self._places.get(each.function)) for each in (site, through))
        if not is_single or not self._work.is_brief(site):
            return False
        self._taken.add(site)
        return len(self._taken) <= self._most


def _is_alongside(site: Site, place: Site | None) -> bool:
    """Whether all loops around an instruction are around a place of its function, too."""
    function, homes = site.function, site.function.blocks
    around = [loop for loop in function.control.loops if homes[site.instruction] in loop.body]
    return not around or (place is not None and all(homes[place.instruction] in loop.body for loop in around))
