"""What a function does to devices, by itself or through what it calls: the first operation, and the calls that lead to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from streamlint.facts.call_graph import Edge
from streamlint.facts.functions import Function
from streamlint.facts.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer import device
from streamlint.transfer.device import DeviceOperation, DeviceOperations
from streamlint.transfer.transfer import CALLING, Transfer

_OPERATING = (*CALLING, op.BINARY, op.INPLACE, op.UNARY, op.COMPARE, op.FORMAT, op.BRANCH, op.SET_ITEM)
_ENDING = (op.DELETE, op.DESTROY)
Wanted = Callable[[Function, DeviceOperation], bool]


class Reached(NamedTuple):
    """An operation, and the calls that lead to it, the outermost first."""

    operation: DeviceOperation
    site: Site
    calls: tuple[Site, ...] = ()


class Reach:
    """The operations that functions lead to. ``wanted`` says which count."""

    def __init__(self, transfer: Transfer, operations: DeviceOperations, wanted: Wanted) -> None:
        self.transfer = transfer
        self.operations = operations
        self.wanted = wanted
        self._first: dict[Function, Reached | None] = {}
        self._edges: dict[Function, dict[Instruction, list[Edge]]] = {}

    def own(self, function: Function) -> Iterator[Reached]:
        """The operations of a function's own instructions."""
        for one in function.code.instructions():
            if one[0] in _OPERATING:
                for operation in self.operations.of(function, one):
                    if self.wanted(function, operation):
                        yield Reached(operation, Site(function, one))
                        break

    def edges(self, function: Function) -> dict[Instruction, list[Edge]]:
        """The functions that the instructions of a function run as a part of it, in the order of the instructions."""
        found = self._edges.get(function)
        if found is None:
            found = self._edges[function] = {}
            ends = [one for opcode in _ENDING for one in function.by_opcode[opcode]]
            more = self.transfer.graph.all_calls(function).edges if ends else ()
            for one in function.code.instructions():
                edges = self.transfer.edges(function, one) if one[0] in CALLING else ()
                if one[0] in _ENDING:
                    edges = tuple(edge for edge in more if edge.instruction == one)
                followed = [edge for edge in edges if edge.is_followed and not edge.is_handed]
                if followed:
                    found[one] = followed
        return found

    def first(self, function: Function) -> Reached | None:
        """The first operation that a function leads to."""
        if function not in self._first:
            self._first[function] = None  # in a cycle, the others tell
            self._first[function] = next(self.all(function), None)
        return self._first[function]

    def all(self, function: Function) -> Iterator[Reached]:
        """The operations of a function, and for each call the first one behind it."""
        own = {reached.site.instruction: reached for reached in self.own(function)}
        edges = self.edges(function)
        for one in function.code.instructions():
            if one in own:
                yield own[one]
                continue
            for edge in edges.get(one, ()):
                behind = self.first(edge.callee)
                if behind is not None:
                    yield behind._replace(calls=(Site(function, one), *behind.calls))
                    break


def is_cuda(operations: DeviceOperations) -> Wanted:
    """Whether an operation calls CUDA for sure."""

    def wanted(function: Function, operation: DeviceOperation) -> bool:
        if operation.kind in (device.READ, device.COMPUTE) or (operation.kind == device.COPY and operation.needs is not None):
            return any(operations.on_device(function, register) for register in operation.needs or () if register >= 0)
        if operation.kind == device.COPY:
            return operation.direction in ("h2d", "d2h", "d2d") or not operation.library.startswith("torch")
        return operation.kind not in (device.CALLBACK, device.PIN)

    return wanted
