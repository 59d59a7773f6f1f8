"""Whether each round of a hot region reaches a wait: what holds it back is read from the control flow, condition by condition.

A branch that a wait hangs on lets it through if it comes out the same in each round, if it is the test of an accumulation, if it asks
that there is data, or if only what is no number goes the other way. Rounds that end the loop do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import unnegated
from streamlint.facts.code.objects import BoundMethod, Constant, FunctionObject, Memory
from streamlint.facts.repetition.effects import OF_ROUNDS
from streamlint.facts.repetition.hot import HotRegions, Region
from streamlint.facts.repetition.loops import Body
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Graph, Loop
from streamlint.waits.filled import Asked, Edge, ends, fills, is_entry, is_of_nothing
from streamlint.waits.operands import gives_too_few
from streamlint.waits.options import is_left_out, is_off
from streamlint.waits.questions import Key, alike, compares, conditions, counted_in, is_set_aside, says_odd
from streamlint.waits.shapes import compares_shapes
from streamlint.waits.steady import steadiness_of
from streamlint.waits.wait import Wait

_DEEPEST = 6
Said = tuple[Key, object, bool]
"""A value, a constant, and whether they are equal; of a condition that compares nothing, whether it is true."""


def is_executed(hot: HotRegions, wait: Wait, region: Region, all_loops: bool) -> bool:
    """Whether each round of the loop or framework step behind a region comes by a wait in it."""
    found = hot.facts.shared.one_of(_Conditions, hot)
    chain = region.chain()
    calls = [one.call for one in chain[1:]]
    if any(call is None for call in calls) or any(_raises(hot, one) for one in chain[1:]):
        return False
    targets = [*(call for call in calls if call is not None), wait.instruction]
    without = (found.trains_without(one, target) for one, target in zip(chain, targets, strict=True))
    if next((each for each in without if each is not None), False):
        return False
    return all(found.lets_pass(one, target, all_loops) for one, target in zip(chain, targets, strict=True))


def is_chosen(hot: HotRegions, wait: Wait, region: Region) -> bool:
    """Whether a choice of the program, such as an option, decides whether the rounds of a region come by a wait."""
    found = hot.facts.shared.one_of(_Conditions, hot)
    chain = region.chain()
    targets = [*(one.call for one in chain[1:] if one.call is not None), wait.instruction]
    return any(found.is_chosen(one, target) for one, target in zip(chain, targets, strict=True))


def _raises(hot: HotRegions, region: Region) -> bool:
    """Whether the call that leads to a region leaves out an argument that its function needs: of several classes another one is meant."""
    if region.caller is None or region.call is None or region.call[0] not in (op.CALL, op.INVOKE) or region.function.is_cpp:
        return False
    called = hot.facts.callees(region.caller.function, region.call)
    functions = (each.method if isinstance(each, BoundMethod) else each for each in called)
    is_called = any(isinstance(each, FunctionObject) and each.function is region.function for each in functions)
    return is_called and gives_too_few(region.caller.function, region.call, region.function)


class _Conditions:
    """The conditions of the regions of a program."""

    def __init__(self, hot: HotRegions) -> None:
        self.hot = hot
        self.steadiness = steadiness_of(hot)
        self._graphs: dict[tuple[Region, frozenset[int]], list[list[Edge]]] = {}
        self._makes_progress: dict[Function, frozenset[Instruction]] = {}

    def lets_pass(self, region: Region, target: Instruction, all_loops: bool) -> bool:
        """Whether each round of a region, or each call of it, comes to an instruction."""
        block = self.hot.body(region.function).home[target]
        if block not in region.blocks:
            return False
        if _contradict(self._said(region, block, False)):
            return False
        for asked, accumulates in self._on_way(region, block, target):
            if self._is_set_aside(region, asked.register, asked.holds, _DEEPEST):
                return False
            if self._is_left_for_other(asked) if accumulates else not self._passes(asked, all_loops):
                return False
        return True

    def is_chosen(self, region: Region, target: Instruction) -> bool:
        """Whether a condition on the way to an instruction may leave it out in a round that makes progress."""
        return any(
            not accumulates and says_odd(region.function, asked.register) is None and not self._holds_anyway(asked)
            for asked, accumulates in self._on_way(region, self.hot.body(region.function).home[target], target)
        )

    def _on_way(self, region: Region, block: int, target: Instruction) -> Iterator[tuple[Asked, bool]]:
        """The conditions that decide whether a round comes to a block, and whether it makes its progress behind them: what stands before
        such a condition decides that as well."""
        hangs_on = self._control(region, block)
        seen: set[Edge] = set()
        waiting = [block]
        while waiting:
            for edge in hangs_on[waiting.pop()]:
                if edge in seen:
                    continue
                seen.add(edge)
                asked = self._asked(region, edge, target)
                accumulates = asked is not None and self._accumulates(asked)
                if asked is not None:
                    yield asked, accumulates
                if not accumulates:
                    waiting.append(edge.block)

    # --- control flow

    def _control(self, region: Region, target: int) -> list[list[Edge]]:
        """For each block the edges that decide whether a round runs it. A round that leaves a loop around the target is none."""
        graph = self.hot.body(region.function).graph
        around = [index for index, loop in enumerate(graph.loops) if target in loop.body]
        if region.loop is not None:
            around = [index for index in around if graph.loops[index].body < region.loop.body]
        key = (region, frozenset(around))
        found = self._graphs.get(key)
        if found is None:
            control = Graph(self._rounds(region, [graph.loops[index] for index in around])).controlled_by
            found = [[Edge(block - 1, after - 1) for block, after in edges if block > 0] for edges in control[1:]]
            self._graphs[key] = found
        return found

    def _rounds(self, region: Region, around: list[Loop]) -> list[list[int]]:
        """The successors of blocks in one round. Blocks count from 1: 0 leads to those that it begins with, the last is its end."""
        graph = self.hot.body(region.function).graph
        skipped = {(one.block, one.after) for one in region.rare}
        head = region.loop.header if region.loop is not None else NOBODY
        end = len(graph) + 1
        successors: list[list[int]] = [[] for _ in range(end + 1)]
        successors[0] = [block + 1 for block in self._starts(region)]
        for block in region.blocks:
            for after in graph.successors[block]:
                leaves = any(block in loop.body and after not in loop.body and block != loop.header for loop in around)
                if (block, after) in skipped or leaves:
                    continue
                if after == head:
                    successors[block + 1].append(end)
                elif after in region.blocks:
                    successors[block + 1].append(after + 1)
        return successors

    def trains_without(self, region: Region, target: Instruction) -> bool | None:
        """Whether what makes progress in a region runs only where an instruction does not, and the reverse; None where that is left to
        the call that the instruction is."""
        home = self.hot.body(region.function).home
        progress = {one for one in self._progressing(region.function) if home[one] in region.blocks}
        mine = self._said(region, home[target], True)
        if any(not _contradict([*mine, *self._said(region, home[one], True)]) for one in progress - {target}) or not progress:
            return False
        return None if target in progress else True

    def _said(self, region: Region, block: int, is_steady: bool) -> list[Said]:
        """What holds wherever a block runs; ``is_steady``: of values alone that are the same in each round."""
        function = region.function
        found: list[Said] = []
        for asked, holds in conditions(function, block):
            one = function.definitions[asked]
            if one is not None and one[0] in (op.MORE, op.EXIT):
                continue
            compared = compares(function, asked)
            is_equal = compared is not None and compared[0] in ("==", "!=")
            sign, register, constant = compared if compared is not None and is_equal else ("", asked, True)
            key = alike(function, register)
            if (len(key) == 1 and not is_steady) or self.steadiness.of(region, register):
                found.append(((is_equal, *key), constant, (sign != "!=") == holds))
        return found

    def _starts(self, region: Region) -> list[int]:
        if region.loop is not None:
            return [region.loop.header]
        if 0 in region.blocks:
            return [0]
        return [loop.header for loop in self.hot.body(region.function).graph.loops if loop.header in region.blocks]

    def _asked(self, region: Region, edge: Edge, target: Instruction) -> Asked | None:
        """The condition of an edge; None for one more element of a loop, or the end of a ``with``."""
        function = region.function
        end = function.code.blocks[edge.block][-1]
        if end[0] != op.BRANCH:
            return None
        register, turned = unnegated(function, end[2])
        one = function.definitions[register]
        if one is not None and one[0] in (op.MORE, op.EXIT):
            return None
        other = end[4] if edge.after == end[3] else end[3]
        skips = edge.after == end[4] and ends(region.function, self.hot.body(region.function).graph, other)
        return Asked(region, edge, register, (edge.after == end[3]) != turned, skips, target)

    # --- what is set aside

    def _is_set_aside(self, region: Region, register: int, holds: bool, depth: int) -> bool:
        """Whether a condition comes out so only where nothing trains, something is no number, or the first time."""
        function = region.function
        register, turned = unnegated(function, register)
        holds = holds != turned
        one = function.definitions[register]
        if one is None or depth == 0:
            return False
        if says_odd(function, register) is holds or is_set_aside(function, one, holds):
            return True
        if one[0] == op.PHI:
            return self._by_flow(region, one, lambda value: bool(value) == holds, holds, depth)
        asked = compares(function, register)
        if asked is not None and asked[0] in ("==", "!="):
            left = function.definitions[asked[1]]
            if left is not None and left[0] == op.PHI:
                wanted = (asked[0] == "==") == holds
                return self._by_flow(region, left, lambda value: (value == asked[2]) == wanted, None, depth)
        return False

    def _by_flow(self, region: Region, phi: Instruction, fits: Callable[[object], bool], holds: bool | None, depth: int) -> bool:
        """Whether all ways on which a variable gets a value that fits are set aside."""
        function = region.function
        block = self.hot.body(function).home[phi]
        constants = function.unit.ir.constants
        if region.loop is not None and block not in region.loop.body:
            return False
        for before, register in zip(function.phi_order[block], phi[3:], strict=True):
            one = function.definitions[register] if register >= 0 else None
            if one is not None and one[0] == op.CONST:
                if not fits(constants[one[3]]) or before not in region.blocks or self._runs_aside(region, before, depth - 1):
                    continue
                return False
            if before not in region.blocks or self._contradicts(function, before, block, register, holds):
                continue
            if holds is None or not (self._is_set_aside(region, register, holds, depth - 1) or self._runs_aside(region, before, depth - 1)):
                return False
        return True

    def _contradicts(self, function: Function, before: int, block: int, register: int, holds: bool | None) -> bool:
        """Whether the branch that leads here has found that a value is not what is asked for: ``a and b`` is no true ``a``."""
        end = function.code.blocks[before][-1]
        return end[0] == op.BRANCH and end[2] == register and end[3] != end[4] and holds is (block == end[4])

    def _runs_aside(self, region: Region, block: int, depth: int) -> bool:
        """Whether a block runs only where a condition is set aside."""
        if depth <= 0:
            return False
        for edge in self._control(region, block)[block]:
            asked = self._asked(region, edge, region.function.code.blocks[block][-1])
            if asked is not None and self._is_set_aside(region, asked.register, asked.holds, depth - 1):
                return True
        return False

    # --- what lets pass

    def _accumulates(self, asked: Asked) -> bool:
        """Whether the round makes its progress behind an edge: what else stands there runs once a step. A call that steps goes over the
        groups of its optimizer in loops of its own: who leaves it before them makes no step."""
        body = self.hot.body(asked.region.function)
        behind = [one for one in self._progressing(body.function) if body.graph.dominates(asked.edge.after, body.home[one])]
        is_step = asked.region.loop is None and asked.region.caller is not None
        return any(body.is_in_round(one, asked.edge.block) or (is_step and not self._goes_backward(body, one)) for one in behind)

    def _is_left_for_other(self, asked: Asked) -> bool:
        """Whether a round makes its progress on the other way of a branch, too, and an option that is off leads to this one."""
        function, (block, after) = asked.region.function, asked.edge
        if not is_off(self.hot.facts, function, asked.register, asked.holds):
            return False
        others = [each for each in function.code.successors(block) if each != after]
        return any(self._accumulates(asked._replace(edge=Edge(block, each))) for each in others)

    def _goes_backward(self, body: Body, one: Instruction) -> bool:
        """Whether a loop around an instruction goes backward: it has rounds of its own."""
        loops = [loop.body for loop in body.graph.loops if body.home[one] in loop.body]
        return any(
            step.does != "optimizer" and any(body.home[step.instruction] in each for each in loops)
            for step in self.hot.steps(body.function, {})
        )

    def _progress(self, function: Function) -> frozenset[int]:
        """The blocks of a function that make progress."""
        return frozenset(self.hot.body(function).home[one] for one in self._progressing(function))

    def _progressing(self, function: Function) -> frozenset[Instruction]:
        """The calls of a function that make progress."""
        found = self._makes_progress.get(function)
        if found is None:
            calls = {one.instruction for one in self.hot.rounds.of(function) if one.row.does in OF_ROUNDS}
            for edge in self.hot.graph.calls(function).edges:
                if edge.is_followed and edge.callee in self.hot.reaching and NOBODY in self.hot.progress(edge.callee):
                    calls.add(edge.instruction)
            found = self._makes_progress[function] = frozenset(calls)
        return found

    def _passes(self, asked: Asked, all_loops: bool) -> bool:
        """Whether a condition comes out the same in each round, or holds where there is anything to do."""
        function, body = asked.region.function, self.hot.body(asked.region.function)
        one = function.definitions[asked.register]
        if one is None or is_off(self.hot.facts, function, asked.register, asked.holds):
            return False
        if all_loops and asked.region.chain()[0].row is not None and is_left_out(function, asked):
            return False
        if says_odd(function, asked.register) is not None:
            return True
        is_given = one[0] == op.PARAM and asked.region.caller is None  # what a framework hands over
        if is_given or self.steadiness.of(asked.region, asked.register):
            return True
        if self._holds_anyway(asked):
            return True
        if compares_shapes(self.hot, asked.region, asked.register):
            return True
        return all_loops and (fills(function, asked) or is_entry(body, asked) or self._is_of_given(asked) or self._is_past(asked))

    def _holds_anyway(self, asked: Asked) -> bool:
        """Whether a condition holds in each round that makes progress, or that has anything to do."""
        body = self.hot.body(asked.region.function)
        return self._guards_progress(asked) or is_of_nothing(body, asked) or self._counts(asked) or self._is_there(asked)

    def _is_past(self, asked: Asked) -> bool:
        """Whether a condition holds in all rounds but the first ones: ``step > 0``."""
        body, compared = self.hot.body(asked.region.function), compares(asked.region.function, asked.register)
        if compared is None or not asked.holds or compared[0] not in (">", ">=", "!=") or compared[2] not in (0, 1):
            return False
        return body.conditions.is_counter(compared[1])

    def _is_of_given(self, asked: Asked) -> bool:
        """Whether a condition asks how many parts a framework hands over, or whether one is there: each call comes with as many."""
        function = asked.region.function
        compared = compares(function, asked.register)
        if compared is None or asked.region.chain()[0].row is None or asked.region.caller is not None:
            return False
        held = counted_in(function, compared[1])
        one = function.definitions[held if held is not None else compared[1]]
        if held is None and compared[2] is not None:
            return False
        while one is not None and one[0] == op.ITEM and function.constant(one[4]) is not None:
            one = function.definitions[one[3]]
        return one is not None and one[0] == op.PARAM

    def _guards_progress(self, asked: Asked) -> bool:
        """Whether another test of the same condition guards what makes progress."""
        function = asked.region.function
        graph = self.hot.body(function).graph
        progress = self._progress(function)
        if not progress or asked.region.loop is None:
            return False
        key = alike(function, asked.register)
        for block in asked.region.blocks:
            end = function.code.blocks[block][-1]
            if end[0] != op.BRANCH or block == asked.edge.block:
                continue
            register, turned = unnegated(function, end[2])
            after = end[3] if asked.holds != turned else end[4]
            if alike(function, register) == key and any(graph.dominates(after, one) for one in progress):
                return True
        return False

    def _is_there(self, asked: Asked) -> bool:
        """Whether a condition holds for what is not None, and no code of the program gives None: a tensor comes."""
        function = asked.region.function
        compared = compares(function, asked.register)
        if compared is None or compared[2] is not None or compared[0] not in ("is", "is not") or (compared[0] == "is not") != asked.holds:
            return False
        values = self.hot.facts.values(function, compared[1]).values
        is_none = any(isinstance(value, Constant) and value.value is None for value in values)
        return not is_none and any(isinstance(value, Memory) for value in values)

    def _counts(self, asked: Asked) -> bool:
        """Whether a condition is that of a loop that counts."""
        function = asked.region.function
        body = self.hot.body(function)
        one = function.definitions[asked.register]
        if one is None or one[0] != op.COMPARE or not any(loop.header == asked.edge.block for loop in body.graph.loops):
            return False
        return any(body.conditions.is_counter(register) for register in one[4:6])


def _contradict(said: list[Said]) -> bool:
    """Whether one value equals two constants, or equals one and does not."""
    equal: dict[Key, object] = {}
    for key, constant, holds in said:
        if holds and equal.setdefault(key, constant) != constant:
            return True
    return any(not holds and key in equal and equal[key] == constant for key, constant, holds in said)
