"""Which device code makes the current one of its thread: where, and whether that may be another one than the first."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import Constant, DeviceValue, LibraryObject, Object, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Models
from streamlint.models.vocabulary import Row, Selector
from streamlint.ordering.places.leading import leads_to
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer

_FIRST = frozenset({0, "0", "cuda:0", -1, None})
_ANY = frozenset({"cuda"})
"""Texts that leave open which device of CUDA it is: the current one."""
_CALLS = (op.CALL, op.INVOKE, op.CONSTRUCT)
STREAMS = frozenset({"scope", "set_stream"})
"""Effects that make a stream the current one, and its device with it."""
_CHOOSING = frozenset({"touch", "none", "device", "setting"})
_HIGHEST = 4
_DEEPEST = 1
_MOST = 200


class ChosenDevices:
    """Asks who chose the current device."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self._known: dict[Function, list[ModelledCall]] = {}

    @cached_property
    def is_any(self) -> bool:
        """Whether the program may choose a device at all, by the names that it calls."""
        return any(True for _ in self.transfer.candidates(_CHOOSING, where=_is_choosing))

    # --- calls that choose

    def calls(self, function: Function) -> list[ModelledCall]:
        """The calls of a function that make a device the current one, or a stream, which brings its device with it."""
        found = self._known.get(function)
        if found is None:
            found = self._known[function] = []
            for opcode in _CALLS:
                for one in function.by_opcode[opcode]:
                    if self._name(function, one) in self._names:
                        found += (call for call in self.transfer.modelled(function, one) if _chooses(call))
        return found

    def _name(self, function: Function, one: Instruction) -> str:
        if one[0] == op.CONSTRUCT:
            return str(function.unit.ir.constants[one[3]][0]).rpartition("::")[2]
        return last_name(function, one)

    @cached_property
    def _names(self) -> frozenset[str]:
        """The last parts of the names of functions that choose."""
        return self.facts.models.gathered(_choosing) | self.facts.cpp_models.gathered(_choosing)

    def device(self, call: ModelledCall) -> int | None:
        """The register of the device that a call chooses."""
        return call.one("value") if call.row.get("what") == "device" else call.one("chooses")

    # --- which device is current where another thread is started

    def at(self, function: Function, one: Instruction) -> Site | None:
        """Where a device that is not the first was made the current one before an instruction: in its function, in the constructor
        of its object, or in those that call it."""
        waiting, seen = [(function, one, 0)], {(function, one)}
        for holder, place, depth in waiting:
            found = self._in(holder, place)
            if found is not None:
                return found
            for caller, call in self.transfer.callers(holder) if depth < _HIGHEST else ():
                if (caller, call) not in seen and len(seen) < _MOST:
                    seen.add((caller, call))
                    waiting.append((caller, call, depth + 1))
        return None

    def _in(self, function: Function, one: Instruction) -> Site | None:
        for call in self.calls(function):
            register = self.device(call) if call.row.effect not in STREAMS else None
            if register is not None and self.is_in_force(call, one) and self.is_other(function, register):
                return Site(function, call.instruction)
        return self._called(function, one) or self._constructed(function)

    def _called(self, function: Function, one: Instruction) -> Site | None:
        """Where a function that is called before an instruction has chosen a device, by itself or in what it calls."""
        for opcode in (op.CALL, op.INVOKE):
            for call in function.by_opcode[opcode]:
                if call is not one and leads_to(function, call, one):
                    for edge in self.transfer.edges(function, call):
                        found = self._set_in(edge.callee, 0) if edge.is_direct else None
                        if found is not None:
                            return found
        return None

    def _set_in(self, function: Function, depth: int) -> Site | None:
        for call in self.calls(function):
            if self.lasts(call) and (register := self.device(call)) is not None and self.is_other(function, register):
                return Site(function, call.instruction)
        for opcode in (op.CALL, op.INVOKE) if depth < _DEEPEST else ():
            for one in function.by_opcode[opcode]:
                for edge in self.transfer.edges(function, one):
                    found = self._set_in(edge.callee, depth + 1) if edge.is_direct else None
                    if found is not None:
                        return found
        return None

    def is_chosen(self, function: Function, one: Instruction) -> bool:
        """Whether a device, or a stream of one, was chosen before an instruction, whichever it is."""
        return any(self.is_in_force(call, one) for call in self.calls(function)) or self.at(function, one) is not None

    def _constructed(self, function: Function) -> Site | None:
        """Where the constructor of a method's object has chosen a device."""
        owner = function.owner
        for made in owner.methods.get("__init__", ()) if owner is not None and not function.is_static else ():
            for call in self.calls(made) if made is not function else ():
                if self.lasts(call) and (register := self.device(call)) is not None and self.is_other(made, register):
                    return Site(made, call.instruction)
        return None

    def lasts(self, call: ModelledCall) -> bool:
        """Whether a device stays the current one behind the function that chooses it: no block and no guard ends it."""
        return call.row.effect not in STREAMS | {"device"} and call.instruction[0] != op.CONSTRUCT and not self._scopes(call)

    def is_in_force(self, call: ModelledCall, one: Instruction) -> bool:
        """Whether what a call chooses is the current device at an instruction behind it."""
        function = call.function
        scopes = self._scopes(call)
        if scopes:
            ends = [each for each in function.by_opcode[op.EXIT] if each[3] in {scope[3] for scope in scopes}]
            inside = any(function.runs_before(scope, one) for scope in scopes)
            return inside and not any(function.runs_before(end, one) for end in ends)
        if call.row.effect == "device":
            return False
        if call.instruction[0] == op.CONSTRUCT:
            ends = [each for each in function.by_opcode[op.DESTROY] if each[2] == call.result]
            return function.runs_before(call.instruction, one) and not any(function.runs_before(end, one) for end in ends)
        return leads_to(function, call.instruction, one)

    def _scopes(self, call: ModelledCall) -> list[Instruction]:
        """The blocks that open what a call gives."""
        return [one for one in call.function.by_opcode[op.ENTER] if one[3] == call.result]

    # --- which device a register names

    def is_other(self, function: Function, register: int) -> bool:
        """Whether a register may name another device than the first: nothing that is known of it is the first one, or leaves it open."""
        named = set(self.named(function, register))
        return named.isdisjoint(_FIRST | _ANY)

    def is_open(self, function: Function, register: int) -> bool:
        """Whether a register is known to name no device, or CUDA without a number."""
        named = set(self.named(function, register))
        return bool(named) and named <= _ANY | {None}

    def named(self, function: Function, register: int) -> Iterator[object]:
        """The names or numbers of devices that a register may hold; ``...`` where one is not known."""
        node = self.facts.values(function, register)
        values = list(node.values)
        constant = function.constant(register)
        if constant is not None:
            yield constant
            return
        for value in values:
            if isinstance(value, Constant):
                yield value.value
            elif isinstance(value, (DeviceValue, LibraryObject)):
                yield from self._made(value, list(node.trace(value)))
            else:
                yield ...
        if not values:
            yield ...

    def _made(self, value: Object, sites: list[Site]) -> Iterator[object]:
        """What a device object was made of."""
        is_known = False
        for site in sites:
            for call in self.transfer.modelled(site.function, site.instruction) if site.instruction[0] in _CALLS else ():
                source = call.one("from") if call.row.effect == "device" else None
                if source is None:
                    continue
                is_known = True
                number = [each for each in call.operands if each != source and call.row.get("chooses") is None]
                yield from [...] if number else self.named(site.function, source)
        if not is_known:
            yield ...


def _is_choosing(row: Row) -> bool:
    return row.get("chooses") is not None or row.get("what") == "device"


def _chooses(call: ModelledCall) -> bool:
    row = call.row
    return isinstance(row.get("chooses"), Selector) or row.get("what") == "device" or row.effect in STREAMS


def _choosing(models: Models) -> frozenset[str]:
    rows = models.calls.items()
    chosen = (name for name, row in rows if row.get("chooses") is not None or row.get("what") == "device" or row.effect in STREAMS)
    return frozenset(name.replace("::", ".").rpartition(".")[2] for name in chosen)
