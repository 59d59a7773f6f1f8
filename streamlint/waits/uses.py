"""What the number that the host fetched is used for: logs, sums, text and containers could do with it later, decisions could not.

The value is followed forward from the register that the wait defines: over the uses of registers, into containers and attributes and out of
them where the round reads them, into functions of the program and back to their callers. It is needed where a condition, a comparison, a
size or an index takes it, or somebody who goes on by it. What runs in few of the rounds needs it in few of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from streamlint.facts.code.objects import Container, Group, Memory, Site
from streamlint.facts.repetition.hot import HotRegions, Region
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import StepRow
from streamlint.waits.arms import chosen
from streamlint.waits.calls import Calls
from streamlint.waits.checking import only_checks
from streamlint.waits.constants import constants_of
from streamlint.waits.forms import has_device_form, is_fraction, is_known_before, joins_tests, one_of_each, scales_gradient, stops_loop
from streamlint.waits.holders import ANY_TEXT, MOST_KEYS, Frame, Holders, Path, Places, State, fits, key_of
from streamlint.waits.masks import changes_selected_alone
from streamlint.waits.regions import serves, trains
from streamlint.waits.wait import READ, Wait

if TYPE_CHECKING:
    from streamlint.facts.code.functions import Function

MOST_STATES = 2000
"""Places of a value that are looked at; behind that it counts as needed."""
_ARITHMETIC = frozenset({"+", "-", "*", "/", "**"})


class Uses:
    """Answers whether a round could do without the value that a wait fetches."""

    def __init__(self, hot: HotRegions) -> None:
        self.hot = hot
        self.places = Places(hot)
        self.takers: dict[Wait, Site] = {}
        """Of waits that are not avoidable: what needs the value first, where that is seen."""

    def is_avoidable(self, wait: Wait, region: Region, all_loops: bool) -> bool:
        """Whether nothing in the rounds of a region needs the value. A round that does not train may read what was there before its loop,
        and may make the test that ends it less often."""
        first = region.chain()[0]
        is_forward = isinstance(first.row, StepRow) and first.row.forward
        if scales_gradient(wait):
            return True
        if is_forward and wait.name.rpartition(".")[2] not in ("item", "float", "int"):
            return False
        may_move = not is_forward and all_loops and not trains(region)
        if self._has_other_form(wait, is_forward) or (may_move and self._can_move(wait, region)):
            return True
        return self._is_unneeded(wait, region, is_forward)

    def _has_other_form(self, wait: Wait, is_forward: bool) -> bool:
        body = self.hot.body(wait.function)
        is_joined = one_of_each(body, wait) if is_forward else joins_tests(wait.function, wait)
        return is_joined or has_device_form(body, wait, is_forward) or changes_selected_alone(body, wait)

    def _is_unneeded(self, wait: Wait, region: Region, is_forward: bool) -> bool:
        """Whether no use of the value needs its number."""
        flow = Flow(self.places, region, is_forward, wait.what == READ and not wait.name.endswith("item"))
        if wait.instruction[0] == op.SET_ITEM:  # the tensor that was given the number holds it then
            return flow.end_well((wait.instruction[2],), real=False)
        if not op.DEFINES[wait.instruction[0]]:
            is_test = wait.instruction[0] == op.BRANCH and not is_forward
            registers = chosen(self.hot.facts, self.hot.body(wait.function), wait.instruction) if is_test else None
            if registers is None:
                self.takers[wait] = Site(wait.function, wait.instruction)
                return False
            return flow.end_well(registers, real=False) or self._taken(wait, flow)
        real = is_forward and (wait.name.endswith("float") or is_fraction(wait.function, wait.value, region))
        return flow.end_well((wait.instruction[2],), real) or self._taken(wait, flow)

    def _taken(self, wait: Wait, flow: Flow) -> bool:
        """Keep what needs the value. False, since it is needed."""
        if flow.taker is not None:
            self.takers[wait] = flow.taker
        return False

    def _can_move(self, wait: Wait, region: Region) -> bool:
        """Whether a round that does not train could read the value before its loop, or test it less often."""
        is_check = wait.instruction[0] == op.BRANCH and only_checks(self.hot.body(wait.function), wait.instruction)
        return is_check or is_known_before(self.hot, wait, region) or stops_loop(self.hot, wait, region)


class Flow:
    """Follows one value. ``is_forward``: a module's forward works with it, often as a size: only what is seen to be harmless is so."""

    def __init__(self, places: Places, region: Region, is_forward: bool, is_whole: bool) -> None:
        self.places = places
        self.facts = places.facts
        self.is_forward = is_forward
        self.holders = Holders(places, region)
        self.serves = serves(region)
        self.may_check = not is_forward and not trains(region)
        self.calls = Calls(places, self.holders, is_forward, is_whole, self.serves)
        self.seen: set[State] = set()
        self.waiting: list[State] = []
        self.taker: Site | None = None  # what needs the value
        frame: Frame | None = None
        for one in region.chain():
            frame = Frame(one.function, one.blocks, frame, one.call, one)
        assert frame is not None
        self.frame = frame

    def end_well(self, registers: tuple[int, ...], real: bool) -> bool:
        """Whether nothing needs the values that registers hold."""
        self.calls.begun.update((self.frame.function, register) for register in registers)
        for register in registers:
            self._add(State(self.frame, register, (), False, real))
        while self.waiting:
            state = self.waiting.pop()
            function, blocks = state.frame.function, state.frame.blocks
            home = self.places.hot.body(function).home
            for use in dict.fromkeys(function.uses.get(state.register, ())):
                for found in self._used(state, use) if home[use] in blocks else ():
                    if found is None or len(self.seen) >= MOST_STATES:
                        self.taker = Site(function, use) if found is None else None
                        return False
                    self._add(found)
        return True

    def _add(self, state: State) -> None:
        if state not in self.seen:
            self.seen.add(state)
            self.waiting.append(state)

    # --- what an instruction makes of it: further places of the value, or None where it needs the value

    def _used(self, state: State, one: Instruction) -> Iterator[State | None]:
        handler = _BY_OPCODE.get(one[0])
        if one[0] in (op.CALL, op.INVOKE):
            yield from self.calls.used(state, one)
        elif handler is not None:
            yield from handler(self, state, one)
        elif one[0] not in _SILENT and op.DEFINES[one[0]]:
            yield state.at(one[2], state.path)

    def _compared(self, state: State, one: Instruction) -> Iterator[State | None]:
        """A comparison or an operator of one value: a forward could do neither with a size."""
        operator = state.frame.function.text(one[3])
        if not state.path and operator not in ("is", "is not"):
            yield None if self.is_forward and (one[0] == op.COMPARE or operator == "not") else state.at(one[2], ())

    def _decided(self, state: State, one: Instruction) -> Iterator[State | None]:
        """A test of the value: what it chooses hangs on it as well; a round that does not train may leave checks to the device."""
        body = self.places.hot.body(state.frame.function)
        if state.path or (self.may_check and only_checks(body, one)):
            return
        registers = None if self.is_forward else chosen(self.facts, body, one)
        yield from (None,) if registers is None else (state.at(register, ()) for register in registers)

    def _needed(self, state: State, one: Instruction) -> Iterator[None]:
        if not state.path or (one[0] == op.DEL_ITEM and one[3] == state.register):
            yield None

    def _formatted(self, state: State, one: Instruction) -> Iterator[None]:
        """Text: what is shown of a result is asked for."""
        if self.serves:
            yield None

    def _iterated(self, state: State, one: Instruction) -> Iterator[State | None]:
        if not state.path or not self._is_dict(state):
            yield None if self.is_forward and not state.path else state.at(one[2], state.path)

    def _is_dict(self, state: State) -> bool:
        """Whether a loop over what a register holds gives keys."""
        held = [one for one in self.facts.values(state.frame.function, state.register).values if isinstance(one, (Container, Group))]
        return bool(held) and all(isinstance(one, Container) and one.kind == "dict" for one in held)

    def _element(self, state: State, one: Instruction) -> Iterator[State | None]:
        if not state.path:
            yield None if self.is_forward else state.at(one[2], ())
        elif one[0] == op.NEXT or one[6] != op.NONE or fits(state.path[0], one[4]):
            yield state.at(one[2], state.path[1:])

    def _display(self, state: State, one: Instruction) -> Iterator[State]:
        """A list, a tuple or a set around the value."""
        is_ordered = state.frame.function.unit.ir.constants[one[3]] in ("list", "tuple")
        for place, register in enumerate(one[4:]):
            if register == state.register:
                yield state.at(one[2], (place if is_ordered else None, *state.path))

    def _dict(self, state: State, one: Instruction) -> Iterator[State | None]:
        for key, value in zip(one[3::2], one[4::2], strict=False):
            if value == state.register:
                yield state.at(one[2], (key_of(state.frame.function, key), *state.path) if key != op.NONE else state.path)
            if key == state.register and not state.path:
                yield None

    def _item(self, state: State, one: Instruction) -> Iterator[State | None]:
        function = state.frame.function
        if one[4] == state.register:
            yield state.at(one[2], ()) if self._is_table(function, one[3]) else None
        if one[3] != state.register:
            return
        index = function.definitions[one[4]]
        if not state.path:
            yield None if self.is_forward else state.at(one[2], ())
        elif index is not None and index[0] == op.SLICE:
            yield state.at(one[2], (None, *state.path[1:]))
        elif fits(state.path[0], key_of(function, one[4])) and not self._is_replaced(state, one):
            yield state.at(one[2], state.path[1:])

    def _is_table(self, function: Function, register: int) -> bool:
        """Whether a register holds arrays or tensors of the host alone, which the device could keep and look up itself."""
        held = constants_of(self.facts).given.values(function, register)
        return not self.is_forward and bool(held) and all(isinstance(one, Memory) and one.space == "host" for one in held)

    def _is_replaced(self, state: State, one: Instruction) -> bool:
        return state.path[0] in (None, ANY_TEXT) and self.holders.is_replaced(state.frame.function, one)

    def _attribute(self, state: State, one: Instruction) -> Iterator[State | None]:
        name = state.frame.function.text(one[4])
        if not state.path and name not in state.frame.function.known("of-form"):
            yield None if self.is_forward else state.at(one[2], ())
        elif state.path and state.path[0] == (name,):
            yield state.at(one[2], state.path[1:])

    def _binary(self, state: State, one: Instruction) -> Iterator[State | None]:
        function, path = state.frame.function, state.path
        operator = function.text(one[3]).removesuffix("=")
        if operator == "%" and isinstance(function.constant(one[4]), str):
            return
        if path:
            yield state.at(one[2], (None if isinstance(path[0], int) else path[0], *path[1:]))
        elif operator == "*" and any(self._repeats(function, side) for side in one[4:6]):
            yield None
        elif not self.is_forward:
            yield state.at(one[2], ())
        elif operator == "/" and one[5] == state.register:
            return  # a tensor divides as well
        else:
            yield state.at(one[2], ()) if operator in _ARITHMETIC else None

    def _repeats(self, function: Function, register: int) -> bool:
        """Whether a factor is a list, a tuple or a text: the other one says how often."""
        one = function.definitions[register]
        return one is not None and (one[0] == op.BUILD or isinstance(function.constant(register), str))

    # --- where it is put

    def _stored(self, state: State, one: Instruction) -> Iterator[State | None]:
        function, register = state.frame.function, state.register
        if one[0] in (op.SET_ATTR, op.INIT):
            if register in one[4:]:
                if self.is_forward and not (state.real or state.path):
                    yield None
                yield from self.holders.attribute(state, one[2], function.text(one[3]))
        elif one[0] in (op.STORE, op.SET_NAME):
            yield from self.holders.named(state, one[2], one[0] == op.STORE, one)
        elif one[0] == op.APPEND:
            yield from self.holders.put(state, one[2], (None, *state.path)) if one[3] == register else ()
        elif one[0] == op.PUT:
            yield from self.holders.put(state, one[2], (key_of(function, one[3]), *state.path)) if one[4] == register else ()
        elif one[4] == register:
            yield from self._entry(state, one)
        elif one[3] == register:
            yield None

    def _entry(self, state: State, one: Instruction) -> Iterator[State | None]:
        """``held[key] = value``: into a container; a tensor takes one as well, and an optimizer's step needs what is in its groups."""
        function = state.frame.function
        key = key_of(function, one[3])
        values = self.facts.values(function, one[2]).values
        if any(isinstance(value, Memory) and value.space == "device" for value in values):
            return
        if key in function.known("group-entry") and self.calls.may_be_group(state.frame, one[2]):
            yield None
        path: Path = (key, *state.path)
        if self.is_forward and isinstance(key, str):
            return
        yield from self.holders.put(state, one[2], path)

    def _captured(self, state: State, one: Instruction) -> Iterator[State | None]:
        """A generator expression reads it, which is called where it is made; any other function may need a default."""
        function = state.frame.function
        callee = function.unit.function(one[3])
        runs = [use for use in function.uses[one[2]] if use[0] == op.CALL and use[3] == one[2]]
        if len(runs) != 1 or len(function.uses[one[2]]) > 1 or not callee.by_opcode[op.YIELD]:
            yield None
        else:
            yield from self.calls.read_by(state, runs[0], callee)

    # --- where it leaves a function

    def _left(self, state: State, one: Instruction) -> Iterator[State | None]:
        frame: Frame | None = state.frame
        if one[0] == op.RETURN:
            yield from self._returned(state)
            return
        while frame is not None and frame.call is not None and frame.call[0] == op.YIELD_FROM:
            frame = frame.caller
        path = state.path[1:] if one[0] == op.YIELD_FROM else state.path
        calls = [(frame.caller, frame.call)] if frame is not None and frame.caller is not None and frame.call is not None else []
        if not calls and frame is not None:
            calls = [(self.places.free(function), call) for function, call in self.places.calls(frame.function)]
        if not calls:
            yield None
        for caller, call in calls:
            if call[0] == op.NEXT:
                yield State(caller, call[2], path, state.kept, state.real)
            elif call[0] in (op.CALL, op.INVOKE):  # the generator, which gives the value to whoever asks it
                yield State(caller, call[2], (None, *path)[:MOST_KEYS], state.kept, state.real)
            else:
                yield None

    def _returned(self, state: State) -> Iterator[State | None]:
        """The value goes to the caller; a step's result to whoever calls it in each round: for a log."""
        frame = state.frame
        if frame.caller is not None and frame.call is not None:
            if self.calls.reads_given(frame.caller.function, frame.call, frame.function):
                yield None
            if op.DEFINES[frame.call[0]]:
                yield State(frame.caller, frame.call[2], state.path, state.kept, state.real)
            return
        callers = self.places.calls(frame.function) if frame.region is None else []
        for function, call in callers:
            if op.DEFINES[call[0]]:
                yield State(self.places.free(function), call[2], state.path, state.kept, state.real)
        if self.is_forward and not callers and not (state.real or any(isinstance(key, str) for key in state.path)):
            yield None


_SILENT = frozenset({op.MORE, op.BIND, op.CATCHES})
_BY_OPCODE: dict[int, Callable[[Flow, State, Instruction], Iterator[State | None]]] = {
    **dict.fromkeys((op.SET_ATTR, op.INIT, op.STORE, op.SET_NAME, op.SET_ITEM, op.APPEND, op.PUT), Flow._stored),
    **dict.fromkeys((op.RETURN, op.YIELD, op.YIELD_FROM), Flow._left),
    **dict.fromkeys((op.SLICE, op.ENTER, op.EXIT, op.MATCH, op.DEL_ITEM, op.RAISE), Flow._needed),
    **dict.fromkeys((op.BINARY, op.INPLACE), Flow._binary),
    **dict.fromkeys((op.COMPARE, op.UNARY), Flow._compared),
    **dict.fromkeys((op.NEXT, op.UNPACK), Flow._element),
    op.FUNCTION: Flow._captured,
    op.ITEM: Flow._item,
    op.ATTR: Flow._attribute,
    op.BRANCH: Flow._decided,
    op.BUILD: Flow._display,
    op.DICT: Flow._dict,
    op.FORMAT: Flow._formatted,
    op.ITER: Flow._iterated,
}
"""What instructions make of a value that they take."""
