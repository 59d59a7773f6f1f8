"""Whether a condition comes out the same in each round: what it is computed from does not change with the rounds.

Options, constants, questions of kind and what is defined outside of a loop are steady; what a round is given, computes or counts is not.
Parameters of a function that a round calls are what the call hands over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import DICT, LIST, arguments_of
from streamlint.facts.code.objects import Instance
from streamlint.facts.files.autograd import given_for, is_context, offset_of
from streamlint.facts.graph.aliases import SELF, path_of
from streamlint.facts.repetition.hot import HotRegions, Region
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY

KINDS = frozenset({"isinstance", "hasattr", "callable", "issubclass", "type"})
"""Builtins that ask what a value is."""
_PURE = frozenset("zip enumerate range reversed len getattr int bool float str abs min max all any round tuple list sorted vars".split())
_FROM_PARTS = frozenset({op.UNARY, op.COPY, op.CAST, op.DEREF, op.UNPACK, op.FORMAT, op.MATCH, op.SLICE})
_FIXED = frozenset({op.CONST, op.IMPORT, op.FUNCTION, op.CLASS, op.UNDEF, op.MORE})
_DEEPEST = 16
Seen = dict[tuple[Region, int], bool]


class Steadiness:
    """Answers whether registers hold the same in each round of a region."""

    def __init__(self, hot: HotRegions) -> None:
        self.hot = hot
        self._attributes: dict[str, list[tuple[Function, Instruction]]] = defaultdict(list)
        self._filled: dict[str, list[tuple[Function, int]]] = defaultdict(list)
        self._names: dict[tuple[int, object], list[tuple[Function, Instruction]]] = defaultdict(list)
        self._made: dict[tuple[Region, Instruction, Function], Region] = {}
        for function, one in self._hot_instructions():
            if one[0] == op.SET_ATTR and function.code.name != "__init__":
                self._attributes[function.text(one[3])].append((function, one))
            elif (held := _filled_by(function, one)) is not None:
                self._filled[function.text(held[4])].append((function, held[3]))
            elif one[0] == op.SET_NAME:
                self._names[function.unit.number, function.text(one[2])].append((function, one))
            elif one[0] == op.STORE:
                self._names[function.unit.number, function.unit.ir.constants[one[2]]].append((function, one))

    def _hot_instructions(self) -> Iterator[tuple[Function, Instruction]]:
        for function, regions in self.hot.regions.items():
            for block in frozenset().union(*(region.blocks for region in regions)):
                yield from ((function, one) for one in function.code.blocks[block])

    def of(self, region: Region, register: int) -> bool:
        """Whether a register holds the same in each round."""
        return self._ask(region, register, {}, _DEEPEST)

    def _ask(self, region: Region, register: int, seen: Seen, depth: int) -> bool:
        one = region.function.definitions[register] if register >= 0 else None
        if one is None or depth == 0:
            return False
        if region.loop is not None and self._home(region.function, one) not in region.loop.body:
            return True
        key = (region, register)
        if key not in seen:
            seen[key] = False
            seen[key] = self._decide(region, one, seen, depth - 1)
        return seen[key]

    def _home(self, function: Function, one: Instruction) -> int:
        return self.hot.body(function).home[one]

    def _all(self, region: Region, registers: list[int], seen: Seen, depth: int) -> bool:
        return all(self._ask(region, register, seen, depth) for register in registers)

    def _decide(self, region: Region, one: Instruction, seen: Seen, depth: int) -> bool:
        handler = _BY_OPCODE.get(one[0])
        if handler is not None:
            return handler(self, region, one, seen, depth)
        return one[0] in _FIXED or (one[0] in _FROM_PARTS and self._all(region, op.reads(one), seen, depth))

    def _binary(self, region: Region, one: Instruction, seen: Seen, depth: int) -> bool:
        """A remainder or a mask counts rounds."""
        operator = region.function.text(one[3]).rstrip("=")
        return operator not in ("%", "&") and self._all(region, op.reads(one), seen, depth)

    def _display(self, region: Region, one: Instruction, seen: Seen, depth: int) -> bool:
        parts = op.reads(one)
        return bool(parts) and not self.is_refilled(region, one[2]) and self._all(region, parts, seen, depth)

    def _item(self, region: Region, one: Instruction, seen: Seen, depth: int) -> bool:
        return not self.is_refilled(region, one[3]) and self._all(region, op.reads(one), seen, depth)

    def _name(self, region: Region, one: Instruction, seen: Seen, depth: int) -> bool:
        return all(value is not None and self._ask(region, value, seen, depth) for value in self.set_to(region, one))

    def _is_part(self, region: Region, one: Instruction, seen: Seen, depth: int) -> bool:
        """Whether a loop in the round goes through the same parts in each, and has no rounds of its own."""
        body, made = self.hot.body(region.function), region.function.definitions[one[3]]
        inside = [index for index, loop in enumerate(body.graph.loops) if body.home[one] in loop.body and loop is not region.loop]
        if made is None or made[0] != op.ITER or not inside or not self.hot.progress(region.function).keys().isdisjoint(inside):
            return False
        return self._ask(region, made[3], seen, depth)

    # --- names

    def set_to(self, region: Region, one: Instruction) -> tuple[int | None, ...]:
        """The value that a round has given a global name before it is read, in the same call; None where that is unknown, and
        nothing where no round sets the name."""
        function = region.function
        stores = self._names.get((function.unit.number, function.text(one[3])), [])
        block = function.code.blocks[function.blocks[one]]
        before = [store for home, store in stores if home is function and store in block and block.index(store) < block.index(one)]
        if before:
            return (max(before, key=block.index)[3],)
        if len(stores) == 1 and stores[0][0] is function and function.runs_before(stores[0][1], one):
            return (stores[0][1][3],)
        return (None,) if stores else ()

    def _captured(self, region: Region, one: Instruction, seen: Seen, depth: int) -> bool:
        """Whether a variable of a function around is set by no round, or once, by a call of that function in which it is steady."""
        stores = self._names.get((region.function.unit.number, region.function.unit.ir.constants[one[3]]), [])
        if len(stores) != 1:
            return not stores
        home, store = stores[0]
        around = next((each for each in region.chain()[-2::-1] if each.function is home), None)
        if around is not None:
            return self._ask(around, store[3], seen, depth)
        return home.has_receiver and home.is_parameter(store[3], 0)

    def _parameter(self, region: Region, one: Instruction, seen: Seen, depth: int) -> bool:
        function, index = region.function, one[3]
        parameter = function.code.parameters[index]
        is_receiver = index == 0 and (function.has_receiver or is_context(function, one))
        if is_receiver or region.caller is None or region.call is None:
            return is_receiver or bool(parameter.default)
        if region.call[0] == op.NEXT:
            return True  # a generator keeps its arguments
        if region.call[0] not in (op.CALL, op.INVOKE) or parameter.kind in ("star", "double"):
            return False
        caller, call = region.caller.function, region.call
        if offset_of(caller, call, function) is None:
            return False
        if (given := given_for(caller, call, function, index)) is not None:
            return self._ask(region.caller, given, seen, depth)
        arguments = list(arguments_of(caller, call))
        spread = [register for register, kind in arguments if kind == DICT]  # else its default
        return all(kind != LIST for _, kind in arguments) and self._all(region.caller, spread, seen, depth)

    def _attribute(self, region: Region, one: Instruction, seen: Seen, depth: int) -> bool:
        function, name = region.function, region.function.text(one[4])
        holder = function.definitions[one[3]]
        if name in function.known("steady") or (holder is not None and is_context(function, holder) and name != "saved_tensors"):
            return True
        callees = self._entered(function, one)
        if callees:
            return all(self._gives_steady(region, one, callee, seen, depth) for callee in callees)
        stores = self._stores(function, one)
        if stores:
            value = self._stored_before(region, one, stores)
            return value is not None and self._ask(region, value, seen, depth)
        return self._ask(region, one[3], seen, depth)

    def is_changed(self, function: Function, one: Instruction) -> bool:
        """Whether a round may set the attribute that an instruction reads."""
        return bool(self._stores(function, one))

    def is_filled(self, function: Function, one: Instruction) -> bool:
        """Whether a round may put elements into what the attribute holds that an instruction reads."""
        return any(self._may_be_same(function, one[3], *each) for each in self._filled.get(function.text(one[4]), ()))

    def _stores(self, function: Function, one: Instruction) -> list[tuple[Function, Instruction]]:
        held = self._attributes.get(function.text(one[4]), ())
        return [(other, store) for other, store in held if self._may_be_same(function, one[3], other, store[2])]

    def _may_be_same(self, function: Function, base: int, other: Function, receiver: int) -> bool:
        """Whether an attribute of one receiver may be one of another: not of objects whose classes are not related, nor of a context of
        autograd, which keeps what its own function is given."""
        stored = other.definitions[receiver]
        if stored is not None and is_context(other, stored):
            return False
        ones, twos = self._owners(function, base), self._owners(other, receiver)
        order = self.hot.facts.hierarchy.order
        return not ones or not twos or any(one in order(two) or two in order(one) for one in ones for two in twos)

    def _owners(self, function: Function, register: int) -> list[ClassInfo]:
        """The classes of what a register may hold; none where it may hold anything."""
        if path_of(function, register) == SELF:
            owner = function.method.owner if function.method is not None else None
            return [owner] if owner is not None else []
        values = list(self.hot.facts.values(function, register).values)
        known = [value.definition for value in values if isinstance(value, Instance)]
        return known if len(known) == len(values) else []

    def _stored_before(self, region: Region, one: Instruction, stores: list[tuple[Function, Instruction]]) -> int | None:
        """The value that the only store of an attribute has put there, earlier in the same call."""
        if len(stores) != 1 or stores[0][0] is not region.function:
            return None
        function, store = stores[0]
        return store[4] if function.runs_before(store, one) and path_of(function, store[2]) == path_of(function, one[3]) else None

    def is_refilled(self, region: Region, register: int) -> bool:
        """Whether a container gets or loses elements in a round."""
        function = region.function
        home, path = self.hot.body(function).home, path_of(function, register)
        changes = [
            (one, one[3])
            for one in function.by_opcode[op.INVOKE]
            if function.text(one[4]) in function.known("puts", "extends", "puts-if-absent", "shrinks")
        ]
        changes += [(one, one[2]) for opcode in (op.SET_ITEM, op.DEL_ITEM, op.APPEND, op.PUT) for one in function.by_opcode[opcode]]
        return any(home[one] in region.blocks and (held == register or (path and path_of(function, held) == path)) for one, held in changes)

    # --- operators

    def _compare(self, region: Region, one: Instruction, seen: Seen, depth: int) -> bool:
        function = region.function
        operator = function.text(one[3])
        left, right = (function.definitions[register] for register in one[4:6])
        if operator in ("is", "is not"):
            return (right is not None and right[0] == op.CONST) or self._all(region, list(one[4:6]), seen, depth)
        if operator in ("in", "not in"):
            if left is not None and left[0] == op.CONST:
                return True
            if left is not None and left[0] in (op.NEXT, op.UNPACK):
                return False  # which parts somebody has put there is unknown
            return not self.is_refilled(region, one[5]) and self._all(region, list(one[4:6]), seen, depth)
        if operator in ("==", "!=") and isinstance(function.constant(one[5]), str) and left is not None and left[0] == op.PARAM:
            return region.caller is None or self._ask(region, one[4], seen, depth)
        return self._all(region, list(one[4:6]), seen, depth)

    def _phi(self, region: Region, one: Instruction, seen: Seen, depth: int) -> bool:
        body = self.hot.body(region.function)
        block = body.home[one]
        if any(loop.header == block for loop in body.graph.loops):
            return False
        branches = self._deciding(region.function, block)
        return self._all(region, [*one[3:], *branches], seen, depth)

    def _deciding(self, function: Function, block: int) -> list[int]:
        """The conditions that decide by which of its edges a block is reached."""
        graph = self.hot.body(function).graph
        top = graph.dominators[block]
        found: dict[int, int] = {}
        waiting = list(graph.predecessors[block])
        for one in waiting:
            if len(graph.successors[one]) > 1 and top != NOBODY:
                found[one] = function.code.blocks[one][-1][2]
        while waiting:
            for branch, _ in graph.controlled_by[waiting.pop()]:
                if top != NOBODY and branch not in found and graph.dominates(top, branch):
                    found[branch] = function.code.blocks[branch][-1][2]
                    waiting.append(branch)
        return list(found.values())

    # --- calls

    def _entered(self, function: Function, one: Instruction) -> list[Function]:
        return [edge.callee for edge in self.hot.graph.calls(function).edges if edge.instruction == one]

    def _call(self, region: Region, one: Instruction, seen: Seen, depth: int) -> bool:
        function = region.function
        is_method = one[0] == op.INVOKE
        last = function.text(one[4]) if is_method else function.dotted(one[3]).rpartition(".")[2]
        if (not is_method and last in KINDS) or last in function.known("asks-kind"):
            return True
        callees = self._entered(function, one)
        if callees:
            return all(self._gives_steady(region, one, callee, seen, depth) for callee in callees)
        if not is_method and (last in _PURE or last in function.known("steady-function")):
            return self._arguments(region, list(one[5:]), seen, depth)
        if is_method and last in function.known("steady-method"):
            return self._item(region, one, seen, depth)
        return len(one) == (6 if is_method else 5) and not self._changes(function, one) and self._ask(region, one[3], seen, depth)

    def _arguments(self, region: Region, given: list[int], seen: Seen, depth: int) -> bool:
        return not any(self.is_refilled(region, register) for register in given) and self._all(region, given, seen, depth)

    def _changes(self, function: Function, one: Instruction) -> bool:
        """Whether a call asks a clock or draws a number."""
        names = [call.name for call in self.hot.graph.calls(function).libraries if call.instruction == one]
        return any(name.partition(".")[0] in function.known("changing") or ".random." in name for name in names)

    def _gives_steady(self, region: Region, call: Instruction, callee: Function, seen: Seen, depth: int) -> bool:
        """Whether a function of the program returns the same in each round, by the same way."""
        if callee.code.flags & {"generator", "async"}:
            return False
        key = (region, call, callee)
        inner = self._made.get(key)
        if inner is None:
            blocks = frozenset(range(len(callee.code.blocks)))
            inner = self._made[key] = Region(callee, blocks, "", None, None, region, call, (), {})
        graph = self.hot.body(callee).graph
        ends = [block for block in graph.order if callee.code.blocks[block][-1][0] == op.RETURN]
        asked = {register: None for block in ends for register in op.reads(callee.code.blocks[block][-1])}
        found, waiting = set(ends), list(ends)
        while waiting:
            for branch, _ in graph.controlled_by[waiting.pop()]:
                asked[callee.code.blocks[branch][-1][2]] = None
                waiting += [branch] if branch not in found else []
                found.add(branch)
        return bool(ends) and self._all(inner, list(asked), seen, depth)


def _filled_by(function: Function, one: Instruction) -> Instruction | None:
    """The instruction that reads the attribute whose container an instruction changes."""
    is_call = function.invokes(one, "puts", "extends", "puts-if-absent", "shrinks")
    if not is_call and one[0] not in (op.SET_ITEM, op.DEL_ITEM):
        return None
    held = function.definitions[one[3] if is_call else one[2]]
    return held if held is not None and held[0] == op.ATTR else None


def steadiness_of(hot: HotRegions) -> Steadiness:
    """The answers for the regions of a program, which whoever asks shares."""
    return hot.facts.shared.one_of(Steadiness, hot)


_BY_OPCODE: dict[int, Callable[[Steadiness, Region, Instruction, Seen, int], bool]] = {
    op.PARAM: Steadiness._parameter,
    op.NAME: Steadiness._name,
    op.LOAD: Steadiness._captured,
    op.ATTR: Steadiness._attribute,
    op.COMPARE: Steadiness._compare,
    op.BINARY: Steadiness._binary,
    op.INPLACE: Steadiness._binary,
    op.PHI: Steadiness._phi,
    op.NEXT: Steadiness._is_part,
    op.CALL: Steadiness._call,
    op.INVOKE: Steadiness._call,
    op.BUILD: Steadiness._display,
    op.DICT: Steadiness._display,
    op.ITEM: Steadiness._item,
}
"""What decides whether an instruction gives the same in each round."""
