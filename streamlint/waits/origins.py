"""Memory that is where the model is: what the loss was computed from, outputs of models, parameters, gradients, moved batches.

A program rarely says on which device it trains. `ModelFacts` are program facts in which such values are memory of the device, with the
reason as evidence: they are found backwards from what backward passes start from (`losses.LossSlice`), by the library names of members
(``parameters()``, ``.grad``), and forwards through calls of code that is not part of the program, whose results are where their arguments
are. A reason that begins with `UNSURE` says that the value may be no tensor at all.
"""

from __future__ import annotations

from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.language_members import LANGUAGE_MEMBERS
from streamlint.facts.code.objects import External, Group, Instance, LibraryObject, Memory, Object, Unknown
from streamlint.facts.code.stores import Store
from streamlint.facts.files.program import Program
from streamlint.facts.files.scopes import ExternalName
from streamlint.facts.graph.facts import Facts
from streamlint.facts.values.frames import Arguments, Frame
from streamlint.facts.values.nodes import Node
from streamlint.ir import Instruction, Parameter
from streamlint.ir import opcodes as op
from streamlint.models import Models
from streamlint.waits.devices import names_gpu, on_gpu
from streamlint.waits.wait import LIST

UNSURE = "?"
LOSS, OUTPUT, PARAMETERS, GRADIENTS, TERM = "the loss", "the model's output", "parameters", "gradients", "a loss term"
STATE = "module state"
OF_TRAINING = frozenset({LOSS, OUTPUT, GRADIENTS, TERM, STATE})
"""Reasons of what the loss was computed from, and of what is moved with a module: wherever it was made, it is all in one place."""
INPUT = "a module's input"
TENSOR = "torch.Tensor"
CPP_TENSOR = "at::Tensor"
_BATCHES = "torch.utils.data.BatchSampler"
Place = tuple[Function, int]


