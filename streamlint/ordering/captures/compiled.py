"""Functions that a compiler takes apart and puts together anew: those that are given to it, and those that these call.

What is left as it is (`torch.compiler.disable`), what only runs where nothing is compiled, and what other backends make is none of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import unnegated
from streamlint.facts.code.objects import BoundMethod, FunctionObject, Instance, Object, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.models.vocabulary import Selector
from streamlint.ordering.paths.option_ways import OptionWays
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import constants_of, selectors

_EFFECTS = frozenset({"same", "none"})
_MOST = 400
"""Functions that are looked at."""
_MOST_TARGETS = 3
"""Functions that a call may enter: of more, none is shown to run."""


class Region(NamedTuple):
    """Why a function is compiled: where the compiler is given it or one that leads to it, and the calls from there, the outermost first."""

    at: Site
    calls: tuple[Site, ...]


def _compiles(row: Row) -> bool:
    return row.get("compiles") is not None


def _leaves(row: Row) -> bool:
    return row.get("uncompiled") is not None


def _asks(row: Row) -> bool:
    return bool(row.get("asks_compiling"))


class Compiled:
    """The compiled functions of a program."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.options = OptionWays(transfer)

    @cached_property
    def regions(self) -> dict[Function, Region]:
        """The compiled functions."""
        found: dict[Function, Region] = {}
        waiting: deque[Function] = deque()
        for call in self.transfer.sites(_EFFECTS, where=_compiles):
            for function in self._given(call, "compiles") if self._is_meant(call) else ():
                if function not in found and function not in self._left:
                    found[function] = Region(Site(call.function, call.instruction), ())
                    waiting.append(function)
        while waiting and len(found) < _MOST:
            caller = waiting.popleft()
            for call_site, callee in self._called(caller):
                if callee not in found and callee not in self._left:
                    region = found[caller]
                    found[callee] = region._replace(calls=(*region.calls, call_site))
                    waiting.append(callee)
        return found

    @cached_property
    def _left(self) -> frozenset[Function]:
        """The functions that compilers leave alone."""
        calls = self.transfer.sites(_EFFECTS, where=_leaves)
        return frozenset(function for call in calls for function in self._given(call, "uncompiled"))

    def _called(self, caller: Function) -> Iterator[tuple[Site, Function]]:
        """The functions of the program that a compiled one calls where it is compiled."""
        for opcode in (op.CALL, op.INVOKE):
            for one in caller.by_opcode[opcode]:
                edges = self.transfer.edges(caller, one)
                callees = {edge.callee for edge in edges if edge.is_direct and not edge.callee.is_cpp}
                if 0 < len(callees) <= _MOST_TARGETS and len(callees) == len(edges) and not self.is_excluded(caller, one):
                    yield from ((Site(caller, one), callee) for callee in dict.fromkeys(edge.callee for edge in edges))

    def is_excluded(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction runs only where a function has asked, and is not compiled."""
        asking = self._asking.get(function)
        if not asking:
            return False
        graph, block = function.control, function.homes[one][0]
        seen = set[int]()
        while block not in seen:
            seen.add(block)
            for branch, edge in graph.controlled_by[block]:
                end = function.code.blocks[branch][-1]
                if end[0] == op.BRANCH:
                    asked, is_turned = unnegated(function, end[2])
                    if asked in asking and (edge == end[3]) == is_turned:
                        return True
            block = graph.dominators[block] if graph.dominators[block] >= 0 else block
        return False

    @cached_property
    def _asking(self) -> dict[Function, set[int]]:
        """By function the registers that say whether it is compiled."""
        found: dict[Function, set[int]] = {}
        for call in self.transfer.sites(_EFFECTS, where=_asks):
            found.setdefault(call.function, set()).add(call.result)
        return found

    def _is_meant(self, call: ModelledCall) -> bool:
        """Whether the arguments of a call ask for the compiler that is meant."""
        for case in selectors(call.row, "compiled_if"):
            register = call.given(case)
            if register is not None and constants_of(self.facts, call.function, register) != {case.default}:
                return False
        return True

    def _given(self, call: ModelledCall, key: str) -> Iterator[Function]:
        """The functions that a call is given; those that its result is called with, where it is given none."""
        held = call.row.get(key)
        register = call.given(held) if isinstance(held, Selector) else None
        function = call.function
        registers = [register] if register is not None else []
        if register is None and op.DEFINES[call.instruction[0]]:
            uses = function.uses[call.result]
            registers = [use[5] for use in uses if use[0] == op.CALL and use[3] == call.result and len(use) == 6]
        at = Site(function, call.instruction)
        for each in registers:
            node = self.facts.values(function, each)
            for value in self.transfer.values(function, each):
                if not any(self.options.exclude(at, site) for site in node.trace(value)):
                    yield from self._functions(value)

    def _functions(self, value: Object) -> Iterator[Function]:
        """The function that an object is; a module's is the one that its call runs."""
        if isinstance(value, FunctionObject):
            yield value.function
        elif isinstance(value, BoundMethod):
            yield value.method.function
        elif isinstance(value, Instance) and any(map(self.facts.forwarded, self.facts.hierarchy.libraries(value.definition))):
            found = self.facts.hierarchy.lookup(value.definition, "forward")
            yield from found[1][-1:] if found is not None else ()
