"""Program facts as others ask for them: what a value may be, who calls a function, what a call may enter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.handing import Handing
from streamlint.facts.code.objects import (
    BoundMethod,
    ClassObject,
    Constant,
    Container,
    DeviceValue,
    Elements,
    External,
    FunctionObject,
    Group,
    Instance,
    LibraryObject,
    Many,
    Memory,
    ModuleObject,
    Object,
    PartialObject,
    Rest,
    Scalar,
    Unknown,
    Varargs,
)
from streamlint.facts.cpp.bindings import Bindings
from streamlint.facts.files.autograd import is_of_autograd, takes_context
from streamlint.facts.files.frameworks import Frameworks
from streamlint.facts.files.program import Program, Unit
from streamlint.facts.values.frames import Arguments, Frame
from streamlint.facts.values.nodes import Node
from streamlint.ir import Instruction, Parameter
from streamlint.ir import opcodes as op
from streamlint.models import Models, Row
from streamlint.support.shared import Shared

_WORD = re.compile(r"\w+")
_NUMBERS = frozenset({"int", "bool"})
_TEXTS = frozenset({"str"})
_CALLABLE = (FunctionObject, BoundMethod, PartialObject)
_OF_WORDS = frozenset({"Optional", "Union", "None", "typing"})


class Facts(Bindings):
    """The facts of a program. Each question solves what it needs; answers are kept."""

    def __init__(self, program: Program, models: Models | None = None, cpp_models: Models | None = None) -> None:
        super().__init__(program, models, cpp_models)
        program.handing = Handing(self)
        self.shared = Shared()
        """What others find out of the program once for all that ask."""

    @cached_property
    def frameworks(self) -> Frameworks:
        """The methods that frameworks call."""
        return Frameworks(self.program, self.hierarchy, self.models)

    def is_of_host(self, function: Function, name: str) -> bool:
        """Whether a name in a function is one of a library that starts nothing on a device by itself."""
        return (self.cpp_models if function.is_cpp else self.models).is_of_host(name)

    def hands_function(self, function: Function, registers: Iterable[int]) -> bool:
        """Whether one of some registers may hold a function of the program, which whoever is given it may call."""
        held = (value for register in registers if register >= 0 for value in self.values(function, register).values)
        return any(isinstance(value, _CALLABLE) for value in held)

    def from_outside(self, frame: Frame, parameter: Parameter, node: Node) -> None:
        function = frame.function
        if function.is_cpp:
            self.from_outside_cpp(frame, parameter.type, node)
            return
        owner = function.owner if parameter is function.code.parameters[0] and takes_context(function) else None
        if owner is not None and is_of_autograd(self.hierarchy, function):
            self.solver.add(node, self.objects(Instance, owner, False))  # the context is an object of the class
            return
        if self.frameworks.is_on_device(function, parameter.name):
            self.solver.add(node, self.objects(Memory, "device", "unknown", "torch.Tensor", "asked"))
        said = bool(parameter.annotation) and parameter.kind in ("plain", "keyword")
        if said:
            said = self.declared(function.unit, parameter.annotation, node)
        if not said:
            self._from_anybody(function, node)
        if parameter.default and not self.is_private(function):
            self.from_default(frame, parameter, node)

    def _from_anybody(self, function: Function, node: Node) -> None:
        """What unknown code may hand over: to a nested function that is given away, if no call of it is in view."""
        if not self.is_private(function):
            self.unknown(node, "caller")
        elif self.is_given_away(function):
            self.solver.at_last(lambda: None if self._calls.get(function) else self.unknown(node, "caller"))

    def is_settled(self, function: Function, parameter: Parameter) -> bool:
        """Declared as a class of the program: an object of it or of one that derives from it, whichever is passed."""
        meant = self.scopes.exactly(function.unit, parameter.annotation) if parameter.annotation and not function.is_cpp else None
        return meant is not None and self.models.marked("protocol").isdisjoint(self.hierarchy.libraries(meant))

    def is_declared_number(self, function: Function, parameter: Parameter) -> bool:
        """Whether a parameter is declared as a whole number or a truth value. ``float`` is written of losses too."""
        return self._is_declared(function, parameter, _NUMBERS)

    def is_declared_text(self, function: Function, parameter: Parameter) -> bool:
        """Whether a parameter is declared as a text, or as a number or text: who gives it an object means one that stands for a text."""
        return self._is_declared(function, parameter, _NUMBERS | _TEXTS)

    def _is_declared(self, function: Function, parameter: Parameter, kinds: frozenset[str]) -> bool:
        if parameter.kind not in ("plain", "keyword") or function.is_cpp:
            return False
        words = set(_WORD.findall(parameter.annotation))
        return not kinds.isdisjoint(words) and words <= kinds | _OF_WORDS

    def from_default(self, frame: Frame, parameter: Parameter, node: Node) -> None:
        """What the program made for the default of a parameter: who calls from outside may leave the argument out."""
        default = Node(lambda found: self.default(frame, frame.function.code.parameters.index(parameter), found))
        own = (FunctionObject, ClassObject, BoundMethod, Instance, Group, Container)
        self.solver.when(default, lambda value: self.solver.add(node, value) if isinstance(value, own) else None)

    def values(self, function: Function, register: int) -> Node:
        """What a register may hold, over all calls of its function."""
        node = self.solver.demand(self.register(self.base(function), register))
        self.solver.solve()
        return node

    def held_under(self, function: Function, register: int, key: str) -> Node:
        """What the mapping in a register may hold under a key, over all calls of its function."""
        node = Node(None)
        self.ask(self.keyed_of_node(self.solver.demand(self.register(self.base(function), register))), key, node)
        self.solver.demand(node)
        self.solver.solve()
        return node

    def held_by(self, value: Instance, name: str) -> Node:
        """What an attribute of the objects of a class may hold."""
        node = self.solver.demand(self.attribute(value, name))
        self.solver.solve()
        return node

    def captured(self, frame: Frame, name: str, owner: int) -> list[Object]:
        """What a variable that closures share holds, as a frame sees it."""
        node = self.solver.demand(self.cell(frame, name, owner))
        self.solver.solve()
        return list(node.values)

    def elements(self, value: Object) -> list[Object]:
        """What the elements of a value may be."""
        node = self.solver.demand(self.any_element(value))
        self.solver.solve()
        return list(node.values)

    def global_values(self, unit: Unit, name: str) -> list[Object]:
        """What a global name of a file may be."""
        node = self.solver.demand(self.global_name(unit, name))
        self.solver.solve()
        return list(node.values)

    def callees(self, function: Function, instruction: Instruction) -> list[Object]:
        """What a call instruction may call."""
        node = self.solver.demand(self.callee(self.base(function), instruction))
        self.solver.solve()
        return list(dict.fromkeys(one for value in list(node.values) for one in self.members_of(value)))

    def callee_functions(self, function: Function, instruction: Instruction) -> dict[Function, None]:
        """The functions that a call enters: asked for, whatever was asked before."""
        self.values(function, instruction[2])
        return self.enters(function, instruction)

    def rows(self, function: Function, instruction: Instruction) -> Iterator[Row]:
        """The rows of the functions of libraries that a call instruction may call."""
        for value in self.callees(function, instruction):
            row = self.row_of(value) if isinstance(value, External) else None
            if row is not None:
                yield row

    def argument(self, function: Function, index: int) -> Node:
        """What a parameter may hold, over all calls."""
        register = next(one[2] for one in function.by_opcode[op.PARAM] if one[3] == index)
        return self.values(function, register)


_PLURALS = {"function": "functions", "class": "classes", "method": "methods", "object": "objects", "partial": "functions with arguments"}


_IN_WORDS: dict[type[Object] | tuple[type[Object], ...], str] = {
    FunctionObject: "function {0.function.name}",
    (Container, Elements, Group): "container ({0.kind})",
    (Varargs, Rest): "container (arguments)",
    DeviceValue: "device ({0.space})",
    Constant: "constant {0.value!r}",
    Scalar: "number or text",
    Unknown: "unknown ({0.reason})",
    BoundMethod: "method {0.method.function.name}",
    ClassObject: "class {0.definition.name}",
    ModuleObject: "module {0.unit.path}",
    External: "{0.name} of a library",
}


def describe(value: Object) -> Iterator[str]:
    """An object in words."""
    if isinstance(value, Memory):
        host = f"{value.pinning} " if value.space == "host" else ""
        yield f"{value.type} in {host}{value.space} memory" + (f" ({value.evidence})" if value.evidence != "none" else "")
    elif isinstance(value, Instance):
        yield f"object of {value.definition.name}" + ("" if value.exact else " or a subclass")
    elif isinstance(value, LibraryObject):
        detail = f" ({value.detail})" if value.kind == "stream" and value.detail not in ("", "created") else ""
        yield f"object of {value.type}{detail}"
    elif isinstance(value, Many):
        kind, _, name = value.kind.partition(" ")
        yield (
            f"one of many {_PLURALS[kind]}"
            + (f" {name}" if name else "")
            + (f" of {getattr(value.of, 'path', value.of)}" if value.of != "*" else "")
        )
    else:
        named = type(value).__name__.removesuffix("Object").lower()
        yield next((words for kinds, words in _IN_WORDS.items() if isinstance(value, kinds)), named).format(value)


__all__ = ["Arguments", "Facts", "describe"]