class ModelFacts(Facts):
    """Program facts in which what is where the model is counts as memory of the device."""

    def __init__(self, program: Program, models: Models | None = None) -> None:
        self.seeds: dict[Place, str] = {}
        super().__init__(program, models, models)

    def plant(self, seeds: dict[Place, str]) -> None:
        """Let registers hold memory for these reasons, wherever their functions are entered from."""
        self.seeds = seeds
        for frame in list(self._frames.values()):
            for register, node in list(frame.registers.items()):
                if (frame.function, register) in seeds:
                    self._grow(node, seeds[frame.function, register], tensor_of(frame.function))
        self.solver.solve()

    def _grow(self, node: Node, reason: str, kind: str = TENSOR) -> None:
        self.solver.add(node, self.objects(Memory, "device", "unknown", kind, reason), None, node.site)

    def define(self, frame: Frame, instruction: Instruction | None, node: Node) -> None:
        """Also what a register holds for a reason of its own; of a choice of devices, what is chosen where there is a GPU."""
        if instruction is not None and instruction[0] == op.PHI and not frame.function.is_cpp:
            for register in on_gpu(frame.function, instruction):
                self.solver.edge(self.register(frame, register), node)
        else:
            super().define(frame, instruction, node)
        if instruction is None:
            return
        reason = self.seeds.get((frame.function, instruction[2]))
        if reason is not None:
            self._grow(node, reason, tensor_of(frame.function))
        if frame.function.is_cpp:
            return
        if instruction[0] == op.ATTR and frame.function.text(instruction[4]) == "grad":
            self._grow(node, GRADIENTS)
        elif instruction[0] in (op.INVOKE, op.CALL):
            self._by_member(frame, instruction, node)
        if instruction[0] == op.INVOKE and (name := frame.function.text(instruction[4])) in frame.function.known("moves"):
            self.solver.when(self.register(frame, instruction[3]), lambda value: self._moved(value, name, frame, instruction, node))

    def from_default(self, frame: Frame, parameter: Parameter, node: Node) -> None:
        """Also a GPU that is the default of a parameter."""
        super().from_default(frame, parameter, node)
        default = Node(lambda found: self.default(frame, frame.function.code.parameters.index(parameter), found))
        self.solver.when(default, lambda value: self.solver.add(node, value) if names_gpu(value) else None)

    def _said_by(self, name: str) -> str | None:
        """What a function or a method of a library gives that training works on."""
        if name in self.models.known("parameters"):
            return PARAMETERS
        return GRADIENTS if name in self.models.known("gradients") else None

    def _moved(self, value: Object, name: str, frame: Frame, one: Instruction, node: Node) -> None:
        """``batch.to(device)`` of a value of which nothing is known: only tensors, and what holds some, are moved."""
        if isinstance(value, Unknown):
            callee = self.objects(External, f"{TENSOR}.{name}", value)
            self.library_call(callee, self.arguments(frame, one), node)

    def _by_member(self, frame: Frame, one: Instruction, node: Node) -> None:
        function = frame.function
        name = function.text(one[4]) if one[0] == op.INVOKE else function.dotted(one[3]).rpartition(".")[2]
        reason = self._said_by(name)
        if name in ("items", "values") and one[0] == op.INVOKE:
            self.solver.when(self.register(frame, one[3]), lambda value: self._entries(value, name, node))
        if reason is None or self.program.defines(name):
            return
        memory = self.holding(self.objects(Memory, "device", "unknown", TENSOR, reason))
        if name == "parameters":
            self.solver.add(node, self.objects_of_node(memory))
        elif name == "named_parameters":
            pair = self._entry_of(memory)
            self.solver.add(node, self.objects_of_node(pair))
        else:
            self._grow(node, reason)

    def _entries(self, value: Object, name: str, node: Node) -> None:
        """``outputs.items()`` of a mapping that a model gives."""
        if isinstance(value, Memory) and is_reason(value.evidence):
            held = self.holding(self._unsure(value))
            self.solver.add(node, self.objects_of_node(self._entry_of(held) if name == "items" else held))

    def _entry_of(self, memory: Node) -> Node:
        """A node that holds a pair of a name and what a node holds."""
        return self.holding(self.objects(Group, "tuple", (self.holding(self.scalar), memory)))

    def library_member(self, value: Object, name: str, target: Node) -> None:
        """A member of what a model gives is where that is."""
        super().library_member(value, name, target)
        if (
            not isinstance(value, Memory)
            or not is_reason(value.evidence)
            or name in self.models.known("no-tensor")
            or name in ("items", "values")
        ):
            return
        if self.models.part_type(value.type, name) is not None:
            return
        if self.models.member(value.type, name) is None and self.models.named(f"{value.type}.{name}") is None:
            self.solver.add(target, self._unsure(value))

    def _unsure(self, value: Memory) -> Memory:
        evidence = value.evidence if value.evidence.startswith(UNSURE) else f"{UNSURE}{value.evidence}"
        return self.objects(Memory, "device", "unknown", TENSOR, evidence)

    def library_call(self, callee: External, arguments: Arguments, target: Node) -> None:
        """A function of torch without a row computes where its arguments are."""
        super().library_call(callee, arguments, target)
        row = self.row_of(callee)
        is_of_language = callee.name.startswith(f"{TENSOR}.") and callee.name.rpartition(".")[2] in LANGUAGE_MEMBERS
        if row is None and is_of_tensors(self.models, callee.name) and not is_of_language:  # `held.get(key)`: no tensor is asked so
            for node in [*arguments.all, *([self.holding(callee.receiver)] if callee.receiver is not None else [])]:
                self.solver.when(node, lambda value: self._computed_there(value, target))
        elif row is not None and row.effect == "object" and (kind := str(row.get("type") or row.names[0])) in self._made_of:
            for node in arguments.all:
                self.solver.when(node, lambda value: self._made_there(value, kind, target))

    @cached_property
    def _made_of(self) -> frozenset[str]:
        """Types of libraries whose methods compute on what their objects were made of: distributions."""
        return self.models.gathered(made_of)

    def _made_there(self, value: Object, kind: str, target: Node) -> None:
        if isinstance(value, Memory):
            self.solver.add(target, self.objects(Memory, value.space, value.pinning, kind, value.evidence))

    def _computed_there(self, value: Object, target: Node) -> None:
        if isinstance(value, Memory) and value.space == "device":
            self.solver.add(target, self.objects(Memory, "device", "unknown", TENSOR, value.evidence.removeprefix(UNSURE)))

    def library_element(self, value: LibraryObject, target: Node) -> None:
        """A sampler of batches gives lists of numbers, which are no tensors yet."""
        if value.type == _BATCHES:
            self.solver.add(target, self.objects(Memory, "host", "pageable", LIST, "none"))
        else:
            super().library_element(value, target)

    def _attribute(self, value: Instance, name: str, node: Node) -> None:
        """The parameters and buffers of a module are moved with it."""
        super()._attribute(value, name, node)
        stores = self.hierarchy.stores(value.definition, name)
        if any(map(self._registers, stores)) and any(map(self.forwarded, self.hierarchy.libraries(value.definition))):
            self._grow(node, STATE)

    def _registers(self, store: Store) -> bool:
        function, one = store.function, store.function.definitions[store.value]
        if store.instruction[0] == op.INVOKE:
            return function.text(store.instruction[4]) in function.known("registers-tensor") and (one is None or one[0] != op.CONST)
        if one is None or one[0] not in (op.CALL, op.INVOKE):
            return False
        called = function.dotted(one[3])
        meant = self.scopes.find(function.unit, f"{called}.{function.text(one[4])}" if one[0] == op.INVOKE else called) if called else ()
        rows = [self.models.call(each.name) for each in meant if isinstance(each, ExternalName)]
        return any(row is not None and row.get("moves") for row in rows)

    def _inherited(self, value: Instance, name: str, target: Node) -> None:
        """An attribute that no code of the program gives a value may hold anything."""
        super()._inherited(value, name, target)
        if not any(name in one.own_stores for one in self.hierarchy.order(value.definition)):
            self.unknown(target, "external")

    def unknown_call(self, reason: str, arguments: Arguments, target: Node) -> None:
        """The result of unknown code is where its arguments are."""
        super().unknown_call(reason, arguments, target)
        name = _called(arguments)
        if name in self.models.known("brings-data"):
            return
        for node in arguments.all:
            self.solver.when(node, lambda value: self._escape(value, target))

    def _escape(self, value: Object, target: Node) -> None:
        if isinstance(value, Memory) and value.space == "device":
            self.solver.add(target, self._unsure(value))

    def library_object_call(self, callee: Object, arguments: Arguments, target: Node) -> None:
        super().library_object_call(callee, arguments, target)
        if isinstance(callee, LibraryObject) and callee.kind == "module":
            self._grow(target, OUTPUT)


def tensor_of(function: Function) -> str:
    """The type of tensors in a function's language."""
    return CPP_TENSOR if function.is_cpp else TENSOR


def is_of_tensors(models: Models, name: str) -> bool:
    """Whether a name without a row is that of a function of a library that computes tensors of tensors."""
    head, _, last = name.replace("::", ".").rpartition(".")
    return head.startswith("torch") and not head.startswith(tuple(models.marked("no-tensors"))) and last[:1].islower()


def is_of_language(name: str) -> bool:
    return "." not in name or name.startswith("builtins.")


def is_reason(evidence: str) -> bool:
    """Whether evidence is a reason for which training takes a value for memory of the device, and nothing that the program names."""
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


def made_of(models: Models) -> frozenset[str]:
    rows = (row for row in models.calls.values() if row.get("made"))
    return frozenset(name.rpartition(".")[0] for row in rows for name in row.names)
