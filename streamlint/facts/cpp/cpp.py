"""C++: what the instructions of a function put into registers, where that is not as in Python.

Everything else (`nodes`, `objects`, `flow`, `calls`) is shared by the languages.
"""

from __future__ import annotations

from collections.abc import Callable

from streamlint.facts.code.functions import ClassInfo
from streamlint.facts.code.objects import Address, ClassObject, CppName, Elements, Instance, Memory, Object
from streamlint.facts.cpp.cpp_callers import CppCallers
from streamlint.facts.values.frames import Frame
from streamlint.facts.values.nodes import Node
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.code import TypeTuple

Rule = Callable[["Cpp", Frame, Instruction, Node], None]


class Cpp(CppCallers):
    """Value flow of C++ instructions."""

    def define(self, frame: Frame, instruction: Instruction | None, node: Node) -> None:
        rule = CPP_RULES.get(instruction[0]) if instruction is not None and frame.function.is_cpp else None
        if rule is None or instruction is None:
            super().define(frame, instruction, node)
        else:
            rule(self, frame, instruction, node)

    def callee(self, frame: Frame, one: Instruction) -> Node:
        if one[0] == op.LAUNCH:
            return self.register(frame, one[3])
        if one[0] not in (op.CONSTRUCT, op.NEW, op.DECLARE):
            return super().callee(frame, one)
        key = (frame, one)
        found = self._callees.get(key)
        if found is None:
            found = self._callees[key] = Node(lambda node: self._made_by(frame, one, node))
        return found

    def _made_by(self, frame: Frame, one: Instruction, node: Node) -> None:
        kind, meant = self.named_type(frame.function, self._type(frame, one))
        if isinstance(meant, ClassInfo):
            self.solver.add(node, self.objects(ClassObject, meant))
        elif meant is not None or self.cpp_models.call(str(kind[0])) is not None:
            self.solver.add(node, self.objects(CppName, meant.name if meant is not None else str(kind[0]), None))

    def _type(self, frame: Frame, one: Instruction) -> TypeTuple:
        kind: TypeTuple = frame.function.unit.ir.constants[one[3]]
        return kind

    def _cpp_name(self, frame: Frame, one: Instruction, node: Node) -> None:
        self.cpp_name(frame, frame.function.text(one[3]), node, one)

    def _address(self, frame: Frame, one: Instruction, node: Node) -> None:
        name, owner = frame.function.unit.ir.constants[one[3]]
        self.address(self.cell(frame, name, owner), node)

    def _address_name(self, frame: Frame, one: Instruction, node: Node) -> None:
        self.cpp_address_of_name(frame, frame.function.text(one[3]), node, one)

    def _address_attr(self, frame: Frame, one: Instruction, node: Node) -> None:
        name = frame.function.text(one[4])
        self.each_instance(self.register(frame, one[3]), lambda held: self._address_of_member(held, name, node))

    def _address_of_member(self, value: Instance, name: str, node: Node) -> None:
        found = self.field_of(value.definition, name)
        if found is not None:
            self.address(self.field(found[0], name), node)
        else:
            self.unknown(node, "dynamic")

    def _address_item(self, frame: Frame, one: Instruction, node: Node) -> None:
        self.solver.when(self.register(frame, one[3]), lambda value: self._address_of_element(value, frame, one, node))

    def _address_of_element(self, value: Object, frame: Frame, one: Instruction, node: Node) -> None:
        if isinstance(value, Elements):
            self.address(self.held_in(value), node)
        elif isinstance(value, Instance) and value.definition.unit.is_cpp and self.overloads(value.definition, "operator[]"):
            self._item_of(value, frame, one, node)
        elif isinstance(value, Address):
            if node.first("item", value):
                self.solver.when(value.place, lambda held: self._address_of_element(held, frame, one, node))
        else:
            self.solver.add(node, value)

    def _deref(self, frame: Frame, one: Instruction, node: Node) -> None:
        is_pointer = self.is_pointer(frame.function, one[3])
        self.solver.when(self.register(frame, one[3]), lambda value: self._pointed_by(value, is_pointer, frame, one, node))

    def _pointed_by(self, value: Object, is_pointer: bool, frame: Frame, one: Instruction, node: Node) -> None:
        """What `*x` gives: what a pointer leads to, or what the class of an object says."""
        if is_pointer or not isinstance(value, Instance) or not self.is_operator(value.definition, "operator*"):
            self.pointed_to(value, node)
        else:
            method, given = self.method_node(value, "operator*", node.site), self.no_arguments_of(frame, one)
            self.solver.when(method, lambda held: self.call(held, given, node))

    def _cpp_item(self, frame: Frame, one: Instruction, node: Node) -> None:
        self.solver.when(self.register(frame, one[3]), lambda value: self._item_of(value, frame, one, node))

    def _item_of(self, value: Object, frame: Frame, one: Instruction, node: Node) -> None:
        if isinstance(value, Instance) and value.definition.unit.is_cpp:
            method = self.method_node(value, "operator[]", node.site)
            given = self.no_arguments_of(frame, one)
            if not given.positional:
                given.positional.append(self.register(frame, one[4]))
            self.solver.when(method, lambda held: self.call(held, given, node))
        elif isinstance(value, Memory):
            self.solver.add(node, value if self.is_cpp_tensor(value) else self.scalar)
        else:
            self.element(value, frame.function.constant(one[4]), node, node.site)

    def _cast(self, frame: Frame, one: Instruction, node: Node) -> None:
        kind = frame.function.unit.ir.constants[one[3]]
        source = self.register(frame, one[4])
        if kind is None:
            self.solver.edge(source, node)
        elif self._makes_container(frame, one, kind):
            value = self.object_of(frame.function, kind, self.home_of(frame, one), True)
            self.solver.add(node, value if value is not None else self.scalar)
        else:
            self.cast(frame, kind, source, node)

    def _makes_container(self, frame: Frame, one: Instruction, kind: TypeTuple) -> bool:
        """Whether a list of pairs in braces becomes a map, or an empty one a container that is filled later."""
        made = frame.function.definitions[one[4]] if one[4] >= 0 else None
        if made is None or made[0] != op.BUILD:
            return False
        resolved = self.named_type(frame.function, kind)[0]
        is_sequence = resolved[4] is not None or resolved[0] in self.cpp_models.marked("sequence")
        return resolved[0] in self.cpp_models.marked("mapped") or (is_sequence and len(made) == 4 and not resolved[2])

    def _made_object(self, frame: Frame, one: Instruction, node: Node) -> None:
        self.made(frame, one, self._type(frame, one), node)

    def _built(self, frame: Frame, one: Instruction, node: Node) -> None:
        """A list in braces: where a record is wanted, an object of its class."""
        record = self.brace_lists.record(frame.function, one)
        if record is None:
            super()._build(frame, one, node)
        else:
            self.construct(record, self.arguments(frame, one), node)

    def _made_array(self, frame: Frame, one: Instruction, node: Node) -> None:
        self.made_array(frame, one, self._type(frame, one), node)

    def _rebind(self, frame: Frame, one: Instruction, node: Node) -> None:
        self.rebound(frame, one, node)

    def _launched(self, frame: Frame, one: Instruction, node: Node) -> None:
        kernel = self.register(frame, one[3])
        self.solver.when(kernel, lambda callee: self.call(callee, self.arguments(frame, one), node))

    def _operator(self, frame: Frame, one: Instruction, node: Node) -> None:
        operator = frame.function.unit.ir.constants[one[3]]
        self.operated(frame, operator, one[4:], node)

    def _compared_cpp(self, frame: Frame, one: Instruction, node: Node) -> None:
        self.solver.add(node, self.scalar)
        for register in one[4:6]:
            self.solver.when(self.register(frame, register), lambda value: self._compared_tensor(value, node))

    def _compared_tensor(self, value: Object, node: Node) -> None:
        if self.is_cpp_tensor(value):
            self.solver.add(node, self.computed(value))


CPP_RULES: dict[int, Rule] = {
    op.NAME: Cpp._cpp_name,
    op.ADDRESS: Cpp._address,
    op.ADDRESS_NAME: Cpp._address_name,
    op.ADDRESS_ATTR: Cpp._address_attr,
    op.ADDRESS_ITEM: Cpp._address_item,
    op.DEREF: Cpp._deref,
    op.ITEM: Cpp._cpp_item,
    op.CAST: Cpp._cast,
    op.COPY: Cpp._pass,
    op.DECLARE: Cpp._made_object,
    op.CONSTRUCT: Cpp._made_object,
    op.NEW: Cpp._made_object,
    op.NEW_ARRAY: Cpp._made_array,
    op.BUILD: Cpp._built,
    op.REBIND: Cpp._rebind,
    op.LAUNCH: Cpp._launched,
    op.UNARY: Cpp._operator,
    op.BINARY: Cpp._operator,
    op.INPLACE: Cpp._operator,
    op.COMPARE: Cpp._compared_cpp,
}
