"""Queues and pipes between processes: which end is which channel, and who puts and takes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.functions import Function
from streamlint.facts.objects import LibraryObject, Site
from streamlint.facts.program import Register, Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.nearness import units_near
from streamlint.transfer.spawns import PROCESS, Spawn, Spawns
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import argument_registers, operand_of

_HIGHEST = 3
_ENDS = frozenset({"put", "get"})
_KEEPING = frozenset({op.BUILD, op.DICT, op.SET_ATTR, op.STORE, op.SET_NAME, op.RETURN, op.APPEND, op.SET_ITEM, op.YIELD})
Way = tuple[Spawn, tuple[Site, ...]]
Channel = frozenset[Site]
"""Where the queue or pipe was made; empty where that is not known."""


class End(NamedTuple):
    """A put or a get of a program."""

    call: ModelledCall
    channel: Channel

    @property
    def site(self) -> Site:
        """Where it stands."""
        return Site(self.call.function, self.call.instruction)


class Channels:
    """The channels of a program."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.spawns = [spawn for spawn in Spawns(transfer).all() if spawn.kind == PROCESS]
        self._arguments: dict[tuple[Function, int], list[Register]] = {}

    @cached_property
    def puts(self) -> list[End]:
        """All puts between processes."""
        return list(self._ends("put"))

    @cached_property
    def gets(self) -> list[End]:
        """All gets between processes."""
        return list(self._ends("get"))

    @cached_property
    def _near(self) -> set[Unit]:
        """The files that may use channels: those that make them, and those of the functions that processes run."""
        near = units_near(self.transfer, _ENDS)
        return near | {function.unit for function in self.runs} if near else near

    @cached_property
    def _imported(self) -> set[Unit]:
        """The files that those import: channels may be given to their functions."""
        program = self.facts.program
        found = (program.imported(module, unit) for unit in self._near if not unit.is_cpp for module, _ in unit.imports)
        return {unit for unit in found if unit is not None} - self._near

    def _ends(self, effect: str) -> Iterator[End]:
        seen: set[Site] = set()
        for call in self.transfer.sites(frozenset({effect}), among=self._near | self._imported):
            site = Site(call.function, call.instruction)
            if not call.row.get("local") and call.instruction[0] == op.INVOKE and site not in seen:
                seen.add(site)  # a queue of several types: one end all the same
                channel = self.of(call.function, call.instruction[3])
                held = self.transfer.values(call.function, call.instruction[3])
                if channel or call.function.unit in self._near or any(isinstance(value, LibraryObject) for value in held):
                    yield End(call, channel)

    # --- which channel

    def of(self, function: Function, register: int) -> Channel:
        """The channels that a register may hold: the calls that gave them, here or in callers."""
        found: set[Site] = set()
        seen, waiting = {(function, register)}, [(function, register)]
        while waiting:
            function, register = waiting.pop()
            one = function.definitions[register] if register >= 0 else None
            if one is None:
                continue
            if one[0] in (op.CALL, op.INVOKE):
                found.add(Site(function, one))
            fresh = set(self._behind(function, one)) - seen
            seen |= fresh
            waiting += fresh
        return frozenset(found)

    def _behind(self, function: Function, one: Instruction) -> Iterator[Register]:
        """The registers whose values an instruction may give on."""
        if one[0] in (op.COPY, op.ENTER, op.AWAIT, op.ITEM):
            yield function, one[3]
        elif one[0] == op.UNPACK:
            built = function.definitions[one[3]]
            is_built = built is not None and built[0] == op.BUILD and one[4] + 4 < len(built)
            yield function, built[4 + one[4]] if is_built and built is not None else one[3]
        elif one[0] == op.PARAM:
            yield from self._given(function, one[3])
        elif one[0] == op.PHI:
            yield from ((function, each) for each in one[3:])
        elif one[0] == op.LOAD:
            name, owner = function.unit.ir.constants[one[3]]
            home = function.unit.function(owner)
            stores = (each for each in home.by_opcode[op.STORE] if home.unit.ir.constants[each[2]] == (name, owner))
            yield from ((home, each[3]) for each in stores)
        elif one[0] == op.ATTR and function.owner is not None and function.is_parameter(one[3]):
            stored = function.owner.own_stores.get(function.text(one[4]), ())
            yield from ((store.function, store.value) for store in stored)

    def _given(self, function: Function, index: int) -> list[Register]:
        """What a parameter is given, by calls and by the starts of processes."""
        known = self._arguments.get((function, index))
        if known is None:
            known = self._arguments[function, index] = list(self._find_given(function, index))
        return known

    def _find_given(self, function: Function, index: int) -> Iterator[Register]:
        for spawn in self.spawns:
            given = spawn.given.get((function, index))
            if given is not None:
                yield given
        for caller, call in self.facts.call_places(function):
            register = operand_of(caller, call, function, index) if call[0] in (op.CALL, op.INVOKE) else None
            if register is not None and register >= 0:
                yield caller, register

    # --- who runs what

    @cached_property
    def ways(self) -> dict[Function, list[Way]]:
        """By function: the processes that run it, as their own or as a part of it, each with calls that lead to it."""
        found: dict[Function, list[Way]] = {}
        for spawn in self.spawns:
            for function, calls in Spawns(self.transfer).processes.reached(list(spawn.roots)):
                found.setdefault(function, []).append((spawn, tuple(Site(*call) for call in calls)))
        return found

    @cached_property
    def runs(self) -> dict[Function, list[Spawn]]:
        """The same without the calls."""
        return {function: [spawn for spawn, _ in ways] for function, ways in self.ways.items()}

    def is_given_away(self, channel: Channel) -> bool:
        """Whether a channel is an argument of anything out of view, or kept: another process or other code may use it."""
        return any(self._is_given_on(site.function, site.instruction[2], 0) for site in channel)

    def _is_given_on(self, function: Function, begin: int, depth: int) -> bool:
        waiting, seen = [begin], set[int]()
        while waiting:
            register = waiting.pop()
            if register in seen:
                continue
            seen.add(register)
            for use in function.uses.get(register, ()):
                is_argument = use[0] in (op.CALL, op.INVOKE) and any(each == register for _, each in argument_registers(function, use))
                if use[0] in _KEEPING or (is_argument and self._leaves(function, use, register, depth)):
                    return True
                if op.DEFINES[use[0]] and use[0] not in (op.CALL, op.INVOKE):
                    waiting.append(use[2])
        return False

    def _leaves(self, function: Function, call: Instruction, register: int, depth: int) -> bool:
        """Whether what a call is given leaves the functions in view."""
        edges = self.transfer.edges(function, call)
        if not edges or depth > _HIGHEST or not all(edge.is_followed and not edge.is_handed and not edge.is_guess for edge in edges):
            return True
        for edge in edges:
            for param in edge.callee.by_opcode[op.PARAM]:
                is_given = operand_of(function, call, edge.callee, param[3]) == register
                if is_given and self._is_given_on(edge.callee, param[2], depth + 1):
                    return True
        return False

    def replies_often(self, channel: Channel) -> bool:
        """Whether the process that fills a channel puts there several times for one value that it takes: no reply to one put."""
        for put in self.puts:
            if put.channel & channel and put.site.function in self.runs:
                function = put.site.function
                takes = [get for get in self.gets if get.site.function is function and not get.channel & channel]
                if takes and self._is_often(function, takes[0].site.instruction, channel):
                    return True
        return False

    def _is_often(self, function: Function, take: Instruction, channel: Channel) -> bool:
        graph, homes = function.control, function.blocks
        around = graph.innermost[homes[take]]
        count = 0
        for put in self.puts:
            if put.site.function is not function or not put.channel & channel:
                continue
            place = graph.innermost[homes[put.site.instruction]]
            if place == around:
                count += 1
            while place not in (NOBODY, around):
                place = graph.loops[place].parent
                if place == around:
                    return True
        return count > 1
