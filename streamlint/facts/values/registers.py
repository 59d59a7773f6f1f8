"""What the instructions of a function put into registers."""

from __future__ import annotations

from collections.abc import Callable

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import repeats
from streamlint.facts.code.objects import (
    BoundMethod,
    ClassObject,
    Constant,
    Container,
    DeviceValue,
    External,
    Group,
    Instance,
    Memory,
    ModuleObject,
    Object,
    Scalar,
    Site,
    SuperObject,
    Text,
    Unknown,
)
from streamlint.facts.values.containers import ends_of
from streamlint.facts.values.frames import Frame
from streamlint.facts.values.nodes import Node
from streamlint.facts.values.operators import Operators
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

Rule = Callable[["Registers", Frame, Instruction, Node], None]
LONGEST_TEXT = 60
"""Letters of a text that is put between others: a loop may do so with what it has put together."""
_SIMPLE = (bool, int, float, str, bytes, type(None))


class Registers(Operators):
    """Value flow of instructions."""

    def define(self, frame: Frame, instruction: Instruction | None, node: Node) -> None:
        rule = RULES.get(instruction[0]) if instruction is not None else None
        if rule is None or instruction is None:
            self.unknown(node, "dynamic")
        else:
            rule(self, frame, instruction, node)

    def _const(self, frame: Frame, one: Instruction, node: Node) -> None:
        value = frame.function.unit.ir.constants[one[3]]
        self.solver.add(node, self.objects(Constant, value) if isinstance(value, _SIMPLE) else self.scalar)

    def _param(self, frame: Frame, one: Instruction, node: Node) -> None:
        self.parameter(frame, one[3], node)

    def _undef(self, frame: Frame, one: Instruction, node: Node) -> None:
        """A variable that no path has bound."""

    def _phi(self, frame: Frame, one: Instruction, node: Node) -> None:
        for register in self.arms.chosen(frame.function, one):
            self.solver.edge(self.register(frame, register), node)

    def _pass(self, frame: Frame, one: Instruction, node: Node) -> None:
        self.solver.edge(self.register(frame, one[3]), node)

    def _name(self, frame: Frame, one: Instruction, node: Node) -> None:
        function = frame.function
        name = function.text(one[3])
        owner = function.unit.class_of_body.get(function.code.number)
        if owner is not None and name in owner.assigned:
            self.solver.edge(self.class_attribute(owner, name), node)
        else:
            self.solver.edge(self.global_name(function.unit, name), node)

    def _load(self, frame: Frame, one: Instruction, node: Node) -> None:
        name, owner = frame.function.unit.ir.constants[one[3]]
        self.solver.edge(self.cell(frame, name, owner), node)

    def _attr(self, frame: Frame, one: Instruction, node: Node) -> None:
        name = frame.function.text(one[4])
        self.solver.when(self.register(frame, one[3]), lambda value: self.named_in(frame, value, name, node))

    def named_in(self, frame: Frame, value: Object, name: str, node: Node) -> None:
        """What the code of a function gets where it names a member of an object."""
        self.member(value, name, node, node.site)

    def _item(self, frame: Frame, one: Instruction, node: Node) -> None:
        key = frame.function.constant(one[4])
        self.subscripted(frame, one)
        made = frame.function.definitions[one[4]] if one[4] >= 0 else None
        if made is not None and made[0] == op.SLICE:
            self.solver.when(self.register(frame, one[3]), lambda value: self.sliced(value, ends_of(frame.function, made), node))
        elif made is not None and made[0] == op.PARAM and _is_given(frame, made[3]):
            self.solver.when(self.register(frame, one[4]), lambda name: self._under(frame, one, node, name))
        else:
            self.solver.when(self.register(frame, one[3]), lambda value: self.element(value, key, node, node.site))

    def _under(self, frame: Frame, one: Instruction, node: Node, name: Object) -> None:
        """The element under the key that a caller names; any, where the key is not known."""
        key = name.value if isinstance(name, Constant) and isinstance(name.value, (str, int)) else None
        self.solver.when(self.register(frame, one[3]), lambda value: self.element(value, key, node, node.site))

    def _scalar(self, frame: Frame, one: Instruction, node: Node) -> None:
        self.solver.add(node, self.scalar)

    def _format(self, frame: Frame, one: Instruction, node: Node) -> None:
        texts = frame.function.unit.ir.constants[one[3]]
        self.solver.add(node, self.objects(Text, False, texts[0]) if texts and texts[0] else self.scalar)
        if texts and len(one) == 5:
            self.solver.when(self.register(frame, one[4]), lambda value: self._put_between(texts[0], value, texts[1], node))
        self.by_format(frame, one, Node(None))

    def _put_between(self, before: str, value: Object, behind: str, node: Node) -> None:
        """A text that is known stands between others."""
        if isinstance(value, Constant) and isinstance(value.value, str) and len(value.value) <= LONGEST_TEXT:
            self.solver.add(node, self.objects(Constant, f"{before}{value.value}{behind}"))

    def _unary(self, frame: Frame, one: Instruction, node: Node) -> None:
        operator = frame.function.unit.ir.constants[one[3]]
        if operator == "not":
            self.solver.add(node, self.scalar)
        else:
            self.solver.when(self.register(frame, one[4]), lambda value: self._operand(value, node))
        self.by_operator(frame, one, node)

    def _binary(self, frame: Frame, one: Instruction, node: Node) -> None:
        operator = frame.function.unit.ir.constants[one[3]]
        if operator in ("+", "%") and isinstance(begun := frame.function.constant(one[4]), str):
            self.solver.add(node, self.objects(Text, False, begun.partition("%")[0] if operator == "%" else begun))
        if operator == "+" and isinstance(ended := frame.function.constant(one[5]), str):
            self.solver.when(self.register(frame, one[4]), lambda value: self._put_between("", value, ended, node))
        repeated = [each for each in one[4:6] if repeats(frame.function, one) and is_display(frame.function, each)]  # ``[None] * count``
        for register in repeated:
            self.solver.edge(self.register(frame, register), node)
        for register in one[4:6] if not repeated else ():
            self.solver.when(self.register(frame, register), lambda value: self._operand(value, node, operator in ("+", "|", "or")))
        self.by_operator(frame, one, node)

    def _operand(self, value: Object, node: Node, keeps: bool = False) -> None:
        """What an operator makes of one operand: memory where that is; what holds elements stays."""
        if isinstance(value, Memory):
            self.solver.add(node, self.computed(value))
        elif (isinstance(value, (Container, Group, ClassObject)) and keeps) or isinstance(value, Unknown):
            self.solver.add(node, value)
        elif isinstance(value, Instance):
            self.unknown(node, "dynamic")
        elif isinstance(value, (Constant, DeviceValue, Scalar)):
            self.solver.add(node, self.scalar)

    def computed(self, value: Memory) -> Memory:
        """New memory beside this: on the host it is pageable."""
        pinning = "pageable" if value.space == "host" else value.pinning
        return self.objects(Memory, value.space, pinning, value.type, value.evidence)

    def _compare(self, frame: Frame, one: Instruction, node: Node) -> None:
        operator = frame.function.unit.ir.constants[one[3]]
        self.solver.add(node, self.scalar)
        self.by_operator(frame, one, node)
        if operator in ("==", "!=", "<", ">", "<=", ">="):
            for register in one[4:6]:
                self.solver.when(self.register(frame, register), lambda value: self._compared(value, node))

    def _compared(self, value: Object, node: Node) -> None:
        if isinstance(value, Memory):
            self.solver.add(node, self.computed(value))

    def _call(self, frame: Frame, one: Instruction, node: Node) -> None:
        self.solver.when(self.register(frame, one[3]), lambda callee: self._called(callee, frame, one, node))

    def _called(self, callee: Object, frame: Frame, one: Instruction, node: Node) -> None:
        if isinstance(callee, External) and callee.name == "super":
            self._super(frame, node)
        else:
            self.call(callee, self.arguments(frame, one), node)

    def _super(self, frame: Frame, node: Node) -> None:
        """``super()`` of the method around."""
        method = frame.function.method
        owner = method.owner if method is not None else None
        if method is None or owner is None:
            self.unknown(node, "dynamic")
            return
        home: Frame | None = frame
        while home is not None and home.function is not method:
            home = home.outer
        receiver = self.frame(method) if home is None else home
        parameter = next((one for one in method.by_opcode[op.PARAM] if one[3] == 0), None)
        if parameter is None:
            self.unknown(node, "dynamic")
            return
        self.solver.when(
            self.register(receiver, parameter[2]), lambda value: self.solver.add(node, self.objects(SuperObject, owner, value))
        )

    def _invoke(self, frame: Frame, one: Instruction, node: Node) -> None:
        method = self.callee(frame, one)
        self.solver.when(method, lambda callee: self.call(callee, self.arguments(frame, one), node))

    def callee(self, frame: Frame, one: Instruction) -> Node:
        """What a call instruction calls."""
        if one[0] == op.CALL:
            return self.register(frame, one[3])
        key = (frame, one)
        found = self._callees.get(key)
        if found is None:
            name = frame.function.text(one[4])
            receiver = self.register(frame, one[3])
            found = self._callees[key] = Node(
                lambda node: self.solver.when(receiver, lambda value: self.named_in(frame, value, name, node)), (frame.function, one)
            )
        return found

    def _build(self, frame: Frame, one: Instruction, node: Node) -> None:
        self.solver.add(node, self.container(frame.function.kind_built(one), frame, one))

    def _dict(self, frame: Frame, one: Instruction, node: Node) -> None:
        self.solver.add(node, self.container("dict", frame, one))

    def _function(self, frame: Frame, one: Instruction, node: Node) -> None:
        function = frame.function.unit.function(one[3])
        self.solver.add(node, self.function_object(function, frame))

    def _class(self, frame: Frame, one: Instruction, node: Node) -> None:
        definition = frame.function.unit.classes[one[3]]
        self.solver.add(node, self.objects(ClassObject, definition))
        self.class_made(definition, Site(frame.function, one))

    def _import(self, frame: Frame, one: Instruction, node: Node) -> None:
        unit = frame.function.unit
        module = frame.function.text(one[3])
        name = frame.function.text(one[4]) if one[4] != op.NONE else None
        target = self.program.imported(module, unit)
        if target is not None:
            self.module_asked(self.objects(ModuleObject, target), frame, one)
        if target is unit and name is not None and (inner := self.program.modules.submodule(unit.path, name)) is not None:
            self.solver.add(node, self.objects(ModuleObject, self.program.units[inner]))  # its own name means what is imported here
            return
        if target is not None and name is not None:
            self.member(self.objects(ModuleObject, target), name, node, node.site)
            return
        for definition in self.scopes.imported(unit, module, name):
            self.meant(definition, node)

    def _next(self, frame: Frame, one: Instruction, node: Node) -> None:
        iterator = frame.function.definitions[one[3]]
        source = iterator[3] if iterator is not None and iterator[0] == op.ITER else one[3]
        self.iterate(self.register(frame, source), node)

    def _unpack(self, frame: Frame, one: Instruction, node: Node) -> None:
        register, index, _, star = one[3:7]
        if index == star:
            self.solver.edge(self.register(frame, register), node)
            return
        key = index if star == op.NONE or index < star else None

        def arrived(value: Object) -> None:
            if isinstance(value, Instance) and self.has_method(value, "__iter__"):
                self.iterated(value, node, node.site)
            else:
                self.element(value, key, node, node.site)

        self.solver.when(self.register(frame, register), arrived)

    def _enter(self, frame: Frame, one: Instruction, node: Node) -> None:
        self.solver.when(self.register(frame, one[3]), lambda value: self.entered(value, node, node.site))

    def _await(self, frame: Frame, one: Instruction, node: Node) -> None:
        self.solver.when(self.register(frame, one[3]), lambda value: self.awaited(value, node))

    def _yield_from(self, frame: Frame, one: Instruction, node: Node) -> None:
        self.solver.when(self.register(frame, one[3]), lambda value: self.awaited(value, node))

    def _capture(self, frame: Frame, one: Instruction, node: Node) -> None:
        """What a pattern binds: the subject, or a part of it."""
        self.solver.edge(self.register(frame, one[3]), node)
        self.solver.when(self.register(frame, one[3]), lambda value: self._part(value, node))

    def _part(self, value: Object, node: Node) -> None:
        if not isinstance(value, (Instance, BoundMethod)):
            self.element(value, None, node, node.site)

    def _dynamic(self, frame: Frame, one: Instruction, node: Node) -> None:
        self.unknown(node, "dynamic")


