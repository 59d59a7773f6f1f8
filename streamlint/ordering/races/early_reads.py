"""SL005: the host reads memory that an asynchronous copy from the device may still be filling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Instance, LibraryObject, Memory, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import first_part
from streamlint.ordering.captures.replayed_copies import ReplayedCopies
from streamlint.ordering.memory.kernel_accesses import KERNEL, KernelAccesses
from streamlint.ordering.memory.parts import Part, are_beside, parts_in, sum_of
from streamlint.ordering.paths.asked_devices import AskedDevices
from streamlint.ordering.paths.rounds import next_round
from streamlint.ordering.paths.shown import is_shown_on_host
from streamlint.ordering.paths.states import MOST_GUESSES, State
from streamlint.ordering.places.alternation import Alternation
from streamlint.ordering.places.flow import BUFFER, Tracked
from streamlint.ordering.places.places import rest_behind
from streamlint.ordering.walk.updating import Updating
from streamlint.transfer.actions import Action, Copied, Read, Updated
from streamlint.transfer.guards import Guards
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.modules import fetched
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import operand_of
from streamlint.waits.questions import alike

_GETTER = frozenset({op.PARAM, op.BIND, op.NAME, op.ATTR, op.DEREF, op.ITEM, op.COPY, op.CAST, op.CONST, op.RETURN, op.OUT})
_GIVEN = frozenset({op.PARAM, op.ITEM, op.UNPACK, op.ATTR, op.NAME})
"""What a parameter is, or is taken out of one."""


class EarlyRead(NamedTuple):
    """A copy, the read that it may reach too late, and the calls that lead to each from where their paths meet."""

    copy: Site
    copied: Copied
    read: Site
    name: str
    accessor: Site | None  # C++: the getter that reads; ``read`` is the call of it
    copy_calls: tuple[Site, ...]
    read_calls: tuple[Site, ...]
    doubts: int


class EarlyReads(Updating):
    """Finds the early reads of a program. An optimizer's step reads the gradients of its parameters."""

    inside = ("grad",)
    forgets = True
    runs_hooks = True

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self._copied: Copied
        self._target: int  # its memory, by a register of the function that is followed from
        self._filled: list[Part] = []  # the parts of memory that it fills, as that function names them
        self._site: Site
        self._reported: Site  # of a copy that a graph runs, where it was captured
        self.replayed = transfer.one_of(ReplayedCopies, transfer, self.places)
        self._is_sure = True
        self._alternation = transfer.one_of(Alternation)
        self._devices_asked = transfer.one_of(AskedDevices, transfer)
        self._found: dict[tuple[Site, Site], EarlyRead] = {}

    def _memory(self, function: Function, target: int) -> Iterator[Tracked]:
        """The memory by all its names, and views of it that were made before."""
        names = list(super()._memory(function, target))
        yield from names
        if not function.is_cpp:
            yield from self._seen_by(function, names)

    def find(self) -> Iterator[EarlyRead]:
        """The early reads of the program."""
        for call, copied in self.transfer.copies():
            yield from self.of(call, copied)
        for call, copied in fetched(self.transfer.sites({"module_to", "transfer"})):
            yield from self.of(call, copied)
        for site, copied in self.transfer.one_of(KernelAccesses, self.transfer, self.places).writes():
            self._is_sure = True
            yield from self._followed(site, copied)

    def of(self, call: ModelledCall, copied: Copied) -> Iterator[EarlyRead]:
        """The early reads of what a copy brings."""
        if self.is_candidate(call, copied):
            self._is_sure = self.transfer.is_sure(call)
            yield from self._followed(Site(call.function, call.instruction), copied, self._parts(call, copied))

    def _parts(self, call: ModelledCall, copied: Copied) -> Iterator[Part]:
        """The parts of memory that a copy fills, as its function names them."""
        function, size = call.function, call.one("bytes")
        shared = parts_in(self.facts, function, self.transfer.shared(function, copied.target))
        if size is None or size < 0:
            yield from shared
            return
        yield Part(alike(function, copied.target), (), sum_of(function, size))
        yield from (part._replace(size=sum_of(function, size)) for part in shared)

    def _followed(self, site: Site, copied: Copied, filled: Iterable[Part] = ()) -> Iterator[EarlyRead]:
        """The early reads of what comes to some memory from a device."""
        self._found = {}
        self._copied, self._target, self._site, self._reported = copied, copied.target, site, site
        self._filled = list(filled)
        launches = list(self.replayed.launches(site))
        if not launches:
            self.follow(site, copied, copied.target)
        for launch in launches:
            self._site, self._target = launch.site, op.NONE
            names = self.replayed.memory(site, launch, self._memory(site.function, copied.target))
            self.follow_launch(launch.site, names, launch.call.stream())
        yield from (found for found in self._found.values() if copied.direction != KERNEL or not self._is_polled(found))

    def _is_polled(self, found: EarlyRead) -> bool:
        """Whether a loop that launches nothing reads what a kernel writes: it watches the kernel at work."""
        function, one = found.read.function, found.read.instruction
        block = function.homes[one][0]
        launched = function.homes[found.copy.instruction][0] if found.copy.function is function else None
        return any(block in loop.body and launched not in loop.body for loop in function.control.loops)

    def is_candidate(self, call: ModelledCall, copied: Copied) -> bool:
        """Whether a copy may be asynchronous, and fill memory of the host."""
        if copied.asynchronous is False or not (
            copied.direction in ("d2h", "host<unknown") or self._is_to_locked(call, copied) or self._is_to_variable(call, copied)
        ):
            return False
        if copied.asynchronous is None and copied.flag == op.NONE:
            return False
        if copied.direction == "d2h":
            function = call.function
            block = function.homes[call.instruction][0]
            return self._is_reported(call) and not is_shown_on_host(self.transfer, function.control, function, block, copied.source)
        is_pinned = any(value.pinning == "pinned" for value in self.memory(call.function, copied.target))
        return is_pinned or self._is_to_variable(call, copied)

    def memory(self, function: Function, register: int) -> list[Memory]:
        """The memory that a register may hold; of an attribute, what the function assigns to it as well (``x.grad = torch.empty(…)``)."""
        place = self.places.of(function, register)
        definition = function.definitions[register] if register >= 0 else None
        stores = function.by_opcode[op.SET_ATTR] if definition is not None and definition[0] == op.ATTR and not function.is_cpp else ()
        same = [value for one in stores for target, value in self.places.assigned(function, one) if target == place]
        return [value for each in (register, *same) for value in self.transfer.values(function, each) if isinstance(value, Memory)]

    def _is_to_variable(self, call: ModelledCall, copied: Copied) -> bool:
        """Whether the pointers decide the direction, and some call gives the address of a variable: nobody queues a copy on the host."""
        if "<" not in copied.direction or not call.addresses(copied.target):
            return False
        return any(not (isinstance(value, Memory) and value.space == "host") for value in call.values(copied.source))

    def _is_to_locked(self, call: ModelledCall, copied: Copied) -> bool:
        """Whether a copy goes from memory that may be on a device to memory that is page-locked where it is known."""
        if copied.direction not in ("unknown<unknown", "unknown<device"):
            return False
        targets, sources = ([v for v in call.values(one) if isinstance(v, Memory)] for one in (copied.target, copied.source))
        locked = any(value.pinning == "pinned" for value in targets)
        return (
            locked
            and all(value.pinning in ("pinned", "unknown") and value.space != "device" for value in targets)
            and any(value.space == "device" for value in sources)
        )

    def _is_reported(self, call: ModelledCall) -> bool:
        """Whether a transfer goes to the host for sure: by its function, or by the function that asks for it, or its caller."""
        if call.row.effect != "transfer" or call.row.get("to") != "argument":
            return True
        return self._is_to_host(call) or any(self._choosing(call.function, register) for register in call.all("device"))

    def _is_to_host(self, call: ModelledCall) -> bool:
        """Whether the device that a call names is the host, and not that of another tensor, of which only one of many is there."""
        is_open = any(self._is_open_tensor(call.function, register) for register in call.all("device"))
        return call.device_spaces() == {"host"} and not is_open

    def _is_open_tensor(self, function: Function, register: int) -> bool:
        """Whether a device is that of a value which is handed in, also by callers out of view, and which is no object of the program."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or one[0] != op.ATTR or function.text(one[4]) not in self.facts.models.attributes_with("device"):
            return False
        holder, values = function.definitions[one[3]], list(self.transfer.values(function, one[3]))
        is_given = holder is not None and holder[0] in _GIVEN and any(getattr(value, "reason", "") == "caller" for value in values)
        return is_given and not any(isinstance(value, Instance) for value in values)

    def _choosing(self, function: Function, register: int) -> list[tuple[Function, Instruction]]:
        """The calls that say which device a parameter is, and that it is the host."""
        one = function.definitions[register]
        if one is None or one[0] != op.PARAM:
            return []
        return [place for place in self.facts.call_places(function) if self._says_host(*place, function, one[3])]

    def _says_host(self, caller: Function, call: Instruction, function: Function, index: int) -> bool:
        given = operand_of(caller, call, function, index) if call[0] in (op.CALL, op.INVOKE) else None
        definition = caller.definitions[given] if given is not None and given >= 0 else None
        if given is None or definition is None or definition[0] not in (op.CONST, op.CALL, op.INVOKE):
            return False
        words = [getattr(value, "space", getattr(value, "value", None)) for value in self.transfer.values(caller, given)]
        return bool(words) and all(word == "host" or str(word).partition(":")[0] == "cpu" for word in words)

    def may_go_up(self, state: State, caller: Function, call: Instruction) -> bool:
        row = self._copied.call.row
        if state.frame.function is not self._site.function or row is None or row.get("to") != "argument":
            return True
        asked = ModelledCall(self.facts, self._site.function, self._copied.call, row)
        if self._is_to_host(asked):
            return True
        return any((caller, call) in self._choosing(self._site.function, register) for register in asked.all("device"))

    def _given(self, state: State, one: Instruction, callee: Function) -> frozenset[Tracked]:
        """Gradients of what loops have taken from containers, also by the names of these."""
        found = [held for held in state.tracked if held.kind == BUFFER and held.place.path[-1:] == self.inside]
        more = {other for held in found for other in self.by_origin(state.frame.function, held)}
        return super()._given(state._replace(tracked=state.tracked | more) if more else state, one, callee)

    def _entering(self, state: State, block: int) -> Iterator[State]:
        """In the next round two slots that take turns have each other's names."""
        function = state.frame.function
        loop = next_round(function, state.block, block)
        for after in super()._entering(state, block):
            if loop is None:
                yield after
            else:
                yield after._replace(tracked=self._alternation.next_round(function, loop, after.tracked))

    def redone(self, state: State, one: Instruction) -> bool:
        """The same copy for another caller fills other memory, unless it is seen to be the same; so does one that makes its memory anew."""
        if self.held(state, self._target) is not None:
            return self._target != one[2] or not self._is_kept(state, one)
        function = state.frame.function
        return not state.path and not any(
            held.kind == BUFFER and self._alternation.takes_turns(function, held.place) for held in state.tracked
        )

    def _is_kept(self, state: State, one: Instruction) -> bool:
        """Whether the memory of an earlier round is found where the rounds of a loop leave it: by another name than the copy's own."""
        function = state.frame.function
        block = function.homes[one][0]
        inside = frozenset[int]().union(*(loop.body for loop in function.control.loops if block in loop.body))
        for held in state.tracked:
            root = held.place.root
            definition = function.definitions[int(str(root[1]))] if root[0] == "register" else None
            if held.kind == BUFFER and (definition is None or definition[0] == op.PHI or function.homes[definition][0] not in inside):
                return True
        return False

    def meets(self, state: State, one: Instruction, action: Action) -> bool:
        held = self.held(state, action.register, action.depth) if isinstance(action, Read) else None
        held = self.updated(state, action) if isinstance(action, Updated) else held
        if isinstance(action, Copied) and self._is_copied_on_host(state, action):
            held, action = self.held(state, action.source), Read(action.source, action.call.name, False)
        if not isinstance(action, Read | Updated) or held is None or state.doubts > MOST_GUESSES:
            return False
        if isinstance(action, Read) and self._is_beside(state, one, action):
            return False
        if not self._is_sure and first_part(action.name) not in self.transfer.facts.models.marked("array-package"):
            return False
        self._report(state, held.announced or Site(state.frame.function, one), action.name)
        return True

    def _is_beside(self, state: State, one: Instruction, action: Read) -> bool:
        """Whether the function of the copy reads another part of the memory than the copy fills."""
        function = state.frame.function
        if function is not self._site.function or state.frame.depth or self._target < 0 or not self._filled:
            return False
        own = (one[2],) if op.DEFINES[one[0]] else ()
        read = parts_in(self.facts, function, (*self.transfer.shared(function, action.register), *own))
        return any(are_beside(function, filled, part) for part in read for filled in self._filled)

    def orders(self, state: State, one: Instruction, action: Action) -> bool:
        """A copy from memory of the host to other such memory waits for nothing, and so does an operation that is given the memory: its
        operands are on one device."""
        if isinstance(action, Copied) and self._is_copied_on_host(state, action):
            return False
        return not (isinstance(action, Read) and action.presumes and self._is_given_beside(state, one, action)) and super().orders(
            state, one, action
        )

    def passed(self, state: State, one: Instruction) -> bool:
        """Also where a module goes back to the device, behind the copy."""
        moved = self.transfer.works(state.frame.function, one) if one[0] == op.INVOKE else ()
        return super().passed(state, one) or any(self.held(state, register) is not None for work in moved for register in work.moves)

    def _is_given_beside(self, state: State, one: Instruction, action: Read) -> bool:
        """Whether an operation that reads something also reads the memory."""
        others = (each for each in self.actions(state.frame.function, one) if isinstance(each, Read) and each.name == action.name)
        return any(self.held(state, each.register, each.depth) is not None for each in others)

    def _is_copied_on_host(self, state: State, action: Copied) -> bool:
        """Whether the host copies the memory to some of its own: to what is there, is made on its device, or has to be there where the
        asynchronous copy stands."""
        row, function = action.call.row, state.frame.function
        if row is None or row.effect != "copy" or function.is_cpp or self.held(state, action.source) is None:
            return False
        if action.direction in ("h2h", "host<unknown"):
            return row.library in self.transfer.facts.models.marked("computes-on-host")
        if action.direction in ("h2d", "d2d", "d2h", "peer"):
            return False
        if function is self._site.function and (
            self._devices_asked.is_on_host(self._site, action.target)
            or self._devices_asked.is_made_on(function, action.target, self._is_asked_for)
        ):
            return True
        return self._devices_asked.is_made_on(function, action.target, partial(self._is_device_of, state))

    def done_where(self, state: State, condition: int) -> bool | None:
        """Also where nothing is copied from a device: its source is on the host, or what it was asked to go to is a device."""
        function = state.frame.function
        if function is not self._site.function or self._copied.direction != "d2h" or function.is_cpp:
            return super().done_where(state, condition)
        guards = self.transfer.one_of(Guards, self.transfer)
        says = guards.says(function, condition, True, frozenset(self.transfer.shared(function, self._copied.source)))
        if says:
            return says == "host"
        asked = self._devices_asked.asks(function, condition)
        return not asked.on_host if asked is not None and self._is_asked_for(asked.device) else super().done_where(state, condition)

    def _is_asked_for(self, register: int) -> bool:
        """Whether a register names the device that the copy goes to."""
        row, function = self._copied.call.row, self._site.function
        if row is None or row.get("to") != "argument":
            return False
        asked = ModelledCall(self.facts, function, self._copied.call, row).all("device")
        return any(alike(function, each) == alike(function, register) for each in asked)

    def _is_device_of(self, state: State, register: int) -> bool:
        """Whether a register names the device of the memory: ``held.device``, or ``held`` where something is made like it."""
        function = state.frame.function
        made = function.definitions[register] if register >= 0 else None
        if made is not None and made[0] == op.ATTR and function.text(made[4]) in self.facts.models.attributes_with("device"):
            register = made[3]
        return self.held(state, register) is not None

    def left(self, state: State, register: int) -> None:
        """A view for the host that goes to a caller who can wait for nothing: it is read."""
        names = self.places.names(state.frame.function, register) if register >= 0 else ()
        behind = [held for held in state.tracked if any(rest_behind(place, held.place) is not None for place in names)]
        view = next((held.announced for held in behind if held.kind == BUFFER and held.announced is not None), None)
        is_alone = all(held.kind == BUFFER for held in behind) and not self._may_wait_for(state.frame.function, register)
        if view is not None and is_alone and state.doubts <= MOST_GUESSES and self._is_sure:
            self._report(state, view, "return")

    def _may_wait_for(self, function: Function, register: int) -> bool:
        """Whether what a function gives back holds a stream, an event, or an object of the program that may have one."""
        one = function.definitions[register]
        inside = (register, *(one[4:] if one is not None and one[0] == op.BUILD else ()))
        values = [value for each in inside if each >= 0 for value in self.transfer.values(function, each)]
        return any(isinstance(value, (Instance, LibraryObject)) for value in values)

    def _report(self, state: State, read: Site, name: str) -> None:
        calls = list(state.frame.calls)
        accessor = read if calls and _gives_back(read.function) else None
        while calls and _gives_back(read.function):
            read = calls.pop()
        copy_calls = tuple(Site(state.frame.root.function, call) for call in state.path[-1:])
        found = EarlyRead(self._reported, self._copied, read, name, accessor, copy_calls, tuple(calls), state.doubts)
        before = self._found.get((self._reported, read))
        if before is None or found.doubts < before.doubts:
            self._found[self._reported, read] = found


def _gives_back(function: Function) -> bool:
    """C++: whether a method does nothing but give back what it reads: whoever calls it chooses when."""
    if not function.is_cpp or function.owner is None or len(function.code.blocks) != 1:
        return False
    is_plain = len(function.code.parameters) == 1 or function.code.name.startswith("operator")
    return is_plain and all(one[0] in _GETTER for one in function.code.blocks[0])
