"""The walk behind SL013: from the begin of a stream capture forward, with what is on a device in it, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.cuda_model.capture import Mode, Status
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import is_none, uncast
from streamlint.facts.code.objects import External, LibraryObject, Memory, Site, Unknown
from streamlint.facts.graph.call_graph import Edge
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import Selector
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.states import MOST_GUESSES, State
from streamlint.ordering.places.flow import BUFFER, DONE, LATE, Tracked
from streamlint.ordering.places.places import ANY, OWN, Element, Place, register_place, rest_behind
from streamlint.ordering.walk.event_walk import Unordered
from streamlint.transfer import device
from streamlint.transfer.actions import Viewed
from streamlint.transfer.device import DeviceOperation, DeviceOperations
from streamlint.transfer.modelled import ModelledCall, word_of
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.waits.operands import operand_of
from streamlint.waits.origins import TENSOR
from streamlint.waits.questions import EQUAL, Key, alike

OPEN = Tracked("capture", Place(("global", "capture")))
"""The capture goes on."""
ENDED = Tracked("ended", OPEN.place)
ORIGIN = Place(("global", "origin"))
"""The captured stream, however it is called."""
OPERATING = frozenset({op.BRANCH, op.BINARY, op.INPLACE, op.UNARY, op.COMPARE, op.FORMAT, op.SET_ITEM, op.LAUNCH, op.ITEM})
_COMPUTING = frozenset({op.BINARY, op.INPLACE, op.UNARY, op.COMPARE, op.ITEM, op.COPY, op.CAST, op.PHI, op.UNPACK, op.NEXT, op.ITER})
_DEEPEST = 8
_LOOKED_AT = OPERATING | CALLING


class Capture(NamedTuple):
    """Where a capture begins, and how. ``ends`` is the register of the scope that ends it; NONE where a call does."""

    begin: Site
    call: ModelledCall
    mode: Mode
    ends: int
    is_blocking: bool


class Refused(NamedTuple):
    """An operation that a capture does not take, the calls in the region that lead to it, and why: ``kind`` as of `operations.Refusal`."""

    capture: Capture
    operation: DeviceOperation
    site: Site
    calls: tuple[Site, ...]
    kind: str
    status: Status
    doubts: int
    stream: Site | None = None


class CaptureWalk(Unordered):
    """Follows a capture."""

    hooked = OPERATING | CALLING | {op.ATTR, op.NEXT, op.UNPACK}

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.device = DeviceOperations(transfer)
        self._capture: Capture
        self._found: dict[tuple[Site, tuple[Site, ...], str], Refused] = {}
        self._forked: dict[Site, Refused] = {}  # work of forks
        self._joined: set[Site] = set()
        self._left: set[Site] = set()
        self._matters: dict[Function, bool] = {}
        self._asked_streams: dict[Function, set[Key]] = {}

    def _is_run(self, frame: Frame, one: Instruction, edge: Edge) -> bool:
        return super()._is_run(frame, one, edge) and not self._is_around(frame.function, one, edge.callee)

    def _is_around(self, function: Function, one: Instruction, callee: Function) -> bool:
        """Whether a call runs a method of the captured object's class for what the object was given to work around: that is no such object
        again, whichever objects come to be in the same variables."""
        owner = callee.owner
        if function.is_cpp or owner is None or owner is not self._capture.begin.function.owner or one[0] not in (op.CALL, op.INVOKE):
            return False
        place = self.places.of(function, one[3])
        name = function.text(one[4]) if one[0] == op.INVOKE and callee.code.name != function.text(one[4]) else ""
        path = (*place.path, name) if name else place.path
        if place.root != OWN.root or len(path) != 1 or not isinstance(path[0], str):
            return False
        stores = owner.own_stores.get(path[0], ())
        made = [store.function.definitions[store.value] for store in stores if store.value >= 0]
        return bool(made) and all(each is not None and each[0] == op.PARAM for each in made)

    # --- what is on a device

    def _is_on_device(self, state: State, operation: DeviceOperation) -> bool:
        if operation.needs is None:
            return True
        return any(self._holds_device(state, register) for register in operation.needs if register >= 0)

    def _holds_device(self, state: State, register: int) -> bool:
        """Whether a register is shown to hold memory of a device, on this way."""
        places = self.places.names(state.frame.function, register)
        held = [each.place for each in state.tracked if each.kind == BUFFER]
        return any(_is_in(place, each) for place in places for each in held) or self._is_shown(state.frame, register, 0)

    def _computes(self, function: Function, one: Instruction) -> bool:
        """Whether a call computes its result from its operands, or views one."""
        calls = self.transfer.modelled(function, one) if one[0] in (op.CALL, op.INVOKE) else ()
        return any(call.row.effect in ("compute", "view") for call in calls)

    def _is_shown(self, frame: Frame, register: int, depth: int) -> bool:
        """The same by values alone. What a function is given is asked of the call by which the way entered it, not of all its calls."""
        function = frame.function
        if not self.device.on_device(function, register):
            return False
        if frame.caller is None or frame.call is None or depth > _DEEPEST:
            return True
        one = function.definitions[register]
        if one is None:
            return True
        if one[0] == op.PARAM:
            given = operand_of(frame.caller.function, frame.call, function, one[3]) if frame.call[0] in (op.CALL, op.INVOKE) else None
            if given is None or given < 0:
                return self._is_never_on_host(function, register)
            return self._is_shown(frame.caller, given, depth + 1)
        if one[0] in _COMPUTING and not any(self.device.on_device(function, each) for each in op.reads(one)):
            return self._is_never_on_host(function, register)  # an element of what is on no device itself
        if one[0] in _COMPUTING or self._computes(function, one):
            return any(self._is_shown(frame, each, depth + 1) for each in op.reads(one))
        return True

    def _is_never_on_host(self, function: Function, register: int) -> bool:
        """Whether all memory that a register may hold is on a device, whoever gives it."""
        return all(value.space == "device" for value in self.transfer.values(function, register) if isinstance(value, Memory))

    def _results(self, state: State, one: Instruction) -> Iterator[Tracked]:
        """What a value from unknown code gives that is called in the capture is on the device, and so is what is computed of it."""
        if op.DEFINES[one[0]]:
            yield from self._listed(state, one)
            if self._gives_device(state, one) or self._is_tensor_method(state, one):
                yield Tracked(BUFFER, register_place(one[2]))

    def _gives_device(self, state: State, one: Instruction) -> bool:
        """Whether the result of an instruction is on the device, as what is tracked is."""
        function = state.frame.function
        if one[0] in (op.CALL, op.INVOKE) and (self._is_foreign(state, one) or self.runs_module(function, one)):
            return True
        held = {each.place for each in state.tracked if each.kind == BUFFER}
        computed = [operation for operation in self.device.of(function, one) if operation.kind == device.COMPUTE]
        if function.is_cpp and any(self.is_for_tensors(function, one, operation) for operation in computed):
            return not self._reads_host(function, one)
        if not held:
            return False
        if computed:
            return any(self._holds_device(state, register) for register in op.reads(one))
        if one[0] in (op.NEXT, op.UNPACK):
            return not held.isdisjoint(self.places.names(function, one[3]))
        viewed = (action.register for action in self.transfer.of(function, one) if isinstance(action, Viewed))
        return any(self._holds_device(state, register) for register in viewed)

    def _is_tensor_method(self, state: State, one: Instruction) -> bool:
        """Whether a method of a tensor that a module has given computes another one: its result is known by the path alone."""
        function = state.frame.function
        if function.is_cpp or one[0] != op.INVOKE or any(True for _ in self.transfer.modelled(function, one)):
            return False
        row = function.unit.models.method(TENSOR, function.text(one[4]))
        is_tensor = row is not None and row.effect in ("compute", "view") and row.get("result") != "scalar"
        return is_tensor and not self.transfer.edges(function, one) and self._holds_device(state, one[3])

    def _reads_host(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction is given memory of the host: else what a capture computes is where the capture is."""
        held = (value for register in op.reads(one) if register >= 0 for value in self.transfer.values(function, register))
        return any(isinstance(value, Memory) and value.space == "host" for value in held)

    def is_for_tensors(self, function: Function, one: Instruction, operation: DeviceOperation) -> bool:
        """Whether an operation on values of which nothing is known is one of tensors: a function of the library, or a matrix product."""
        if operation.call is None:
            return one[0] == op.BINARY and function.text(one[3]) == "@"
        is_method = one[0] == op.INVOKE and self._is_value(function, one[3])
        return operation.call.row.library in function.unit.models.marked("tensors") and not is_method

    def _is_value(self, function: Function, register: int) -> bool:
        return not any(isinstance(value, External) for value in self.transfer.values(function, register))

    def _listed(self, state: State, one: Instruction) -> Iterator[Tracked]:
        """Gradients and parameters, for what a capture trains is on the device; the elements of a mapping that is there."""
        function = state.frame.function
        if function.is_cpp or one[0] not in (op.ATTR, op.INVOKE):
            return
        name, result = function.text(one[4]), register_place(one[2])
        if one[0] == op.ATTR:
            yield from (Tracked(BUFFER, result),) if name == "grad" else ()
            return
        row = function.unit.models.method(TENSOR, name) if name in function.known("parameters") else None
        is_there = row is not None or (function.invokes(one, "gives-values", "gives-entries") and self._holds_device(state, one[3]))
        if is_there:
            is_pair = function.invokes(one, "gives-entries") or (row is not None and row.get("part") == "named")
            yield Tracked(BUFFER, result.behind(ANY, Element(1)) if is_pair else result.behind(ANY))

    def runs_module(self, function: Function, one: Instruction) -> bool:
        """Whether a call runs a module of a library."""
        return not self.transfer.edges(function, one) and any(work.runs for work in self.transfer.works(function, one))

    def _is_foreign(self, state: State, one: Instruction) -> bool:
        """Whether a value of which nothing is known is called with arguments, as modules are; or a method of what one has given."""
        function = state.frame.function
        if self.transfer.libraries(function, one) or self.transfer.edges(function, one):
            return False
        if any(True for _ in self.transfer.modelled(function, one)):
            return False
        if function.invokes(one, "gives-values", "gives-entries", "gives-keys"):
            return False
        called = self.facts.callees(function, one)
        if function.is_cpp:  # what else nothing is known of may be anything
            return any(self._holds_device(state, each) for register in op.reads(one) for each in _parts(function, register))
        is_given = len(one) > (6 if one[0] == op.INVOKE else 5) or self._holds_device(state, one[3])
        return is_given and all(isinstance(value, Unknown) and value.reason != "external" for value in called)

    # --- refusals

    def _refuse_unsafe(self, state: State, one: Instruction, operation: DeviceOperation, kind: str) -> None:
        if self._capture.mode is not Mode.RELAXED and not any(held.kind == "relaxed" for held in state.tracked):
            self._refuse(state, one, operation, kind, Status.UNSUPPORTED)

    def _refuse(self, state: State, one: Instruction, operation: DeviceOperation, kind: str, status: Status) -> None:
        if self._fails(state):
            return
        refused = self._refusal(state, one, operation, kind, status)
        key = refused.site, refused.calls, kind
        if state.doubts <= MOST_GUESSES and (key not in self._found or self._found[key].doubts > refused.doubts):
            self._found[key] = refused

    def _fails(self, state: State) -> bool:
        """Whether a path can only end in an exception, which ends the capture with it: what it does before is an error message."""
        function, calls = state.frame.function, state.frame.calls
        return state.block in function.raising or any(each.function.blocks[each.instruction] in each.function.raising for each in calls)

    def _refusal(self, state: State, one: Instruction, operation: DeviceOperation, kind: str, status: Status) -> Refused:
        calls: list[Site] = []
        lambdas = 0  # calls of lambdas that the region was passed: their bodies are what is captured
        frame = state.frame
        while frame.caller is not None and frame.call is not None:
            calls.insert(0, Site(frame.caller.function, frame.call))
            lambdas = lambdas + 1 if frame.function.code.kind == "lambda" else 0
            frame = frame.caller
        site, made = Site(state.frame.function, one), self._made(state, operation)
        return Refused(self._capture, operation, site, tuple(calls[lambdas:]), kind, status, state.doubts, made)

    def _made(self, state: State, operation: DeviceOperation) -> Site | None:
        if operation.stream is None or operation.stream.register < 0:
            return None
        values = self.transfer.values(state.frame.function, operation.stream.register)
        return next((value.site for value in values if isinstance(value, LibraryObject) and value.site is not None), None)

    # --- how the walk goes

    def _entered(self, state: State, one: Instruction, index: int) -> Iterator[State]:
        if one[0] == op.ENTER and state.path and state.frame.caller is None and one[3] == state.path[-1][2]:
            return  # its generator has just given the value
        yield from super()._entered(state, one, index)

    def _orders_inside(self, function: Function) -> bool:
        """Whether a function may hold what a capture has to do with, by itself or through what it calls."""
        found = self._matters.get(function)
        if found is None:
            self._matters[function] = False
            found = self._matters[function] = any(
                one[0] in OPERATING or bool(self.device.of(function, one)) for one in function.code.instructions() if one[0] in _LOOKED_AT
            ) or any(
                edge.is_followed and self._orders_inside(edge.callee)
                for opcode in CALLING
                for one in function.by_opcode[opcode]
                for edge in self.transfer.edges(function, one)
            )
        return found

    def done_where(self, state: State, condition: int) -> bool | None:
        """A question whether a capture goes on: it does."""
        function = state.frame.function
        one = function.definitions[condition] if condition >= 0 else None
        if one is None or ENDED in state.tracked:
            return None
        names = self.places.names(function, condition)
        if answer := next((held.kind for held in state.tracked if held.kind in (DONE, LATE) and held.place in names), ""):
            return answer == DONE
        if one[0] != op.COMPARE or function.text(one[3]) not in ("==", "!="):
            return False if function.is_cpp and self._is_asked_whether_captured(function, condition) else None
        if is_none(function, one[5]):
            return EQUAL[function.text(one[3])] if self._is_asked_whether_captured(function, one[4]) else None
        words = [word for side in one[4:6] if (word := word_of(self.facts, function, side)) in ("captured", "not-captured")]
        if not words:
            return None
        holds = (words[0] == "captured") == (function.text(one[3]) == "==")
        return not holds

    def _is_asked_whether_captured(self, function: Function, register: int) -> bool:
        """Whether a function asks of a stream whether it is captured: in a capture that is none but null."""
        known = self._asked_streams.get(function)
        if known is None:
            known = self._asked_streams[function] = set()
            for one in (*function.by_opcode[op.CALL], *function.by_opcode[op.INVOKE]):
                for call in self.transfer.modelled(function, one):
                    held = call.row.get("stream") if call.row.get("part") == "asked" else None
                    given = call.given(held) if isinstance(held, Selector) else None
                    known |= {alike(function, uncast(function, given))} if given is not None and given >= 0 else set()
        return alike(function, uncast(function, register)) in known

    def derived(self, state: State, one: Instruction) -> frozenset[Tracked]:
        """What a comparison answers goes on with its result; the negation of an answer says the opposite."""
        is_turned = one[0] == op.UNARY
        if is_turned and state.frame.function.text(one[3]) not in ("not", "!"):
            return frozenset()
        done = self.done_where(state, one[4] if is_turned else one[2])
        return frozenset() if done is None else frozenset({Tracked(DONE if done != is_turned else LATE, register_place(one[2]))})


def _parts(function: Function, register: int) -> tuple[int, ...]:
    """A register, and the elements of the list that it holds."""
    one = function.definitions[register]
    return (register, *one[4:]) if one is not None and one[0] == op.BUILD else (register,)


def _is_in(container: Place, place: Place) -> bool:
    """Whether a place is a container, or an element of it."""
    rest = rest_behind(container, place)
    return rest is not None and len(rest) < 2 and all(isinstance(key, Element) for key in rest)
