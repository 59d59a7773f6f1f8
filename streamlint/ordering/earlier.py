"""What happened before an operation, the nearest first: whether the host has waited for the device already."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamlint.facts.functions import Function
from streamlint.facts.objects import LibraryObject
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.actions import Copied
from streamlint.transfer.modelled import operands_of
from streamlint.transfer.origins import Origins

Judge = Callable[[Instruction], "bool | None"]
"""Whether an instruction is what is looked for; None where the search goes on behind it."""
_WORK = frozenset({"launch", "memset", "collective", "callback"})
_COPIES = frozenset({"copy", "transfer", "module_to"})
_MOST = 200


class Earlier:
    """Looks back from operations in their functions."""

    def __init__(self, origins: Origins) -> None:
        self.origins = origins
        self.transfer = origins.transfer
        self.guards = origins.guards

    def all_paths(self, function: Function, one: Instruction, judge: Judge) -> bool:
        """Whether the nearest of the instructions that count is what is looked for, on all paths to an instruction."""
        graph = self.guards.graph(function)
        home = self.guards.home(function, one)
        blocks = function.code.blocks
        waiting = [(home, blocks[home].index(one))]
        seen, found = set[int](), False
        while waiting and len(seen) < _MOST:
            block, end = waiting.pop()
            verdict = next((each for each in map(judge, reversed(blocks[block][:end])) if each is not None), None)
            if verdict is False:
                return False
            if verdict:
                found = True
                continue
            if graph.innermost[block] >= 0 and graph.loops[graph.innermost[block]].header == block:
                return False
            before = graph.predecessors[block]
            if not before:
                return False
            waiting += [(each, len(blocks[each])) for each in before if each not in seen]
            seen.update(before)
        return found

    def is_same_loop(self, function: Function, one: Instruction, other: Instruction) -> bool:
        """Whether two instructions stand in the same innermost loop."""
        innermost = self.guards.graph(function).innermost
        return innermost[self.guards.home(function, one)] == innermost[self.guards.home(function, other)]

    def is_idle(self, function: Function, one: Instruction, source: int, is_condition: bool) -> bool:
        """Whether the host has waited for the current stream before an upload, and nothing may have been put there since.

        A call out of view may have put work there, unless it fills what is uploaded. ``is_condition``: the upload itself is told under the
        condition that its device is CUDA, so that a fetch of what may be on one counts.
        """
        called = filled = False
        mine = set(self.transfer.shared(function, source))

        def judge(other: Instruction) -> bool | None:
            nonlocal called, filled
            for action in self.transfer.of(function, other):
                if isinstance(action, Copied) and action.direction == "d2h" and action.asynchronous is False:
                    is_cuda = action.call.row is not None and action.call.row.library != "torch"
                    is_known = is_condition or is_cuda or self._is_on_device(function, action.source)
                    return is_known and self.is_same_loop(function, one, other) and (filled or not called)
            if self._is_work(function, other):
                return False
            if self._is_out_of_view(function, other):
                called = True
                given = {each for register in operands_of(function, other) for each in self._behind(function, register)}
                filled = filled or not mine.isdisjoint(given)
            return None

        return self.all_paths(function, one, judge)

    def _behind(self, function: Function, register: int) -> Iterator[int]:
        """A register and, of an attribute, its object."""
        yield from self.transfer.shared(function, register)
        one = function.definitions[register] if register >= 0 else None
        if one is not None and one[0] == op.ATTR:
            yield one[3]

    def is_work(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction puts work on a device, or may, out of view."""
        return self._is_work(function, one) or self._is_out_of_view(function, one)

    def _is_on_device(self, function: Function, register: int) -> bool:
        return any(origin.space == "device" for origin in self.origins.of(function, register))

    def _is_work(self, function: Function, one: Instruction) -> bool:
        if one[0] == op.LAUNCH:
            return True
        if one[0] in (op.BINARY, op.INPLACE, op.UNARY):
            return any(self._is_on_device(function, register) for register in op.reads(one))
        if one[0] not in (op.CALL, op.INVOKE):
            return False
        rows = [call.row for call in self.transfer.modelled(function, one)]
        if any(row.effect in _WORK for row in rows):
            return True
        if any(row.effect in _COPIES for row in rows):
            return False
        callee = self.transfer.values(function, one[3]) if one[0] == op.CALL else ()
        if any(isinstance(value, LibraryObject) and value.kind == "module" for value in callee):
            return True
        if rows and all(row.effect != "compute" for row in rows):
            return False
        return any(self._is_on_device(function, register) for register in operands_of(function, one))

    def _is_out_of_view(self, function: Function, one: Instruction) -> bool:
        if one[0] not in (op.CALL, op.INVOKE) or list(self.transfer.modelled(function, one)):
            return False
        if any(edge.is_followed for edge in self.transfer.edges(function, one)):
            return True
        return any(
            call.row is None and not call.name.startswith("builtins") for call in self.transfer.libraries(function, one)
        ) or not list(self.transfer.libraries(function, one))
