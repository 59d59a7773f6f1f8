"""Memory that is where the model is: what the loss was computed from, outputs of models, parameters, gradients, moved batches.

A program rarely says on which device it trains. `ModelFacts` are program facts in which such values are memory of the device, with the
reason as evidence: they are found backwards from what backward passes start from (`LossSlice`), by the library names of members
(``parameters()``, ``.grad``), and forwards through calls of code that is not part of the program, whose results are where their arguments
are. A reason that begins with `UNSURE` says that the value may be no tensor at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.call_graph import CallGraph, LibraryCall
from streamlint.facts.facts import Facts
from streamlint.facts.frames import Arguments, Frame
from streamlint.facts.functions import Function
from streamlint.facts.members import LANGUAGE_MEMBERS
from streamlint.facts.nodes import Node
from streamlint.facts.objects import Constant, External, Group, Instance, LibraryObject, Memory, Object, Scalar, Unknown
from streamlint.facts.program import Program
from streamlint.facts.rounds import Rounds
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Models
from streamlint.waits.indices import LIST
from streamlint.waits.operands import argument_registers, behind, operand_of

UNSURE = "?"
LOSS, OUTPUT, PARAMETERS, GRADIENTS, TERM = "the loss", "the model's output", "parameters", "gradients", "a loss term"
OF_TRAINING = frozenset({LOSS, OUTPUT, GRADIENTS, TERM})
"""Reasons of what the loss was computed from, which is all in one place."""
INPUT = "a module's input"
_TENSOR = "torch.Tensor"
_BATCHES = "torch.utils.data.BatchSampler"
_OF_MEMBERS = {"parameters": PARAMETERS, "named_parameters": PARAMETERS, "clip_grad_norm_": GRADIENTS, "get_total_norm": GRADIENTS}
"""Library names of functions and methods that give what training works on."""
_SOURCES = frozenset(
    "sample next get get_batch pop popleft fetch read load draw recv __next__ tokenize tokenizer collate gather_object".split()
)
"""Methods of objects out of view that bring data from somewhere, on whichever side it is."""
_ANSWERS = frozenset(
    "shape dtype device ndim is_cuda requires_grad layout itemsize nbytes is_leaf name config training grad_fn is_sparse keys".split()
)
"""Members of tensors and outputs that are no tensors."""
_MOVES = frozenset({"to", "cuda", "cpu"})
_PASSED_ON = frozenset(
    {op.PHI, op.COPY, op.CAST, op.ENTER, op.AWAIT, op.ITER, op.UNARY, op.BINARY, op.INPLACE, op.ITEM, op.NEXT, op.UNPACK}
)
Place = tuple[Function, int]


class Step(NamedTuple):
    """A register that the search comes to: whether it holds the loss itself, and whether it is what a loop goes over."""

    function: Function
    register: int
    is_loss: bool
    is_element: bool


class ModelFacts(Facts):
    """Program facts in which what is where the model is counts as memory of the device."""

    def __init__(self, program: Program, models: Models | None = None) -> None:
        self.seeds: dict[Place, str] = {}
        super().__init__(program, models)

    def plant(self, seeds: dict[Place, str]) -> None:
        """Let registers hold memory for these reasons, wherever their functions are entered from."""
        self.seeds = seeds
        for frame in list(self._frames.values()):
            for register, node in list(frame.registers.items()):
                if (frame.function, register) in seeds:
                    self._grow(node, seeds[frame.function, register])
        self.solver.solve()

    def _grow(self, node: Node, reason: str) -> None:
        self.solver.add(node, self.objects(Memory, "device", "unknown", _TENSOR, reason), None, node.site)

    def define(self, frame: Frame, instruction: Instruction | None, node: Node) -> None:
        """Also what a register holds for a reason of its own."""
        super().define(frame, instruction, node)
        if instruction is None or frame.function.is_cpp:
            return
        reason = self.seeds.get((frame.function, instruction[2]))
        if reason is not None:
            self._grow(node, reason)
        if instruction[0] == op.ATTR and frame.function.text(instruction[4]) == "grad":
            self._grow(node, GRADIENTS)
        elif instruction[0] in (op.INVOKE, op.CALL):
            self._by_member(frame, instruction, node)
        if instruction[0] == op.INVOKE and (name := frame.function.text(instruction[4])) in _MOVES:
            self.solver.when(self.register(frame, instruction[3]), lambda value: self._moved(value, name, frame, instruction, node))

    def _moved(self, value: Object, name: str, frame: Frame, one: Instruction, node: Node) -> None:
        """``batch.to(device)`` of a value of which nothing is known: only tensors, and what holds some, are moved."""
        if isinstance(value, Unknown):
            callee = self.objects(External, f"{_TENSOR}.{name}", value)
            self.library_call(callee, self.arguments(frame, one), node)

    def _by_member(self, frame: Frame, one: Instruction, node: Node) -> None:
        function = frame.function
        name = function.text(one[4]) if one[0] == op.INVOKE else function.dotted(one[3]).rpartition(".")[2]
        reason = _OF_MEMBERS.get(name)
        if name in ("items", "values") and one[0] == op.INVOKE:
            self.solver.when(self.register(frame, one[3]), lambda value: self._entries(value, name, node))
        if reason is None or self._defines(name):
            return
        memory = self.holding(self.objects(Memory, "device", "unknown", _TENSOR, reason))
        if name == "parameters":
            self.solver.add(node, self.objects_of_node(memory))
        elif name == "named_parameters":
            pair = self._entry_of(memory)
            self.solver.add(node, self.objects_of_node(pair))
        else:
            self._grow(node, reason)

    def _defines(self, name: str) -> bool:
        """Whether a class of the program has a method of a name."""
        return any(name in one.methods for unit in self.program.mentioning(name) for one in unit.classes)

    def _entries(self, value: Object, name: str, node: Node) -> None:
        """``outputs.items()`` of a mapping that a model gives."""
        if isinstance(value, Memory) and _is_reason(value.evidence):
            held = self.holding(self._unsure(value))
            self.solver.add(node, self.objects_of_node(self._entry_of(held) if name == "items" else held))

    def _entry_of(self, memory: Node) -> Node:
        """A node that holds a pair of a name and what a node holds."""
        return self.holding(self.objects(Group, "tuple", (self.holding(self.scalar), memory)))

    def library_member(self, value: Object, name: str, target: Node) -> None:
        """A member of what a model gives is where that is."""
        super().library_member(value, name, target)
        if not isinstance(value, Memory) or not _is_reason(value.evidence) or name in _ANSWERS or name in ("items", "values"):
            return
        if self.models.member(value.type, name) is None and f"{value.type}.{name}" not in self.models.calls:
            self.solver.add(target, self._unsure(value))

    def _unsure(self, value: Memory) -> Memory:
        evidence = value.evidence if value.evidence.startswith(UNSURE) else f"{UNSURE}{value.evidence}"
        return self.objects(Memory, "device", "unknown", _TENSOR, evidence)

    def library_call(self, callee: External, arguments: Arguments, target: Node) -> None:
        """A function of torch without a row computes where its arguments are."""
        super().library_call(callee, arguments, target)
        row = self.row_of(callee)
        is_of_language = callee.name.startswith(f"{_TENSOR}.") and callee.name.rpartition(".")[2] in LANGUAGE_MEMBERS
        if row is None and is_of_tensors(callee.name) and not is_of_language:  # `held.get(key)`: no tensor is asked so
            for node in [*arguments.all, *([self.holding(callee.receiver)] if callee.receiver is not None else [])]:
                self.solver.when(node, lambda value: self._computed_there(value, target))
        elif row is not None and row.effect == "object" and (kind := str(row.get("type") or row.names[0])) in self._made_of:
            for node in arguments.all:
                self.solver.when(node, lambda value: self._made_there(value, kind, target))

    @cached_property
    def _made_of(self) -> frozenset[str]:
        """Types of libraries whose methods compute on what their objects were made of: distributions."""
        rows = (row for row in self.models.calls.values() if row.get("made"))
        return frozenset(name.rpartition(".")[0] for row in rows for name in row.names)

    def _made_there(self, value: Object, kind: str, target: Node) -> None:
        if isinstance(value, Memory):
            self.solver.add(target, self.objects(Memory, value.space, value.pinning, kind, value.evidence))

    def _computed_there(self, value: Object, target: Node) -> None:
        if isinstance(value, Memory) and value.space == "device":
            self.solver.add(target, self.objects(Memory, "device", "unknown", _TENSOR, value.evidence.removeprefix(UNSURE)))

    def library_element(self, value: LibraryObject, target: Node) -> None:
        """A sampler of batches gives lists of numbers, which are no tensors yet."""
        if value.type == _BATCHES:
            self.solver.add(target, self.objects(Memory, "host", "pageable", LIST, "none"))
        else:
            super().library_element(value, target)

    def _inherited(self, value: Instance, name: str, target: Node) -> None:
        """An attribute that no code of the program gives a value may hold anything."""
        super()._inherited(value, name, target)
        if not any(name in one.own_stores for one in self.hierarchy.order(value.definition)):
            self.unknown(target, "external")

    def unknown_call(self, reason: str, arguments: Arguments, target: Node) -> None:
        """The result of code out of view is where its arguments are."""
        super().unknown_call(reason, arguments, target)
        name = _called(arguments)
        if name in _SOURCES:
            return
        for node in arguments.all:
            self.solver.when(node, lambda value: self._handed_out(value, target))

    def _handed_out(self, value: Object, target: Node) -> None:
        if isinstance(value, Memory) and value.space == "device":
            self.solver.add(target, self._unsure(value))

    def library_object_call(self, callee: Object, arguments: Arguments, target: Node) -> None:
        super().library_object_call(callee, arguments, target)
        if isinstance(callee, LibraryObject) and callee.kind == "module":
            self._grow(target, OUTPUT)


def is_of_tensors(name: str) -> bool:
    """Whether a name without a row is that of a function of a library that computes tensors of tensors."""
    head, _, last = name.rpartition(".")
    return head.startswith("torch") and not head.startswith(("torch.utils", "torch.cuda", "torch.distributed")) and last[:1].islower()


def _is_of_language(name: str) -> bool:
    return "." not in name or name.startswith("builtins.")


def _is_reason(evidence: str) -> bool:
    return evidence not in ("literal", "asked", "none")


def _called(arguments: Arguments) -> str:
    """The last part of the name that a call calls."""
    site = arguments.site
    if site is None:
        return ""
    one, function = site.instruction, site.function
    if one[0] == op.INVOKE:
        return function.text(one[4])
    return function.dotted(one[3]).rpartition(".")[2] if one[0] == op.CALL else ""


class LossSlice:
    """What backward passes start from, and the results of calls out of view that it was computed from."""

    def __init__(self, graph: CallGraph, rounds: Rounds) -> None:
        self.graph = graph
        self.facts = graph.facts
        self.rounds = rounds
        self.seeds: dict[Place, str] = {}
        self._waiting: list[Step] = []
        self._seen: set[Step] = set()

    def run(self, functions: Iterable[Function]) -> dict[Place, str]:
        """The registers that hold such values, with the reason."""
        for function in functions:
            for one in self.rounds.of(function):
                if one.row.does == "backward":
                    self._start(function, one.instruction)
        while self._waiting:
            step = self._waiting.pop()
            if step not in self._seen and step.register >= 0:
                self._seen.add(step)
                self._look(step)
        return self.seeds

    def _look(self, step: Step) -> None:
        function, register, is_loss, _ = step
        if is_loss:
            self.seeds[function, register] = LOSS
        one = function.definitions[register]
        if one is None:
            return
        element = step.is_element or one[0] == op.NEXT
        self._waiting += [Step(inner, at, is_loss, element) for inner, at in self._same(function, one)]
        self._waiting += [Step(inner, at, False, element) for inner, at in self._before(function, one, element)]

    def _start(self, function: Function, one: Instruction) -> None:
        given = argument_registers(function, one)
        registers = [register for _, register in given[:1]] or ([one[3]] if one[0] == op.INVOKE else [])
        if one[0] == op.INVOKE and any(isinstance(value, Memory) for value in self.facts.values(function, one[3]).values):
            registers.append(one[3])
        self._waiting += [Step(function, register, True, False) for register in registers]

    def _same(self, function: Function, one: Instruction) -> Iterator[Place]:
        """The registers that hold the very value that an instruction gives."""
        if one[0] in (op.PHI, op.COPY):
            yield from ((function, operand) for operand in op.reads(one))
        elif one[0] == op.PARAM:
            yield from self._of_parameter(function, one)
        elif one[0] == op.LOAD:
            name, owner = function.unit.ir.constants[one[3]]
            for inner in function.unit.function(owner).below:
                yield from ((inner, store[3]) for store in inner.by_opcode[op.STORE] if inner.unit.ir.constants[store[2]] == (name, owner))
        elif one[0] in (op.CALL, op.INVOKE):
            for edge in self.graph.calls(function).edges:
                if edge.instruction == one and edge.is_followed:
                    yield from ((edge.callee, back[2]) for back in edge.callee.by_opcode[op.RETURN])
        elif one[0] == op.ITEM:
            yield from self._element(function, one)
        elif one[0] == op.ATTR:
            yield from self._stored(function, one)

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
            for use in function.uses[made[2]]:
                if use[0] == op.SET_ITEM and use[2] == made[2] and function.constant(use[3]) == key:
                    yield function, use[4]

    def _containers(self, function: Function, register: int) -> Iterator[Instruction]:
        made = behind(function, [register], lambda one: one[3:] if one[0] == op.PHI else ())
        return (one for one in made if one[0] != op.PHI)

    def _before(self, function: Function, one: Instruction, is_element: bool) -> Iterator[Place]:
        """The registers that a value was computed from, or taken out of."""
        if one[0] in (op.CALL, op.INVOKE):
            yield from self._of_call(function, one, is_element)
        elif one[0] == op.ATTR:
            if function.text(one[4]) not in _ANSWERS and not (function.is_parameter(one[3]) and function.owner is not None):
                yield function, one[3]
        elif one[0] in (op.DICT, op.BUILD):
            yield from ((function, operand) for operand in op.reads(one))
            yield from self._put_into(function, one[2])
        elif one[0] in _PASSED_ON:
            yield from ((function, operand) for operand in op.reads(one))
            if one[0] in (op.ITEM, op.NEXT, op.UNPACK):
                yield from self._put_into(function, one[3])

    def _put_into(self, function: Function, register: int) -> Iterator[Place]:
        """What a function puts into a container that a register holds."""
        for use in function.uses[register]:
            if use[0] == op.SET_ITEM and use[2] == register:
                yield function, use[4]
            elif use[0] in (op.APPEND, op.PUT) and use[2] == register:
                yield function, use[-1]
            elif use[0] == op.INVOKE and use[3] == register and function.text(use[4]) in ("append", "add", "extend", "setdefault"):
                yield from ((function, operand) for operand in use[6:])

    def _stored(self, function: Function, one: Instruction) -> Iterator[Place]:
        """What methods store in an attribute of an object of the program."""
        name = function.text(one[4])
        for value in self.facts.values(function, one[3]).values:
            if isinstance(value, Instance):
                for definition in self.facts.hierarchy.order(value.definition):
                    yield from ((store.function, store.value) for store in definition.own_stores.get(name, ()))

    def _of_parameter(self, function: Function, one: Instruction) -> Iterator[Place]:
        for _, arguments in self.facts.callers(function):
            site = arguments.site
            if site is not None and site.instruction[0] in (op.CALL, op.INVOKE):
                register = operand_of(site.function, site.instruction, function, one[3])
                if register is not None:
                    yield site.function, register

    def _of_call(self, function: Function, one: Instruction, is_element: bool) -> Iterator[Place]:
        calls = self.graph.calls(function)
        if any(edge.instruction == one and edge.is_followed for edge in calls.edges):
            return
        library = [call for call in calls.libraries if call.instruction == one]
        name = function.text(one[4]) if one[0] == op.INVOKE else function.dotted(one[3]).rpartition(".")[2]
        operands = [register for _, register in argument_registers(function, one) if not self._is_number(function, register)]
        if one[0] == op.INVOKE:
            operands.append(one[3])
        if library and all(call.row is None and is_of_tensors(call.name) for call in library):
            yield from ((function, operand) for operand in operands)
            return
        if any(call.row is not None for call in library):
            if all(call.row is None or call.row.effect in ("compute", "view") for call in library):
                self._is_term(function, one, library)
                yield from ((function, operand) for operand in operands)
            return
        is_method = one[0] == op.INVOKE and name not in LANGUAGE_MEMBERS and not library  # another library's function is none of a tensor
        method = self.facts.models.method(_TENSOR, name) if is_method else None
        if method is not None:
            if method.effect not in ("compute", "view"):
                return
            self.seeds.setdefault((function, one[2]), TERM)
            yield from ((function, operand) for operand in operands)
            return
        if name in _SOURCES:
            return
        if any(isinstance(value, External) and _is_of_language(value.name) for value in self.facts.callees(function, one)):
            yield from ((function, operand) for operand in operands)
            return
        if is_element:  # data: where it is, nothing says
            return
        self.seeds.setdefault((function, one[2]), f"{UNSURE}{OUTPUT}")
        yield from ((function, operand) for operand in operands if self._is_computed(function, operand))

    def _is_number(self, function: Function, register: int) -> bool:
        """Whether a register may hold a number or text of the host: then no tensor that the loss was computed from."""
        values = self.facts.values(function, register).values
        return any(isinstance(value, Scalar) or (isinstance(value, Constant) and value.value is not None) for value in values)

    def _is_term(self, function: Function, one: Instruction, library: list[LibraryCall]) -> None:
        """What a library has computed, and the loss was computed from, is a tensor where that is."""
        if any(call.row is not None and call.row.library == "torch" and call.row.get("result", "buffer") == "buffer" for call in library):
            self.seeds.setdefault((function, one[2]), TERM)

    def _is_computed(self, function: Function, register: int) -> bool:
        """Whether a register holds the result of an operation, or of a value that is called directly."""
        one = function.definitions[register]
        if one is None or one[0] not in (op.CALL, op.INVOKE):
            return one is not None and one[0] in (op.BINARY, op.UNARY, op.INPLACE)
        return one[0] == op.CALL or any(call.instruction == one and call.row is not None for call in self.graph.calls(function).libraries)
