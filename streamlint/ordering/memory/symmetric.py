"""Which registers hold memory that ranks share: a rank's own, or a peer's; by the call that made it, wherever it was passed to."""

from __future__ import annotations

from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import is_none
from streamlint.facts.code.objects import Site
from streamlint.facts.files.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.actions import Viewed
from streamlint.transfer.carried import Carried, Carriers
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer

OWN, OTHER = "own", "other"


class Source(NamedTuple):
    """A call that makes a value; ``is_part``: the value is a part of what it makes, ``is_address``: or a number that tells where it is."""

    function: Function
    instruction: Instruction
    is_part: bool = False
    is_address: bool = False


class Shared(NamedTuple):
    """Memory of a buffer that ranks share: a peer's, or the rank's own; the whole of it, or a part; itself, or its address."""

    buffer: Site
    is_peer: bool
    is_part: bool
    is_address: bool = False


class Symmetric:
    """The symmetric memory of a program."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.carriers = transfer.one_of(Carriers, transfer)
        self._known: dict[tuple[Function, int], Shared | None] = {}

    def units(self) -> list[Unit]:
        """The files that make such memory, or lead to a peer's."""
        return list({call.function.unit.number: call.function.unit for call in self.transfer.sites({"symmetric"})}.values())

    def of(self, function: Function, register: int) -> Shared | None:
        """The shared memory in a register; None where it holds none, several, or what nobody knows."""
        key = (function, register)
        if key not in self._known:
            self._known[key] = None
            self._known[key] = self._find(function, register)
        return self._known[key]

    def _find(self, function: Function, register: int) -> Shared | None:
        found = self._sources(function, register)
        if not found or len({source[:2] for source in found}) != 1:
            return None
        is_part, is_address = any(source.is_part for source in found), all(source.is_address for source in found)
        call = self.call(Site(*found[0][:2]))
        part = call.text("part") if call is not None else ""
        if call is None or part not in ("memory", "peer"):
            return None
        if part == "memory":
            return _at(Shared(Site(call.function, call.instruction), False, is_part, is_address))
        rank, offset = call.one("rank"), call.one("offset")
        whose = self._whose(call.function, rank) if rank is not None else ""
        buffer = self._buffer(call)
        if not whose or buffer is None:
            return None
        return _at(Shared(buffer, whose == OTHER, is_part or offset is not None, is_address))

    def _buffer(self, peer: ModelledCall) -> Site | None:
        """The call that made the memory whose handle leads to a peer's."""
        handle = peer.receiver
        found = self._sources(peer.function, handle) if handle is not None else None
        if not found or len({source[:2] for source in found}) != 1:
            return None
        made = self.call(Site(*found[0][:2]))
        if made is None or made.text("part") != "rendezvous":
            return None
        of = made.one("of")
        if of is None:
            return Site(made.function, made.instruction)
        memory = self._sources(made.function, of)
        if not memory or len({source[:2] for source in memory}) != 1:
            return None
        call = self.call(Site(*memory[0][:2]))
        return Site(call.function, call.instruction) if call is not None and call.text("part") == "memory" else None

    def call(self, site: Site) -> ModelledCall | None:
        """The call of a library for symmetric memory at a place."""
        if site.instruction[0] not in (op.CALL, op.INVOKE):
            return None
        return next((call for call in self.transfer.modelled(*site) if call.row.effect == "symmetric"), None)

    # --- where values come from

    def _sources(self, function: Function, register: int) -> list[Source] | None:
        """The calls that make what a register may hold; None where that is not all of it."""
        found: list[Source] = []
        begin = Carried(function, register), False, False
        seen, waiting = {begin}, [begin]
        while waiting:
            way, is_part, is_address = waiting.pop()
            for each in self.carriers.sources(way.function, way.register, way.context):
                one, holder = each.instruction, each.function
                if one is None or is_none(holder, each.register):
                    continue
                if self.call(Site(holder, one)) is not None:
                    found.append(Source(holder, one, is_part, is_address))
                    continue
                viewed = [action.register for action in self.transfer.of(holder, one) if isinstance(action, Viewed)]
                if not viewed:
                    return None
                is_less = is_part or not self._is_whole(holder, one)
                is_number = is_address or self._gives_address(holder, one)
                fresh = {(each.at(base), is_less, is_number) for base in viewed} - seen
                seen |= fresh
                waiting += fresh
        return found or None

    def _is_whole(self, function: Function, one: Instruction) -> bool:
        """Whether a view is one of all of a buffer."""
        calls = self.transfer.modelled(function, one) if one[0] in (op.CALL, op.INVOKE) else ()
        return any(call.row.effect == "view" and call.row.get("part") == "whole" for call in calls)

    def _gives_address(self, function: Function, one: Instruction) -> bool:
        """Whether a call gives the address of memory, as a number."""
        calls = self.transfer.modelled(function, one) if one[0] in (op.CALL, op.INVOKE) and not function.is_cpp else ()
        return any(call.row.effect == "view" and call.row.get("type") == "pointer" for call in calls)

    # --- whose memory it is

    def _whose(self, function: Function, register: int) -> str:
        """Whether a number of a rank is that of the process itself, or one of others too; "" where nobody knows."""
        said = {self._whose_alone(each) for each in self.carriers.sources(function, register)}
        return said.pop() if len(said) == 1 else ""

    def _whose_alone(self, source: Carried) -> str:
        one = source.instruction
        if one is None:
            return ""
        if one[0] in (op.CONST, op.BINARY, op.NEXT, op.UNPACK, op.ITEM):
            return OTHER
        return OWN if self._is_own_rank(source.function, one) else ""

    def _is_own_rank(self, function: Function, one: Instruction) -> bool:
        if one[0] in (op.CALL, op.INVOKE):
            return any(call.row.effect == "none" and call.row.get("rank") for call in self.transfer.modelled(function, one))
        if one[0] != op.ATTR:
            return False
        types = {getattr(value, "type", "") for value in self.transfer.values(function, one[3])}
        rows = (self.transfer.facts.models.member(kind, function.text(one[4])) for kind in types if kind)
        return any(row is not None and row.get("rank") is True for row in rows)


def _at(shared: Shared) -> Shared | None:
    """Memory of a buffer; None where a loop makes several."""
    function, one = shared.buffer
    return None if function.is_repeated(one) else shared
