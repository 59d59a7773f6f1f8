"""SL041: launches whose kernel may begin before the one ahead of it has ended, and reads what that writes without a wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind_copies, last_name
from streamlint.facts.code.objects import Constant, FunctionObject, Site
from streamlint.facts.files.cpp_scopes import scope_of
from streamlint.facts.files.device_code import DeviceCode
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.ordering.memory.kernel_reads import KernelReads, Read
from streamlint.ordering.memory.storage import Storages, plain
from streamlint.ordering.places.flow import is_exactly
from streamlint.ordering.places.leading import leads_to
from streamlint.ordering.places.places import ADDRESS, Place, Places, cell_of
from streamlint.ordering.streams.concurrent_work import ConcurrentWork, Event
from streamlint.transfer.modelled import ModelledCall, is_null
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import argument_registers, given_to

HIGHEST = 12
"""Calls between a launch and the function from which it follows the one ahead."""
_MOST_HOMES = 60
_BETWEEN = frozenset({"record", "wait", "callback", "synchronize"})


class Launched(NamedTuple):
    """A kernel, what it is given, and where the launch of it stands: at the call of a helper that is passed the kernel."""

    kernel: Function
    given: tuple[int, ...]
    event: Event


class EarlyLaunch(NamedTuple):
    """A launch, where its attribute is set, the launch ahead, the read, and where the kernel ahead lets it begin."""

    launch: Event
    name: str
    allowed: Site
    ahead: Event
    read: Read
    trigger: Site | None


class DependentLaunches:
    """Finds such launches."""

    def __init__(self, transfer: Transfer, concurrent: ConcurrentWork, places: Places) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.concurrent = concurrent
        self.places = places
        self.storages = Storages(transfer, places, concurrent.launches)
        self._known: dict[int, Launched | None] = {}
        self._writes: dict[int, set[Place]] = {}
        self.reads = KernelReads(transfer.facts, transfer.one_of(DeviceCode, transfer.facts.program))

    def find(self) -> Iterator[EarlyLaunch]:
        """The launches of the program, each once."""
        seen: set[Site] = set()
        for call in self.transfer.sites({"launch"}, where=_may_be_early):
            allowed = self._allowed(call)
            for home in self._homes(call) if allowed is not None else ():
                for found in self._in(home, call, allowed) if allowed is not None else ():
                    if found.launch.at not in seen:
                        seen.add(found.launch.at)
                        yield found

    # --- the attribute

    def _allowed(self, call: ModelledCall) -> Site | None:
        """Where the attribute is set that lets a launch begin early."""
        function, config = call.function, call.one("stream")
        name, member = call.text("attributes"), call.text("early")
        held = None if config is None else self._field(function, config, name)
        if held is None:
            return None
        base = _root(self.places.of(function, held))
        for one in function.by_opcode[op.SET_ATTR]:
            if function.text(one[3]) == member and is_exactly(base, plain(self.places.of(function, one[2]))):
                return None if self._is_off(function, one[4]) else Site(function, one)
        return None

    def _field(self, function: Function, config: int, name: str) -> int | None:
        """The register of a field of a launch configuration, if the field behind it, the number of its elements, is not 0."""
        base = _root(self.places.of(function, config))
        stored = {each[3]: each for each in function.by_opcode[op.SET_ATTR] if _root(self.places.of(function, each[2])) == base}
        named = {function.text(text): each[4] for text, each in stored.items()}
        if name in named:
            count = next((register for text, register in named.items() if text.startswith("num")), None)
            return None if count is None or self._is_off(function, count) else named[name]
        for made in self._lists(function, base):
            given = made[5 if made[0] == op.CONSTRUCT else 4 :]
            held = [each for each in given[-2:] if each >= 0]
            if len(given) > 4 and len(held) == 2 and not self._is_off(function, held[1]):
                return held[0]
        return None

    def _lists(self, function: Function, base: Place) -> Iterator[Instruction]:
        """The lists of values that a variable is made of."""
        for one in (*function.by_opcode[op.STORE], *function.by_opcode[op.BIND]):
            place = cell_of(function, one[2]) if one[0] == op.STORE else None
            if place is None or place == base:
                definition = function.definitions[behind_copies(function, one[3])]
                if definition is not None and definition[0] in (op.CONSTRUCT, op.BUILD):
                    yield definition

    def _is_off(self, function: Function, register: int) -> bool:
        """Whether a number or flag is 0 for sure."""
        constant = function.constant(register)
        if constant is not None:
            return not constant
        values = list(self.transfer.values(function, register))
        return is_null(function, register, values) or (
            bool(values) and all(isinstance(value, Constant) and not value.value for value in values)
        )

    # --- the launches of a function, and of those that call it

    def _homes(self, call: ModelledCall) -> Iterator[Function]:
        """The function of a launch, and those that call it, as far as the kernel reads early, or is theirs to say."""
        homes = {call.function: 0}
        for home in _growing(homes):
            yield home
            if homes[home] < HIGHEST and len(homes) < _MOST_HOMES and self._matters(home, call):
                for caller, _ in self.transfer.callers(home):
                    homes.setdefault(caller, homes[home] + 1)

    def _matters(self, home: Function, call: ModelledCall) -> bool:
        here = Site(call.function, call.instruction)
        for event in self.concurrent.events(home):
            if event.at == here:
                launched = self._launched(event)
                if launched is None or any(True for _ in self._early(launched)):
                    return True
        return False

    def _in(self, home: Function, call: ModelledCall, allowed: Site) -> Iterator[EarlyLaunch]:
        events = self.concurrent.events(home)
        here = Site(call.function, call.instruction)
        for event in events:
            if event.at != here or event.work is None or event.choice is None:
                continue
            launched = self._launched(event)
            early = dict(self._early(launched)) if launched is not None else {}
            for ahead in events if early else ():
                found = self._hazard_read(home, event, ahead, early)
                if found is not None and launched is not None:
                    trigger = self._trigger(ahead)
                    yield EarlyLaunch(launched.event, call.name, allowed, ahead, found, trigger)
                    break

    def _early(self, launched: Launched) -> Iterator[tuple[Place, Read]]:
        """The memory that a kernel reads early, by the names of the function itself."""
        for index, register in enumerate(launched.given):
            parameters = launched.kernel.code.parameters
            kind = parameters[index].type if index < len(parameters) else None
            if kind is None or not kind[2]:
                continue
            read = self.reads.early(launched.kernel, index)
            place = self.storages.named(launched.event, register) if read is not None else None
            if place is not None and read is not None:
                yield place, read

    def _hazard_read(self, home: Function, event: Event, ahead: Event, early: dict[Place, Read]) -> Read | None:
        """The read of what a kernel ahead writes, if that is the last work on the stream before."""
        if ahead.work is None or ahead.choice is None or event.choice is None or ahead.work.kind != "kernel":
            return None
        if ahead.choice.key != event.choice.key:
            return None
        written = self._written(ahead)
        read = next((early[place] for place in early if place in written), None)
        if read is None or not self._is_next(home, ahead, event):
            return None
        return read

    def _written(self, ahead: Event) -> set[Place]:
        """The memory that a kernel writes for sure: by its body, or by the types of its parameters."""
        key = id(ahead)
        if key not in self._writes:
            self._writes[key] = self._find_written(ahead)
        return self._writes[key]

    def _find_written(self, ahead: Event) -> set[Place]:
        launched = self._launched(ahead)
        numbers = self.reads.written(launched.kernel) if launched is not None else None
        if launched is None or numbers is None:
            return self.storages.touched(ahead)[1] if ahead.work is not None and ahead.work.is_known else set()
        given = (launched.given[number] for number in numbers if number < len(launched.given))
        return {place for register in given if (place := self.storages.named(launched.event, register)) is not None}

    def _is_next(self, home: Function, ahead: Event, event: Event) -> bool:
        """Whether a path leads from one launch to another one with nothing else on their stream between them, and no wait."""
        if ahead.instruction == event.instruction and (ahead.via or event.via) and ahead.at != event.at:
            return False  # both in one call: that is asked of the function called
        stops = {
            each.instruction
            for each in self.concurrent.events(home)
            if each.instruction not in (ahead.instruction, event.instruction)
            and (each.work is None or each.choice is None or event.choice is None or each.choice.key == event.choice.key)
        }
        names = self.transfer.names(_BETWEEN)
        for opcode in (op.CALL, op.INVOKE):
            stops |= {one for one in home.by_opcode[opcode] if last_name(home, one) in names and one != event.instruction}
        return leads_to(home, ahead.instruction, event.instruction, frozenset(stops))

    # --- kernels

    def _launched(self, event: Event) -> Launched | None:
        """The kernel that an event launches, if it is one for sure."""
        key = id(event)  # events are kept
        if key not in self._known:
            self._known[key] = self._find_launched(event)
        return self._known[key]

    def _find_launched(self, event: Event) -> Launched | None:
        work = event.work
        if work is None or work.kernel < 0:
            return None
        function = event.at.function
        definition = function.definitions[behind_copies(function, work.kernel)]
        if definition is not None and definition[0] == op.PARAM:
            return self._launched_for(event, definition) if event.via else None
        found = self._kernels(function, work.kernel)
        return Launched(found[0], work.given, event) if len(found) == 1 else None

    def _launched_for(self, event: Event, made: Instruction) -> Launched | None:
        """The kernel that a template launches for its caller, with the arguments that it is passed for it."""
        function, site = event.at.function, event.via[-1]
        kernel = given_to(site.function, site.instruction, function, made[3])
        found = self._kernels(site.function, kernel) if kernel is not None and kernel >= 0 else []
        rest = next((index for index, one in enumerate(function.code.parameters) if one.kind == "star"), None)
        if len(found) != 1 or rest is None:
            return None
        given = [register for _, register in argument_registers(site.function, site.instruction)]
        return Launched(found[0], tuple(given[rest - function.has_receiver :]), event._replace(at=site, via=event.via[:-1]))

    def _kernels(self, function: Function, register: int) -> list[Function]:
        register = behind_copies(function, register)
        name = function.dotted(register)
        found = self.facts.program.cpp.find(function.unit, scope_of(function), name) if name else ()
        meant = [one for one in found if isinstance(one, Function)]
        meant += [one.function for one in self.transfer.values(function, register) if isinstance(one, FunctionObject)]
        return [one for one in dict.fromkeys(meant) if "kernel" in one.code.flags]

    def _trigger(self, ahead: Event) -> Site | None:
        launched = self._launched(ahead)
        return self.reads.triggers(launched.kernel) if launched is not None else None


def _growing(homes: dict[Function, int]) -> Iterator[Function]:
    """The functions of a mapping that grows meanwhile."""
    done = 0
    while done < len(homes):
        yield list(homes)[done]
        done += 1


def _may_be_early(row: Row) -> bool:
    return row.get("early") is not None


def _root(place: Place) -> Place:
    """What a pointer points to."""
    return Place(place.root, tuple(key for key in place.path if key != ADDRESS))
