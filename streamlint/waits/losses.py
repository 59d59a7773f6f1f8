"""What backward passes start from, and what that was computed from: searched backwards through registers, containers, attributes, calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import behind
from streamlint.facts.code.language_members import LANGUAGE_MEMBERS
from streamlint.facts.code.objects import Constant, Container, External, Instance, Memory, Object, Scalar, Unknown
from streamlint.facts.files.scopes import ExternalName
from streamlint.facts.repetition.effects import GOES_BACKWARD
from streamlint.facts.repetition.hot import HotRegions
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row, StepRow
from streamlint.waits.moved import moved_to_host
from streamlint.waits.operands import argument_registers, inputs_of, operand_of
from streamlint.waits.origins import LOSS, OUTPUT, TERM, UNSURE, Place, is_of_language, is_of_tensors, tensor_of
from streamlint.waits.questions import alike
from streamlint.waits.sinks import called_name
from streamlint.waits.together import is_beside_host, makes_elsewhere

_PASSED_ON = frozenset(
    {op.PHI, op.COPY, op.CAST, op.ENTER, op.AWAIT, op.ITER, op.UNARY, op.BINARY, op.INPLACE, op.ITEM, op.NEXT, op.UNPACK}
)

_PAIRS = ("named", "mapping")
"""The parts of a module that come with their names, which are texts."""


class Step(NamedTuple):
    """A register that the search comes to: whether it holds the loss itself, and whether it is what a loop goes over."""

    function: Function
    register: int
    is_loss: bool
    is_element: bool


class LossSlice:
    """What backward passes start from, and the results of unknown calls that it was computed from."""

    def __init__(self, hot: HotRegions) -> None:
        self.graph = hot.graph
        self.facts = hot.facts
        self.rounds = hot.rounds
        self.regions = hot.regions
        self.body = hot.body
        self.seeds: dict[Place, str] = {}
        self._waiting: list[Step] = []
        self._seen: set[Step] = set()

    def run(self, functions: Iterable[Function]) -> dict[Place, str]:
        """The registers that hold such values, with the reason."""
        for function in functions:
            for one in self.rounds.of(function):
                if one.row.does in GOES_BACKWARD:
                    self._start(function, one.instruction)
        self._waiting += [Step(*loss, True, False) for loss in self._given_to_frameworks()]
        while self._waiting:
            step = self._waiting.pop()
            if step not in self._seen and step.register >= 0:
                self._seen.add(step)
                self._look(step)
        return self.seeds

    def _given_to_frameworks(self) -> Iterator[Place]:
        """The losses that methods return to the framework that calls them and goes backward itself."""
        for function, regions in self.regions.items():
            if any(isinstance(one.row, StepRow) and one.row.gives_loss and function.code.name in one.row.methods for one in regions):
                waiting = [end[2] for end in function.by_opcode[op.RETURN] if end[2] >= 0]
                for register in waiting:
                    one = function.definitions[register]
                    if one is not None and one[0] == op.PHI:
                        waiting += [each for each in one[3:] if each >= 0 and each not in waiting]
                    elif one is not None and one[0] in (op.BUILD, op.DICT):
                        yield from ((function, each) for each in _loss_of(function, one))
                    else:
                        yield function, register

    def _look(self, step: Step) -> None:
        function, register, is_loss, _ = step
        one = function.definitions[register]
        if one is not None and one[0] == op.PARAM and self.facts.is_declared_text(function, function.code.parameters[one[3]]):
            return
        if is_loss:
            self.seeds[function, register] = LOSS
            self._hand_back(function, register)
        if one is None:
            return
        element = step.is_element or one[0] == op.NEXT
        self._waiting += [Step(inner, at, is_loss, element) for inner, at in self._same(function, one)]
        if (held := self._asked_for_all(function, one)) is not None:
            self._waiting.append(Step(function, held, False, element and not self._is_made_in_round(function, one, held)))
        else:
            self._waiting += [Step(inner, at, False, element) for inner, at in self._before(function, one, element)]

    def _hand_back(self, function: Function, register: int) -> None:
        """Call what gives the loss back the loss too: the way through its body may be longer than a question about facts goes."""
        waiting = [(function, register)]
        while waiting:
            function, register = waiting.pop()
            if any(use[0] == op.RETURN for use in function.uses[register]):
                places = [(caller, call[2]) for caller, call in self._calls.get(function, ())]
                waiting += [place for place in places if place not in self.seeds]
                self.seeds.update(dict.fromkeys(places, LOSS))

    def _start(self, function: Function, one: Instruction) -> None:
        given = argument_registers(function, one)
        registers = [register for _, register in given[:1]] or ([one[3]] if one[0] == op.INVOKE else [])
        if one[0] == op.INVOKE and any(isinstance(value, Memory) for value in self.facts.values(function, one[3]).values):
            registers.append(one[3])
        for register in (one for one in registers if not self._is_on_host(function, one)):
            moved = moved_to_host(self.graph, function, register) if not function.is_cpp else []
            self._waiting += [Step(inner, at, True, False) for inner, at in moved or [(function, register)]]

    def _is_on_host(self, function: Function, register: int) -> bool:
        """Whether a function computes a value of nothing but numbers and tensors that were made on the host: nothing moves it."""
        if makes_elsewhere(self.graph):
            return False
        if is_beside_host(self.graph, function, register):
            return True
        ends: list[bool] = []

        def onward(one: Instruction) -> Iterable[int]:
            found = self._made_of(function, one)
            if not isinstance(found, bool):
                return found
            ends.append(found)
            return ()

        list(behind(function, [register], onward))
        return bool(ends) and all(ends)

    def _made_of(self, function: Function, one: Instruction) -> Iterable[int] | bool:
        """The registers that a value is made of, which decide whether it is on the host; where it is the last one, whether it is there."""
        values = list(self.facts.values(function, one[2]).values)
        spaces = {value.space if isinstance(value, Memory) else None for value in values}
        if spaces == {"host"}:
            return True
        if spaces <= {None} and (self._is_number(function, one[2]) or _is_factor(function, one)):
            return ()
        if one[0] in _PASSED_ON:
            return one[3:4] if one[0] == op.ITEM else op.reads(one)
        if self._is_where_operands_are(function, one):
            return inputs_of(function, one)
        is_name = bool(values) and all(isinstance(value, External) for value in values)
        return () if one[0] == op.CONST or is_name else False

    def _is_where_operands_are(self, function: Function, one: Instruction) -> bool:
        """Whether a call computes with its operands, or gives a view of one: its result is where they are."""
        calls = self.graph.of_call(function, one).libraries if one[0] in (op.CALL, op.INVOKE) else ()
        return bool(calls) and all(
            is_of_tensors(self.facts.models, call.name) if call.row is None else call.row.effect in ("compute", "view") for call in calls
        )

    def _same(self, function: Function, one: Instruction) -> Iterator[Place]:
        """The registers that hold the very value that an instruction gives."""
        if one[0] in (op.PHI, op.COPY):
            yield from ((function, operand) for operand in op.reads(one))
        elif one[0] == op.PARAM:
            yield from self._of_parameter(function, one)
        elif one[0] == op.LOAD:
            yield from self._captured(function, one)
        elif one[0] in (op.CALL, op.INVOKE):
            for callee in self._entered(function, one):
                yield from ((callee, back[2]) for back in callee.by_opcode[op.RETURN] if callee in self.regions)
        elif one[0] == op.ITEM:
            yield from self._element(function, one)
        elif one[0] == op.ATTR and not function.is_cpp:
            yield from self._stored(function, one)
        elif function.is_cpp and one[0] in (op.ATTR, op.NAME):
            yield from self._member(function, one)

    def _captured(self, function: Function, one: Instruction) -> Iterator[Place]:
        """What functions store in a variable of a function around them."""
        yield from ((inner, store[3]) for inner, store in function.on_variable(op.STORE, one[3]))

    def _entered(self, function: Function, one: Instruction) -> list[Function]:
        """The functions of the program that a call runs."""
        return [edge.callee for edge in self.graph.of_call(function, one).edges if edge.is_followed]

    def _element(self, function: Function, one: Instruction) -> Iterator[Place]:
        """``held["loss"]``: what the container was made with, or was given, under that key."""
        key = function.constant(one[4])
        if not isinstance(key, (str, int)):
            return
        for made in self._containers(function, one[3]):
            if made[0] == op.DICT:
                for name, value in zip(made[3::2], made[4::2], strict=False):
                    if name >= 0 and function.constant(name) == key:
                        yield function, value
            elif made[0] == op.BUILD and isinstance(key, int) and 0 <= key < len(made) - 4:
                yield function, made[4 + key]
            held = alike(function, made[2])
            for use in function.by_opcode[op.SET_ITEM]:
                if function.constant(use[3]) == key and alike(function, use[2]) == held:
                    yield function, use[4]

    def _containers(self, function: Function, register: int) -> Iterator[Instruction]:
        made = behind(function, [register], lambda one: one[3:] if one[0] == op.PHI else ())
        return (one for one in made if one[0] != op.PHI)

    def _before(self, function: Function, one: Instruction, is_element: bool) -> Iterator[Place]:
        """The registers that a value was computed from, or taken out of."""
        if one[0] in (op.CALL, op.INVOKE):
            yield from self._of_call(function, one, is_element)
        elif one[0] == op.ATTR:
            if function.text(one[4]) not in function.known("no-tensor") and not (
                function.is_parameter(one[3]) and function.owner is not None
            ):
                yield function, one[3]
        elif one[0] in (op.DICT, op.BUILD):
            yield from ((function, operand) for operand in op.reads(one))
            yield from self._put_into(function, one[2])
        elif one[0] == op.CONSTRUCT and isinstance(self.facts.named_type(function, function.unit.ir.constants[one[3]])[1], ClassInfo):
            yield from ((function, operand) for operand in op.reads(one))
        elif one[0] in _PASSED_ON:
            yield from ((function, operand) for operand in op.reads(one))
            if one[0] in (op.ITEM, op.NEXT, op.UNPACK):
                yield from self._put_into(function, one[3])

    def _asked_for_all(self, function: Function, one: Instruction) -> int | None:
        """The mapping whose values are asked for, where no function of the program is: ``losses.values()``."""
        if len(one) > 6 or not function.invokes(one, "gives-entries", "gives-values"):
            return None
        return one[3] if not self.graph.of_call(function, one).edges else None

    def _is_made_in_round(self, function: Function, one: Instruction, register: int) -> bool:
        """Whether the round that runs an instruction calls what gives a register: no data that it goes through."""
        made, home = function.definitions[register], self.body(function).home
        if made is None or made[0] not in (op.CALL, op.INVOKE):
            return False
        return any({home[one], home[made]} <= region.blocks for region in self.regions.get(function, ()))

    def _put_into(self, function: Function, register: int) -> Iterator[Place]:
        """What a function puts into a container that a register holds."""
        for use in function.uses[register]:
            if use[0] == op.SET_ITEM and use[2] == register:
                yield function, use[4]
            elif use[0] in (op.APPEND, op.PUT) and use[2] == register:
                yield function, use[-1]
            elif (
                use[0] == op.INVOKE and use[3] == register and function.text(use[4]) in function.known("puts", "extends", "puts-if-absent")
            ):
                yield from ((function, operand) for operand in use[6:])

    def _stored(self, function: Function, one: Instruction) -> Iterator[Place]:
        """What is stored in an attribute of an object: by methods of its class, or by who is given it."""
        name = function.text(one[4])
        held = [value for value in self.facts.values(function, one[3]).values if isinstance(value, (Instance, Container))]
        for value in held:
            if isinstance(value, Instance):
                yield from ((store.function, store.value) for store in self.facts.hierarchy.stores(value.definition, name))
        for unit in self.facts.nearest(name, function.unit.path) if held else ():
            for store in unit.attribute_stores.get(name, ()):
                given = self.facts.values(store.function, store.receiver).values if store.function in self.regions else ()
                if any(self._may_be_same(one, other) for one in given for other in held):
                    yield store.function, store.value

    def _may_be_same(self, one: Object, other: Object) -> bool:
        """Whether two objects may be the same one."""
        derives = self.facts.hierarchy.derives
        if isinstance(one, Instance) and isinstance(other, Instance):
            return derives(one.definition, other.definition) or derives(other.definition, one.definition)
        return one is other

    def _member(self, function: Function, one: Instruction) -> Iterator[Place]:
        """C++: what functions store in a data member, and what objects of its class are made with."""
        name = function.text(one[3 if one[0] == op.NAME else 4])
        owners = [self.facts.member_of(function, name)]
        if one[0] == op.ATTR:
            held = (value.definition for value in self.facts.values(function, one[3]).values if isinstance(value, Instance))
            owners = [found[0] for definition in held if (found := self.facts.field_of(definition, name)) is not None]
        for owner in dict.fromkeys(owner for owner in owners if owner is not None):
            yield from self.facts.given_to_member(owner, name.rpartition("::")[2])

    def _of_parameter(self, function: Function, one: Instruction) -> Iterator[Place]:
        for caller, call in self._calls.get(function, ()):
            register = operand_of(caller, call, function, one[3])
            if register is not None:
                yield caller, register

    @cached_property
    def _calls(self) -> dict[Function, list[tuple[Function, Instruction]]]:
        """By function: the calls that run it in a round."""
        found: dict[Function, list[tuple[Function, Instruction]]] = {}
        for caller in self.regions:
            for edge in self.graph.calls(caller).edges:
                if edge.is_followed and not edge.is_higher_order and edge.instruction[0] in (op.CALL, op.INVOKE):
                    found.setdefault(edge.callee, []).append((caller, edge.instruction))
        return found

    def _of_call(self, function: Function, one: Instruction, is_element: bool) -> list[Place]:
        """The operands that a call's result was computed from; what it yields, where the program's generators run."""
        if entered := self._entered(function, one):
            return [(callee, given[3]) for callee in entered if callee in self.regions for given in callee.by_opcode[op.YIELD]]
        operands = [register for _, register in argument_registers(function, one) if not self._is_number(function, register)]
        operands += [one[3]] if one[0] == op.INVOKE else []
        computes = self._computes(function, one)
        if computes is None and not is_element:  # of data nothing says where it is
            self.seeds.setdefault((function, one[2]), f"{UNSURE}{OUTPUT}")
            return [(function, operand) for operand in operands if self._is_computed(function, operand)]
        return [(function, operand) for operand in operands] if computes else []

    def _computes(self, function: Function, one: Instruction) -> bool | None:
        """Whether a call computes its result from its operands, which also marks it as a term; None where nothing says what it does."""
        library = self.graph.of_call(function, one).libraries
        if library and all(call.row is None and is_of_tensors(self.facts.models, call.name) for call in library):
            return True
        rows = [call.row for call in library if call.row is not None] if library else self._rows_of_method(function, one)
        if not rows:
            return self._computes_without_row(function, one)
        if any(row.get("host_access") for row in rows):
            return bool(argument_registers(function, one))  # `numpy(force=True)`: else it refuses memory of a device
        if any(row.effect not in ("compute", "view") for row in rows):
            return False
        if any(_is_term(row, not library) for row in rows):
            self.seeds.setdefault((function, one[2]), TERM)
        return True

    def _computes_without_row(self, function: Function, one: Instruction) -> bool | None:
        """Whether a function that no row describes computes its result from its operands, as those of the language do."""
        if called_name(function, one) in self.facts.models.known("brings-data"):
            return False
        return any(isinstance(value, External) and is_of_language(value.name) for value in self.facts.callees(function, one)) or None

    def _rows_of_method(self, function: Function, one: Instruction) -> list[Row]:
        """The row of a tensor's method, where nothing says that the receiver is anything else."""
        if one[0] != op.INVOKE or function.text(one[4]) in LANGUAGE_MEMBERS or self._is_of_import(function, one):
            return []
        row = self.facts.models.method(tensor_of(function), function.text(one[4]), "::" if function.is_cpp else ".")
        return [row] if row is not None else []

    def _is_of_import(self, function: Function, one: Instruction) -> bool:
        """Whether a function of an imported module is called: none of a tensor, also where the steps of the facts ran out."""
        called = function.dotted(one[3])
        return bool(called) and any(isinstance(each, ExternalName) for each in self.facts.scopes.find(function.unit, called))

    def _is_number(self, function: Function, register: int) -> bool:
        """Whether a register may hold a number or text of the host, and was not computed with unknown values: no tensor of the loss."""
        values = list(self.facts.values(function, register).values)
        one = function.definitions[register] if register >= 0 else None
        if one is not None and one[0] in (op.BINARY, op.INPLACE) and any(isinstance(value, Unknown) for value in values):
            return False
        return any(isinstance(value, Scalar) or (isinstance(value, Constant) and value.value is not None) for value in values)

    def _is_computed(self, function: Function, register: int) -> bool:
        """Whether a register holds the result of an operation, or of a value that is called directly."""
        one = function.definitions[register]
        if one is None or one[0] not in (op.CALL, op.INVOKE):
            return one is not None and one[0] in (op.BINARY, op.UNARY, op.INPLACE)
        return one[0] == op.CALL or any(call.row is not None for call in self.graph.of_call(function, one).libraries)


def _is_term(row: Row, is_method: bool) -> bool:
    """Whether a row's result is a tensor where the loss is that was computed from it: a tensor's method's, or a new one of torch."""
    return row.get("part") not in _PAIRS and (is_method or (row.library == "torch" and row.get("result", "buffer") == "buffer"))


def _loss_of(function: Function, one: Instruction) -> list[int]:
    """The loss in a tuple, where it stands first, or in a dict."""
    if one[0] == op.DICT:
        return [value for key, value in zip(one[3::2], one[4::2], strict=False) if key >= 0 and function.constant(key) == "loss"]
    return list(one[4:5]) if function.kind_built(one) == "tuple" else []


def _is_factor(function: Function, one: Instruction) -> bool:
    """Whether an instruction gives a parameter whose default is a number other than 0, which is a number then."""
    register = function.default_register(one[3]) if one[0] == op.PARAM else None
    made = function.parent.definitions[register] if register is not None and function.parent is not None else None
    value = function.unit.ir.constants[made[3]] if made is not None and made[0] == op.CONST else None
    return type(value) in (int, float) and value != 0
