"""Which stream is current at an instruction, and whether two streams or events may be the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import LibraryObject, Object, Site, Unknown, is_unknown
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Graph
from streamlint.models.vocabulary import Selector
from streamlint.ordering.paths.by_hand import ByHand
from streamlint.ordering.paths.deciding import deciding
from streamlint.transfer.actions import CURRENT, NAMED, NULL, UNKNOWN, Stream
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import operand_of
from streamlint.waits.questions import Key, alike

_GUARDED = {op.ENTER: 3, op.EXIT: 3, op.CONSTRUCT: 2, op.DESTROY: 2}
"""By opcode: where the register of a context manager or guard stands."""
_CHOOSING = frozenset({"scope", "set_stream"})
OF_THREAD = Stream(NULL)
"""The stream that is current where a thread begins, whatever is current where it is started (CUDA C++ Programming Guide, "Default
Stream"; PyTorch, "CUDA semantics": the current stream is a thread's own)."""
Stack = tuple[Stream, ...]


class Currents:
    """The current streams of functions, by the scopes that are open and the streams that were set."""

    def __init__(self, transfer: Transfer, guesses: bool = False) -> None:
        self.transfer = transfer
        self.guesses = guesses  # a context manager of which nothing is known may be a stream
        self._known: dict[Function, dict[Instruction, Stack]] = {}
        self._entered: dict[Function, frozenset[Key]] = {}
        self._guessed: set[tuple[Function, int]] = set()
        self._chosen: dict[Function, dict[Stream, int]] = {}  # by the stream of a choice, the block that chooses it
        self._choosing: dict[Function, frozenset[Key]] = {}

    def at(self, function: Function, one: Instruction) -> Stream | None:
        """The stream that is current where an instruction stands, for what it calls or starts; None where it is the one that was when the
        function was entered."""
        stack = self._stacks(function).get(one, ())
        return stack[-1] if stack else None

    def around_start(self, function: Function, one: Instruction) -> Stream | None:
        """The stream that is current for who starts a thread."""
        stack = [stream for stream in self._stacks(function).get(one, ()) if stream is not OF_THREAD]
        return stack[-1] if stack else None

    def of_library(self, function: Function, one: Instruction, library: str) -> Stream | None:
        """The stream that a library has as its current one; None where it is the one that was when the function was entered."""
        stack = self._stacks(function).get(one, ())
        return next((stream for stream in reversed(stack) if self._library(function, stream) in ("", library)), None)

    def is_guessed(self, function: Function, one: Instruction) -> bool:
        """Whether only the file's library says that what is entered around an instruction is a stream."""
        stream = self.at(function, one)
        return stream is not None and (function, stream.register) in self._guessed

    def ways(self, function: Function, one: Instruction) -> list[int]:
        """The blocks that a path has come through if the stream is current that was chosen for an instruction, where that is a choice."""
        stacks = self._stacks(function)
        chosen = self._chosen.get(function, {})
        return [chosen[stream] for stream in stacks.get(one, ()) if stream in chosen] if chosen else []

    def choosing(self, function: Function) -> frozenset[Key]:
        """The conditions of branches that decide which streams a function makes current."""
        known = self._choosing.get(function)
        if known is None:
            self._stacks(function)
            blocks = self._chosen.get(function, {}).values()
            known = self._choosing[function] = frozenset(key for block in blocks for key, _ in deciding(function, block))
        return known

    def entered(self, function: Function) -> frozenset[Key]:
        """What the streams of a function's scopes are computed from."""
        known = self._entered.get(function)
        if known is None:
            known = self._entered[function] = frozenset(alike(function, stream.register) for stream in self.streams(function))
        return known

    def streams(self, function: Function) -> set[Stream]:
        """The streams that a function makes current, but those without a register."""
        return {stream for stack in self._stacks(function).values() for stream in stack if stream.register >= 0}

    def yielded(self, function: Function, one: Instruction) -> Iterator[tuple[Function, Stream]]:
        """The generators of the program that a call makes, each with the stream that is current where it yields."""
        for edge in self.transfer.edges(function, one):
            is_scope = edge.is_followed and edge.callee is not function and edge.callee.by_opcode[op.ENTER]
            ends = edge.callee.by_opcode[op.YIELD] if is_scope else []
            stream = self.at(edge.callee, ends[0]) if len(ends) == 1 else None
            if stream is not None and stream.kind == NAMED and stream.register >= 0:
                yield edge.callee, stream
            if edge.is_followed and edge.callee is not function and not (function.is_cpp or ends):
                yield from ((edge.callee, made) for made in self._returned(edge.callee))

    def _returned(self, function: Function) -> list[Stream]:
        """The stream of the one scope that a function may give back, beside scopes of nothing."""
        ends = [function.definitions[end[2]] for end in function.by_opcode[op.RETURN] if end[2] >= 0]
        ways = [
            way
            for end in ends
            if end is not None
            for way in ([function.definitions[each] for each in end[3:]] if end[0] == op.PHI else [end])
        ]
        given = [
            call.stream_in(register)
            for way in ways
            if way is not None and way[0] in (op.CALL, op.INVOKE) and last_name(function, way) in self._names
            for call in self.transfer.modelled(function, way)
            if (register := _chosen_by(call, "scope")) is not None and _parameter(function, register) is None
        ]
        return given if len(given) == 1 and given[0].kind == NAMED else []

    def entered_by(self, function: Function, one: Instruction) -> Iterator[tuple[Function, Stream]]:
        """The methods of the program that enter an object as a context manager, each with the stream that is current behind it."""
        for edge in self.transfer.edges(function, one) if one[0] == op.ENTER and not function.is_cpp else ():
            ends = edge.callee.by_opcode[op.RETURN] if edge.is_followed and not edge.callee.by_opcode[op.YIELD] else []
            stream = self.at(edge.callee, ends[-1]) if ends and edge.callee is not function else None
            if stream is not None and stream is not OF_THREAD and stream.register >= 0:
                yield edge.callee, stream

    def _library(self, function: Function, stream: Stream) -> str:
        """The library whose current stream a scope sets: that of the stream's type, where it names none itself."""
        if stream.library:
            return stream.library
        types = (value.type for value in self.transfer.values(function, stream.register) if isinstance(value, LibraryObject))
        return next((kind.partition(".")[0] for kind in types), "")

    def _stacks(self, function: Function) -> dict[Instruction, Stack]:
        found = self._known.get(function)
        if found is None:
            found = self._known[function] = {}
            opened, chosen = self._changes(function)
            by_hand = ByHand(self.transfer, function)
            if opened or chosen or by_hand.entered:
                self._spread(function, opened, chosen, by_hand, found)
            for one in self.transfer.graph.joining.starts(function):
                found[one] = (*found.get(one, ()), OF_THREAD)
        return found

    def _changes(self, function: Function) -> tuple[dict[int, Stream], dict[Instruction, Stream]]:
        """By register of a context manager the stream that it makes current; by instruction the stream that it sets."""
        opened: dict[int, Stream] = {}
        chosen: dict[Instruction, Stream] = {}
        for one in (*function.by_opcode[op.INVOKE], *function.by_opcode[op.CALL]):
            for call in self.transfer.modelled(function, one) if last_name(function, one) in self._names else ():
                register = _chosen_by(call, *_CHOOSING)
                if register is not None and call.row.effect == "scope":
                    opened[one[2]] = self._taken(function, call, register)
                elif register is not None:
                    chosen[one] = call.stream_in(register)
        for one, stream in self._lasting.get(function, ()):  # what a called function has set
            chosen.setdefault(one, stream)
        opened.update(self._guards(function))
        for one in function.by_opcode[op.ENTER]:
            if one[3] not in opened and (scope := self._scope(function, one, opened)) is not None:
                opened[one[3]] = scope
        return opened, chosen

    def _taken(self, function: Function, call: ModelledCall, register: int) -> Stream:
        """The stream that a call makes current; of a choice between one and the current one, which changes nothing, the one."""
        stream = call.stream_in(register)
        ways = [(call.stream_in(way), block) for way, block in _ways_to(function, register)] if stream.kind == NAMED else []
        apart = [way for way in ways if way[0].kind not in (CURRENT, NULL)]
        if len(apart) != 1 or len(ways) == 1:
            return stream
        self._chosen.setdefault(function, {})[apart[0][0]] = apart[0][1]
        return apart[0][0]

    def _scope(self, function: Function, one: Instruction, opened: dict[int, Stream]) -> Stream | None:
        """The stream that a context manager makes current which no call in its place has made."""
        if (stream := self._called_scope(function, one)) is not None:
            return stream
        if (way := _way(function, one[3], opened)) is not None:
            self._chosen.setdefault(function, {})[opened[way[2]]] = function.blocks[way]
            return opened[way[2]]
        values = list(self.transfer.values(function, one[3]))
        kinds = {value.kind for value in values if isinstance(value, LibraryObject)}
        if kinds & {"stream", "scope"}:
            return Stream(NAMED if "stream" in kinds else UNKNOWN, one[3])
        if self.guesses and is_unknown(values):
            return Stream(UNKNOWN, one[3])
        if is_unknown(values) and _enters_streams(function, one, values):
            self._guessed.add((function, one[3]))
            return Stream(NAMED, one[3], "cupy")
        return None

    def _called_scope(self, function: Function, one: Instruction) -> Stream | None:
        """The stream of a scope that a call gives by another name, or that a function or a class of the program makes."""
        made = function.definitions[one[3]] if one[3] >= 0 else None
        for call in [*self.transfer.modelled(function, made)][::-1] if made is not None and made[0] == op.CALL else ():
            if (register := _chosen_by(call, "scope")) is not None:
                return call.stream_in(register)
        ways = list(self.yielded(function, made)) if made is not None and made[0] in (op.CALL, op.INVOKE) else []
        if made is not None and ways:
            given = self._handed(function, made, *ways[0]) if len(ways) == 1 else None
            return given or Stream(UNKNOWN, one[3])
        if any(self.entered_by(function, one)):
            return Stream(UNKNOWN, one[3])
        return self._given_scope(function, made) if made is not None else None

    def _handed(self, function: Function, made: Instruction, callee: Function, stream: Stream) -> Stream | None:
        """The stream that a call gives to a function which makes this parameter current."""
        index = _parameter(callee, stream.register)
        given = operand_of(function, made, callee, index) if index is not None else None
        return Stream(NAMED, given, stream.library) if given is not None and given >= 0 else None

    def _guards(self, function: Function) -> Iterator[tuple[int, Stream]]:
        """C++: the registers of guards, each until it is destroyed, and the streams that they make current."""
        for one in function.by_opcode[op.CONSTRUCT]:
            if str(function.unit.ir.constants[one[3]][0]).rpartition("::")[2] in self._names:
                for call in self.transfer.modelled(function, one):
                    if (register := _chosen_by(call, "scope")) is not None:
                        yield one[2], call.stream_in(register)

    def _given_scope(self, function: Function, made: Instruction) -> Stream | None:
        """The stream that a function is given and makes a scope of: ``def stream(self, lane): return torch.cuda.stream(lane)``."""
        for edge in self.transfer.edges(function, made) if made[0] in (op.CALL, op.INVOKE) and not function.is_cpp else ():
            callee = edge.callee
            ends = callee.by_opcode[op.RETURN] if edge.is_direct else []
            scope = callee.definitions[ends[0][2]] if len(ends) == 1 and ends[0][2] >= 0 else None
            for call in self.transfer.modelled(callee, scope) if scope is not None and scope[0] in (op.CALL, op.INVOKE) else ():
                register = _chosen_by(call, "scope")
                given = self._handed(function, made, callee, call.stream_in(register)) if register is not None else None
                if given is not None:
                    return given
        return None

    @cached_property
    def _lasting(self) -> dict[Function, list[tuple[Instruction, Stream]]]:
        """The calls of functions that set a stream which they are given, and no other, on every path."""
        found: dict[Function, list[tuple[Instruction, Stream]]] = {}
        calls = list(self.transfer.sites({"set_stream"}))
        count = Counter(call.function for call in calls)
        for call in calls:
            function, register = call.function, _chosen_by(call, "set_stream")
            index = _parameter(function, register)
            if register is None or index is None or count[function] > 1 or not self._is_always(function, call.instruction):
                continue
            for caller, place in self.transfer.facts.call_places(function):
                given = operand_of(caller, place, function, index) if place[0] in (op.CALL, op.INVOKE) else None
                edges = self.transfer.edges(caller, place) if given is not None and given >= 0 else ()
                if given is not None and any(edge.callee is function and edge.is_direct for edge in edges):
                    found.setdefault(caller, []).append((place, call.stream_in(register)._replace(register=given)))
        return found

    def _is_always(self, function: Function, one: Instruction) -> bool:
        return function.control.post_dominates(function.blocks[one], 0)

    @cached_property
    def _names(self) -> frozenset[str]:
        """The names of functions that make a stream current."""
        return self.transfer.names(_CHOOSING)

    def _spread(
        self,
        function: Function,
        opened: dict[int, Stream],
        chosen: dict[Instruction, Stream],
        by_hand: ByHand,
        found: dict[Instruction, Stack],
    ) -> None:
        graph = Graph.of(function.code)
        begin: dict[int, Stack] = {0: ()}
        for block in graph.order:
            stack = begin.get(block, ())
            for one in function.code.blocks[block]:
                found[one] = stack
                guard = one[_GUARDED[one[0]]] if one[0] in _GUARDED else -1
                if one[0] in (op.ENTER, op.CONSTRUCT) and guard in opened:
                    stack = (*stack, opened[guard])
                elif one[0] in (op.EXIT, op.DESTROY) and guard in opened and stack:
                    stack = stack[:-1]
                    found[one] = stack  # what a generator does after it has yielded is done behind its scope
                elif one in by_hand.entered:
                    stack = (*stack, by_hand.entered[one])
                elif left := by_hand.left(one):
                    stack = stack[:-left]
                elif one in chosen:
                    stack = (*stack[:-1], chosen[one])
                    self._chosen.setdefault(function, {})[chosen[one]] = block
            for after in graph.successors[block]:
                begin.setdefault(after, stack)


def _chosen_by(call: ModelledCall, *effects: str) -> int | None:
    """The register of the stream that a call of one of some effects makes current."""
    selector = call.row.get("stream")
    return call.given(selector) if call.row.effect in effects and isinstance(selector, Selector) else None


def _ways_to(function: Function, register: int) -> Iterator[tuple[int, int]]:
    """What a register holds by the ways that meet where it is made, each with the block that it comes from; not by the rounds of a loop."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or one[0] != op.PHI:
        return
    home = function.blocks[one]
    if home not in function.loop_heads:
        yield from zip(one[3:], function.phi_order[home], strict=True)


def _parameter(function: Function, register: int | None) -> int | None:
    """The number of the parameter that a register is."""
    one = function.definitions[register] if register is not None and register >= 0 else None
    return int(one[3]) if one is not None and one[0] == op.PARAM else None


def _way(function: Function, register: int, opened: Container[int]) -> Instruction | None:
    """The one of the ways to a context manager that makes a stream current: ``stream(lane) if beside else nullcontext()``."""
    one = function.definitions[register] if register >= 0 else None
    made = [function.definitions[each] for each in one[3:] if each in opened] if one is not None and one[0] == op.PHI else []
    return made[0] if len(made) == 1 else None


def _enters_streams(function: Function, one: Instruction, values: Iterable[Object]) -> bool:
    """Whether a context manager is a stream, as CuPy's are: one that unknown callers give, by itself. What a call gives may be any."""
    made = function.definitions[one[3]]
    given = all(isinstance(value, Unknown) and value.reason == "caller" for value in values)
    if made is None or made[0] in (op.CALL, op.INVOKE, op.ITEM) or not given:
        return False
    imported = {module.partition(".")[0] for module, _ in function.unit.imports}
    return "cupy" in imported and "torch" not in imported


def sites_of(values: list[Object]) -> tuple[frozenset[Site], bool]:
    """Where streams or events were made, and whether that is all that a value may be."""
    made = frozenset(value.site for value in values if isinstance(value, LibraryObject) and value.site is not None)
    is_all = bool(made) and not any(isinstance(value, Unknown) or getattr(value, "site", None) is None for value in values)
    return made, is_all