RULES: dict[int, Rule] = {
    op.CONST: Registers._const,
    op.PARAM: Registers._param,
    op.UNDEF: Registers._undef,
    op.PHI: Registers._phi,
    op.NAME: Registers._name,
    op.LOAD: Registers._load,
    op.UNKNOWN: Registers._dynamic,
    op.ATTR: Registers._attr,
    op.ITEM: Registers._item,
    op.SLICE: Registers._scalar,
    op.UNARY: Registers._unary,
    op.BINARY: Registers._binary,
    op.INPLACE: Registers._binary,
    op.COMPARE: Registers._compare,
    op.CALL: Registers._call,
    op.INVOKE: Registers._invoke,
    op.BUILD: Registers._build,
    op.DICT: Registers._dict,
    op.FORMAT: Registers._format,
    op.FUNCTION: Registers._function,
    op.CLASS: Registers._class,
    op.IMPORT: Registers._import,
    op.ITER: Registers._pass,
    op.MORE: Registers._scalar,
    op.NEXT: Registers._next,
    op.UNPACK: Registers._unpack,
    op.ENTER: Registers._enter,
    op.EXIT: Registers._scalar,
    op.YIELD: Registers._dynamic,
    op.YIELD_FROM: Registers._yield_from,
    op.AWAIT: Registers._await,
    op.CAUGHT: Registers._dynamic,
    op.CATCHES: Registers._scalar,
    op.MATCH: Registers._scalar,
    op.CAPTURE: Registers._capture,
}


def _is_given(frame: Frame, index: int) -> bool:
    """Whether the one call that a frame stands for gives a parameter, by its place or its name."""
    arguments = frame.arguments
    place = index - (1 if frame.function.has_receiver and frame.receiver is not None else 0)
    return arguments is not None and (place < len(arguments.positional) or frame.function.code.parameters[index].name in arguments.keywords)


def is_display(function: Function, register: int) -> bool:
    """Whether a register holds a list or tuple that is written out."""
    one = function.definitions[register] if register >= 0 else None
    return one is not None and one[0] == op.BUILD
