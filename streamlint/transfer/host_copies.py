"""Copies between the host and a device, as the rules about memory of the host see them: which side is on the host, and since when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import (
    Constant,
    DeviceValue,
    External,
    LibraryObject,
    Memory,
    Object,
    Site,
    Unknown,
    is_module,
)
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.actions import NULL
from streamlint.transfer.contexts import Known
from streamlint.transfer.cpp_options import option
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.origin import Origin
from streamlint.transfer.origins import Origins
from streamlint.waits.entered import Context

COPYING = frozenset({"copy", "transfer", "module_to"})
LITERAL, ASKED = "literal", "asked"
_DEEPEST = 4


class HostCopy(NamedTuple):
    """A copy between memory of the host, made at ``origin``, and a device. ``evidence``: the device is CUDA, or is asked for."""

    call: ModelledCall
    direction: str
    origin: Origin
    evidence: str

    @property
    def host(self) -> int:
        """The register of the side on the host."""
        call = self.call
        if call.row.effect == "copy":
            found = call.one("src" if self.direction == "h2d" else "dst")
        else:
            found = call.one("of", call.receiver) if self.direction == "h2d" else call.one("out", call.result)
        return op.NONE if found is None else found


class HostCopies:
    """Finds the copies of a call, one for each origin of the memory of the host."""

    def __init__(self, origins: Origins) -> None:
        self.origins = origins
        self.contexts = origins.contexts
        self.carriers = origins.carriers

    def of(self, call: ModelledCall) -> Iterator[HostCopy]:
        """The copies that a call may make; of C++ none with memory of callers whose flags keep it from being reached."""
        finders = {"transfer": self._of_transfer, "copy": self._of_copy, "module_to": self._of_module}
        find = finders.get(call.row.effect)
        if find is None:
            return
        block = call.function.blocks[call.instruction]
        for copy in find(call):
            if not (call.function.is_cpp and self.origins.guards.excluded(call.function, block, copy.origin.known.context)):
                yield copy

    def is_asynchronous(self, call: ModelledCall, context: Context) -> bool:
        """Whether a call asks not to wait for its copy."""
        if call.row.library == "numba" and call.stream().kind == NULL:
            return False
        return self.contexts.truth(call, "asynchronous", context) is True

    # --- transfers

    def _of_transfer(self, call: ModelledCall) -> Iterator[HostCopy]:
        row, to = call.row, call.row.get("to")
        source, out = call.one("of", call.receiver), call.one("out")
        if source is None or row.get("staged"):
            return
        if to == "host":
            if not call.is_on_host(source):
                yield from self._down(call, out)
            return
        for origin in self._given(call, source):
            evidence = LITERAL if to == "device" else self._evidence(call, origin.known.context)
            if evidence:
                yield HostCopy(call, "h2d", origin, evidence)

    def _given(self, call: ModelledCall, register: int) -> list[Origin]:
        """The memory that a call is given, and in what holds many of them each one's."""
        origins = self.origins.of(call.function, register)
        if call.row.get("leaves"):
            origins += [each for known in self.origins.elements(call.function, register, ()) for each in self.origins.of(*known)]
        return origins

    def _of_module(self, call: ModelledCall) -> Iterator[HostCopy]:
        """The parameters of a module that is made in view and moved for the first time: they are in pageable memory."""
        to, module = call.row.get("to"), call.one("of", call.receiver)
        if module is None or to == "host" or call.function.is_cpp:
            return
        for known in self._from_callers(Known(call.function, module, ())):
            made = self.contexts.definition(known)
            if made is not None and made[0] in (op.CALL, op.INVOKE):
                yield from self._moved(call, known)
            elif not self._may_be_pinned:
                sources = self.carriers.sources(known.function, known.register, known.context)
                alone = [each for each in sources if self._moved_by[each[:2]] == {Site(call.function, call.instruction)}]
                yield from (copy for each in alone if len(alone) == len(sources) for copy in self._moved(call, Known(*each[:3])))

    @cached_property
    def _moved_by(self) -> dict[tuple[Function, int], set[Site]]:
        """By the register that modules were made in: the calls that move them, also from a list, an attribute or a container of modules."""
        found = defaultdict[tuple[Function, int], set[Site]](set)
        for call in self.origins.transfer.sites({"module_to"}):
            module = call.one("of", call.receiver)
            for source in self.carriers.sources(call.function, module) if module is not None else ():
                found[source.function, source.register].add(Site(call.function, call.instruction))
        return found

    @cached_property
    def _may_be_pinned(self) -> bool:
        """Whether the program may pin the parameters of modules: it stores pinned memory in them, or has a function for it."""
        program, transfer = self.origins.facts.program, self.origins.transfer
        stores = [store for unit in program.mentioning("data") if not unit.is_cpp for store in unit.attribute_stores.get("data", ())]
        held = (value for store in stores if store.value >= 0 for value in transfer.values(store.function, store.value))
        if any(isinstance(value, Memory) and value.pinning == "pinned" for value in held):
            return True
        pins = ((call.function, call.one("of", call.receiver)) for call in transfer.sites({"pin"}))
        return any(
            register is not None and function.is_parameter(register) and not self.origins.facts.call_places(function)
            for function, register in pins
        )

    def _from_callers(self, known: Known, depth: int = 0) -> Iterator[Known]:
        """Where a module is made: what callers hand in for a parameter."""
        known = self.contexts.traced(known)
        made = self.contexts.definition(known)
        if made is None or made[0] != op.PARAM or depth > _DEEPEST:
            yield known
            return
        for caller, one in self.origins.transfer.callers(known.function):
            site = Site(caller, one)
            given = self.contexts.given(known.function, made, site)
            if given is not None and given[0] is caller and caller is not known.function:
                yield from self._from_callers(Known(caller, given[1], ((known.function, site), *known.context)), depth + 1)

    def _moved(self, call: ModelledCall, known: Known) -> Iterator[HostCopy]:
        made = self.contexts.definition(known)
        values = list(self.contexts.values(known))
        if made is None or made[0] not in (op.CALL, op.INVOKE) or not values or not all(map(is_module, values)):
            return
        if any(use is not call.instruction and self._moves(known, use) for use in known.function.uses[known.register]):
            return
        evidence = LITERAL if call.row.get("to") == "device" else self._evidence(call, known.context)
        if evidence and not self._moves(known, made):
            passed = tuple(site for _, site in reversed(known.context))
            yield HostCopy(call, "h2d", Origin(known, "host", "pageable", "module", passed=passed, how="module"), evidence)

    def _moves(self, known: Known, one: Instruction) -> bool:
        """Whether a call moves a module."""
        calls = self.origins.transfer.modelled(known.function, one) if one[0] == op.INVOKE else ()
        return any(each.row.effect == "module_to" for each in calls)

    def _down(self, call: ModelledCall, out: int | None) -> Iterator[HostCopy]:
        if out is not None:
            yield from (HostCopy(call, "d2h", origin, LITERAL) for origin in self.origins.of(call.function, out))
        elif call.row.get("host_memory", "pageable") == "pageable":
            known = Known(call.function, call.result, ())
            yield HostCopy(call, "d2h", Origin(known, "host", "pageable", str(call.row.get("type", "")), how="fetched"), LITERAL)

    def _evidence(self, call: ModelledCall, context: Context) -> str:
        """Why the argument of a transfer is a CUDA device; "" where it is none, or nothing tells."""
        registers = call.all("device")
        if not registers:
            return ""
        if call.function.is_cpp:
            return self._of_options([Known(call.function, each, context) for each in registers])
        known = self.contexts.traced(Known(call.function, registers[0], context))
        values = list(self.contexts.values(known))
        constants = [value.value for value in values if isinstance(value, Constant)]
        words = {value.partition(":")[0] for value in constants if isinstance(value, str)} | self._defaults(known)
        spaces = {value.space for value in values if isinstance(value, (DeviceValue, Memory))}
        if "cuda" in words or "device" in spaces or int in map(type, constants):
            return LITERAL
        if words or ("host" in spaces and not ("unknown" in spaces and any(map(self._is_of_other, self._from_callers(known))))):
            return ""
        return ASKED if self._may_be_device(call, known, values) else ""

    def _of_options(self, arguments: list[Known]) -> str:
        """The same of the options of a tensor in C++."""
        options = (option(self.contexts, each) for each in arguments)
        named = next((each.space for each in options if each is not None and each.space), "")
        return {"device": LITERAL, "unknown": ASKED}.get(named, "")

    def _may_be_device(self, call: ModelledCall, known: Known, values: list[Object]) -> bool:
        """Whether the argument of a transfer is some device, and nothing tells which."""
        if any(isinstance(value, (DeviceValue, Memory)) and value.space == "unknown" for value in values):
            return any(isinstance(value, DeviceValue) for value in values)
        is_open = all(isinstance(value, (Unknown, LibraryObject, External)) for value in values)
        return self._is_of_other(known) or (self._is_keyword(call, call.all("device")[0]) and is_open)

    def _is_of_other(self, known: Known) -> bool:
        """Whether a device is that of another value."""
        made = self.contexts.definition(known)
        return made is not None and made[0] == op.ATTR and known.function.text(made[4]) == "device"

    def _defaults(self, known: Known) -> set[str]:
        """The devices that stand as defaults of the parameters which an unknown value comes from."""
        node = self.origins.facts.values(known.function, known.register) if known.register >= 0 else None
        found = set[str]()
        for value in list(node.values) if node is not None else ():
            for site in node.trace(value) if node is not None and isinstance(value, Unknown) else ():
                function, one = site.function, site.instruction
                default = function.default_register(one[3]) if one[0] == op.PARAM else None
                if default is not None and function.parent is not None and isinstance(word := function.parent.constant(default), str):
                    found.add(word.partition(":")[0])
        return found

    def _is_keyword(self, call: ModelledCall, register: int) -> bool:
        one = call.instruction
        shape = one[5] if one[0] == op.INVOKE else one[4]
        first = 6 if one[0] == op.INVOKE else 5
        names = call.function.unit.ir.constants[shape] if shape != op.NONE else ()
        return any(each == register and name == "device" for each, name in zip(one[first:], names, strict=False))

    # --- copies between two buffers

    def _of_copy(self, call: ModelledCall) -> Iterator[HostCopy]:
        target, source = call.one("dst"), call.one("src")
        if target is None or source is None:
            return
        direction = self._direction(call)
        if direction in ("h2d", "d2h"):
            yield from (
                HostCopy(call, direction, each, LITERAL)
                for each in self.origins.of(call.function, source if direction == "h2d" else target)
            )
            return
        if direction != "infer":
            return
        into, out_of = self._given(call, target), self._given(call, source)
        yield from self._inferred(call, "h2d", out_of, into)
        yield from self._inferred(call, "d2h", into, out_of)

    def _inferred(self, call: ModelledCall, direction: str, hosts: list[Origin], others: list[Origin]) -> Iterator[HostCopy]:
        """Of two sides one is on the host; the other is on a device, or may be. What one caller gives is not asked of another."""
        for origin in hosts:
            if origin.space == "host":
                mine, theirs = ([each for each in origins if may_meet(origin, each)] for origins in (hosts, others))
                spaces = {each.space for each in theirs}
                is_shown = any(each.space == "device" and each.evidence != "asked" for each in theirs)
                if spaces & {"host", "managed"} or not (is_shown or origin.how != "fetched" or "device" in spaces):
                    continue
                if direction == "h2d" or all(each.space == "host" for each in mine) or self._are_distinguished(mine, theirs):
                    yield HostCopy(call, direction, origin, LITERAL if is_shown else ASKED)

    def _are_distinguished(self, hosts: list[Origin], others: list[Origin]) -> bool:
        """Whether the devices of two sides are given by different values, one of which is the host: who tells them apart copies between."""
        first, second = ({self._asked_of(origin) for origin in origins} for origins in (hosts, others))
        return bool(second) and None not in first | second and first.isdisjoint(second)

    def _asked_of(self, origin: Origin) -> tuple[Function, int] | None:
        """The value that says on which device a call makes memory."""
        site = origin.site
        for call in self.contexts.calls(site.function, site.instruction) if site is not None and origin.how == "factory" else ():
            if registers := call.all("device"):
                known = self.contexts.traced(Known(call.function, registers[0], origin.known.context))
                return known.function, known.register
        return None

    def _direction(self, call: ModelledCall) -> str:
        held = call.row.get("direction")
        if isinstance(held, str):
            return held
        register = call.one("direction")
        return (call.word(register) if register is not None else "") or "infer"


def may_meet(first: Origin, second: Origin) -> bool:
    """Whether the same calls may have passed two memories to the function that copies."""
    return all(one == other for one, other in zip(reversed(first.passed), reversed(second.passed), strict=False))
