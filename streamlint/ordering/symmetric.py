"""Which registers hold memory that ranks share: a rank's own, or a peer's; by the call that made it, wherever it was handed to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.functions import ClassInfo, Function
from streamlint.facts.objects import Instance, Site
from streamlint.facts.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY
from streamlint.transfer.actions import Viewed
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import operand_of

_DEEPEST = 6
_SAME = {op.COPY: 3, op.AWAIT: 3, op.CAST: 4, op.REBIND: 5}
OWN, OTHER = "own", "other"


class Source(NamedTuple):
    """A call that makes a value; ``is_part``: the value is a part of what it makes."""

    function: Function
    instruction: Instruction
    is_part: bool = False


class Shared(NamedTuple):
    """Memory of a buffer that ranks share: a peer's, or the rank's own; the whole of it, or a part."""

    buffer: Site
    is_peer: bool
    is_part: bool


class Symmetric:
    """The symmetric memory of a program."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
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
        found = self._sources(function, register, 0)
        if found is None or len({source[:2] for source in found}) != 1:
            return None
        is_part = any(source.is_part for source in found)
        call = self.call(Site(*found[0][:2]))
        part = call.text("part") if call is not None else ""
        if call is None or part not in ("memory", "peer"):
            return None
        if part == "memory":
            return self._at(Site(call.function, call.instruction), False, is_part)
        rank, offset = call.one("rank"), call.one("offset")
        whose = self._whose(call.function, rank, 0) if rank is not None else ""
        buffer = self._buffer(call)
        if not whose or buffer is None:
            return None
        return self._at(buffer, whose == OTHER, is_part or offset is not None)

    def _at(self, buffer: Site, is_peer: bool, is_part: bool) -> Shared | None:
        """Memory of a buffer; None where a loop makes several."""
        function, one = buffer
        is_alone = function.control.innermost[function.homes[one][0]] == NOBODY
        return Shared(buffer, is_peer, is_part) if is_alone else None

    def _buffer(self, peer: ModelledCall) -> Site | None:
        """The call that made the memory whose handle leads to a peer's."""
        handle = peer.receiver
        found = self._sources(peer.function, handle, 0) if handle is not None else None
        if not found or len({source[:2] for source in found}) != 1:
            return None
        made = self.call(Site(*found[0][:2]))
        if made is None or made.text("part") != "rendezvous":
            return None
        of = made.one("of")
        if of is None:
            return Site(made.function, made.instruction)
        memory = self._sources(made.function, of, 0)
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

    def _sources(self, function: Function, register: int, depth: int) -> list[Source] | None:
        """The calls that make what a register may hold; None where that is not all of it."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or depth > _DEEPEST:
            return None
        if one[0] in (op.CALL, op.INVOKE) and self.call(Site(function, one)) is not None:
            return [Source(function, one)]
        found: list[Source] = []
        inner = list(self._behind(function, one))
        for holder, each, is_part in inner:
            if each < 0 or _is_none(holder, each):
                continue
            sources = self._sources(holder, each, depth + (holder is not function or one[0] == op.PHI))
            if sources is None:
                return None
            found += [source._replace(is_part=source.is_part or is_part) for source in sources]
        return found or None

    def _behind(self, function: Function, one: Instruction) -> Iterator[tuple[Function, int, bool]]:
        """The registers that a value comes from, and whether it is a part of theirs."""
        stored = (
            [store for owner in self._owners(function, one[3]) for store in owner.own_stores.get(function.text(one[4]), ())]
            if one[0] == op.ATTR
            else []
        )
        viewed = [action.register for action in self.transfer.of(function, one) if isinstance(action, Viewed)]
        if one[0] in _SAME:
            yield function, one[_SAME[one[0]]], False
        elif one[0] == op.PHI:
            yield from ((function, each, False) for each in one[3:] if each != one[2])
        elif stored:
            yield from ((each.function, each.value, False) for each in stored)
        elif viewed:
            yield from ((function, each, not self._is_whole(function, one)) for each in viewed)
        elif one[0] == op.NAME:
            yield from ((holder, each, False) for holder, each in function.unit.globals.get(function.text(one[3]), ()))
        elif one[0] == op.PARAM:
            for caller, call in self.transfer.callers(function):
                given = operand_of(caller, call, function, one[3]) if call[0] in (op.CALL, op.INVOKE) else None
                yield caller, op.NONE if given is None else given, False
        elif one[0] in (op.CALL, op.INVOKE):
            yield from ((callee, end[2], False) for callee, end in self._ends(function, one))
        elif one[0] == op.UNPACK and (made := function.definitions[one[3]]) is not None:
            for holder, built in self._built(function, made):
                if one[4] + 4 < len(built):
                    yield holder, built[4 + one[4]], False

    def _is_whole(self, function: Function, one: Instruction) -> bool:
        """Whether a view is one of all of a buffer."""
        calls = self.transfer.modelled(function, one) if one[0] in (op.CALL, op.INVOKE) else ()
        return any(call.row.effect == "view" and call.row.get("part") == "whole" for call in calls)

    def _owners(self, function: Function, register: int) -> list[ClassInfo]:
        """The classes whose attributes a register leads to."""
        if function.owner is not None and function.is_parameter(register) and function.definitions[register][3] == 0:  # type: ignore[index]
            return [function.owner]
        return list(
            {
                id(value.definition): value.definition for value in self.transfer.values(function, register) if isinstance(value, Instance)
            }.values()
        )

    def _ends(self, function: Function, one: Instruction) -> Iterator[tuple[Function, Instruction]]:
        """The returns of the functions that a call runs."""
        for edge in self.transfer.edges(function, one):
            if edge.is_followed and not edge.is_handed:
                yield from ((edge.callee, end) for end in edge.callee.by_opcode[op.RETURN])

    def _built(self, function: Function, made: Instruction) -> Iterator[tuple[Function, Instruction]]:
        """The tuples that an instruction builds, or the functions that it calls give back."""
        if made[0] == op.BUILD:
            yield function, made
        elif made[0] in (op.CALL, op.INVOKE):
            for callee, end in self._ends(function, made):
                built = callee.definitions[end[2]] if end[2] >= 0 else None
                if built is not None and built[0] == op.BUILD:
                    yield callee, built

    # --- whose memory it is

    def _whose(self, function: Function, register: int, depth: int) -> str:
        """Whether a number of a rank is that of the process itself, or one of others too; "" where nobody knows."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or depth > _DEEPEST:
            return ""
        if one[0] in (op.CONST, op.BINARY, op.NEXT, op.UNPACK, op.ITEM):
            return OTHER
        if self._is_own_rank(function, one):
            return OWN
        said = {self._whose(holder, each, depth + 1) for holder, each, _ in self._behind(function, one)}
        return said.pop() if len(said) == 1 else ""

    def _is_own_rank(self, function: Function, one: Instruction) -> bool:
        if one[0] in (op.CALL, op.INVOKE):
            return any(call.row.effect == "none" and call.row.get("rank") for call in self.transfer.modelled(function, one))
        if one[0] != op.ATTR:
            return False
        types = {getattr(value, "type", "") for value in self.transfer.values(function, one[3])}
        rows = (self.transfer.facts.models.member(kind, function.text(one[4])) for kind in types if kind)
        return any(row is not None and row.get("rank") is True for row in rows)


def _is_none(function: Function, register: int) -> bool:
    one = function.definitions[register]
    return one is not None and one[0] == op.CONST and function.unit.ir.constants[one[3]] is None
