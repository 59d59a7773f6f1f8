"""Queues and pipes between processes: which end is which channel, and who puts and takes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject, Site
from streamlint.facts.files.program import Register, Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY
from streamlint.transfer.carried import Carriers
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.nearness import units_near
from streamlint.transfer.spawns import PROCESS, Spawn, Spawns
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import ahead, argument_registers, operand_of

_HIGHEST = 3
_ENDS = frozenset({"put", "get"})
_MAKING = frozenset(opcode for opcode, defines in enumerate(op.DEFINES) if defines) - {op.CALL, op.INVOKE}
_KEEPING = frozenset({op.BUILD, op.DICT, op.SET_ATTR, op.STORE, op.SET_NAME, op.RETURN, op.APPEND, op.SET_ITEM, op.YIELD})
_WITHIN = frozenset({op.ENTER, op.ITEM, op.UNPACK, op.NEXT})
"""What gives a queue that something else was made with: a scope, an end of a pipe, one of several."""
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
        self.carriers = Carriers(transfer, self._started)

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
        found: dict[Site, list[ModelledCall]] = {}
        is_put = effect == "put" and bool(self._near)  # few methods are called as those that put
        putting = {end.site.function.unit for end in self.puts} if effect == "get" else set()
        among = None if is_put else self._near | self._imported | putting
        for call in self.transfer.sites(frozenset({effect}), among=among):
            if not call.row.get("local") and call.instruction[0] == op.INVOKE:
                found.setdefault(Site(call.function, call.instruction), []).append(call)
        for (function, one), calls in found.items():
            channel = self.of(function, one[3])
            held = self.transfer.values(function, one[3])
            if channel or function.unit in self._near or any(isinstance(value, LibraryObject) for value in held):
                yield End(self._fitting(calls, channel), channel)

    def _fitting(self, calls: list[ModelledCall], channel: Channel) -> ModelledCall:
        """Of the methods that a call may mean, by the types of what it is called on, the one of a queue that was made."""
        made = [value for site in channel for value in self.transfer.values(site.function, site.instruction[2])]
        types = {value.type for value in made if isinstance(value, LibraryObject)}
        return next((call for call in calls if call.name.rpartition(".")[0] in types), calls[0])

    # --- which channel

    def of(self, function: Function, register: int) -> Channel:
        """The channels that a register may hold: the calls that gave them, here, in callers, or where a process was started."""
        found: set[Site] = set()
        seen, waiting = {(function, register)}, [(function, register)]
        while waiting:
            for source in self.carriers.sources(*waiting.pop()):
                one, holder = source.instruction, source.function
                if one is not None and one[0] in (op.CALL, op.INVOKE):
                    found.add(Site(holder, one))
                elif one is not None and one[0] in _WITHIN and (holder, one[3]) not in seen:
                    seen.add((holder, one[3]))
                    waiting.append((holder, one[3]))
        return frozenset(found)

    def _started(self, function: Function, index: int) -> Iterator[Register]:
        """What a parameter is given by the starts of processes."""
        yield from (spawn.given[function, index] for spawn in self.spawns if (function, index) in spawn.given)

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
        for register, use in ahead(function, begin, _MAKING):
            is_argument = use[0] in (op.CALL, op.INVOKE) and any(each == register for _, each in argument_registers(function, use))
            if use[0] in _KEEPING or (is_argument and self._leaves(function, use, register, depth)):
                return True
        return False

    def _leaves(self, function: Function, call: Instruction, register: int, depth: int) -> bool:
        """Whether what a call is given leaves the functions in view."""
        edges = self.transfer.edges(function, call)
        if not edges or depth > _HIGHEST or not all(edge.is_direct for edge in edges):
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
