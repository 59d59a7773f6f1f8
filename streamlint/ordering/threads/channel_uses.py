"""SL012: what processes may not do with tensors of queues: forward them, end behind a put, take what they have put themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.threads.sent_tensors import sent
from streamlint.transfer.actions import Lost
from streamlint.transfer.carried_calls import Key
from streamlint.transfer.channels import Channel, Channels, End
from streamlint.transfer.lifting import lifted
from streamlint.transfer.spawns import Spawn
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.uses import Uses

_DEEPEST = 3


class Forwarded(NamedTuple):
    """A put of what another process has sent, where that one sends it, and where the process that forwards was started, if it was."""

    put: Site
    source: Site
    started: Site | None


class ChannelUses:
    """Finds misuses of channels between processes."""

    def __init__(self, transfer: Transfer, channels: Channels, uses: Uses) -> None:
        self.transfer = transfer
        self.channels = channels
        self.uses = uses

    # --- forwarding

    def forwarded(self, put: End) -> Iterator[Forwarded]:
        """The source of what a put forwards."""
        function = put.site.function
        own = self.channels.runs.get(function, ())
        for register in put.call.all("of"):
            taken = self._taken(function, register)
            if taken is None:
                continue
            received, keys = taken
            for source in self.channels.puts:
                others = self.channels.runs.get(source.site.function, ())
                if source.channel & received and set(map(_process, others)) != set(map(_process, own)) and self._sends(source, keys):
                    yield Forwarded(put.site, source.site, own[0].start if own else None)
                    return

    def _taken(self, function: Function, register: int) -> tuple[Channel, tuple[Key, ...]] | None:
        """The channel that a value was taken from, and the keys that lead to it from what was taken."""
        for root in self.channels.carriers.roots(function, register) if register >= 0 else ():
            one = root.instruction
            if one is not None and one[0] == op.INVOKE and any(c.row.effect == "get" for c in self.transfer.modelled(root.function, one)):
                return self.channels.of(root.function, one[3]), root.keys
        return None

    def _sends(self, source: End, keys: tuple[Key, ...]) -> bool:
        """Whether a put sends memory of a device, behind some keys of what it sends."""
        function = source.site.function
        if not keys:
            return bool(sent(function, source, self.uses))
        parts = (part for register in source.call.all("of") for part in self.channels.carriers.parts(function, register, keys))
        return any(self.uses.on_device(part.function, part.register) for part in parts)

    # --- processes that end

    def outlived(self, put: End) -> Spawn | None:
        """The process that ends behind a put, without word of the receiver."""
        for spawn, calls in self.channels.ways.get(put.site.function, ()):
            if spawn.pool is None:
                return spawn if self._is_last(put, spawn, calls) else None
        return None

    def _is_last(self, put: End, spawn: Spawn, calls: tuple[Site, ...]) -> bool:
        for caller, register in spawn.given.values():
            channel = self.channels.of(caller, register)
            if channel and not channel & put.channel and self._is_channel(channel):
                return False  # another channel may tell it when to end
        for function, one in ((site.function, site.instruction) for site in (*calls, put.site)):
            if self._is_in_endless_loop(function, one) or any(self._may_answer(function, each) for each in _behind(function, one)):
                return False
        return True

    def _may_answer(self, function: Function, one: Instruction, depth: int = 0) -> bool:
        """Whether an instruction may wait for the receiver, by itself or in what it calls."""
        if any(isinstance(action, Lost) for action in self.transfer.of(function, one)) or self._is_end(function, one):
            return True
        edges = self.transfer.edges(function, one) if depth < _DEEPEST else ()
        return any(
            edge.is_followed and any(self._may_answer(edge.callee, each, depth + 1) for each in edge.callee.code.instructions())
            for edge in edges
        )

    def _is_channel(self, channel: frozenset[Site]) -> bool:
        return any(end.channel & channel for end in (*self.channels.puts, *self.channels.gets))

    def _is_end(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction takes from a channel, or puts memory of a device."""
        return any(get.site == Site(function, one) for get in self.channels.gets) or any(
            put.site == Site(function, one) and sent(function, put, self.uses) for put in self.channels.puts
        )

    def _is_in_endless_loop(self, function: Function, one: Instruction) -> bool:
        """Whether a loop around an instruction goes over no elements: what ends it is not known."""
        around = function.control.around(function.blocks[one])
        return any(all(each[0] != op.MORE for each in function.code.blocks[loop.header]) for loop in around)

    # --- one process at both ends

    def taken_back(self, put: End) -> Site | None:
        """The get by which a process takes what it has put itself."""
        if not put.channel or put.site.function in self.channels.runs or self.channels.is_given_away(put.channel):
            return None
        places = list(lifted(self.transfer, put.site))
        for get in self.channels.gets:
            if get.channel & put.channel and get.site.function not in self.channels.runs:
                for taken in lifted(self.transfer, get.site):
                    if any(place.function is taken.function and _comes_behind(place, taken) for place in places):
                        return get.site
        return None


def _comes_behind(first: Site, second: Site) -> bool:
    """Whether an instruction may follow another one in its function."""
    return any(one == second.instruction for one in _behind(first.function, first.instruction))


def _process(spawn: Spawn) -> tuple[Site, Site | None]:
    """Where a process is started, and where it was made: one loop starts several."""
    return spawn.start, Site(spawn.made.function, spawn.made.instruction) if spawn.made is not None else None


def _behind(function: Function, one: Instruction) -> Iterator[Instruction]:
    """The instructions that may follow another one in its function."""
    graph, (home, index) = function.control, function.homes[one]
    yield from function.code.blocks[home][index + 1 :]
    for block in graph.reach(graph.successors[home]):
        yield from (each for each in function.code.blocks[block] if each != one)
